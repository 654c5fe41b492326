package main

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

// tools are the places of the programs and of their files.
type tools struct {
	guava   string // Guava's jar
	modules string // node_modules
	vectors string // directory of recorded filters
	dir     string // for temporary files
}

// sizes are n and p of the filters whose sizes both programs compute.
var sizes = []trial{
	{n: 1, p: 0.3}, {n: 12, p: 0.2}, {n: 100, p: 0.1}, {n: 1000, p: 0.03}, {n: 5000, p: 0.3}, {n: 20_000, p: 0.01}, {n: 3000, p: 1e-4},
}

// inTurn returns trials of every size for each variant, with alternating shapes.
func inTurn(sizes []trial, shapes []shape, variants ...string) (trials []trial) {
	for _, variant := range variants {
		for _, t := range sizes {
			t.variant, t.shape = variant, shapes[len(trials)%len(shapes)]
			trials = append(trials, t)
		}
	}
	return trials
}

// edgeSeeds are seeds that are negative, or overflow 32 or 53 bits when 1 or 2 is
// added.
var edgeSeeds = []string{"seed-4294967294", "seed-4294967295", "seed-8589934591", "seed-9007199254740990",
	"seed--3", "seed--5", "seed--4294967296", "seed--9007199254740991"}

// peers returns all formats for which there is a program.
func peers(in tools) []peer {
	return []peer{
		guavaPeer(in),
		{
			format: "dcso",
			start:  func() (program, error) { return dcsoBloom{}, nil },
			trials: append(inTurn(sizes, []shape{octets, digests, urls, han}, "version 1"),
				trial{variant: "with data", shape: digests, n: 1000, p: 0.05, data: []byte(`{"source":"数据"}` + "\n")}),
			ours: classicOf(classic.Config{Scheme: classic.SchemeDCSO}),
		},
		{
			format: "bits-and-blooms",
			start:  func() (program, error) { return goBlooms{}, nil },
			trials: append(goBloomsTrials("binary"), oneWay(inTurn(sizes, texts, "little-endian"))...),
			ours:   classicOf(classic.Config{Scheme: classic.SchemeBitsAndBlooms}),
		},
		{
			format: "bits-and-blooms-json",
			start:  func() (program, error) { return goBlooms{}, nil },
			trials: append(goBloomsTrials("json"), oneWay(inTurn(sizes, texts, "base64-std"))...),
			ours:   classicOf(classic.Config{Scheme: classic.SchemeBitsAndBlooms}),
		},
		{
			format: "parquet",
			start:  func() (program, error) { return parquetGo{}, nil },
			trials: parquetTrials(),
			ours: func(t trial) (interop.Filter, error) {
				const block = 256 // bits
				return bloom.Config{Keys: t.n, Bits: ((t.n*uint64(t.k)+7)/8*8 + block - 1) / block * block}.NewSplitBlock()
			},
			key: parquetKey,
		},
		{
			format: "parquet",
			start:  func() (program, error) { return arrowGo{}, nil },
			trials: parquetTrials(),
			ours: func(t trial) (interop.Filter, error) {
				m := uint64(-8 * float64(t.n) / math.Log(1-math.Pow(t.p, 1./8)))
				return bloom.Config{Keys: t.n, Bits: max(uint64(1)<<bits.Len64(m-1), 256)}.NewSplitBlock()
			},
			key: parquetKey,
		},
		{
			format: "bloomfilter.js",
			start:  javascript(in, "bloomfilter"),
			trials: append(inTurn(sizes, texts, "target"), inTurn(bySize(1000, 4, 32, 1, 99_999, 9), texts, "size")...),
			ours:   classicOf(classic.Config{Scheme: classic.SchemeBloomFilterJS64}),
		},
		{
			format:  "bloomfilter.js-array",
			start:   javascript(in, "bloomfilter18"),
			trials:  inTurn(bySize(1000, 4, 32, 1, 99_999, 9, 1<<17, 3), texts, "size"),
			ours:    classicOf(classic.Config{Scheme: classic.SchemeBloomFilterJS32}),
			options: bare(classic.SchemeBloomFilterJS32),
		},
		{
			format: "npm-bloom-filters",
			start:  javascript(in, "bloom-filters"),
			trials: slices.Concat(inTurn(sizes, texts, "create"), inTurn(bySize(1000, 4, 1, 1, 99_999, 9), texts, "size", "seed-1", "seed-987654321012"),
				inTurn(bySize(1000, 4), texts, edgeSeeds...)),
			ours: func(t trial) (interop.Filter, error) {
				c := classic.Config{Scheme: classic.SchemeNPMBloomFilters}
				if seed, ok := strings.CutPrefix(t.variant, "seed-"); ok {
					n, err := strconv.ParseInt(seed, 10, 64)
					if err != nil {
						return nil, err
					}
					c.Seed = uint64(n)
				}
				return classicOf(c)(t)
			},
		},
		{
			format: "python-list",
			start:  python(in, "md5"),
			trials: inTurn(sizes, texts, "list"),
			ours:   classicOf(classic.Config{Scheme: classic.SchemeMD5IndexKey}),
			options: func(t trial) interop.Options {
				_, k, _ := classic.FormulaTruncated.Size(t.n, t.p) // if this fails, so does ours
				return interop.Options{Probes: k}
			},
		},
		{
			format: "python-bitstring",
			start:  python(in, "sha256-md5"),
			trials: inTurn(bySize(8, 2, 1000, 2, 10_007, 2, 65_536, 2), texts, "bitstring"),
			ours:   classicOf(classic.Config{Scheme: classic.SchemeSHA256MD5}),
		},
		{
			format:  "java-bitset",
			start:   javaBitSet(in),
			trials:  inTurn(bySize(1<<10, 3, 1<<16, 2, 1<<20, 8), texts, "object"),
			ours:    classicOf(classic.Config{Scheme: classic.SchemeJavaBitSet}),
			options: bare(classic.SchemeJavaBitSet),
		},
		{
			format:  "java-bitset-bytes",
			start:   javaBitSet(in),
			trials:  inTurn(bySize(1<<10, 3, 1<<16, 2, 1<<20, 8, 2<<28, 8), texts, "bytes"),
			ours:    classicOf(classic.Config{Scheme: classic.SchemeJavaBitSet}),
			options: bare(classic.SchemeJavaBitSet),
		},
		{
			format: "redis-setbit",
			start:  setbit(in),
			trials: append(inTurn(bySize(1<<10, 6, 1<<16, 2, 1<<20, 6, 1<<30, 6), []shape{digests, urls, han, emoji}, "crawler"),
				inTurn(bySize(1<<10, 3, 1<<16, 2, 1<<20, 8), []shape{urls, han, emoji}, "seeds")...),
			ours: func(t trial) (interop.Filter, error) {
				return classicOf(classic.Config{Scheme: setbitScheme(t)})(t)
			},
			options: func(t trial) interop.Options { return bare(setbitScheme(t))(t) },
		},
		{
			format: "redisbloom",
			start:  func() (program, error) { return recordedRedisBloom(in.vectors) },
			ours:   reserved,
		},
		{
			format: "redis-dump",
			start:  func() (program, error) { return recordedDump(in.vectors) },
			ours:   reserved,
			loose:  true,
		},
	}
}

