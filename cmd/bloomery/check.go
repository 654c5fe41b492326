package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
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
	anyfile.Options
}

func newCheck() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check F [FILE...]",
		Short: "Print the lines that are probably in a filter, or (-v) certainly not",
		Long: `Check prints the lines of the files, or of standard input, that are probably in
the filter F: every line that was added, and others at the filter's rate. With
-v it prints the lines that are certainly not in it. F may be a filter of any
kind, or one that another program wrote. A large filter made by 'build' is ready at
once, as it is mapped, not read; one of up to 64 MiB is first verified against its
checksums.

With -f several filters are queried at once, and all arguments are files of lines.
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
	flags.StringArrayVarP(&c.filters, "filter", "f", nil, "a `FILTER` to query; may be repeated, and all arguments are then files of lines")
	flags.BoolVar(&c.any, "any", false, "select lines that any of the filters has (default)")
	flags.BoolVar(&c.all, "all", false, "select lines that all of the filters have")
	flags.BoolVar(&c.label, "label", false, "prefix each line with the filters that have it, and a tab")
	flags.BoolVarP(&c.invert, "invert-match", "v", false, "select the lines that are certainly not in the filter")
	flags.BoolVarP(&c.count, "count", "c", false, "print only how many lines were selected")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "print nothing and stop at the first selected line")
	flags.BoolVarP(&c.lineNumber, "line-number", "n", false, "prefix each line with its number in its file, from 1, and a colon")
	flags.BoolVar(&c.strict, "strict", false, "exit with 3 if a filter has more keys than planned, and so a higher rate")
	addNull(cmd, &c.null)
	addSecret(cmd, &c.secret)
	addNormalize(cmd, &c.normalize)
	addFormat(cmd, &c.Options)
	addFunnel(cmd, &c.Options)
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
	defer anyfile.CloseAll(filters)
	if err != nil {
		return err
	}
	sources, missing := lines.Find(args, cmd.InOrStdin())
	if missing != nil && !c.quiet {
		return missing
	}
	printing := !c.count && !c.quiet && !c.asJSON
	if err := lines.RefuseLoop(printing, cmd.OutOrStdout(), sources); err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), printing, sources)
	lines.HintTerminal(tell, sources)
	look := &look{checkCommand: c, filters: filters, out: lines.NewWriter(cmd.OutOrStdout()), stdout: cmd.OutOrStdout(), printing: printing}
	for _, s := range sources { // one at a time, for the line numbers
		if err = look.through(s, tell); err != nil {
			break
		}
	}
	tell.Finish()
	if err != nil && err != lines.ErrEnough {
		return err
	}
	if missing != nil && look.sum.Selected == 0 { // as in grep -q, a selected line decides
		return missing
	}
	look.sum.Filter, look.sum.More = paths[0], paths[1:]
	return c.finish(cmd, tell, filters, look.sum)
}

// open opens the filters. Along with an error it returns those that it has opened.
func (c *checkCommand) open(paths []string) (filters []*anyfile.File, err error) {
	for _, path := range paths {
		f, err := c.Options.Open(path, anyfile.ToRead)
		if err != nil {
			return filters, err
		}
		filters = append(filters, f)
		if err := f.SetNormalize(&c.Options, c.normalize); err != nil {
			return filters, err
		}
	}
	if err := c.RefuseIdle(filters...); err != nil {
		return filters, err
	}
	return filters, anyfile.Unlock(c.secret, filters...)
}

// look looks lines up.
type look struct {
	*checkCommand
	filters  []*anyfile.File
	out      *lines.Writer
	stdout   io.Writer
	printing bool
	line     uint64 // of the file, before the job
	prefix   []byte
	sum      checkJSON
}

// asked is what one CPU needs to look up the lines of a job in the filters.
type asked struct {
	lines [][]byte
	keys  []*anyfile.KeyMap // for each filter
	found [][]bool          // the answer of each filter for each line
}

func (l *look) newAsked() *asked {
	a := &asked{found: make([][]bool, len(l.filters))}
	for _, f := range l.filters {
		a.keys = append(a.keys, f.Keys.Clone())
	}
	return a
}

// ask looks up the lines of a job in all filters, and combines the answers.
func (l *look) ask(j *lines.Job) {
	if j.Own == nil {
		j.Own = l.newAsked()
	}
	a := j.Own.(*asked)
	a.cut(j, separator(l.null))
	n := 0
	for i, f := range l.filters {
		keys, err := a.keys[i].Of(a.lines)
		if err != nil {
			j.Text, j.Ends, j.Err = j.Text[:0], j.Ends[:0], err
			return
		}
		a.found[i] = slices.Grow(a.found[i][:0], len(keys))[:len(keys)]
		n = f.ContainsMany(keys, a.found[i])
	}
	if len(l.filters) == 1 {
		j.Answers = a.found[0]
		j.Count.Store(int64(n))
		return
	}
	j.Answers = slices.Grow(j.Answers[:0], len(a.lines))[:len(a.lines)]
	n = 0
	for i := range j.Answers {
		j.Answers[i] = l.all
		for _, found := range a.found {
			if found[i] != l.all {
				j.Answers[i] = !l.all
				break
			}
		}
		if j.Answers[i] {
			n++
		}
	}
	j.Count.Store(int64(n))
}

// cut cuts a job into lines.
func (a *asked) cut(j *lines.Job, separator byte) {
	a.lines, j.Ends = a.lines[:0], j.Ends[:0]
	for at := 0; at < len(j.Text); {
		end := at + bytes.IndexByte(j.Text[at:], separator)
		a.lines = append(a.lines, j.Text[at:end:end])
		at = end + 1
		j.Ends = append(j.Ends, at)
	}
}

// through looks up all lines of a file, and prints the selected ones.
func (l *look) through(s *lines.Source, tell *lines.Reporter) (err error) {
	l.line = 0
	p := lines.NewLooking(l.ask, separator(l.null))
	if l.printing {
		var gone atomic.Bool
		stop := lines.WatchReader(l.stdout, func() {
			gone.Store(true)
			p.Interrupt()
		})
		defer func() {
			if stop(); err == nil && gone.Load() {
				err = syscall.EPIPE // as the next write would have said
			}
		}()
	}
	return p.Each([]*lines.Source{s}, tell.Read, func(j *lines.Job) (err error) {
		n, found := uint64(len(j.Ends)), uint64(j.Count.Load())
		l.sum.Lines += n
		l.sum.Probably += found
		l.sum.Not += n - found
		l.sum.Selected = l.sum.Probably
		if l.invert {
			l.sum.Selected = l.sum.Not
		}
		switch {
		case l.quiet && l.sum.Selected > 0:
			return lines.ErrEnough
		case l.printing && (l.label || l.lineNumber):
			err = l.print(j)
		case l.printing:
			err = l.out.Write(j, !l.invert)
		}
		l.line += n
		return err
	})
}

// print prints the selected lines, each with its prefix.
func (l *look) print(j *lines.Job) error {
	start := 0
	for i, end := range j.Ends {
		line := j.Text[start:end]
		start = end
		if j.Answers[i] == l.invert {
			continue
		}
		if _, err := l.out.To.Write(l.before(i, j.Own.(*asked))); err != nil {
			return err
		}
		if _, err := l.out.To.Write(line); err != nil {
			return err
		}
	}
	return l.out.Flush()
}

// before is the prefix of a line: its number, and the filters that have it.
func (l *look) before(i int, a *asked) []byte {
	p := l.prefix[:0]
	if l.lineNumber {
		p = append(strconv.AppendUint(p, l.line+uint64(i)+1, 10), ':')
	}
	if l.label {
		separator := ""
		for k, f := range l.filters {
			if a.found[k][i] {
				p = append(append(p, separator...), f.Path...)
				separator = ","
			}
		}
		p = append(p, '\t')
	}
	l.prefix = p
	return p
}

// finish prints what follows the lines.
func (c *checkCommand) finish(cmd *cobra.Command, tell *lines.Reporter, filters []*anyfile.File, sum checkJSON) error {
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
			switch now := f.Condition(); {
			case now.Unplanned:
				tell.Warn("%s: its n and p are not known, so --strict cannot tell whether it is over-full; false-positive rate now %s", f.Path, human.OneIn(now.Rate))
			case now.Over():
				tell.Warn("%s: %s", f.Path, human.Overfull(now.Report))
				over = true
			}
		}
		if over {
			return exitStatus(exitOverfull)
		}
	}
	return selected(sum.Selected)
}
