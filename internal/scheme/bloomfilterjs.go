package scheme

// Jason Davies' bloomfilter.js, which has had two families of hashes under one
// name and format.

// fillBloomFilterJS1 is the family up to version 0.0.18: 32-bit FNV-1a with a finisher,
// and plain double hashing. A unit above 255 counts as two bytes. Remainders have the
// sign of the dividend, so intermediate results may be negative.
func fillBloomFilterJS1(at []uint64, key []byte, m, _ uint64) {
	var room [unitsOnStack]uint16
	units := appendUnits(room[:0], key)
	size := int64(m)
	x := int64(fnvFinished(units, 0)) % size
	step := int64(fnvFinished(units, 1576284489))
	for i := range at {
		at[i] = uint64(x)
		if x < 0 {
			at[i] = uint64(x + size)
		}
		x = (x + step) % size
	}
}

func fnvFinished(units []uint16, seed uint32) int32 {
	const prime = 16777619
	h := 0x811c9dc5 ^ seed
	for _, unit := range units {
		if unit > 0xff {
			h = (h ^ uint32(unit>>8)) * prime
		}
		h = (h ^ uint32(unit&0xff)) * prime
	}
	h += h << 13
	h ^= h >> 7
	h += h << 3
	h ^= h >> 17
	h += h << 5
	return int32(h)
}

// fillBloomFilterJS2 is the family since version 0.0.21: 64-bit FNV-1a over whole units,
// whose halves are taken as signed numbers modulo m, and enhanced double hashing
// (Dillinger and Manolios 2004, section 5.2).
func fillBloomFilterJS2(at []uint64, key []byte, m, _ uint64) {
	h := uint64(0xcbf29ce484222325)
	var room [unitsOnStack]uint16
	for _, unit := range appendUnits(room[:0], key) {
		h = (h ^ uint64(unit)) * 0x100000001b3
	}
	a, b := signedMod(int32(h>>32), m), signedMod(int32(h), m)
	for i := range at {
		at[i] = a
		a = (a + b) % m
		b = (b + uint64(i) + 1) % m
	}
}

func signedMod(x int32, m uint64) uint64 {
	rest := int64(x) % int64(m)
	if rest < 0 {
		rest += int64(m)
	}
	return uint64(rest)
}
