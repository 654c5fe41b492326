package redisbloom

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/elementary"
	"github.com/bloomery/bloom/internal/rate"
)

// Info is what BF.INFO reports.
type Info struct {
	Capacity  uint64 // keys that all layers together are planned for
	Size      uint64 // bytes: of the bits, and what RedisBloom's structures take
	Filters   int    // layers
	Items     uint64 // keys that were new
	Expansion uint32 // zero: the chain does not scale
}

// LayerInfo is what BF.DEBUG reports about a layer, apart from its 64-bit hash.
type LayerInfo struct {
	Bytes, Bits uint64
	Probes      int
	Capacity    uint64  // keys it is planned for
	Items       uint64  // keys that were new when they were added to it
	Rate        float64 // the rate it is planned for
}

// The sizes of RedisBloom's structures, as the module itself counts them.
const (
	redisChainBytes = 32
	redisLayerBytes = 64
)

// Info returns what BF.INFO reports.
func (c *Filter) Info() Info {
	info := Info{Size: redisChainBytes}
	for l := c.open(); l != nil; l = l.older {
		info.Capacity += l.entries
		info.Size += redisLayerBytes + l.bytes()
		info.Filters++
		info.Items += l.items()
	}
	if c.options&optNoScaling == 0 {
		info.Expansion = c.growth
	}
	return info
}

// Layers describes the layers, oldest first.
func (c *Filter) Layers() []LayerInfo {
	layers := c.layers()
	infos := make([]LayerInfo, len(layers))
	for i, l := range layers {
		infos[i] = LayerInfo{l.bytes(), l.bits.Bits, l.bits.Probes, l.entries, l.items(), l.rate}
	}
	return infos
}

// layers returns the layers that exist now, oldest first.
func (c *Filter) layers() []*layer {
	newest := c.open()
	layers := make([]*layer, newest.index+1)
	for l := newest; l != nil; l = l.older {
		layers[l.index] = l
	}
	return layers
}

// SetItems sets how many keys were new in one layer, 0 being the oldest. It panics if
// there is no such layer.
func (c *Filter) SetItems(layerIndex int, n uint64) {
	l := c.layer(layerIndex)
	c.gate.Lock()
	atomic.StoreUint64(&l.size, n)
	c.gate.Unlock()
}

// Plan sums up the layers: their keys and bits together, and the sum of the rates they
// are planned for, which bounds the chain's rate. The probes are the newest layer's.
func (c *Filter) Plan() bloom.Plan {
	newest := c.open()
	sum := bloom.Plan{Probes: newest.bits.Probes, Layout: bloom.AnyBits}
	for l := newest; l != nil; l = l.older {
		sum.Keys += l.entries
		sum.Rate += l.rate
		sum.Bits += l.bits.Bits
	}
	sum.Blocks = sum.Bits // Classic's blocks are single bits
	return sum
}

// Report reads the bits of all layers, or samples of those above 64 MiB, and sums them
// up as if no key were in two layers: see [bloom.Report]. In small layers the rate is
// measured by trying keys at random, because no formula covers what double hashing
// does there, so RateError is not zero.
func (c *Filter) Report() bloom.Report {
	newest := c.open()
	sum := bloom.Report{Plan: c.Plan()}
	var all rate.Layers
	for l := newest; l != nil; l = l.older {
		m, k, probes := float64(l.bits.Bits), float64(l.bits.Probes), uint64(l.bits.Probes)
		fill, fillError := l.fillNow()
		sum.Fill += fill * m / float64(sum.Plan.Bits)
		found, foundError := l.rateNow(fill)
		keys, keysError := rate.KeysThrown(fill, fillError, m, k)
		all.Add(found, elementary.Hypot(foundError, k*elementary.Power(fill, probes-1)*fillError), keys, keysError)
		sum.Added += l.items()
	}
	sum.Rate, sum.RateError = all.Rate(), all.RateError
	sum.Keys, sum.KeysError = all.Keys, all.KeysError
	if left := float64(sum.Plan.Keys) - sum.Keys; left > 0 {
		sum.Remaining = uint64(left)
	}
	runtime.KeepAlive(newest)
	return sum
}

// sampleWords is the number of a layer's words that a report reads, in pieces of
// pieceWords.
const (
	sampleWords = 64 << 20 / 8
	pieceWords  = 64
)

// fillNow returns the share of bits that are set and, if not all were read, its
// standard error.
func (l *layer) fillNow() (fill, standardError float64) {
	words := l.bits.Words
	stride := (len(words) + sampleWords - 1) / sampleWords * pieceWords
	set, seen := 0, uint64(0)
	for at := 0; at < len(words); at += stride {
		piece := words[at:min(at+pieceWords, len(words))]
		for i := range piece {
			set += bits.OnesCount64(atomic.LoadUint64(&piece[i]))
		}
		seen += min(uint64(len(piece))*64, l.bits.Bits-uint64(at)*64)
	}
	fill = float64(set) / float64(seen)
	if stride > pieceWords { // the bits of a sample are as good as independent
		standardError = math.Sqrt(fill * (1 - fill) / float64(seen))
	}
	return fill, standardError
}

