package bloom_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"pgregory.net/rapid"
)

// storedKind is what the tests need to know of a kind of filter with a file.
type storedKind struct {
	name string
	make func(t *testing.T, secret []byte) kept
	load func(path string) (kept, error)
	read func(r io.Reader, limitBytes int64) (kept, error)
}

// kept is what all kinds can do.
type kept interface {
	AddString(key string) bool
	ContainsString(key string) bool
	SetSecret(secret []byte) error
	NeedsSecret() bool
	WriteTo(w io.Writer) (int64, error)
	Save(path string) error
	Close() error
}

func must[F kept](t *testing.T) func(f F, err error) kept {
	return func(f F, err error) kept {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// reread writes a filter and reads it again.
func reread[F kept](t rapid.TB, f F, read func(r io.Reader, limitBytes int64) (F, error)) F {
	t.Helper()
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	again, err := read(&file, int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return again
}

func orError[F kept](f F, err error) (kept, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

var storedKinds = []storedKind{
	{
		"Filter",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.Filter](t)(bloom.Config{Keys: 3000, Rate: 0.01, Secret: secret}.New())
		},
		func(path string) (kept, error) { return orError(bloom.Load(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.Read(r, limit)) },
	}, {
		"SplitBlock",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.SplitBlock](t)(bloom.Config{Keys: 3000, Rate: 0.01, Secret: secret}.NewSplitBlock())
		},
		func(path string) (kept, error) { return orError(bloom.LoadSplitBlock(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadSplitBlock(r, limit)) },
	}, {
		"Counting",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.Counting](t)(bloom.Config{Keys: 3000, Rate: 0.01, Secret: secret}.NewCounting())
		},
		func(path string) (kept, error) { return orError(bloom.LoadCounting(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadCounting(r, limit)) },
	}, {
		"Cuckoo",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.Cuckoo](t)(bloom.CuckooConfig{Keys: 500, Growth: 2, Secret: secret}.New())
		},
		func(path string) (kept, error) { return orError(bloom.LoadCuckoo(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadCuckoo(r, limit)) },
	}, {
		"Classic",
		func(t *testing.T, secret []byte) kept {
			return must[*classic.Filter](t)(classic.Config{Keys: 3000, Rate: 0.01, Secret: secret}.New())
		},
		func(path string) (kept, error) { return orError(classic.Load(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(classic.Read(r, limit)) },
	}, {
		"Scalable",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.Scalable](t)(bloom.ScalableConfig{First: 500, Rate: 0.01, Secret: secret}.New())
		},
		func(path string) (kept, error) { return orError(bloom.LoadScalable(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadScalable(r, limit)) },
	}, {
		"ScalableCounting",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.ScalableCounting](t)(bloom.ScalableConfig{First: 500, Rate: 0.01, Secret: secret}.NewCounting())
		},
		func(path string) (kept, error) { return orError(bloom.LoadScalableCounting(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadScalableCounting(r, limit)) },
	}, {
		"Window",
		func(t *testing.T, secret []byte) kept {
			return must[*bloom.Window](t)(bloom.WindowConfig{Keys: 3000, Rate: 0.01, Span: time.Hour, Generations: 2, Secret: secret}.New())
		},
		func(path string) (kept, error) { return orError(bloom.LoadWindow(path, nil)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadWindow(r, limit, nil)) },
	}, {
		"Exceptions",
		func(t *testing.T, secret []byte) kept {
			f, err := bloom.Config{Keys: 3000, Rate: 0.01, Secret: secret}.New()
			if err != nil {
				t.Fatal(err)
			}
			x := bloom.WithExceptions(f)
			for i := range 3 {
				key := fmt.Sprint("excepted ", i)
				f.AddString(key) // stands for a false positive
				if err := x.ExceptString(key); err != nil {
					t.Fatal(err)
				}
			}
			return x
		},
		func(path string) (kept, error) { return orError(bloom.LoadExceptions(path)) },
		func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadExceptions(r, limit)) },
	},
}

func storedKey(i int) string { return fmt.Sprint("key ", i) }

