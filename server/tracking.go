package server

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// maxNotedBytes bounds the server's table of the names that tracking clients have read.
// When it is full, noted names are declared changed, which costs their readers another
// read and is never wrong.
const maxNotedBytes = 64 << 20

// What a name and a reader count in the table, in addition to the name's bytes.
const (
	nameCost   = 256
	readerCost = 64
)

// trackingMode says which invalidations a client has requested.
type trackingMode uint8

const (
	trackNothing   trackingMode = iota
	trackReads                  // for every name that it reads
	trackOptIn                  // for names read by the command after CLIENT CACHING YES
	trackOptOut                 // except for names read by the command after CLIENT CACHING NO
	trackBroadcast              // for every name with one of its prefixes
)

// tracking is what CLIENT TRACKING and WATCH have set for a client. It belongs to the
// client's goroutine, except for what says otherwise.
type tracking struct {
	on bool // reads must be noted, so commands do not go into runs

	mode    trackingMode
	caching string  // what CLIENT CACHING said for the next command: "yes", "no" or ""
	reader  *reader // nil unless the mode is above trackNothing

	watched      map[string]time.Time // the watched names, and when they expire
	watchedBytes int
	broken       atomic.Bool // a watched name has changed; any goroutine may set it

	// For CLIENT LIST; other goroutines may read these.
	shown struct {
		watched, queued atomic.Int64
		tracks          atomic.Bool
		noEvict         atomic.Bool
		noTouch         atomic.Bool
	}
}

// A reader is a client between CLIENT TRACKING ON and OFF, guarded by observed.mu.
type reader struct {
	client   *Client // nil when tracking has ended: its remaining entries in the table no longer count
	noLoop   bool    // is not notified of its own changes
	prefixes []string
}

// observed holds the observers of written names. Names are those of the store; see
// databases.go.
type observed struct {
	mu        sync.Mutex
	readers   map[string]map[*reader]struct{} // by the name read
	bytes     int                             // counted size of readers
	broadcast map[*reader]struct{}
	watchers  map[string]map[*Client]struct{}
	changing  map[string]int // by name, the number of long commands that are writing it
}

// startTracking starts a client's tracking, or changes its mode.
func (c *Client) startTracking(mode trackingMode, noLoop bool, prefixes []string) {
	s, o := c.server, &c.server.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.tracking.reader == nil {
		c.tracking.reader = &reader{client: c}
		s.observers.Add(1)
	}
	r := c.tracking.reader
	r.noLoop = noLoop
	if mode == trackBroadcast {
		r.prefixes = append(r.prefixes, prefixes...)
		if o.broadcast == nil {
			o.broadcast = map[*reader]struct{}{}
		}
		o.broadcast[r] = struct{}{}
	}
	c.tracking.mode, c.tracking.caching = mode, ""
	c.tracking.shown.tracks.Store(true)
	c.tracking.decide()
}

// stopTracking stops a client's tracking.
func (c *Client) stopTracking() {
	r := c.tracking.reader
	if r == nil {
		return
	}
	o := &c.server.observed
	o.mu.Lock()
	r.client = nil
	delete(o.broadcast, r)
	o.mu.Unlock()
	c.server.observers.Add(-1)
	c.tracking.reader, c.tracking.mode, c.tracking.caching = nil, trackNothing, ""
	c.tracking.shown.tracks.Store(false)
	c.tracking.decide()
}

// decide determines whether the reads of the next command must be noted.
func (t *tracking) decide() {
	switch t.mode {
	case trackReads:
		t.on = true
	case trackOptIn:
		t.on = t.caching == "yes"
	case trackOptOut:
		t.on = t.caching != "no"
	case trackBroadcast:
		t.on = true // only for windows
	default:
		t.on = false
	}
}

// beforeCall notes what a command will read. It is called before the command reads, so
// that a write in between finds the note.
func (c *Client) beforeCall(cmd *Command, args [][]byte) {
	if c.tracking.on && c.tracking.mode != trackBroadcast && cmd.Flags.Has(ReadOnly) {
		cmd.keys(args, func(key []byte) { c.server.keyRead(c, key) })
	}
}

