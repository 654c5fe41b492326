package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/redisbloom"
)

// nest is RedisBloom's cuckoo filter. Its fingerprints move while keys are added, so changes
// hold the gate for writing. What the log has of them is what the slots have afterwards; see
// logSlots.
type nest struct {
	redisbloom.Cuckoo
	refused, removed atomic.Uint64
}

func (c *nest) kind() Kind    { return Cuckoo }
func (c *nest) removes() bool { return true }

// createNest creates an empty cuckoo filter with RedisBloom's bucket size and iterations.
func (l *Local) createNest(name string, spec Spec) (Filter, error) {
	header, err := redisbloom.CuckooHeader(bloom.CuckooConfig{
		Keys: spec.Capacity, Growth: int(min(spec.Growth, math.MaxInt32)), NonScaling: spec.Growth == 0,
	})
	if err != nil {
		return nil, err
	}
	return l.makeNest(name, header, spec.Level, toMillis(spec.Expires))
}

// LoadCuckoo creates a cuckoo filter from the first chunk of a dump.
func (l *Local) LoadCuckoo(ctx context.Context, name string, header []byte) (Filter, error) {
	return l.makeNest(name, header, StoreLevel, 0)
}

func (l *Local) makeNest(name string, header []byte, level Level, expires int64) (f Filter, err error) {
	level = l.levelOf(Cuckoo, level)
	err = l.change(func() error {
		v, err := l.createAs(name, level, func() (body, error) { return l.loadNest(header) })
		if err != nil {
			return err
		}
		l.logLoad(recordLoadCuckoo, v.id, name, level, header)
		if expires != 0 {
			l.logExpire(v.id, expires)
		}
		l.publish(v, expires)
		f = v
		return nil
	})
	return f, err
}

func (l *Local) loadNest(header []byte) (body, error) {
	c, err := redisbloom.Config{Grant: l.grantLayer, Release: l.releaseLayer}.LoadCuckooHeader(header)
	if err != nil {
		return nil, chunkError(err)
	}
	return &nest{Cuckoo: c}, nil
}

// free closes the filter, whose Close releases what was granted to it.
func (c *nest) free(l *Local) { l.discard(gone{bits: c.bits(), size: c.Bytes()}) }

func (c *nest) bits() io.Closer { return c.Cuckoo.Cuckoo }

// journals has space for the slots that a chunk of keys changes.
var journals = sync.Pool{New: func() any { return new([]uint64) }}

// changeSlots calls do for the n keys of a chunk, with the gate held, until it returns an
// error, and logs what it changes. do changes nothing if it returns an error.
func (c *nest) changeSlots(v *value, hashes []uint64, do func(i int, h uint64) error) (done int, err error) {
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	if v.isDropped() {
		return 0, errDropped
	}
	journal := journals.Get().(*[]uint64)
	before := c.state()
	v.local.adding.RLock()
	bloom.Inside.Journal(c.Cuckoo.Cuckoo, journal)
	// Looking some keys up fetches their buckets side by side.
	const ahead = 32
	var found [ahead]bool
	for done < len(hashes) && err == nil {
		if done%ahead == 0 {
			n := min(ahead, len(hashes)-done)
			c.ContainsHashes(hashes[done:][:n], found[:n])
		}
		if err = do(done, hashes[done]); err == nil {
			done++
		}
	}
	bloom.Inside.Journal(c.Cuckoo.Cuckoo, nil)
	if now := c.state(); len(*journal) > 0 || now != before {
		v.logSlots(now, done, *journal)
	}
	v.local.adding.RUnlock()
	if cap(*journal) <= 64*chunkKeys {
		*journal = (*journal)[:0]
		journals.Put(journal)
	}
	if errors.Is(err, bloom.ErrFull) || errors.Is(err, bloom.ErrLayers) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return done, err
}

// hash hashes a chunk of keys.
func (c *nest) hash(keys [][]byte, s *scratch) []uint64 {
	hashes := s.hashes[:len(keys)]
	bloom.Inside.Hashes(c, keys, hashes)
	return hashes
}

func (c *nest) add(v *value, keys [][]byte, isNew []bool) (done int, err error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	return c.changeSlots(v, c.hash(keys, s), func(i int, h uint64) error {
		isNew[i] = !c.ContainsHash(h)
		return c.InsertHash(h)
	})
}

func (c *nest) insert(v *value, keys [][]byte, unique bool, inserted []bool) (done int, err error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	return c.changeSlots(v, c.hash(keys, s), func(i int, h uint64) (err error) {
		if unique {
			inserted[i], err = c.InsertUniqueHash(h)
			return err
		}
		err = c.InsertHash(h)
		inserted[i] = err == nil
		return err
	})
}

