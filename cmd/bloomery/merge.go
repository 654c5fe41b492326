package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
)

// mergeCommand is `bloomery merge`.
type mergeCommand struct {
	combining
	allowOverfull bool
}

// combining is what merge and intersect have in common.
type combining struct {
	output string
	force  bool
	secret string
	asJSON bool
	anyfile.Options
}

func newMerge() *cobra.Command {
	m := &mergeCommand{}
	cmd := &cobra.Command{
		Use:   "merge -o OUT A B...",
		Short: "Merge filters (union)",
		Long: `Merge writes to OUT a filter that answers as if the keys of all the others had
been added to it: the bitwise OR, which is exact. All must have the same kind,
hash and seed. Filters larger by a whole factor are folded to the size of the
smallest (see 'bloomery fold'); in other programs' formats all must have the same
size. OUT has the format and the metadata of the first.

It reports how many keys each filter holds, and how full the result is. An
over-full result is refused, unless --allow-overfull is given.`,
		Example: `  bloomery merge -o all.bloom monday.bloom tuesday.bloom wednesday.bloom
  bloomery merge -o all.dcso part-*.dcso`,
		Args:                  twoFilters("bloomery merge -o OUT A B"),
		RunE:                  m.run,
		DisableFlagsInUseLine: true,
	}
	m.addFlags(cmd)
	cmd.Flags().BoolVar(&m.allowOverfull, "allow-overfull", false, "write the result even if it holds more keys than planned, at a higher rate")
	return cmd
}

func (c *combining) addFlags(cmd *cobra.Command) {
	addOutput(cmd, &c.output, &c.force)
	addSecret(cmd, &c.secret)
	addFormat(cmd, &c.Options)
	addJSON(cmd, &c.asJSON, "print the report as one JSON object on standard output")
}

// twoFilters wants at least two filter files.
func twoFilters(example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return usagef("name at least two filter files: %s", example)
		}
		return nil
	}
}

// component is one of the filters that are combined.
type component struct {
	File string `json:"file"`
	human.FilterJSON
	report human.Condition
}

// combinedJSON is what merge and intersect report.
type combinedJSON struct {
	File  string      `json:"file"`
	Kind  string      `json:"kind"`
	Parts []component `json:"parts"`
	human.FilterJSON
	Common      *float64 `json:"estimated_common_keys,omitempty"`
	CommonError *float64 `json:"estimated_common_keys_error,omitempty"`
}

// combine opens the filters, the smallest one for changing, and has with combine
// each of the others with it. It returns the result, and what each filter was.
func (c *combining) combine(paths []string, with func(into, other *anyfile.File) error) (into *anyfile.File, parts []component, err error) {
	if err := mayWrite(c.output, c.force); err != nil {
		return nil, nil, err
	}
	smallest, meta, err := c.survey(paths, &parts)
	if err != nil {
		return nil, nil, err
	}
	into, err = c.openOne(paths[smallest], anyfile.ToChange)
	if err != nil {
		return nil, nil, err
	}
	for i, path := range paths {
		if i == smallest {
			continue
		}
		other, err := c.openOne(path, anyfile.ToRead)
		if err == nil {
			err = with(into, other)
			other.Close()
		}
		if err != nil {
			into.Close()
			return nil, nil, c.explain(err, paths[smallest], path)
		}
	}
	if n, ok := into.Filter.(anyfile.Noted); ok && into.Foreign == nil {
		if err := n.SetMeta(meta); err != nil {
			into.Close()
			return nil, nil, err
		}
	}
	return into, parts, nil
}

// survey looks at all filters, one at a time: which is the smallest, and what
// metadata the result gets. Keys in different normal forms do not mix.
func (c *combining) survey(paths []string, parts *[]component) (smallest int, meta map[string]string, err error) {
	var least uint64
	var files []*anyfile.File
	defer func() {
		if err == nil {
			err = c.RefuseIdle(files...)
		}
		if err == nil && c.secret != "" && !slices.ContainsFunc(files, (*anyfile.File).NeedsSecret) {
			err = fmt.Errorf("%s: the filter is not keyed: leave --secret out", paths[0])
		}
	}()
	for i, path := range paths {
		f, err := c.openOne(path, anyfile.ToRead)
		if err != nil {
			return 0, nil, err
		}
		files = append(files, f)
		r, noted := f.Condition(), f.Meta()
		f.Close()
		*parts = append(*parts, component{path, human.Describe(r), r})
		if i == 0 {
			meta = noted
		} else if form, first := noted[anyfile.NormalizeMeta], meta[anyfile.NormalizeMeta]; form != first {
			return 0, nil, fmt.Errorf("%s was built with %s and %s with %s: the keys of the two do not mix", paths[0], formName(first), path, formName(form))
		}
		if i == 0 || r.Plan.Blocks < least {
			smallest, least = i, r.Plan.Blocks
		}
	}
	return smallest, meta, nil
}

