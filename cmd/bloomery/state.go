package main

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom"
)

// What a filter says about itself, in words and as JSON.

// state is a filter's fullness in one line.
func state(r bloom.Report) string {
	return fmt.Sprintf("%s full (%s), false-positive rate now %s, planned %s for %s keys",
		percent(r.Full()), binarySize(r.Plan.Bytes()), oneIn(r.Rate), oneIn(r.Plan.Rate), commas(r.Plan.Keys))
}

func nearlyFull(r bloom.Report) string {
	return fmt.Sprintf("the filter is %s full: about %s of %s planned keys, false-positive rate now %s (planned %s)",
		percent(r.Full()), round(r.Keys), commas(r.Plan.Keys), oneIn(r.Rate), oneIn(r.Plan.Rate))
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
	Keys          uint64   `json:"keys"` // planned
	Rate          float64  `json:"rate"` // planned
	Bits          uint64   `json:"bits"`
	Probes        int      `json:"probes"`
	Bytes         uint64   `json:"bytes"`
	Fill          float64  `json:"fill"`
	RateNow       float64  `json:"rate_now"`
	RateNowError  float64  `json:"rate_now_error"`
	OneInNow      *float64 `json:"one_in_now"`     // null: empty
	EstimatedKeys *float64 `json:"estimated_keys"` // null: every bit is set
	KeysError     *float64 `json:"estimated_keys_error"`
	Full          *float64 `json:"full"` // of the planned keys
	Overfull      bool     `json:"overfull"`
	Remaining     uint64   `json:"remaining"`
	Added         uint64   `json:"added"`
}

func describeFilter(r bloom.Report) filterJSON {
	return filterJSON{
		Keys:          r.Plan.Keys,
		Rate:          r.Plan.Rate,
		Bits:          r.Plan.Bits,
		Probes:        r.Plan.Probes,
		Bytes:         r.Plan.Bytes(),
		Fill:          r.Fill,
		RateNow:       r.Rate,
		RateNowError:  r.RateError,
		OneInNow:      finite(r.OneIn()),
		EstimatedKeys: finite(r.Keys),
		KeysError:     finite(r.KeysError),
		Full:          finite(r.Full()),
		Overfull:      r.Overfull(),
		Remaining:     r.Remaining,
		Added:         r.Added,
	}
}

// finite is null in JSON, which has no infinity, for a number that is not.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
