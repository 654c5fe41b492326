package redisbloom

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bloomery/bloom/internal/elementary"
)

// The rate of a layer. A stranger is a key that was never added. A key's k positions
// are (a + i*b mod 2^64) mod m. If they were spread evenly, a stranger would find all
// of them set with probability f^k, where f is the share of bits that are set. But
// for some b positions coincide: if m is a power of two and divides b, all k are the
// same, and the stranger is found with probability f. That happens to one key in m, so
// the rate is at least f/m: 16 keys in 512 bits, planned for a rate of 1e-6, have 2e-3.
// In small layers a stranger may also share most of its positions with a single key.
//
// The result depends on m and on the bits in no simple way. So some strangers are
// tried for each stride b mod m where positions coincide, or for every stride if m is
// small; for the other strides f^k is right.

const (
	// allStrides is the most bits of a layer for which every stride is tried.
	allStrides = 2048

	// nearPositions is how many steps apart two positions may be to be checked for
	// coincidence. If positions coincide only further apart, there are that many
	// different ones between them, so such a stranger is hardly ever found.
	nearPositions = 12

	// trials is the number of strangers for all strides together. They take about a
	// millisecond, and give the rate to about a sixth.
	trials = 1 << 16
)

// rateNow returns the rate of a layer, of whose bits the share fill is set (0 to 1),
// and its standard error.
func (l *layer) rateNow(fill float64) (rate, standardError float64) {
	m, probes := float64(l.bits.Bits), uint64(l.bits.Probes)
	even := elementary.Power(fill, probes)
	// There are at most as many strides as the sum of (d+1) d over the distances d.
	if most := float64(nearPositions * nearPositions * nearPositions); most*fill <= even*m/1000 {
		return even, 0
	}
	strides := l.strides()
	if len(strides) == 0 { // of one probe
		return even, 0
	}
	tries := trials/len(strides) + 1
	r := rand.New(rand.NewPCG(l.bits.Bits, probes)) // the same report each time
	found, variance := 0., 0.
	for _, stride := range strides {
		times := 0
		for range tries {
			b := stride + l.bits.Bits*r.Uint64N((math.MaxUint64-stride)/l.bits.Bits+1)
			if l.bits.Contains(r.Uint64(), b) {
				times++
			}
		}
		share := float64(times) / float64(tries)
		found += share
		variance += float64(share * (1 - share) / float64(tries))
	}
	rate = float64(even*(1-float64(len(strides))/m)) + found/m
	once := 1 / float64(tries) // finding one stranger cannot be told from finding none
	return max(rate, even), elementary.Hypot(math.Sqrt(variance), once) / m
}

// strides returns the b mod m for which positions at most nearPositions apart may
// coincide, and for a small layer all b mod m.
//
// Between two positions d apart, a + i*b wraps at 2^64 w times, 0 to d, and each wrap
// subtracts c = 2^64 mod m. So they coincide where d*b = w*c mod m.
func (l *layer) strides() (found []uint64) {
	m := l.bits.Bits
	if m <= allStrides {
		for stride := range m {
			found = append(found, stride)
		}
		return found
	}
	c := (math.MaxUint64%m + 1) % m
	for d := uint64(1); d <= nearPositions && d < uint64(l.bits.Probes); d++ {
		for w := range d + 1 {
			for j := range d { // d*b is less than d*m
				if at := w*c%m + j*m; at%d == 0 {
					found = append(found, at/d)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
