package rate

import "github.com/bloomery/bloom/internal/elementary"

// Cuckoo is the expected rate of a cuckoo filter with n different keys, fingerprints of 255
// values and a power of two of buckets. A stranger is found by a key of the same fingerprint
// and the same two buckets, wherever the table has put that key: the number of slots and the
// load do not matter, nor does a removal of other keys. Of B buckets a key begins in one of
// two with probability 2/B, so it is not found with (1 - 2/(255 B))^n. The two buckets of a
// fingerprint are one if B divides it; then 1 takes the place of 2.
//
// It is exact also for a chain of tables with B buckets each, and an upper bound if later
// tables are larger.
func Cuckoo(n, buckets uint64) float64 {
	const fingerprints = 255
	single := float64(fingerprints / buckets) // the fingerprints that have one bucket
	pairs := fingerprints * float64(buckets)
	found := func(places float64) float64 {
		return -elementary.Expm1(float64(n) * elementary.Log1p(-places/pairs))
	}
	return (float64(single*found(1)) + float64((fingerprints-single)*found(2))) / fingerprints
}
