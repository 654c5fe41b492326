package main

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom"
)

// What a filter says about itself, in words and as JSON.

// A condition is what a filter says about itself, and whether anybody planned it.
type condition struct {
	bloom.Report

	// unplanned: the file says neither n nor p. The plan is then only what fits
	// the bits, and no filter is over-full by it.
	unplanned bool
}

// over reports whether the filter holds more keys than somebody planned.
func (c condition) over() bool { return !c.unplanned && c.Overfull() }

// condition is that of the file's filter.
func (f *filterFile) condition() condition { return condition{f.Report(), f.unplanned()} }

// unplanned reports whether the file says neither n nor p. A file of ours says
// both; but those of a filter that came from such a file are what half of its bits
// set would be.
func (f *filterFile) unplanned() bool {
	if f.foreign != nil {
		return f.foreign.Unplanned
	}
	plan := f.Plan()
	switch k := f.Filter.(type) {
	case *bloom.Classic:
		return !k.Scheme().TakesHashes() && plan.Keys == halfFull(plan)
	case *bloom.SplitBlock:
		return k.HashIdentity().Algorithm == bloom.XXH64 && plan.Keys == halfFull(plan)
	}
	return false
}

// halfFull is how many keys set half of the bits: ln 2 m/k.
func halfFull(p bloom.Plan) uint64 {
	return max(uint64(float64(p.Bits)*math.Ln2/float64(p.Probes)), 1)
}

// state is a filter's fullness in one line.
func state(c condition) string {
	if c.unplanned {
		return fmt.Sprintf("%s of the bits set (%s), about %s keys, false-positive rate now %s; its n and p are not known",
			percent(c.Fill), binarySize(c.Plan.Bytes()), round(c.Keys), oneIn(c.Rate))
	}
	return fmt.Sprintf("%s full (%s), false-positive rate now %s, planned %s for %s",
		full(c.Report), binarySize(c.Plan.Bytes()), oneIn(c.Rate), oneIn(c.Plan.Rate), count(c.Plan.Keys, "key"))
}

// full is the share of the planned keys. Above 100% it is an accusation, and so
// must be beyond the estimate's error: two keys of two may look like 112%.
func full(r bloom.Report) string {
	share := r.Full()
	if !r.Overfull() {
		share = min(share, 1)
	}
	return percent(share)
}

// seenBefore tells of the lines that were not new. Some of them may have been: a
// filter takes new keys for old ones at its rate, and who reads "repeats" would look
// for them in the input.
func seenBefore(lines uint64, mistaken float64) string {
	text := commas(lines) + " seen before"
	switch {
	case lines == 0 || mistaken < 0.01:
		return text
	case mistaken < 10:
		return text + fmt.Sprintf(", or taken for it (about %.2g at this rate)", mistaken)
	}
	return text + fmt.Sprintf(", or taken for it (about %s at this rate)", round(mistaken))
}

// mistaken is how many new keys are expected to have been taken for old ones when a
// filter of this plan had keys, and so many lines came of which isNew were
// answered "new". They are in the filter all the same, so it is the x that solves
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

// mostIntegrated is the most probes of a filter for which mistaken is worked out:
// the rate of small ones with many takes long.
const mostIntegrated = 32

// mistakenBy is mistaken for a filter of any kind: of those that consist of several
// filters, or have many probes, only the rate is known that they have now, and it
// was lower before.
func (f *filterFile) mistakenBy(before bloom.Report, isNew, lines uint64) float64 {
	if grows(f.Filter) || before.Plan.Probes > mostIntegrated {
		return f.Report().Rate * float64(isNew)
	}
	return mistaken(before.Plan, uint64(min(before.Keys, mostCount)), isNew, lines)
}

func nearlyFull(r bloom.Report) string {
	return fmt.Sprintf("the filter is %s full: about %s of %s planned keys, false-positive rate now %s (planned %s)",
		full(r), round(r.Keys), commas(r.Plan.Keys), oneIn(r.Rate), oneIn(r.Plan.Rate))
}

func overfull(r bloom.Report) string {
	keys := "more keys than it can tell"
	if finite(r.Keys) != nil {
		keys = "about " + round(r.Keys) + " keys"
	}
	return fmt.Sprintf("the filter is over-full: %s, planned for %s, false-positive rate now %s (planned %s)",
		keys, commas(r.Plan.Keys), oneIn(r.Rate), oneIn(r.Plan.Rate))
}

// filterJSON is the state of a filter, as build, dedupe and info print it.
type filterJSON struct {
	Keys          *uint64  `json:"keys"` // planned; null: nobody knows
	Rate          *float64 `json:"rate"` // planned; null: nobody knows
	Bits          uint64   `json:"bits"`
	Probes        int      `json:"probes"`
	Bytes         uint64   `json:"bytes"`
	Fill          float64  `json:"fill"`
	RateNow       float64  `json:"rate_now"`
	RateNowError  float64  `json:"rate_now_error"`
	OneInNow      *float64 `json:"one_in_now"`     // null: empty
	EstimatedKeys *float64 `json:"estimated_keys"` // null: every bit is set
	KeysError     *float64 `json:"estimated_keys_error"`
	Full          *float64 `json:"full"` // of the planned keys; null: nobody knows
	Overfull      bool     `json:"overfull"`
	Remaining     *uint64  `json:"remaining"`
	Added         uint64   `json:"added"`
}

func describeFilter(c condition) filterJSON {
	r := c.Report
	v := filterJSON{
		Bits:          r.Plan.Bits,
		Probes:        r.Plan.Probes,
		Bytes:         r.Plan.Bytes(),
		Fill:          r.Fill,
		RateNow:       r.Rate,
		RateNowError:  r.RateError,
		OneInNow:      finite(r.OneIn()),
		EstimatedKeys: finite(r.Keys),
		KeysError:     finite(r.KeysError),
		Overfull:      c.over(),
		Added:         r.Added,
	}
	if !c.unplanned {
		v.Keys, v.Rate, v.Full, v.Remaining = &r.Plan.Keys, &r.Plan.Rate, finite(r.Full()), &r.Remaining
	}
	return v
}

// finite is null in JSON, which has no infinity, for a number that is not.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