// TestKindsRoundTrip: what was written is read again, to the byte, keyed or not.
func TestKindsRoundTrip(t *testing.T) {
	secret := []byte("0123456789abcdef")
	for _, kind := range storedKinds {
		for _, secret := range [][]byte{nil, secret} {
			t.Run(fmt.Sprintf("%s keyed %v", kind.name, secret != nil), func(t *testing.T) {
				f := kind.make(t, secret)
				defer f.Close()
				for i := range 3000 {
					f.AddString(storedKey(i))
				}
				path := filepath.Join(t.TempDir(), "filter")
				if err := f.Save(path); err != nil {
					t.Fatal(err)
				}
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				loaded, err := kind.load(path)
				if err != nil {
					t.Fatal(err)
				}
				defer loaded.Close()
				if loaded.NeedsSecret() != (secret != nil) {
					t.Errorf("NeedsSecret = %v", loaded.NeedsSecret())
				}
				var again bytes.Buffer
				if n, err := loaded.WriteTo(&again); err != nil || n != int64(len(file)) || !bytes.Equal(again.Bytes(), file) {
					t.Errorf("%d bytes come back as %d others, %v", len(file), n, err)
				}
				if secret != nil {
					if err := loaded.SetSecret([]byte("another secret!!")); !errors.Is(err, bloom.ErrSecret) {
						t.Errorf("another secret: %v, want ErrSecret", err)
					}
					if err := loaded.SetSecret(secret); err != nil {
						t.Fatal(err)
					}
				}
				differ := 0
				for i := range 10_000 {
					found := loaded.ContainsString(storedKey(i))
					if found != f.ContainsString(storedKey(i)) {
						differ++
					}
					if i < 3000 && !found {
						t.Fatalf("%q is lost", storedKey(i))
					}
				}
				if differ > 0 {
					t.Errorf("%d keys are answered otherwise than before", differ)
				}
				loaded.AddString("one more")
				if !loaded.ContainsString("one more") {
					t.Error("a filter that was loaded takes no keys")
				}
				if kind.name == "Exceptions" {
					if f.ContainsString("excepted 1") || loaded.ContainsString("excepted 1") {
						t.Error("an exception is lost")
					}
				}
			})
		}
	}
}

// TestClassicFiles: a file of every numbered scheme, and of a caller's.
func TestClassicFiles(t *testing.T) {
	own, err := classic.NewScheme("thirds", func(at []uint64, key []byte, m uint64) {
		for i := range at {
			at[i] = (uint64(len(key)) + uint64(i)*m/3) % m
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range append(classic.Schemes(), own) {
		f, err := classic.Config{Bits: 1 << 12, Probes: 2, Scheme: scheme}.New()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			f.AddString(storedKey(i))
		}
		path := filepath.Join(t.TempDir(), "filter")
		if err := f.Save(path); err != nil {
			t.Fatal(err)
		}
		loaded, err := classic.Load(path, own)
		if err != nil || !loaded.Equal(f) || loaded.Scheme().Name() != scheme.Name() || loaded.Plan() != f.Plan() {
			t.Errorf("a filter by the scheme %v comes back as %v, %v", scheme, loaded, err)
		}
		if _, err := classic.Load(path); (err != nil) != (scheme.Number() == 0) {
			t.Errorf("the scheme %v, not given again: %v", scheme, err)
		}
	}
}

// TestWindowSurvivesSaveAndLoad: time passes while a window is in a file.
func TestWindowSurvivesSaveAndLoad(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return at }
	w, err := bloom.WindowConfig{Keys: 1000, Rate: 1e-6, Span: 4 * time.Hour, Now: clock}.New()
	if err != nil {
		t.Fatal(err)
	}
	for hour := range 6 {
		w.AddUint64(uint64(hour))
		at = at.Add(time.Hour)
	}
	path := filepath.Join(t.TempDir(), "window")
	if err := w.Save(path); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, 30 * time.Minute, 3 * time.Hour, 100 * time.Hour} {
		saved := at
		loaded, err := bloom.LoadWindow(path, clock)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(wait)
		for hour := range uint64(6) {
			age := wait + time.Duration(6-hour)*time.Hour
			got := loaded.ContainsUint64(hour)
			if got != w.ContainsUint64(hour) {
				t.Errorf("after %v the key of hour %d is %v, before it was saved the opposite", wait, hour, got)
			}
			if age <= 4*time.Hour && !got || age > 5*time.Hour && got {
				t.Errorf("after %v the key of hour %d, of age %v: %v", wait, hour, age, got)
			}
		}
		loaded.AddUint64(99)
		if !loaded.ContainsUint64(99) {
			t.Error("a window that was loaded takes no keys")
		}
		loaded.Close()
		at = saved
		if w, err = bloom.LoadWindow(path, clock); err != nil { // w was asked about the future
			t.Fatal(err)
		}
	}
}

