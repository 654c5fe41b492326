package store

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// A filter of kind Counting has counters in place of bits: it is a bloom.Counting, or a
// bloom.ScalableCounting if it may grow. Changes hold the gate for writing. What the log has
// of them is what the counters of each key are afterwards; see logCounts.

// counted is what these filters have besides what all of our own layout have.
type counted interface {
	hashed
	ContainsHashes(hashes []uint64, found []bool) int
	RemoveHash(h uint64) bool
	Count(key []byte) int
	Saturated() uint64
	Len() uint64
}

// removes reports whether keys can be removed.
func (p *paired) removes() bool { return p.spec.Kind == Counting }

func (p *paired) counted() counted { return p.now().(counted) }

// planCounting plans a filter with counters. It returns the bytes that they take.
func planCounting(spec Spec, secret []byte) (build func() (hashed, error), bytes uint64, err error) {
	var plan bloom.Plan
	if spec.Growth != 0 {
		config := bloom.ScalableConfig{First: spec.Capacity, Rate: spec.Rate, Growth: int(min(spec.Growth, math.MaxInt32)), Secret: secret}
		plan, err = config.PlanCounting()
		build = func() (hashed, error) { return config.NewCounting() }
	} else {
		config := bloom.Config{Keys: spec.Capacity, Rate: spec.Rate, Secret: secret}
		plan, err = config.PlanCounting()
		build = func() (hashed, error) { return config.NewCounting() }
	}
	return build, countersBytes(plan), err
}

// countersBytes is the memory of a bloom.Counting.
func countersBytes(plan bloom.Plan) uint64 {
	return countingBytes + memory.Taken(plan.Blocks*kernel.CounterWordsPerBlock)
}

// beginCounting locks what a change of the counters needs.
func (p *paired) beginCounting(v *value) (unlock func(), err error) {
	gate := v.gate()
	gate.Lock()
	if v.isDropped() {
		err = errDropped
	} else {
		err = p.isLoading()
	}
	if err != nil {
		gate.Unlock()
		return nil, err
	}
	v.local.adding.RLock()
	return func() {
		p.items.Store(p.counted().Len())
		v.local.adding.RUnlock()
		gate.Unlock()
	}, nil
}

// addCounted is add.
func (p *paired) addCounted(v *value, hashes []uint64, isNew []bool) (done int, err error) {
	unlock, err := p.beginCounting(v)
	if err != nil {
		return 0, err
	}
	defer unlock()
	for done < len(hashes) && err == nil {
		n := int(min(p.countedRoom(hashes[done]), uint64(len(hashes)-done)))
		if n == 0 {
			err = p.growCounted()
			continue
		}
		layer, n := p.sameLayer(hashes[done:][:n])
		some := hashes[done:][:n]
		p.now().AddHashes(some, isNew[done:][:n])
		v.logCounts(p.counted(), layer, some)
		done += n
	}
	return done, err
}

// sameLayer returns the layer that the first of some hashes is added to, and how many of them,
// from the first on, are added there.
func (p *paired) sameLayer(hashes []uint64) (layer uint64, n int) {
	bits := p.counted()
	first, all := bloom.Inside.CountingLayers(bits)
	newest := first + uint64(len(all)) - 1
	if newest == first {
		return newest, len(hashes)
	}
	for i, h := range hashes {
		of, found := bloom.Inside.CountingLayer(bits, h)
		if !found {
			of = newest
		}
		if i > 0 && of != layer {
			return layer, i
		}
		layer = of
	}
	return layer, len(hashes)
}

// countedRoom is how many keys fit before the filter must grow or is full; h is the first.
func (p *paired) countedRoom(h uint64) uint64 {
	if bits, ok := p.now().(*bloom.ScalableCounting); ok {
		return bloom.Inside.CountingRoom(bits, h)
	}
	return p.spec.Capacity - min(p.counted().Len(), p.spec.Capacity)
}

