// Package human parses numbers as people write them in flags, and formats them as
// people read them: counts, sizes, rates, tables, and the report of a filter, in words
// and as JSON.
package human

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// grouped matches a number with its thousands separated: 10,000,000 or 10_000_000.
var grouped = regexp.MustCompile(`^\d{1,3}([,_]\d{3})+(\.\d+)?$`)

// parseNumber reads 10000000, 1e7, 10_000_000 and 10,000,000.
func parseNumber(s string) (float64, error) {
	if grouped.MatchString(s) {
		s = strings.NewReplacer(",", "", "_", "").Replace(s)
	}
	if strings.Trim(s, "0123456789.eE+-") != "" { // no Inf, NaN or hexadecimal
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// wholeLimit is where float64 can no longer distinguish consecutive integers.
const wholeLimit = 1 << 53

// whole converts x to an integer if it is one, apart from the rounding of a product
// like 1.1 * 1e6.
func whole(x float64) (uint64, bool) {
	n := math.Round(x)
	if x < 0 || x > wholeLimit || math.Abs(x-n) > 1e-12*x {
		return 0, false
	}
	return uint64(n), true
}

// thousands are the suffixes of counts.
var thousands = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

// sizes are the suffixes of sizes in bytes. A bare letter is binary, as in
// sort -S, dd and ls -h.
var sizes = map[string]float64{
	"": 1, "B": 1,
	"k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// parseWith parses a number with one of the suffixes.
func parseWith(s string, suffixes map[string]float64) (uint64, bool) {
	s = strings.TrimSpace(s)
	digits := strings.TrimRight(s, "kKMGTiB")
	unit, known := suffixes[s[len(digits):]]
	x, err := parseNumber(strings.TrimSpace(digits))
	if err != nil || !known {
		return 0, false
	}
	n, ok := whole(x * unit)
	return n, ok
}

// MaxCount is the largest number of keys of any filter.
const MaxCount = 1 << 44

func parseCount(s string) (uint64, error) {
	if x, err := parseNumber(s); err == nil && (x > MaxCount || x <= 0) {
		return 0, fmt.Errorf("must be from 1 to 2^44 (%s)", Commas(MaxCount))
	}
	n, ok := parseWith(s, thousands)
	if !ok || n == 0 {
		return 0, errors.New("want a whole number like 1000000, 1e6, 1_000_000 or 1M")
	}
	if n > MaxCount {
		return 0, fmt.Errorf("must be from 1 to 2^44 (%s)", Commas(MaxCount))
	}
	return n, nil
}

func parseSize(s string) (uint64, error) {
	n, ok := parseWith(s, sizes)
	if !ok || n == 0 {
		return 0, errors.New("want a size like 2GiB, 500MB or a number of bytes")
	}
	return n, nil
}

// parseBits parses a number of bits, possibly a power of two, or a size in bytes if it
// ends in B.
func parseBits(s string) (uint64, error) {
	if exponent, ok := strings.CutPrefix(s, "2^"); ok {
		if e, err := strconv.ParseUint(exponent, 10, 6); err == nil && e <= 53 {
			return 1 << e, nil
		}
	}
	if strings.HasSuffix(s, "B") {
		n, err := parseSize(s)
		return 8 * n, err
	}
	n, err := parseCount(s)
	if err != nil {
		return 0, errors.New("want a number of bits like 1e9, 10M or 2^30, or a size like 2GiB")
	}
	return n, nil
}

// ParseRate reads 0.001, 1e-3, 0.1%, 1/1000 and "1 in 1000".
func ParseRate(s string) (float64, error) {
	bad := errors.New(`want a rate between 0 and 1 like 0.001, 0.1%, 1/1000 or "1 in 1000"`)
	s = strings.TrimSpace(s)
	numerator, denominator, ratio := strings.Cut(s, "/")
	if !ratio {
		numerator, denominator, ratio = strings.Cut(s, " in ")
	}
	if !ratio {
		numerator, denominator = s, "1"
		if percent, is := strings.CutSuffix(s, "%"); is {
			numerator, denominator = percent, "100"
		}
	}
	x, err := parseNumber(strings.TrimSpace(numerator))
	y, err2 := parseNumber(strings.TrimSpace(denominator))
	rate := x / y
	if err != nil || err2 != nil || !(rate > 0 && rate < 1) {
		return 0, bad
	}
	return rate, nil
}

// Flags that hold such numbers.

type CountFlag uint64

func (f *CountFlag) Set(s string) error { return set((*uint64)(f), s, parseCount) }
func (f *CountFlag) String() string     { return plain(uint64(*f)) }
func (f *CountFlag) Type() string       { return "N" }

type SizeFlag uint64

func (f *SizeFlag) Set(s string) error { return set((*uint64)(f), s, parseSize) }
func (f *SizeFlag) String() string     { return plain(uint64(*f)) }
func (f *SizeFlag) Type() string       { return "SIZE" }

type BitsFlag uint64

func (f *BitsFlag) Set(s string) error { return set((*uint64)(f), s, parseBits) }
func (f *BitsFlag) String() string     { return plain(uint64(*f)) }
func (f *BitsFlag) Type() string       { return "BITS" }

type RateFlag float64

func (f *RateFlag) Set(s string) error { return set((*float64)(f), s, ParseRate) }
func (f *RateFlag) Type() string       { return "P" }
func (f *RateFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*f), 'g', -1, 64)
}

// TimeFlag is a duration, in Go's syntax or in days.
type TimeFlag time.Duration

func (f *TimeFlag) Set(s string) error { return set((*time.Duration)(f), s, parseTime) }
func (f *TimeFlag) Type() string       { return "TIME" }
func (f *TimeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return time.Duration(*f).String()
}

// parseTime reads 30m, 24h, 1h30m and 7d.
func parseTime(s string) (time.Duration, error) {
	if days, is := strings.CutSuffix(s, "d"); is {
		x, err := parseNumber(days)
		if err == nil && math.Abs(x) < math.MaxInt64/float64(24*time.Hour) {
			return time.Duration(x * float64(24*time.Hour)), nil
		}
	}
	t, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("want a time like 30m, 24h or 7d")
	}
	return t, nil
}