// afterCall invalidates the windows that the client has read, and resets CLIENT
// CACHING, which holds for one command or one transaction.
func (c *Client) afterCall(cmd *Command, args [][]byte) {
	if c.tracking.on && cmd.Flags.Has(ReadOnly) {
		cmd.keys(args, c.windowRead)
	}
	if c.tracking.caching == "" || c.multi != nil || cmd.isCaching() {
		return
	}
	c.tracking.caching = ""
	c.tracking.decide()
}

// isCaching reports whether this is CLIENT CACHING, the one command that does not reset
// its own effect.
func (cmd *Command) isCaching() bool { return cmd.parent != nil && cmd.Name == "caching" }

// windowRead notifies a tracking client that a window it has just read has changed.
// Keys in a window expire as time passes, without a write that could be reported, so
// what was read must not be cached.
func (c *Client) windowRead(key []byte) {
	if c.kind(key) != store.Window {
		return
	}
	o := &c.server.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	_, plain := splitName(string(key))
	if c.tracking.mode != trackBroadcast || c.tracking.reader.wants(plain) {
		c.pushInvalid(plain)
	}
}

// wants reports whether a name has one of the prefixes. The caller holds mu.
func (r *reader) wants(plain string) bool {
	return slices.ContainsFunc(r.prefixes, func(prefix string) bool { return strings.HasPrefix(plain, prefix) })
}

// keyRead notes that a client with tracking on reads a key.
func (s *Server) keyRead(c *Client, key []byte) {
	o, r := &s.observed, c.tracking.reader
	o.mu.Lock()
	defer o.mu.Unlock()
	readers := o.readers[string(key)]
	if _, ok := readers[r]; ok {
		return
	}
	if readers == nil {
		if o.readers == nil {
			o.readers = map[string]map[*reader]struct{}{}
		}
		readers = map[*reader]struct{}{}
		o.readers[string(key)] = readers
		o.bytes += nameCost + len(key)
	}
	readers[r] = struct{}{}
	o.bytes += readerCost
	for name := range o.readers { // in random order
		if o.bytes <= maxNotedBytes {
			break
		}
		if name != string(key) {
			o.invalidate(nil, name)
		}
	}
}

// keyWritten notifies the clients that have read or watch a key that it has changed. c
// is the client that changed it, nil if there is none, as when the key has expired.
// keyWritten is only called while Server.observers is above zero. Any goroutine may
// call it.
func (s *Server) keyWritten(c *Client, key []byte) {
	o := &s.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	name := string(key)
	for watcher := range o.watchers[name] {
		watcher.tracking.broken.Store(true)
	}
	o.invalidate(c, name)
	_, plain := splitName(name)
	for r := range o.broadcast {
		if r.noLoop && r.client == c {
			continue
		}
		if r.wants(plain) {
			r.client.pushInvalid(plain)
		}
	}
}

// invalidate notifies all readers of a name, c only if it wants to hear of its own
// changes, and removes them from the table. The caller holds mu.
func (o *observed) invalidate(c *Client, name string) {
	readers, ok := o.readers[name]
	if !ok {
		return
	}
	_, plain := splitName(name)
	for r := range readers {
		if r.client != nil && !(r.noLoop && r.client == c) {
			r.client.pushInvalid(plain)
		}
	}
	delete(o.readers, name)
	o.bytes -= nameCost + len(name) + readerCost*len(readers)
}

// pushInvalid sends a client the message that a name has changed.
func (c *Client) pushInvalid(name string) {
	c.push(3, func(w *resp.Writer) {
		w.Push(2)
		w.BulkString("invalidate")
		w.Array(1)
		w.BulkString(name)
	})
}

// watchedNames returns the watched names that exist, in a database, or in all databases
// if db is negative.
func (s *Server) watchedNames(db int) (names []string) {
	s.observed.mu.Lock()
	defer s.observed.mu.Unlock()
	for name := range s.observed.watchers {
		in, _ := splitName(name)
		if kind, _, _ := s.store.Kind([]byte(name)); (db < 0 || in == db) && kind != store.None {
			names = append(names, name)
		}
	}
	return names
}

