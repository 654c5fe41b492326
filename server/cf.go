package server

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// RedisBloom's words for what a cuckoo filter refuses.
const (
	textNestFull     = "Filter is full"
	textNestLayers   = "Maximum expansions reached"
	textNestNotFound = "Not found"

	textNestCapacity = "Bad capacity"
	textNestPosition = "Invalid position"
)

// usualNestSlots are those of a bucket, unless BUCKETSIZE is given.
const usualNestSlots = 2

// A nest is a cuckoo filter.
type nest interface {
	store.Filter
	store.Nest
}

// openNest returns the cuckoo filter with a name.
func (s *Server) openNest(name []byte) (nest, error) {
	filter, err := s.store.Open(name)
	if err != nil {
		return nil, err
	}
	f, ok := filter.(nest)
	if !ok || !isCuckoo(filter) {
		return nil, store.ErrWrongKind
	}
	return f, nil
}

// openBloom returns the filter with a name, unless it is a cuckoo filter.
func (s *Server) openBloom(name []byte) (store.Filter, error) {
	filter, err := s.store.Open(name)
	if err == nil && isCuckoo(filter) {
		return nil, store.ErrWrongKind
	}
	return filter, err
}

// usualNest is the header of the filter that CF.ADD makes.
var usualNest = sync.OnceValue(func() []byte {
	header, err := redisbloom.CuckooHeader(bloom.CuckooConfig{})
	if err != nil {
		panic(err)
	}
	return header
})

var errNoNests = errors.New("this store keeps no cuckoo filters: BF.RESERVE makes a filter here")

// createNest makes a cuckoo filter as a dump's header describes it.
func (s *Server) createNest(name string, header []byte) (store.Filter, error) {
	st, ok := s.store.(store.Nester)
	if !ok {
		return nil, errNoNests
	}
	return st.LoadCuckoo(s.ctx, name, header)
}

// openOrCreateNest creates the filter that Open has not found. If another client creates
// one at the same time, that is used.
func (s *Server) openOrCreateNest(name, header []byte) (store.Filter, error) {
	filter, err := s.createNest(string(name), header)
	if errors.Is(err, store.ErrExists) {
		return s.store.Open(name)
	}
	return filter, err
}

// nestOptions are the options of CF.RESERVE, in RedisBloom's order.
var nestOptions = []struct {
	word        string
	least, most int64
	set         func(to *bloom.CuckooConfig, value int)
}{
	{"MAXITERATIONS", 1, 65535, func(to *bloom.CuckooConfig, value int) { to.Iterations = value }},
	{"BUCKETSIZE", 1, 255, func(to *bloom.CuckooConfig, value int) { to.BucketSize = value }},
	{"EXPANSION", 0, maxExpansion, func(to *bloom.CuckooConfig, value int) { to.Growth, to.NonScaling = value, value == 0 }},
}

// cfReserve makes a cuckoo filter.
func (c *Client) cfReserve(args [][]byte) {
	if len(args)%2 == 0 {
		c.wrongArity(c.server.commands.find(args[0]))
		return
	}
	config, refusal := parseNest(args[2], args[3:])
	if refusal != "" {
		c.w.Error(refusal)
		return
	}
	c.unchanged = true
	switch c.kind(args[1]) {
	case store.None:
	case store.Cuckoo:
		c.w.Error(textExists)
		return
	default:
		c.w.Error(textWrongType)
		return
	}
	header, err := redisbloom.CuckooHeader(config)
	if err == nil {
		_, err = c.server.createNest(string(args[1]), header)
	}
	if err != nil {
		c.createError(err)
		return
	}
	c.unchanged = false
	c.w.SimpleString("OK")
}

// parseNest reads the arguments of CF.RESERVE. An option may be anywhere, and the first of
// several counts; words that are no options are ignored.
func parseNest(capacity []byte, words [][]byte) (config bloom.CuckooConfig, refusal string) {
	n, ok := integer(capacity)
	if !ok {
		return config, textNestCapacity
	}
	config.BucketSize = usualNestSlots
	for _, option := range nestOptions {
		for i, word := range words {
			if !is(word, option.word) {
				continue
			}
			if i+1 == len(words) {
				return config, "Couldn't parse " + option.word
			}
			value, ok := integer(words[i+1])
			if !ok {
				return config, "Couldn't parse " + option.word
			}
			if value < option.least || value > option.most {
				return config, fmt.Sprintf("%s: value must be in the range [%d, %d]", option.word, option.least, option.most)
			}
			option.set(&config, int(value))
			break
		}
	}
	if n < int64(2*config.BucketSize) || n > maxCapacity {
		return config, fmt.Sprintf("Capacity must be in the range [2 * BUCKETSIZE, %d]", maxCapacity)
	}
	config.Keys = uint64(n)
	return config, ""
}

