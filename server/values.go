package server

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/store"
)

func init() {
	key := Argument{Name: "key", Type: "key"}
	sub := func(group string, categories ...string) func(name string, arity int, handler func(*Client, [][]byte), since, summary string, arguments ...Argument) *Command {
		return func(name string, arity int, handler func(*Client, [][]byte), since, summary string, arguments ...Argument) *Command {
			row := &Command{Name: name, Arity: arity, Flags: ReadOnly, Categories: categories, Handler: handler,
				Since: since, Group: group, Complexity: "O(1)", Summary: summary, Arguments: arguments}
			if len(arguments) > 0 {
				row.FirstKey, row.LastKey, row.KeyStep = 2, 2, 1
			}
			return row
		}
	}
	object, memory := sub("generic", "keyspace", "read", "slow"), sub("server", "read", "slow")
	register(
		&Command{Name: "object", Arity: -2, Categories: []string{"slow"}, Since: "2.2.3", Group: "generic", Complexity: "Depends on the subcommand", Summary: "Commands on how values are kept.",
			Subcommands: []*Command{
				object("encoding", 3, (*Client).objectEncoding, "2.2.3", "Tells how a value is kept, in Redis's words.", key),
				object("freq", 3, (*Client).objectFreq, "4.0.0", "Refused: uses are not counted.", key),
				object("idletime", 3, (*Client).objectIdleTime, "2.2.3", "Refused: uses are not remembered.", key),
				object("refcount", 3, (*Client).objectRefCount, "2.2.3", "Answers 1.", key),
				helpOf("object"),
			}},
		&Command{Name: "memory", Arity: -2, Categories: []string{"slow"}, Since: "4.0.0", Group: "server", Complexity: "Depends on the subcommand", Summary: "Commands on memory.",
			Subcommands: []*Command{
				memory("usage", -3, (*Client).memoryUsage, "4.0.0", "Tells how many bytes a key and its value take.", key, Argument{Name: "count", Type: "integer", Token: "SAMPLES", Optional: true}),
				memory("doctor", 2, (*Client).memoryDoctor, "4.0.0", "Tells how much of the memory is used."),
				memory("purge", 2, (*Client).ok, "4.0.0", "Does nothing: memory is given back as it becomes free."),
				helpOf("memory"),
			}},
		&Command{Name: "dump", Arity: 2, Flags: ReadOnly, Categories: []string{"keyspace", "read", "slow"}, FirstKey: 1, LastKey: 1, KeyStep: 1, Handler: (*Client).dump,
			Since: "2.6.0", Group: "generic", Complexity: "O(M) where M is the size of the filter", Summary: "Writes a filter of RedisBloom's kind as Redis does.", Arguments: []Argument{key}},
		&Command{Name: "restore", Arity: -4, Flags: Write | DenyMemory | Alone, Categories: []string{"keyspace", "write", "slow", "dangerous"}, FirstKey: 1, LastKey: 1, KeyStep: 1, Handler: (*Client).restore,
			Since: "2.6.0", Group: "generic", Complexity: "O(M) where M is the size of the filter", Summary: "Reads what DUMP of a filter has written, here or in Redis.",
			Arguments: []Argument{key, {Name: "ttl", Type: "integer"}, {Name: "serialized-value", Type: "string"}, word("REPLACE"), word("ABSTTL"),
				{Name: "seconds", Type: "integer", Token: "IDLETIME", Optional: true}, {Name: "frequency", Type: "integer", Token: "FREQ", Optional: true}}},
	)
}

// existing reports whether the key exists, and answers null if not.
func (c *Client) existing(key []byte) bool {
	if c.kind(key) == store.None {
		c.w.Null()
		return false
	}
	return true
}

// Limits of Redis's encodings of strings.
const (
	longestEmbedded = 44
	longestInteger  = 20
)

func (c *Client) objectEncoding(args [][]byte) {
	if !c.existing(args[2]) {
		return
	}
	value, err := c.server.store.Get(args[2])
	_, isInteger := integer(value[:min(len(value), longestInteger+1)])
	switch {
	case err != nil: // a filter
		c.w.BulkString("raw")
	case isInteger:
		c.w.BulkString("int")
	case len(value) <= longestEmbedded:
		c.w.BulkString("embstr")
	default:
		c.w.BulkString("raw")
	}
}

func (c *Client) objectFreq(args [][]byte) {
	if c.existing(args[2]) {
		c.w.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked.")
	}
}

func (c *Client) objectIdleTime(args [][]byte) {
	if c.existing(args[2]) {
		c.w.Error("ERR idle times are not tracked")
	}
}

func (c *Client) objectRefCount(args [][]byte) {
	if c.existing(args[2]) {
		c.w.Integer(1)
	}
}

// keyCost is what Redis takes for a key, beyond its name and its value.
const keyCost = 30

// memoryUsage is MEMORY USAGE key [SAMPLES n]. The samples are for values of many
// parts, which we do not have.
func (c *Client) memoryUsage(args [][]byte) {
	if len(args) > 3 {
		if len(args) != 5 || !is(args[3], "SAMPLES") {
			c.w.Error(textSyntax)
			return
		}
		if n, ok := integer(args[4]); !ok || n < 0 {
			c.w.Error(textInteger)
			return
		}
	}
	if !c.existing(args[2]) {
		return
	}
	_, key := splitName(string(args[2]))
	size := int64(keyCost + len(key))
	if filter, err := c.server.store.Open(args[2]); err == nil {
		c.w.Integer(size + int64(filter.Info().Bytes))
		return
	}
	value, err := c.server.store.Get(args[2])
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Integer(size + int64(len(value)))
}

