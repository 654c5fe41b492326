package main

// The tables of docs/from-the-articles.md: what four articles claim, worked out or tried.

import (
	"bufio"
	"compress/gzip"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/human"
)

// formulas compares the articles' ways to round m and k, by the rate that they give.
func formulas() {
	head("formula, for a million keys", "p", "bits per key", "k", "rate", "of p")
	for _, f := range []struct {
		title   string
		formula classic.Formula
	}{
		{"first: `int(1.44 n log2(1/p))`, `int(ln 2 m/n)`", classic.FormulaTruncated},
		{"third: `ceil(-n ln p/(ln 2)^2)`, `ceil(-log2 p)`", classic.FormulaCeiling},
		{"fourth: the same without rounding", classic.FormulaReal},
	} {
		for _, p := range rates[:4] {
			const n = 1_000_000
			m, k, err := f.formula.Size(n, p)
			if err != nil {
				panic(err)
			}
			rate := textbookRate(float64(m)/n, k)
			row(f.title, name(p), fmt.Sprintf("%.3f", float64(m)/n), fmt.Sprint(k), fmt.Sprintf("%.3g", rate), fmt.Sprintf("%.1f%%", 100*rate/p))
		}
	}
}

// approximation compares the textbook's formula with the exact rate of filters that are
// half full, which is the mean of (X/m)^k over the number X of bits set (Bose and others
// 2008).
func approximation() {
	head("m", "n", "k", "rate by the formula", "exact rate", "more")
	const k = 7
	for _, m := range []int{32, 128, 1024, 8192} {
		n := int(math.Round(float64(m) * ln2 / k))
		set := make([]float64, m+1) // set[x] is the chance that x bits are set
		set[0] = 1
		for range n * k {
			for x := m; x >= 0; x-- { // downwards, so that set[x-1] is from before the throw
				set[x] *= float64(x) / float64(m)
				if x > 0 {
					set[x] += set[x-1] * float64(m-x+1) / float64(m)
				}
			}
		}
		exact, formula := 0., textbookRate(float64(m)/float64(n), k)
		for x, chance := range set {
			exact += chance * math.Pow(float64(x)/float64(m), k)
		}
		row(fmt.Sprint(m), fmt.Sprint(n), fmt.Sprint(k), fmt.Sprintf("%.3g", formula), fmt.Sprintf("%.3g", exact), fmt.Sprintf("%+.1f%%", 100*(exact/formula-1)))
	}
}

// perkey shows the rate at some numbers of bits per key, with the best k and with two.
func perkey() {
	head("bits per key", "4", "6", "8", "9.59", "10", "16", "20")
	best, two := []string{"rate with the best k"}, []string{"rate with two hash functions"}
	for _, c := range []float64{4, 6, 8, bloom.ClassicBitsPerKey(0.01), 10, 16, 20} {
		k := 1
		for textbookRate(c, k+1) < textbookRate(c, k) {
			k++
		}
		best = append(best, fmt.Sprintf("%.3g%% (k = %d)", 100*textbookRate(c, k), k))
		two = append(two, fmt.Sprintf("%.3g%%", 100*textbookRate(c, 2)))
	}
	row(best...)
	row(two...)
}

// tenbillion works out the fourth article's black list.
func tenbillion() {
	const n, size, pointer = 10_000_000_000, 64, 8
	head("ten billion URLs of 64 bytes", "GB")
	gb := func(bytes float64) string { return strconv.FormatFloat(bytes/1e9, 'f', 1, 64) }
	row("the URLs", gb(n*size))
	row("with a pointer for each", gb(n*(size+pointer)))
	row("a 64-bit hash of each, sorted", gb(n*8))
	for _, p := range []float64{1e-2, 1e-4, 1e-7} {
		plan, err := bloom.Config{Keys: n, Rate: p}.Plan()
		if err != nil {
			panic(err)
		}
		row("a textbook filter, p = "+name(p), gb(n*bloom.ClassicBitsPerKey(p)/8))
		row("`bloom.Filter`, p = "+name(p), gb(float64(plan.Bytes())))
	}
}