// allWritten is called when a database has been emptied in which these names were
// watched. All tracking clients are told to drop everything, as in Redis, whatever the
// database.
func (s *Server) allWritten(watched []string) {
	o := &s.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	tracking := map[*reader]struct{}{}
	for r := range o.broadcast {
		tracking[r] = struct{}{}
	}
	for _, readers := range o.readers {
		for r := range readers {
			tracking[r] = struct{}{}
		}
	}
	for r := range tracking {
		if r.client != nil {
			r.client.push(3, func(w *resp.Writer) {
				w.Push(2)
				w.BulkString("invalidate")
				w.NullArray()
			})
		}
	}
	o.readers, o.bytes = nil, 0
	for _, name := range watched {
		for c := range o.watchers[name] {
			c.tracking.broken.Store(true)
		}
	}
}

// watch makes the client's next EXEC fail if the key changes before it. It returns
// false if the client watches too much.
func (c *Client) watch(key []byte) bool {
	t, o := &c.tracking, &c.server.observed
	if _, ok := t.watched[string(key)]; ok {
		return true
	}
	if t.watchedBytes += nameCost + len(key); t.watchedBytes > min(c.server.limits.Load().CommandBytes, maxNotedBytes) {
		return false
	}
	if t.watched == nil {
		t.watched = map[string]time.Time{}
	}
	c.server.observers.Add(1)
	o.mu.Lock()
	watchers := o.watchers[string(key)]
	if watchers == nil {
		if o.watchers == nil {
			o.watchers = map[string]map[*Client]struct{}{}
		}
		watchers = map[*Client]struct{}{}
		o.watchers[string(key)] = watchers
	}
	watchers[c] = struct{}{}
	if o.changing[string(key)] > 0 {
		t.broken.Store(true)
	}
	o.mu.Unlock()
	_, ends := c.kindAndEnd(key)
	t.watched[string(key)] = ends
	t.shown.watched.Add(1)
	return true
}

// unwatch forgets what the client watches.
func (c *Client) unwatch() {
	t, o := &c.tracking, &c.server.observed
	if len(t.watched) > 0 {
		o.mu.Lock()
		for name := range t.watched {
			delete(o.watchers[name], c)
			if len(o.watchers[name]) == 0 {
				delete(o.watchers, name)
			}
		}
		o.mu.Unlock()
		c.server.observers.Add(-int64(len(t.watched)))
	}
	t.watched, t.watchedBytes = nil, 0
	t.broken.Store(false)
	t.shown.watched.Store(0)
}

// watchBroken reports whether a watched name has changed. Expiry is checked by the
// clock, as its notification may not have arrived yet.
func (c *Client) watchBroken() bool {
	if c.tracking.broken.Load() {
		return true
	}
	now := time.Now()
	for _, ends := range c.tracking.watched {
		if !ends.IsZero() && !now.Before(ends) {
			return true
		}
	}
	return false
}

// clientGone stops all tracking and watching of a client that has been closed.
func (s *Server) clientGone(c *Client) {
	c.stopTracking()
	c.unwatch()
}

// maxPrefixes and maxPrefixBytes bound the prefixes that every write is compared with.
const (
	maxPrefixes    = 64
	maxPrefixBytes = 1 << 10
)

// clientTracking executes CLIENT TRACKING ON|OFF [PREFIX p]... [BCAST] [OPTIN|OPTOUT]
// [NOLOOP].
func (c *Client) clientTracking(args [][]byte) {
	mode, noLoop := trackReads, false
	var prefixes []string
	for i := 3; i < len(args); i++ {
		wanted := trackNothing
		switch {
		case is(args[i], "BCAST"):
			wanted = trackBroadcast
		case is(args[i], "OPTIN"):
			wanted = trackOptIn
		case is(args[i], "OPTOUT"):
			wanted = trackOptOut
		case is(args[i], "NOLOOP"):
			noLoop = true
		case is(args[i], "PREFIX") && i+1 < len(args):
			i++
			prefixes = append(prefixes, string(args[i]))
		case is(args[i], "REDIRECT") && i+1 < len(args):
			c.w.Error("ERR REDIRECT is not supported: send HELLO 3 to receive invalidations on this connection")
			return
		default:
			c.w.Error(textSyntax)
			return
		}
		if wanted == trackNothing {
			continue
		}
		if mode != trackReads && mode != wanted {
			if mode == trackBroadcast || wanted == trackBroadcast {
				c.w.Error("ERR OPTIN and OPTOUT are not compatible with BCAST")
			} else {
				c.w.Error("ERR You can't specify both OPTIN mode and OPTOUT mode")
			}
			return
		}
		mode = wanted
	}
	on, ok := c.onOff(args[2])
	if !ok {
		return
	}
	if !on {
		c.stopTracking()
		c.w.SimpleString("OK")
		return
	}
	if refusal := c.refuseTracking(mode, prefixes); refusal != "" {
		c.w.Error(refusal)
		return
	}
	if mode == trackBroadcast && len(prefixes) == 0 && (c.tracking.reader == nil || len(c.trackedPrefixes()) == 0) {
		prefixes = []string{""} // every name has this prefix
	}
	c.startTracking(mode, noLoop, prefixes)
	c.w.SimpleString("OK")
}