// Population divides a layer, counted from the oldest, 0, into equal parts, give or take
// a word, and returns how many bits of each are set, and how many were read: all, or of
// a large layer a sample of at most sampled bytes. There are at most as many parts as
// words, and none if there is no such layer. Other goroutines may add.
func (c *Filter) Population(layer, parts int, sampled uint64) (set, read []uint64) {
	l := c.find(layer)
	if l == nil {
		return nil, nil
	}
	size := uint64(len(l.bits.Words))
	n := min(uint64(parts), size)
	stride := max(size*8/max(sampled, 1), 1) * pieceWords
	set, read = make([]uint64, n), make([]uint64, n)
	scaled := func(i uint64) uint64 {
		high, low := bits.Mul64(i, size)
		q, _ := bits.Div64(high, low, n)
		return q
	}
	for i := range n {
		for from, to := scaled(i), scaled(i+1); from < to; from += stride {
			for at := from; at < min(from+pieceWords, to); at++ {
				set[i] += uint64(bits.OnesCount64(atomic.LoadUint64(&l.bits.Words[at])))
				read[i] += min(l.bits.Bits-at*64, 64)
			}
		}
	}
	runtime.KeepAlive(l)
	return set, read
}

// Positions returns the bits of a key in a layer, counted from the oldest, 0, and which
// of them are set. There are none if there is no such layer.
func (c *Filter) Positions(layer int, pair Pair) (at []uint64, set []bool) {
	l := c.find(layer)
	if l == nil {
		return nil, nil
	}
	for i := range uint64(l.bits.Probes) {
		place := (pair[0] + i*pair[1]) % l.bits.Bits
		at = append(at, place)
		set = append(set, atomic.LoadUint64(&l.bits.Words[place/64])>>(place%64)&1 == 1)
	}
	runtime.KeepAlive(l)
	return at, set
}

// find returns a layer, counted from the oldest, nil if there is none.
func (c *Filter) find(index int) *layer {
	l := c.open()
	for l != nil && int(l.index) != index {
		l = l.older
	}
	return l
}

func (c *Filter) String() string {
	info := c.Info()
	growing := "non-scaling"
	if info.Expansion != 0 {
		growing = fmt.Sprintf("expansion %d", info.Expansion)
	}
	var sizes []string
	for _, l := range c.Layers() {
		sizes = append(sizes, fmt.Sprintf("%d of %d in m %d, k %d", l.Items, l.Capacity, l.Bits, l.Probes))
	}
	return fmt.Sprintf("redisbloom chain: %s; items by layer: %s", growing, strings.Join(sizes, "; "))
}

// Single returns a copy of the bits of a one-layer chain as a
// [classic.Filter] under [classic.SchemeRedisBloom]. It is false where there are
// more layers, or the layer has more probes than a Classic can.
func (c *Filter) Single() (*classic.Filter, bool) {
	l := c.open()
	config := classic.Config{Bits: l.bits.Bits, Probes: l.bits.Probes, Keys: l.entries, Scheme: classic.SchemeRedisBloom}
	if l.older != nil || l.bits.Bits%64 != 0 {
		return nil, false
	}
	if _, err := config.Plan(); err != nil {
		config.Keys = 0 // a header may claim any number of keys; only its bits count
	}
	classic, err := config.ReadBits(&layerBytes{layer: l}, classic.LittleEndianWords)
	return classic, err == nil
}

// From returns a scaling chain whose one layer has a copy of the filter's bits. Its
// count of keys is the filter's or, if the filter has none, an estimate from the bits.
// The error wraps [bloom.ErrUnlike] unless the filter is under
// [classic.SchemeRedisBloom].
func From(f *classic.Filter) (*Filter, error) {
	if f.Scheme() != classic.SchemeRedisBloom {
		return nil, fmt.Errorf("%w: the filter is of the scheme %v, not %v: build it again from its keys", bloom.ErrUnlike, f.Scheme(), classic.SchemeRedisBloom)
	}
	plan, report := f.Plan(), f.Report()
	l := &layer{entries: max(plan.Keys, 1), perKey: float64(plan.Bits) / float64(max(plan.Keys, 1)), size: report.Added}
	if probesOf(l.perKey) != uint32(plan.Probes) {
		l.perKey = (float64(plan.Probes) - 0.5) / 0.693147180559945 // RedisBloom computes k from this
	}
	l.rate = elementary.Exp(-l.perKey * 0.480453013918201)
	if l.size == 0 {
		l.size = uint64(math.Round(min(report.Keys, float64(plan.Bits)*64)))
	}
	c := &Filter{growth: 2, options: optNoRound | optForce64}
	if err := c.provide(l, plan.Bits, uint32(plan.Probes)); err != nil {
		return nil, err
	}
	c.newest.Store(l)
	if _, err := f.WriteBits(&layerBytes{layer: l}, classic.LittleEndianWords); err != nil {
		return nil, err
	}
	return c, nil
}
