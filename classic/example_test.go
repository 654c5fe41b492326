package classic_test

import (
	"fmt"
	"slices"

	"github.com/bloomery/bloom/classic"
)

// Eight bits and two hashes, SHA-256 and MD5, as in TheAlgorithms' collection.
func ExampleFilter_titanicAndAvatar() {
	films, err := classic.Config{Bits: 8, Probes: 2, Scheme: classic.SchemeSHA256MD5}.New()
	if err != nil {
		panic(err)
	}
	fmt.Println(films.BitString(), "empty; Titanic:", films.ContainsString("Titanic"))
	films.AddString("Titanic")
	fmt.Println(films.BitString(), "Titanic:", films.ContainsString("Titanic"))

	films.AddString("Avatar") // both hashes give the same bit
	fmt.Println(films.BitString(), "Avatar has", films.FormatHash([]byte("Avatar")))

	for _, film := range []string{"The Godfather", "Interstellar", "Parasite", "Pulp Fiction", "Ratatouille"} {
		fmt.Println(films.FormatHash([]byte(film)), film, films.ContainsString(film))
	}
	fmt.Println("error rate", films.EstimatedErrorRate())
	films.AddString("The Godfather")
	fmt.Println("error rate", films.EstimatedErrorRate(), "with", films.BitString())
	// Output:
	// 00000000 empty; Titanic: false
	// 01100000 Titanic: true
	// 01100100 Avatar has 00000100
	// 00000101 The Godfather false
	// 00000011 Interstellar false
	// 00010010 Parasite false
	// 10000100 Pulp Fiction false
	// 01100000 Ratatouille true
	// error rate 0.140625
	// error rate 0.25 with 01100101
}

// The interactive page "Bloom Filters by Example": fifteen bits, "Fnv" and
// Murmur.
func ExampleFilter_helloAndWorld() {
	f, err := classic.Config{Bits: 15, Probes: 2, Scheme: classic.SchemeMurmurFNVJS}.New()
	if err != nil {
		panic(err)
	}
	f.AddString("hello")
	f.AddString("world")
	for _, word := range []string{"hello", "world", "charmer", "zaslf"} {
		at := f.Positions([]byte(word))
		fmt.Printf("%s: Fnv=%d, Murmur=%d: %v\n", word, at[0], at[1], f.ContainsString(word))
	}
	// Output:
	// hello: Fnv=6, Murmur=0: true
	// world: Fnv=7, Murmur=1: true
	// charmer: Fnv=12, Murmur=10: false
	// zaslf: Fnv=7, Murmur=1: true
}

// Ten slots and three hashes of one's own: baz was never added, but foo and bar
// have set all of its slots.
func ExampleNewScheme() {
	slots := map[string][]uint64{
		"foo": {2, 5, 6},
		"bar": {3, 4, 6},
		"baz": {3, 5, 6},
	}
	byHand, err := classic.NewScheme("by hand", func(at []uint64, key []byte, m uint64) {
		copy(at, slots[string(key)])
	})
	if err != nil {
		panic(err)
	}
	f, err := classic.Config{Bits: 10, Probes: 3, Scheme: byHand}.New()
	if err != nil {
		panic(err)
	}
	show := func() {
		bits := []byte(f.BitString())
		slices.Reverse(bits) // slot 0 first
		fmt.Printf("%s foo %v, bar %v, baz %v\n", bits, f.ContainsString("foo"), f.ContainsString("bar"), f.ContainsString("baz"))
	}
	show()
	f.AddString("foo")
	show()
	f.AddString("bar")
	show()
	// Output:
	// 0000000000 foo false, bar false, baz false
	// 0010011000 foo true, bar false, baz false
	// 0011111000 foo true, bar true, baz true
}

// A blacklist of ten billion URLs of 64 bytes, 640 GB, does not fit in memory. A
// filter of it does; and the class that is copied from blog to blog is one.
func ExampleConfig_urlBlacklist() {
	plan, err := classic.Config{Keys: 10_000_000_000, Rate: 0.0001, Formula: classic.FormulaReal}.Plan()
	if err != nil {
		panic(err)
	}
	fmt.Printf("m %d, k %d: %.0f GB, wrong once in %.0f\n", plan.Bits, plan.Probes, float64(plan.Bytes())/1e9, 1/plan.Rate)

	blacklist, err := classic.Config{Bits: 2 << 28, Probes: 8, Scheme: classic.SchemeJavaBitSet}.New()
	if err != nil {
		panic(err)
	}
	defer blacklist.Close()
	blacklist.AddString("www.baidu.com")
	blacklist.AddString("www.sohu.com")
	fmt.Println(blacklist.ContainsString("www.baidu.com"), blacklist.ContainsString("www.sina.com"))
	fmt.Println(blacklist.Positions([]byte("www.baidu.com")))
	// Output:
	// m 191701167548, k 13: 24 GB, wrong once in 9987
	// true false
	// [93222235 192777785 305281759 289173891 285643777 270263191 138649689 312706353]
}

// Guava's filter of 10,000 strings at 0.01%, with 6,000 in it: of the numbers
// 5000 to 9999 it answers yes to the first thousand and to no other.
func ExampleConfig_guava() {
	f, err := classic.Config{Keys: 10000, Rate: 0.0001, Scheme: classic.SchemeGuava64}.New()
	if err != nil {
		panic(err)
	}
	for i := range 6000 {
		f.AddString(fmt.Sprint("abc_test_", i))
	}
	var yes []int
	for i := 5000; i < 10000; i++ {
		if f.ContainsString(fmt.Sprint("abc_test_", i)) {
			yes = append(yes, i)
		}
	}
	fmt.Println(f.Plan())
	fmt.Println(len(yes), "yes, from", yes[0], "to", yes[len(yes)-1])
	// Output:
	// n 10000, p 9.995e-05, m 191744, k 13
	// 1000 yes, from 5000 to 5999
}

// The three ways to set m and k, and what programs and textbooks make of the
// same n and p.
func ExampleFormula_Size() {
	for _, c := range []classic.Config{
		{Bits: 10, Probes: 3},
		{Keys: 1_000_000},
		{Keys: 1_000_000, Rate: 0.01},
	} {
		plan, err := c.Plan()
		if err != nil {
			panic(err)
		}
		fmt.Println(plan)
	}
	for f := classic.FormulaTruncated; f <= classic.FormulaNPMBloomFilters; f++ {
		m, k, err := f.Size(1_000_000, 0.01)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-18v m %d, k %d\n", f, m, k)
	}
	// Output:
	// n 2, p 0.1121, m 10, k 3
	// n 1000000, p 0.008194, m 10000000, k 7
	// n 1000000, p 0.01, m 9592957, k 7
	// truncated          m 9567152, k 6
	// ceiling            m 9585059, k 7
	// real               m 9585059, k 7
	// guava 31           m 9585088, k 7
	// guava 33           m 9585088, k 7
	// redisbloom         m 9585088, k 7
	// redisbloom scaling m 11027776, k 8
	// bits-and-blooms    m 9585059, k 7
	// dcso               m 9585058, k 7
	// bloomfilter.js     m 9585088, k 7
	// npm-bloom-filters  m 9585059, k 7
}
