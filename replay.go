package bloom

// Replay puts keys into one layer, counted from the oldest, 0, whether or not other
// layers have them, and makes layers up to that one if there are fewer. It is for a
// log that says in which layer each key was new: AddHashes would put some of them
// into another one if they came in another order, and then a key that was a false
// positive of a layer, which no log has, might be absent. Without keys it makes layers
// only. Many goroutines may call it at once. The error is why the filter cannot grow;
// see [Scalable.Err].
func (f *Scalable) Replay(layer int, hashes []uint64) error {
	f.mustBeWritable()
	for {
		c := f.chain.Load()
		if layer >= len(c.layers) {
			if err := f.growAnyway(c); err != nil {
				return err
			}
			continue
		}
		if len(hashes) == 0 {
			return nil
		}
		g := c.gate(hashes[0])
		g.Lock()
		if f.chain.Load() == c {
			if f.update != nil {
				f.touch(hashes...)
			}
			added := c.layers[len(c.layers)-1-layer].AddHashes(hashes, nil)
			if layer == len(c.layers)-1 {
				c.take(int64(added))
			}
			g.Unlock()
			return nil
		}
		g.Unlock()
	}
}

// growAnyway appends a layer to c, though there may be room in its newest.
func (f *Scalable) growAnyway(c *chain) error {
	c.lock()
	defer c.unlock()
	if f.chain.Load() != c {
		return nil
	}
	plan, err := f.nextPlan(c)
	var layer *Shared
	if err == nil {
		layer, err = f.nextLayer(plan)
	}
	if err == nil {
		f.chain.Store(f.grown(c, layer))
	}
	return err
}

// grown is c with another layer. The caller holds all gates.
func (f *Scalable) grown(c *chain, layer *Shared) *chain {
	layers := append([]*Shared{layer, c.layers[0].freeze()}, c.layers[1:]...)
	return newChain(layers, layerRoom(layer.plan))
}
