package server

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/bloomery/bloom/store"
)

// An infoField is a field of BF.INFO: the word that selects it, its name in the reply,
// and how its value is written.
type infoField struct {
	word, name string
	write      func(c *Client, filter store.Filter, info *store.Info)
}

// infoFields are RedisBloom's five, which BF.INFO returns if none is selected, followed
// by our own.
var infoFields = []infoField{
	{"CAPACITY", "Capacity", func(c *Client, _ store.Filter, info *store.Info) { c.w.Integer(int64(info.Room)) }},
	{"SIZE", "Size", func(c *Client, _ store.Filter, info *store.Info) { c.w.Integer(int64(info.Bytes)) }},
	{"FILTERS", "Number of filters", func(c *Client, _ store.Filter, info *store.Info) { c.w.Integer(int64(len(info.Layers))) }},
	{"ITEMS", "Number of items inserted", func(c *Client, _ store.Filter, info *store.Info) { c.w.Integer(int64(min(info.Items, math.MaxInt64))) }},
	{"EXPANSION", "Expansion rate", func(c *Client, _ store.Filter, info *store.Info) {
		if info.Growth == 0 {
			c.w.Null()
			return
		}
		c.w.Integer(int64(info.Growth))
	}},
	{"RATE", "Rate", func(c *Client, filter store.Filter, _ *store.Info) { c.w.Double(filter.Report().Rate) }},
	{"FILL", "Fill", func(c *Client, filter store.Filter, _ *store.Info) { c.w.Double(filter.Report().Fill) }},
	{"FULLAT", "Full at", func(c *Client, _ store.Filter, info *store.Info) {
		// The number of keys at which a filter without growth refuses more; for a
		// window, in its newest generation. Null if the filter grows.
		if info.Growth != 0 {
			c.w.Null()
			return
		}
		c.w.Integer(int64(info.Room))
	}},
	{"LAYOUT", "Layout", func(c *Client, _ store.Filter, info *store.Info) { c.w.BulkString(info.Kind.String()) }},
	{"LOADED", "Loaded", func(c *Client, _ store.Filter, info *store.Info) {
		// How many bytes of the file BF.LOADCHUNK has brought, for one that goes on
		// after a failure. Null if the filter is complete, or of RedisBloom's kind.
		if info.ToLoad == 0 {
			c.w.Null()
			return
		}
		c.w.Integer(int64(info.Loaded))
	}},
	{"REMOVED", "Number of items removed", func(c *Client, _ store.Filter, info *store.Info) { c.ofCounting(info, info.Removed) }},
	{"REFUSED", "Number of removals refused", func(c *Client, _ store.Filter, info *store.Info) { c.ofCounting(info, info.Refused) }},
	{"STUCK", "Number of stuck counters", func(c *Client, _ store.Filter, info *store.Info) { c.ofCounting(info, info.Stuck) }},
}

// ofCounting replies with a number that only filters of layout COUNTING have.
func (c *Client) ofCounting(info *store.Info, n uint64) {
	if info.Kind != store.Counting {
		c.w.Null()
		return
	}
	c.w.Integer(int64(n))
}

const plainInfoFields = 5

func (c *Client) bfInfo(args [][]byte) {
	if len(args) > 3 {
		c.wrongArity(c.server.commands.find(args[0]))
		return
	}
	filter, err := c.server.openBloom(args[1])
	if err != nil {
		c.storeError(err)
		return
	}
	info := filter.Info()
	if info.Kind == store.None { // dropped just now
		c.storeError(store.ErrNotFound)
		return
	}
	if len(args) == 2 {
		c.w.Map(plainInfoFields)
		for _, field := range infoFields[:plainInfoFields] {
			c.w.SimpleString(field.name)
			field.write(c, filter, &info)
		}
		return
	}
	for _, field := range infoFields {
		if !is(args[2], field.word) {
			continue
		}
		if c.w.Protocol == 3 {
			c.w.Map(1)
			c.w.SimpleString(field.name)
		} else {
			c.w.Array(1)
		}
		field.write(c, filter, &info)
		return
	}
	c.w.Error("Invalid information value")
}

func (c *Client) bfCard(args [][]byte) {
	filter, err := c.server.openBloom(args[1])
	switch {
	case errors.Is(err, store.ErrNotFound):
		c.w.Integer(0)
	case err != nil:
		c.storeError(err)
	default:
		c.w.Integer(int64(min(filter.Info().Items, math.MaxInt64))) // a dump may claim more
	}
}

const textNoRemovals = "ERR keys can be removed from a filter only if its layout is COUNTING: " +
	"make it by BF.RESERVE with LAYOUT COUNTING"

// bfCount returns how often an item is in a filter of layout COUNTING, or more.
func (c *Client) bfCount(args [][]byte) {
	counts := make([]int, 1)
	filter, err := c.server.openBloom(args[1])
	if err == nil {
		err = errors.ErrUnsupported
		if f, ok := filter.(store.Remover); ok {
			err = f.Count(c.server.ctx, args[2:], counts)
		}
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		c.w.Error("ERR only a filter of layout COUNTING counts its keys: make it by BF.RESERVE with LAYOUT COUNTING")
	case err != nil && !errors.Is(err, store.ErrNotFound):
		c.storeError(err)
	default:
		c.w.Integer(int64(counts[0]))
	}
}

func (c *Client) bfDebug(args [][]byte) {
	filter, err := c.server.openBloom(args[1])
	if err != nil {
		c.storeError(err)
		return
	}
	info := filter.Info()
	if info.Kind == store.None { // dropped just now
		c.storeError(store.ErrNotFound)
		return
	}
	c.w.Array(1 + len(info.Layers))
	c.w.BulkString("size:" + strconv.FormatUint(info.Items, 10))
	for _, layer := range info.Layers {
		c.w.BulkString(fmt.Sprintf("bytes:%d bits:%d hashes:%d hashwidth:64 capacity:%d size:%d ratio:%s",
			layer.Bytes, layer.Bits, layer.Probes, layer.Capacity, layer.Items,
			strconv.FormatFloat(layer.Rate, 'g', 6, 64))) // %g of C
	}
}
