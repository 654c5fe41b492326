package server

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/bloomery/bloom/store"
)

// A filterJSON is a row of the list of filters.
type filterJSON struct {
	Name    apiText `json:"name" doc:"as the store has it: names of other databases begin with a NUL byte, the database's hexadecimal digit and a colon"`
	Kind    string  `json:"kind" doc:"redisbloom, paired, window, counting or cuckoo"`
	Partial bool    `json:"partial,omitempty" doc:"the filters are on other machines, and this one was not asked for: all that follows is missing"`

	Items      uint64   `json:"items" doc:"adds that were new, as BF.INFO ITEMS; of a window, also those that have expired"`
	Capacity   uint64   `json:"capacity" doc:"items that fit, as BF.INFO CAPACITY: in all layers, or in one span of a window"`
	Bytes      uint64   `json:"bytes" doc:"memory, as BF.INFO SIZE"`
	Growth     uint32   `json:"growth" doc:"how much larger each further layer is; 0: the filter refuses items beyond its capacity"`
	Layers     int      `json:"layers" doc:"layers, of all generations"`
	Target     float64  `json:"target" doc:"the rate of wrong answers that was asked for, 0 to 1"`
	Rate       *float64 `json:"rate" doc:"the rate now, computed from the bits, as BF.INFO RATE; null: not computed yet"`
	Fill       *float64 `json:"fill" doc:"the share of bits that are set, as BF.INFO FILL; null: not computed yet"`
	RateAge    float64  `json:"rate_age_seconds" doc:"how long ago rate and fill were computed"`
	Span       float64  `json:"span_seconds,omitempty" doc:"of a window: how long a key is certainly found"`
	Expires    int64    `json:"expires,omitempty" doc:"when the name expires, in milliseconds since 1970"`
	Counted    bool     `json:"counted,omitempty" doc:"in an event: the counts that follow have been counted"`
	KeysNew    int64    `json:"keys_new,omitempty" doc:"keys added that were new, since an event stream has shown the filter"`
	KeysSeen   int64    `json:"keys_seen,omitempty" doc:"keys added that were already there, since then"`
	KeysFound  int64    `json:"keys_found,omitempty" doc:"keys looked up and found, since then"`
	KeysAbsent int64    `json:"keys_absent,omitempty" doc:"keys looked up that were certainly not there, since then"`

	KeysRemoved int64 `json:"keys_removed,omitempty" doc:"keys removed, since then"`
	KeysRefused int64 `json:"keys_refused,omitempty" doc:"removals refused, as the key was certainly not there, since then"`
}

// A filterListJSON is a page of the list.
type filterListJSON struct {
	Filters []filterJSON `json:"filters"`
	Next    string       `json:"next" doc:"the cursor of the next page; 0: this was the last"`
	Names   int          `json:"names" doc:"all names of the store, also those of values that are not filters"`
}

// A layerJSON is a layer of a filter.
type layerJSON struct {
	Bits     uint64  `json:"bits"`
	Bytes    uint64  `json:"bytes"`
	Probes   int     `json:"probes" doc:"bits that a key sets"`
	Capacity uint64  `json:"capacity" doc:"items that it is planned for"`
	Items    uint64  `json:"items" doc:"adds that were new to it"`
	Target   float64 `json:"target" doc:"the rate that it is planned for"`
	Starts   int64   `json:"starts,omitempty" doc:"of a window: when its generation began, in milliseconds since 1970"`
	Expires  int64   `json:"expires,omitempty" doc:"of a window: when its generation has expired"`
}

// A pointJSON is a point of the curve of the rate.
type pointJSON struct {
	Items uint64  `json:"items"`
	Rate  float64 `json:"rate"`
}

