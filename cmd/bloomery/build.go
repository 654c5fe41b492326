package main

import (
	"fmt"
	"strings"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
)

// defaultRate applies without -p.
const defaultRate = 0.001

// buildCommand is `bloomery build`.
type buildCommand struct {
	output        string
	keys          human.KeysFlag
	rate          human.RateFlag
	kind          string
	span          human.TimeFlag
	format        string
	scheme        string
	bits          human.BitsFlag
	probes        human.ProbesFlag
	bucketSize    uint16
	iterations    uint16
	expansion     uint16
	folds         human.CountFlag
	budget        human.SizeFlag
	seed          human.SeedFlag
	secret        string
	meta          []string
	normalize     string
	funnel        string
	force         bool
	allowOverfull bool
	null          bool
	asJSON        bool

	given func(flag string) bool // on the command line
}

func newBuild() *cobra.Command {
	b := &buildCommand{rate: defaultRate}
	cmd := &cobra.Command{
		Use:   "build -o F [-n N] [-p P] [FILE...]",
		Short: "Build a filter file from lines",
		Long: `Build makes a filter from the lines of the files, or of standard input, and writes
it to F through a temporary file, so that F is never half written. It reports on
standard error what was read and how full the filter is.

Without -n the lines are counted first; with -n auto the distinct ones are
estimated. Both need files, which are read twice. The command fails if there are
more distinct keys than planned.

--kind makes another kind of filter: splitblock, classic, counting, scalable or
scalablecounting (which grow, and so need no -n), window (which forgets after
--span) or cuckoo (RedisBloom's; its rate follows from its size, and a line that
comes twice is in it twice). From counting, scalablecounting and cuckoo filters
'bloomery remove' removes lines. With --format the file is in another program's
format, and as large as that program would make it.
` + normalizeHelp,
		Example: `  bloomery build -o seen.bloom urls.txt
  zcat logs/*.gz | bloomery build -o ips.bloom -n 5M -p 1e-4
  bloomery build -o list.bloom -n auto -p '1 in 10000' --meta source=hashlookup hashes.txt.zst
  bloomery build -o urls.bloom --normalize trim,url urls.txt
  bloomery build -o list.dcso --format dcso -n 1e6 -p 1e-4 hashes.txt
  find . -print0 | bloomery build -0 -o files.bloom -n 1M`,
		RunE:                  b.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	addOutput(cmd, &b.output, &b.force)
	flags.VarP(&b.keys, "keys", "n", "the number of distinct lines to plan for, or auto (default: count all lines first)")
	flags.VarP(&b.rate, "rate", "p", `the false-positive rate: 0.001, 0.1%, 1/1000, "1 in 1000"`)
	flags.StringVar(&b.kind, "kind", "filter", "the `KIND` of filter: "+joined(kindNames()))
	flags.Var(&b.span, "span", "for a window: remember a line for at least this long, like 24h")
	flags.StringVar(&b.format, "format", "", "write the `FORMAT` of another program; see 'bloomery convert --list'")
	flags.StringVar(&b.scheme, "scheme", "", "for a classic filter, or a format with several: the `SCHEME` that maps keys to bit positions")
	flags.Var(&b.bits, "bits", "for a classic filter or another program's format: m, instead of a size from -n and -p")
	flags.Var(&b.probes, "probes", "for the same: `K`, the bits that a key sets")
	flags.Uint16Var(&b.bucketSize, "bucket-size", 0, "for a cuckoo filter: the slots of a bucket, `N` (default 2)")
	flags.Uint16Var(&b.iterations, "iterations", 0, "for the same: how many fingerprints an add may move, `N` (default 20)")
	flags.Uint16Var(&b.expansion, "expansion", 0, "for the same: how many times larger each layer is than the one before, `N`; 0: it does not grow (default 1)")
	flags.Var(&b.folds, "folds", "size the filter so that 'bloomery fold --by N' can shrink it later")
	flags.Var(&b.seed, "seed", "the seed of the hash, which is stored in the file")
	flags.StringArrayVar(&b.meta, "meta", nil, "store `KEY=VALUE` in the file's metadata; may be repeated")
	flags.BoolVar(&b.allowOverfull, "allow-overfull", false, "continue beyond n keys, at a higher rate than planned")
	flags.StringVar(&b.funnel, "funnel", "", "the `FUNNEL` that makes Guava's keys: "+joined(anyfile.FunnelNames()))
	addNull(cmd, &b.null)
	addNormalize(cmd, &b.normalize)
	addSecret(cmd, &b.secret)
	addBudget(cmd, &b.budget, "if it needs more, the command fails")
	addJSON(cmd, &b.asJSON, "print the report as one JSON object on standard output")
	cmd.MarkFlagsMutuallyExclusive("kind", "format")
	cmd.RegisterFlagCompletionFunc("kind", fixed(kindNames()...))
	cmd.RegisterFlagCompletionFunc("format", completeFormats)
	cmd.RegisterFlagCompletionFunc("scheme", completeSchemes)
	cmd.RegisterFlagCompletionFunc("funnel", fixed(anyfile.FunnelNames()...))
	return cmd
}

func (b *buildCommand) run(cmd *cobra.Command, args []string) error {
	b.given = cmd.Flags().Changed
	if err := b.refuseFlags(); err != nil {
		return err
	}
	if b.output == "" || b.output == "-" {
		return usagef("name the file to write: -o seen.bloom")
	}
	if err := mayWrite(b.output, b.force); err != nil {
		return err
	}
	exitWhenInterrupted()
	sources, err := lines.Find(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, sources)
	watching.Store(tell)
	f, err := b.newFile(sources, tell)
	if err != nil {
		return err
	}
	defer f.Close()
	lines.HintTerminal(tell, sources)
	total, err := b.fill(f, sources, tell)
	tell.Finish()
	if err != nil {
		return err
	}
	if err := mayWrite(b.output, b.force); err != nil { // it may have appeared meanwhile
		return err
	}
	if err := replaceFile(b.output, nil, f.Encode); err != nil {
		return err
	}
	return b.report(cmd, tell, f, total)
}

// newFile makes the empty filter and the metadata of its file.
func (b *buildCommand) newFile(sources []*lines.Source, tell *lines.Reporter) (f *anyfile.File, err error) {
	meta, err := parseMeta(b.meta)
	if err != nil {
		return nil, err
	}
	if b.normalize != "" {
		meta[anyfile.NormalizeMeta] = b.normalize
	}
	f = &anyfile.File{Path: b.output}
	if f.Keys, err = anyfile.NewKeyMap(b.funnel, b.normalize); err != nil {
		return nil, err
	}
	size, err := b.size(f.Keys, sources, tell)
	if err != nil {
		return nil, err
	}
	if err := b.makeFilter(f, size); err != nil {
		return nil, err
	}
	if err := b.note(f, meta, tell); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// note puts the metadata into the filter, if its file has any.
func (b *buildCommand) note(f *anyfile.File, meta map[string]string, tell *lines.Reporter) error {
	if n, ok := f.Filter.(anyfile.Noted); ok && f.Foreign == nil {
		return n.SetMeta(meta)
	}
	if len(b.meta) > 0 {
		return usagef("--meta: a %s in the format %s has no room for metadata: leave it out, or build a file in our own format", f.Kind(), f.Format())
	}
	if b.normalize != "" {
		anyfile.WarnNotNoted(tell, f, b.normalize)
	}
	return nil
}

func parseMeta(pairs []string) (map[string]string, error) {
	meta := make(map[string]string)
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("--meta wants KEY=VALUE, not %q", pair)
		}
		if key == anyfile.NormalizeMeta {
			return nil, usagef("--meta %s is set by --normalize, which also converts the lines: use that", key)
		}
		if _, twice := meta[key]; twice {
			return nil, usagef("--meta %s was given twice", key)
		}
		meta[key] = value
	}
	return meta, nil
}