func (c *nest) remove(v *value, keys [][]byte, removed []bool) (done int, err error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	done, err = c.changeSlots(v, c.hash(keys, s), func(i int, h uint64) error {
		removed[i] = c.RemoveHash(h)
		return nil
	})
	n := countTrue(removed[:done])
	c.removed.Add(uint64(n))
	c.refused.Add(uint64(done - n))
	return done, err
}

func (c *nest) count(keys [][]byte, counts []int) {
	for i, key := range keys {
		counts[i] = c.Count(key)
	}
}

func (c *nest) contains(keys [][]byte, found []bool) { c.ContainsMany(keys, found) }

// report counts the slots in use, a piece at a time.
func (c *nest) report(v *value, _ io.Closer) bloom.Report {
	var used, buckets []uint64
	info, err := v.Cuckoo()
	if err != nil {
		return bloom.Report{}
	}
	next := int64(1)
	for buffer := make([]byte, min(info.Size, loadPiece)); ; {
		layer, piece := c.piece(v, next, buffer)
		if piece == nil {
			break
		}
		for len(used) <= layer {
			used, buckets = append(used, 0), append(buckets, 0)
		}
		for _, b := range piece {
			if b != 0 {
				used[layer]++
			}
		}
		buckets[layer] += uint64(len(piece))
		next += int64(len(piece))
	}
	r := bloom.Report{Added: info.Items, Keys: float64(info.Items)}
	absent, slots := 1.0, uint64(0)
	for i := range used {
		slots += buckets[i]
		absent *= 1 - rate.Cuckoo(used[i], buckets[i]/uint64(info.BucketSize))
		r.Fill += float64(used[i])
	}
	if slots == 0 {
		return r
	}
	r.Plan = bloom.Plan{Keys: slots, Rate: 1 - absent, Bits: 8 * slots, Probes: info.BucketSize, Blocks: slots / uint64(info.BucketSize), Layout: bloom.Buckets}
	r.Fill /= float64(slots)
	r.Rate = 1 - absent
	r.Remaining = slots - min(slots, info.Items)
	return r
}

// piece copies slots from an offset, counted from 1, to the buffer: as many as it has room
// for, or as are left of the layer. It returns none at the end.
func (c *nest) piece(v *value, at int64, buffer []byte) (layer int, piece []byte) {
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	offset := uint64(at - 1)
	for i, slots := range bloom.Inside.CuckooSlots(c.Cuckoo.Cuckoo) {
		if size := uint64(len(slots)); offset >= size {
			offset -= size
			continue
		}
		return i, buffer[:copy(buffer, slots[offset:])]
	}
	return 0, nil
}

func (c *nest) info() Info {
	about, config := c.Cuckoo.Info(), c.Config()
	i := Info{
		Spec:    Spec{Kind: Cuckoo, Capacity: config.Keys, Growth: uint32(about.Expansion), Public: true},
		Bytes:   about.Size,
		Items:   about.Items,
		Removed: c.removed.Load(),
		Refused: c.refused.Load(),
	}
	for _, slots := range bloom.Inside.CuckooSlots(c.Cuckoo.Cuckoo) {
		n := uint64(len(slots))
		layer := Layer{Bytes: n, Bits: 8 * n, Probes: about.BucketSize, Capacity: n, Rate: rate.Cuckoo(n, n/uint64(about.BucketSize))}
		if about.Filters == 1 {
			layer.Items = i.Items
		}
		i.Room += n
		i.Rate = 1 - (1-i.Rate)*(1-layer.Rate)
		i.Layers = append(i.Layers, layer)
	}
	return i
}

func (c *nest) dump(v *value, iterator int64) (next int64, chunk []byte, err error) {
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		return 0, nil, errDropped
	}
	if iterator == 0 {
		return 1, c.Header(), nil
	}
	next, chunk = c.ScanDump(iterator)
	return next, chunk, nil
}

func (c *nest) load(v *value, iterator int64, chunk []byte) error {
	return v.loadPieces(iterator, chunk, func(at int64, piece []byte) error {
		return c.loadPiece(v, iterator, len(chunk), at, piece)
	})
}

// loadPiece loads one piece of a chunk of size bytes, if the whole chunk fits.
func (c *nest) loadPiece(v *value, iterator int64, size int, at int64, piece []byte) error {
	gate := v.gate()
	gate.Lock()
	defer gate.Unlock()
	if v.isDropped() {
		return errDropped
	}
	v.local.adding.RLock()
	defer v.local.adding.RUnlock()
	err := c.FitsChunk(iterator, size)
	if err == nil {
		err = c.LoadChunk(at, piece)
	}
	if err != nil {
		return chunkError(err)
	}
	v.logChunk(at, piece)
	return nil
}

func (c *nest) fold(*value, uint64) error {
	return fmt.Errorf("cuckoo filters cannot be folded: %w", errUnsupported)
}

