package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/store"
	"github.com/spf13/cobra"
)

// verifyCommand is `bloomery verify`.
type verifyCommand struct {
	members   string
	random    human.CountFlag
	null      bool
	secret    string
	normalize string
	asJSON    bool
	repair    bool
	yes       bool
	anyfile.Options
}

func newVerify() *cobra.Command {
	v := &verifyCommand{random: 1_000_000}
	cmd := &cobra.Command{
		Use:   "verify F [--members FILE]",
		Short: "Verify that a filter file is intact and keeps its rate",
		Long: `Verify reads the whole filter file F and checks its structure and checksums. Then
it looks up random keys, which were never added, and compares how many are found
with the rate computed from the bits. With --members it also looks up the lines
that were added, all of which must be found.

It prints the 95% confidence interval of the true rate (Clopper and Pearson 1934).
As one sound filter in twenty lies outside it, the rate is judged by the 99.99%
interval.

Given a server's data directory, it verifies the snapshot and the log there; the
server must be stopped. With --repair it repairs what it can, after saying what
becomes unknown: a filter that has lost bits or adds answers "perhaps" to all keys
from then on, never "no".

The exit code is 2 if the file is damaged, and 1 if a member is missing or the
rate is not what the bits say.`,
		Example: `  bloomery verify list.bloom
  bloomery verify --members hashes.txt list.bloom
  bloomery verify --random 1e8 --json list.bloom
  bloomery verify --repair /var/lib/bloomery`,
		Args:                  someFilters("bloomery verify seen.bloom"),
		RunE:                  v.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.StringVar(&v.members, "members", "", "a `FILE` of lines that were added; - is standard input")
	flags.Var(&v.random, "random", "how many random keys to look up")
	flags.BoolVar(&v.repair, "repair", false, "repair a damaged data directory, after saying what becomes unknown")
	flags.BoolVar(&v.yes, "yes", false, "with --repair: do not ask")
	addNull(cmd, &v.null)
	addSecret(cmd, &v.secret)
	addNormalize(cmd, &v.normalize)
	addFormat(cmd, &v.Options)
	addFunnel(cmd, &v.Options)
	addJSON(cmd, &v.asJSON, "print one JSON object")
	return cmd
}

// verdict is what verify found.
type verdict struct {
	File      string   `json:"file"`
	Format    string   `json:"format"`
	Kind      string   `json:"kind"`
	Checksums bool     `json:"has_checksums"`
	Members   *uint64  `json:"members,omitempty"`
	Missing   *uint64  `json:"missing,omitempty"`
	First     string   `json:"first_missing,omitempty"`
	Probes    uint64   `json:"random_keys"`
	Found     uint64   `json:"random_keys_found"`
	Rate      float64  `json:"rate_measured"`
	Low       float64  `json:"rate_low"`  // of the 95% interval
	High      float64  `json:"rate_high"` // of the 95% interval
	FromBits  float64  `json:"rate_from_bits"`
	FromError float64  `json:"rate_from_bits_error"`
	OK        bool     `json:"ok"`
	Problems  []string `json:"problems,omitempty"`
}

const (
	printedConfidence = 0.95
	judgedConfidence  = 0.9999
)

func (v *verifyCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name one filter file: bloomery verify seen.bloom")
	}
	if isDirectory(args[0]) {
		return v.verifyDirectory(cmd, args[0])
	}
	if v.members == "" {
		if err := idle(cmd, "it is for --members", "null", "normalize", "funnel"); err != nil {
			return err
		}
	}
	if v.repair || v.yes {
		return usagef("--repair is for a server's data directory: build a damaged filter again, or use an intact copy")
	}
	f, err := v.Open(args[0], anyfile.ToRead)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := v.RefuseIdle(f); err != nil {
		return err
	}
	if err := f.Verify(); err != nil {
		return err
	}
	if err := f.SetNormalize(&v.Options, v.normalize); err != nil {
		return err
	}
	if err := anyfile.Unlock(v.secret, f); err != nil {
		return err
	}
	found := &verdict{File: f.Path, Format: f.Format(), Kind: f.Kind(), Checksums: f.Foreign == nil}
	if v.members != "" {
		if err := v.checkMembers(cmd, f, found); err != nil {
			return err
		}
	}
	v.measure(f, found)
	found.OK = len(found.Problems) == 0
	if v.asJSON {
		err = printJSON(cmd.OutOrStdout(), found)
	} else {
		err = found.print(cmd.OutOrStdout())
	}
	if err == nil && !found.OK {
		return exitStatus(exitNothing)
	}
	return err
}

