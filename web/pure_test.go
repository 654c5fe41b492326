package web_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/rate"
	"github.com/bloomery/bloom/internal/scheme"
	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
	"github.com/zeebo/xxh3"
)

// pure has Node.js compute what does not depend on files, and compare it with the plan.
func pure(t *testing.T, plan map[string]any, more ...string) {
	t.Helper()
	if got := strings.TrimSpace(node(t, "pure.mjs", append([]string{inJSON(t, plan)}, more...)...)); got != "fine" {
		t.Error(got)
	}
}

// TestHashes compares the hashes with the library's, for every length up to where XXH3
// has used its whole secret, and with vectors of their authors' programs.
func TestHashes(t *testing.T) {
	t.Parallel()
	type row struct {
		Length         int
		Seed           string
		XXH3, XXH64    string
		Murmur64A      string
		Secret, SipHex string
	}
	secret := []byte("sixteen bytes ..")
	var rows []row
	key := make([]byte, 70_000)
	for i := range key {
		key[i] = byte(167*i + 13)
	}
	lengths := []int{2047, 2048, 2049, 4096, 65_535, 65_536, 65_537, 70_000}
	for length := range 1101 {
		lengths = append(lengths, length)
	}
	for _, length := range lengths {
		for _, seed := range []uint64{0, 1, 1 << 31, 1<<32 - 1, 1 << 63, 0x9e3779b97f4a7c15, 1<<64 - 1} {
			digest := xxhash.NewWithSeed(seed)
			digest.Write(key[:length])
			rows = append(rows, row{
				length, fmt.Sprint(seed),
				fmt.Sprintf("%x", xxh3.HashSeed(key[:length], seed)), fmt.Sprintf("%x", digest.Sum64()),
				fmt.Sprintf("%x", scheme.Murmur64A(key[:length], seed)),
				hex.EncodeToString(secret), fmt.Sprintf("%x", siphash.Hash(0x206e656574786973, 0x2e2e207365747962, key[:length])),
			})
		}
	}
	pure(t, map[string]any{"hashes": rows}, filepath.Join(root, "testdata", "vectors", "hash.json"))
}

// TestCuckooPlaces compares where a key may lie in tables of all sizes.
func TestCuckooPlaces(t *testing.T) {
	t.Parallel()
	type row struct {
		Hash                            string
		Blocks, Fingerprint, One, Other uint64
	}
	random := rand.New(rand.NewPCG(8, 8))
	var rows []row
	for bits := range 35 {
		buckets := uint64(1) << bits
		for _, h := range []uint64{0, 1, 254, 255, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1, random.Uint64(), random.Uint64(), random.Uint64()} {
			nest := kernel.NestOf(h)
			rows = append(rows, row{fmt.Sprint(h), buckets, uint64(nest.Fingerprint), nest.One % buckets, nest.Other % buckets})
		}
	}
	pure(t, map[string]any{"places": rows})
}

// TestRates compares the rate of paired lines with the library's. A window's file is
// refused if they differ by a millionth; here it is a tenth of that.
func TestRates(t *testing.T) {
	t.Parallel()
	type row struct {
		Keys, Blocks uint64
		K            int
		Rate         float64
	}
	var rows []row
	for _, blocks := range []uint64{1, 2, 3, 17, 500, 1023, 1024, 5000, 1 << 20, 1 << 33} {
		for k := 2; k <= 16; k += 2 {
			for _, load := range []float64{0.01, 1, 100, 400, 700, 2000, 20_000, 200_000} {
				if n := uint64(load * float64(blocks)); n > 0 && n <= 1<<44 {
					rows = append(rows, row{n, blocks, k, rate.Paired(n, blocks, k/2)})
				}
			}
		}
	}
	pure(t, map[string]any{"rates": rows})
}

// TestNormalForms compares the normal forms with the command line's.
func TestNormalForms(t *testing.T) {
	t.Parallel()
	type row struct{ Forms, Line, Key string }
	random := rand.New(rand.NewPCG(3, 9))
	parts := []string{
		"http", "HTTPS", "ftp", "wss", "constructor", "://", ":", "@", "//", "/", "?", "#", ".", "..", "/./", "/../", "%", "%2f", "%2F", "%41", "%7e",
		"%zz", "%4", "Example", "EXAMPLE.com", "[::1]", ":80", ":443", ":", ":0080", "a", "B", " ", "\t", "\v", "0x", "0X", "DEADBEEF", "de:ad-be ef",
		"\xff", "Ž", "-", "~", "_", "+", "12",
	}
	var rows []row
	for i := range 40_000 {
		var line []byte
		if i%2 == 0 {
			line = append(line, "http://"...)
		}
		for range random.IntN(9) {
			line = append(line, parts[random.IntN(len(parts))]...)
		}
		forms := []string{"url", "lower", "upper", "trim", "hex", "trim,url", "trim,hex,upper"}[i/2%7]
		keys, err := anyfile.NewKeyMap("", forms)
		if err != nil {
			t.Fatal(err)
		}
		key, err := keys.Of([][]byte{line})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row{forms, hex.EncodeToString(line), hex.EncodeToString(bytes.Clone(key[0]))})
	}
	pure(t, map[string]any{"forms": rows})
}
