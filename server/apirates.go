package server

import (
	"sync"
	"time"

	"github.com/bloomery/bloom/store"
)

// To compute a filter's rate, its bits are read, or a sample of 64 MiB. That is kept
// here until the filter has changed, for lists of many filters.
type rates struct {
	mu   sync.Mutex
	kept map[string]rateOf
}

// A rateOf is what was computed from the bits of a filter.
type rateOf struct {
	rate, fill float64
	at         time.Time // zero: not computed
	took       time.Duration

	is    identity
	items uint64
}

const (
	// rateTime is how long a request for a page of filters may read bits.
	rateTime = 200 * time.Millisecond

	// keptRates is for how many filters.
	keptRates = 20_000

	// A rate is kept while no item is added, but no longer than keptTime: a merge adds
	// bits before it adds items. That of a window changes as time passes.
	keptTime       = time.Minute
	keptWindowTime = 2 * time.Second
)

// known returns what is kept for a filter, and whether that is up to date.
func (r *rates) known(name string, filter store.Filter, info *store.Info) (of rateOf, current bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of = r.kept[name]
	if of.at.IsZero() || of.is != identify(filter) {
		return rateOf{}, false
	}
	age := time.Since(of.at)
	return of, of.items == info.Items && age < keptTime && (info.Kind != store.Window || age < keptWindowTime)
}

// read reads the bits and keeps the result.
func (r *rates) read(name string, filter store.Filter, items uint64) rateOf {
	start := time.Now()
	report := filter.Report()
	of := rateOf{rate: report.Rate, fill: report.Fill, at: time.Now(), is: identify(filter), items: items}
	of.took = of.at.Sub(start)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[string]rateOf{}
	}
	for other := range r.kept { // in random order
		if len(r.kept) < keptRates {
			break
		}
		delete(r.kept, other)
	}
	r.kept[name] = of
	return of
}