// checkMembers looks up lines all of which must be found.
func (v *verifyCommand) checkMembers(cmd *cobra.Command, f *anyfile.File, to *verdict) error {
	sources, err := lines.Find([]string{v.members}, cmd.InOrStdin())
	if err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, sources)
	lines.HintTerminal(tell, sources)
	reader := &lines.Reader{
		Sources:   sources,
		Separator: separator(v.null),
		Count:     tell.Read,
	}
	var members, missing uint64
	answers := make([]bool, lines.BatchKeys)
	err = reader.Each(func(b lines.Batch) error {
		keys, err := f.Keys.Of(b.Keys)
		if err != nil {
			return err
		}
		found := f.ContainsMany(keys, answers[:len(keys)])
		members += uint64(len(keys))
		for i := 0; found < len(keys) && i < len(keys); i++ {
			if answers[i] {
				continue
			}
			if missing++; missing == 1 {
				to.First = string(b.Keys[i])
			}
		}
		return nil
	})
	tell.Finish()
	to.Members, to.Missing = &members, &missing
	if missing > 0 {
		to.Problems = append(to.Problems, fmt.Sprintf("%s of %s members are missing, the first is %.80q", human.Commas(missing), human.Commas(members), to.First))
	}
	return err
}

// randomKeyBytes is the length of the random keys: hexadecimal digits, which even
// filters with text keys accept. None of these was ever added: there are 2^128.
const randomKeyBytes = 32

// measure looks up random keys and compares.
func (v *verifyCommand) measure(f *anyfile.File, to *verdict) {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	keys, text := randomKeys(random)
	for left := uint64(v.random); left > 0; {
		n := min(left, uint64(len(keys)))
		fillHex(random, text)
		to.Found += uint64(f.ContainsMany(keys[:n], nil))
		left -= n
	}
	to.Probes = uint64(v.random)
	to.Rate = float64(to.Found) / float64(to.Probes)
	to.Low, to.High = clopperPearson(to.Found, to.Probes, printedConfidence)
	r := f.Report()
	to.FromBits, to.FromError = r.Rate, r.RateError
	low, high := clopperPearson(to.Found, to.Probes, judgedConfidence)
	margin := 4*r.RateError + 1e-9*r.Rate
	if r.Rate+margin < low || r.Rate-margin > high {
		to.Problems = append(to.Problems, fmt.Sprintf("the rate measured, %s, is not what the bits say, %s", human.OneIn(to.Rate), human.OneIn(r.Rate)))
	}
}

// randomKeys allocates a batch of keys in one text.
func randomKeys(random *rand.Rand) (keys [][]byte, text []byte) {
	text = make([]byte, lines.BatchKeys*randomKeyBytes)
	for i := 0; i < len(text); i += randomKeyBytes {
		keys = append(keys, text[i:i+randomKeyBytes:i+randomKeyBytes])
	}
	fillHex(random, text)
	return keys, text
}

// fillHex fills text with random hexadecimal digits.
func fillHex(random *rand.Rand, text []byte) {
	const digits = "0123456789abcdef"
	var word uint64
	for i := range text {
		if i%16 == 0 {
			word = random.Uint64()
		}
		text[i] = digits[word&15]
		word >>= 4
	}
}

