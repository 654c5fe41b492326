package main

import (
	"fmt"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/machine"
	"github.com/spf13/cobra"
)

// planCommand is `bloomery plan`.
type planCommand struct {
	keys    human.CountFlag
	rate    human.RateFlag
	bits    human.BitsFlag
	probes  human.ProbesFlag
	layouts []string
	budget  human.SizeFlag

	window      human.TimeFlag
	generations int

	plot   string
	force  bool
	asJSON bool
}

func newPlan() *cobra.Command {
	p := &planCommand{}
	cmd := &cobra.Command{
		Use:   "plan {-n N [-p P] | -n N -m BITS | -p P -m BITS} [-k K]",
		Short: "Work out the size of a filter, or what it can hold",
		Long: `Plan sizes a filter from two of n (distinct keys), p (false-positive rate) and
m (bits), and prints the rest: what it costs, how the other layouts compare,
whether it fits into this machine's memory, and commands to paste. It writes no
filter. With all three it says whether m bits keep the rate; with n alone, p is
0.001, as in build.

The layouts are
  paired     the default, and what build makes: two cache lines a lookup, at a
             few percent more space than the textbook's
  split      Parquet's split blocks: one cache line; for rates of 0.3% or more
  classic    the textbook's: bits anywhere, a cache line for each; any k
  counting   paired, with a counter of four bits for each of the m bits, so that
             keys can be removed: four times the memory
The first one in --layout is planned; the others are shown for comparison.

With --window it plans a window, which forgets: n is the number of distinct keys in
that time. The rate holds however they arrive; the memory depends on how they do.

--plot draws two charts into one file: the rate against bits per key, for each k
of a textbook filter and for the other layouts; and the rate of the planned
filter from a tenth of its keys to ten times as many.`,
		Example: `  bloomery plan -n 1e9 -p 0.1%                           # how large?
  bloomery plan -n 1e9 -m 2GiB                           # how good?
  bloomery plan -p '1 in 1000' -m 64MiB                  # how many?
  bloomery plan -n 50M -p 1e-6 --budget 128MiB           # too little: exit code 2
  bloomery plan -n 1e6 -p 1% -k 4 --layout classic,split
  bloomery plan -n 1e9 -p 0.1% --plot chart.svg
  bloomery plan -n 50M -p 0.1% --window 24h              # what does forgetting cost?`,
		Args:                  noArgs,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.VarP(&p.keys, "keys", "n", "n, the number of distinct keys: 1000000, 1e6, 1_000_000, 1M")
	flags.VarP(&p.rate, "rate", "p", `p, the false-positive rate: 0.001, 0.1%, 1/1000, "1 in 1000" (with -n alone: 0.001)`)
	flags.VarP(&p.bits, "bits", "m", "m, the size in bits, or in bytes with a unit like 2GiB")
	flags.VarP(&p.probes, "probes", "k", "`K`, the bits set per key: paired and counting even, 2 to 16; split 8; classic 1 to 255 (default: the best)")
	flags.StringSliceVar(&p.layouts, "layout", nil, "the `LAYOUTS` to compare, the planned one first: "+strings.Join(layoutNames(), ",")+" (default: all)")
	cmd.RegisterFlagCompletionFunc("layout", fixed(layoutNames()...))
	addBudget(cmd, &p.budget, "a larger plan is refused")
	flags.Var(&p.window, "window", "plan a window that forgets keys after this time, like 24h or 7d")
	flags.IntVar(&p.generations, "generations", defaultGenerations, "with --window: `G`, from 1 to 30; keys are forgotten at most a G-th of the time late")
	flags.StringVar(&p.plot, "plot", "", "draw charts of the plan into `FILE`, as SVG")
	flags.BoolVar(&p.force, "force", false, "replace the file of --plot if it exists")
	addJSON(cmd, &p.asJSON, "print one JSON object")
	return cmd
}

// defaultGenerations is the default of bloom.WindowConfig.
const defaultGenerations = 4

func (p *planCommand) run(cmd *cobra.Command) error {
	stdout := cmd.OutOrStdout()
	if p.window == 0 {
		if err := idle(cmd, "it is for --window", "generations"); err != nil {
			return err
		}
	}
	if p.plot == "" {
		if err := idle(cmd, "it is for --plot", "force"); err != nil {
			return err
		}
	}
	if p.window != 0 {
		return p.planWindow(stdout)
	}
	chosen, err := parseLayouts(p.layouts)
	if err != nil {
		return err
	}
	if p.keys != 0 && p.rate == 0 && p.bits == 0 && p.probes == 0 {
		p.rate = defaultRate
	}
	if err := p.checkLetters(chosen[0]); err != nil {
		return err
	}
	if p.plot == "-" {
		return usagef("name the file of the chart: --plot chart.svg")
	}
	if p.plot != "" {
		if err := mayWrite(p.plot, p.force); err != nil {
			return err
		}
	}
	plan, err := chosen[0].plan(p.config(uint64(p.budget)))
	if err != nil {
		return inFlags(err, "-m")
	}
	v := p.describe(chosen, plan)
	if p.plot != "" {
		if err := replaceFile(p.plot, nil, p.chart(chosen[0], plan).figure().WriteSVG); err != nil {
			return err
		}
	}
	if p.asJSON {
		return printJSON(stdout, v)
	}
	return v.print(stdout, p.keys == 0)
}

// config returns the config that the flags describe.
func (p *planCommand) config(budget uint64) bloom.Config {
	return bloom.Config{Keys: uint64(p.keys), Rate: float64(p.rate), Bits: uint64(p.bits), Probes: int(p.probes), Budget: budget}
}

// checkLetters refuses too few of n, p, m and k. The library refuses contradictions.
func (p *planCommand) checkLetters(l layout) error {
	given := 0
	for _, is := range []bool{p.keys != 0, p.rate != 0, p.bits != 0} {
		if is {
			given++
		}
	}
	switch {
	case given >= 2:
		return nil
	case p.bits != 0 && p.probes != 0:
		if l.name == "classic" {
			return nil // n is the number that sets half of the bits
		}
		return usagef("-m and -k alone are a plan only with --layout classic: give -n (keys) or -p (rate) as well")
	case p.probes != 0:
		return usagef("give two of -n (keys), -p (rate) and -m (bits): -k is in addition, and replaces none of them")
	}
	return usagef("give two of -n (keys), -p (rate) and -m (bits)")
}

// describe collects everything that is printed.
func (p *planCommand) describe(chosen []layout, plan bloom.Plan) planJSON {
	v := planJSON{
		layoutJSON: describeLayout(chosen[0], plan),
		Budget:     uint64(p.budget),
		Machine:    machineJSON{machine.Memory(), machine.Available()},
		Commands:   p.commands(chosen[0], plan),
	}
	for i, l := range chosen {
		row := v.layoutJSON
		if i > 0 {
			other, err := l.plan(p.config(0))
			if err != nil {
				row = layoutJSON{Layout: l.name, Refused: inFlags(err, "-m").Error()}
			} else {
				row = describeLayout(l, other)
			}
		}
		v.Layouts = append(v.Layouts, row)
	}
	return v
}

// chart is the plan as a picture.
func (p *planCommand) chart(l layout, plan bloom.Plan) planChart {
	target := plan.Rate
	if p.rate != 0 {
		target = float64(p.rate)
	}
	return planChart{layout: l, plan: plan, probes: int(p.probes), target: target}
}

// planJSON is a plan and what follows from it. The fields of the planned layout are
// its own fields.
type planJSON struct {
	layoutJSON
	Budget   uint64       `json:"budget_bytes,omitempty"`
	Machine  machineJSON  `json:"machine"`
	Commands commandsJSON `json:"commands"`
	Layouts  []layoutJSON `json:"layouts"`
}

// layoutJSON is one layout's plan, or the reason that it has none.
type layoutJSON struct {
	*sizeJSON        // nil: refused
	Layout    string `json:"layout"`
	Refused   string `json:"refused,omitempty"`
}

type sizeJSON struct {
	Keys         uint64   `json:"keys"`
	Rate         float64  `json:"rate"`
	OneIn        float64  `json:"one_in"`
	Bits         uint64   `json:"bits"`
	Probes       int      `json:"probes"`
	Bytes        uint64   `json:"bytes"` // in memory
	BitsPerKey   float64  `json:"bits_per_key"`
	Overhead     *float64 `json:"overhead"`       // over the best textbook filter of this rate; null at rate 1
	RateAtDouble float64  `json:"rate_at_double"` // with 2n keys
	LinesPerHit  float64  `json:"cache_lines_per_hit"`
	LinesPerMiss float64  `json:"cache_lines_per_miss"`
	FileBytes    uint64   `json:"file_bytes"`
}

// machineJSON is this machine's memory; zero if unknown.
type machineJSON struct {
	Memory    uint64 `json:"memory_bytes"`
	Available uint64 `json:"available_bytes"`
}

func describeLayout(l layout, p bloom.Plan) layoutJSON {
	memory := l.memory(p)
	bitsPerKey := float64(memory) * 8 / float64(p.Keys)
	if l.bytesPerByte == 1 {
		bitsPerKey = p.BitsPerKey() // to the bit, not the byte
	}
	found, absent := l.lines(p)
	return layoutJSON{Layout: l.name, sizeJSON: &sizeJSON{
		Keys:         p.Keys,
		Rate:         p.Rate,
		OneIn:        1 / p.Rate,
		Bits:         p.Bits,
		Probes:       p.Probes,
		Bytes:        memory,
		BitsPerKey:   bitsPerKey,
		Overhead:     human.Finite(bitsPerKey/bloom.ClassicBitsPerKey(p.Rate) - 1),
		RateAtDouble: p.RateAt(2 * p.Keys),
		LinesPerHit:  found,
		LinesPerMiss: absent,
		FileBytes:    l.fileBytes(p),
	}}
}

// fit says in a word or two how a filter of this many bytes fits this machine and
// the budget; "" if nothing is known.
func (v planJSON) fit(bytes uint64) string {
	switch m := v.Machine; {
	case v.Budget != 0 && bytes > v.Budget:
		return "over budget"
	case v.Budget != 0:
		return "fits"
	case m.Memory == 0:
		return ""
	case bytes > m.Memory:
		return "too large"
	case m.Available != 0 && bytes > m.Available:
		return "tight"
	}
	return "fits"
}

// verdict is fit for the planned filter, in a sentence.
func (v planJSON) verdict() string {
	m := v.Machine
	if m.Memory == 0 {
		return "It is unknown how much memory this machine has."
	}
	has := fmt.Sprintf("This machine has %s of memory", human.BinarySize(m.Memory))
	if m.Available != 0 {
		has += fmt.Sprintf(", %s of it free", human.BinarySize(m.Available))
	}
	size := human.BinarySize(v.Bytes)
	switch {
	case v.Bytes > m.Memory:
		return has + fmt.Sprintf(":\nthe filter does not fit. It needs more memory than %s, a higher rate or fewer keys.", size)
	case m.Available != 0 && v.Bytes > m.Available:
		return has + fmt.Sprintf(":\nthe filter's %s are tight; other programs must free memory first.", size)
	}
	share := float64(v.Bytes) / float64(m.Memory)
	if share < 0.001 {
		return has + ":\nthe filter fits, and takes almost none of it."
	}
	return has + fmt.Sprintf(":\nthe filter fits, and takes %s of it.", human.Percent(share))
}
