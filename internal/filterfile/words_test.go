package filterfile

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/bloomery/bloom/internal/memory"
)

// TestFilePartsTwin: the safe twin of the view of memory yields the same bytes.
func TestFilePartsTwin(t *testing.T) {
	if !memory.LittleEndian {
		t.Skip("the twin is all there is")
	}
	words := make([]uint64, SpanBytes/8+3)
	for i := range words {
		words[i] = rand.Uint64()
	}
	collect := func() (all []byte) {
		for part := range fileParts(words) {
			all = append(all, part...)
		}
		return all
	}
	viewed := collect()
	memory.LittleEndian = false
	defer func() { memory.LittleEndian = true }()
	if !bytes.Equal(viewed, collect()) {
		t.Error("the two ways to write words differ")
	}
	for i, word := range memory.FileWords(viewed) {
		if word != words[i] {
			t.Fatalf("FileWords: word %d is %#x, want %#x", i, word, words[i])
		}
	}
	for range fileParts(words) { // a consumer that stops early
		break
	}
}
