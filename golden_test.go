package bloom_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
)

// goldenFilters are one of every kind, keyed and not, and a Classic of every
// numbered scheme: what is frozen. Rows are added, never changed; a row whose
// file is missing writes it. The files window.bloom and window-keyed.bloom are from
// when a generation had one layer: see TestWindowOfOldRelease.
func goldenFilters(t *testing.T) map[string]kept {
	secret := []byte("0123456789abcdef")
	const n, p = 200, 0.01
	all := map[string]kept{}
	for _, keyed := range []bool{false, true} {
		name := func(kind string) string {
			if keyed {
				return kind + "-keyed"
			}
			return kind
		}
		config := bloom.Config{Keys: n, Rate: p, Seed: 7}
		scalable := bloom.ScalableConfig{First: n / 4, Rate: p, Seed: 7} // several layers
		clock := goldenClock().Add(-30 * time.Minute)
		window := bloom.WindowConfig{Keys: n / 4, Rate: 1e-9, Seed: 7, Span: time.Hour, Generations: 2, Now: func() time.Time { return clock }}
		if keyed {
			config.Seed, scalable.Seed, window.Seed = 0, 0, 0
			config.Secret, scalable.Secret, window.Secret = secret, secret, secret
		}
		filter := must[*bloom.Filter](t)(config.New()).(*bloom.Filter)
		if err := filter.SetMeta(map[string]string{"source": "golden", "licence": "Apache-2.0"}); err != nil {
			t.Fatal(err)
		}
		all[name("filter")] = filter
		all[name("splitblock")] = must[*bloom.SplitBlock](t)(config.NewSplitBlock())
		all[name("counting")] = must[*bloom.Counting](t)(config.NewCounting())
		all[name("classic")] = must[*classic.Filter](t)(classic.Config{Keys: config.Keys, Rate: config.Rate, Seed: config.Seed, Secret: config.Secret}.New())
		all[name("scalable")] = must[*bloom.Scalable](t)(scalable.New())
		layered := must[*bloom.Window](t)(window.New()) // two generations, of several layers each
		for i := range n {
			layered.AddString("before " + storedKey(i))
		}
		clock = goldenClock()
		all[name("window-layers")] = layered
		excepting := bloom.WithExceptions(filter.Clone())
		excepting.AddString("taken for one of them")
		if err := excepting.ExceptString("taken for one of them"); err != nil {
			t.Fatal(err)
		}
		all[name("exceptions")] = excepting
		cuckoo := must[*bloom.Cuckoo](t)(bloom.CuckooConfig{Keys: n / 4, BucketSize: 3, Growth: 2, Budget: 1 << 20, Secret: config.Secret}.New()).(*bloom.Cuckoo)
		for i := range n / 4 { // layers, removals, and a count of those since it was compacted
			cuckoo.AddString("removed " + storedKey(i))
		}
		for i := range n / 4 {
			cuckoo.RemoveString("removed " + storedKey(i))
		}
		all[name("cuckoo")] = cuckoo
		scalable.Budget = 1 << 20
		growing := must[*bloom.ScalableCounting](t)(scalable.NewCounting()).(*bloom.ScalableCounting)
		for i := range 4 * n { // layers, of which removals drop the first
			growing.AddString("removed " + storedKey(i))
		}
		for i := range 3 * n {
			growing.RemoveString("removed " + storedKey(i))
		}
		all[name("scalablecounting")] = growing
	}
	for _, s := range classic.Schemes() {
		bits, probes := uint64(2048), 7
		switch s {
		case classic.SchemeSHA256MD5, classic.SchemeMurmurFNVJS:
			probes = 2
		case classic.SchemeBloomery:
			bits = 2047
		}
		all["classic-"+s.Name()] = must[*classic.Filter](t)(classic.Config{Keys: n, Bits: bits, Probes: probes, Scheme: s}.New())
	}
	return all
}

func goldenClock() time.Time { return time.Unix(1_800_000_000, 0) }

// TestGolden: each release writes the frozen bytes, and reads them.
func TestGolden(t *testing.T) {
	for name, f := range goldenFilters(t) {
		t.Run(name, func(t *testing.T) {
			for i := range 200 {
				f.AddString(storedKey(i))
			}
			var file bytes.Buffer
			if _, err := f.WriteTo(&file); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "golden", name+".bloom")
			golden, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
				t.Fatalf("%s was missing, and is written: a new kind or scheme?", path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(file.Bytes(), golden) {
				t.Errorf("%s: other bytes are written than the frozen ones", path)
			}
			loaded, err := loadAny(path)
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Close()
			if loaded.NeedsSecret() {
				if err := loaded.SetSecret([]byte("0123456789abcdef")); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 200 {
				if !loaded.ContainsString(storedKey(i)) {
					t.Fatalf("%q is lost", storedKey(i))
				}
			}
			if loaded.ContainsString("taken for one of them") && name[:4] == "exce" {
				t.Error("an exception is lost")
			}
			var again bytes.Buffer
			if _, err := loaded.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), golden) {
				t.Errorf("what is read is written otherwise: %v", err)
			}
		})
	}
}

// loadAny loads a file of any kind, a window by the clock of its making.
func loadAny(path string) (kept, error) {
	if kind, err := bloom.KindOf(path); err == nil && kind == bloom.KindWindow {
		return orError(bloom.LoadWindow(path, goldenClock))
	}
	f, err := anyfile.Load(path)
	if err != nil {
		return nil, err
	}
	return f.(kept), nil
}