// fill adds all lines, and stops where the filter is over-full.
func (b *buildCommand) fill(f *anyfile.File, sources []*lines.Source, tell *lines.Reporter) (total uint64, err error) {
	var watch *gauge // nil: the filter makes room itself
	if !grows(f.Filter) && !f.Unplanned() {
		watch = newGauge(f, true)
	}
	reader := &lines.Reader{
		Sources:   sources,
		Separator: separator(b.null),
		Count:     tell.Read,
	}
	var to adder = anyAdder{f}
	if ours, ok := f.Filter.(*bloom.Filter); ok {
		if to, err = newAdder(ours); err != nil {
			return 0, err
		}
	}
	err = reader.Each(func(part lines.Batch) error {
		keys, err := f.Keys.Of(part.Keys)
		for err == nil && len(keys) > 0 {
			var some [][]byte
			some, keys = watch.cut(keys)
			total += uint64(len(some))
			err = b.watch(f, watch, to.add(some), total)
		}
		return err
	})
	isNew, closing := to.finish()
	if err == nil {
		err = closing
	}
	if err == nil {
		err = b.watch(f, watch, isNew, total)
	}
	return total, err
}

// anyAdder adds to a filter of any kind.
type anyAdder struct{ filter interop.Filter }

func (a anyAdder) add(keys [][]byte) int { return a.filter.AddMany(keys, nil) }
func (a anyAdder) finish() (int, error)  { return 0, nil }