// A detailJSON is all that is known of a filter.
type detailJSON struct {
	filterJSON
	Planned    uint64      `json:"planned" doc:"items that it was reserved for: of the first layer, or of a span of a window"`
	Durability string      `json:"durability" doc:"of its adds; default: the server's"`
	Hash       string      `json:"hash" doc:"public: anybody can craft keys that look seen; keyed: hashed with the server's secret"`
	RateError  *float64    `json:"rate_error" doc:"the standard error of rate, 0 if all bits were read"`
	Keys       *float64    `json:"keys" doc:"an estimate, from the bits, of how many different keys were added; null: all bits are set"`
	KeysError  *float64    `json:"keys_error" doc:"its standard error"`
	Remaining  uint64      `json:"remaining" doc:"about how many more different keys fit before the planned number is reached"`
	Removed    uint64      `json:"removed,omitempty" doc:"items removed, as BF.INFO REMOVED"`
	Refused    uint64      `json:"refused,omitempty" doc:"removals refused, as the item was certainly not there, as BF.INFO REFUSED"`
	Stuck      uint64      `json:"stuck,omitempty" doc:"of the kind counting: counters that stay at 15, as BF.INFO STUCK"`
	Overfull   bool        `json:"overfull" doc:"it holds more keys than planned"`
	AllLayers  []layerJSON `json:"all_layers" doc:"oldest first"`
	Curve      []pointJSON `json:"curve" doc:"the expected rate from no items to twice the capacity; empty for a window, and for the kinds counting and cuckoo"`
}

// A populationJSON is how full the parts of a layer are.
type populationJSON struct {
	Layer   int      `json:"layer" doc:"which layer, counted from the oldest, 0"`
	Set     []uint64 `json:"set" doc:"of each part, the bits that are set"`
	Read    []uint64 `json:"read" doc:"of each part, the bits that were read: all, or a sample"`
	Sampled bool     `json:"sampled" doc:"whether it was a sample"`
}

// rowOf describes a filter, without reading its bits.
func rowOf(name []byte, info *store.Info) filterJSON {
	row := filterJSON{
		Name: name, Kind: info.Kind.String(), Items: min(info.Items, math.MaxInt64), Capacity: info.Room, Bytes: info.Bytes,
		Growth: info.Growth, Layers: len(info.Layers), Target: info.Rate, Span: info.Span.Seconds(),
	}
	if !info.Expires.IsZero() {
		row.Expires = info.Expires.UnixMilli()
	}
	return row
}

// withRate adds what was last computed from the bits.
func (row filterJSON) withRate(r rateOf, now time.Time) filterJSON {
	if !r.at.IsZero() {
		row.Rate, row.Fill, row.RateAge = finite(r.rate), finite(r.fill), max(now.Sub(r.at).Seconds(), 0)
	}
	return row
}

// The pages of the list of filters.
const (
	usualPage   = 100
	largestPage = 1000
	remotePage  = 100
)

// getFilters lists filters as SCAN lists names.
func getFilters(q *apiRequest) (any, error) {
	most := largestPage
	if q.server.isRemote() {
		most = remotePage
	}
	count, err := q.number("count", min(usualPage, most), 1, largestPage)
	if err != nil {
		return nil, err
	}
	cursor, ok := parseCursor(q.text("cursor", "0"))
	match := q.text("match", "*")
	switch limit := q.server.limits.Load().KeyBytes; {
	case !ok:
		return nil, refusal(http.StatusBadRequest, "the cursor is 0, or the field next of the page before")
	case len(match) > limit:
		q.server.metrics.refuse(limitKey)
		return nil, refusal(http.StatusRequestEntityTooLarge, "the pattern is too long%s", limitSuffix(limitKey, limit))
	}
	pattern, rates := newGlob(match), isSet(q.query, "rates")
	q.declared("rates")
	page := filterListJSON{Filters: []filterJSON{}, Names: q.server.nameCount()}
	names, next, err := q.server.list(cursor, min(count, most))
	if err != nil {
		return nil, storeRefusal(err)
	}
	page.Next = strconv.FormatUint(next, 10)
	deadline := time.Now().Add(rateTime)
	for _, name := range names {
		if !pattern.matches(name) {
			continue
		}
		if row, ok := q.server.shortRow(name, rates && time.Now().Before(deadline)); ok {
			page.Filters = append(page.Filters, row)
		}
	}
	return page, nil
}

