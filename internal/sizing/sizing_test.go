package sizing

import "testing"

func TestLeastTrue(t *testing.T) {
	for first := uint64(1); first < 12; first++ {
		for last := first - 1; last < 40; last++ {
			for truth := uint64(0); truth < 42; truth++ {
				want := max(truth, first)
				if want > last {
					want = 0
				}
				if got := leastTrue(first, last, func(i uint64) bool { return i >= truth }); got != want {
					t.Errorf("leastTrue(%d, %d) of i >= %d = %d, want %d", first, last, truth, got, want)
				}
			}
		}
	}
}
