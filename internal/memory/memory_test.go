package memory

import (
	"math"
	"runtime"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	sizes := []uint64{0, largeWords - 1, largeWords, largeWords + 1, largeWords - 8, largeWords + 64, 3*largeWords + 8, 8 * largeWords}
	for n := uint64(1); n <= 200; n++ { // small ones begin anywhere in Go's heap
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
			t.Errorf("Words(%d) has room for %d: append would write behind the filter", n, cap(words))
		}
		if offset := blockOffset(words); offset != 0 {
			t.Errorf("Words(%d) begins %d words into a block of memory", n, offset)
		}
		for i, word := range words {
			if word != 0 {
				t.Fatalf("Words(%d): word %d is %#x, want 0", n, i, word)
			}
		}
		for i := range words { // so that the next words, if they lay here too, would not be zero
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
	for i, words := range kept { // nor may two overlap
		words[0], words[len(words)-1] = uint64(i), uint64(i)
	}
	for i, words := range kept {
		if words[0] != uint64(i) || words[len(words)-1] != uint64(i) {
			t.Errorf("words %d lie in other words", i)
		}
	}
}

func TestNoMapping(t *testing.T) {
	var m *Mapping
	if err := m.Close(); err != nil {
		t.Errorf("close of no mapping: %v", err)
	}
}

func TestWordsRefuses(t *testing.T) {
	for _, n := range []uint64{math.MaxInt/8 + 1, math.MaxUint64 / 8, math.MaxUint64} {
		if words, _, err := Words(n); err == nil {
			t.Errorf("Words(%d) = %d words, %v, want an error", n, len(words), err)
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
