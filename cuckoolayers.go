package bloom

import (
	"bytes"
	"fmt"
	"math/bits"
	"reflect"
	"slices"

	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/rate"
)

// slots returns how many slots all layers have.
func (f *Cuckoo) slots() (sum uint64) {
	for i := range f.layers {
		sum += uint64(len(f.layers[i].Slots))
	}
	return sum
}

// nextBuckets returns the number of buckets of the layer after those that exist.
func (f *Cuckoo) nextBuckets() (uint64, error) {
	if len(f.layers) == 0 {
		return f.first.Blocks, nil
	}
	high, buckets := bits.Mul64(f.newest().Buckets(), uint64(f.config.Growth))
	if high != 0 || buckets > filterfile.MaxBuckets {
		return 0, fmt.Errorf("%w: the next layer would have more than the %d buckets that are possible", ErrBudget, uint64(filterfile.MaxBuckets))
	}
	return buckets, nil
}

// grow appends a layer.
func (f *Cuckoo) grow() error {
	buckets, err := f.nextBuckets()
	if err != nil {
		return err
	}
	slots := buckets * uint64(f.config.BucketSize) // below 2^48
	if used := f.slots(); f.config.Budget != 0 && used+slots > f.config.Budget {
		return fmt.Errorf("%w: the next layer needs %d bytes, the others have %d, and the limit is %d", ErrBudget, slots, used, f.config.Budget)
	}
	if f.config.Grant != nil {
		if err := f.config.Grant(cuckooTakes(slots)); err != nil {
			return err
		}
	}
	room, err := newCuckooRoom(slots)
	if err != nil {
		f.release(slots)
		return err
	}
	f.append(room, buckets)
	return nil
}

// append appends a layer.
func (f *Cuckoo) append(room cuckooRoom, buckets uint64) {
	size := uint64(f.config.BucketSize)
	f.layers = append(f.layers, kernel.Cuckoo{Slots: memory.Bytes(room.words)[:buckets*size], Mask: buckets - 1, Size: size})
	f.rooms = append(f.rooms, room)
}

// mappedSlots is the number of slots from which a layer has pages of its own. Smaller ones
// need no alignment, which would double the size of many.
const mappedSlots = 2 << 20

// newCuckooRoom returns room for that many slots, all empty.
func newCuckooRoom(slots uint64) (room cuckooRoom, err error) {
	words := (slots + 7) / 8
	if slots < mappedSlots {
		return cuckooRoom{words: make([]uint64, words)}, nil
	}
	room.words, room.memory, err = memory.Words(words)
	return room, err
}

// cuckooPlace is what a layer takes in the lists of layers, which double when they are full.
var cuckooPlace = 2 * uint64(reflect.TypeFor[kernel.Cuckoo]().Size()+reflect.TypeFor[cuckooRoom]().Size())

// cuckooTakes returns how many bytes of memory a layer of that many slots takes.
func cuckooTakes(slots uint64) uint64 {
	words := (slots + 7) / 8
	if slots < mappedSlots {
		return cuckooPlace + memory.Allocated(8*words)
	}
	return cuckooPlace + memory.Taken(words)
}

// release gives back what Grant gave for that many slots.
func (f *Cuckoo) release(slots uint64) {
	if f.config.Release != nil {
		f.config.Release(cuckooTakes(slots))
	}
}

// drop drops the layers from the i-th on.
func (f *Cuckoo) drop(i int) (err error) {
	for _, room := range f.rooms[i:] {
		if closing := room.memory.Close(); err == nil {
			err = closing
		}
	}
	for _, layer := range f.layers[i:] {
		f.release(uint64(len(layer.Slots)))
	}
	clear(f.rooms[i:])
	clear(f.layers[i:])
	f.rooms, f.layers = f.rooms[:i], f.layers[:i]
	return err
}

// Compact moves fingerprints from newer layers to older ones, as far as these have empty
// slots, and drops the layers that are empty then. It is CF.COMPACT. Remove does it by
// itself when a tenth of the keys has been removed, but only until a layer cannot be
// emptied.
func (f *Cuckoo) Compact() {
	f.mustBeOpen()
	f.compact(true)
	f.keepAlive()
}

// compact goes on with older layers after one that cannot be emptied, or does not.
func (f *Cuckoo) compact(on bool) {
	for i := len(f.layers) - 1; i > 0; i-- {
		switch empty := f.moveDown(i); {
		case empty && i == len(f.layers)-1:
			f.drop(i)
		case !empty && !on:
			i = 0
		}
	}
	f.removed = 0
}

// moveDown moves the fingerprints of a layer to older ones, and reports whether all of
// them found room.
func (f *Cuckoo) moveDown(layer int) (empty bool) {
	from, empty := &f.layers[layer], true
	for slot := from.Next(0); slot >= 0; slot = from.Next(slot + 1) {
		fingerprint := from.Slots[slot]
		nest := kernel.NestIn(uint64(slot)/from.Size, fingerprint)
		to, older := -1, 0
		for ; older < layer && to < 0; older++ {
			to = f.layers[older].Replace(nest, 0, fingerprint)
		}
		if to < 0 {
			empty = false
			continue
		}
		from.Slots[slot] = 0
		f.wrote(older-1, to)
		f.wrote(layer, slot)
	}
	return empty
}

// Config returns the configuration in force, without the hash: zeros are replaced by what
// they mean, and Growth is a power of two.
func (f *Cuckoo) Config() CuckooConfig {
	c := f.config
	c.Seed = 0
	return c
}

