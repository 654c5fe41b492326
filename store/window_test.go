package store

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// addAll adds the keys from first up to but not including last. It returns how many were
// added and how many of them were new.
func addAll(f Filter, first, last int) (taken, added int, err error) {
	keys, isNew := make([][]byte, 0, 1000), make([]bool, 1000)
	for first < last && err == nil {
		keys = keys[:0]
		for ; first < last && len(keys) < cap(keys); first++ {
			keys = append(keys, fmt.Appendf(nil, "key %d", first))
		}
		var n int
		n, err = f.Add(bg, keys, isNew[:len(keys)])
		taken += n
		added += countTrue(isNew[:n])
	}
	return taken, added, err
}

// findStrangers looks up n keys that were never added, and returns how many are found.
func findStrangers(f Filter, n int) (found int) {
	keys, answers := make([][]byte, 1000), make([]bool, 1000)
	for i := 0; i < n; i += len(keys) {
		for j := range keys {
			keys[j] = fmt.Appendf(keys[j][:0], "stranger %d", i+j)
		}
		f.Contains(bg, keys, answers)
		found += countTrue(answers)
	}
	return found
}

// TestWindowBurst: a window that gets all keys of a span at once, its capacity, keeps its
// rate: for the new keys, and for strangers. If it grows, it does so with ten times as
// many keys, too. (Once the rate was 47 times as high, and with growth 1.)
func TestWindowBurst(t *testing.T) {
	const n = 100_000
	for _, rate := range []float64{0.1, 0.01, 0.001, 1e-4, 1e-6} {
		for _, growth := range []uint32{0, 2} {
			l, err := OpenLocal(LocalConfig{seams: seams{idle: true}})
			if err != nil {
				t.Fatal(err)
			}
			f, err := l.Create(bg, "w", Spec{Kind: Window, Capacity: n, Rate: rate, Growth: growth, Span: 24 * time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			keys := n
			if growth != 0 && rate >= 1e-4 {
				keys = 10 * n
			}
			taken, added, err := addAll(f, 0, keys)
			if err != nil || taken != keys {
				t.Fatalf("p %g, growth %d: %d of %d keys were taken: %v", rate, growth, taken, keys, err)
			}
			strangers := int(min(max(100/rate, 2e5), 2e6))
			found := findStrangers(f, strangers)
			within := func(what string, wrong, of int) {
				if most := rate * float64(of); float64(wrong) > most+4*math.Sqrt(most) {
					t.Errorf("p %g, growth %d, %d keys: %d of %d %s", rate, growth, keys, wrong, of, what)
				}
			}
			within("new keys were taken for old ones", keys-added, keys)
			within("strangers were found", found, strangers)
			if r := f.Report(); r.Rate > rate || r.Plan.Rate > rate {
				t.Errorf("p %g, growth %d: the report says %g, planned %g", rate, growth, r.Rate, r.Plan.Rate)
			}
			t.Logf("p %g, growth %d: %d of %d new, rate %.4g in %d layers", rate, growth, added, keys, float64(found)/float64(strangers), len(f.Info().Layers))
			if used, _ := l.Usage(); used < f.Info().Bytes {
				t.Errorf("%d bytes are in use, the window takes %d", used, f.Info().Bytes)
			}
			l.Close()
		}
	}
}

// TestWindowRefuses: a window without growth refuses keys when its newest generation holds
// the capacity, one with growth when the store has no memory for a layer. Both accept
// keys again in the next generation, and keep their rate throughout.
func TestWindowRefuses(t *testing.T) {
	clock := time.Unix(1_000_000_000, 0)
	l, err := OpenLocal(LocalConfig{Memory: 220_000, seams: seams{idle: true, now: func() time.Time { return clock }}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct {
		spec Spec
		want error
		most int // keys that are taken
	}{
		{Spec{Kind: Window, Capacity: 4000, Rate: 0.001, Span: time.Hour}, ErrFull, 4000},
		{Spec{Kind: Window, Capacity: 20_000, Rate: 0.001, Growth: 2, Span: time.Hour}, ErrMemory, 25_000},
	} {
		f, err := l.Create(bg, "w", tt.spec)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 7 {
			taken, added, err := addAll(f, 50_000*turn, 50_000*turn+30_000)
			if !errors.Is(err, tt.want) || added > tt.most || added < 3990 {
				t.Errorf("%+v, turn %d: %d keys were taken, %d new: %v, want %v", tt.spec, turn, taken, added, err, tt.want)
			}
			if n, again, err := addAll(f, 50_000*turn, 50_000*turn+taken); n != taken || again != 0 || err != nil {
				t.Errorf("%+v, turn %d: of %d old keys %d were taken, %d of them as new: %v", tt.spec, turn, taken, n, again, err)
			}
			if r := f.Report(); r.Rate > tt.spec.Rate || r.Overfull() {
				t.Errorf("%+v, turn %d: the rate is %g", tt.spec, turn, r.Rate)
			}
			if used, limit := l.Usage(); used > limit {
				t.Errorf("%d bytes in use, of %d", used, limit)
			}
			clock = clock.Add(15 * time.Minute)
		}
		clock = clock.Add(2 * time.Hour)
		f.Contains(bg, [][]byte{nil}, []bool{false}) // all keys expire
		before := f.Info().Bytes
		if fresh, err := l.Create(bg, "fresh", tt.spec); err != nil || fresh.Info().Bytes != before {
			t.Errorf("%+v: empty again it takes %d bytes, a new one %d: %v", tt.spec, before, fresh.Info().Bytes, err)
		}
		if err := l.Clear(bg); err != nil {
			t.Fatal(err)
		}
		if used, _ := l.Usage(); used != 0 {
			t.Errorf("%+v: %d bytes are in use when it was dropped", tt.spec, used)
		}
		addAll(f, 0, 1) // charged to nobody
		clock = clock.Add(3 * time.Hour)
		f.Contains(bg, [][]byte{nil}, []bool{false})
		if used, _ := l.Usage(); used != 0 {
			t.Errorf("%+v: %d bytes are in use by a window that was dropped", tt.spec, used)
		}
	}
}

// TestWindowAccountsAfterRecovery: layers that a window drops while the log is replayed are
// not charged afterwards. (Once they were released without having been granted, which
// made the accounts of the whole store wrong.)
func TestWindowAccountsAfterRecovery(t *testing.T) {
	clock := time.Unix(1_000_000_000, 0)
	config := LocalConfig{Dir: t.TempDir(), seams: seams{idle: true, now: func() time.Time { return clock }}}
	l, err := OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // recovery visits them in random order
		if _, err := l.Create(bg, fmt.Sprint(i), Spec{Kind: Paired, Capacity: 100_000, Rate: 0.01}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := l.Create(bg, "w", Spec{Kind: Window, Capacity: 20_000, Rate: 0.001, Growth: 2, Span: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	empty := f.Info().Bytes
	if _, _, err := addAll(f, 0, 20_000); err != nil {
		t.Fatal(err)
	}
	if f.Info().Bytes == empty {
		t.Fatal("the window has not grown")
	}
	if err := l.Snapshot(bg); err != nil { // with the layers
		t.Fatal(err)
	}
	clock = clock.Add(3 * time.Hour)
	addAll(f, 20_000, 20_001) // drops them
	if err := l.Commit(bg); err != nil {
		t.Fatal(err)
	}
	before, _ := l.Usage()
	kill(t, l)
	if l, err = OpenLocal(config); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if after, _ := l.Usage(); after != before {
		t.Errorf("%d bytes are in use, %d before", after, before)
	}
	if f, err = l.Open([]byte("w")); err != nil {
		t.Fatal(err)
	}
	if bytes := f.Info().Bytes; bytes != empty {
		t.Errorf("the window takes %d bytes, when it was empty %d", bytes, empty)
	}
	if err := l.Clear(bg); err != nil {
		t.Fatal(err)
	}
	if used, _ := l.Usage(); used != 0 {
		t.Errorf("an empty store takes %d bytes", used)
	}
}