// TestKindsRefuseEachOther: each loader takes its own kind and says of the
// others which one does.
func TestKindsRefuseEachOther(t *testing.T) {
	for _, kind := range storedKinds {
		path := filepath.Join(t.TempDir(), kind.name)
		if err := kind.make(t, nil).Save(path); err != nil {
			t.Fatal(err)
		}
		for _, other := range storedKinds {
			_, err := other.load(path)
			if kind.name == other.name {
				if err != nil {
					t.Errorf("%s: %v", kind.name, err)
				}
				continue
			}
			if !errors.Is(err, bloom.ErrVersion) || !strings.Contains(err.Error(), "Load") {
				t.Errorf("a %s read as a %s: %v, want ErrVersion and what reads it", kind.name, other.name, err)
			}
		}
	}
}

// TestKindsDamaged: a file cut short or changed anywhere is refused, and no
// page that is made to look right makes a reader panic.
func TestKindsDamaged(t *testing.T) {
	for _, kind := range storedKinds {
		var file bytes.Buffer
		if _, err := kind.make(t, nil).WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		whole := file.Bytes()
		try := func(what string, b []byte) {
			t.Helper()
			if _, err := kind.read(bytes.NewReader(b), 1<<30); err == nil {
				t.Errorf("%s: %s is read all the same", kind.name, what)
			}
		}
		for n := 0; n < len(whole); n += 97 {
			try(fmt.Sprint("a file cut at ", n), whole[:n])
		}
		for at := 0; at < len(whole); at += 13 {
			damaged := bytes.Clone(whole)
			damaged[at] ^= 0x10
			try(fmt.Sprint("a file changed at ", at), damaged)
		}
		// Every field of the header and of the state, with checksums that fit.
		for _, page := range []int{0, 4096} {
			for at := 8; at < 200; at++ {
				for _, flip := range []byte{1, 0x80, 0xff} {
					damaged := bytes.Clone(whole)
					damaged[page+at] ^= flip
					sum := crc32.Checksum(damaged[page:page+4092], crc32.MakeTable(crc32.Castagnoli))
					binary.LittleEndian.PutUint32(damaged[page+4092:], sum)
					if f, err := kind.read(bytes.NewReader(damaged), 1<<30); err == nil {
						if f.NeedsSecret() { // another hash
							continue
						}
						f.ContainsString("a") // another seed, k or plan: a filter all the same
						f.AddString("a")
						if !f.ContainsString("a") {
							t.Errorf("%s: with byte %d of page %d changed, an added key is lost", kind.name, at, page)
						}
					}
				}
			}
		}
	}
}

// FuzzReadKinds: whatever the bytes, no reader of any kind panics, and what it
// accepts is written as it was read. The checksums of the pages are put right
// first, so that the checks behind them are met.
func FuzzReadKinds(f *testing.F) {
	for _, kind := range storedKinds {
		var file bytes.Buffer
		if _, err := kind.make(&testing.T{}, nil).WriteTo(&file); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for page := 0; page < 3 && len(file) >= (page+1)*4096; page++ {
			at := file[page*4096:][:4096]
			sum := crc32.Checksum(at[:4092], crc32.MakeTable(crc32.Castagnoli))
			binary.LittleEndian.PutUint32(at[4092:], sum)
			if page == 2 && bytes.Count(at[:4092], []byte{0}) == 4092 {
				clear(at[4092:]) // a page that was never written
			}
		}
		for _, kind := range storedKinds {
			from := bytes.NewReader(file)
			filter, err := kind.read(from, 1<<22)
			if err != nil {
				continue
			}
			if !filter.NeedsSecret() {
				filter.ContainsString("a")
			}
			var again bytes.Buffer
			if _, err := filter.WriteTo(&again); err != nil {
				t.Errorf("%s: %v", kind.name, err)
			}
			if read := file[:len(file)-from.Len()]; len(read) == again.Len() && !bytes.Equal(again.Bytes()[12288:], read[12288:]) {
				t.Errorf("%s: %d bytes come back as others", kind.name, again.Len())
			}
			filter.Close()
		}
	})
}

