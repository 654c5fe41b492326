package bloom_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
)

type noted interface {
	kept
	Meta() map[string]string
	SetMeta(meta map[string]string) error
}

// TestKindsKeepMetadata: every kind stores them, and a filter without any writes the
// file that it wrote before it had some.
func TestKindsKeepMetadata(t *testing.T) {
	meta := map[string]string{"source": "crawl", "normalize": "lower"}
	for _, kind := range storedKinds {
		t.Run(kind.name, func(t *testing.T) {
			f := kind.make(t, nil).(noted)
			defer f.Close()
			var bare, noted, again bytes.Buffer
			f.WriteTo(&bare)
			if f.Meta() != nil {
				t.Errorf("a new filter has metadata %v", f.Meta())
			}
			if err := f.SetMeta(meta); err != nil {
				t.Fatal(err)
			}
			if err := f.SetMeta(map[string]string{"a": strings.Repeat("x", 5000)}); !errors.Is(err, bloom.ErrLimit) {
				t.Errorf("too much: %v, want ErrLimit", err)
			}
			f.WriteTo(&noted)
			path := filepath.Join(t.TempDir(), "filter")
			if err := f.Save(path); err != nil {
				t.Fatal(err)
			}
			read, err := kind.read(bytes.NewReader(noted.Bytes()), int64(noted.Len()))
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			loaded, err := kind.load(path)
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Close()
			for _, g := range []kept{read, loaded} {
				if got := g.(interface{ Meta() map[string]string }).Meta(); !maps.Equal(got, meta) {
					t.Errorf("metadata %v come back as %v", meta, got)
				}
			}
			if kind.name == "Window" {
				return // its file has the time of day
			}
			if err := read.(interface{ SetMeta(map[string]string) error }).SetMeta(nil); err != nil {
				t.Fatal(err)
			}
			if read.WriteTo(&again); !bytes.Equal(again.Bytes(), bare.Bytes()) {
				t.Error("without its metadata the filter has another file than before")
			}
		})
	}
}

// TestDerivedKeepMetadata: what is made of a filter describes itself as that does.
func TestDerivedKeepMetadata(t *testing.T) {
	meta := map[string]string{"normalize": "trim"}
	filter := func() *bloom.Filter {
		f, err := bloom.Config{Keys: 5000, Rate: 0.01, Folds: 2}.New()
		if err != nil {
			t.Fatal(err)
		}
		f.SetMeta(meta)
		return f
	}
	counting, _ := bloom.NewCounting(100, 0.01)
	counting.SetMeta(meta)
	textbook, _ := classic.New(100, 0.01)
	textbook.SetMeta(meta)
	growing, err := filter().Growing(0)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := growing.Compact(func(func([]byte) bool) {})
	if err != nil {
		t.Fatal(err)
	}
	bits, err := counting.Filter()
	if err != nil {
		t.Fatal(err)
	}
	shared := filter().Share()
	snapshot, err := shared.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	folded, err := bloom.WithExceptions(filter()).Fold(2)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]interface{ Meta() map[string]string }{
		"Growing": growing, "Compact": compact, "Counting.Filter": bits, "Counting.Clone": counting.Clone(),
		"Classic.Clone": textbook.Clone(), "Share": shared, "Snapshot": snapshot, "Exceptions.Fold": folded,
	} {
		if !maps.Equal(f.Meta(), meta) {
			t.Errorf("%s: metadata %v, want %v", name, f.Meta(), meta)
		}
	}
}

// TestSchemeMetadata: the file of a caller's scheme names it in addition to the
// caller's own metadata.
func TestSchemeMetadata(t *testing.T) {
	mine, err := classic.NewScheme("mine", func(at []uint64, key []byte, m uint64) { clear(at) })
	if err != nil {
		t.Fatal(err)
	}
	f, err := classic.Config{Keys: 10, Rate: 0.01, Scheme: mine}.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetMeta(map[string]string{"scheme": "x"}); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("the key of the scheme: %v, want ErrConfig", err)
	}
	if err := f.SetMeta(map[string]string{"a": strings.Repeat("x", 4096-4-64-2-4-1-len("scheme")-len("mine"))}); !errors.Is(err, bloom.ErrLimit) {
		t.Errorf("no room for the scheme's name: %v, want ErrLimit", err)
	}
	meta := map[string]string{"a": "b"}
	if err := f.SetMeta(meta); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "filter")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	g, err := classic.Load(path, mine)
	if err != nil || !maps.Equal(g.Meta(), meta) {
		t.Errorf("it comes back with %v, %v", g.Meta(), err)
	}
}

// TestMetadataAtOnce is for the race detector.
func TestMetadataAtOnce(t *testing.T) {
	f, err := bloom.NewShared(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 100 {
				f.SetMeta(map[string]string{"by": fmt.Sprint(i)})
				if len(f.Meta()) != 1 {
					t.Error("half of the metadata were seen")
				}
				f.WriteTo(new(bytes.Buffer))
			}
		})
	}
	all.Wait()
}

func TestZeroHasher(t *testing.T) {
	var h bloom.Hasher
	for name, hash := range map[string]func(){
		"Hash":         func() { h.Hash([]byte("key")) },
		"HashString":   func() { h.HashString("a key of twelve") },
		"Filter's Add": func() { new(bloom.Filter).AddUint64(1) },
	} {
		if message := panicOf(hash); !strings.Contains(message, "zero Hasher") {
			t.Errorf("%s of a zero Hasher panics with %q", name, message)
		}
	}
	if h.HashIdentity() != (bloom.HashIdentity{}) || h.NeedsSecret() {
		t.Error("a zero Hasher has an identity, or needs a secret")
	}
	if err := h.SetSecret(make([]byte, bloom.SecretBytes)); !errors.Is(err, bloom.ErrSecret) {
		t.Errorf("a secret for a zero Hasher: %v, want ErrSecret", err)
	}
}
