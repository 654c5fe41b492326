package scheme

// fillDCSO is version 1 of the filters of DCSO/bloom, which CIRCL's hashlookup and MISP
// exchange: 64-bit FNV-1, then a multiplicative generator whose product is truncated to
// 64 bits before the modulus is taken. It is not a good generator (a filter of 2^20
// bits, planned for 1%, gives 24% false positives), but it is the one that the files
// use.
func fillDCSO(at []uint64, key []byte, m, _ uint64) {
	const (
		modulus    = 18446744073709551557 // the largest prime below 2^64
		multiplier = 18446744073709550147
	)
	h := uint64(0xcbf29ce484222325)
	for _, b := range key {
		h = h*0x100000001b3 ^ uint64(b)
	}
	h %= modulus
	for i := range at {
		h = h * multiplier % modulus
		at[i] = h % m
	}
}