// shortRow describes the filter with a name, false if there is none. With rate it may
// read the bits.
func (s *Server) shortRow(name string, rate bool) (filterJSON, bool) {
	if s.isRemote() {
		if rate { // its bits would have to be fetched: only what is known of the filter
			if filter, err := s.store.Open([]byte(name)); err == nil {
				info := filter.Info()
				return rowOf([]byte(name), &info), info.Kind != store.None
			}
			return filterJSON{}, false
		}
		return filterJSON{Name: []byte(name), Kind: store.Paired.String(), Partial: true}, true
	}
	filter, err := s.store.Open([]byte(name))
	if err != nil {
		return filterJSON{}, false
	}
	info := filter.Info()
	if info.Kind == store.None { // dropped just now
		return filterJSON{}, false
	}
	r, known := s.rates.known(name, filter, &info)
	if rate && !known {
		r = s.rates.read(name, filter, info.Items)
	}
	return rowOf([]byte(name), &info).withRate(r, time.Now()), true
}

// open returns the request's filter.
func (q *apiRequest) open() (store.Filter, store.Info, error) {
	if limit := q.server.limits.Load().KeyBytes; len(q.name) > limit {
		q.server.metrics.refuse(limitKey)
		return nil, store.Info{}, refusal(http.StatusRequestEntityTooLarge, "the name is too long%s", limitSuffix(limitKey, limit))
	}
	filter, err := q.server.store.Open(q.name)
	if err != nil {
		return nil, store.Info{}, storeRefusal(err)
	}
	info := filter.Info()
	if info.Kind == store.None { // dropped just now
		return nil, info, storeRefusal(store.ErrNotFound)
	}
	return filter, info, nil
}

// storeRefusal translates an error of the store.
func storeRefusal(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return refusal(http.StatusNotFound, "there is no filter with this name")
	case errors.Is(err, store.ErrWrongKind):
		return refusal(http.StatusConflict, "this name stands for a value that is not a filter")
	case errors.Is(err, store.ErrStopped):
		return refusal(http.StatusServiceUnavailable, "%s", reason(err))
	}
	return refusal(http.StatusBadGateway, "%s", reason(err)) // of a store on other machines
}

// getFilter describes a filter. It reads the bits.
func getFilter(q *apiRequest) (any, error) {
	filter, info, err := q.open()
	if err != nil {
		return nil, err
	}
	report, now := filter.Report(), time.Now()
	if report.Plan.Bits == 0 {
		return nil, storeRefusal(store.ErrNotFound)
	}
	row := rowOf(q.name, &info).withRate(rateOf{rate: report.Rate, fill: report.Fill, at: now}, now)
	d := detailJSON{
		filterJSON: row, Planned: info.Capacity, Durability: info.Level.String(), Hash: "keyed",
		RateError: finite(report.RateError), Keys: finite(report.Keys), KeysError: finite(report.KeysError),
		Remaining: report.Remaining, Overfull: report.Overfull(), AllLayers: []layerJSON{}, Curve: curveOf(&info),
		Removed: info.Removed, Refused: info.Refused, Stuck: info.Stuck,
	}
	if info.Public {
		d.Hash = "public"
	}
	var spans []store.Span
	if shown, ok := filter.(store.Inspector); ok {
		spans, _ = shown.Spans()
	}
	for i, l := range info.Layers {
		layer := layerJSON{Bits: l.Bits, Bytes: l.Bytes, Probes: l.Probes, Capacity: l.Capacity, Items: l.Items, Target: l.Rate}
		if len(spans) == len(info.Layers) { // otherwise one has begun in between
			layer.Starts, layer.Expires = spans[i].Starts.UnixMilli(), spans[i].Expires.UnixMilli()
		}
		d.AllLayers = append(d.AllLayers, layer)
	}
	return d, nil
}

