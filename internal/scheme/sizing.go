package scheme

import (
	"math"

	"github.com/bloomery/bloom/internal/elementary"
)

// How programs and textbooks size a filter of n keys at rate p, with their own roundings
// and order of operations: one different digit gives a different filter. None of them
// considers what rounding k costs; the root package's plan does. n is at least 1 and p
// between 0 and 1.
//
// The logarithms are those of internal/elementary, so that a size is the same on
// every processor.

// SizeTruncated: m = trunc(1.44 n log2(1/p)), k = trunc(ln 2 m/n). 1.44 is less
// than 1/ln 2 and both are rounded down, so the rate is 1% to 4% above p; k is 0
// for p above 0.499.
func SizeTruncated(n, p float64) (m uint64, k int) {
	m = whole(1.44 * n * (elementary.Log(1/p) / math.Ln2))
	return m, probes(math.Ln2 * (float64(m) / n))
}

// SizeCeiling: m = ceil(-n ln p/(ln 2)^2), k = ceil(-log2 p).
func SizeCeiling(n, p float64) (m uint64, k int) {
	return whole(math.Ceil(-(n * elementary.Log(p)) / (math.Ln2 * math.Ln2))), probes(math.Ceil(-elementary.Log2(p)))
}

// Real: m = -n ln p/(ln 2)^2, k = m/n ln 2, not rounded.
func Real(n, p float64) (m, k float64) {
	m = -n * elementary.Log(p) / (math.Ln2 * math.Ln2)
	return m, m / n * math.Ln2
}

// SizeReal is Real with m rounded up and k rounded to the nearest, at least 1.
func SizeReal(n, p float64) (m uint64, k int) {
	bits, hashes := Real(n, p)
	return whole(math.Ceil(bits)), max(probes(math.Round(hashes)), 1)
}

// SizeGuava31 is the size in Guava 31.1 and 32.0.1: whole longs, k = round(m/n ln 2) of
// the truncated m.
func SizeGuava31(n, p float64) (m uint64, k int) {
	m = guavaBits(n, p)
	return longs(m), max(probes(math.Floor(float64(float64(m)/n*math.Ln2)+0.5)), 1)
}

// SizeGuava33 is the size in Guava 33.7.1: k = round(-log2 p).
func SizeGuava33(n, p float64) (m uint64, k int) {
	return longs(guavaBits(n, p)), max(probes(math.Floor(-elementary.Log(p)/math.Ln2+0.5)), 1)
}

func guavaBits(n, p float64) uint64 { return whole(-n * elementary.Log(p) / (math.Ln2 * math.Ln2)) }

// SizeRedisBloom is the size of a filter that does not scale (NONSCALING), and of each
// link of a chain at the link's own rate.
func SizeRedisBloom(n, p float64) (m uint64, k int) {
	perKey := math.Abs(elementary.Log(p) / 0.480453013918201)
	return longs(max(whole(n*perKey), 1)), probes(math.Ceil(0.693147180559945 * perKey))
}

// SizeRedisBloomScaling is the size of the first link of a chain, which gets half the
// rate.
func SizeRedisBloomScaling(n, p float64) (m uint64, k int) { return SizeRedisBloom(n, p*0.5) }

// SizeBitsAndBlooms has k = ceil(ln 2 m/n) with the rounded m: one too many if p is a
// power of two.
func SizeBitsAndBlooms(n, p float64) (m uint64, k int) {
	m = whole(math.Ceil(-1 * n * elementary.Log(p) / (math.Ln2 * math.Ln2)))
	return m, probes(math.Ceil(math.Ln2 * float64(m) / n))
}

// SizeDCSO rounds a negative number up, and so m down.
func SizeDCSO(n, p float64) (m uint64, k int) {
	m = whole(math.Abs(math.Ceil(n * elementary.Log(p) / (math.Ln2 * math.Ln2))))
	return m, probes(math.Ceil(math.Ln2 * float64(m) / n))
}

// SizeBloomFilterJS rounds m up to whole buckets only after computing k.
func SizeBloomFilterJS(n, p float64) (m uint64, k int) {
	m = whole(math.Ceil(-n * elementary.Log2(p) / math.Ln2))
	return (m + 31) / 32 * 32, probes(math.Ceil(math.Ln2 * float64(m) / n))
}

// SizeNPMBloom is the size in the npm package bloom-filters.
func SizeNPMBloom(n, p float64) (m uint64, k int) {
	m = whole(math.Ceil(-(n * elementary.Log(p) / (math.Ln2 * math.Ln2))))
	return m, probes(math.Ceil(float64(m) / n * math.Ln2))
}

// whole truncates x to an integer, and clamps it far above every limit.
func whole(x float64) uint64 { return uint64(min(max(x, 0), 1<<62)) }

func probes(x float64) int { return int(min(max(x, 0), 1<<30)) }

// longs rounds up to whole 64-bit words.
func longs(m uint64) uint64 { return (m + 63) / 64 * 64 }
