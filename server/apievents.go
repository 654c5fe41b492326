package server

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/store"
)

// The event streams have one pulse: a goroutine that, while there are any, describes the
// server and the filters that they show, once a second, for all of them together. A
// stream waits for the beat and sends what has changed.

const (
	beatTime   = time.Second
	remoteBeat = 10               // beats between two looks at a filter on other machines
	rateShare  = 0.05             // of a processor, for reading bits
	eventTime  = requestTime      // to take an event
	ageStep    = 10 * time.Second // in which the age of a rate is told

	mostBalance = time.Duration(rateShare * float64(beatTime))
)

// A pulse is the state that the streams share.
type pulse struct {
	server *Server

	looking sync.Mutex // held to look; taken before mu

	mu      sync.Mutex
	streams int
	shown   map[string]*shownFilter
	beat    chan struct{} // closed at the next beat
	number  uint64        // of the last beat
	totals  totalsJSON
	soon    chan struct{} // a filter is shown that has not been looked at; closed with the last stream
}

// A looker is what the goroutine of a pulse has for itself.
type looker struct {
	*pulse
	latencies quantiles
	balance   time.Duration // for reading bits
	balanced  time.Time     // when it was added to
}

// A shownFilter is a filter that a stream shows.
type shownFilter struct {
	streams int
	counts  keyCounts
	row     []byte // JSON; nil: there is no such filter
	changed uint64 // the beat when row last changed; 0: never looked at
	looked  uint64 // the beat of the last look
}

// keyCounts are counts of the keys of a filter, while a stream shows it.
type keyCounts struct{ fresh, seen, found, absent, removed, refused atomic.Int64 }

// countKeys adds the answers of a run to the counts of a filter that a stream shows.
// While there is no stream it costs a load.
func (s *Server) countKeys(name []byte, answers []bool, kind runKind) {
	watched := s.watched.Load()
	if watched == nil {
		return
	}
	counts := (*watched)[string(name)]
	if counts == nil {
		return
	}
	yes := int64(0)
	for _, answer := range answers {
		if answer {
			yes++
		}
	}
	to, other := &counts.fresh, &counts.seen
	switch {
	case kind.isLookup():
		to, other = &counts.found, &counts.absent
	case kind.isRemoval():
		to, other = &counts.removed, &counts.refused
	}
	to.Add(yes)
	other.Add(int64(len(answers)) - yes)
}

// join adds a stream that shows filters, false if there are too many streams.
func (p *pulse) join(names []string, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams >= most {
		return false
	}
	p.streams++
	if p.shown == nil {
		p.shown = map[string]*shownFilter{}
	}
	for _, name := range names {
		f := p.shown[name]
		if f == nil {
			f = &shownFilter{}
			p.shown[name] = f
		}
		f.streams++
	}
	p.watch()
	if p.streams == 1 {
		p.totals, p.beat, p.soon = totalsJSON{}, make(chan struct{}), make(chan struct{}, 1)
		go p.run(p.soon)
	}
	select {
	case p.soon <- struct{}{}:
	default:
	}
	return true
}

// leave removes a stream. With the last one, the pulse ends.
func (p *pulse) leave(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams--
	for _, name := range names {
		f := p.shown[name]
		if f.streams--; f.streams == 0 {
			delete(p.shown, name)
		}
	}
	p.watch()
	if p.streams == 0 {
		close(p.soon)
	}
}

// watch makes batches count the keys of the filters that are shown. The caller holds mu.
func (p *pulse) watch() {
	if len(p.shown) == 0 {
		p.server.watched.Store(nil)
		return
	}
	watched := make(map[string]*keyCounts, len(p.shown))
	for name, f := range p.shown {
		watched[name] = &f.counts
	}
	p.server.watched.Store(&watched)
}

// run beats until soon is closed. The next stream starts another one, perhaps before
// this one has noticed.
func (p *pulse) run(soon chan struct{}) {
	ticker := time.NewTicker(beatTime)
	defer ticker.Stop()
	l := looker{pulse: p, balance: mostBalance, balanced: time.Now()}
	l.latencies.since(&p.server.metrics.time, 1)
	for {
		full := false
		select {
		case <-p.server.ctx.Done():
			return
		case <-ticker.C:
			full = true
		case _, more := <-soon:
			if !more {
				return
			}
		}
		l.look(full)
		p.mu.Lock()
		if p.soon == soon {
			close(p.beat)
			p.beat = make(chan struct{})
		}
		p.mu.Unlock()
	}
}

