package store

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/bloomery/bloom/redisbloom"
)

// taken returns what do adds to Go's heap and to the accounts of a new store.
func taken(t *testing.T, do func(l *Local)) (heap, accounts float64) {
	t.Helper()
	l, err := OpenLocal(LocalConfig{seams: seams{idle: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // twice, to empty pools
	runtime.ReadMemStats(&before)
	do(l)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	used, _ := l.Usage()
	runtime.KeepAlive(l)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc), float64(used)
}

// TestAccountsAreTrue compares the accounts with the heap, for every kind at small
// sizes, where everything except the bits counts most. If they differed, the memory
// limit would not hold.
func TestAccountsAreTrue(t *testing.T) {
	const count = 1000
	type spec struct {
		Spec
		adds int
	}
	specs := map[string]spec{"string": {}, "string, expiring": {Spec{Expires: time.Now().Add(time.Hour)}, 0}}
	for _, capacity := range []uint64{1, 100, 1000, 3000} {
		for name, s := range map[string]Spec{
			"redisbloom":         {Kind: RedisBloom, Rate: 0.01},
			"redisbloom growing": {Kind: RedisBloom, Rate: 0.01, Growth: 2},
			"paired":             {Kind: Paired, Rate: 0.01},
			"paired growing":     {Kind: Paired, Rate: 0.01, Growth: 2},
			"window":             {Kind: Window, Rate: 0.01, Span: time.Hour},
			"counting":           {Kind: Counting, Rate: 0.01},
			"counting growing":   {Kind: Counting, Rate: 0.01, Growth: 2},
			"cuckoo":             {Kind: Cuckoo},
			"cuckoo growing":     {Kind: Cuckoo, Growth: 1},
		} {
			s.Capacity = capacity
			specs[fmt.Sprint(name, " ", capacity)] = spec{s, 0}
			if s.Growth != 0 && capacity <= 100 {
				specs[fmt.Sprint(name, " ", capacity, ", grown")] = spec{s, int(3 * capacity)}
			}
		}
	}
	for name, s := range specs {
		n := count
		if s.Kind == Window {
			n /= 8
		}
		heap, accounts := taken(t, func(l *Local) {
			for i := range n {
				key := fmt.Sprintf("a name of some bytes %d", i)
				if s.Kind == None {
					if err := l.Set(bg, key, make([]byte, 100+i%1000)); err != nil {
						t.Fatal(err)
					}
					if !s.Expires.IsZero() {
						l.Expire(bg, key, s.Expires)
					}
					continue
				}
				f, err := l.Create(bg, key, s.Spec)
				if err != nil {
					t.Fatal(err)
				}
				for j := range s.adds {
					if _, err := f.Add(bg, [][]byte{fmt.Append(nil, j)}, make([]bool, 1)); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
		t.Logf("%-28s %8.0f bytes of heap, accounts %8.0f: %.2f", name, heap/float64(n), accounts/float64(n), heap/accounts)
		if heap > 1.05*accounts || heap < 0.6*accounts {
			t.Errorf("%s: %.0f bytes of heap each, and the accounts say %.0f", name, heap/float64(n), accounts/float64(n))
		}
	}
}

// TestLayersAreCharged: a chain of many small layers is charged for the layers, not only
// for their bits.
func TestLayersAreCharged(t *testing.T) {
	most := 1.05
	if RaceDetector {
		most = 1.1 // it gives each of the tiniest objects 16 bytes
	}
	c, err := redisbloom.New(redisbloom.Config{Keys: 1, Rate: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	// A header of a thousand links of 8 bits, each a copy of the first.
	const links, linkAt, linkBytes = 1000, 20, 53
	header := c.Header()
	binary.LittleEndian.PutUint32(header[8:], links)
	link := header[linkAt:][:linkBytes]
	binary.LittleEndian.PutUint64(link, 1)
	binary.LittleEndian.PutUint64(link[8:], 8)
	for range links - 1 {
		header = append(header, link...)
	}
	for name, do := range map[string]func(l *Local){
		"header of 1,000 links": func(l *Local) {
			for i := range 100 {
				if _, err := l.Load(bg, fmt.Sprint(i), header); err != nil {
					t.Fatal(err)
				}
			}
		},
		"expansion 1": func(l *Local) {
			for i := range 20 {
				f, err := l.Create(bg, fmt.Sprint(i), Spec{Kind: RedisBloom, Capacity: 1, Rate: 0.25, Growth: 1})
				if err != nil {
					t.Fatal(err)
				}
				for j := range 300 {
					if _, err := f.Add(bg, [][]byte{fmt.Append(nil, j)}, make([]bool, 1)); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	} {
		heap, accounts := taken(t, do)
		t.Logf("%-28s %8.0f bytes of heap, accounts %8.0f: %.2f", name, heap, accounts, heap/accounts)
		if heap > most*accounts || heap < 0.6*accounts {
			t.Errorf("%s: %.0f bytes of heap, and the accounts say %.0f", name, heap, accounts)
		}
	}
}
