package bloom

import (
	"fmt"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/sizing"
)

// Config describes a filter. Give two of Keys, Rate and Bits; the third follows. All
// other fields may be zero.
type Config struct {
	Keys uint64  // n, the number of different keys to hold
	Rate float64 // p, the false-positive rate at n keys, 0 < p < 1
	Bits uint64  // m, the size: rounded down to whole blocks of 4,096 bits, at least one

	Probes int    // k, bits per key: even, 2 to 16; zero means the best
	Folds  uint64 // makes the number of blocks a multiple of this, so that Fold(Folds) works
	Budget uint64 // the most bytes the filter may take; zero means no limit

	Seed   uint64 // of XXH3; public, stored in the file
	Secret []byte // SecretBytes bytes: SipHash-2-4 in place of XXH3
}

// Plan is a filter's sizing: all of n, p, m and k. [Config.Plan] makes one, and every
// filter returns its own.
type Plan struct {
	Keys   uint64  // n
	Rate   float64 // p expected with n keys, at most the rate asked for
	Bits   uint64  // m
	Probes int     // k
	Blocks uint64  // of Layout's size
	Layout Layout  // how a key's bits lie
}

// Layout is the arrangement of a key's bits in a filter.
type Layout uint8

const (
	// PairedLines is that of [Filter]: half of the bits in each of two cache lines
	// of a block of 4,096 bits.
	PairedLines Layout = 1

	// SplitBlocks is that of [SplitBlock], from Apache Parquet: eight bits in a
	// block of 256.
	SplitBlocks Layout = 2

	// AnyBits is that of package classic: no blocks, each bit anywhere. Plan.Blocks
	// counts single bits.
	AnyBits Layout = 3

	// Buckets is that of [Cuckoo]: fingerprints of a byte, in buckets. Plan.Blocks counts
	// the buckets, and Plan.Probes the slots of one.
	Buckets Layout = 4
)

func (l Layout) String() string {
	if g := l.geometry(); g != nil {
		return g.name
	}
	return fmt.Sprintf("layout %d", uint8(l))
}

// geometry says how to size a layout.
type geometry struct {
	sizing.Geometry
	layout Layout
	name   string
}

var pairedLines = geometry{
	layout: PairedLines,
	name:   "paired lines",
	Geometry: sizing.Geometry{
		BlockBits: kernel.BlockBits,
		MaxBlocks: kernel.MaxBlocks,
		Probes:    []int{2, 4, 6, 8, 10, 12, 14, 16},
		// Here 16 bits per key need nearly twice the textbook's space, and below
		// it more and more.
		MinRate: 1e-12,
		Rate:    func(n, blocks uint64, probes int) float64 { return rate.Paired(n, blocks, probes/2) },
	},
}

var splitBlocks = geometry{
	layout: SplitBlocks,
	name:   "split blocks",
	Geometry: sizing.Geometry{
		BlockBits: kernel.SplitBlockBits,
		MaxBlocks: kernel.MaxSplitBlocks,
		Probes:    []int{splitProbes},
		MinRate:   1e-8, // four times the textbook's space
		Rate:      func(n, blocks uint64, _ int) float64 { return rate.Split(n, blocks) },
	},
}

// anyBits is the geometry of a filter in which any bits may be set. Package classic
// sizes it.
var anyBits = geometry{
	layout:   AnyBits,
	name:     "any bits",
	Geometry: sizing.Geometry{BlockBits: 1, Rate: rate.Classic},
}

// buckets is the geometry of a cuckoo filter, whose blocks are of any size.
var buckets = geometry{
	layout: Buckets,
	name:   "buckets",
	Geometry: sizing.Geometry{
		BlockBits: 8, // of a slot
		Rate:      func(n, blocks uint64, _ int) float64 { return rate.Cuckoo(n, blocks) },
	},
}

func (l Layout) geometry() *geometry {
	switch l {
	case PairedLines:
		return &pairedLines
	case SplitBlocks:
		return &splitBlocks
	case AnyBits:
		return &anyBits
	case Buckets:
		return &buckets
	}
	return nil
}

// Bytes is the memory that the bits take.
func (p Plan) Bytes() uint64 { return (p.Bits + 7) / 8 }

// BitsPerKey is m/n.
func (p Plan) BitsPerKey() float64 { return float64(p.Bits) / float64(p.Keys) }

// RateAt is the expected false-positive rate with n different keys in the
// filter, more or fewer than planned.
func (p Plan) RateAt(n uint64) float64 {
	return p.Layout.geometry().Rate(n, p.Blocks, p.Probes)
}

func (p Plan) String() string {
	return fmt.Sprintf("n %d, p %.4g, m %d, k %d", p.Keys, p.Rate, p.Bits, p.Probes)
}

// ClassicBitsPerKey is what a textbook Bloom filter needs for rate p with the
// best k: log2(1/p)/ln 2 (Bloom 1970; Broder and Mitzenmacher 2004, equation 2).
// It is the yardstick for every layout's overhead.
func ClassicBitsPerKey(p float64) float64 { return rate.Textbook(p) }

const (
	maxProbes   = filterfile.MaxPairedProbes
	splitProbes = filterfile.SplitProbes

	maxKeys = sizing.MaxKeys
)

// Plan sizes a filter: the fewest blocks that keep the rate, then the fewest
// probes. It is deterministic: the same Config gives the same Plan on every
// machine.
//
// The error wraps [ErrConfig], [ErrRate] or [ErrBudget] and says what to change.
func (c Config) Plan() (Plan, error) { return c.plan(&pairedLines) }

func (c Config) plan(g *geometry) (Plan, error) {
	size, err := g.Fit(sizing.Want{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits, Probes: c.Probes, Folds: c.Folds, Budget: c.Budget})
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Keys: size.Keys, Rate: size.Rate,
		Bits: size.Blocks * g.BlockBits, Probes: size.Probes, Blocks: size.Blocks,
		Layout: g.layout,
	}, nil
}
