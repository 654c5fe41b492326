package bloom

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
)

// LayerSize is one of the layers of a [Scalable] or of a [Window]'s generations, as
// far as can be told without reading its bits.
type LayerSize struct {
	Plan  Plan
	Added uint64 // adds that were new to it
}

// Sizes describes the layers, oldest first. It costs little; [Scalable.Layers]
// says more.
func (f *Scalable) Sizes() []LayerSize { return f.chain.Load().sizes() }

// Next returns the plan of the layer that comes after the newest one, so that who
// has a limit for many filters can see what growing will take. The error says why
// there may be none; see [Scalable.Err].
func (f *Scalable) Next() (Plan, error) { return f.nextPlan(f.chain.Load()) }

// Newest returns the plan of the layer that takes the adds, and how many new keys
// it takes before the filter grows. Adds wait while it counts.
func (f *Scalable) Newest() (plan Plan, room uint64) {
	for {
		c := f.chain.Load()
		c.lock()
		if f.chain.Load() == c {
			plan, room = c.layers[0].plan, uint64(c.collect())
			c.unlock()
			return plan, room
		}
		c.unlock()
	}
}

// Sizes describes the layers of all generations that there are, oldest first. It
// costs little; [Window.Generations] says more.
func (w *Window) Sizes() []LayerSize { return w.now().sizes() }

func (c *chain) sizes() []LayerSize {
	sizes := make([]LayerSize, 0, len(c.layers))
	for _, layer := range slices.Backward(c.layers) {
		sizes = append(sizes, LayerSize{layer.plan, layer.added()})
	}
	return sizes
}

// Folded returns an empty filter of a by-th of f's size, which holds f's keys after
// a Union with f: see [Filter.Fold]. So f can be folded while others use it, who add
// to both from before the Union begins. The error is as Fold's.
func (f *Shared) Folded(by uint64) (*Shared, error) {
	f.mustBeOpen()
	if by == 0 || f.bits.Blocks%by != 0 {
		return nil, fmt.Errorf("%w: %d blocks cannot be folded by %d: make the filter with Config.Folds", ErrConfig, f.bits.Blocks, by)
	}
	g, err := newFilter(f.plan.folded(by), f.Hasher)
	if err != nil {
		return nil, err
	}
	g.note(f.noted())
	return g.Share(), nil
}

// SetAdded sets the number of adds that Report tells, for a caller who has counted
// them. Nobody may add meanwhile.
func (f *Shared) SetAdded(n uint64) {
	for i := range f.stripes {
		f.stripes[i].Reset()
	}
	f.stripes[0].Count(n)
}

// Saturate sets all bits: every key is found from now on. It is for a filter that
// has lost some of its bits, where "perhaps" is the only answer that is never
// wrong.
func (f *Shared) Saturate() {
	for i := range f.bits.Words {
		atomic.StoreUint64(&f.bits.Words[i], ^uint64(0))
	}
	runtime.KeepAlive(f)
}

// Saturate sets all bits of all layers; see [Shared.Saturate].
func (f *Scalable) Saturate() {
	f.mustBeWritable()
	f.chain.Load().saturate()
}

// Saturate sets all bits of the generations that there are: every key is found
// for the next Span. See [Shared.Saturate].
func (w *Window) Saturate() { w.now().saturate() }

func (c *chain) saturate() {
	for _, layer := range c.layers {
		layer.Saturate()
	}
}

// Plan returns the plan of the first layer.
func (c ScalableConfig) Plan() (Plan, error) {
	_, plan, err := c.planned()
	return plan, err
}

// Plan returns the sizing of all the layers that New makes, one for each generation
// and a spare one: their blocks and bits, which say how much memory the window takes
// as long as keys come evenly. Keys, Rate and Probes are those of one. [WindowConfig.Layers] says
// what more a burst takes.
func (c WindowConfig) Plan() (Plan, error) {
	layers, err := c.Layers()
	if err != nil {
		return Plan{}, err
	}
	plan := layers[0]
	plan.Blocks *= uint64(c.generations()) + 2
	plan.Bits *= uint64(c.generations()) + 2
	return plan, nil
}

// Layers returns the plans of the layers of a generation in which all n keys come,
// oldest first: the first is made by New, the others when they are needed, and they
// are given up when the generation is forgotten. So of all n keys in one burst the
// window takes the memory of Plan and of these others, and when the same n keys are
// added again in every generation, all of these layers G+1 times and a spare first
// one.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget]; that a Budget suffices for
// the first layers does not say that it does for a burst.
func (c WindowConfig) Layers() ([]Plan, error) {
	c.Generations = c.generations()
	if err := c.check(maxGenerations); err != nil {
		return nil, err
	}
	first, err := c.firstPlan()
	if err != nil {
		return nil, err
	}
	if total := first.Bytes() * uint64(c.Generations+2); c.Budget != 0 && total > c.Budget {
		return nil, fmt.Errorf("%w: %d generations and a spare one of %d bytes need %d, the budget is %d: raise the budget or the rate, or plan for fewer keys",
			ErrBudget, c.Generations+1, first.Bytes(), total, c.Budget)
	}
	layers := []Plan{first}
	for room := uint64(layerRoom(first)); room < c.Keys; {
		next, err := c.nextPlan(layers)
		if err != nil {
			return nil, err
		}
		layers = append(layers, next)
		room += uint64(layerRoom(next))
	}
	return layers, nil
}

// generations is G with its default.
func (c WindowConfig) generations() int {
	if c.Generations == 0 {
		return defaultGenerations
	}
	return c.Generations
}

// windowLimits are what a store holds a window to. The zero windowLimits are none.
type windowLimits struct {
	keys    uint64 // the most in a generation, as far as TryAddHashes adds them; 0: no limit
	grant   func(layer Plan) error
	release func(layer Plan)
}

// room is how many keys fit where a plan leaves room for some and the generation has
// others already.
func (l *windowLimits) room(planned int64, keys uint64) int64 {
	if l.keys == 0 {
		return planned
	}
	return min(planned, int64(min(l.keys-min(keys, l.keys), math.MaxInt64)))
}

func (l *windowLimits) take(layer Plan) error {
	if l.grant == nil {
		return nil
	}
	return l.grant(layer)
}

func (l *windowLimits) giveBack(layer Plan) {
	if l.release != nil {
		l.release(layer)
	}
}

// SetLimits is for a store with a limit to many filters. keys is the most that
// TryAddHashes adds in a generation; zero means no limit. grant is asked before a
// generation takes a further layer, and its error is why there is none; release is
// told when such a layer is dropped. Both may be nil; they must not use the window.
func (w *Window) SetLimits(keys uint64, grant func(layer Plan) error, release func(layer Plan)) {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.limits = windowLimits{keys, grant, release}
	c := w.chain.Load()
	c.lock()
	defer c.unlock()
	_, held := c.generation()
	c.room.Store(w.limits.room(c.collect(), held))
}

// TryAddHashes is AddHashes, but ends before the first key for which there is no
// room, instead of taking the rate above what was asked. It returns how many keys
// were taken and, if not all, why: the error wraps [ErrFull], [ErrBudget], [ErrRate]
// or what a grant said.
func (w *Window) TryAddHashes(hashes []uint64, isNew []bool) (taken, added int, err error) {
	checkAnswers(len(hashes), isNew)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for taken < len(hashes) && err == nil {
		part := hashes[taken:min(taken+chunk, len(hashes))]
		var n, more int
		more, n, err = w.addPart(part, s.part(&isNew, len(part)), true)
		added, taken = added+more, taken+n
	}
	return taken, added, err
}
