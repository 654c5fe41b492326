package bloom

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom/internal/filterfile"
)

// A generation of a Window has layers of its own and begins with one. When it is full,
// another layer doubles the number of keys that it has room for:
//
//	keys    q        q        2q                4q
//	     +--------+--------+----------------+--------------------------------+
//	     | first  |        |                |                                |
//	     +--------+--------+----------------+--------------------------------+
//	rate    s/2      s/4      s/8              s/16           s = p/(G+1)
//
// q is n/G and a little more, so keys that arrive evenly need only the first layer.
// However many layers there are, the rates of one generation add up to less than s,
// and those of the G+1 that are searched to less than p.
//
// A generation that gets all n keys has 1 + log2(G) layers, rounded up. Every
// generation may have to hold n, as when the same keys are added again and again. A
// file has room for filterfile.MaxSections layers. So with more than mostDoubling
// generations the second layer makes room for n at once.

// mostDoubling is the largest G with (G+1)(1 + log2(G)), rounded up, at most
// filterfile.MaxSections.
const mostDoubling = 11

// share is s, a generation's part of the rate.
func (c WindowConfig) share() float64 { return c.Rate / float64(c.Generations+1) }

// firstPlan sizes the first layer of a generation. If keys arrive independently at a
// steady rate, their number is Poisson distributed: with room for four standard
// deviations more, one generation in about thirty thousand grows.
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

// nextPlan sizes the layer after the given ones of a generation, oldest first. It gets
// half of what they leave of the generation's share of the rate.
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

// firstLike returns the plan for the first layers of a window from a file: they have
// the size of those in the file. Older releases wrote first layers only, which had all
// of the generation's share of the rate; new ones get half of it.
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

// checkSections refuses sections that cannot be a window's layers, oldest first, and
// counts the generations.
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
		// turn relies on generations being at least a step apart: then one is always
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

// generation returns the plans of the newest generation's layers, oldest first, and
// the number of its keys.
func (l *layers) generation() (plans []Plan, keys uint64) {
	for i := l.newest - 1; i >= 0; i-- {
		plans = append(plans, l.filters[i].plan)
		keys += l.filters[i].added()
	}
	return plans, keys
}

// makeRoom appends a layer to the newest generation, which was found full in l. It
// does nothing if l was replaced meanwhile, or if other gates still have room. Adds
// wait for it, lookups do not.
//
// If no layer can be added and bounded is set, it returns the reason. If bounded is not
// set, the reason becomes the window's Err, and the last layer takes more keys than it
// was planned for.
func (w *Window) makeRoom(l *layers, bounded bool) error {
	w.turning.Lock()
	defer w.turning.Unlock()
	w.mustBeOpen()
	l.lock()
	defer l.unlock()
	if w.layers.Load() != l || l.collect() > 0 {
		return nil
	}
	plans, keys := l.generation()
	if !l.overfull {
		left := layerRoom(l.filters[0].plan) - int64(min(l.filters[0].added(), math.MaxInt64))
		if bounded {
			left = w.limits.room(left, keys)
		}
		if l.room.Store(max(left, 0)); left > 0 { // only a limit had stopped it
			return nil
		}
	}
	layer, err := w.nextLayer(l, plans, keys, bounded)
	switch {
	case err != nil && bounded:
		return err
	case err != nil:
		w.layers.Store(l.spilling(fmt.Errorf("a generation of the window holds the %d keys it has room for, and more take the rate above %.3g until it is forgotten: %w", keys, w.config.Rate, err)))
		return nil
	}
	w.further += layer.plan.Bytes()
	filters := append([]*Shared{layer, l.filters[0].freeze()}, l.filters[1:]...)
	starts := append([]int64{l.starts[0]}, l.starts...)
	next := newRing(filters, starts, w.limits.room(layerRoom(layer.plan), keys))
	next.err, next.overfullAt = l.err, l.overfullAt
	w.layers.Store(next)
	return nil
}

