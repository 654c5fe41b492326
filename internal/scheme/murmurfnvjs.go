package scheme

// The two hashes of the interactive page "Bloom Filters by Example" (llimllib), whose
// answers many tutorials copy: MurmurHash2 over UTF-16 units, and a hash that the
// page's author calls FNV. Positions are modulo m; the page has m = 15.

// fillMurmurFNVJS sets the position of the page's FNV first, then that of its Murmur.
func fillMurmurFNVJS(at []uint64, key []byte, m, _ uint64) {
	var room [unitsOnStack]uint16
	units := appendUnits(room[:0], key)
	for i := range at {
		switch i {
		case 0:
			at[i] = uint64(fnvJS(units)) % m
		case 1:
			at[i] = uint64(murmur2JS(units)) % m
		}
	}
}

// fnvJS is FNV-1 computed in float64, as JavaScript does: the product loses its low
// bits above 2^53, and the exclusive or turns it into a signed 32-bit number. A unit
// counts as its high byte, unless that is zero, followed by its low byte.
func fnvJS(units []uint16) uint32 {
	h := 2166136261.0
	step := func(b byte) {
		product := h * 16777619 // below 2^56 in magnitude: it fits an int64
		h = float64(int32(uint32(int64(product))) ^ int32(b))
	}
	for _, unit := range units {
		if unit > 0xff {
			step(byte(unit >> 8))
		}
		step(byte(unit))
	}
	return uint32(max(h, -h))
}

// murmur2JS is MurmurHash2 of 32 bits with seed 0, except that it takes units
// where the original takes bytes, so that units above 255 overlap.
func murmur2JS(units []uint16) uint32 {
	const mul = 0x5bd1e995
	h := uint32(len(units))
	for ; len(units) >= 4; units = units[4:] {
		k := uint32(units[0]) + uint32(units[1])<<8 + uint32(units[2])<<16 + uint32(units[3])<<24
		k *= mul
		k ^= k >> 24
		h = h*mul ^ k*mul
	}
	switch len(units) {
	case 3:
		h ^= uint32(units[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(units[0]) + uint32(units[1])<<8
		h *= mul
	case 1:
		h ^= uint32(units[0])
		h *= mul
	}
	h = (h ^ h>>13) * mul
	return h ^ h>>15
}
