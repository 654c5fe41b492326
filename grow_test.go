package bloom_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/bloomery/bloom"
)

// TestGrowing: a full Filter continues as a Scalable, keeps its keys, and stays
// under five times its rate.
func TestGrowing(t *testing.T) {
	for _, secret := range [][]byte{nil, []byte("0123456789abcdef")} {
		f, err := bloom.Config{Keys: 5000, Rate: 0.002, Secret: secret}.New()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5000 {
			f.AddString(storedKey(i))
		}
		s, err := f.Growing(0)
		if err != nil {
			t.Fatal(err)
		}
		for i := 5000; i < 50000; i++ {
			s.AddString(storedKey(i))
		}
		for i := range 50000 {
			if !s.ContainsString(storedKey(i)) {
				t.Fatalf("lost %q", storedKey(i))
			}
		}
		r := s.Report()
		if len(s.Layers()) < 3 || r.Overfull() || s.Err() != nil || r.Rate > 0.01 || r.Rate < 0.001 {
			t.Errorf("%d layers, Err %v, %+v", len(s.Layers()), s.Err(), r)
		}
		found := 0
		for i := range 100000 {
			if s.ContainsString(fmt.Sprint("stranger ", i)) {
				found++
			}
		}
		if found > 1150 { // 1,000 expected at most; 4 sigma is 126
			t.Errorf("%d of 100000 strangers found, rate should be below 0.01", found)
		}
		again := reread(t, s, bloom.ReadScalable)
		if secret != nil {
			if err := again.SetSecret(secret); err != nil {
				t.Fatal(err)
			}
		}
		if !again.ContainsString(storedKey(49999)) || len(again.Layers()) < 3 {
			t.Error("the file has lost keys or layers")
		}
	}
}

func TestGrowingRefuses(t *testing.T) {
	make := func(p float64) *bloom.Filter {
		f, err := bloom.New(100, p)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, test := range map[string]struct {
		f      *bloom.Filter
		growth int
		want   error
	}{
		"growth": {make(0.01), 1, bloom.ErrConfig},
	} {
		if _, err := test.f.Growing(test.growth); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		test.f.AddString("still alive")
	}
	high, err := bloom.Config{Bits: 4096, Probes: 2, Keys: 3000}.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := high.Growing(2); !errors.Is(err, bloom.ErrRate) {
		t.Errorf("rate: %v", err)
	}
	var file bytes.Buffer
	if _, err := high.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
}

// TestGrowingFew: a filter planned for a handful of keys grows at the rate that was
// asked for, not at that of a block with hardly a key in it.
func TestGrowingFew(t *testing.T) {
	for _, n := range []uint64{1, 10, 100} {
		f, err := bloom.New(n, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Growing(0)
		if err != nil {
			t.Fatal(err)
		}
		const keys = 200_000
		for i := range uint64(keys) {
			s.AddUint64(i)
		}
		r := s.Report()
		if perKey := r.Plan.BitsPerKey(); perKey > 20 { // it was 52 after one key
			t.Errorf("planned for %d keys: %.1f bits per key", n, perKey)
		}
		if want := s.Config().Rate; r.Rate > want || want < 0.01 || want > 0.012 || s.Err() != nil {
			t.Errorf("planned for %d keys: rate %.3g, Config().Rate %.3g, Err %v", n, r.Rate, want, s.Err())
		}
	}
}