// nextLayer makes the next layer of the newest generation, given the plans of its
// layers and the number of its keys. The caller holds turning.
func (w *Window) nextLayer(l *layers, plans []Plan, keys uint64, bounded bool) (*Shared, error) {
	if bounded && w.limits.room(1, keys) == 0 {
		return nil, fmt.Errorf("%w: its newest generation holds the %d keys that it may have", ErrFull, keys)
	}
	if len(l.filters) == filterfile.MaxSections {
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

// giveBack accounts for dropped layers. The collector frees them when no lookup uses
// them any longer. The caller holds turning.
func (w *Window) giveBack(dropped []*Shared) {
	for _, layer := range dropped {
		w.further -= layer.plan.Bytes()
		w.limits.giveBack(layer.plan)
	}
}

// spilling returns l with a newest generation that takes more keys than planned, for
// the reason err. The caller holds all gates.
func (l *layers) spilling(err error) *layers {
	full := newRing(l.filters, l.starts, 0)
	full.err, full.overfull, full.overfullAt = err, true, l.starts[0]
	return full
}

// findOverfull looks for generations of a stored window that hold more keys than
// planned.
func (l *layers) findOverfull(rate float64) {
	for i, layer := range l.filters { // newest first
		if layer.added() > layer.plan.Keys {
			l.overfullAt = l.starts[i]
			l.err = fmt.Errorf("%w: a generation of the stored window holds %d keys in a layer for %d, which takes the rate above %.3g until it is forgotten", ErrRate, layer.added(), layer.plan.Keys, rate)
			return
		}
	}
}

// Err returns nil as long as the rate is kept. Otherwise it says why a generation
// could not grow, from the first key that found no room until that generation expires,
// Span(1+1/G) after its beginning. The error wraps [ErrBudget] when Budget or the
// machine's memory is used up, and [ErrRate] when there are as many layers as a file can
// hold, or when a layer's share of the rate is less than the layout can keep.
func (w *Window) Err() error { return w.now().err }

// Plan returns the sizing of all G+1 generations together, including those yet to
// begin: their keys, bits and blocks, the sum of their rates, which is at most p, and
// the Probes of a generation's first layer. It changes as generations grow. Its RateAt
// is meaningless: it takes the bits for those of one filter.
func (w *Window) Plan() Plan { return w.planOf(w.layers.Load()) }

// planOf is Plan for given layers.
func (w *Window) planOf(l *layers) Plan {
	sum := l.plan()
	sum.Probes = w.first.Probes
	for range w.config.Generations + 1 - l.generations() {
		sum = sum.plus(w.first)
	}
	return sum
}

// Report reports on all generations together; see [Filter.Report] and, for each
// generation, [Window.Generations]. A key counts once in each generation that it was
// added in. Remaining is how many keys fit before the newest generation grows.
func (w *Window) Report() Report {
	l := w.now()
	layers := l.reports()
	r := summed(layers)
	plan := w.planOf(l)
	r.Fill *= float64(r.Plan.Bits) / float64(plan.Bits) // the others are empty
	r.Plan = plan
	r.Remaining = layers[len(layers)-1].Remaining
	return r
}

// Generations returns a report for each generation, oldest first. If a generation has
// grown, its report sums up its layers.
func (w *Window) Generations() (generations []Report) {
	l := w.now()
	layers, from := l.reports(), 0
	for i := range layers {
		if i+1 == len(layers) || l.isFirst(len(layers)-2-i) {
			generations = append(generations, summed(layers[from:i+1]))
			from = i + 1
		}
	}
	return generations
}

// Plan returns the sizing of the layers that New makes, one for each generation and a
// spare one. Blocks and Bits are those of all: the memory of the window while keys
// arrive evenly. Keys, Rate and Probes are those of one layer. [WindowConfig.Layers]
// says how much more memory a burst takes.
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

// Layers returns the plans of the layers of a generation in which all n keys arrive,
// oldest first. New makes the first; the others are made when needed and dropped when
// the generation expires. So if all n keys arrive in one burst, the window takes the
// memory of Plan and of the other layers. If the same n keys are added in every
// generation, it takes all of these layers G+1 times, and a spare first one.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget]. No error means that a Budget
// suffices for the first layers, not that it does for a burst.
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

// windowLimits are the limits that a store sets a window. The zero value sets none.
type windowLimits struct {
	keys    uint64 // the most that TryAddHashes adds in a generation; 0: no limit
	grant   func(layer Plan) error
	release func(layer Plan)
}

// room is how many keys fit when the plan has room for planned, and the generation
// has keys already.
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
