package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// existing reports whether the key exists, and replies with null if not.
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
		c.w.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. " +
			"Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
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

// keyCost is the memory that Redis uses for a key, in addition to its name and value.
const keyCost = 30

// memoryUsage executes MEMORY USAGE key [SAMPLES n]. Samples are for values with many
// parts, which we do not have.
func (c *Client) memoryUsage(args [][]byte) {
	if len(args) > 3 {
		if len(args) != 5 || !is(args[3], "SAMPLES") {
			c.w.Error(textSyntax)
			return
		}
		switch n, ok := integer(args[4]); {
		case !ok:
			c.w.Error(textInteger)
			return
		case n < 0:
			c.w.Error(textSyntax)
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

func (c *Client) dump(args [][]byte) {
	filter, err := c.server.store.Open(args[1])
	switch {
	case errors.Is(err, store.ErrNotFound):
		c.w.Null()
		return
	case errors.Is(err, store.ErrWrongKind):
		c.w.Error("ERR DUMP is for filters: copy a string with GET and SET")
		return
	case err != nil:
		c.storeError(err)
		return
	}
	info, limit := filter.Info(), c.server.limits.Load().PayloadBytes
	switch info.Kind {
	case store.RedisBloom:
	case store.Cuckoo:
		c.w.Error("ERR DUMP writes RedisBloom's format of a Bloom filter, which cannot hold a Cuckoo filter: " +
			"copy it with CF.SCANDUMP and CF.LOADCHUNK")
		return
	default:
		c.w.Error("ERR DUMP writes RedisBloom's format, which cannot hold a filter of another kind: " +
			"copy it to another Bloomery with BF.SCANDUMP and BF.LOADCHUNK")
		return
	}
	// Refuse a dump that RESTORE would refuse. The bits are nearly all of it.
	size := dumpOverhead * uint64(1+len(info.Layers))
	for _, layer := range info.Layers {
		size += layer.Bytes
	}
	if size > uint64(limit) {
		c.server.metrics.refuse(limitPayload)
		c.w.Error(fmt.Sprintf("ERR the filter's %d bytes are too many: use BF.SCANDUMP and BF.LOADCHUNK, which copy it in chunks", size) +
			limitSuffix(limitPayload, limit))
		return
	}
	var payload *bytes.Buffer
	chain, err := c.server.chainOf(filter)
	if err == nil {
		payload = bytes.NewBuffer(make([]byte, 0, size)) // its Grow clears like slices.Grow, see grow
		err = chain.WritePayload(payload)
		chain.Close()
	}
	if err != nil {
		c.storeError(err)
		return
	}
	c.bulk(payload.Bytes())
}

// dumpOverhead is more than a layer, or the rest of a dump, takes in addition to the
// bits.
const dumpOverhead = 128

// grants returns the store's Grant and Release, nil if it has none.
func (s *Server) grants() (grant func(bytes uint64) error, release func(bytes uint64)) {
	if g, ok := s.store.(store.Grantor); ok {
		return g.Grant, g.Release
	}
	return nil, nil
}

// chainOf copies a filter of RedisBloom's kind, through its dump.
func (s *Server) chainOf(filter store.Filter) (*redisbloom.Filter, error) {
	next, chunk, err := filter.Dump(0)
	if err != nil {
		return nil, err
	}
	grant, release := s.grants()
	chain, err := redisbloom.Config{Grant: grant, Release: release}.LoadHeader(chunk)
	if err != nil {
		return nil, err
	}
	for {
		if next, chunk, err = filter.Dump(next); err == nil && next == 0 {
			return chain, nil
		}
		for len(chunk) > 0 && err == nil {
			piece := chunk[:min(len(chunk), pieceBytes)]
			chunk = chunk[len(piece):]
			err = chain.LoadChunk(next-int64(len(chunk)), piece)
			runtime.Gosched()
		}
		if err != nil {
			chain.Close()
			return nil, err
		}
	}
}

// restoreOptions are the options of RESTORE.
type restoreOptions struct{ replace, absolute bool }

// parseRestore reads [REPLACE] [ABSTTL] [IDLETIME n | FREQ n]. The last two have no
// effect here.
func parseRestore(words [][]byte) (o restoreOptions, refusal string) {
	used := ""
	for i := 0; i < len(words); i++ {
		var most int64
		switch {
		case is(words[i], "REPLACE"):
			o.replace = true
			continue
		case is(words[i], "ABSTTL"):
			o.absolute = true
			continue
		case is(words[i], "IDLETIME") && i+1 < len(words) && used != "FREQ":
			used, most = "IDLETIME", math.MaxInt64
		case is(words[i], "FREQ") && i+1 < len(words) && used != "IDLETIME":
			used, most = "FREQ", math.MaxUint8
		default:
			return o, textSyntax
		}
		i++
		n, ok := integer(words[i])
		switch {
		case !ok:
			return o, textInteger
		case (n < 0 || n > most) && used == "FREQ":
			return o, "ERR Invalid FREQ value, must be >= 0 and <= 255"
		case n < 0:
			return o, "ERR Invalid IDLETIME value, must be >= 0"
		}
	}
	return o, ""
}

// restore executes RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME n] [FREQ n].
func (c *Client) restore(args [][]byte) {
	o, refusal := parseRestore(args[4:])
	ttl, ok := integer(args[2])
	switch { // in Redis's order
	case refusal != "":
	case !o.replace && c.kind(args[1]) != store.None:
		refusal = textBusy
	case !ok:
		refusal = textInteger
	case ttl < 0:
		refusal = "ERR Invalid TTL value, must be >= 0"
	}
	var ends time.Time
	if refusal == "" && ttl > 0 {
		if ends, ok = endTime(ttl, time.Millisecond, !o.absolute); !ok {
			refusal = "ERR Invalid TTL value, it is too far away"
		}
	}
	if refusal != "" {
		c.w.Error(refusal)
		return
	}
	grant, release := c.server.grants()
	chain, err := redisbloom.Config{Grant: grant, Release: release}.ReadPayload(bytes.NewReader(args[3]))
	switch {
	case errors.Is(err, store.ErrMemory):
		c.storeError(err)
		return
	case err != nil && !redisbloom.PayloadIntact(args[3]):
		c.w.Error("ERR DUMP payload version or checksum are wrong")
		return
	case err != nil:
		c.w.Error("ERR Bad data format: redis-dump: " + err.Error())
		return
	}
	defer chain.Close()
	err = c.makeAside(args[1], o.replace, ends, func(aside string) error {
		return c.loadChain(aside, chain)
	})
	switch {
	case errors.Is(err, store.ErrExists):
		c.w.Error(textBusy)
	case err != nil:
		c.storeError(err)
	default:
		c.w.SimpleString("OK")
	}
}

const textBusy = "BUSYKEY Target key name already exists."

// loadChain creates a filter from a chain.
func (c *Client) loadChain(name string, chain *redisbloom.Filter) error {
	s := c.server
	filter, err := s.store.Load(s.ctx, name, chain.Header())
	if err != nil {
		return err
	}
	for next, chunk := chain.ScanDump(1); next != 0; next, chunk = chain.ScanDump(next) {
		if err := filter.Load(s.ctx, next, chunk); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}
