package store

import (
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
)

// paired is a filter in our own layout: a bloom.Shared of fixed size, a bloom.Scalable,
// a bloom.Window, which manages its own room: see window.go, or a filter of counters: see
// counting.go.
type paired struct {
	local *Local
	spec  Spec
	live  atomic.Pointer[hashed] // the bits
	items atomic.Uint64          // adds that were new; of kind Counting, all less removals

	// left is how many keys may be added before the room must be checked, which
	// requires the gate for writing. A window does not use it.
	left    atomic.Int64
	charged atomic.Uint64 // bytes that were granted for the bits

	// layer is the index of a growing filter's newest layer, counted from the oldest,
	// 0. It changes only when left is used up, and is updated then.
	layer uint32

	removed, refused atomic.Uint64 // see Info

	twin *bloom.Shared // of a fold in progress, gets all adds, too; guarded by the gate

	moving   sync.Mutex // held while a chunk is loaded
	incoming *incoming  // a dump that is being loaded, guarded by the gate
	sending  sync.Mutex
	outgoing *outgoing // a dump that is being read, guarded by sending
}

// hashed is what these kinds of filter have in common.
type hashed interface {
	bloom.Any
	AddHashes(hashes []uint64, isNew []bool) int
	ContainsHash(h uint64) bool
	Hash(key []byte) uint64
	HashIdentity() bloom.HashIdentity
	SetSecret(secret []byte) error
	io.WriterTo
}

func (p *paired) now() hashed { return *p.live.Load() }

// set makes bits the filter's. Their memory has been granted.
func (p *paired) set(bits hashed) {
	if w, ok := bits.(*bloom.Window); ok {
		p.limit(w)
	}
	p.live.Store(&bits)
}

func (p *paired) kind() Kind { return p.spec.Kind }

func (p *paired) bits() io.Closer { return p.now() }

func (p *paired) free(l *Local) {
	p.endDump()
	p.incoming = nil
	if bits := p.live.Swap(nil); bits != nil {
		p.unlimit(*bits)
		l.discard(gone{*bits, memoryOf(*bits), p.charged.Load()})
	} else {
		l.release(p.charged.Load())
	}
}

// Where it costs less than a hundredth, the blocks of fixed filters are a multiple of
// this number, so that they can be folded.
const folds = 64

// newPaired creates an empty filter from its Spec.
func (l *Local) newPaired(spec Spec) (body, error) {
	secret := l.secret
	if spec.Public {
		secret = nil
	}
	p := &paired{local: l, spec: spec}
	var bytes uint64
	var build func() (hashed, error)
	switch {
	case spec.Kind == Counting:
		var err error
		if build, bytes, err = planCounting(spec, secret); err != nil {
			return nil, err
		}
	case spec.Kind == Window:
		config := bloom.WindowConfig{Keys: spec.Capacity, Rate: spec.Rate, Span: spec.Span, Generations: l.config.Generations, Secret: secret, Now: l.windowNow}
		plan, err := config.Plan()
		if err != nil {
			return nil, err
		}
		filters := uint64(config.Generations + 2)
		plan.Blocks /= filters
		plan.Bits /= filters
		bytes = filters * lockedBytes(plan)
		build = func() (hashed, error) { return config.New() }
	case spec.Growth != 0:
		config := bloom.ScalableConfig{First: spec.Capacity, Rate: spec.Rate, Growth: int(min(spec.Growth, math.MaxInt32)), Secret: secret}
		plan, err := config.Plan()
		if err != nil {
			return nil, err
		}
		bytes = lockedBytes(plan)
		build = func() (hashed, error) { return config.New() }
	default:
		config := bloom.Config{Keys: spec.Capacity, Rate: spec.Rate, Secret: secret}
		plan, err := config.Plan()
		if err != nil {
			return nil, err
		}
		if plan.Blocks >= 100*folds {
			config.Folds = folds
			plan.Blocks += folds
			plan.Bits += folds * kernel.BlockBits
		}
		bytes = lockedBytes(plan)
		build = func() (hashed, error) {
			f, err := config.NewShared()
			return f, err
		}
	}
	if err := l.grant(bytes); err != nil {
		return nil, err
	}
	bits, err := build()
	if err != nil {
		l.release(bytes)
		return nil, err
	}
	p.charged.Store(bytes)
	p.set(bits)
	return p, nil
}

// room is the number of new keys that fit before the filter must grow or is full. The
// gate is held for writing.
func (p *paired) room() uint64 {
	switch bits := p.now().(type) {
	case *bloom.Scalable:
		if bits.Err() != nil {
			return 0
		}
		_, room := bloom.Inside.NewestLayer(bits)
		return room
	}
	return p.spec.Capacity - min(p.items.Load(), p.spec.Capacity)
}

// grow reserves the memory of another layer, which the next new key creates.
func (p *paired) grow(v *value) error {
	bits, ok := p.now().(*bloom.Scalable)
	if !ok {
		return fmt.Errorf("%w: it holds the %d keys it was made for: make one that is larger, or that grows", ErrFull, p.spec.Capacity)
	}
	if err := bits.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	plan, err := bloom.Inside.NextLayer(bits)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	bytes := lockedBytes(plan)
	if err := p.local.grant(bytes); err != nil {
		return err
	}
	p.charged.Add(bytes)
	return nil
}

