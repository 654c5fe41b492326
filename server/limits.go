package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// Config configures a server. The zero value is a server without passwords or TLS that
// makes filters of RedisBloom's kind with RedisBloom's defaults.
type Config struct {
	// Filter is the filter that BF.ADD creates, and the defaults of BF.RESERVE and
	// BF.INSERT. Zero fields mean RedisBloom's defaults: 100 keys, a rate of 0.01,
	// growth by 2. NonScaling means a growth of zero.
	Filter     store.Spec
	NonScaling bool

	// Password grants full access, ReadOnlyPassword only reads. If Password is empty,
	// no password is required.
	Password         string
	ReadOnlyPassword string

	// Unprotected allows serving addresses other than loopback without a password.
	Unprotected bool

	// TLS, if not nil, is used on all connections.
	TLS *tls.Config

	// Loops is the number of event loops; zero means one for every two cores. The other
	// cores are for the kernel's side of the connections, the log, and clients on this
	// machine: with a loop per core, latency was higher and throughput no better
	// (bench/server.sh). It is ignored on systems without event loops.
	Loops int

	Limits Limits

	Version    string // version of this program, for INFO
	Durability string // what the store promises, in a word, for the API

	Log *slog.Logger // nil means slog.Default
}

// Limits bound what each client can make the server hold. Zero fields mean those of
// [DefaultLimits]. The memory of filters is limited by the store.
type Limits struct {
	// Clients is the most connections. Further ones get an error and are closed. It is
	// lowered if the process may not open that many descriptors.
	Clients int

	// UnauthenticatedBytes is the longest command, with any further input, before
	// authentication.
	UnauthenticatedBytes int

	Arguments   int // of a command, including its name
	ItemBytes   int // one argument of a command
	InlineBytes int // an inline command: a line of words
	KeyBytes    int // the name of a filter

	// PayloadBytes is the longest payload of RESTORE and BF.LOADCHUNK, and the longest
	// reply of DUMP. It is never more than BufferBytes.
	PayloadBytes int

	// CommandBytes is the longest command as it comes over the wire. OutputBytes is how
	// much a client may leave unread before it is closed. Zero means PayloadBytes plus
	// 128 MiB.
	CommandBytes int
	OutputBytes  int

	// BufferBytes bounds the buffers of all clients together: incomplete commands and
	// unread replies. Beyond it, the client that holds the most is closed. It is at
	// most half of the store's memory, but at least 64 MiB.
	BufferBytes int

	// Idle is how long a client may send nothing, or leave replies unread, before it is
	// closed. Zero, the default, means forever.
	Idle time.Duration
}

// DefaultLimits returns limits that allow payloads as large as those of Redis.
func DefaultLimits() Limits {
	return Limits{
		Clients:              10_000,
		UnauthenticatedBytes: 16 << 10,
		Arguments:            1 << 20,
		ItemBytes:            32 << 20,
		InlineBytes:          64 << 10,
		KeyBytes:             64 << 10,
		PayloadBytes:         512 << 20,
		CommandBytes:         512<<20 + besidePayload,
		OutputBytes:          512<<20 + besidePayload,
		BufferBytes:          1 << 30,
	}
}

const (
	// besidePayload is how much longer than a payload a command, or unread output, may
	// be.
	besidePayload = 128 << 20

	// leastBuffers is the least BufferBytes, however little memory the store has.
	leastBuffers = 64 << 20
)

// filled returns the limits with zeros replaced by those of DefaultLimits.
func (l Limits) filled() Limits {
	set := func(field *int, standard int) {
		if *field <= 0 {
			*field = standard
		}
	}
	standard := DefaultLimits()
	set(&l.Clients, standard.Clients)
	set(&l.UnauthenticatedBytes, standard.UnauthenticatedBytes)
	set(&l.Arguments, standard.Arguments)
	set(&l.ItemBytes, standard.ItemBytes)
	set(&l.InlineBytes, standard.InlineBytes)
	set(&l.KeyBytes, standard.KeyBytes)
	set(&l.BufferBytes, standard.BufferBytes)
	set(&l.PayloadBytes, standard.PayloadBytes)
	l.PayloadBytes = min(l.PayloadBytes, l.BufferBytes)
	set(&l.CommandBytes, l.PayloadBytes+besidePayload)
	set(&l.OutputBytes, l.PayloadBytes+besidePayload)
	return l
}