// cfInsert executes CF.INSERT and CF.INSERTNX, which create the filter as the options say
// if there is none.
func (c *Client) cfInsert(args [][]byte) {
	var config bloom.CuckooConfig
	var items [][]byte
	create := true
	for options := args[2:]; len(options) > 0 && items == nil; options = options[1:] {
		// RedisBloom compares only the first letters.
		switch word := strings.ToUpper(clip(options[0])); {
		case strings.HasPrefix(word, "I"):
			items = options[1:]
		case strings.HasPrefix(word, "N"):
			create = false
		case !strings.HasPrefix(word, "C"):
			c.w.Error("Unknown argument received")
			return
		case len(options) == 1:
			c.wrongArity(c.server.commands.find(args[0]))
			return
		default:
			options = options[1:]
			n, ok := integer(options[0])
			switch {
			case !ok:
				c.w.Error(textNestCapacity)
				return
			case n < 2*usualNestSlots || n > maxCapacity:
				c.w.Error(fmt.Sprintf("Capacity must be in the range [cf-bucket-size * 2, %d]", maxCapacity))
				return
			}
			config.Keys = uint64(n)
		}
	}
	if len(items) == 0 {
		c.wrongArity(c.server.commands.find(args[0]))
		return
	}
	c.unchanged = true // except for what the run reports
	_, err := c.server.openNest(args[1])
	if errors.Is(err, store.ErrNotFound) && create {
		var header []byte
		if header, err = redisbloom.CuckooHeader(config); err == nil {
			_, err = c.server.openOrCreateNest(args[1], header)
		}
	}
	if err != nil {
		c.insertError(err)
		return
	}
	kind := runNestAdd
	if is(args[0], "CF.INSERTNX") {
		kind = runNestAddNew
	}
	c.batch.joinItems(c, kind, args[1], items, true)
	c.batch.flush()
}

// cfCount returns how many times an item is in a filter: 0 if there is none.
func (c *Client) cfCount(args [][]byte) {
	counts := make([]int, 1)
	filter, err := c.server.openNest(args[1])
	if err == nil {
		err = filter.Count(c.server.ctx, args[2:], counts)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrWrongKind) {
		c.storeError(err)
		return
	}
	c.w.Integer(int64(counts[0]))
}

func (c *Client) cfCompact(args [][]byte) {
	filter, err := c.server.openNest(args[1])
	if err == nil {
		err = filter.Compact(c.server.ctx)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrWrongKind):
		c.unchanged = true
		c.w.Error("Cuckoo filter was not found")
	case err != nil:
		c.storeError(err)
	default:
		c.w.SimpleString("OK")
	}
}

// nestInfo returns what is known of a filter, and replies with an error if there is none.
func (c *Client) nestInfo(name []byte) (info redisbloom.CuckooInfo, ok bool) {
	filter, err := c.server.openNest(name)
	if err == nil {
		info, err = filter.Cuckoo()
	}
	if err != nil {
		c.storeError(err)
	}
	return info, err == nil
}

func (c *Client) cfInfo(args [][]byte) {
	info, ok := c.nestInfo(args[1])
	if !ok {
		return
	}
	fields := []struct {
		name  string
		value uint64
	}{
		{"Size", info.Size},
		{"Number of buckets", info.Buckets},
		{"Number of filters", uint64(info.Filters)},
		{"Number of items inserted", info.Items},
		{"Number of items deleted", info.Removed},
		{"Bucket size", uint64(info.BucketSize)},
		{"Expansion rate", uint64(info.Expansion)},
		{"Max iterations", uint64(info.MaxMoves)},
	}
	c.w.Map(len(fields))
	for _, field := range fields {
		c.w.SimpleString(field.name)
		c.w.Integer(int64(field.value))
	}
}

func (c *Client) cfDebug(args [][]byte) {
	if info, ok := c.nestInfo(args[1]); ok {
		c.w.BulkString(fmt.Sprintf("bktsize:%d buckets:%d items:%d deletes:%d filters:%d max_iterations:%d expansion:%d",
			info.BucketSize, info.Buckets, info.Items, info.Removed, info.Filters, info.MaxMoves, info.Expansion))
	}
}

func (c *Client) cfScanDump(args [][]byte) {
	iterator, ok := integer(args[2])
	if !ok || iterator < 0 {
		c.w.Error(textNestPosition)
		return
	}
	filter, err := c.server.openNest(args[1])
	var info redisbloom.CuckooInfo
	if err == nil {
		info, err = filter.Cuckoo()
	}
	var next int64
	var chunk []byte
	if err == nil && info.Items > 0 { // RedisBloom returns nothing of an empty filter, not even its header
		next, chunk, err = filter.Dump(iterator)
	}
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Array(2)
	c.w.Integer(next)
	if next == 0 {
		c.w.Null()
	} else {
		c.bulk(chunk)
	}
}

func (c *Client) cfLoadChunk(args [][]byte) {
	c.unchanged = true
	iterator, ok := integer(args[2])
	if !ok || iterator == 0 {
		c.w.Error(textNestPosition)
		return
	}
	filter, err := c.server.openNest(args[1])
	switch {
	case err == nil && iterator == 1:
		err = store.ErrExists
	case err == nil:
		err = c.loadChunk(filter, iterator, args[3])
	case errors.Is(err, store.ErrNotFound) && iterator == 1:
		_, err = c.server.createNest(string(args[1]), args[3])
	}
	switch {
	case errors.Is(err, store.ErrExists):
		c.w.Error(textExists)
	case errors.Is(err, redisbloom.ErrCuckooHeader):
		c.w.Error(redisbloom.ErrCuckooHeader.Error())
	case errors.Is(err, store.ErrMemory):
		c.server.metrics.refuse(limitMemory)
		c.w.Error(redisbloom.ErrCuckooCreate.Error() + " " + reason(err))
	case errors.Is(err, redisbloom.ErrCuckooCreate):
		c.w.Error(redisbloom.ErrCuckooCreate.Error())
	case errors.Is(err, redisbloom.ErrCuckooChunk), errors.Is(err, store.ErrChunk):
		c.w.Error(redisbloom.ErrCuckooChunk.Error())
	case err != nil:
		c.storeError(err)
	default:
		c.unchanged = false
		c.w.SimpleString("OK")
	}
}
