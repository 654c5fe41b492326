package human

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom"
)

// A Condition is a filter's report, and whether the filter was planned.
type Condition struct {
	bloom.Report

	// Unplanned: the file says neither n nor p. The plan is then only derived from
	// the bits, and no filter counts as over-full by it.
	Unplanned bool
}

// Over reports whether the filter holds more keys than it was planned for.
func (c Condition) Over() bool { return !c.Unplanned && c.Overfull() }

// Fullness describes how full a filter is, in one line.
func Fullness(c Condition) string {
	if c.Unplanned {
		return fmt.Sprintf("%s of the bits set (%s), about %s keys, false-positive rate now %s; its n and p are not known",
			Percent(c.Fill), BinarySize(c.Plan.Bytes()), Round(c.Keys), OneIn(c.Rate))
	}
	return fmt.Sprintf("%s full (%s), false-positive rate now %s, planned %s for %s",
		Full(c.Report), BinarySize(c.Plan.Bytes()), OneIn(c.Rate), OneIn(c.Plan.Rate), Count(c.Plan.Keys, "key"))
}

// Full returns the number of keys as a share of the planned keys. Above 100% it is an
// accusation, so the excess must be beyond the estimate's error: two keys of two may look
// like 112%.
func Full(r bloom.Report) string {
	share := r.Full()
	if !r.Overfull() {
		share = min(share, 1)
	}
	return Percent(share)
}

// SeenBefore describes the lines that were not new. Some of them may have been new after
// all, because a filter mistakes new keys for old ones at its rate. If they were called
// "repeats", a reader would look for them in the input.
func SeenBefore(lines uint64, mistaken float64) string {
	text := Commas(lines) + " seen before"
	switch {
	case lines == 0 || mistaken < 0.01:
		return text
	case mistaken < 10:
		return text + fmt.Sprintf(", or taken for it (about %.2g at this rate)", mistaken)
	}
	return text + fmt.Sprintf(", or taken for it (about %s at this rate)", Round(mistaken))
}

func NearlyFull(r bloom.Report) string {
	return fmt.Sprintf("the filter is %s full: about %s of %s planned keys, false-positive rate now %s (planned %s)",
		Full(r), Round(r.Keys), Commas(r.Plan.Keys), OneIn(r.Rate), OneIn(r.Plan.Rate))
}

func Overfull(r bloom.Report) string {
	keys := "more keys than it can estimate"
	if Finite(r.Keys) != nil {
		keys = "about " + Round(r.Keys) + " keys"
	}
	return fmt.Sprintf("the filter is over-full: %s, planned for %s, false-positive rate now %s (planned %s)",
		keys, Commas(r.Plan.Keys), OneIn(r.Rate), OneIn(r.Plan.Rate))
}

// FilterJSON is the state of a filter, as build, dedupe and info print it.
type FilterJSON struct {
	Keys          *uint64  `json:"keys"` // planned; null if unknown
	Rate          *float64 `json:"rate"` // planned; null if unknown
	Bits          uint64   `json:"bits"`
	Probes        int      `json:"probes"`
	Bytes         uint64   `json:"bytes"`
	Fill          float64  `json:"fill"`
	RateNow       float64  `json:"rate_now"`
	RateNowError  float64  `json:"rate_now_error"`
	OneInNow      *float64 `json:"one_in_now"`     // null if the filter is empty
	EstimatedKeys *float64 `json:"estimated_keys"` // null if every bit is set
	KeysError     *float64 `json:"estimated_keys_error"`
	Full          *float64 `json:"full"` // share of the planned keys; null if unknown
	Overfull      bool     `json:"overfull"`
	Remaining     *uint64  `json:"remaining"`
	Added         uint64   `json:"added"`
}

func Describe(c Condition) FilterJSON {
	r := c.Report
	v := FilterJSON{
		Bits:          r.Plan.Bits,
		Probes:        r.Plan.Probes,
		Bytes:         r.Plan.Bytes(),
		Fill:          r.Fill,
		RateNow:       r.Rate,
		RateNowError:  r.RateError,
		OneInNow:      Finite(r.OneIn()),
		EstimatedKeys: Finite(r.Keys),
		KeysError:     Finite(r.KeysError),
		Overfull:      c.Over(),
		Added:         r.Added,
	}
	if !c.Unplanned {
		v.Keys, v.Rate, v.Full, v.Remaining = &r.Plan.Keys, &r.Plan.Rate, Finite(r.Full()), &r.Remaining
	}
	return v
}

// Finite returns nil for an infinite number, which JSON lacks: it becomes null.
func Finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