// growCounted makes another layer, after reserving its memory.
func (p *paired) growCounted() error {
	bits, ok := p.now().(*bloom.ScalableCounting)
	if !ok {
		return fmt.Errorf("%w: it holds the %d keys it was made for, each as often as it was added: remove some, or make one that is larger, or that grows", ErrFull, p.spec.Capacity)
	}
	plan, err := bloom.Inside.NextCountingLayer(bits)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	bytes := countersBytes(plan)
	if err := p.local.grant(bytes); err != nil {
		return err
	}
	if err := bloom.Inside.GrowCounting(bits); err != nil {
		p.local.release(bytes)
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	p.charged.Add(bytes)
	return nil
}

func (p *paired) remove(v *value, keys [][]byte, removed []bool) (done int, err error) {
	unlock, err := p.beginCounting(v)
	if err != nil {
		return 0, err
	}
	defer unlock()
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	bits := p.counted()
	hashes := s.hashes[:len(keys)]
	bloom.Inside.Hashes(bits, keys, hashes)
	bits.ContainsHashes(hashes, removed) // fetches their counters side by side
	n, logged, layer := 0, 0, uint64(0)  // those of hashes that were removed, and are logged; the layer of the others
	for i, h := range hashes {
		of, found := bloom.Inside.CountingLayer(bits, h)
		if n > logged && found && of != layer {
			v.logCounts(bits, layer, hashes[logged:n])
			logged = n
		}
		if removed[i] = found && bits.RemoveHash(h); removed[i] {
			hashes[n], layer = h, of
			n++
		}
	}
	p.removed.Add(uint64(n))
	p.refused.Add(uint64(len(keys) - n))
	if n > 0 {
		v.logCounts(bits, layer, hashes[logged:n])
		p.payForLess()
	}
	return len(keys), nil
}

// payForLess releases the memory of the layers that a removal has emptied.
func (p *paired) payForLess() {
	if bits, ok := p.now().(*bloom.ScalableCounting); ok {
		if bytes := memoryOf(bits); bytes < p.charged.Load() {
			p.local.release(p.charged.Swap(bytes) - bytes)
		}
	}
}

func (p *paired) count(keys [][]byte, counts []int) {
	bits := p.counted()
	for i, key := range keys {
		counts[i] = bits.Count(key)
	}
}

// setLive sets how many keys a filter of fixed size has that was read from its file: that has
// no such number, and saturated counters do not show it.
func setLive(bits hashed, items uint64) {
	if f, ok := bits.(*bloom.Counting); ok && f.Saturated() > 0 {
		state := bloom.Inside.CountingState(f, 0)
		state.Live = items
		bloom.Inside.ReplayCounts(f, 0, state, func() (h, counts uint64, ok bool) { return 0, 0, false })
	}
}

// logCounts logs what the counters of hashes have now, which have just been added to a layer or
// removed from it: before another layer is changed, so that the log may end after any record. A
// layer that is gone needs no counts. As a record does not say how counters changed, it may be
// replayed on a snapshot that has some of these changes already, or later ones.
func (v *value) logCounts(bits counted, layer uint64, hashes []uint64) {
	if !v.logged() {
		return
	}
	first, all := bloom.Inside.CountingLayers(bits)
	if layer < first {
		hashes, layer = nil, first
	}
	state := bloom.Inside.CountingState(bits, layer)
	g := v.local.log
	b := appendAdds(g.begin(recordCounts), v.id, uint32(layer), uint32(len(hashes)))
	for _, field := range [...]uint64{state.First, state.Removed, state.Live, state.Added} {
		b = order.AppendUint64(b, field)
	}
	b = slices.Grow(b, 16*len(hashes))
	for _, h := range hashes {
		b = order.AppendUint64(b, h)
		b = order.AppendUint64(b, bloom.Inside.Counts(all[layer-first], h))
	}
	g.end(b, v.level)
}

// replayCounts replays a record of logCounts.
func (p *paired) replayCounts(layer uint32, f *fields) error {
	bits, ok := p.now().(counted)
	first, removed, live, added := f.uint64(), f.uint64(), f.uint64(), f.uint64()
	if f.bad || len(f.b)%16 != 0 || !ok || p.spec.Kind != Counting {
		return errors.New("it has too few bytes, or is not of this filter")
	}
	state := bloom.Inside.CountingState(bits, uint64(layer))
	state.First, state.Removed, state.Live, state.Added = first, removed, live, added
	err := bloom.Inside.ReplayCounts(bits, uint64(layer), state, func() (h, counts uint64, ok bool) {
		if len(f.b) == 0 {
			return 0, 0, false
		}
		return f.uint64(), f.uint64(), true
	})
	p.items.Store(bits.Len())
	return err
}

// imagePiece is how much of a file is read with the gate held. An image reads no less at a
// time.
const imagePiece = 2 << 20

// writeImage writes the file a piece at a time, while others change the counters.
func (p *paired) writeImage(v *value, bits hashed, to io.Writer) error {
	gate := v.gate()
	gate.RLock()
	image, err := bloom.Inside.Image(bits)
	gate.RUnlock()
	for at := uint64(0); err == nil; {
		gate.RLock()
		piece, failure := image.Piece(at, imagePiece)
		gate.RUnlock()
		if failure != nil || len(piece) == 0 {
			return failure
		}
		_, err = to.Write(piece)
		at += uint64(len(piece))
	}
	return err
}

// reportCounted measures the counters that are not zero as bits, a piece at a time, or of a
// large filter a sample.
func (p *paired) reportCounted(v *value, bits hashed) bloom.Report {
	const (
		blocks = 512
		most   = 64 // pieces of a layer
	)
	gate := v.gate()
	gate.RLock()
	_, layers := bloom.Inside.CountingLayers(bits)
	gate.RUnlock()
	var reports []bloom.Report
	words := make([]uint64, 0, blocks*kernel.WordsPerBlock)
	for _, layer := range layers {
		plan := layer.Plan()
		pieces := (plan.Blocks + blocks - 1) / blocks
		stride := (pieces + most - 1) / most
		var sample []uint64
		for i := uint64(0); i < pieces; i += stride {
			n := min(blocks, plan.Blocks-i*blocks)
			words = words[:n*kernel.WordsPerBlock]
			gate.RLock()
			bloom.Inside.NonZero(layer, i*blocks, words)
			gate.RUnlock()
			sample = append(sample, words...)
		}
		reports = append(reports, bloom.Inside.ReportOf(plan, sample))
	}
	r := bloom.Inside.ReportOfLayers(reports)
	r.Added = p.items.Load()
	return r
}
