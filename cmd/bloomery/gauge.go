package main

import (
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
)

// fullness lists the levels worth a message: nearly full, full, and each doubling
// beyond that, as the rate rises steeply.
var fullness = []float64{0.9, 1, 2, 4, 8}

// reported is a filter that can report how full it is.
type reported interface {
	Plan() bloom.Plan
	Report() bloom.Report
}

// A gauge watches a filter fill up. Reading the bits at every batch would cost
// more than adding, so it looks again only when enough keys were new that the
// next level may be near.
type gauge struct {
	filter reported
	levels []float64 // still to come
	added  uint64    // keys answered "new" so far
	lookAt uint64

	nearly *bloom.Report // of a filter that was nearly full when it was opened; nil: told
}

// newGauge watches a filter from empty. known says that the number of keys was
// counted beforehand, so that nearly full is to be expected.
func newGauge(f reported, known bool) *gauge {
	g := &gauge{filter: f, levels: fullness}
	if known {
		g.levels = fullness[1:]
	}
	if begun, ok := f.(interface{ Added() uint64 }); ok && begun.Added() > 0 {
		g.begin(begun.Added())
		return g
	}
	g.lookAt = g.before(0)
	return g
}

// begin continues with a filter that has counted its keys. Up to the planned number
// it trusts the count, plus the keys mistaken for old ones, as reading the bits of a
// file costs more than a short run. Beyond that it looks at once.
func (g *gauge) begin(added uint64) {
	plan := g.filter.Plan()
	keys := float64(added) + mistaken(plan, 0, added, math.MaxUint64)
	g.added, g.lookAt = added, added
	if keys >= 0.999*float64(plan.Keys) {
		return
	}
	if g.levels[0] < 1 && keys > g.levels[0]*float64(plan.Keys) {
		g.levels = g.levels[1:]
		g.nearly = &bloom.Report{Plan: plan, Keys: keys, Rate: plan.RateAt(uint64(keys))}
	}
	g.lookAt += g.before(keys)
}

// add counts new keys. It returns the highest level that they have passed, or zero,
// and the filter's report there.
func (g *gauge) add(isNew int) (level float64, r bloom.Report) {
	g.added += uint64(isNew)
	if g.nearly != nil {
		r, g.nearly = *g.nearly, nil
		return fullness[0], r
	}
	if g.added < g.lookAt || len(g.levels) == 0 {
		return 0, r
	}
	r = g.filter.Report()
	for len(g.levels) > 0 && passed(g.levels[0], r) {
		level, g.levels = g.levels[0], g.levels[1:]
	}
	if len(g.levels) > 0 {
		g.lookAt = g.added + g.before(r.Keys)
	}
	return level, r
}

// left is how many more new keys may be added before it looks again.
func (g *gauge) left() int64 {
	if len(g.levels) == 0 {
		return math.MaxInt64
	}
	return int64(g.lookAt - g.added)
}

// passed reports whether the filter has reached the level. For "nearly full" the
// estimate suffices; from "full" on it must be beyond its error, as it is an
// accusation. When every bit is set the estimate and its error are both infinite,
// and no level is left to pass.
func passed(level float64, r bloom.Report) bool {
	if math.IsInf(r.Keys, 1) {
		return true
	}
	keys := r.Keys
	if level >= 1 {
		keys -= 3 * r.KeysError
	}
	return keys > level*float64(r.Plan.Keys)
}

// before is the least number of new keys after which a filter with the given number
// of keys may reach the next level. Some keys will be mistaken for old ones, the
// more the fuller the filter is.
func (g *gauge) before(keys float64) uint64 {
	plan := g.filter.Plan()
	at := g.levels[0] * float64(plan.Keys)
	step := float64(plan.Keys)/1000 + 1 // so that many looks at one level cannot add up
	return uint64(max((at-keys)*(1-plan.RateAt(uint64(at))), step))
}

// cut cuts off the keys that may be added before the gauge, which may be nil, must
// look again: a thousand keys at once would fill a small filter many times over.
func (g *gauge) cut(keys [][]byte) (now, later [][]byte) {
	n := len(keys)
	if g != nil {
		n = int(min(int64(n), max(g.left(), 1)))
	}
	return keys[:n], keys[n:]
}

// resumeGauge watches a filter that has keys already. It returns the highest
// level that it has passed.
func resumeGauge(f reported) (g *gauge, level float64, r bloom.Report) {
	g = &gauge{filter: f, levels: fullness}
	r = f.Report()
	for len(g.levels) > 0 && passed(g.levels[0], r) {
		level, g.levels = g.levels[0], g.levels[1:]
	}
	if len(g.levels) > 0 {
		g.lookAt = g.before(r.Keys)
	}
	return g, level, r
}

// mistaken is the expected number of new keys that were mistaken for old ones, when
// a filter of this plan held had keys, and isNew of the lines were answered "new".
// Mistaken keys are in the filter all the same, so it is the x that solves
// x = the integral of the rate from had to had + isNew + x.
func mistaken(plan bloom.Plan, had, isNew, lines uint64) (x float64) {
	for range 20 {
		was := x
		x = min(integral(plan, float64(had), float64(isNew)+x), float64(lines-isNew))
		if x-was <= 0.001*x {
			break
		}
	}
	return x
}

// integral is that of the rate over n keys, the first of which comes after had, by
// Simpson's rule.
func integral(plan bloom.Plan, had, n float64) float64 {
	const pieces = 32 // even
	at := func(i int) float64 { return plan.RateAt(uint64(had + n*float64(i)/pieces)) }
	sum := at(0) + at(pieces)
	for i := 1; i < pieces; i++ {
		sum += float64(2+2*(i%2)) * at(i)
	}
	return sum * n / pieces / 3
}

// mostIntegrated is the most probes for which mistaken is computed: the rate of a
// small filter with many probes takes long.
const mostIntegrated = 32

// mistakenBy is mistaken for a filter of any kind. For one that consists of several
// filters, or has many probes, only the current rate is known, and it was lower
// before.
func mistakenBy(f *anyfile.File, before bloom.Report, isNew, lines uint64) float64 {
	if grows(f.Filter) || before.Plan.Probes > mostIntegrated {
		return f.Report().Rate * float64(isNew)
	}
	return mistaken(before.Plan, uint64(min(before.Keys, human.MaxCount)), isNew, lines)
}