// ProbesFlag is k, zero if it was not given.
type ProbesFlag int

func (f *ProbesFlag) Type() string   { return "K" }
func (f *ProbesFlag) String() string { return plain(uint64(*f)) }
func (f *ProbesFlag) Set(s string) error {
	k, err := strconv.ParseUint(s, 10, 8)
	if err != nil || k == 0 {
		return errors.New("must be from 1 to 255")
	}
	*f = ProbesFlag(k)
	return nil
}

// SeedFlag is the seed of a hash.
type SeedFlag uint64

func (f *SeedFlag) Type() string   { return "SEED" }
func (f *SeedFlag) String() string { return plain(uint64(*f)) }
func (f *SeedFlag) Set(s string) error {
	seed, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return errors.New("want a whole number from 0 to 2^64-1, like 42 or 0x2a")
	}
	*f = SeedFlag(seed)
	return nil
}

func set[T any](to *T, s string, parse func(string) (T, error)) error {
	value, err := parse(s)
	if err == nil {
		*to = value
	}
	return err
}

// plain is a flag's default in the help text, which shows none for zero.
func plain(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// Commas formats n with commas between its thousands.
func Commas(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count formats a number of things: 1 line, 2 lines.
func Count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Commas(n) + " " + thing + "s"
}

// Round formats x rounded to the nearest integer, with commas.
func Round(x float64) string {
	if x >= 1<<63 {
		return fmt.Sprintf("%.3g", x)
	}
	return Commas(uint64(math.Round(x)))
}

// rarest is the lowest rate that is printed: nobody will ever look up more keys.
const rarest = 1e15

// OneIn formats a rate in the form that people understand best.
func OneIn(rate float64) string {
	switch x := 1 / rate; {
	case math.IsInf(x, 0):
		return "0"
	case x > rarest:
		return "less than 1 in 10^15"
	case x < 100:
		return fmt.Sprintf("1 in %.3g", x)
	default:
		return "1 in " + Round(x)
	}
}

func Percent(share float64) string {
	if math.IsInf(share, 1) { // every bit is set: the number of keys is unknown
		return "more than 100%"
	}
	return fmt.Sprintf("%.1f%%", 100*share)
}

// BytesOf formats a size in bytes and, if that is shorter, in a larger unit.
func BytesOf(n uint64) string {
	if n < 1<<10 {
		return Count(n, "byte")
	}
	return fmt.Sprintf("%s bytes (%s)", Commas(n), BinarySize(n))
}

// BinarySize formats bytes in the unit that leaves one to four digits before the
// point.
func BinarySize(bytes uint64) string {
	const units = "KMGTPE"
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	x, unit := float64(bytes)/(1<<10), 0
	for x >= 1<<10 {
		x /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", x, units[unit])
}

// KeysFlag is -n: a number, zero for "count all lines", or auto.
type KeysFlag struct {
	N    CountFlag
	Auto bool
}

func (f *KeysFlag) Set(s string) error {
	if f.Auto = s == "auto"; f.Auto {
		return nil
	}
	return f.N.Set(s)
}
func (f *KeysFlag) String() string {
	if f.Auto {
		return "auto"
	}
	return f.N.String()
}
func (f *KeysFlag) Type() string { return "N" }
