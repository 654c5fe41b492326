package store

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
)

// paired is a filter of our own: a bloom.SyncFilter of fixed size, a
// bloom.Scalable, or a bloom.Window, which looks after its room itself: see window.go.
type paired struct {
	local *Local
	spec  Spec
	bits  atomic.Pointer[hashed]
	items atomic.Uint64 // adds that were new

	// left is how many keys may be added before anybody must look how much room
	// there is, which takes the gate alone. A window makes no use of it.
	left    atomic.Int64
	charged atomic.Uint64 // bytes that were granted for the bits

	moving   sync.Mutex
	incoming *incoming // a dump that is being loaded, guarded by the gate
	outgoing *outgoing // a dump that is being read, guarded by moving
}

// hashed is what our kinds of filter have in common.
type hashed interface {
	AddHashes(hashes []uint64, isNew []bool) int
	ContainsHash(h uint64) bool
	ContainsMany(keys [][]byte, found []bool) int
	Hash(key []byte) uint64
	HashIdentity() bloom.HashIdentity
	SetSecret(secret []byte) error
	Report() bloom.Report
	Saturate()
	io.WriterTo
}

// shared makes a SyncFilter one of them, which takes its secret before it is
// shared.
type shared struct{ *bloom.SyncFilter }

func (shared) SetSecret([]byte) error { return nil }

func (p *paired) now() hashed { return *p.bits.Load() }

func (p *paired) set(bits hashed) {
	if w, ok := bits.(*bloom.Window); ok {
		p.limit(w)
	}
	p.bits.Store(&bits)
}

func (p *paired) kind() Kind { return p.spec.Kind }

func (p *paired) giveBack(l *Local) {
	if w, ok := p.now().(*bloom.Window); ok {
		w.SetLimits(p.mostKeys(), nil, nil)
	}
	l.release(p.charged.Load())
}

// lockedBytes is what bits take together with their locks, see kernel.NewStripes.
func lockedBytes(plan bloom.Plan) uint64 {
	stripes := uint64(1)
	for stripes < plan.Blocks && stripes < kernel.MaxStripes {
		stripes *= 2
	}
	return plan.Bytes() + stripes*64
}

// Where it costs less than a hundredth, fixed filters have a multiple of so many
// blocks, so that they can be folded.
const (
	folds     = 64
	blockBits = 4096
)

