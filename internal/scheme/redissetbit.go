package scheme

// fillRedisSetBit is the filter that crawlers keep in a Redis string with SETBIT
// (ScrapyRedisBloomFilter and its copies). Each hash is a polynomial of the key's code
// points, whose base is the number of the hash, counted from 1; base 1 is a plain sum.
// Redis counts the bits of a byte from the top: bit o of the string is byte o/8, mask
// 0x80>>(o%8).
func fillRedisSetBit(at []uint64, key []byte, m, _ uint64) {
	clear(at)
	for len(key) > 0 {
		var r rune
		r, key = nextRune(key)
		for i := range at {
			at[i] = at[i]*uint64(i+1) + uint64(r)
		}
	}
	for i := range at {
		at[i] &= m - 1
	}
}
