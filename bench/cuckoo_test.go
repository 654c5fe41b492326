package main

import (
	"bytes"
	"testing"
)

// TestCuckoo runs the comparison once with few keys. It fails (in compareRemovers) if a
// filter does not find a key that was added.
func TestCuckoo(t *testing.T) {
	var out bytes.Buffer
	writeCuckoo(&out, options{sizes: []uint64{30_000}, rounds: 1})
	for _, want := range []string{"| 3e4 | Cuckoo, batch |", "| 3e4 | " + linvonName + " |", "| 3e4 | Counting, p = 0.0"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the table has no %q:\n%s", want, &out)
		}
	}
	for _, r := range removers(30_000) {
		compareRemovers(30_000, 1, []*remover{r})
		if per := r.bits() / 30_000; per < 8 || per > 60 || r.rate < 0.002 || r.rate > 0.04 {
			t.Errorf("%s: %.1f bits per key, rate %v", r.name, per, r.rate)
		}
	}
}