// newPaired makes an empty filter by its Spec.
func (l *Local) newPaired(spec Spec) (body, error) {
	secret := l.secret
	if spec.Public {
		secret = nil
	}
	p := &paired{local: l, spec: spec}
	var bytes uint64
	var build func() (hashed, error)
	switch {
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
			plan.Bits += folds * blockBits
		}
		bytes = lockedBytes(plan)
		build = func() (hashed, error) {
			f, err := config.NewSync()
			return shared{f}, err
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

// room is how many new keys fit before the filter must grow, or is full. The gate
// is held alone.
func (p *paired) room() uint64 {
	switch bits := p.now().(type) {
	case *bloom.Scalable:
		if bits.Err() != nil {
			return 0
		}
		_, room := bits.Newest()
		return room
	}
	return p.spec.Capacity - min(p.items.Load(), p.spec.Capacity)
}

// grow takes the memory for another layer, which the next new key makes.
func (p *paired) grow(v *value) error {
	bits, ok := p.now().(*bloom.Scalable)
	if !ok {
		return fmt.Errorf("%w: it holds the %d keys it was made for: make one that is larger, or that grows", ErrFull, p.spec.Capacity)
	}
	if err := bits.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	plan, err := bits.Next()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if v.dropped.Load() {
		return nil
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
	hashes, bits := s.hashes[:len(keys)], p.now()
	for i, key := range keys {
		hashes[i] = bits.Hash(key)
	}
	if p.spec.Kind == Window {
		return p.addToWindow(v, hashes, isNew)
	}
	gate := v.gate()
	gate.RLock()
	if p.left.Add(-int64(len(keys))) >= 0 {
		p.addHashes(v, hashes, isNew)
		gate.RUnlock()
		return len(keys), nil
	}
	p.left.Add(int64(len(keys)))
	gate.RUnlock()

	gate.Lock()
	defer gate.Unlock()
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
		p.addHashes(v, hashes[done:][:n], isNew[done:][:n])
		done += n
	}
	p.left.Store(int64(min(p.room(), math.MaxInt64)))
	return done, err
}

// addHashes adds, counts and logs.
func (p *paired) addHashes(v *value, hashes []uint64, isNew []bool) {
	l := p.local
	l.underway.RLock()
	n := p.now().AddHashes(hashes, isNew)
	p.items.Add(uint64(n))
	v.logHashes(0, n, hashes, isNew)
	l.underway.RUnlock()
}

func (p *paired) contains(keys [][]byte, found []bool) { p.now().ContainsMany(keys, found) }

func (p *paired) report() bloom.Report {
	r := p.now().Report()
	r.Added = p.items.Load()
	return r
}

func (p *paired) info() Info {
	i := Info{Spec: p.spec, Bytes: p.charged.Load(), Items: p.items.Load()}
	switch bits := p.now().(type) {
	case *bloom.Scalable:
		i.Layers = layersOf(bits.Sizes())
	case *bloom.Window:
		i.Layers = layersOf(bits.Sizes())
		i.Room = p.spec.Capacity
		return i
	case shared:
		i.Layers = layersOf([]bloom.LayerSize{{Plan: bits.Plan(), Added: i.Items}})
	}
	for _, layer := range i.Layers {
		i.Room += layer.Capacity
	}
	return i
}

func layersOf(sizes []bloom.LayerSize) (layers []Layer) {
	for _, s := range sizes {
		layers = append(layers, Layer{
			Bytes:    s.Plan.Bytes(),
			Bits:     s.Plan.Bits,
			Probes:   s.Plan.Probes,
			Capacity: s.Plan.Keys,
			Items:    s.Added,
			Rate:     s.Plan.Rate,
		})
	}
	return layers
}

// merge makes a filter that has the bits of both, and puts it in the place of the
// old one: who looks keys up is not held up.
func (p *paired) merge(v, from *value) error {
	other, ok := from.body.(*paired)
	if !ok {
		return fmt.Errorf("%w: one filter is our own, the other RedisBloom's", bloom.ErrUnlike)
	}
	merged, items, err := p.mergedWith(other)
	if err != nil {
		return err
	}
	v.logMerge(from.id, []uint64{items})
	p.replace(merged, items)
	return nil
}

// replace puts other bits in the place of those there are. The gate is held alone.
func (p *paired) replace(bits hashed, items uint64) {
	p.set(bits)
	p.items.Store(items)
	p.left.Store(0)
}

func (p *paired) mergedWith(other *paired) (hashed, uint64, error) {
	if err := errors.Join(p.isLoading(), other.isLoading()); err != nil {
		return nil, 0, err
	}
	ours, ok := p.now().(shared)
	theirs, ok2 := other.now().(shared)
	if !ok || !ok2 {
		return nil, 0, fmt.Errorf("filters that grow or forget cannot be merged: %w", errUnsupported)
	}
	a, err := ours.Snapshot()
	if err != nil {
		return nil, 0, err
	}
	b, err := theirs.Snapshot()
	if err != nil {
		a.Close()
		return nil, 0, err
	}
	defer b.Close()
	if err := a.Union(b); err != nil {
		a.Close()
		return nil, 0, err
	}
	n, m := p.items.Load(), other.items.Load()
	items := uint64(min(max(a.Report().Keys, float64(max(n, m))), float64(n+m)))
	return shared{a.Share()}, items, nil
}

// fold makes a smaller filter and puts it in the place of the old one.
func (p *paired) fold(v *value, by uint64) error {
	folded, err := p.folded(by)
	if err != nil {
		return err
	}
	v.logFold(by)
	p.replace(folded, p.items.Load())
	p.charge(v, lockedBytes(folded.Plan()))
	return nil
}

// charge corrects what the filter has been granted to what it takes.
func (p *paired) charge(v *value, bytes uint64) {
	if before := p.charged.Load(); bytes < before && !v.dropped.Load() {
		p.charged.Store(bytes)
		p.local.release(before - bytes)
	}
}

func (p *paired) folded(by uint64) (shared, error) {
	if err := p.isLoading(); err != nil {
		return shared{}, err
	}
	bits, ok := p.now().(shared)
	if !ok {
		return shared{}, fmt.Errorf("filters that grow or forget cannot be folded: %w", errUnsupported)
	}
	whole, err := bits.Snapshot()
	if err != nil {
		return shared{}, err
	}
	defer whole.Close()
	folded, err := whole.Fold(by)
	if err != nil {
		return shared{}, err
	}
	return shared{folded.Share()}, nil
}
