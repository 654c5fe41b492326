package bloom

import "fmt"

// Growing moves the filter's bits, without copying them, into a [Scalable] of
// which they are the first layer: for when n turns out to be more than was
// planned. f must not be used any more; see [Filter.Share].
//
// Each further layer is planned for growth times as many keys as the one before,
// 2 to 16; zero means 2. As f was planned for a rate of its own, the whole has a
// higher one: five times f's planned rate, which is to f as p is to the first
// layer of any Scalable. Where the filter was asked for a higher rate than that, as
// one for so few keys that its only block has room for many more, the whole has the
// rate asked for, and f takes the keys that it has room for at a fifth of it. A
// filter from a file does not know what it was asked for.
//
// The Scalable has f's metadata. It panics if f was opened read-only. The error
// wraps [ErrConfig] or [ErrRate]; f is then as before.
func (f *Filter) Growing(growth int) (*Scalable, error) {
	f.mustBeOpen()
	f.mustBeWritable()
	if growth == 0 {
		growth = defaultGrowth
	}
	plan, rate := f.plan, f.plan.Rate/(1-tightening)
	if f.asked > rate {
		rate = f.asked
		roomier, err := Config{Bits: plan.Bits, Probes: plan.Probes, Rate: rate * (1 - tightening)}.Plan()
		if err == nil && roomier.Keys > plan.Keys {
			plan = roomier
		}
	}
	switch {
	case growth < 2 || growth > maxGrowth:
		return nil, fmt.Errorf("%w: growth must be 2 to %d, not %d", ErrConfig, maxGrowth, growth)
	case rate >= 1:
		return nil, fmt.Errorf("%w: a filter planned for a rate of %.3g would grow to one of %.3g: build it again", ErrRate, f.plan.Rate, rate)
	}
	s := &Scalable{config: ScalableConfig{First: plan.Keys, Rate: rate, Growth: growth}, Hasher: f.Hasher}
	s.note(f.noted())
	f.note(nil) // the layer needs none
	if f.id.Algorithm == XXH3 {
		s.config.Seed = f.id.Key
	}
	// What it was told is new may be less than what it holds, as after a Union.
	held := max(float64(f.added), f.Report().Keys)
	f.plan = plan
	room := float64(layerRoom(plan)) - held
	s.chain.Store(newChain([]*Shared{f.Share()}, int64(max(room, 0))))
	return s, nil
}
