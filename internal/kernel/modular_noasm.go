//go:build !amd64 || purego || race

package kernel

func (f *Modular) sieve(s *Sieve, n, probes int) int { return f.sieveGeneric(s, n, probes) }

func (f *Modular) addBatch(size *uint64, most uint64, pairs [][2]uint64, isNew []bool, _ *Sieve) (done, why int) {
	return f.addBatchGeneric(size, most, pairs, isNew)
}

func (f *Modular) addBatchSync(stripes []Stripe, size *uint64, most uint64, pairs [][2]uint64, isNew []bool, _ *Sieve) (done, why int) {
	return f.addBatchSyncGeneric(stripes, size, most, pairs, isNew)
}
