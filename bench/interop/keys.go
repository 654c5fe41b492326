package main

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A shape is a kind of keys: a function for the i-th key, and unusual keys that every
// filter gets, too, if it is large enough.
type shape struct {
	name string
	key  func(i uint64) []byte
	odd  []string
}

var (
	urls    = shape{"URLs", text("https://www.example.com/item/%d"), oddTexts}
	digests = shape{"hex digests", func(i uint64) []byte { return fmt.Appendf(nil, "%X", sha1.Sum(fmt.Append(nil, i))) }, oddTexts}
	han     = shape{"Chinese", text("网页第%d号"), oddTexts}
	emoji   = shape{"emoji and accents", text("é%d\U0001F469\u200D\U0001F4BB"), oddTexts}

	// octets are 0 to 40 bytes of any value. Most are not UTF-8.
	octets = shape{"bytes", func(i uint64) []byte {
		digest := sha1.Sum(binary.BigEndian.AppendUint64(nil, i))
		return append(digest[:], digest[:]...)[:digest[19]%41]
	}, append([]string{"\xff", "\x80\x00", "\xed\xa0\x80"}, oddTexts...)}

	// Numbers are decimal here. The program converts them.
	longs = shape{"64-bit numbers", func(i uint64) []byte { return strconv.AppendInt(nil, int64(i*0x9e3779b97f4a7c15), 10) },
		[]string{"0", "-1", strconv.Itoa(math.MaxInt64), strconv.Itoa(math.MinInt64)}}
	ints = shape{"32-bit numbers", func(i uint64) []byte { return strconv.AppendInt(nil, int64(int32(uint32(i)*0x9e3779b1)), 10) },
		[]string{"0", "-1", strconv.Itoa(math.MaxInt32), strconv.Itoa(math.MinInt32)}}

	texts = []shape{urls, digests, han, emoji}
)

// oddTexts are keys that have broken programs: the empty key, white space, NUL bytes,
// one letter in two encodings, and long keys with one and three bytes per letter.
var oddTexts = []string{"", " ", "\n", "a\r\n", "\x00", "\x00\x00", "x", "0x", "\u00e9", "e\u0301", "\uffff", "\U0010ffff",
	strings.Repeat("a", 100_000), strings.Repeat("长", 30_000)}

func text(format string) func(uint64) []byte {
	return func(i uint64) []byte { return fmt.Appendf(nil, format, i) }
}

// added returns the n keys to add.
func (s shape) added(n uint64) [][]byte {
	var keys [][]byte
	for _, odd := range s.odd[:min(uint64(len(s.odd)), n/10)] {
		keys = append(keys, []byte(odd))
	}
	for i := uint64(len(keys)); i < n; i++ {
		keys = append(keys, s.key(i))
	}
	return keys
}

const (
	strangers = 10_000 // probes that were not added
	friends   = 2_000  // at most, probes that were
)

// probes returns the keys to look up: the unusual ones, added or not, some that were
// added, and some that were not.
func (s shape) probes(n uint64) [][]byte {
	var keys [][]byte
	for _, odd := range s.odd {
		keys = append(keys, []byte(odd))
	}
	for i := n - min(n, friends); i < n+strangers; i++ {
		keys = append(keys, s.key(i))
	}
	return keys
}
