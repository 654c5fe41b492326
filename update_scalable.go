package bloom

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom/internal/kernel"
)

// OpenUpdateScalable maps the file at path, which holds a Scalable, to be added
// to in place: all that [OpenUpdate] says of a Filter holds for it as well. When
// it grows, the file does, by a section for the new layer; if the disk has no
// room for that, [Scalable.Err] says so, and wraps [ErrBudget].
//
// Any number of goroutines may add, look up and call Sync. Adds wait for a Sync
// that is under way, and lookups do not. Clear panics.
//
// A layer that was being filled when its writer was killed counts the keys that
// its bits show, so that the rate is kept.
func OpenUpdateScalable(path string) (*Scalable, error) {
	u, s, err := openUpdate(path)
	if err != nil {
		return nil, err
	}
	var f *Scalable
	if err = s.mustHold(kindScalable); err == nil && !s.clean {
		s.recount()
	}
	if err == nil {
		f, err = scalableFrom(s)
	}
	if err == nil {
		err = u.mend(s, f.countLayers)
	}
	if err != nil {
		s.close()
		u.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.update = u
	return f, nil
}

// recount corrects the number of adds of the newest layer, which is that of the
// last sync, by its bits.
func (s *stored) recount() {
	last := len(s.sections) - 1
	e := &s.sections[last]
	layer := Filter{
		bits: kernel.Paired{Words: s.words[last], Blocks: e.blocks},
		plan: pairedPlan(e.keys, e.rate, e),
	}
	held := uint64(math.Ceil(min(layer.Report().Keys, maxKeys)))
	if held > e.added {
		s.added += held - e.added
		e.added = held
	}
}

// Create makes a file with an empty filter at path, and opens it as
// [OpenUpdateScalable] does; see [Config.Create].
func (c ScalableConfig) Create(path string) (*Scalable, error) {
	f, plan, err := c.planned()
	if err != nil {
		return nil, err
	}
	s := &stored{header: f.header(), state: newState(0, []section{layerSection(plan)})}
	u, err := createUpdate(path, s)
	if err != nil {
		return nil, err
	}
	layers := layersFrom(s, f.Hasher)
	f.chain.Store(newChain(layers, layerRoom(plan)))
	f.update = u
	return f, nil
}

// layerSection is the section of an empty layer.
func layerSection(plan Plan) section {
	return section{
		kind: sectionPaired, probes: uint32(plan.Probes), blocks: plan.Blocks, length: plan.Bytes(),
		keys: plan.Keys, rate: plan.Rate,
	}
}

// Sync makes durable what was added to a filter from [OpenUpdateScalable] or
// [ScalableConfig.Create]: every key whose Add returned before; see
// [Filter.Sync].
func (f *Scalable) Sync() error {
	if f.update == nil {
		return nil
	}
	c := f.lockedChain()
	defer c.unlock()
	return f.update.sync(f.countLayers)
}

// countLayers puts the layers' adds into the state.
func (f *Scalable) countLayers(s *state) {
	layers := f.chain.Load().layers // the newest first
	s.added = 0
	for i := range s.sections {
		n := layers[len(layers)-1-i].added()
		s.sections[i].added = n
		s.added += n
	}
}

// Recovered reports whether the file was mended; see [Filter.Recovered].
func (f *Scalable) Recovered() bool { return f.update != nil && f.update.recovered }

// touch is for who is about to add keys to the newest layer of a file, and holds
// a gate.
func (f *Scalable) touch(hashes ...uint64) {
	if len(hashes) > 0 {
		f.update.begin()
	}
	for _, h := range hashes {
		f.update.touch(h)
	}
}

// nextLayer makes the newest layer: at the end of the file, if there is one to
// update.
func (f *Scalable) nextLayer(plan Plan) (*Shared, error) {
	if f.update == nil {
		return newLayer(plan, f.Hasher)
	}
	if len(f.update.sections) == maxSections {
		return nil, fmt.Errorf("%w: the file has %d layers already", ErrRate, maxSections)
	}
	words, mapping, err := f.update.append(layerSection(plan))
	if err != nil {
		return nil, err
	}
	return &Shared{
		bits:    kernel.Paired{Words: words, Blocks: plan.Blocks, Rows: kernel.RowsFor(plan.Probes / 2)},
		stripes: kernel.NewStripes(plan.Blocks),
		Hasher:  f.Hasher,
		plan:    plan,
		memory:  mapping,
	}, nil
}

// closeUpdate is Close.
func (f *Scalable) closeUpdate() error {
	u := f.update
	err := f.Sync()
	f.update = nil
	if unmapErr := f.chain.Load().close(); err == nil {
		err = unmapErr
	}
	if closeErr := u.close(); err == nil {
		err = closeErr
	}
	return err
}