// within returns the limits for a store with a memory limit; zero means none.
func (l Limits) within(memory uint64) Limits {
	if l.BufferBytes <= 0 {
		l.BufferBytes = DefaultLimits().BufferBytes
	}
	if memory > 0 {
		l.BufferBytes = int(min(uint64(l.BufferBytes), max(memory/2, leastBuffers)))
	}
	return l
}

// reservedFiles are descriptors that clients do not get: for HTTP, the store, and what
// the process has open anyway.
const reservedFiles = httpConnections + 64

// mostClients is how many clients there are descriptors for, at least half of all
// descriptors.
func mostClients() int {
	files := maxFiles()
	return max(files-min(reservedFiles, files/2), 1)
}

// filled returns the configuration with zeros replaced by defaults, or an error if it
// contradicts itself.
func (c Config) filled() (Config, error) {
	f := &c.Filter
	if f.Kind == store.None {
		f.Kind = store.RedisBloom
	}
	if f.Capacity == 0 {
		f.Capacity = 100
	}
	if f.Rate == 0 {
		f.Rate = 0.01
	}
	if f.Growth == 0 && !c.NonScaling {
		f.Growth = 2
	}
	if c.NonScaling {
		f.Growth = 0
	}
	c.Limits = c.Limits.filled()
	if c.Log == nil {
		c.Log = slog.Default()
	}
	switch {
	case f.Kind > store.Window && f.Kind != store.Counting:
		return c, fmt.Errorf("server: %d is not a kind of filter", f.Kind)
	case !(f.Rate > 0 && f.Rate < 1):
		return c, fmt.Errorf("server: the rate of new filters must be above 0 and below 1, not %v", f.Rate)
	case c.ReadOnlyPassword != "" && c.Password == "":
		return c, errors.New("server: a read-only password needs a password for writing: set both")
	case c.ReadOnlyPassword != "" && c.ReadOnlyPassword == c.Password:
		return c, errors.New("server: the read-only password must differ from the other one")
	}
	return c, nil
}

// parserLimits returns the limits on the commands of a client.
func (s *Server) parserLimits(a access) resp.Limits {
	l := s.limits.Load()
	if a == accessNone {
		limits := resp.UnauthenticatedLimits()
		limits.InlineBytes = l.UnauthenticatedBytes
		limits.BulkBytes = l.UnauthenticatedBytes
		limits.CommandBytes = l.UnauthenticatedBytes
		return limits
	}
	return resp.Limits{Args: l.Arguments, BulkBytes: l.ItemBytes, InlineBytes: l.InlineBytes, CommandBytes: l.CommandBytes,
		TakesPayload: s.takesPayload, PayloadBytes: l.PayloadBytes}
}

// takesPayload reports whether the command with a name may have an argument as long as
// a filter.
func (s *Server) takesPayload(name []byte) bool {
	cmd := s.commands.find(name)
	return cmd != nil && cmd.Flags.Has(Payload)
}

// limit is a limit on clients; see [Limits].
type limit uint8

const (
	limitClients limit = iota
	limitUnauthenticated
	limitArguments
	limitItem
	limitPayload
	limitInline
	limitKey
	limitCommand
	limitOutput
	limitBuffers
	limitIdle
	limitMemory
	limitHTTPBody
	limitHTTPKeys
	limitHTTPRequests
	limitHTTPStreams
	limitHTTPShown
	limitCount
)

// limitNames are the names of the flags, and the values of the label limit.
var limitNames = [limitCount]string{"clients", "unauthenticated-bytes", "arguments", "item-bytes", "payload-bytes", "inline-bytes",
	"key-bytes", "command-bytes", "output-bytes", "buffer-bytes", "idle", "memory",
	"http-body-bytes", "http-keys", "http-requests", "http-streams", "http-shown"}