// edited writes f and returns the file with page 0 and page 1 changed by edit,
// their checksums put right.
func edited(t *testing.T, f kept, edit func(header, state []byte)) *bytes.Reader {
	t.Helper()
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	edit(b[:4096], b[4096:8192])
	for page := range 2 {
		at := b[page*4096:][:4096]
		binary.LittleEndian.PutUint32(at[4092:], crc32.Checksum(at[:4092], crc32.MakeTable(crc32.Castagnoli)))
	}
	return bytes.NewReader(b)
}

// TestKindsImpossible: files that are well formed and mean no filter.
func TestKindsImpossible(t *testing.T) {
	le := binary.LittleEndian
	at := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return at }
	window, err := bloom.WindowConfig{Keys: 100, Rate: 0.01, Span: 4 * time.Hour, Now: clock}.New()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		window.AddString("key")
		at = at.Add(time.Hour)
	}
	scalable, err := bloom.ScalableConfig{First: 100, Rate: 0.01}.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(1000) {
		scalable.AddUint64(i)
	}
	counting := mustCount(t, bloom.Config{Keys: 100, Rate: 0.01})
	cuckoo := mustCuckoo(t, bloom.CuckooConfig{Keys: 100, Growth: 2})
	for i := range uint64(300) {
		cuckoo.AddUint64(i)
	}
	for _, tt := range []struct {
		name string
		f    kept
		edit func(header, state []byte)
		read func(r io.Reader, limitBytes int64) (kept, error)
	}{
		{"generations closer than a step", window, func(_, state []byte) {
			for i := range 5 {
				le.PutUint64(state[64+64*i+56:], 1_700_000_000_000_000_000+uint64(i))
			}
		}, readWindow},
		{"a generation before all time", window, func(_, state []byte) { le.PutUint64(state[64+56:], 1<<63) }, readWindow},
		{"generations unlike each other", window, func(_, state []byte) { le.PutUint64(state[64+32:], 77) }, readWindow},
		{"a count that the generations do not add up to", window, func(_, state []byte) { le.PutUint64(state[16:], 9) }, readWindow},
		{"layers above their limit", scalable, func(header, _ []byte) { le.PutUint64(header[56:], 1) }, readScalable},
		{"growth 1", scalable, func(header, _ []byte) { le.PutUint64(header[48:], 1) }, readScalable},
		{"more keys than fit the buckets", cuckoo, func(header, _ []byte) { le.PutUint64(header[32:], 1000) }, readCuckoo},
		{"no iterations", cuckoo, func(header, _ []byte) { le.PutUint16(header[48:], 0) }, readCuckoo},
		{"growth 3", cuckoo, func(header, _ []byte) { le.PutUint32(header[52:], 3) }, readCuckoo},
		{"growth 65,536", cuckoo, func(header, _ []byte) { le.PutUint32(header[52:], 1<<16) }, readCuckoo},
		{"parameters that mean nothing", cuckoo, func(header, _ []byte) { header[50] = 1 }, readCuckoo},
		{"layers that do not grow", cuckoo, func(header, _ []byte) { le.PutUint32(header[52:], 0) }, readCuckoo},
		{"layers that grow otherwise", cuckoo, func(header, _ []byte) { le.PutUint32(header[52:], 4) }, readCuckoo},
		{"slots above their limit", cuckoo, func(header, _ []byte) { le.PutUint64(header[56:], 1) }, readCuckoo},
		{"another number of slots", cuckoo, func(_, state []byte) { le.PutUint64(state[64+32:], 7) }, readCuckoo},
		{"a rate of a layer", cuckoo, func(_, state []byte) { le.PutUint64(state[64+40:], 0x3f80000000000000) }, readCuckoo},
		{"a fingerprint less", cuckoo, func(_, state []byte) {
			le.PutUint64(state[16:], le.Uint64(state[16:])-1)
			le.PutUint64(state[64+48:], le.Uint64(state[64+48:])-1)
		}, readCuckoo},
		{"metadata longer than their page", counting, func(header, _ []byte) {
			copy(header[64:], "\x01\x00\x01\x00a\xff\xffb")
		}, func(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadCounting(r, limit)) }},
	} {
		if _, err := tt.read(edited(t, tt.f, tt.edit), 1<<30); !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", tt.name, err)
		}
		if _, err := tt.read(edited(t, tt.f, func(_, _ []byte) {}), 1<<30); err != nil {
			t.Errorf("%s, without that: %v", tt.name, err)
		}
	}
}

