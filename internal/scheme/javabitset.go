package scheme

// The Java class that is copied from blog to blog: a BitSet whose size is a power of two,
// and polynomial hashes of a string's UTF-16 units, one for each of eight seeds, in
// 32-bit arithmetic that wraps around.

var javaSeeds = [...]uint32{3, 5, 7, 11, 13, 31, 37, 61}

// javaBits is the class's own size, 2<<28.
const javaBits = 1 << 29

func fillJavaBitSet(at []uint64, key []byte, m, _ uint64) {
	var room [unitsOnStack]uint16
	units := appendUnits(room[:0], key)
	for i := range at {
		h := uint32(0)
		for _, unit := range units {
			h = javaSeeds[i]*h + uint32(unit)
		}
		at[i] = (m - 1) & uint64(h)
	}
}

// sizeJavaBitSet returns the only size that the class has.
func sizeJavaBitSet(n, p float64) (m uint64, k int) { return javaBits, len(javaSeeds) }
