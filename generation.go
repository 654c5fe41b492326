package bloom

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom/internal/filterfile"
)

// A Window's generation is a chain of its own, which begins with one layer. When a
// generation is full, a further layer doubles the number of keys that it has room
// for:
//
//	keys    q        q        2q                4q
//	     +--------+--------+----------------+--------------------------------+
//	     | first  |        |                |                                |
//	     +--------+--------+----------------+--------------------------------+
//	rate    s/2      s/4      s/8              s/16           s = p/(G+1)
//
// q is n/G and a little more, so that keys that come evenly need only the first
// layer. However many layers there will be, the rates of a generation add up to less
// than s, and those of the G+1 that are looked in to less than p.
//
// A generation that n keys come into at once has 1 + log2(G) layers, rounded up. All
// of them may have to hold n, as when the same keys are added again and again. A
// file has room for filterfile.MaxSections layers. So with more than mostDoubling generations
// the second layer makes room for n at once.

// mostDoubling is the largest G with (G+1)(1 + log2(G)), rounded up, at most
// filterfile.MaxSections.
const mostDoubling = 11

// share is s, a generation's part of the rate.
func (c WindowConfig) share() float64 { return c.Rate / float64(c.Generations+1) }

// firstPlan sizes the first layer of a generation. Keys that come evenly, but
// independently of each other, are Poisson distributed: four standard deviations more
// room let a generation grow once in some thirty thousand.
func (c WindowConfig) firstPlan() (Plan, error) {
	g := uint64(c.Generations)
	keys := c.Keys / g
	if c.Keys%g != 0 {
		keys++
	}
	if keys > maxKeys {
		keys = c.Keys // for Plan to refuse
	} else {
		keys = min(keys+uint64(math.Ceil(4*math.Sqrt(float64(keys)))), c.Keys)
	}
	return planLayer(keys, c.share()/2)
}

// nextPlan sizes the layer that comes after those of a generation, oldest first. It
// gets half of what they have left of the generation's share of the rate.
func (c WindowConfig) nextPlan(layers []Plan) (Plan, error) {
	room, spent := int64(0), 0.
	for _, plan := range layers {
		room += layerRoom(plan)
		spent += plan.Rate
	}
	if c.Generations > mostDoubling && len(layers) == 1 {
		room *= int64(c.Generations - 1)
	}
	left := (c.share() - spent) / 2
	if left <= 0 {
		return Plan{}, fmt.Errorf("%w: the layers of the generation have all of its share of the rate, %.3g", ErrRate, c.share())
	}
	return planLayer(uint64(room), left)
}

// firstLike returns the plan for the first layers of a window that was stored: of
// the size of those in the file. What older releases wrote had only first layers,
// which took all of the generation's share; those that come get half of it.
func (c WindowConfig) firstLike(sections []filterfile.Section) Plan {
	e := &sections[0]
	for i := range sections {
		if sections[i].Start != e.Start { // of the newest generation
			e = &sections[i]
		}
	}
	stored := pairedPlan(e.Keys, e.Rate, e)
	if stored.Rate <= c.share()/2 {
		return stored
	}
	halved, err := Config{Bits: stored.Bits, Probes: stored.Probes, Rate: c.share() / 2}.Plan()
	if err != nil { // a rate that is just possible
		return stored
	}
	return halved
}

// checkSections refuses what cannot be a window's layers, oldest first, and counts
// the generations.
func (c WindowConfig) checkSections(sections []filterfile.Section) (generations int, err error) {
	like, step := sections[0], c.step()
	for i, e := range sections {
		if plan := pairedPlan(e.Keys, e.Rate, &e); math.Abs(plan.RateAt(e.Keys)-e.Rate) > 1e-6*e.Rate {
			return 0, fmt.Errorf("%w: layer %d has a rate of %g, where its keys and bits give %g", ErrFormat, i, e.Rate, plan.RateAt(e.Keys))
		}
		if e.Start < -maxTime || e.Start > maxTime {
			return 0, fmt.Errorf("%w: layer %d begins at %d, before or after all time", ErrFormat, i, e.Start)
		}
		if i > 0 && e.Start == sections[i-1].Start {
			continue
		}
		// turn counts on generations not being closer than a step: then one is always
		// dropped before the clean first layers run out.
		if i > 0 && e.Start-sections[i-1].Start < step {
			return 0, fmt.Errorf("%w: the generation of layer %d begins at %d, less than a step after the one before", ErrFormat, i, e.Start)
		}
		if e.Blocks != like.Blocks || e.Probes != like.Probes {
			return 0, fmt.Errorf("%w: layer %d is not like the first ones of other generations", ErrFormat, i)
		}
		generations++
	}
	if generations > c.Generations+1 {
		return 0, fmt.Errorf("%w: %d generations of %d", ErrFormat, generations, c.Generations)
	}
	return generations, nil
}

// generation is the plans of the newest generation's layers, oldest first, and how
// many keys it has.
func (c *chain) generation() (plans []Plan, keys uint64) {
	for i := c.newest - 1; i >= 0; i-- {
		plans = append(plans, c.layers[i].plan)
		keys += c.layers[i].added()
	}
	return plans, keys
}