func readWindow(r io.Reader, limit int64) (kept, error) {
	return orError(bloom.ReadWindow(r, limit, nil))
}
func readCuckoo(r io.Reader, limit int64) (kept, error) { return orError(bloom.ReadCuckoo(r, limit)) }
func readScalable(r io.Reader, limit int64) (kept, error) {
	return orError(bloom.ReadScalable(r, limit))
}

// TestScalableFileAllocatesNothing: a file that says it is over-full and began
// with a billion keys gets no next layer for that.
func TestScalableFileAllocatesNothing(t *testing.T) {
	f, err := bloom.ScalableConfig{First: 100, Rate: 0.01}.New()
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	file := edited(t, f, func(header, state []byte) {
		le.PutUint64(header[32:], 1<<30)
		le.PutUint64(state[16:], 1<<40)
		le.PutUint64(state[64+48:], 1<<40)
	})
	loaded, err := bloom.ReadScalable(file, 1<<20)
	if err == nil && loaded.Plan().Bytes() > 1<<20 {
		t.Errorf("a file of some kilobytes made %d bytes of filter", loaded.Plan().Bytes())
	}
}

// TestClosedIsNotSaved: what was closed cannot replace a good file.
func TestClosedIsNotSaved(t *testing.T) {
	sync, err := bloom.NewShared(100, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	closed := map[string]interface {
		Close() error
		Save(path string) error
	}{"Shared": sync}
	for _, kind := range storedKinds {
		closed[kind.name] = kind.make(t, nil)
	}
	for name, f := range closed {
		path := filepath.Join(t.TempDir(), "filter")
		if err := f.Save(path); err != nil {
			t.Fatal(err)
		}
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if message := panicOf(func() { f.Save(path) }); !strings.Contains(message, "closed") {
			t.Errorf("Save of a closed %s panics with %q", name, message)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
			t.Errorf("a closed %s was saved over a good file", name)
		}
	}
}

// TestLockedExceptions: without the secret, what goes by hash is refused rather
// than answered wrongly, and after it the list is what it was.
func TestLockedExceptions(t *testing.T) {
	secret := []byte("0123456789abcdef")
	kind := storedKinds[len(storedKinds)-1]
	path := filepath.Join(t.TempDir(), "filter")
	if err := kind.make(t, secret).Save(path); err != nil {
		t.Fatal(err)
	}
	x, err := bloom.LoadExceptions(path)
	if err != nil {
		t.Fatal(err)
	}
	y, err := bloom.LoadExceptions(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(){
		"AddHash":        func() { x.AddHash(1) },
		"ContainsHash":   func() { x.ContainsHash(1) },
		"AddHashes":      func() { x.AddHashes([]uint64{1}, nil) },
		"ContainsHashes": func() { x.ContainsHashes([]uint64{1}, nil) },
		"Union":          func() { x.Union(y) },
		"Add":            func() { x.AddString("excepted 1") },
	} {
		if message := panicOf(call); !strings.Contains(message, "SetSecret") {
			t.Errorf("%s without the secret panics with %q", name, message)
		}
	}
	if err := x.SetSecret(secret); err != nil {
		t.Fatal(err)
	}
	if x.ContainsString("excepted 1") || !x.AddString("excepted 1") || !x.ContainsString("excepted 1") || x.ContainsString("excepted 2") {
		t.Error("after the secret was given the exceptions are not what they were")
	}
}
