package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// buildCommand is `bloomery build`.
type buildCommand struct {
	output        string
	keys          countFlag
	rate          rateFlag
	budget        sizeFlag
	seed          uint64
	secret        string
	meta          []string
	force         bool
	allowOverfull bool
	null          bool
	asJSON        bool
}

func newBuild() *cobra.Command {
	b := &buildCommand{rate: 0.001}
	cmd := &cobra.Command{
		Use:   "build -o F [-n N] [-p P] [FILE...]",
		Short: "Make a filter file that holds all lines of the input",
		Long: `Build makes a filter of the lines of the files, or of standard input, and writes
it to F: beside it first and then renamed, so that F is never half a filter. It
reports on standard error what was read and how full the filter is.

Without -n the lines are counted first, which takes files that can be read
twice. A filter that gets more different keys than planned is refused.`,
		Example: `  bloomery build -o seen.bloom urls.txt
  zcat logs/*.gz | bloomery build -o ips.bloom -n 5M -p 1e-4
  bloomery build -o list.bloom -p '1 in 10000' --meta source=hashlookup hashes.txt.zst -n 1e6
  find . -print0 | bloomery build -0 -o files.bloom -n 1M`,
		RunE:                  b.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVarP(&b.output, "output", "o", "", "the filter `F`ILE to write")
	flags.VarP(&b.keys, "keys", "n", "the number of different lines to plan for (default: count all lines first)")
	flags.VarP(&b.rate, "rate", "p", `the false-positive rate: 0.001, 0.1%, 1/1000, "1 in 1000"`)
	flags.Uint64Var(&b.seed, "seed", 0, "seed of the hash; it stands in the file")
	flags.StringArrayVar(&b.meta, "meta", nil, "note `KEY=VALUE` in the file; may be repeated")
	flags.BoolVar(&b.force, "force", false, "replace F if it is there")
	flags.BoolVar(&b.allowOverfull, "allow-overfull", false, "go on beyond n keys, at a higher rate than planned")
	addNull(cmd, &b.null)
	addSecret(cmd, &b.secret)
	addBudget(cmd, &b.budget)
	addJSON(cmd, &b.asJSON, "print the report as one JSON object on standard output")
	return cmd
}

func (b *buildCommand) run(cmd *cobra.Command, args []string) error {
	if b.output == "" || b.output == "-" {
		return usagef("name the file to write: -o seen.bloom")
	}
	if err := b.mayWrite(); err != nil {
		return err
	}
	sources, err := findSources(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	f, counted, err := b.newFilter(sources)
	if err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, sources)
	hintTerminal(tell, sources)
	lines, err := b.fill(f, sources, tell, counted)
	tell.finish()
	if err != nil {
		return err
	}
	if err := b.mayWrite(); err != nil { // it may have come meanwhile
		return err
	}
	if err := f.Save(b.output); err != nil {
		return err
	}
	return b.report(cmd, tell, f, lines)
}

// mayWrite refuses to overwrite a file that was not meant to be.
func (b *buildCommand) mayWrite() error {
	if b.force {
		return nil
	}
	_, err := os.Lstat(b.output)
	if err == nil {
		return fmt.Errorf("%s: is there already: give another name, or --force to replace it", b.output)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return inputError(b.output, err)
}

// newFilter makes the empty filter. counted says that n is the number of lines.
func (b *buildCommand) newFilter(sources []*source) (f *bloom.Filter, counted bool, err error) {
	meta, err := parseMeta(b.meta)
	if err != nil {
		return nil, false, err
	}
	secret, err := readSecret(b.secret)
	if err != nil {
		return nil, false, err
	}
	if secret != nil && b.seed != 0 {
		return nil, false, usagef("give --seed or --secret, not both: a secret takes the seed's place")
	}
	keys := uint64(b.keys)
	if keys == 0 {
		keys, counted, err = countLines(sources, separator(b.null))
		if err != nil {
			return nil, false, err
		}
		if !counted {
			return nil, false, usagef("say with -n how many different lines to plan for: they can be counted first only in files that are not packed")
		}
		keys = max(keys, 1)
	}
	f, err = newFilter(bloom.Config{Keys: keys, Rate: float64(b.rate), Seed: b.seed, Secret: secret}, uint64(b.budget))
	if err != nil {
		return nil, false, err
	}
	return f, counted, f.SetMeta(meta)
}

func parseMeta(pairs []string) (map[string]string, error) {
	meta := make(map[string]string)
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("--meta wants KEY=VALUE, not %q", pair)
		}
		if _, twice := meta[key]; twice {
			return nil, usagef("--meta %s was given twice", key)
		}
		meta[key] = value
	}
	return meta, nil
}

// fill adds all lines, and stops where the filter is over-full.
func (b *buildCommand) fill(f *bloom.Filter, sources []*source, tell *teller, counted bool) (lines uint64, err error) {
	watch := newGauge(f, counted)
	reader := &lineReader{
		sources:    sources,
		separator:  separator(b.null),
		count:      tell.read,
		beforeWait: func() error { return nil },
	}
	to, err := newAdder(f)
	if err != nil {
		return 0, err
	}
	err = reader.each(func(part batch) error {
		lines += uint64(len(part.keys))
		return b.watch(watch, to.add(part.keys), lines, tell)
	})
	isNew, closing := to.finish()
	if err == nil {
		err = closing
	}
	if err == nil {
		err = b.watch(watch, isNew, lines, tell)
	}
	return lines, err
}

// watch warns of a filter that gets full, or refuses to go on.
func (b *buildCommand) watch(watch *gauge, isNew int, lines uint64, tell *teller) error {
	level, r := watch.add(isNew)
	switch {
	case level == 0:
	case level < 1:
		tell.warn("%s", nearlyFull(r))
	case b.allowOverfull:
		tell.warn("%s", overfull(r))
	default:
		return fmt.Errorf("%s, after %s lines; %s was not written: give a larger -n, or --allow-overfull to go on at a higher rate",
			overfull(r), commas(lines), b.output)
	}
	return nil
}

// buildJSON is what build reports.
type buildJSON struct {
	File    string `json:"file"`
	Lines   uint64 `json:"lines"`
	New     uint64 `json:"new"`
	Repeats uint64 `json:"repeats"`
	filterJSON
}

func (b *buildCommand) report(cmd *cobra.Command, tell *teller, f *bloom.Filter, lines uint64) error {
	r := f.Report()
	if b.asJSON {
		return printJSON(cmd.OutOrStdout(), buildJSON{b.output, lines, r.Added, lines - r.Added, describeFilter(r)})
	}
	tell.say("%s: %s lines, %s new, %s repeats", b.output, commas(lines), commas(r.Added), commas(lines-r.Added))
	tell.say("%s: %s", b.output, state(r))
	return nil
}