func (p *paired) add(v *value, keys [][]byte, isNew []bool) (done int, err error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	gate := v.gate()
	gate.RLock()
	if v.isDropped() {
		gate.RUnlock()
		return 0, errDropped
	}
	hashes, bits := s.hashes[:len(keys)], p.now()
	bloom.Inside.Hashes(bits, keys, hashes)
	if p.spec.Kind == Window {
		defer gate.RUnlock()
		return p.addToWindow(v, hashes, isNew)
	}
	if p.spec.Kind == Counting {
		gate.RUnlock()
		return p.addCounted(v, hashes, isNew)
	}
	if p.left.Add(-int64(len(keys))) >= 0 {
		p.addHashes(v, hashes, isNew, false)
		gate.RUnlock()
		return len(keys), nil
	}
	p.left.Add(int64(len(keys)))
	gate.RUnlock()

	gate.Lock()
	defer gate.Unlock()
	if v.isDropped() {
		return 0, errDropped
	}
	if err := p.isLoading(); err != nil {
		return 0, err
	}
	for done < len(hashes) {
		fit := p.room()
		if fit == 0 {
			if isNew[done] = false; p.now().ContainsHash(hashes[done]) {
				done++
				continue
			}
			if err = p.grow(v); err != nil {
				break
			}
			fit = 1
		}
		n := int(min(fit, uint64(len(hashes)-done)))
		p.addHashes(v, hashes[done:][:n], isNew[done:][:n], true)
		done += n
	}
	p.left.Store(int64(min(p.room(), math.MaxInt64)))
	return done, err
}

// addHashes adds, counts and logs. The filter grows only while the gate is held for
// writing, and only before the first of the keys, so all of them go into one layer.
func (p *paired) addHashes(v *value, hashes []uint64, isNew []bool, alone bool) {
	l := p.local
	l.adding.RLock()
	n := p.now().AddHashes(hashes, isNew)
	if p.twin != nil {
		p.twin.AddHashes(hashes, nil)
	}
	p.items.Add(uint64(n))
	if bits, ok := p.now().(*bloom.Scalable); ok && alone {
		p.layer = uint32(len(bloom.Inside.Sizes(bits)) - 1)
	}
	v.logHashes(0, p.layer, n, hashes, isNew)
	l.adding.RUnlock()
}

func (p *paired) contains(keys [][]byte, found []bool) { p.now().ContainsMany(keys, found) }

func (p *paired) report(v *value, bits io.Closer) bloom.Report {
	if p.spec.Kind == Counting {
		return p.reportCounted(v, bits.(hashed))
	}
	r := bits.(hashed).Report()
	r.Added = p.items.Load()
	return r
}

func (p *paired) info() Info {
	i := Info{Spec: p.spec, Bytes: p.charged.Load(), Items: p.items.Load()}
	if in := p.incoming; in != nil {
		i.Loaded, i.ToLoad = in.have, in.size
	}
	switch bits := p.now().(type) {
	case *bloom.Scalable:
		for _, layer := range bloom.Inside.Sizes(bits) {
			i.Layers = append(i.Layers, layerOf(layer.Plan, layer.Added))
		}
	case *bloom.Window:
		for _, layer := range bloom.Inside.Sizes(bits) {
			i.Layers = append(i.Layers, layerOf(layer.Plan, layer.Added))
		}
		i.Room = p.spec.Capacity
		return i
	case *bloom.Shared:
		i.Layers = []Layer{layerOf(bits.Plan(), i.Items)}
	case counted:
		i.Removed, i.Refused, i.Stuck = p.removed.Load(), p.refused.Load(), bits.Saturated()
		_, layers := bloom.Inside.CountingLayers(bits)
		for _, layer := range layers {
			i.Layers = append(i.Layers, layerOf(layer.Plan(), layer.Len()))
			i.Layers[len(i.Layers)-1].Bytes = layer.Bytes()
		}
	}
	for _, layer := range i.Layers {
		i.Room += layer.Capacity
	}
	return i
}

func layerOf(plan bloom.Plan, items uint64) Layer {
	return Layer{
		Bytes:    plan.Bytes(),
		Bits:     plan.Bits,
		Probes:   plan.Probes,
		Capacity: plan.Keys,
		Items:    items,
		Rate:     plan.Rate,
	}
}

// replace replaces the filter's bits by others, for which bytes of memory were granted.
// The gate is held for writing.
func (p *paired) replace(bits hashed, items, bytes uint64) {
	old := p.live.Load()
	if old != nil {
		p.unlimit(*old)
	}
	granted := p.charged.Swap(bytes)
	p.set(bits)
	if c, ok := bits.(counted); ok {
		items = c.Len()
	}
	p.items.Store(items)
	p.left.Store(0)
	if old != nil {
		p.local.discard(gone{*old, memoryOf(*old), granted})
	} else {
		p.local.release(granted)
	}
}