func (v *verdict) print(w io.Writer) error {
	t := &human.Table{To: w}
	t.Row("file", "%s", v.File)
	t.Row("kind", "%s, format %s", v.Kind, v.Format)
	t.Row("structure", "sound")
	if v.Checksums {
		t.Row("checksums", "all good")
	} else {
		t.Row("checksums", "none: the format has no checksums")
	}
	if v.Members != nil {
		t.Row("members", "%s of %s found", human.Commas(*v.Members-*v.Missing), human.Commas(*v.Members))
	}
	t.Row("random keys", "%s of %s found", human.Commas(v.Found), human.Commas(v.Probes))
	t.Row("rate measured", "%s (%.4g; 95%%: %.4g to %.4g)", human.OneIn(v.Rate), v.Rate, v.Low, v.High)
	t.Row("rate from bits", "%s (%.4g)", human.OneIn(v.FromBits), v.FromBits)
	for _, problem := range v.Problems {
		t.Row("PROBLEM", "%s", problem)
	}
	if v.OK {
		t.Row("verdict", "good")
	}
	return t.Err
}

// clopperPearson is the exact interval for the rate of a binomial with found of n: a
// rate outside it would give this few or this many with a probability of less than
// half of 1-confidence (Clopper and Pearson 1934).
func clopperPearson(found, n uint64, confidence float64) (low, high float64) {
	tail := (1 - confidence) / 2
	low, high = 0, 1
	if found > 0 {
		low = bisect(func(p float64) bool { return 1-binomialBelow(found, n, p) > tail })
	}
	if found < n {
		high = bisect(func(p float64) bool { return binomialBelow(found+1, n, p) < tail })
	}
	return low, high
}