// refuseTracking returns the error for invalid options of tracking, or "".
func (c *Client) refuseTracking(mode trackingMode, prefixes []string) string {
	was := c.tracking.mode
	switch {
	case c.w.Protocol != 3:
		return "ERR CLIENT TRACKING needs RESP3 here: send HELLO 3 first"
	case len(prefixes) > 0 && mode != trackBroadcast:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case was != trackNothing && (was == trackBroadcast) != (mode == trackBroadcast):
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	case was != trackNothing && was != mode && (mode == trackOptIn || mode == trackOptOut) && (was == trackOptIn || was == trackOptOut):
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	all := c.trackedPrefixes()
	bytes := 0
	for _, prefix := range prefixes {
		for _, other := range all {
			if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
				return "ERR Prefix '" + prefix + "' overlaps with an existing prefix '" + other + "'. Prefixes for a single client must not overlap."
			}
		}
		all = append(all, prefix)
	}
	for _, prefix := range all {
		bytes += len(prefix)
	}
	if len(all) > maxPrefixes || bytes > maxPrefixBytes {
		return "ERR too many prefixes: a client may have at most " + strconv.Itoa(maxPrefixes) + ", of " + strconv.Itoa(maxPrefixBytes) + " bytes together"
	}
	return ""
}

func (c *Client) trackedPrefixes() []string {
	if c.tracking.reader == nil {
		return nil
	}
	return slices.Clone(c.tracking.reader.prefixes) // only this goroutine writes them
}

func (c *Client) clientTrackingInfo(args [][]byte) {
	t := &c.tracking
	flags := map[trackingMode][]string{
		trackNothing: {"off"}, trackReads: {"on"}, trackOptIn: {"on", "optin"}, trackOptOut: {"on", "optout"}, trackBroadcast: {"on", "bcast"},
	}[t.mode]
	if t.caching != "" {
		flags = append(flags, "caching-"+t.caching)
	}
	redirect := int64(-1)
	if t.reader != nil {
		redirect = 0
		if t.reader.noLoop {
			flags = append(flags, "noloop")
		}
	}
	c.w.Map(3)
	c.w.BulkString("flags")
	c.w.Set(len(flags))
	for _, flag := range flags {
		c.w.BulkString(flag)
	}
	c.w.BulkString("redirect")
	c.w.Integer(redirect)
	c.w.BulkString("prefixes")
	prefixes := c.trackedPrefixes()
	c.w.Array(len(prefixes))
	for _, prefix := range prefixes {
		c.w.BulkString(prefix)
	}
}

func (c *Client) clientCaching(args [][]byte) {
	mode := c.tracking.mode
	switch {
	case mode != trackOptIn && mode != trackOptOut:
		c.w.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
		return
	case is(args[2], "YES") && mode == trackOptIn:
		c.tracking.caching = "yes"
	case is(args[2], "NO") && mode == trackOptOut:
		c.tracking.caching = "no"
	case is(args[2], "YES"):
		c.w.Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
		return
	case is(args[2], "NO"):
		c.w.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
		return
	default:
		c.w.Error(textSyntax)
		return
	}
	c.tracking.decide()
	c.w.SimpleString("OK")
}

func (c *Client) clientGetRedir(args [][]byte) {
	if c.tracking.reader == nil {
		c.w.Integer(-1)
	} else {
		c.w.Integer(0)
	}
}