// Plan sums up the layers: their bits and buckets, and how many keys they are planned for.
// The first is planned for the Keys of the config, the others for as many as they have
// slots. Rate is at most what can be expected of that many keys.
func (f *Cuckoo) Plan() Plan {
	f.mustBeOpen()
	sum := f.first
	for i := range f.layers[1:] {
		buckets := f.layers[i+1].Buckets()
		sum = sum.plus(cuckooPlan(buckets*uint64(f.config.BucketSize), buckets, f.config.BucketSize))
	}
	sum.Rate = min(sum.Rate, 1)
	return sum
}

// Len is how many fingerprints the filter has: one for each add that was not removed.
func (f *Cuckoo) Len() uint64 { return f.stored }

// Removed is how many keys were removed since the layers were last compacted.
func (f *Cuckoo) Removed() uint64 { return f.removed }

// LayerCount is how many layers there are, 1 to [MaxCuckooLayers].
func (f *Cuckoo) LayerCount() int { return len(f.layers) }

// Bytes is the memory of the slots of all layers.
func (f *Cuckoo) Bytes() uint64 { return f.slots() }

// Report measures the false-positive rate by the fingerprints that are there, or a sample
// of the buckets of layers above 4 MiB. Fill is the share of slots in use. Keys, and Added,
// are the fingerprints: exact if no key was added twice.
func (f *Cuckoo) Report() Report {
	r := Report{Plan: f.Plan(), Added: f.stored, Keys: float64(f.stored)}
	r.Fill = min(float64(f.stored)/float64(f.slots()), 1) // a dump may have counted more
	for i := range f.layers {
		found, foundError := f.foundIn(i)
		r.Rate += found
		r.RateError = elementary.Hypot(r.RateError, foundError)
	}
	if r.Plan.Keys > f.stored {
		r.Remaining = r.Plan.Keys - f.stored
	}
	f.keepAlive()
	return r
}

// foundIn returns the chance that a key that was never added is found in a layer and in
// none before it, and its standard error.
//
// Such a key has any fingerprint and any first bucket with the same chance. It is found if
// its bucket or the other one has the fingerprint. So each fingerprint in a bucket makes two
// of the 255 B pairs of fingerprint and first bucket "found", or one if the two buckets are
// the same. If the other bucket has the same fingerprint, both make the same two, and each
// counts as one. As each layer has the buckets of the one before, or a multiple, the number
// of a bucket there says which buckets the key has in older layers.
func (f *Cuckoo) foundIn(layer int) (found, standardError float64) {
	const most = 4 << 20 // slots: for each, another bucket is read
	var sample rate.Moments
	t := &f.layers[layer]
	stride := (uint64(len(t.Slots)) + most - 1) / most
	for b := uint64(0); b < t.Buckets(); b += stride {
		pairs := 0
		bucket := t.Bucket(b)
		for slot, fingerprint := range bucket {
			if fingerprint == 0 || bytes.IndexByte(bucket[:slot], fingerprint) >= 0 {
				continue
			}
			nest := kernel.NestIn(b, fingerprint)
			older := false
			for i := 0; i < layer && !older; i++ {
				older = f.layers[i].Contains(nest)
			}
			if older {
				continue
			}
			pairs++
			if bytes.IndexByte(t.Bucket(nest.Other), fingerprint) < 0 {
				pairs++
			}
		}
		sample.Add(float64(pairs) / kernel.CuckooFingerprints)
	}
	if stride > 1 {
		standardError = sample.StandardError()
	}
	return sample.Mean(), standardError
}

// Equal reports whether f and g have the same hash and configuration, and the same
// fingerprints in the same slots.
func (f *Cuckoo) Equal(g *Cuckoo) bool {
	f.mustBeOpen()
	g.mustBeOpen()
	same := f.id == g.id && f.shape() == g.shape() && slices.EqualFunc(f.layers, g.layers, func(a, b kernel.Cuckoo) bool {
		return bytes.Equal(a.Slots, b.Slots)
	})
	f.keepAlive()
	g.keepAlive()
	return same
}

// shape is what two filters have in common that do the same with the same keys.
func (f *Cuckoo) shape() [4]int {
	growth := f.config.Growth
	if f.config.NonScaling {
		growth = 0
	}
	return [4]int{f.config.BucketSize, f.config.Iterations, growth}
}

// Clear empties the filter and drops all layers but the first; its plan and hash stay.
func (f *Cuckoo) Clear() {
	f.mustBeOpen()
	f.drop(1)
	clear(f.layers[0].Slots)
	f.stored, f.removed, f.err = 0, 0, nil
	f.keepAlive()
}

// Clone returns a copy in memory of its own, without a Grant; see [Filter.Clone].
func (f *Cuckoo) Clone() *Cuckoo {
	f.mustBeOpen()
	g := &Cuckoo{Hasher: f.Hasher, config: f.config, first: f.first, stored: f.stored, removed: f.removed, err: f.err}
	g.config.Grant, g.config.Release = nil, nil
	for i := range f.layers {
		room, err := newCuckooRoom(uint64(len(f.layers[i].Slots)))
		if err != nil {
			panic(err)
		}
		copy(room.words, f.rooms[i].words)
		g.append(room, f.layers[i].Buckets())
	}
	g.note(f.noted())
	f.keepAlive()
	return g
}

// Close releases the memory at once; see [Filter.Close].
func (f *Cuckoo) Close() error { return f.drop(0) }

func (f *Cuckoo) String() string {
	return fmt.Sprintf("cuckoo filter: %v, %d bytes in %d layers; %v", f.first, f.Bytes(), len(f.layers), f.id)
}
