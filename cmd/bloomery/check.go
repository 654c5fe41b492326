package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// checkCommand is `bloomery check`.
type checkCommand struct {
	filters    []string
	any        bool
	all        bool
	label      bool
	invert     bool
	count      bool
	quiet      bool
	lineNumber bool
	strict     bool
	null       bool
	asJSON     bool
	secret     string
	normalize  string
	formatFlags
}

func newCheck() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check F [FILE...]",
		Short: "Print the lines that are probably in a filter, or surely not",
		Long: `Check prints the lines of the files, or of standard input, that are probably in
the filter F: every line that was added, and others at the filter's rate. With
-v it prints the lines that are certainly not in it. F may be a filter of any
kind, also one that another program wrote. One that 'build' made is mapped, not
read: it is ready at once, whatever its size.

With -f several filters are asked at once, and all arguments are files of lines.
A line is selected if any of the filters has it, or with --all if all have it.
` + normalizeHelp,
		Example: `  bloomery check seen.bloom urls.txt
  tail -f access.log | bloomery check -v known.bloom
  if echo "$url" | bloomery check -q seen.bloom; then echo 'seen before'; fi
  sha1sum * | cut -c 1-40 | bloomery check --normalize upper hashlookup-full.bloom
  bloomery check --label -f malware.bloom -f phishing.bloom.gz hosts.txt`,
		RunE:                  c.run,
		ValidArgsFunction:     cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&c.filters, "filter", "f", nil, "a `FILTER` to ask; may be repeated, and all arguments are then files of lines")
	flags.BoolVar(&c.any, "any", false, "select lines that any of the filters has (default)")
	flags.BoolVar(&c.all, "all", false, "select lines that all of the filters have")
	flags.BoolVar(&c.label, "label", false, "before each line print which filters have it, and a tab")
	flags.BoolVarP(&c.invert, "invert-match", "v", false, "select the other lines: those that are certainly not there")
	flags.BoolVarP(&c.count, "count", "c", false, "print only how many lines were selected")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "print nothing, stop at the first selected line")
	flags.BoolVarP(&c.lineNumber, "line-number", "n", false, "before each line print its number in its file, from 1, and a colon")
	flags.BoolVar(&c.strict, "strict", false, "exit with 3 if a filter has more keys than planned, and so a higher rate")
	addNull(cmd, &c.null)
	addSecret(cmd, &c.secret)
	addNormalize(cmd, &c.normalize)
	addFormat(cmd, &c.formatFlags)
	addJSON(cmd, &c.asJSON, "print only a summary, as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("count", "quiet", "json", "label")
	cmd.MarkFlagsMutuallyExclusive("count", "quiet", "json", "line-number")
	cmd.MarkFlagsMutuallyExclusive("any", "all")
	cmd.MarkFlagsMutuallyExclusive("label", "invert-match")
	return cmd
}

// checkJSON is check's summary.
type checkJSON struct {
	Filter   string   `json:"filter"`
	More     []string `json:"more_filters,omitempty"`
	Lines    uint64   `json:"lines"`
	Probably uint64   `json:"probably_in"`
	Not      uint64   `json:"certainly_not"`
	Selected uint64   `json:"selected"`
}

func (c *checkCommand) run(cmd *cobra.Command, args []string) error {
	paths := c.filters
	if len(paths) == 0 {
		if len(args) == 0 {
			return usagef("name the filter file: bloomery check seen.bloom urls.txt")
		}
		paths, args = args[:1], args[1:]
	}
	filters, err := c.open(paths)
	defer closeAll(filters)
	if err != nil {
		return err
	}
	sources, err := findSources(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	printing := !c.count && !c.quiet && !c.asJSON
	if err := refuseLoop(printing, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), printing, sources)
	hintTerminal(tell, sources)
	out := newLineWriter(cmd.OutOrStdout())
	look := &look{checkCommand: c, filters: newAsked(filters), out: out, printing: printing}
	for _, s := range sources { // one by one, for the line numbers
		err = look.through(&lineReader{
			sources:    []*source{s},
			separator:  separator(c.null),
			count:      tell.read,
			beforeWait: out.flush,
		})
		if err != nil {
			break
		}
	}
	tell.finish()
	if flushed := out.flush(); err == nil || err == errEnough {
		err = flushed
	}
	if err != nil {
		return err
	}
	look.sum.Filter, look.sum.More = paths[0], paths[1:]
	return c.finish(cmd, tell, filters, look.sum)
}

