package main

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
)

// convertCommand is `bloomery convert`.
type convertCommand struct {
	output string
	force  bool
	list   bool
	asJSON bool
	to     string
	anyfile.Options
}

func newConvert() *cobra.Command {
	c := &convertCommand{Options: anyfile.Options{From: true}}
	cmd := &cobra.Command{
		Use:   "convert --to FORMAT -o OUT IN",
		Short: "Convert between filter formats",
		Long: `Convert writes the filter IN in another format in which its bits mean the same. The
bits depend on the hash, so formats with different hashes cannot be converted into
each other; the command then prints how to build the filter again from its keys.

"bloomery" is our own format: another program's filter keeps its scheme in it, and
so its answers, and gains checksums. A counting filter loses its counters.
IN's format is detected, or given by --from.`,
		Example: `  bloomery convert --list
  bloomery convert --to bloomery -o list.bloom list.dcso
  bloomery convert --from redis-setbit --bits 2^30 --probes 6 --to bloomery -o crawl.bloom crawl.bin
  bloomery convert --to bits-and-blooms-json -o f.json f.bin`,
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	addOutput(cmd, &c.output, &c.force)
	flags.StringVar(&c.to, "to", "", "the `FORMAT` to write")
	flags.BoolVar(&c.list, "list", false, "list the formats, and what must be given for those that are not detected")
	addFormat(cmd, &c.Options)
	flags.StringVar(&c.Options.Format, "from", "", "the `FORMAT` of IN, if it cannot be detected")
	flags.MarkHidden("format") // --from here
	addJSON(cmd, &c.asJSON, "print what was done, or the list, as JSON")
	cmd.RegisterFlagCompletionFunc("from", completeFormats)
	cmd.RegisterFlagCompletionFunc("to", func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		words, directive := completeFormats(cmd, args, start)
		return append(words, cobra.CompletionWithDesc(anyfile.OurFormat, "our own")), directive
	})
	return cmd
}

func (c *convertCommand) run(cmd *cobra.Command, args []string) error {
	switch {
	case c.list && len(args) > 0:
		return usagef("--list only lists the formats: leave the filter out")
	case c.list:
		if err := idle(cmd, "--list converts nothing", "output", "force", "to", "from", "format", "scheme", "bits", "probes"); err != nil {
			return err
		}
		return c.print(cmd.OutOrStdout())
	case len(args) != 1:
		return usagef("name one filter to convert: bloomery convert --to FORMAT -o OUT IN")
	case c.to == "":
		return usagef("name the format to write with --to: %s, %s", anyfile.OurFormat, joined(anyfile.FormatNames()))
	}
	var to *interop.Format // nil: ours
	if c.to != anyfile.OurFormat {
		var ok bool
		if to, ok = interop.FormatNamed(c.to); !ok {
			return usagef("--to %s is unknown: take one of %s, %s", c.to, anyfile.OurFormat, joined(anyfile.FormatNames()))
		}
	}
	if err := mayWrite(c.output, c.force); err != nil {
		return err
	}
	from, err := c.Open(args[0], anyfile.ToRead)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := c.RefuseIdle(from); err != nil {
		return err
	}
	made, err := c.convert(from, to)
	if err != nil {
		return err
	}
	if err := replaceFile(c.output, nil, made.Encode); err != nil {
		return c.advise(err, from, to)
	}
	return c.report(cmd, from, made)
}

// convert returns the filter in the other format. It shares the bits of from.
func (c *convertCommand) convert(from *anyfile.File, to *interop.Format) (*anyfile.File, error) {
	made := &anyfile.File{Filter: from.Filter, Path: c.output}
	if to != nil {
		file := interop.File{Filter: from.Filter}
		if from.Foreign != nil {
			file = *from.Foreign // including the state that only its format knows
		}
		file.Format = to
		made.SetForeign(&file)
	} else if chain, ok := from.Filter.(interface {
		Single() (*classic.Filter, bool)
	}); ok {
		single, ok := chain.Single()
		if !ok {
			return nil, fmt.Errorf("%s: has several layers, which our format cannot hold under another program's scheme: use the file as it is; every command reads it", from.Path)
		}
		made.Filter = single
	} else if counting, ok := from.Filter.(*bloom.Counting); ok {
		f, err := counting.Filter()
		if err != nil {
			return nil, err
		}
		made.Filter = f
	}
	if to == nil && from.Foreign != nil && len(from.Foreign.Data) > 0 && !c.force {
		return nil, fmt.Errorf("%s: has %s of free data, for which our format has no room: give --force to leave them out", from.Path, human.Count(uint64(len(from.Foreign.Data)), "byte"))
	}
	if to == nil && made.Filter == from.Filter && from.Foreign == nil {
		return nil, fmt.Errorf("%s: is already in our format: copy it", from.Path)
	}
	if len(from.Meta()) > 0 && to != nil {
		return made, c.refuseNormalized(from)
	}
	return made, nil
}

