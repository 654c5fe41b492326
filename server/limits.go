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

// Config is how a server behaves. The zero value is a server without passwords
// and TLS, that makes filters of RedisBloom's kind with RedisBloom's defaults.
type Config struct {
	// Filter is the filter that BF.ADD makes, and the defaults of BF.RESERVE and
	// BF.INSERT. Zero fields stand for RedisBloom's defaults: 100 keys,
	// a rate of 0.01, growth by 2. NonScaling stands for a growth of zero.
	Filter     store.Spec
	NonScaling bool

	// Password is for clients that may do all, ReadOnlyPassword for those that may
	// only read. If the first is empty, nobody has to send any.
	Password         string
	ReadOnlyPassword string

	// Unprotected serves other than loopback addresses without a password.
	Unprotected bool

	// TLS, if it is not nil, is spoken on all connections.
	TLS *tls.Config

	// Loops is how many event loops there are; zero: one for every two cores. The
	// others are for the kernel's side of the connections, the log, and clients of
	// this machine: with a loop for each, replies came later, and not more of them
	// (bench/server.sh). It means nothing on systems without event loops.
	Loops int

	Limits Limits

	Version string       // of this program, for INFO
	Log     *slog.Logger // nil: slog.Default
}

// Limits are what clients can make the server hold, each. A field that is zero
// stands for that of [DefaultLimits]. The memory of filters is limited by the
// store.
type Limits struct {
	// Clients is how many there may be. One more is told so and closed. There are
	// fewer if the process may not have so many descriptors.
	Clients int

	// UnauthenticatedBytes is how long a command, with all that comes with it, may be
	// before the password.
	UnauthenticatedBytes int

	Arguments   int // of a command, its name included
	ItemBytes   int // one argument of a command
	InlineBytes int // a command that is a line of words
	KeyBytes    int // the name of a filter

	// PayloadBytes is how long the argument of RESTORE and BF.LOADCHUNK may be that
	// has the filter, and DUMP's reply. It is never more than BufferBytes.
	PayloadBytes int

	// CommandBytes is how long a command may be as it comes over the wire, and
	// OutputBytes how much a client may leave unread: one that leaves more is closed.
	// Zero means PayloadBytes and 128 MiB.
	CommandBytes int
	OutputBytes  int

	// BufferBytes is how much all clients together may have in their buffers: what
	// they have sent of commands that are not complete, and not read of replies.
	// Beyond, the one that has most is closed. It is never more than half of the
	// store's memory, but 64 MiB at least.
	BufferBytes int

	// Idle is how long a client may send nothing, or not read what it asked for,
	// until it is closed. Zero, also in DefaultLimits: for ever.
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
	// besidePayload is how much longer a command or what is unread may be than a
	// payload.
	besidePayload = 128 << 20

	// leastBuffers is for all clients together, however little memory there is.
	leastBuffers = 64 << 20
)

// filled returns the limits with those of DefaultLimits in place of zeros.
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

// within returns the limits for a store that may take so much memory, zero for any.
func (l Limits) within(memory uint64) Limits {
	if l.BufferBytes <= 0 {
		l.BufferBytes = DefaultLimits().BufferBytes
	}
	if memory > 0 {
		l.BufferBytes = int(min(uint64(l.BufferBytes), max(memory/2, leastBuffers)))
	}
	return l
}

// reservedFiles are descriptors that clients do not get: for HTTP, the store, and
// what the process has anyway.
const reservedFiles = httpConnections + 64

// mostClients is how many there are descriptors for: where there are few, half.
func mostClients() int {
	files := maxFiles()
	return max(files-min(reservedFiles, files/2), 1)
}

// filled returns the configuration with defaults in place of zeros, or an error
// for one that contradicts itself.
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
	case f.Kind > store.Window:
		return c, fmt.Errorf("server: %d is no kind of filter", f.Kind)
	case !(f.Rate > 0 && f.Rate < 1):
		return c, fmt.Errorf("server: the rate of new filters must be above 0 and below 1, not %v", f.Rate)
	case c.ReadOnlyPassword != "" && c.Password == "":
		return c, errors.New("server: a password to read needs another one to write: set both")
	case c.ReadOnlyPassword != "" && c.ReadOnlyPassword == c.Password:
		return c, errors.New("server: the passwords to read and to write are the same")
	}
	return c, nil
}

// parserLimits are the limits to the commands of a client.
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

// takesPayload reports whether a command, by name, may have an argument as long as
// a filter.
func (s *Server) takesPayload(name []byte) bool {
	cmd := s.commands.find(name)
	return cmd != nil && cmd.Flags.Has(Payload)
}

// limit is one of those that clients meet; see [Limits].
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
	limitCount
)

// limitNames are the names of flags and of the label limit.
var limitNames = [limitCount]string{"clients", "unauthenticated-bytes", "arguments", "item-bytes", "payload-bytes", "inline-bytes",
	"key-bytes", "command-bytes", "output-bytes", "buffer-bytes", "idle", "memory"}

// limitSuffix names a limit behind the text of a refusal.
func limitSuffix(l limit, most int) string {
	return fmt.Sprintf(" (limit %s: %d)", limitNames[l], most)
}

// refuse counts what a limit was in the way of.
func (m *metrics) refuse(l limit) { m.refused[l].Add(1) }

// refuseMemory counts an error of the store, if it is that of its limit.
func (m *metrics) refuseMemory(err error) {
	if errors.Is(err, store.ErrMemory) {
		m.refuse(limitMemory)
	}
}

// A LimitRow is a limit with its name, for people.
type LimitRow struct {
	Name  string // the label of bloomery_refused_total
	Value string // of DefaultLimits
	What  string
}

// LimitTable returns the limits to clients.
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
	}
	for l := range rows {
		rows[l].Name = limitNames[l]
	}
	return rows[:]
}
