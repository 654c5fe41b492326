package server

import (
	"errors"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
)

func (c *Client) bfScanDump(args [][]byte) {
	filter, err := c.server.openBloom(args[1])
	if err != nil {
		c.storeError(err)
		return
	}
	iterator, ok := integer(args[2])
	if !ok {
		c.w.Error("Second argument must be numeric")
		return
	}
	next, chunk, err := filter.Dump(iterator)
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Array(2)
	c.w.Integer(next)
	c.bulk(chunk)
}

const textBadChunk = "ERR received bad data"

func (c *Client) bfLoadChunk(args [][]byte) {
	iterator, ok := integer(args[2])
	if !ok {
		c.w.Error("ERR Second argument must be numeric")
		return
	}
	filter, err := c.server.openBloom(args[1])
	if errors.Is(err, store.ErrNotFound) && iterator == 1 {
		_, err = c.server.store.Load(c.server.ctx, string(args[1]), args[3])
	} else if err == nil {
		err = c.loadChunk(filter, iterator, args[3])
	}
	switch {
	case errors.Is(err, bloom.ErrSecret): // a dump of ours, from another store
		c.w.Error(textBadChunk + ": " + reason(err))
	case errors.Is(err, store.ErrChunk):
		c.w.Error(chunkError(filter, iterator, len(args[3])))
	case errors.Is(err, store.ErrMemory):
		c.server.metrics.refuse(limitMemory)
		c.w.Error(textBadChunk + ": " + reason(err))
	case err != nil:
		c.storeError(err)
	default:
		c.w.SimpleString("OK")
	}
}

// largestPiece is how much of a chunk is loaded at a time. RedisBloom makes no longer
// chunks.
const largestPiece = 16 << 20

// loadChunk loads a chunk into a filter, in pieces if it is long. Nothing is loaded of
// a chunk that does not fit.
func (c *Client) loadChunk(filter store.Filter, iterator int64, chunk []byte) error {
	if len(chunk) > largestPiece {
		if info := filter.Info(); (info.Kind == store.RedisBloom || info.Kind == store.Cuckoo) && chunkRefusal(&info, iterator, len(chunk)) != "" {
			return store.ErrChunk
		}
	}
	for len(chunk) > largestPiece {
		rest := chunk[largestPiece:]
		if err := filter.Load(c.server.ctx, iterator-int64(len(rest)), chunk[:largestPiece]); err != nil {
			return err
		}
		chunk = rest
	}
	return filter.Load(c.server.ctx, iterator, chunk)
}

// chunkError says what is wrong with a chunk, in RedisBloom's words. filter is nil for
// the first chunk.
func chunkError(filter store.Filter, iterator int64, size int) string {
	if filter == nil {
		return textBadChunk
	}
	info := filter.Info()
	if text := chunkRefusal(&info, iterator, size); info.Kind == store.RedisBloom && text != "" {
		return text
	}
	return textBadChunk
}

// chunkRefusal is RedisBloom's error for a chunk of a filter of its kind, "" if the
// chunk fits: a chunk ends before the iterator and must lie within a layer.
func chunkRefusal(info *store.Info, iterator int64, size int) string {
	if iterator <= 0 || int64(size) > iterator {
		return textBadChunk
	}
	if at := iterator - 1 - int64(size); at >= 0 {
		for _, layer := range info.Layers {
			if at < int64(layer.Bytes) {
				if int64(size) > int64(layer.Bytes)-at {
					return "ERR invalid chunk - Too big for current filter"
				}
				return ""
			}
			at -= int64(layer.Bytes)
		}
	}
	return "ERR invalid offset - no link found"
}
