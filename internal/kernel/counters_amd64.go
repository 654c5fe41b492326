//go:build !purego && !race

package kernel

// This file declares the assembly of counters_amd64.s, whose twin is counters.go.

// step says how a counter moves on: which of its digits change, and what it adds to a
// key's weight.
type step struct {
	delta  [CounterDigits]uint64
	weight uint64 // 1 if it was zero; 1<<32 if it reaches MaxCount
	_      [3]uint64
}

// up has the steps of an add, by the digits that are zero.
var up = func() (steps [1 << CounterDigits]step) {
	for count := range MaxCount {
		s := &steps[MaxCount-count]
		for digit := range s.delta {
			if (count^(count+1))>>digit&1 == 1 {
				s.delta[digit] = ^uint64(0)
			}
		}
		switch count {
		case 0:
			s.weight = 1
		case MaxCount - 1:
			s.weight = 1 << 32
		}
	}
	return steps
}()

//go:noescape
func countersAddAVX2(f *Counters, hashes []uint64, isNew *bool) (reached uint64)

//go:noescape
func countersContainsNearAVX2(f *Counters, hashes []uint64, found *bool)

//go:noescape
func countersContainsBothAVX2(f *Counters, hashes []uint64, found *bool)

//go:noescape
func countersContainsFirstAVX2(f *Counters, hashes []uint64, found *bool)
