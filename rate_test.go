package bloom_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
)

var ratesFlag = flag.String("rates", "", `"full" measures the whole grid of rates and writes the table in docs/maths.md`)

// The false-positive rate is measured in three tests, because one filter's rate
// scatters around the plan by more than the throw of the probes: by 3.6% of it
// for a thousand keys at 1e-2.
//
//	(a) what a filter answers to keys it never got agrees with the rate worked
//	    out from its own bits, within 4 sigma of the binomial;
//	(b) the rate from the bits, averaged over many filters, agrees with the plan,
//	    within 4 standard errors;
//	(c) the plan is no more than what was asked for.
//
// And no added key is lost, in any filter.
const (
	maxSigmas = 4
	rateSeed  = 20_090_318 // everything random below follows from it
)

var (
	gridRates = []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6}
	gridKeys  = []uint64{1, 10, 1e3, 1e5, 1e6}
)

// keyShape makes the keys of a set from their numbers, always the same. Keys 0
// to n-1 are added, the later ones are strangers: for a counter the hardest
// case, as they differ from the added keys in few bits.
type keyShape struct {
	name   string
	append func(key []byte, set, number uint64) []byte
}

var keyShapes = []keyShape{
	{"URLs", func(key []byte, set, number uint64) []byte {
		key = append(key, "https://www.example.com/shop-"...)
		key = strconv.AppendUint(key, set, 10)
		key = append(key, "/articles/"...)
		key = strconv.AppendUint(key, number, 10)
		return append(key, ".html"...)
	}},
	{"integers", func(key []byte, set, number uint64) []byte {
		return binary.BigEndian.AppendUint64(key, set<<40+number)
	}},
	{"random", func(key []byte, set, number uint64) []byte {
		key = binary.LittleEndian.AppendUint64(key, mix(set<<40+number))
		return binary.LittleEndian.AppendUint64(key, mix(^(set<<40 + number)))
	}},
}

// hashChoice sets the hash for a set of keys.
type hashChoice struct {
	name string
	set  func(c *bloom.Config, set uint64)
}

var hashChoices = []hashChoice{
	{"seed 0", func(c *bloom.Config, set uint64) {}},
	{"seeded", func(c *bloom.Config, set uint64) { c.Seed = mix(set) }},
	{"SipHash", func(c *bloom.Config, set uint64) {
		c.Secret = binary.LittleEndian.AppendUint64(nil, mix(set))
		c.Secret = binary.LittleEndian.AppendUint64(c.Secret, mix(^set))
	}},
}