// classicOf fills in the trial's numbers. From n and p the library computes m and k
// by the program's own formula. With m and k given, Rate must stay zero.
func classicOf(c classic.Config) func(trial) (interop.Filter, error) {
	return func(t trial) (interop.Filter, error) {
		c := c
		if t.m == 0 {
			c.Keys, c.Rate = t.n, t.p
		} else {
			c.Bits, c.Probes = t.m, t.k
		}
		return c.New()
	}
}

// bySize returns a trial for each pair of m and k, with enough keys to set a third of
// the bits, but at most 20,000.
func bySize(pairs ...int) (trials []trial) {
	for ; len(pairs) > 0; pairs = pairs[2:] {
		m, k := uint64(pairs[0]), pairs[1]
		trials = append(trials, trial{n: min(max(uint64(0.4*float64(m)/float64(k)), 1), 20_000), m: m, k: k})
	}
	return trials
}

// bare returns the options for formats that consist of bits only.
func bare(s classic.Scheme) func(trial) interop.Options {
	return func(t trial) interop.Options { return interop.Options{Scheme: s, Bits: t.m, Probes: t.k} }
}

func oneWay(trials []trial) []trial {
	for i := range trials {
		trials[i].oneWay = true
	}
	return trials
}

func goBloomsTrials(variant string) []trial {
	return append(inTurn(sizes, []shape{octets, urls, emoji}, variant),
		inTurn(bySize(1, 1, 64, 2, 1000, 30, 99_999, 9), []shape{octets, han}, variant)...)
}