func (c *Client) memoryDoctor(args [][]byte) {
	used, limit := c.server.store.Usage()
	text := fmt.Sprintf("Filters and values take %d bytes", used)
	if limit > 0 {
		text += fmt.Sprintf(" of %d allowed", limit)
	}
	c.w.Verbatim("txt", text+".\n")
}

// redisDump is the format of DUMP and RESTORE.
var redisDump = func() *interop.Format {
	format, ok := interop.FormatNamed("redis-dump")
	if !ok {
		panic("server: package interop has lost the format redis-dump")
	}
	return format
}()

func (c *Client) dump(args [][]byte) {
	filter, err := c.server.store.Open(args[1])
	switch {
	case errors.Is(err, store.ErrNotFound):
		c.w.Null()
		return
	case errors.Is(err, store.ErrWrongKind):
		c.w.Error("ERR DUMP is for filters; a string goes by GET and SET")
		return
	case err != nil:
		c.storeError(err)
		return
	}
	info, limit := filter.Info(), c.server.limits.Load().OutputBytes
	if info.Kind != store.RedisBloom {
		c.w.Error("ERR DUMP writes RedisBloom's format, which has no room for a filter of another kind; BF.SCANDUMP and BF.LOADCHUNK carry it to another Bloomery")
		return
	}
	if info.Bytes > uint64(limit) {
		c.w.Error(fmt.Sprintf("ERR the filter has %d bytes, and a reply at most %d: use BF.SCANDUMP and BF.LOADCHUNK, which go piece by piece", info.Bytes, limit))
		return
	}
	var payload bytes.Buffer
	chain, err := c.server.chainOf(filter)
	if err == nil {
		err = chain.WriteRedisDump(&payload)
		chain.Close()
	}
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Bulk(payload.Bytes())
}

// chainOf copies a filter of RedisBloom's kind, by its dump.
func (s *Server) chainOf(filter store.Filter) (*interop.Chain, error) {
	next, chunk, err := filter.Dump(0)
	if err != nil {
		return nil, err
	}
	grant, release := s.grants()
	chain, err := interop.ChainConfig{Grant: grant, Release: release}.LoadHeader(chunk)
	if err != nil {
		return nil, err
	}
	for {
		if next, chunk, err = filter.Dump(next); err == nil && next == 0 {
			return chain, nil
		}
		if err == nil {
			err = chain.LoadChunk(next, chunk)
		}
		if err != nil {
			chain.Close()
			return nil, err
		}
	}
}

// restore is RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME n] [FREQ n].
func (c *Client) restore(args [][]byte) {
	replace, absolute := false, false
	for i := 4; i < len(args); i++ {
		switch {
		case is(args[i], "REPLACE"):
			replace = true
		case is(args[i], "ABSTTL"):
			absolute = true
		case (is(args[i], "IDLETIME") || is(args[i], "FREQ")) && i+1 < len(args):
			i++ // of no use here
		default:
			c.w.Error(textSyntax)
			return
		}
	}
	ttl, ok := integer(args[2])
	switch {
	case !ok:
		c.w.Error(textInteger)
		return
	case ttl < 0:
		c.w.Error("ERR Invalid TTL value, must be >= 0")
		return
	case !replace && c.kind(args[1]) != store.None:
		c.w.Error("BUSYKEY Target key name already exists.")
		return
	}
	grant, release := c.server.grants()
	file, err := redisDump.Read(bytes.NewReader(args[3]), interop.Options{Limit: int64(len(args[3])), Grant: grant, Release: release})
	if errors.Is(err, store.ErrMemory) {
		c.storeError(errors.Unwrap(err)) // without the format's name
		return
	}
	if err != nil {
		c.w.Error("ERR DUMP payload version or checksum are wrong, or it is no filter: " + reason(err))
		return
	}
	defer file.Close()
	if err := c.restoreChain(string(args[1]), file.Filter.(*interop.Chain)); err != nil {
		c.storeError(err)
		return
	}
	if ttl > 0 {
		if err := c.endRestored(args[1], ttl, absolute); err != nil {
			c.storeError(err)
			return
		}
	}
	c.w.SimpleString("OK")
}

// restoreChain makes a filter of a chain. What had the name stays if it fails.
func (c *Client) restoreChain(name string, chain *interop.Chain) error {
	s := c.server
	beside := name
	if c.kind([]byte(name)) != store.None {
		beside = "\x00restore:" + strconv.FormatInt(c.id, 10)
	}
	filter, err := s.store.Load(s.ctx, beside, chain.Header())
	if err != nil {
		return err
	}
	for next, chunk := chain.ScanDump(1); next != 0; next, chunk = chain.ScanDump(next) {
		if err := filter.Load(s.ctx, next, chunk); err != nil {
			s.store.Drop(s.ctx, beside)
			return err
		}
	}
	if beside != name {
		return s.store.Rename(s.ctx, beside, name)
	}
	return nil
}

// endRestored lets a key end in, or at, so many milliseconds.
func (c *Client) endRestored(key []byte, ttl int64, absolute bool) error {
	at, ok := endTime(ttl, 1e6, !absolute)
	if !ok {
		return errors.New("Invalid TTL value, it is too far away: the key does not end")
	}
	return c.server.store.Expire(c.server.ctx, string(key), at)
}
