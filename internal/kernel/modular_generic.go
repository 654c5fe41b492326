package kernel

// sieveGeneric tests the given number of positions of the first n keys of s. It keeps
// the keys for which all are set, advanced to their next position, and returns how many
// it kept.
func (f *Modular) sieveGeneric(s *Sieve, n, probes int) (kept int) {
	part := Modular{Words: f.Words, Bits: f.Bits, Probes: probes, magic: f.magic}
	for i, pair := range s.pairs[:n] {
		if part.Contains(pair[0], pair[1]) {
			s.pairs[kept] = [2]uint64{pair[0] + uint64(probes)*pair[1], pair[1]}
			s.at[kept] = s.at[i]
			kept++
		}
	}
	return kept
}

func (f *Modular) addBatchGeneric(size *uint64, most uint64, pairs [][2]uint64, isNew []bool) (done, why int) {
	for i, pair := range pairs {
		is, full := f.Add(size, most, pair[0], pair[1])
		if full {
			return i, addedFull
		}
		isNew[i] = is
	}
	return len(pairs), addedAll
}

func (f *Modular) addBatchSyncGeneric(stripes []Stripe, size *uint64, most uint64, pairs [][2]uint64, isNew []bool) (done, why int) {
	for i, pair := range pairs {
		is, full := f.AddSync(stripes, size, most, pair[0], pair[1])
		if full {
			return i, addedFull
		}
		isNew[i] = is
	}
	return len(pairs), addedAll
}
