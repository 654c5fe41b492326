package redisbloom

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bloomery/bloom/internal/elementary"
)

// The rate of a layer. A key's k positions are (a + i*b mod 2^64) mod m, and were
// they spread evenly, a stranger would find them all set with probability f^k,
// where f is the share of bits that are set. But b may be such that positions
// coincide: if m is a power of two and divides b, all k are one, and the stranger
// is found with probability f. That happens to one key in m, so the rate is f/m at
// least, and 16 keys for which a rate of 1e-6 was asked in 512 bits have 2e-3. In
// small layers, too, a stranger's positions may be most of those of one key.
//
// What comes of it depends on m, and on the bits, in no simple way. So strangers
// are tried out: of the strides b mod m where positions coincide, or of all where m
// is small, so many each; for the others f^k is right.

const (
	// allStrides is up to where a layer has so few bits that every stride is tried.
	allStrides = 2048

	// nearPositions is how near to each other positions are that are looked at
	// whether they coincide. For those that are further apart, there are that many
	// different ones between, so such a stranger is hardly ever found.
	nearPositions = 12

	// trials is the number of strangers, of all strides together: a millisecond
	// is enough for them. Then the rate is good to about a sixth.
	trials = 1 << 16
)

// rateNow is the rate of a layer of which so many bits are set, 0 to 1, and its
// standard error.
func (l *layer) rateNow(fill float64) (rate, standardError float64) {
	m, probes := float64(l.bits.Bits), uint64(l.bits.Probes)
	even := elementary.Power(fill, probes)
	// The sum of (d+1) d over the distances d is the most strides there may be.
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
	once := 1 / float64(tries) // to find one stranger and to find none is not to be told apart
	return max(rate, even), elementary.Hypot(math.Sqrt(variance), once) / m
}

// strides are the b mod m for which positions may coincide that are nearPositions
// apart or less, and in a small layer all there are.
//
// Between two positions d apart, a + i*b passes 2^64 w times, 0 to d, each of which
// takes c = 2^64 mod m away. So they coincide where d*b = w*c mod m.
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
