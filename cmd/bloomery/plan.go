package main

import (
	"io"
	"math"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// planCommand is `bloomery plan`.
type planCommand struct {
	keys   countFlag
	rate   rateFlag
	bits   bitsFlag
	probes int
	budget sizeFlag
	asJSON bool
}

func newPlan() *cobra.Command {
	p := &planCommand{}
	cmd := &cobra.Command{
		Use:   "plan {-n N -p P | -n N -m BITS | -p P -m BITS}",
		Short: "Work out how large a filter must be, or what it can hold",
		Long: `Plan sizes a filter from two of n (different keys), p (false-positive rate) and
m (bits), and prints the rest. Nothing is made.`,
		Example: `  bloomery plan -n 1e9 -p 0.1%
  bloomery plan -n 1e9 -m 2GiB
  bloomery plan -p '1 in 1000' -m 64MiB
  bloomery plan -n 50M -p 1e-6 --budget 256MiB --json`,
		Args:                  noArgs,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return p.run(cmd.OutOrStdout()) },
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.VarP(&p.keys, "keys", "n", "n, the number of different keys: 1000000, 1e6, 1_000_000, 1M")
	flags.VarP(&p.rate, "rate", "p", `p, the false-positive rate: 0.001, 0.1%, 1/1000, "1 in 1000"`)
	flags.VarP(&p.bits, "bits", "m", "m, the size in bits, or in bytes with a unit like 2GiB")
	flags.IntVarP(&p.probes, "probes", "k", 0, "k, bits set per key: even, 2 to 16 (default: the best)")
	addBudget(cmd, &p.budget)
	addJSON(cmd, &p.asJSON, "print one JSON object")
	return cmd
}

func (p *planCommand) run(stdout io.Writer) error {
	given := 0
	for _, is := range []bool{p.keys != 0, p.rate != 0, p.bits != 0} {
		if is {
			given++
		}
	}
	if given < 2 {
		return usagef("give two of -n (keys), -p (rate) and -m (bits)")
	}
	plan, err := bloom.Config{
		Keys:   uint64(p.keys),
		Rate:   float64(p.rate),
		Bits:   uint64(p.bits),
		Probes: p.probes,
		Budget: uint64(p.budget),
	}.Plan()
	if err != nil {
		return err
	}
	v := describe(plan, uint64(p.budget))
	if p.asJSON {
		return printJSON(stdout, v)
	}
	return v.print(stdout)
}

// planJSON is a plan with what follows from it.
type planJSON struct {
	Keys         uint64  `json:"keys"`
	Rate         float64 `json:"rate"`
	OneIn        float64 `json:"one_in"`
	Bits         uint64  `json:"bits"`
	Probes       int     `json:"probes"`
	Bytes        uint64  `json:"bytes"`
	BitsPerKey   float64 `json:"bits_per_key"`
	Overhead     float64 `json:"overhead"`       // over the textbook's best filter of this rate
	RateAtDouble float64 `json:"rate_at_double"` // with 2n keys
	LinesPerHit  float64 `json:"cache_lines_per_hit"`
	LinesPerMiss float64 `json:"cache_lines_per_miss"`
	Budget       uint64  `json:"budget_bytes,omitempty"`
}

func describe(p bloom.Plan, budget uint64) planJSON {
	return planJSON{
		Keys:         p.Keys,
		Rate:         p.Rate,
		OneIn:        1 / p.Rate,
		Bits:         p.Bits,
		Probes:       p.Probes,
		Bytes:        p.Bytes(),
		BitsPerKey:   p.BitsPerKey(),
		Overhead:     p.BitsPerKey()/bloom.ClassicBitsPerKey(p.Rate) - 1,
		RateAtDouble: p.RateAt(2 * p.Keys),
		LinesPerHit:  2,
		// The second line is read only if the first one passes; the two fill
		// alike, so each passes with about the root of p.
		LinesPerMiss: 1 + math.Sqrt(p.Rate),
		Budget:       budget,
	}
}

func (v planJSON) print(w io.Writer) error {
	t := &table{to: w}
	t.row("keys", "%s (n)", commas(v.Keys))
	t.row("rate", "%s (p = %.4g)", oneIn(v.Rate), v.Rate)
	t.row("bits", "%s (m)", commas(v.Bits))
	t.row("bits set per key", "%d (k)", v.Probes)
	t.row("memory", "%s bytes (%s)", commas(v.Bytes), binarySize(v.Bytes))
	t.row("bits per key", "%.2f", v.BitsPerKey)
	t.row("over the optimum", "%+.1f%% (a textbook filter takes %.2f bits per key)", 100*v.Overhead, v.BitsPerKey/(1+v.Overhead))
	t.row("at twice the keys", "%s", oneIn(v.RateAtDouble))
	t.row("cache lines read", "%.3g for a key that is there, %.4g for one that is not", v.LinesPerHit, v.LinesPerMiss)
	if v.Budget != 0 {
		t.row("budget", "%s bytes (%s): fits, %s used", commas(v.Budget), binarySize(v.Budget), percent(float64(v.Bytes)/float64(v.Budget)))
	}
	return t.err
}
