package server

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

func (c *Client) bfSwap(args [][]byte) {
	err := c.server.store.Swap(c.server.ctx, string(args[1]), string(args[2]))
	switch {
	case errors.Is(err, store.ErrNotFound):
		c.w.Error(textNoKey)
	case err != nil:
		c.storeError(err)
	default:
		c.w.SimpleString("OK")
	}
}

// bfMerge opens all filters before it changes one.
func (c *Client) bfMerge(args [][]byte) {
	s := c.server
	var sources []store.Filter
	for _, name := range args[2:] {
		if bytes.Equal(name, args[1]) {
			continue // a filter merged into itself is unchanged
		}
		source, err := s.openWhole(name)
		if err != nil {
			c.storeError(err)
			return
		}
		sources = append(sources, source)
	}
	err := store.ErrExists
	for tries := 0; errors.Is(err, store.ErrExists) && tries < mergeTries; tries++ {
		var to store.Filter
		to, err = s.openWhole(args[1])
		switch {
		case errors.Is(err, store.ErrNotFound) && len(sources) > 0:
			err = c.makeAside(args[1], false, time.Time{}, func(aside string) error {
				to, err := s.createLike(aside, sources[0])
				if err != nil {
					return err
				}
				return mergeAll(s.ctx, to, sources)
			})
		case err == nil:
			err = mergeAll(s.ctx, to, sources)
		}
	}
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.SimpleString("OK")
}

var errRemovable = errors.New("a filter from which keys can be removed, of layout COUNTING or by CF.RESERVE, is neither merged nor folded")

// openWhole opens a filter for a command that changes it as a whole.
func (s *Server) openWhole(name []byte) (store.Filter, error) {
	filter, err := s.store.Open(name)
	if f, ok := filter.(store.Kinded); ok && (f.Kind() == store.Counting || f.Kind() == store.Cuckoo) {
		return nil, errRemovable
	}
	return filter, err
}

// mergeTries is how often BF.MERGE starts over because another client has created the
// filter that it was creating. It then merges into that one, unless it has been
// deleted.
const mergeTries = 3

func mergeAll(ctx context.Context, to store.Filter, sources []store.Filter) error {
	for _, source := range sources {
		if err := to.Merge(ctx, source); err != nil {
			return err
		}
	}
	return nil
}

// createLike creates an empty filter with the same layers, so that it can be merged
// with the same filters as this one. The time to live and the durability of adds are
// not copied: they belong to the name.
func (s *Server) createLike(name string, like store.Filter) (store.Filter, error) {
	spec := like.Info().Spec
	if spec.Kind != store.RedisBloom {
		spec.Expires, spec.Level = time.Time{}, store.StoreLevel
		return s.store.Create(s.ctx, name, spec)
	}
	_, header, err := like.Dump(0)
	if err != nil {
		return nil, err
	}
	if header, err = redisbloom.EmptyHeader(header); err != nil {
		return nil, err
	}
	return s.store.Load(s.ctx, name, header)
}

func (c *Client) bfFold(args [][]byte) {
	by, ok := integer(args[2])
	if !ok || by < 1 {
		c.w.Error("ERR bad factor: must be a whole number of at least 1")
		return
	}
	filter, err := c.server.openWhole(args[1])
	if err == nil {
		err = filter.Fold(c.server.ctx, uint64(by))
	}
	if errors.Is(err, bloom.ErrConfig) {
		c.w.Error("ERR the filter cannot be folded by " + strconv.FormatInt(by, 10) + ": the factor must divide the number of its blocks")
		return
	}
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.SimpleString("OK")
}