func formName(form string) string {
	if form == "" {
		return "no --normalize"
	}
	return "--normalize " + form
}

func (c *combining) openOne(path string, mode anyfile.OpenMode) (*anyfile.File, error) {
	f, err := c.Open(path, mode)
	if err != nil {
		return nil, err
	}
	// Bits are combined without keys, but exceptions are keys.
	_, keysNeeded := f.Filter.(*bloom.Exceptions)
	if f.NeedsSecret() && (c.secret != "" || keysNeeded) {
		if err := anyfile.Unlock(c.secret, f); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// explain names the files that cannot be combined, and says what to do.
func (c *combining) explain(err error, into, other string) error {
	if !errors.Is(err, bloom.ErrUnlike) {
		return err
	}
	return fmt.Errorf("%s and %s: %w; build both again from their keys, with the same kind, --seed or --secret, -n and -p", into, other, err)
}

// errKinds refuses two filters of different types.
func errKinds(into, other *anyfile.File) error {
	if into.Kind() != other.Kind() {
		return fmt.Errorf("%w: one is a %s, the other a %s", bloom.ErrUnlike, into.Kind(), other.Kind())
	}
	if into.Kind() == "chain" {
		return fmt.Errorf("%w: the layers of two chains differ; chains of one layer can be merged after 'bloomery convert --to bloomery'", bloom.ErrUnlike)
	}
	if into.Kind() == bloom.KindCuckoo.String() {
		return fmt.Errorf("%w: the fingerprints of one cuckoo filter have no place in another: build one from the keys of both", bloom.ErrUnlike)
	}
	return fmt.Errorf("%w: a %s consists of several filters, which differ from those of the other", bloom.ErrUnlike, into.Kind())
}

// union adds what other holds to into.
func union(into, other *anyfile.File) error {
	switch f := into.Filter.(type) {
	case *bloom.Filter:
		return withSame(f, other, f.Union, into)
	case *bloom.SplitBlock:
		return withSame(f, other, f.Union, into)
	case *classic.Filter:
		return withSame(f, other, f.Union, into)
	case *bloom.Counting:
		return withSame(f, other, f.Union, into)
	case *bloom.Exceptions:
		return withSame(f, other, f.Union, into)
	}
	return errKinds(into, other)
}

// withSame does something with the other filter if it is of the same type.
func withSame[F interop.Filter](_ F, other *anyfile.File, do func(F) error, into *anyfile.File) error {
	g, ok := other.Filter.(F)
	if !ok {
		return errKinds(into, other)
	}
	return do(g)
}

func (m *mergeCommand) run(cmd *cobra.Command, args []string) error {
	into, parts, err := m.combine(args, union)
	if err != nil {
		return err
	}
	defer into.Close()
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, nil)
	r := into.Condition()
	switch {
	case r.Over() && !m.allowOverfull:
		return fmt.Errorf("%s; %s was not written: build a larger one from the keys, or give --allow-overfull", human.Overfull(r.Report), m.output)
	case r.Over():
		tell.Warn("%s", human.Overfull(r.Report))
	case !r.Unplanned && r.Full() >= fullness[0]:
		tell.Warn("%s", human.NearlyFull(r.Report))
	}
	return m.finish(cmd, tell, into, parts, combinedJSON{})
}

// finish writes the result and reports.
func (c *combining) finish(cmd *cobra.Command, tell *lines.Reporter, into *anyfile.File, parts []component, v combinedJSON) error {
	if err := replaceFile(c.output, nil, into.Encode); err != nil {
		return err
	}
	r := into.Condition()
	if c.asJSON {
		v.File, v.Kind, v.Parts, v.FilterJSON = c.output, into.Kind(), parts, human.Describe(r)
		return printJSON(cmd.OutOrStdout(), v)
	}
	for _, p := range parts {
		folded := ""
		if p.report.Plan.Blocks > r.Plan.Blocks {
			folded = fmt.Sprintf(", folded by %d", p.report.Plan.Blocks/r.Plan.Blocks)
		}
		fullness := ", " + human.Full(p.report.Report) + " full"
		if p.report.Unplanned {
			fullness = ""
		}
		tell.Say("%s: %s keys%s%s", p.File, estimate(p.report.Report), fullness, folded)
	}
	if !slices.ContainsFunc(parts, func(p component) bool { return human.Finite(p.report.Keys) == nil }) && v.Common != nil {
		tell.Say("in all of them: %s +- %s keys, by their bits", human.Round(*v.Common), human.Round(*v.CommonError))
	}
	tell.Say("%s: %s keys; %s", c.output, estimate(r.Report), human.Fullness(r))
	return nil
}