// refuseNormalized refuses a filter whose keys are in a form that the other
// format cannot record.
func (c *convertCommand) refuseNormalized(from *anyfile.File) error {
	if form := from.Meta()[anyfile.NormalizeMeta]; form != "" && !c.force {
		return fmt.Errorf("%s: was built with --normalize %s, which the format %s cannot record: give --force if the keys of every lookup will be in that form", from.Path, form, c.to)
	}
	return nil
}

// advise adds to a refusal how to build the filter in that format.
func (c *convertCommand) advise(err error, from *anyfile.File, to *interop.Format) error {
	if !errors.Is(err, interop.ErrScheme) {
		return err
	}
	r := from.Report()
	plan, keys := r.Plan, float64(r.Plan.Keys)
	if !math.IsInf(r.Keys, 1) {
		keys = max(keys, math.Ceil(r.Keys), 1) // at least as many as it was planned for
	}
	rate := fmt.Sprintf(" -p %.3g", min(max(plan.Rate, 1e-12), 0.5))
	if to.Holds == interop.Cuckoos {
		rate = "" // it follows from n
	}
	return fmt.Errorf("%w\nbuild it from the keys: bloomery build --format %s -o %s -n %d%s KEYS.txt",
		err, to.Name, anyfile.Quoted(c.output), uint64(keys), rate)
}

// convertedJSON is what convert reports.
type convertedJSON struct {
	File   string `json:"file"`
	From   string `json:"from"`
	To     string `json:"to"`
	Kind   string `json:"kind"`
	Scheme string `json:"scheme,omitempty"`
	human.FilterJSON
}

func (c *convertCommand) report(cmd *cobra.Command, from, made *anyfile.File) error {
	r := made.Condition()
	if c.asJSON {
		v := convertedJSON{File: c.output, From: from.Format(), To: c.to, Kind: made.Kind(), FilterJSON: human.Describe(r)}
		if classic, ok := made.Filter.(*classic.Filter); ok {
			v.Scheme = classic.Scheme().Name()
		}
		return printJSON(cmd.OutOrStdout(), v)
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, nil)
	tell.Say("%s: %s, from %s", c.output, c.to, from.Format())
	tell.Say("%s: %s", c.output, human.Fullness(r))
	return nil
}

// formatJSON is a row of the list.
type formatJSON struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Known bool   `json:"known_by_its_bytes"`
	Needs string `json:"needs,omitempty"`
}

func (c *convertCommand) print(w io.Writer) error {
	if c.asJSON {
		for _, f := range interop.Formats {
			if err := printJSON(w, formatJSON{f.Name, f.About, f.Matches != nil, f.Needs}); err != nil {
				return err
			}
		}
		return nil
	}
	width := len(anyfile.OurFormat)
	for _, name := range anyfile.FormatNames() {
		width = max(width, len(name))
	}
	_, err := fmt.Fprintf(w, "%-*s  our own: every kind of filter, with checksums\n", width, anyfile.OurFormat)
	for _, f := range interop.Formats {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-*s  %s%s\n", width, f.Name, f.About, formatNote(f))
		}
	}
	return err
}

func formatNote(f *interop.Format) string {
	switch {
	case f.Needs != "" && f.Matches == nil:
		return fmt.Sprintf(" (name it with --from; it needs %s)", f.Needs)
	case f.Needs != "":
		return fmt.Sprintf(" (it needs %s)", f.Needs)
	case f.Matches == nil:
		return " (name it with --from)"
	}
	return ""
}
