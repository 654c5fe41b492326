package scheme

import "unicode/utf8"

// Java and JavaScript see a string as UTF-16 units, Python as code points; here it is
// UTF-8. An unpaired surrogate, which those strings can hold and UTF-8 cannot, is
// decoded from its three bytes ED A0..BF xx (WTF-8); any other byte that is not UTF-8
// counts as U+FFFD, as those programs decode it.

// nextRune splits the first code point off key, which must not be empty.
func nextRune(key []byte) (r rune, rest []byte) {
	if key[0] < utf8.RuneSelf {
		return rune(key[0]), key[1:]
	}
	r, size := utf8.DecodeRune(key)
	if r == utf8.RuneError && size == 1 && isSurrogate(key) {
		return rune(0xd000) | rune(key[1]&0x3f)<<6 | rune(key[2]&0x3f), key[3:]
	}
	return r, key[size:]
}

// isSurrogate reports whether key begins with an encoded surrogate.
func isSurrogate(key []byte) bool {
	return len(key) >= 3 && key[0] == 0xed && key[1]&0xe0 == 0xa0 && key[2]&0xc0 == 0x80
}

// appendUnits appends the UTF-16 units of key.
func appendUnits(units []uint16, key []byte) []uint16 {
	for len(key) > 0 {
		var r rune
		r, key = nextRune(key)
		if r >= 0x10000 {
			r -= 0x10000
			units = append(units, uint16(0xd800+r>>10), uint16(0xdc00+r&0x3ff))
		} else {
			units = append(units, uint16(r))
		}
	}
	return units
}

// unitsOnStack is how many units a scheme can hold without an allocation.
const unitsOnStack = 128
