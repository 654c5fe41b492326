package main

// The tables of docs/choosing.md.

import (
	"fmt"
	"math"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/human"
)

// exact compares a filter with sets that are never wrong, or nearly never.
func exact() {
	sizes := []uint64{10_000, 1_000_000, 100_000_000, 10_000_000_000}
	titles := []string{"keys of 64 bytes"}
	cells := func(bytes func(n uint64) uint64) (cells []string) {
		for _, n := range sizes {
			cells = append(cells, human.BinarySize(bytes(n)))
		}
		return cells
	}
	for _, n := range sizes {
		titles = append(titles, human.Commas(n))
	}
	head(titles...)
	row(append([]string{"the keys alone, sorted"}, cells(func(n uint64) uint64 { return 64 * n })...)...)
	row(append([]string{"a 64-bit hash of each, sorted"}, cells(func(n uint64) uint64 { return 8 * n })...)...)
	for _, p := range []float64{1e-6, 1e-2} {
		row(append([]string{"a `Filter`, p = " + name(p)}, cells(func(n uint64) uint64 {
			plan, err := bloom.Config{Keys: n, Rate: p}.Plan()
			if err != nil {
				panic(err)
			}
			return plan.Bytes()
		})...)...)
	}
}

// saved is the mean cost of a question with a filter, as a share of the cost without: a
// question of the filter, and one of what lies behind for each key that is there, and for
// the share p of the others.
func saved() {
	const p = 0.01
	asked := []float64{0.99, 0.9, 0.5, 0.1, 0.01}
	titles := []string{"keys asked for that are not there"}
	for _, share := range asked {
		titles = append(titles, fmt.Sprintf("%g%%", 100*share))
	}
	head(titles...)
	for _, times := range []float64{1000, 100, 10} {
		cells := []string{fmt.Sprintf("what lies behind costs %g times a look into the filter", times)}
		for _, share := range asked {
			cells = append(cells, fmt.Sprintf("%.1f%%", 100*(1/times+1-share+share*p)))
		}
		row(cells...)
	}
}

// worth is the rate at which memory and mistakes together cost the least. Memory is
// n log2(1/p) / ln 2 bits, mistakes are L p: the derivative of their sum is zero at
// p = n / (8 (ln 2)^2 L W), where a mistake costs as much as W bytes.
func worth() {
	prices := []float64{100, 10_000, 1_000_000}
	head("strangers asked for, for each key", "a mistake costs 100 bytes", "10 kB", "1 MB")
	for _, strangers := range []float64{1, 100, 10_000} {
		cells := []string{human.Commas(uint64(strangers))}
		for _, w := range prices {
			p := min(0.5, 1/(8*ln2*ln2*strangers*w))
			cells = append(cells, fmt.Sprintf("%.1g (%.0f bits)", p, math.Ceil(bloom.ClassicBitsPerKey(p))))
		}
		row(cells...)
	}
}

// kinds is what each kind takes for the same keys at the same rate.
func kinds() {
	const n, p = 1_000_000, 0.001
	filter := bloom.Config{Keys: n, Rate: p}
	plan := func(plan bloom.Plan, err error) string {
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf("%.1f", float64(plan.Bits)/n)
	}
	growing, err := bloom.NewScalable(1000, p)
	if err != nil {
		panic(err)
	}
	for key := range uint64(n) {
		growing.AddUint64(key)
	}
	counting, err := filter.NewCounting()
	if err != nil {
		panic(err)
	}
	both, err := bloom.NewScalableCounting(1000, p)
	if err != nil {
		panic(err)
	}
	for key := range uint64(n) {
		both.AddUint64(key)
	}
	head("kind", "bits per key")
	row("`Filter`, `Shared`, `Exceptions`", plan(filter.Plan()))
	row("`SplitBlock`", plan(filter.PlanSplitBlock()))
	row("`Scalable`, from 1000 keys", plan(growing.Plan(), nil))
	row("`Window`, of n in its time", plan(bloom.WindowConfig{Keys: n, Rate: p, Span: time.Hour}.Plan()))
	row("`Counting`", fmt.Sprintf("%.1f", 8*float64(counting.Bytes())/n))
	row("`ScalableCounting`, from 1000 keys", fmt.Sprintf("%.1f", 8*float64(both.Bytes())/n))
}

// small is what filters of few keys take, in memory and as a file.
func small() {
	head("keys, p = 0.01", "bytes in memory", "bytes of a file")
	for _, n := range []uint64{1, 100, 1000, 10_000, 100_000} {
		f, err := bloom.New(n, 0.01)
		if err != nil {
			panic(err)
		}
		file, err := f.MarshalBinary()
		if err != nil {
			panic(err)
		}
		row(human.Commas(n), human.Commas(f.Plan().Bytes()), human.Commas(uint64(len(file))))
	}
}