// makeRoom appends a layer to the newest generation, which was found full in c. It
// does nothing if c was replaced meanwhile, or other gates still have room. Adds wait
// meanwhile, as there is nothing they could do, and lookups do not.
//
// If there can be no other layer and bounded is set, the error says why. Otherwise it
// becomes the window's, and the last layer takes more keys than it was planned for.
func (w *Window) makeRoom(c *chain, bounded bool) error {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.mustBeOpen()
	c.lock()
	defer c.unlock()
	if w.chain.Load() != c || c.collect() > 0 {
		return nil
	}
	plans, keys := c.generation()
	if !c.overfull {
		left := layerRoom(c.layers[0].plan) - int64(min(c.layers[0].added(), math.MaxInt64))
		if bounded {
			left = w.limits.room(left, keys)
		}
		if c.room.Store(max(left, 0)); left > 0 { // it was a limit that had ended it
			return nil
		}
	}
	layer, err := w.nextLayer(c, plans, keys, bounded)
	switch {
	case err != nil && bounded:
		return err
	case err != nil:
		w.chain.Store(c.spilling(fmt.Errorf("a generation of the window holds the %d keys it has room for, and more take the rate above %.3g until it is forgotten: %w", keys, w.config.Rate, err)))
		return nil
	}
	w.further += layer.plan.Bytes()
	layers := append([]*Shared{layer, c.layers[0].freeze()}, c.layers[1:]...)
	starts := append([]int64{c.starts[0]}, c.starts...)
	next := newRing(layers, starts, w.limits.room(layerRoom(layer.plan), keys))
	next.err, next.overfullAt = c.err, c.overfullAt
	w.chain.Store(next)
	return nil
}

// nextLayer makes the layer after those of the newest generation, which have this
// many keys. The caller holds turning.
func (w *Window) nextLayer(c *chain, plans []Plan, keys uint64, bounded bool) (*Shared, error) {
	if bounded && w.limits.room(1, keys) == 0 {
		return nil, fmt.Errorf("%w: its newest generation holds the %d keys that it may have", ErrFull, keys)
	}
	if len(c.layers) == filterfile.MaxSections {
		return nil, fmt.Errorf("%w: there are %d layers already", ErrRate, filterfile.MaxSections)
	}
	plan, err := w.config.nextPlan(plans)
	if err != nil {
		return nil, err
	}
	used := uint64(w.config.Generations+2)*w.first.Bytes() + w.further
	if budget := w.config.Budget; budget != 0 && plan.Bytes() > budget-min(used, budget) {
		return nil, fmt.Errorf("%w: the next layer needs %d bytes, and of the budget of %d there are %d in use", ErrBudget, plan.Bytes(), budget, used)
	}
	if err := w.limits.take(plan); err != nil {
		return nil, err
	}
	layer, err := newLayer(plan, w.Hasher)
	if err != nil {
		w.limits.giveBack(plan)
	}
	return layer, err
}

// giveBack is for layers that were dropped. The collector frees them when no lookup
// is in them. The caller holds turning.
func (w *Window) giveBack(dropped []*Shared) {
	for _, layer := range dropped {
		w.further -= layer.plan.Bytes()
		w.limits.giveBack(layer.plan)
	}
}

// spilling is c with its newest generation taking more keys than planned, for the
// reason err. The caller holds all gates.
func (c *chain) spilling(err error) *chain {
	full := newRing(c.layers, c.starts, 0)
	full.err, full.overfull, full.overfullAt = err, true, c.starts[0]
	return full
}

// findOverfull looks for generations of a stored window that had taken more keys
// than planned.
func (c *chain) findOverfull(rate float64) {
	for i, layer := range c.layers { // newest first
		if layer.added() > layer.plan.Keys {
			c.overfullAt = c.starts[i]
			c.err = fmt.Errorf("%w: a generation of the stored window holds %d keys in a layer for %d, which takes the rate above %.3g until it is forgotten", ErrRate, layer.added(), layer.plan.Keys, rate)
			return
		}
	}
}

// Err returns nil as long as the rate is kept. Otherwise it says why a generation
// could not grow, from the first key that it had no room for until that generation is
// forgotten, Span(1+1/G) after its beginning. The error wraps [ErrBudget] when Budget
// or the machine's memory is used up, and [ErrRate] when there are as many layers as a
// file can hold, or a layer's share of the rate is less than the layout can keep.
func (w *Window) Err() error { return w.now().err }

// Plan returns the sizing of all G+1 generations together, those that are yet to
// begin included: their keys, bits and blocks, the sum of their rates, which is at
// most p, and the Probes of a generation's first layer. It changes as generations
// grow. RateAt is of no use: it takes the bits for one filter's.
func (w *Window) Plan() Plan { return w.planOf(w.chain.Load()) }

// planOf is Plan for a chain.
func (w *Window) planOf(c *chain) Plan {
	sum := c.plan()
	sum.Probes = w.first.Probes
	for range w.config.Generations + 1 - c.generations() {
		sum = sum.plus(w.first)
	}
	return sum
}

// Report reads the bits of all generations and says how full they are and what
// the rate is now. A key counts once in each generation that it was added in.
// Remaining is how many keys fit before the newest generation grows. See
// [Window.Generations] for each generation's own.
func (w *Window) Report() Report {
	c := w.now()
	layers := c.reports()
	r := summed(layers)
	plan := w.planOf(c)
	r.Fill *= float64(r.Plan.Bits) / float64(plan.Bits) // the others are empty
	r.Plan = plan
	r.Remaining = layers[len(layers)-1].Remaining
	return r
}

// Generations returns the report of each generation that there is, oldest first;
// the last is the newest. That of a generation that has grown sums up its layers.
func (w *Window) Generations() (generations []Report) {
	c := w.now()
	layers, from := c.reports(), 0
	for i := range layers {
		if i+1 == len(layers) || c.isFirst(len(layers)-2-i) {
			generations = append(generations, summed(layers[from:i+1]))
			from = i + 1
		}
	}
	return generations
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
