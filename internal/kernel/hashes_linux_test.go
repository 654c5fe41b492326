package kernel

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHashesAtPageEnds hashes keys that begin or end at a page that cannot be read, at
// every alignment: a hash that looks past a key crashes the test.
func TestHashesAtPageEnds(t *testing.T) {
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	random := rand.New(rand.NewPCG(31, 4))
	data := memory[page:][:page:page]
	copy(data, randomBytes(random, page))
	for _, guard := range [][]byte{memory[:page], memory[2*page:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	var atBegin, atEnd [][]byte
	for n := range 301 {
		atBegin = append(atBegin, data[:n:n])
		atEnd = append(atEnd, data[page-n:])
	}
	shifted := make([][]byte, len(atEnd))
	onEachPath(t, func(t *testing.T) {
		for _, h := range hashesToTest(random) {
			h.check(t, atBegin)
			h.check(t, atEnd)
			for i := range atEnd { // runs of one length, which a batch may treat together
				for j := range 9 {
					shifted[j] = atEnd[i]
				}
				h.check(t, shifted[:9])
			}
			for distance := range 64 { // from either end
				for i, key := range atEnd {
					shifted[i] = data[max(page-distance-len(key), 0):][:len(key):len(key)]
				}
				h.check(t, shifted)
				for i, key := range atBegin {
					shifted[i] = data[distance:][:len(key):len(key)]
				}
				h.check(t, shifted)
			}
		}
		f, twin := newPaired(3, 4), newPaired(3, 4)
		for n := range MaxXXH3 + 1 {
			compareKeys(t, f, twin, atBegin[n], 1)
			compareKeys(t, f, twin, atEnd[n], 1)
		}
	})
}