// open opens the filters. Those that were opened are returned also with an
// error.
func (c *checkCommand) open(paths []string) (filters []*filterFile, err error) {
	for _, path := range paths {
		f, err := c.formatFlags.open(path, toRead)
		if err != nil {
			return filters, err
		}
		filters = append(filters, f)
		if err := f.setNormalize(&c.formatFlags, c.normalize); err != nil {
			return filters, err
		}
	}
	return filters, unlock(c.secret, filters...)
}

// asked is a filter and its answers about a batch of lines.
type asked struct {
	*filterFile
	found []bool
}

func newAsked(filters []*filterFile) (all []*asked) {
	for _, f := range filters {
		all = append(all, &asked{f, make([]bool, batchKeys)})
	}
	return all
}

// look looks lines up.
type look struct {
	*checkCommand
	filters  []*asked
	out      *lineWriter
	printing bool
	line     uint64 // of the file, before the batch
	prefix   []byte
	sum      checkJSON
}

// through looks up all lines of a file, and prints the selected ones.
func (l *look) through(reader *lineReader) error {
	l.line = 0
	return reader.each(func(b batch) error {
		found, answers, err := l.ask(b.keys)
		if err != nil {
			return err
		}
		lines := uint64(len(b.keys))
		l.sum.Lines += lines
		l.sum.Probably += found
		l.sum.Not += lines - found
		l.sum.Selected = l.sum.Probably
		if l.invert {
			l.sum.Selected = l.sum.Not
		}
		switch {
		case l.quiet && l.sum.Selected > 0:
			return errEnough
		case l.printing && (l.label || l.lineNumber):
			err = l.print(b, answers)
		case l.printing:
			err = l.out.write(b, answers, !l.invert)
		}
		l.line += lines
		return err
	})
}

// ask asks all filters about the lines. The answers are what they say together.
func (l *look) ask(lines [][]byte) (found uint64, answers []bool, err error) {
	n := 0
	for _, f := range l.filters {
		keys, err := f.keys.keysOf(lines)
		if err != nil {
			return 0, nil, err
		}
		n = f.ContainsMany(keys, f.found[:len(keys)])
	}
	if len(l.filters) == 1 {
		return uint64(n), l.filters[0].found, nil
	}
	answers = make([]bool, len(lines))
	for i := range answers {
		answers[i] = l.all
		for _, f := range l.filters {
			if f.found[i] != l.all {
				answers[i] = !l.all
				break
			}
		}
		if answers[i] {
			found++
		}
	}
	return found, answers, nil
}

// print prints the selected lines with what is to stand before each.
func (l *look) print(b batch, answers []bool) error {
	rest := b.text
	for i, key := range b.keys {
		line := rest[:len(key)+1]
		rest = rest[len(line):]
		if answers[i] == l.invert {
			continue
		}
		if _, err := l.out.to.Write(l.before(i)); err != nil {
			return err
		}
		if _, err := l.out.to.Write(line); err != nil {
			return err
		}
	}
	if l.out.eager {
		return l.out.flush()
	}
	return nil
}

// before is what stands before a line: its number, and the filters that have it.
func (l *look) before(i int) []byte {
	p := l.prefix[:0]
	if l.lineNumber {
		p = append(strconv.AppendUint(p, l.line+uint64(i)+1, 10), ':')
	}
	if l.label {
		separator := ""
		for _, f := range l.filters {
			if f.found[i] {
				p = append(append(p, separator...), f.path...)
				separator = ","
			}
		}
		p = append(p, '\t')
	}
	l.prefix = p
	return p
}

// finish prints what there is to print after the lines.
func (c *checkCommand) finish(cmd *cobra.Command, tell *teller, filters []*filterFile, sum checkJSON) error {
	var err error
	switch {
	case c.count:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), sum.Selected)
	case c.asJSON:
		err = printJSON(cmd.OutOrStdout(), sum)
	}
	if err != nil {
		return err
	}
	if c.strict {
		over := false
		for _, f := range filters {
			if r := f.Report(); r.Overfull() {
				tell.warn("%s: %s", f.path, overfull(r))
				over = true
			}
		}
		if over {
			return exitStatus(exitOverfull)
		}
	}
	return selected(sum.Selected)
}
