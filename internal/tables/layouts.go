package main

import (
	"fmt"
	"math"

	"github.com/bloomery/bloom"
)

const ln2 = math.Ln2

// A rateFormula is the expected rate of a layout at c bits per key with k probes.
type rateFormula func(c float64, k int) float64

// textbookRate: Broder and Mitzenmacher 2004, section 2.
func textbookRate(c float64, k int) float64 {
	return math.Pow(1-math.Exp(-float64(k)/c), float64(k))
}

// splitRate: a block of 256 bits is eight lanes of 32, and a key sets one bit in
// each (Parquet's split block). The keys per block are Poisson: Putze, Sanders
// and Singler 2009, section 3.
func splitRate(c float64, _ int) float64 {
	return overPoisson(256/c, func(keys float64) float64 {
		return math.Pow(1-math.Pow(31./32, keys), 8)
	})
}

// lineRate: each of a key's k bits is any bit of a line of 512 (RocksDB). Putze, Sanders
// and Singler 2009, section 3, but with the mean of the k-th power of the fill, which is
// slightly above the k-th power of the mean.
func lineRate(c float64, k int) float64 {
	means := lineMeans(k)
	return overPoisson(512/c, func(keys float64) float64 {
		return means[min(int(keys), len(means)-1)]
	})
}

var knownMeans = map[int][]float64{}

// lineMeans returns the mean of fill^k in a line with 0, 1, 2 ... keys. It
// updates the chances that 0 to 512 bits are set, bit by bit.
func lineMeans(k int) []float64 {
	means := knownMeans[k]
	set := [513]float64{1} // set[x] is the chance that x bits are set
	for len(means) < 300 {
		mean := 0.
		for x, chance := range set {
			mean += chance * math.Pow(float64(x)/512, float64(k))
		}
		means = append(means, mean)
		for range k {
			for x := 512; x >= 0; x-- {
				set[x] *= float64(x) / 512
				if x > 0 {
					set[x] += set[x-1] * float64(513-x) / 512
				}
			}
		}
	}
	knownMeans[k] = means
	return means
}

// overPoisson is the mean of f over a Poisson distribution.
func overPoisson(mean float64, f func(float64) float64) float64 {
	sum, weight := 0., math.Exp(-mean)
	for j := 0.; j < mean+12*math.Sqrt(mean)+30; j++ {
		sum += weight * f(j)
		weight *= mean / (j + 1)
	}
	return sum
}

// leastSpace finds the k up to most that needs the fewest bits per key, c.
func leastSpace(p float64, most int, rate rateFormula) (c float64, k int) {
	c = math.Inf(1)
	for try := 1; try <= most; try++ {
		low, high := 4., 200.
		for high-low > 1e-9 {
			if middle := (low + high) / 2; rate(middle, try) > p {
				low = middle
			} else {
				high = middle
			}
		}
		if high < c-1e-6 {
			c, k = high, try
		}
	}
	return c, k
}

// secondLine is the chance that an absent key passes the first line of its pair, so that
// the second must be read: the mean of F(j) of internal/rate, where j is Poisson with a
// quarter of the keys per block as its mean.
func secondLine(plan bloom.Plan) float64 {
	perLine := plan.Probes / 2
	choose := func(n, k int) float64 {
		return math.Round(math.Exp(lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1)))
	}
	sum := 0.
	for s := 0; s <= perLine; s++ {
		miss := 0. // q(s)
		for t := max(0, s+perLine-8); t <= s; t++ {
			miss += choose(s, t) * choose(8-s, perLine-t) / choose(8, perLine) * math.Pow(63./64, float64(t))
		}
		load := 4096 / plan.BitsPerKey() / 4
		sum += math.Pow(-1, float64(s)) * choose(perLine, s) * math.Exp(-load*(1-miss))
	}
	return sum
}

func lgamma(n int) float64 { v, _ := math.Lgamma(float64(n)); return v }

func layouts() {
	head(append(rateTitles("layout"), "lines read for a stranger", "for a member")...)
	first, last := rates[0], rates[len(rates)-1]

	cells := []string{"textbook"}
	probes := []float64{}
	for _, p := range rates {
		cells = append(cells, fmt.Sprintf("%.2f", bloom.ClassicBitsPerKey(p)))
		probes = append(probes, math.Round(-math.Log2(p)))
	}
	// Half of the bits are set: 1 + 1/2 + 1/4 ... lines until a clear one.
	row(append(cells, "2", fmt.Sprintf("%g .. %g", probes[0], probes[len(probes)-1]))...)

	row(append(spaces("split block of 256 bits, k = 8", 8, 8, splitRate), "1", "1")...)
	row(append(spaces("one line of 512 bits, best k", 1, 30, lineRate), "1", "1")...)

	cells = []string{"**paired lines in a block of 4096 bits**"}
	for _, p := range rates {
		plan := mustPlan(p)
		cells = append(cells, cell(plan.BitsPerKey(), p, plan.Probes))
	}
	row(append(cells, fmt.Sprintf("%.3f .. %.3f", 1+secondLine(mustPlan(first)), 1+secondLine(mustPlan(last))), "2")...)
}

// spaces returns the cells of a layout that has only a formula here.
func spaces(name string, least, most int, rate rateFormula) []string {
	cells := []string{name}
	for _, p := range rates {
		c, k := leastSpace(p, most, func(c float64, k int) float64 { return rate(c, max(k, least)) })
		cells = append(cells, cell(c, p, max(k, least)))
	}
	return cells
}

// cell is the space of a layout, and its excess over the textbook's.
func cell(c, p float64, k int) string {
	return fmt.Sprintf("%.2f +%.1f%% (k = %d)", c, 100*(c/bloom.ClassicBitsPerKey(p)-1), k)
}
