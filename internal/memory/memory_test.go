package memory

import (
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	sizes := []uint64{0, largeWords - 1, largeWords, largeWords + 1, largeWords - 8, largeWords + 64, 3*largeWords + 8, 8 * largeWords}
	for n := uint64(1); n <= 200; n++ { // Go's heap does not align small ones
		sizes = append(sizes, n, 64*n)
	}
	var kept [][]uint64
	for _, n := range sizes {
		words, memory, err := Words(n)
		if err != nil {
			t.Fatalf("Words(%d): %v", n, err)
		}
		if uint64(len(words)) != n {
			t.Fatalf("Words(%d) has %d words", n, len(words))
		}
		if n == 0 {
			continue
		}
		if memory == nil && uint64(cap(words)) != n {
			t.Errorf("Words(%d) has room for %d: append would write past the filter", n, cap(words))
		}
		if offset := blockOffset(words); offset != 0 {
			t.Errorf("Words(%d) begins %d words into a block of memory", n, offset)
		}
		for i, word := range words {
			if word != 0 {
				t.Fatalf("Words(%d): word %d is %#x, want 0", n, i, word)
			}
		}
		for i := range words { // if the next words overlapped these, they would not be zero
			words[i] = math.MaxUint64
		}
		if memory == nil {
			kept = append(kept, words)
			continue
		}
		if n < largeWords {
			t.Errorf("Words(%d) is a mapping, below %d words", n, largeWords)
		}
		for range 2 {
			if err := memory.Close(); err != nil {
				t.Errorf("Words(%d): close: %v", n, err)
			}
		}
	}
	for i, words := range kept { // no two may overlap
		words[0], words[len(words)-1] = uint64(i), uint64(i)
	}
	for i, words := range kept {
		if words[0] != uint64(i) || words[len(words)-1] != uint64(i) {
			t.Errorf("words %d overlap other words", i)
		}
	}
}

func TestNoMapping(t *testing.T) {
	var m *Mapping
	if err := m.Close(); err != nil {
		t.Errorf("Close of nil: %v", err)
	}
}

func TestWordsRefuses(t *testing.T) {
	for _, n := range []uint64{math.MaxInt/8 + 1, math.MaxUint64 / 8, math.MaxUint64} {
		if words, _, err := Words(n); !errors.Is(err, ErrBudget) {
			t.Errorf("Words(%d) = %d words, %v, want ErrBudget", n, len(words), err)
		}
	}
	if runtime.GOOS == "windows" || runtime.GOARCH == "wasm" {
		t.Skip("words come from Go's heap here, which ends the program when there is none")
	}
	if math.MaxInt == math.MaxInt32 {
		t.Skip("the address space is so small that there may well be memory for all of it")
	}
	if words, _, err := Words(math.MaxInt / 8); err == nil || !strings.Contains(err.Error(), "no memory for") {
		t.Errorf("Words(%d) = %d words, %v, want an error", math.MaxInt/8, len(words), err)
	}
}

// kept holds what TestTaken measures.
var kept any

// settledHeap returns the bytes of the heap in use once two collections in a row leave
// the same number: whatever earlier tests dropped has then been freed, and its
// cleanups have run.
func settledHeap() uint64 {
	var stats runtime.MemStats
	for last, n := uint64(0), 0; ; n++ {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		if stats.HeapAlloc == last || n == 100 {
			return stats.HeapAlloc
		}
		last = stats.HeapAlloc
		time.Sleep(time.Duration(n) * time.Millisecond) // for the cleanups
	}
}

// TestTaken compares the predicted size of allocations with the runtime's statistics,
// for every kind of size.
func TestTaken(t *testing.T) {
	const count = 512
	Allocated(1) // finds the size classes, so that this garbage is gone before
	runtime.GC()
	for _, bytes := range []uint64{1, 8, 9, 100, 128, 129, 500, 512, 520, 1024, 1100, 2560, 3700, 9000, 32760, 32768, 32769, 33000, 40960, 100000, 200001} {
		for _, tt := range []struct {
			what  string
			takes uint64
			take  func() any
			least float64 // the share of the prediction that must really be taken
		}{
			{"Allocated", Allocated(bytes), func() any { return make([]byte, bytes) }, 1},
			{"Taken", Taken((bytes + 7) / 8), func() any { words, _, _ := Words((bytes + 7) / 8); return words }, 0.5},
		} {
			var all [count]any
			kept = &all
			before := settledHeap()
			for i := range all {
				all[i] = tt.take()
			}
			after := settledHeap()
			const header = 24 // of each slice, in its interface
			took := (float64(after)-float64(before))/count - header
			if took > float64(tt.takes)+16 || took < tt.least*float64(tt.takes)-16 {
				t.Errorf("%s: %d bytes take %.0f, predicted %d", tt.what, bytes, took, tt.takes)
			}
		}
	}
	page := uint64(os.Getpagesize())
	for _, tt := range []struct{ bytes, want uint64 }{
		{hugePage, hugePage},
		{hugePage + 8, hugePage + page},
		{100 * hugePage, 100 * hugePage},
		{100*hugePage + 8, 101 * hugePage},
		{16*hugePage - hugePage/2, 16 * hugePage},
	} {
		if got := Taken(tt.bytes / 8); hugePage > page && tt.bytes >= 8*largeWords && got != tt.want {
			t.Errorf("%d bytes take %d, want %d", tt.bytes, got, tt.want)
		}
	}
	kept = nil
}

// TestTouch: the words stay as they are, whatever part of the pages they are, and others
// may be setting bits.
func TestTouch(t *testing.T) {
	words, mapping, err := Words(3 * largeWords)
	if err != nil {
		t.Fatal(err)
	}
	defer mapping.Close()
	for i := range words {
		words[i] = uint64(i)
	}
	for _, part := range [][2]int{{0, 0}, {0, 1}, {7, 8}, {100, 612}, {511, 1025}, {512, 1536}, {3, len(words) - 5}, {0, len(words)}} {
		Touch(words[part[0]:part[1]])
	}
	Touch(nil)
	heap := []uint64{1, 2, 3}
	Touch(heap[1:2])
	for i, word := range words {
		if word != uint64(i) {
			t.Fatalf("word %d is now %d", i, word)
		}
	}
	if heap[0] != 1 || heap[1] != 2 || heap[2] != 3 {
		t.Errorf("the words are now %v", heap)
	}
	var stop sync.WaitGroup
	stop.Go(func() {
		for i := range 100_000 {
			atomic.OrUint64(&words[i%(2*pageBytes)], 1<<63)
		}
	})
	for range 100 {
		Touch(words[:2*pageBytes])
	}
	stop.Wait()
	for i, word := range words[:2*pageBytes] {
		if word != uint64(i)|1<<63 {
			t.Fatalf("a bit was lost in word %d: %x", i, word)
		}
	}
}
