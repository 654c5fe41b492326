package bloom

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
)

// LayerSize is one of a [Scalable]'s layers or of a [Window]'s generations, as far
// as can be told without reading its bits.
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

// Sizes describes the generations that keys were added in, oldest first. It costs
// little; [Window.Generations] says more.
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
func (f *SyncFilter) Folded(by uint64) (*SyncFilter, error) {
	f.mustBeOpen()
	if by == 0 || f.bits.Blocks%by != 0 {
		return nil, fmt.Errorf("%w: %d blocks cannot be folded by %d: make the filter with Config.Folds", ErrConfig, f.bits.Blocks, by)
	}
	g, err := newFilter(f.plan.folded(by), f.hash)
	if err != nil {
		return nil, err
	}
	g.meta = f.Meta()
	return g.Share(), nil
}

// SetAdded sets the number of adds that Report tells, for a caller who has counted
// them. Nobody may add meanwhile.
func (f *SyncFilter) SetAdded(n uint64) {
	for i := range f.stripes {
		f.stripes[i].Reset()
	}
	f.stripes[0].Count(n)
}

// Saturate sets all bits: every key is found from now on. It is for a filter that
// has lost some of its bits, where "perhaps" is the only answer that is never
// wrong.
func (f *SyncFilter) Saturate() {
	for i := range f.bits.Words {
		atomic.StoreUint64(&f.bits.Words[i], ^uint64(0))
	}
	runtime.KeepAlive(f)
}

// Saturate sets all bits of all layers; see [SyncFilter.Saturate].
func (f *Scalable) Saturate() {
	f.mustBeWritable()
	f.chain.Load().saturate()
}

// Saturate sets all bits of the generations that there are: every key is found
// for the next Span. See [SyncFilter.Saturate].
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

// Plan returns the sizing of all the filters that New makes, the spare one
// included: their blocks and bits, which say how much memory the window takes.
// Keys, Rate and Probes are those of one generation.
func (c WindowConfig) Plan() (Plan, error) {
	if c.Generations == 0 {
		c.Generations = defaultGenerations
	}
	plan, err := c.check()
	plan.Blocks *= uint64(c.Generations) + 2
	plan.Bits *= uint64(c.Generations) + 2
	return plan, err
}