// javaclass fills the fourth article's class, made smaller, and asks it for strangers.
func javaclass() {
	urls, err := distinctURLs()
	if err != nil {
		panic(err)
	}
	numbered := func(shape string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(shape, i) }
	}
	head("keys", "m", "added", "asked", "found, if hashes were even", "found", "times")
	for _, c := range []struct {
		title        string
		bits         int // of m
		n, strangers int
		member       func(i int) string
		stranger     func(i int) string
	}{
		{"the list of real URLs: every second one", 17, len(urls) / 2, len(urls) / 2,
			func(i int) string { return urls[2*i] }, func(i int) string { return urls[2*i+1] }},
		{"`www.site123.com`: even numbers, then odd ones", 20, 90_000, 90_000,
			func(i int) string { return numbered("www.site%d.com")(2 * i) }, func(i int) string { return numbered("www.site%d.com")(2*i + 1) }},
		{"the same: the next numbers", 20, 90_000, 500_000,
			numbered("www.site%d.com"), func(i int) string { return numbered("www.site%d.com")(90_000 + i) }},
		{"even numbers, then odd ones, at the article's load", 25, 10_000_000 >> 4, 10_000_000 >> 4,
			func(i int) string { return numbered("www.site%d.com")(2 * i) }, func(i int) string { return numbered("www.site%d.com")(2*i + 1) }},
	} {
		f, err := classic.Config{Bits: 1 << c.bits, Probes: 8, Scheme: classic.SchemeJavaBitSet}.New()
		if err != nil {
			panic(err)
		}
		for i := range c.n {
			f.AddString(c.member(i))
		}
		found := 0
		for i := range c.strangers {
			if f.ContainsString(c.stranger(i)) {
				found++
			}
		}
		expected := float64(c.strangers) * textbookRate(float64(f.Plan().Bits)/float64(c.n), 8)
		row(c.title, fmt.Sprintf("2^%d", c.bits), human.Commas(uint64(c.n)), human.Commas(uint64(c.strangers)),
			few(expected), fmt.Sprint(found), fmt.Sprintf("%.2g", float64(found)/expected))
	}
}

// few writes an expected number, which may be far below one.
func few(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2f", x)
	}
	return human.Commas(uint64(math.Round(x)))
}

// distinctURLs returns the lines of testdata/urls.txt.gz, each once. The command runs in
// the root of the repository.
func distinctURLs() (urls []string, err error) {
	file, err := os.Open("testdata/urls.txt.gz")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	lines := bufio.NewScanner(unzipped)
	for lines.Scan() {
		if url := lines.Text(); !seen[url] {
			seen[url] = true
			urls = append(urls, url)
		}
	}
	return urls, lines.Err()
}

// neighbours tries two readings of "MD5(x+i)" on numbers: the text of i after that of x,
// and the sum. Members are the even numbers.
func neighbours() {
	sum, err := classic.NewScheme("md5 of the sum", func(at []uint64, key []byte, m uint64) {
		x, err := strconv.Atoi(string(key))
		if err != nil {
			panic(err)
		}
		for i := range at {
			digest := md5.Sum([]byte(strconv.Itoa(x + i + 1)))
			at[i] = binary.BigEndian.Uint64(digest[8:]) % m
		}
	})
	if err != nil {
		panic(err)
	}
	head("MD5 of x and i, with i as", "even numbers added", "bits set", "odd numbers asked", "found")
	for _, c := range []struct {
		title  string
		scheme classic.Scheme
	}{{"text after x", classic.SchemeMD5KeyIndex}, {"a number added to x", sum}} {
		const n = 10_000
		f, err := classic.Config{Bits: 95_851, Probes: 7, Scheme: c.scheme}.New()
		if err != nil {
			panic(err)
		}
		for i := range n {
			f.AddString(strconv.Itoa(2 * i))
		}
		found := 0
		for i := range n {
			if f.ContainsString(strconv.Itoa(2*i + 1)) {
				found++
			}
		}
		row(c.title, fmt.Sprint(n), fmt.Sprintf("%.0f%%", 100*f.Report().Fill), fmt.Sprint(n), fmt.Sprint(found))
	}
}