// watch fails when there are more distinct keys than planned.
func (b *buildCommand) watch(f *anyfile.File, watch *gauge, isNew int, total uint64) error {
	if watch == nil {
		g, ok := f.Filter.(growing)
		if ok && g.Err() != nil && b.allowOverfull && !refusesKeys(f.Filter) {
			return nil // report warns
		}
		if ok && g.Err() != nil {
			return fmt.Errorf("%w, after %s; %s was not written: give a larger --budget, or a larger -n at the start", g.Err(), human.Count(total, "line"), b.output)
		}
		return nil
	}
	level, r := watch.add(isNew)
	switch planned := r.Plan.Keys; {
	case level < 1: // as it was planned
	case total <= planned:
		// No more lines than keys were planned for, so the estimate is too high,
		// as where another program's hash is uneven. Look again a little later.
		watch.levels = fullness[1:]
		watch.lookAt = watch.added + planned/1000 + 1
	case b.allowOverfull: // report warns
	default:
		return fmt.Errorf("%s, after %s; %s was not written: give a larger -n, or --allow-overfull to continue at a higher rate",
			human.Overfull(r), human.Count(total, "line"), b.output)
	}
	return nil
}

// buildJSON is what build reports.
type buildJSON struct {
	File     string  `json:"file"`
	Lines    uint64  `json:"lines"`
	New      uint64  `json:"new"`
	Repeats  uint64  `json:"repeats"`
	Mistaken float64 `json:"mistaken_expected"` // of these, new lines that were mistaken for old ones
	human.FilterJSON
}

func (b *buildCommand) report(cmd *cobra.Command, tell *lines.Reporter, f *anyfile.File, total uint64) error {
	r := f.Condition()
	if r.Over() && total > r.Plan.Keys {
		tell.Warn("%s", human.Overfull(r.Report))
	}
	mistaken := mistakenBy(f, bloom.Report{Plan: r.Plan}, r.Added, total)
	if b.asJSON {
		return printJSON(cmd.OutOrStdout(), buildJSON{b.output, total, r.Added, total - r.Added, mistaken, human.Describe(r)})
	}
	tell.Say("%s: %s, %s new, %s", b.output, human.Count(total, "line"), human.Commas(r.Added), human.SeenBefore(total-r.Added, mistaken))
	tell.Say("%s: %s", b.output, human.Fullness(r))
	return nil
}

// An adder puts keys into a filter. add and finish return how many of the keys
// that are in by now were new.
type adder interface {
	add(keys [][]byte) (isNew int)
	finish() (isNew int, err error)
}

const (
	// bulkFrom is the size of filter, in bytes, from which on sorting the keys
	// by where they fall costs less than the cache misses it saves.
	bulkFrom = 256 << 20

	// bulkKeep is how many bytes of keys are kept back for that.
	bulkKeep = 512 << 20
)

func newAdder(f *bloom.Filter) (adder, error) {
	if f.Plan().Bytes() < bulkFrom {
		return directAdder{f}, nil
	}
	f.Prefault()
	bulk, err := f.Bulk(bulkKeep)
	if err != nil {
		return nil, err
	}
	feed, err := bulk.Feed()
	return &bulkAdder{bulk: bulk, feed: feed}, err
}

type directAdder struct{ filter *bloom.Filter }

func (a directAdder) add(keys [][]byte) int { return a.filter.AddMany(keys, nil) }
func (a directAdder) finish() (int, error)  { return 0, nil }

type bulkAdder struct {
	bulk  *bloom.Bulk
	feed  *bloom.Feed
	added uint64 // told so far
}

func (a *bulkAdder) add(keys [][]byte) int {
	a.feed.AddMany(keys)
	return a.tell()
}

func (a *bulkAdder) finish() (int, error) {
	err := a.feed.Close()
	return a.tell(), err
}

// tell returns what was added since it was asked last.
func (a *bulkAdder) tell() int {
	added := a.bulk.Added()
	isNew := int(added - a.added)
	a.added = added
	return isNew
}