// writeSlots writes the slots of the layers that a header describes, a piece at a time,
// while others change them. A layer that is dropped meanwhile is written as if it were empty:
// the log has that it was dropped.
func (c *nest) writeSlots(v *value, to io.Writer, sizes []uint64) error {
	buffer := make([]byte, min(slices.Max(sizes), contentBytes))
	for layer, first := 0, uint64(0); layer < len(sizes); layer++ {
		for at := uint64(0); at < sizes[layer]; {
			room := buffer[:min(sizes[layer]-at, contentBytes)]
			if _, piece := c.piece(v, int64(first+at)+1, room); piece == nil {
				clear(room)
			} else {
				room = piece
			}
			if _, err := to.Write(room); err != nil {
				return err
			}
			at += uint64(len(room))
		}
		first += sizes[layer]
	}
	return nil
}

// restore sets the slots from an offset on, of one layer or several.
func (c *nest) restore(offset uint64, data []byte) error {
	for _, slots := range bloom.Inside.CuckooSlots(c.Cuckoo.Cuckoo) {
		if size := uint64(len(slots)); offset >= size {
			offset -= size
			continue
		}
		data, offset = data[copy(slots[offset:], data):], 0
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes more than a cuckoo filter has slots", len(data))
	}
	return nil
}

// layerSizes returns how many slots each layer has. The gate is held.
func (c *nest) layerSizes() (sizes []uint64) {
	for _, slots := range bloom.Inside.CuckooSlots(c.Cuckoo.Cuckoo) {
		sizes = append(sizes, uint64(len(slots)))
	}
	return sizes
}

// Insert adds keys in order; see [Nest].
func (v *value) Insert(ctx context.Context, keys [][]byte, unique bool, inserted []bool) (int, error) {
	c, ok := v.body.(*nest)
	if !ok {
		return 0, fmt.Errorf("%w: not a cuckoo filter", ErrWrongKind)
	}
	return v.inChunks(ctx, keys, inserted, func(keys [][]byte, inserted []bool) (int, error) {
		return c.insert(v, keys, unique, inserted)
	})
}

// Compact moves keys to older layers; see [Nest].
func (v *value) Compact(ctx context.Context) error {
	c, ok := v.body.(*nest)
	if !ok {
		return fmt.Errorf("%w: not a cuckoo filter", ErrWrongKind)
	}
	var one [1]uint64
	_, err := c.changeSlots(v, one[:], func(int, uint64) error {
		c.Compact()
		return nil
	})
	return err
}

// Cuckoo returns what CF.INFO reports; see [Nest].
func (v *value) Cuckoo() (redisbloom.CuckooInfo, error) {
	c, ok := v.body.(*nest)
	if !ok {
		return redisbloom.CuckooInfo{}, fmt.Errorf("%w: not a cuckoo filter", ErrWrongKind)
	}
	gate := v.gate()
	gate.RLock()
	defer gate.RUnlock()
	if v.isDropped() {
		return redisbloom.CuckooInfo{}, errDropped
	}
	return c.Cuckoo.Info(), nil
}

// nestState is what a cuckoo filter has besides its slots.
type nestState struct {
	layers          int
	stored, removed uint64
}

func (c *nest) state() nestState { return nestState{c.LayerCount(), c.Len(), c.Removed()} }

// mostSlots is the most slots that one record has. A record of as many is continued by the
// next one of the same filter.
var mostSlots = 1 << 20

// logSlots logs what slots have now, in the order in which they changed, and the filter's new
// state. As a record does not say how they changed, it may be replayed on a snapshot that has
// some of these changes already, or later ones.
func (v *value) logSlots(now nestState, keys int, journal []uint64) {
	for v.logged() {
		part := journal[:min(len(journal), mostSlots)]
		journal = journal[len(part):]
		g := v.local.log
		b := appendAdds(g.begin(recordSlots), v.id, uint32(now.layers), uint32(keys))
		b = order.AppendUint64(b, now.stored)
		b = order.AppendUint64(b, now.removed)
		b = slices.Grow(b, 8*len(part))
		for _, entry := range part {
			b = order.AppendUint64(b, entry)
		}
		g.end(b, v.level)
		if keys = 0; len(part) < mostSlots {
			return
		}
	}
}

// replaySlots replays a record of logSlots. Those that are continued are held back: what they
// begin happens as a whole, or not at all if the log ends in between.
func (c *nest) replaySlots(held *[]uint64, layers int, f *fields) error {
	stored, removed := f.uint64(), f.uint64()
	if f.bad || len(f.b)%8 != 0 || layers > math.MaxInt32 {
		return errors.New("it has too few bytes")
	}
	part := len(f.b) / 8
	journal := slices.Grow(*held, part)
	for len(f.b) > 0 {
		journal = append(journal, f.uint64())
	}
	if *held = journal; part == mostSlots {
		return nil
	}
	*held = nil
	return bloom.Inside.ReplayCuckoo(c.Cuckoo.Cuckoo, journal, layers, stored, removed)
}