// bisect finds where past becomes true between 0 and 1.
func bisect(past func(p float64) bool) float64 {
	low, high := 0., 1.
	for range 100 {
		middle := (low + high) / 2
		if past(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return (low + high) / 2
}

// binomialBelow is the chance of fewer than k of n at rate p. It sums the terms on
// the side of k away from the mean, of which only a few are not negligible.
func binomialBelow(k, n uint64, p float64) float64 {
	if p <= 0 {
		return 1
	}
	if p >= 1 {
		return 0
	}
	odds := p / (1 - p)
	if float64(k) <= float64(n)*p { // the terms k-1, k-2 ... become ever smaller
		sum, term := 0., binomialTerm(k-1, n, p)
		for i := k - 1; ; i-- {
			sum += term
			if i == 0 || term < 1e-18*sum {
				return min(sum, 1)
			}
			term *= float64(i) / float64(n-i+1) / odds
		}
	}
	sum, term := 0., binomialTerm(k, n, p)
	for i := k; ; i++ {
		sum += term
		if i == n || term < 1e-18*sum || term == 0 {
			return max(1-sum, 0)
		}
		term *= float64(n-i) / float64(i+1) * odds
	}
}

// binomialTerm is the chance of exactly k of n at rate p.
func binomialTerm(k, n uint64, p float64) float64 {
	logGamma := func(x uint64) float64 { y, _ := math.Lgamma(float64(x) + 1); return y }
	return math.Exp(logGamma(n) - logGamma(k) - logGamma(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// The data directory of a server, verified while no server has it open.

// verifyDirectory reads all of it, and repairs it with --repair.
func (v *verifyCommand) verifyDirectory(cmd *cobra.Command, dir string) error {
	if err := idle(cmd, dir+" is a server's data directory, which is verified as a whole",
		"members", "random", "null", "secret", "normalize", "format", "scheme", "bits", "probes", "funnel"); err != nil {
		return err
	}
	if !v.repair {
		if err := idle(cmd, "it is for --repair", "yes"); err != nil {
			return err
		}
	}
	if !isDataDirectory(dir) {
		return fmt.Errorf("%s: is not a server's data directory: name the one that 'bloomery serve --data' was given", dir)
	}
	found, err := store.Verify(dir)
	switch {
	case err == nil && v.asJSON:
		return printJSON(cmd.OutOrStdout(), directoryVerdict{dir, true, found.Values, found.Records, found.Adds, found.TornBytes, found.TornRecords})
	case err == nil:
		return printRecovered(cmd, dir, found)
	case !v.repair || !errors.Is(err, store.ErrDamaged):
		return withRepair(dir, err)
	}
	complain(cmd.ErrOrStderr(), err)
	if bytes := directoryBytes(dir); bytes >= largeDirectory {
		fmt.Fprintf(cmd.ErrOrStderr(), "bloomery: %s: looking through %s bytes for what can be saved\n", dir, human.Commas(bytes))
	}
	if err := store.Repair(dir, func(unknown []string) bool { return v.agree(cmd, dir, unknown) }); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "bloomery: %s: is repaired; the damaged files are kept under names that begin with damaged-\n", dir)
	return nil
}

// largeDirectory is a size that takes seconds to read.
const largeDirectory = 1 << 30

// directoryBytes is how many bytes there are to read.
func directoryBytes(dir string) (sum uint64) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += uint64(info.Size())
		}
	}
	return sum
}

// directoryVerdict is what verify reports of a data directory.
type directoryVerdict struct {
	Directory string `json:"directory"`
	OK        bool   `json:"ok"`
	Values    int    `json:"values"`
	Records   uint64 `json:"log_records"`
	Adds      uint64 `json:"log_adds"`
	Torn      uint64 `json:"torn_bytes"`
	Behind    int    `json:"torn_records"`
}

func printRecovered(cmd *cobra.Command, dir string, found store.Recovery) error {
	t := &human.Table{To: cmd.OutOrStdout()}
	t.Row("directory", "%s", dir)
	t.Row("checksums", "all good")
	t.Row("values", "%s", human.Commas(uint64(found.Values)))
	t.Row("snapshot", "%s (%s bytes)", orNothing(found.Snapshot), human.Commas(found.Bytes))
	t.Row("log", "%s with %s, %s in %s", human.Count(found.Records, "record"), human.Count(found.Adds, "add"), human.Count(found.LogBytes, "byte"), human.Count(uint64(found.Segments), "file"))
	if found.TornBytes > 0 {
		t.Row("torn", "%s at the end of %s, unfinished when the server stopped", human.Count(found.TornBytes, "byte"), found.Torn)
	}
	if found.TornRecords > 0 {
		t.Row("after that", "%s", tornRecords(found))
	}
	return t.Err
}

// tornRecords says what whole records after a torn one may mean. The files alone do
// not show which.
func tornRecords(found store.Recovery) string {
	return fmt.Sprintf("%s whole records of the log, which are lost: expected after a power failure; if only the server was killed, the disk has damaged the file", human.Commas(uint64(found.TornRecords)))
}

func orNothing(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// agree prints what becomes unknown, and asks whether to continue.
func (v *verifyCommand) agree(cmd *cobra.Command, dir string, unknown []string) bool {
	stderr := cmd.ErrOrStderr()
	for _, what := range unknown {
		fmt.Fprintf(stderr, "bloomery: %s\n", what)
	}
	if v.yes {
		return true
	}
	if !lines.IsTerminal(cmd.InOrStdin()) {
		fmt.Fprintf(stderr, "bloomery: %s: repeat with --yes to continue\n", dir)
		return false
	}
	fmt.Fprint(stderr, "continue? [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(answer), "y")
}

// logRecovered logs what a server found when it started.
func logRecovered(log *slog.Logger, found store.Recovery) {
	if found.Fresh {
		log.Info("a new data directory")
		return
	}
	log.Info("recovered", "values", found.Values, "snapshot", found.Snapshot, "snapshot bytes", found.Bytes,
		"log bytes", found.LogBytes, "log adds", found.Adds, "took", found.Took)
	if found.TornBytes > 0 {
		log.Warn("the log ended in the middle of a record, which was cut off", "file", found.Torn, "bytes", found.TornBytes)
	}
	if found.TornRecords > 0 {
		log.Warn(tornRecords(found), "file", found.Torn, "records", found.TornRecords)
	}
	if found.Unfinished > 0 {
		log.Warn("filters of RESTORE commands that were under way were dropped", "filters", found.Unfinished)
	}
}

// withRepair adds to an error the directory that it is about, and the command that
// repairs it.
func withRepair(dir string, err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("%s: %w: bloomery verify --repair %s", dir, err, dir)
	}
	return err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