// look describes what is shown: all of it, or only what was never looked at. The number
// of the beat changes last: a stream that has seen it has seen all its rows.
func (p *looker) look(full bool) {
	p.looking.Lock() // the looker before this one may not have ended yet
	defer p.looking.Unlock()
	s, now := p.server, time.Now()
	t := s.totals(now)
	p.mu.Lock()
	number := p.number + 1
	t.Median, t.Slowest = p.totals.Median, p.totals.Slowest
	due := map[string]*shownFilter{}
	for name, f := range p.shown { // in random order
		if f.looked == 0 || full && (!s.isRemote() || number-f.looked >= remoteBeat) {
			due[name] = f
		}
	}
	p.mu.Unlock()
	if full {
		of := p.latencies.since(&s.metrics.time, 1e9, 0.5, 0.99)
		t.Median, t.Slowest = of[0], of[1]
	}
	p.balance = min(p.balance+time.Duration(rateShare*float64(now.Sub(p.balanced))), mostBalance)
	p.balanced = now
	for name, f := range due {
		row, ok := p.rowNow(name, &f.counts)
		var text []byte
		if ok {
			text = marshal(row)
		}
		p.mu.Lock()
		if f.looked = number; f.changed == 0 || !bytes.Equal(text, f.row) {
			f.row, f.changed = text, number
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.number, p.totals = number, t
	p.mu.Unlock()
}

// rowNow describes a filter. It reads bits while the balance lasts.
func (p *looker) rowNow(name string, counts *keyCounts) (filterJSON, bool) {
	s := p.server
	filter, err := s.store.Open([]byte(name))
	if err != nil {
		return filterJSON{}, false
	}
	info := filter.Info()
	if info.Kind == store.None {
		return filterJSON{}, false
	}
	row := rowOf([]byte(name), &info)
	if !s.isRemote() {
		r, current := s.rates.known(name, filter, &info)
		if !current && p.balance > 0 {
			r = s.rates.read(name, filter, info.Items)
			p.balance -= r.took
		}
		row = row.withRate(r, time.Now())
		row.RateAge = math.Floor(row.RateAge/ageStep.Seconds()) * ageStep.Seconds()
	}
	row.Counted = true
	row.KeysNew, row.KeysSeen, row.KeysFound, row.KeysAbsent = counts.fresh.Load(), counts.seen.Load(), counts.found.Load(), counts.absent.Load()
	row.KeysRemoved, row.KeysRefused = counts.removed.Load(), counts.refused.Load()
	return row, true
}

func marshal(value any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic("server: " + err.Error())
	}
	return bytes.TrimSpace(text.Bytes())
}

// An eventJSON is what a stream sends.
type eventJSON struct {
	Totals  totalsJSON        `json:"totals"`
	Filters []json.RawMessage `json:"filters" doc:"those of the filters shown that have changed since the last event; at first all"`
	Gone    []apiText         `json:"gone" doc:"the names shown that no longer stand for a filter"`
}

// next returns the next event of a stream that has seen the beats up to seen, and the
// channel that is closed at the beat after it. The text is nil if there was no beat.
func (p *pulse) next(names []string, seen uint64) (text []byte, number uint64, beat chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number == seen || p.totals.Time == 0 {
		return nil, seen, p.beat
	}
	e := eventJSON{Totals: p.totals, Filters: []json.RawMessage{}, Gone: []apiText{}}
	for _, name := range names {
		switch f := p.shown[name]; {
		case f.changed <= seen:
		case f.row == nil:
			e.Gone = append(e.Gone, apiText(name))
		default:
			e.Filters = append(e.Filters, f.row)
		}
	}
	return marshal(e), p.number, p.beat
}

// streamEvents sends events until the client leaves or the server stops.
func streamEvents(q *apiRequest, w http.ResponseWriter) error {
	s, h := q.server, q.web
	q.declared("filter")
	names := slices.Compact(slices.Sorted(slices.Values(q.query["filter"])))
	if len(names) > httpShown {
		s.metrics.refuse(limitHTTPShown)
		return refusal(http.StatusRequestEntityTooLarge, "too many filters%s", limitSuffix(limitHTTPShown, httpShown))
	}
	if !s.pulse.join(names, h.streams) {
		s.metrics.refuse(limitHTTPStreams)
		return refusal(http.StatusTooManyRequests, "too many event streams%s", limitSuffix(limitHTTPStreams, h.streams))
	}
	defer s.pulse.leave(names)
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // else the end of the request's time would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	for seen := uint64(0); ; {
		text, number, beat := s.pulse.next(names, seen)
		if seen = number; text != nil {
			control.SetWriteDeadline(time.Now().Add(eventTime))
			for _, part := range [][]byte{[]byte("data: "), text, []byte("\n\n")} {
				w.Write(part)
			}
			if control.Flush() != nil {
				return nil
			}
		}
		select {
		case <-beat:
		case <-q.http.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}
