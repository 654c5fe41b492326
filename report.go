package bloom

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/rate"
)

// Report describes the state of a filter, by its bits rather than its plan.
type Report struct {
	Plan Plan

	// Fill is the share of bits that are set, 0 to 1.
	Fill float64

	// Rate is the false-positive rate now. RateError is its standard error:
	// zero if every block was read, as below 64 MiB; larger filters are sampled.
	Rate, RateError float64

	// Keys is an estimate of the number of different keys added, +Inf when all
	// bits are set. KeysError is its standard error.
	Keys, KeysError float64

	// Added counts the adds that were answered "new". It is lower than Keys by the
	// share of new keys that were false positives; a Union adds the two counts up.
	Added uint64

	// Remaining estimates how many more different keys fit before the planned
	// number is reached.
	Remaining uint64
}

// OneIn is N in a rate of "one in N": 1/Rate, +Inf for an empty filter.
func (r Report) OneIn() float64 { return 1 / r.Rate }

// Full is the estimated number of keys as a share of the planned number: above 1 the
// filter is over-full and its rate above the planned one.
func (r Report) Full() float64 { return r.Keys / float64(r.Plan.Keys) }

// Overfull reports whether the filter holds more keys than planned, by more than the
// estimate's error. It is true if all bits are set, also of a single layer.
func (r Report) Overfull() bool {
	return math.IsInf(r.Keys, 1) || r.Keys-float64(3*r.KeysError) > float64(r.Plan.Keys) // Inf-Inf is no number
}

// String describes it in a line for people: the words may change.
func (r Report) String() string {
	text := fmt.Sprintf("about %.0f of %d planned keys, rate %.3g now, %.3g planned, %.3g%% of the bits set", r.Keys, r.Plan.Keys, r.Rate, r.Plan.Rate, 100*r.Fill)
	if math.IsInf(r.Keys, 1) {
		text = fmt.Sprintf("more keys than can be told, planned %d, rate %.3g now, %.3g planned, all bits set", r.Plan.Keys, r.Rate, r.Plan.Rate)
	}
	if r.Overfull() {
		text += ": over-full"
	}
	return text
}

// sampleBytes is how much of a filter a report reads.
const sampleBytes = 64 << 20

// Added is Report's Added: how many keys were certainly new when they were added. It
// reads no bits.
func (f *Filter) Added() uint64 { return f.added }

// Report measures by the filter's bits, or a sample of its blocks above 64 MiB, how full
// it is and what its rate is now.
func (f *Filter) Report() Report {
	f.mustBeOpen()
	r := sampled(f.plan, func(block uint64) (float64, int) {
		return measureBlock(f.bits.Words[block*kernel.WordsPerBlock:][:kernel.WordsPerBlock], f.plan.Probes/2)
	})
	r.Added = f.added
	f.keepAlive()
	return r
}

// sampled makes a report from measurements of blocks: the rate of a lookup that falls on
// a block, and how many of its bits are set.
func sampled(plan Plan, measure func(block uint64) (found float64, set int)) Report {
	var sample moments
	// A stride through all blocks: they are alike but for chance, as the hash
	// spreads the keys evenly.
	most := sampleBytes * 8 / plan.Layout.geometry().BlockBits
	stride := max((plan.Blocks+most-1)/most, 1)
	for block := uint64(0); block < plan.Blocks; block += stride {
		sample.add(measure(block))
	}
	return sample.report(plan, stride == 1)
}

// moments are those of a sample's blocks.
type moments struct{ rates, sets rate.Moments }

func (m *moments) add(found float64, set int) {
	m.rates.Add(found)
	m.sets.Add(float64(set))
}

// report makes a report of the sample, which may be all blocks.
func (m *moments) report(plan Plan, all bool) Report {
	r := Report{Plan: plan}
	blockBits := float64(plan.Layout.geometry().BlockBits)
	r.Fill = m.sets.Mean() / blockBits
	fillError := 0.
	if !all {
		r.RateError = m.rates.StandardError()
		fillError = m.sets.StandardError() / blockBits
	}
	r.Keys, r.KeysError = rate.Keys(r.Fill, fillError, float64(plan.Bits), float64(plan.Probes))
	r.Rate = min(m.rates.Mean()+float64(r.Keys/(1<<64)), 1) // as for a plan, a key may meet another's hash
	if left := float64(plan.Keys) - r.Keys; left > 0 {
		r.Remaining = uint64(left)
	}
	return r
}

// measureBlock returns the exact rate of a block and how many of its bits are
// set.
func measureBlock(words []uint64, perLine int) (found float64, set int) {
	var lines [kernel.LinesPerBlock]float64
	for line := range lines {
		var lanes [kernel.LanesPerLine]int
		for lane := range lanes {
			lanes[lane] = bits.OnesCount64(words[line*kernel.LanesPerLine+lane])
			set += lanes[lane]
		}
		lines[line] = rate.Line(&lanes, perLine)
	}
	return rate.Block(&lines), set
}