// Limits of the API over HTTP, whose connections are limited to httpConnections. Streams
// and requests in progress together leave some for /metrics and /healthz.
const (
	httpBodyBytes = 1 << 20
	httpKeys      = 10_000
	httpRequests  = 24
	httpStreams   = 64
	httpShown     = 100
)

// limitSuffix names a limit after the text of a refusal.
func limitSuffix(l limit, most int) string {
	return fmt.Sprintf(" (limit %s: %d)", limitNames[l], most)
}

// refuse counts a refusal by a limit.
func (m *metrics) refuse(l limit) { m.refused[l].Add(1) }

// refuseMemory counts an error of the store if it is that of the memory limit.
func (m *metrics) refuseMemory(err error) {
	if errors.Is(err, store.ErrMemory) {
		m.refuse(limitMemory)
	}
}

// A LimitRow is a limit with its name, for printing.
type LimitRow struct {
	Name  string // the label of bloomery_refused_total
	Value string // of DefaultLimits
	What  string
}

// LimitTable returns the limits on clients.
func LimitTable() []LimitRow {
	l := DefaultLimits()
	bytes := func(n int) string {
		if n >= 1<<30 && n%(1<<30) == 0 {
			return fmt.Sprintf("%d GiB", n>>30)
		}
		if n >= 1<<20 {
			return fmt.Sprintf("%d MiB", n>>20)
		}
		return fmt.Sprintf("%d KiB", n>>10)
	}
	idle := "none"
	if l.Idle > 0 {
		idle = l.Idle.String()
	}
	rows := [limitCount]LimitRow{
		limitClients:         {Value: strconv.Itoa(l.Clients), What: "connections; further ones are refused"},
		limitUnauthenticated: {Value: bytes(l.UnauthenticatedBytes), What: "a command before authentication; beyond, the connection is closed"},
		limitArguments:       {Value: strconv.Itoa(l.Arguments), What: "arguments of a command, including its name; beyond, the connection is closed"},
		limitItem:            {Value: bytes(l.ItemBytes), What: "one argument; beyond, the connection is closed"},
		limitPayload: {Value: bytes(l.PayloadBytes), What: "the payload of RESTORE or BF.LOADCHUNK; beyond, the connection is closed. " +
			"DUMP of a larger one is refused"},
		limitInline:  {Value: bytes(l.InlineBytes), What: "an inline command; beyond, the connection is closed"},
		limitKey:     {Value: bytes(l.KeyBytes), What: "the name of a filter or value; beyond, the command is refused"},
		limitCommand: {Value: bytes(l.CommandBytes), What: "a command as it comes over the wire; beyond, the connection is closed"},
		limitOutput:  {Value: bytes(l.OutputBytes), What: "replies that a client has not read; beyond, the connection is closed"},
		limitBuffers: {Value: bytes(l.BufferBytes), What: "incomplete commands and unread replies of all connections together, at most half of --memory; " +
			"beyond, the connection that holds the most is closed"},
		limitIdle:   {Value: idle, What: "time without a command from a client; then the connection is closed"},
		limitMemory: {Value: "none", What: "memory of all filters and values; beyond, the command is refused, and the error names the bytes needed"},

		limitHTTPBody:     {Value: bytes(httpBodyBytes), What: "the body of a request to /api; beyond, it is refused"},
		limitHTTPKeys:     {Value: strconv.Itoa(httpKeys), What: "keys in a request to /api; beyond, it is refused"},
		limitHTTPRequests: {Value: strconv.Itoa(httpRequests), What: "requests to /api in progress; further ones are refused"},
		limitHTTPStreams:  {Value: strconv.Itoa(httpStreams), What: "streams of /api/v1/events; further ones are refused"},
		limitHTTPShown:    {Value: strconv.Itoa(httpShown), What: "filters in a stream of /api/v1/events; beyond, it is refused"},
	}
	for l := range rows {
		rows[l].Name = limitNames[l]
	}
	return rows[:]
}