// prefixes shows two keys of the first article's family that share positions.
func prefixes() {
	f, err := classic.Config{Bits: 1000, Probes: 13, Scheme: classic.SchemeMD5IndexKey}.New()
	if err != nil {
		panic(err)
	}
	for _, key := range []string{"0x", "x", "1x"} {
		fmt.Printf("%-3s %v\n", key, f.Positions([]byte(key)))
	}
}

// counters works out how likely a counter of a few bits overflows, in a filter of any
// size with half of its counters in use: the share of counters that a Poisson number of
// mean ln 2 takes to 2^bits (Fan, Cao, Almeida and Broder 2000 have a bound for it).
func counters() {
	head("bits of a counter", "2", "3", "4", "5")
	share, ten := []string{"share of counters that overflow"}, []string{"of the counters of ten billion keys at p = 0.01"}
	for _, bits := range []int{2, 3, 4, 5} {
		tail, term := 0., math.Exp(-math.Ln2)
		for j := 0; j < 200; j++ {
			if j >= 1<<bits {
				tail += term
			}
			term *= math.Ln2 / float64(j+1)
		}
		share = append(share, fmt.Sprintf("%.2g", tail))
		ten = append(ten, fmt.Sprintf("%.2g", tail*1e10*bloom.ClassicBitsPerKey(0.01)))
	}
	row(share...)
	row(ten...)
}

// removals removes strangers from counting filters, and counts what is lost.
func removals() {
	const n, strangers = 10_000, 100_000
	head("p", "keys added", "strangers removed", "refused, as not found", "removed", "added keys that are missing then")
	for _, p := range []float64{0.1, 0.01, 0.001} {
		f, err := bloom.NewCounting(n, p)
		if err != nil {
			panic(err)
		}
		for key := range uint64(n) {
			f.AddUint64(key)
		}
		removed, missing := 0, 0
		for key := uint64(n); key < n+strangers; key++ {
			if f.RemoveUint64(key) {
				removed++
			}
		}
		for key := range uint64(n) {
			if !f.ContainsUint64(key) {
				missing++
			}
		}
		row(name(p), human.Commas(n), human.Commas(strangers), human.Commas(strangers-uint64(removed)), fmt.Sprint(removed), human.Commas(uint64(missing)))
	}
}

// operations compares the union, intersection and difference of two filters' bits with
// filters of the keys themselves.
func operations() {
	const n, strangers = 10_000, 1_000_000
	fill := func(from, to uint64) *bloom.Filter {
		f, err := bloom.New(2*n, 0.01)
		if err != nil {
			panic(err)
		}
		for key := from; key < to; key++ {
			f.AddUint64(key)
		}
		return f
	}
	head("A has the keys 0 to 9999, B 5000 to 14999", "keys that it should have", "of these it lacks", "strangers found", "found by a filter of just these keys")
	for _, c := range []struct {
		title    string
		op       func(a, b *bloom.Filter) error
		from, to uint64
	}{
		{"A or B", (*bloom.Filter).Union, 0, 15_000},
		{"A and B", (*bloom.Filter).Intersect, 5_000, 10_000},
		{"A and not B", (*bloom.Filter).Difference, 0, 5_000},
	} {
		f, right := fill(0, n), fill(c.from, c.to)
		if err := c.op(f, fill(n/2, n/2+n)); err != nil {
			panic(err)
		}
		lacks, found, rightly := 0, 0, 0
		for key := c.from; key < c.to; key++ {
			if !f.ContainsUint64(key) {
				lacks++
			}
		}
		for key := range uint64(strangers) {
			if f.ContainsUint64(1<<32 + key) {
				found++
			}
			if right.ContainsUint64(1<<32 + key) {
				rightly++
			}
		}
		row(c.title, fmt.Sprint(c.to-c.from), fmt.Sprint(lacks), fmt.Sprint(found), fmt.Sprint(rightly))
	}
}