// The parts of a population.
const (
	usualParts = 64
	mostParts  = 4096
)

// getPopulation counts bits. It does not make lookups wait.
func getPopulation(q *apiRequest) (any, error) {
	parts, err := q.number("parts", usualParts, 1, mostParts)
	if err != nil {
		return nil, err
	}
	filter, info, err := q.open()
	if err != nil {
		return nil, err
	}
	layer, err := q.number("layer", len(info.Layers)-1, 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	shown, ok := filter.(store.Inspector)
	switch {
	case !ok:
		return nil, refusal(http.StatusNotImplemented, "the bits are on other machines")
	case info.Kind == store.Counting || info.Kind == store.Cuckoo:
		return nil, refusal(http.StatusNotImplemented, "a filter from which keys can be removed has counters or slots, not bits")
	}
	p := populationJSON{Layer: layer}
	p.Set, p.Read, err = shown.Population(layer, parts)
	switch {
	case err != nil:
		return nil, storeRefusal(err)
	case len(p.Set) == 0:
		return nil, refusal(http.StatusNotFound, "there is no layer %d", layer)
	}
	if layer < len(info.Layers) {
		read := uint64(0)
		for _, n := range p.Read {
			read += n
		}
		p.Sampled = read < info.Layers[layer].Bits
	}
	return p, nil
}

// A clientJSON is a connection.
type clientJSON struct {
	ID         int64  `json:"id"`
	Address    string `json:"address"`
	Name       string `json:"name" doc:"by CLIENT SETNAME"`
	User       string `json:"user"`
	Library    string `json:"library" doc:"by CLIENT SETINFO, with its version"`
	Database   int    `json:"database"`
	Protocol   int    `json:"protocol" doc:"2 or 3"`
	Age        int64  `json:"age_seconds"`
	Idle       int64  `json:"idle_seconds"`
	Command    string `json:"command" doc:"the last"`
	InProgress bool   `json:"in_progress" doc:"a long command is being executed"`
}

type clientListJSON struct {
	Clients   []clientJSON `json:"clients" doc:"in the order in which they came"`
	Connected int          `json:"connected" doc:"all of them"`
}

// getClients lists connections, as CLIENT LIST.
func getClients(q *apiRequest) (any, error) {
	count, err := q.number("count", usualPage, 1, largestPage)
	if err != nil {
		return nil, err
	}
	after, err := q.number("after", 0, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	list, now := clientListJSON{Clients: []clientJSON{}, Connected: q.server.clientCount()}, time.Now()
	q.server.eachClient(func(c *Client) {
		if c.id <= int64(after) || len(list.Clients) >= count {
			return
		}
		a := c.description()
		row := clientJSON{ID: c.id, Address: c.addr, Name: a.name, User: a.user, Library: a.libName, Database: a.db, Protocol: a.protocol,
			Age: int64(now.Sub(c.since).Seconds()), Idle: max(now.Unix()-c.lastActive.Load(), 0), InProgress: c.away.Load()}
		if a.libVersion != "" {
			row.Library += " " + a.libVersion
		}
		if cmd := c.lastCommand.Load(); cmd != nil {
			row.Command = cmd.fullName()
		}
		list.Clients = append(list.Clients, row)
	})
	return list, nil
}

// killClient closes a connection, as CLIENT KILL ID.
func killClient(q *apiRequest) (any, error) {
	reply, err := q.command(argsOf("CLIENT", "KILL", "ID", string(q.name))...)
	if err != nil {
		return nil, err
	}
	if reply.Integer == 0 {
		return nil, refusal(http.StatusNotFound, "there is no client with this number")
	}
	return doneJSON{true}, nil
}

// isRemote reports whether the store is on other machines.
func (s *Server) isRemote() bool {
	_, remote := s.store.(store.Remote)
	return remote
}
