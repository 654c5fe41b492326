package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// chain is RedisBloom's filter. It is a single pointer, so it takes no memory of its
// own in a value.
type chain struct{ *redisbloom.Filter }

func (c chain) kind() Kind { return RedisBloom }

func (l *Local) newChain(spec Spec) (body, error) {
	c, err := redisbloom.New(redisbloom.Config{
		Keys:       spec.Capacity,
		Rate:       spec.Rate,
		Growth:     spec.Growth,
		NonScaling: spec.Growth == 0,
		Grant:      l.grantLayer,
		Release:    l.releaseLayer,
	})
	if err != nil {
		return nil, err
	}
	return chain{c}, nil
}

func (l *Local) loadChain(header []byte) (body, error) {
	c, err := redisbloom.Config{Grant: l.grantLayer, Release: l.releaseLayer}.LoadHeader(header)
	if err != nil {
		return nil, chunkError(err)
	}
	return chain{c}, nil
}

// free closes the chain, whose Close releases what was granted to it.
func (c chain) free(l *Local) { l.discard(gone{bits: c.Filter, size: c.Info().Size}) }

func (c chain) bits() io.Closer { return c.Filter }

func (c chain) add(v *value, keys [][]byte, isNew []bool) (done int, err error) {
	s := scratches.Get().(*scratch)
	pairs := s.pairs[:len(keys)]
	redisbloom.HashMany(keys, pairs)
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		scratches.Put(s)
		return 0, errDropped
	}
	v.local.adding.RLock()
	for done < len(pairs) && err == nil {
		var n, layer int
		n, layer, err = c.AddPairs(pairs[done:], isNew[done:])
		v.logPairs(layer, pairs[done:][:n], isNew[done:][:n])
		done += n
	}
	v.local.adding.RUnlock()
	scratches.Put(s)
	if errors.Is(err, redisbloom.ErrFull) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return done, err
}

func (c chain) contains(keys [][]byte, found []bool) { c.ContainsMany(keys, found) }

func (c chain) report(*value, io.Closer) bloom.Report { return c.Report() }

func (c chain) info() Info {
	info, layers := c.Info(), c.Layers()
	i := Info{
		Spec: Spec{
			Kind:     RedisBloom,
			Capacity: layers[0].Capacity,
			Rate:     layers[0].Rate,
			Growth:   info.Expansion,
			Public:   true,
		},
		Bytes: info.Size,
		Items: info.Items,
		Room:  info.Capacity,
	}
	if info.Expansion != 0 {
		i.Rate *= 2 // RedisBloom halves it for the first layer
	}
	for _, layer := range layers {
		i.Layers = append(i.Layers, Layer(layer))
	}
	return i
}

func (c chain) dump(v *value, iterator int64) (next int64, chunk []byte, err error) {
	bits, err := v.hold()
	if err != nil {
		return 0, nil, err
	}
	defer v.local.unpin(bits)
	next, chunk = c.ScanDump(iterator)
	return next, chunk, nil
}

func (c chain) load(v *value, iterator int64, chunk []byte) error {
	return v.loadPieces(iterator, chunk, func(at int64, piece []byte) error {
		if err := c.touchPiece(v, at, piece); err != nil {
			return err
		}
		return c.loadPiece(v, iterator, chunk, at, piece)
	})
}

// loadPieces calls load with a chunk of one of RedisBloom's dumps, a piece at a time, so that
// nobody waits long for the gate, or for a commit that has to write all of it. at is the
// iterator that would come with the piece.
func (v *value) loadPieces(iterator int64, chunk []byte, load func(at int64, piece []byte) error) error {
	if len(chunk) > maxLoad {
		return chunkError(fmt.Errorf("%w: %d bytes, of at most %d", bloom.ErrLimit, len(chunk), maxLoad))
	}
	for at := iterator - int64(len(chunk)); ; {
		piece := chunk[:min(len(chunk), loadPiece)]
		at += int64(len(piece))
		if err := load(at, piece); err != nil {
			return err
		}
		if chunk = chunk[len(piece):]; len(chunk) == 0 {
			return nil
		}
		if err := v.local.settle(); err != nil {
			return err
		}
	}
}

// touchPiece makes the memory for a piece ready while others use the filter.
func (c chain) touchPiece(v *value, at int64, piece []byte) error {
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		return errDropped
	}
	c.TouchChunk(at, piece)
	return nil
}

// loadPiece loads one piece of a chunk, if the whole chunk fits. It checks that for each
// piece: the gate was free in between, so the filter may have changed.
func (c chain) loadPiece(v *value, iterator int64, chunk []byte, at int64, piece []byte) error {
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	if v.isDropped() {
		return errDropped
	}
	if v.busy&(mergedInto|mergedFrom) != 0 {
		return chunkError(errors.New("the filter is being merged: load the chunk when that is done"))
	}
	v.local.adding.RLock()
	defer v.local.adding.RUnlock()
	err := c.FitsChunk(iterator, chunk)
	if err == nil {
		err = c.LoadChunk(at, piece)
	}
	if err != nil {
		return chunkError(err)
	}
	if v.logsAdds() { // otherwise it may have grown without a record of it
		v.logChunk(at, piece)
	}
	return nil
}