// guavaPeer has trials of Guava's two strategies and five funnels. Its variants are
// those of programs/Guava.java.
func guavaPeer(in tools) peer {
	formula := classic.FormulaGuava31 // for 31 and 32; later versions differ for n below 4
	start := java(in, "-cp", in.guava, "programs/Guava.java")
	var trials []trial
	for _, strategy := range []string{"64-", "32-"} {
		trials = append(trials, inTurn(sizes, texts, strategy+"utf8", strategy+"utf16")...)
		trials = append(trials, inTurn(sizes, []shape{octets}, strategy+"bytes")...)
		trials = append(trials, inTurn(sizes, []shape{longs}, strategy+"long")...)
		trials = append(trials, inTurn(sizes, []shape{ints}, strategy+"int")...)
	}
	return peer{
		format: "guava",
		start: func() (program, error) {
			p, err := start()
			if err == nil && !strings.HasPrefix(p.about(), "Guava 31.") && !strings.HasPrefix(p.about(), "Guava 32.") {
				formula = classic.FormulaGuava33
			}
			return p, err
		},
		trials: trials,
		ours: func(t trial) (interop.Filter, error) {
			c := classic.Config{Scheme: classic.SchemeGuava64, Formula: formula}
			if strings.HasPrefix(t.variant, "32-") {
				c.Scheme = classic.SchemeGuava32
			}
			return classicOf(c)(t)
		},
		key: func(t trial, key []byte) []byte {
			switch t.variant[3:] {
			case "utf16":
				var units []byte
				for _, unit := range utf16.Encode([]rune(string(key))) {
					units = binary.LittleEndian.AppendUint16(units, unit)
				}
				return units
			case "long":
				return binary.LittleEndian.AppendUint64(nil, uint64(decimal(t.variant, key)))
			case "int":
				return binary.LittleEndian.AppendUint32(nil, uint32(decimal(t.variant, key)))
			}
			return key
		},
	}
}

// parquetTrials have n and p, and in k the bits per value for parquet-go.
func parquetTrials() []trial {
	sized := make([]trial, len(sizes))
	for i, t := range sizes {
		t.k = 4 + 3*i
		sized[i] = t
	}
	trials := inTurn(sized, []shape{octets, urls, han}, "byte-array")
	trials = append(trials, inTurn(sized, []shape{longs}, "int64", "double")...)
	return append(trials, inTurn(sized, []shape{ints}, "int32")...)
}

// parquetKey returns the plain encoding of a value.
func parquetKey(t trial, key []byte) []byte {
	switch number := decimal(t.variant, key); t.variant {
	case "int32":
		return binary.LittleEndian.AppendUint32(nil, uint32(number))
	case "int64":
		return binary.LittleEndian.AppendUint64(nil, uint64(number))
	case "double":
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(number)))
	}
	return key
}

func java(in tools, args ...string) func() (program, error) {
	return func() (program, error) { return startChild(in.dir, append([]string{"java"}, args...)...) }
}

func javaBitSet(in tools) func() (program, error) {
	return java(in, "-Xmx1g", "programs/BitSetFilter.java")
}

func javascript(in tools, pkg string) func() (program, error) {
	return func() (program, error) {
		return startChild(in.dir, "node", "programs/javascript.mjs", in.modules, pkg)
	}
}

func python(in tools, args ...string) func() (program, error) {
	return func() (program, error) {
		return startChild(in.dir, append([]string{"python3", "programs/textbooks.py"}, args...)...)
	}
}

// setbit starts the Python program and a Redis for it.
func setbit(in tools) func() (program, error) {
	return func() (program, error) {
		port, stop, err := startRedis(in.dir)
		if err != nil {
			return nil, err
		}
		c, err := startChild(in.dir, "python3", "programs/textbooks.py", "setbit", port)
		if err != nil {
			stop()
			return nil, err
		}
		return withServer{c, stop}, nil
	}
}

// setbitScheme returns the scheme of the crawlers' filter, or of the Java class when
// it keeps its bits in a Redis string.
func setbitScheme(t trial) classic.Scheme {
	if t.variant == "seeds" {
		return classic.SchemeJavaBitSet
	}
	return classic.SchemeRedisSetBit
}

// withServer is a program with a server. It stops both.
type withServer struct {
	program
	stopServer func()
}

func (w withServer) stop() {
	w.program.stop()
	w.stopServer()
}