// mix is splitmix64's output function (Steele, Lea, Flood 2014): a permutation,
// so different numbers stay different.
func mix(x uint64) uint64 {
	x = (x + rateSeed) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// rateJob is one plan with one shape of keys and one hash. Several rates of the
// grid share it where a single block is more than enough for all of them.
type rateJob struct {
	plan      bloom.Plan
	shape     keyShape
	hash      hashChoice
	sets      int
	minProbes uint64
	maxProbes uint64 // zero leaves (a) out

	// Results.
	bits     sample // the rates from the bits, one per filter
	lost     int    // added keys that were not found
	probes   uint64
	found    int
	expected float64 // of found, from the bits
	took     time.Duration
}

func (j *rateJob) String() string {
	return fmt.Sprintf("n %d, m %d, k %d, %s, %s", j.plan.Keys, j.plan.Bits, j.plan.Probes, j.shape.name, j.hash.name)
}

// sample is a mean and its spread, by Welford's method.
type sample struct{ n, mean, squares float64 }

func (s *sample) add(x float64) {
	s.n++
	d := x - s.mean
	s.mean += d / s.n
	s.squares += d * (x - s.mean)
}

func (s *sample) standardError() float64 { return math.Sqrt(s.squares / (s.n - 1) / s.n) }

// fromPlan is how many standard errors the mean rate from the bits is from the
// plan's. A single key always gives the same rate: then nine digits must agree.
func (j *rateJob) fromPlan() float64 {
	return (j.bits.mean - j.plan.Rate) / math.Hypot(j.bits.standardError(), 1e-9*j.plan.Rate)
}

// agreesWithPlan is (b).
func (j *rateJob) agreesWithPlan() bool {
	return math.Abs(j.fromPlan()) <= maxSigmas
}

// fromBits is how many sigmas the number found is from what the bits say.
func (j *rateJob) fromBits() float64 {
	if j.probes == 0 {
		return 0
	}
	return (float64(j.found) - j.expected) / math.Sqrt(j.expected*(1-j.expected/float64(j.probes)))
}

// keyBatch makes keys in runs, in the same memory.
type keyBatch struct {
	bytes []byte
	keys  [][]byte
}

// each calls do for the keys first to last-1 of a set, a batch at a time.
func (b *keyBatch) each(shape keyShape, set, first, last uint64, do func(keys [][]byte)) {
	for first < last {
		b.bytes, b.keys = b.bytes[:0], b.keys[:0]
		for end := min(first+1024, last); first < end; first++ {
			start := len(b.bytes)
			b.bytes = shape.append(b.bytes, set, first)
			b.keys = append(b.keys, b.bytes[start:])
		}
		do(b.keys)
	}
}

// run makes the job's filters. The first is also asked for strangers.
func (j *rateJob) run() error {
	began := time.Now()
	var batch keyBatch
	for set := range uint64(j.sets) {
		c := bloom.Config{Keys: j.plan.Keys, Bits: j.plan.Bits, Probes: j.plan.Probes}
		j.hash.set(&c, set)
		f, err := c.New()
		if err != nil {
			return err
		}
		batch.each(j.shape, set, 0, c.Keys, func(keys [][]byte) { f.AddMany(keys, nil) })
		batch.each(j.shape, set, 0, c.Keys, func(keys [][]byte) { j.lost += len(keys) - f.ContainsMany(keys, nil) })
		rate := f.Report().Rate
		j.bits.add(rate)
		if set == 0 {
			j.probes = max(uint64(math.Ceil(100/rate)), j.minProbes)
			if j.probes > j.maxProbes {
				j.probes = 0
			}
			j.expected = rate * float64(j.probes)
			batch.each(j.shape, set, c.Keys, c.Keys+j.probes, func(keys [][]byte) { j.found += f.ContainsMany(keys, nil) })
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	j.took = time.Since(began)
	return nil
}

// gridCell is a row of the table: one p and n, and its jobs over shapes and
// hashes.
type gridCell struct {
	rate float64
	plan bloom.Plan
	jobs []*rateJob
}

// TestRateGrid measures the grid p x n x shape x hash: as much of it as fits in
// a few seconds, or with -rates=full all of it.
func TestRateGrid(t *testing.T) {
	full := *ratesFlag == "full"
	if *ratesFlag != "" && !full {
		t.Fatalf("-rates=%s: the only other value is full", *ratesFlag)
	}
	path, heading := filepath.Join("docs", "maths.md"), "## Measured"
	if full {
		withTable(t, path, heading, nil) // fails now rather than after an hour
	}
	cells, jobs := rateGrid(t, full)
	runRateJobs(t, jobs)
	for _, j := range jobs {
		if j.lost != 0 {
			t.Errorf("seed %d, %v: %d added keys were not found", rateSeed, j, j.lost)
		}
		if z := j.fromBits(); !(math.Abs(z) <= maxSigmas) {
			t.Errorf("seed %d, %v: %d of %d strangers found, the bits say %.1f: %+.1f sigma", rateSeed, j, j.found, j.probes, j.expected, z)
		}
		if !j.agreesWithPlan() {
			t.Errorf("seed %d, %v: rate from the bits of %d filters %.6g ± %.2g, plan %.6g: %+.1f standard errors", rateSeed, j, j.sets, j.bits.mean, j.bits.standardError(), j.plan.Rate, j.fromPlan())
		}
	}
	reportWorst(t, jobs)
	if full && !t.Failed() {
		if err := os.WriteFile(path, []byte(withTable(t, path, heading, gridTable(cells))), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// rateGrid lists the cells of the table and the jobs to run, and checks what
// needs no filter.
func rateGrid(t *testing.T, full bool) (cells []*gridCell, jobs []*rateJob) {
	maxOver := map[float64]float64{1e-2: 1.5, 1e-3: 2.5, 1e-4: 4.5, 1e-5: 7.5, 1e-6: 11} // percent
	known := map[string]*rateJob{}
	for i, p := range gridRates {
		for k, n := range gridKeys {
			plan, err := bloom.Config{Keys: n, Rate: p}.Plan()
			if err != nil {
				t.Fatal(err)
			}
			if plan.Rate > p {
				t.Errorf("n %d, p %g: the plan's rate is %g", n, p, plan.Rate)
			}
			over := 100 * (plan.BitsPerKey()/bloom.ClassicBitsPerKey(p) - 1)
			if most, ok := maxOver[p]; ok && n >= 1e5 && over > most {
				t.Errorf("n %d, p %g: %.2f%% over the textbook, want at most %g%%", n, p, over, most)
			}
			cell := &gridCell{rate: p, plan: plan}
			cells = append(cells, cell)
			for s, shape := range keyShapes {
				for h, hash := range hashChoices {
					if !full && !inFastGrid(p, n, s == (i+k)%3 && h == (i+2*k)%3) {
						continue
					}
					job := &rateJob{plan: plan, shape: shape, hash: hash}
					if same := known[job.String()]; same != nil {
						job = same
					} else {
						known[job.String()] = job
						jobs = append(jobs, job)
					}
					// Far below p there is too little to find.
					job.prepare(full, plan.Rate >= p/100)
					cell.jobs = append(cell.jobs, job)
				}
			}
		}
	}
	return cells, jobs
}

// inFastGrid picks what fits into make test. turn is true for one shape and hash
// of each p and n, so that all of them have theirs.
func inFastGrid(p float64, n uint64, turn bool) bool {
	return turn && (n <= 1e3 || n == 1e5 && (p == 1e-2 || p == 1e-6))
}

// prepare sets how much the job does; probe allows (a).
func (j *rateJob) prepare(full, probe bool) {
	n := j.plan.Keys
	if full {
		j.sets = int(min(max(1e7/n, 60), 1000)) // 30 would do, but know their own spread too badly
		j.minProbes = 2e6
	} else {
		j.sets = int(min(max(5e5/n, 30), 1000))
		j.minProbes = 2e5
	}
	if probe && full {
		j.maxProbes = math.MaxUint64
	} else if probe {
		j.maxProbes = 3e6
	}
}

// runRateJobs runs the jobs in two workers.
func runRateJobs(t *testing.T, jobs []*rateJob) {
	queue := make(chan *rateJob)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for j := range queue {
				if err := j.run(); err != nil {
					t.Errorf("%v: %v", j, err)
				}
				if *ratesFlag != "" {
					t.Logf("%v: bits %+.2f, measured %+.2f; %v", j, j.fromPlan(), j.fromBits(), j.took.Round(time.Millisecond))
				}
			}
		})
	}
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	workers.Wait()
}

// reportWorst logs how near the tests came to failing, and whether the
// deviations look like chance: their squares should average one.
func reportWorst(t *testing.T, jobs []*rateJob) {
	var worstPlan, worstBits *rateJob
	var planSquares, bitsSquares sample
	filters, probes := 0, uint64(0)
	for _, j := range jobs {
		filters += j.sets
		probes += j.probes
		if worstPlan == nil || math.Abs(j.fromPlan()) > math.Abs(worstPlan.fromPlan()) {
			worstPlan = j
		}
		if j.plan.Keys > 1 {
			planSquares.add(j.fromPlan() * j.fromPlan())
		}
		if j.probes == 0 {
			continue
		}
		if worstBits == nil || math.Abs(j.fromBits()) > math.Abs(worstBits.fromBits()) {
			worstBits = j
		}
		bitsSquares.add(j.fromBits() * j.fromBits())
	}
	t.Logf("%d filters, %d probes, %s/%s", filters, probes, runtime.GOOS, runtime.GOARCH)
	t.Logf("from the plan, at most %+.2f standard errors (%v); mean square %.2f", worstPlan.fromPlan(), worstPlan, planSquares.mean)
	t.Logf("from the bits, at most %+.2f sigma (%v); mean square %.2f", worstBits.fromBits(), worstBits, bitsSquares.mean)
}

// gridTable is the table for docs/maths.md, a row for each p and n: the sum of
// its jobs, and the largest deviation of any.
func gridTable(cells []*gridCell) (lines []string) {
	lines = append(lines,
		"| p | n | bits per key | k | rate by plan | filters | from the bits / plan | largest deviation, standard errors | strangers found | found / from the bits | largest deviation, sigmas | keys lost |",
		"|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, cell := range cells {
		filters, found, lost := 0, 0, 0
		bits, expected, fromPlan, fromBits := 0., 0., 0., 0.
		for _, j := range cell.jobs {
			filters += j.sets
			bits += j.bits.mean * float64(j.sets)
			found += j.found
			expected += j.expected
			lost += j.lost
			fromPlan = max(fromPlan, math.Abs(j.fromPlan()))
			fromBits = max(fromBits, math.Abs(j.fromBits()))
		}
		measured := "– | – | –"
		if expected > 0 {
			measured = fmt.Sprintf("%s | %.3f | %.1f", grouped(found), float64(found)/expected, fromBits)
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %.2f | %d | %.4g | %s | %.4f | %.1f | %s | %d |",
			strconv.FormatFloat(cell.rate, 'f', -1, 64), grouped(int(cell.plan.Keys)), cell.plan.BitsPerKey(), cell.plan.Probes, cell.plan.Rate,
			grouped(filters), bits/float64(filters)/cell.plan.Rate, fromPlan, measured, lost))
	}
	return lines
}

// grouped writes a number with commas.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// withTable returns the text of the document with these rows in the first table
// below a heading, under the marker that says what measured it (see
// internal/tidy).
func withTable(t *testing.T, path, heading string, rows []string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	at := 0
	for _, want := range []string{heading, "<!-- measured by: make rates -->"} {
		for at < len(lines) && lines[at] != want {
			at++
		}
		if at++; at > len(lines) {
			t.Fatalf("%s has no line %q where the table of rates should be", path, want)
		}
	}
	end := at
	for end < len(lines) && strings.HasPrefix(lines[end], "|") {
		end++
	}
	return strings.Join(slices.Replace(lines, at, end, rows...), "\n")
}
