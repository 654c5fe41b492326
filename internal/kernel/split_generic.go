package kernel

// block returns the four words that h maps to, and the lanes' bits as words.
func (f *Split) block(h uint64) (words []uint64, bits [SplitBlockWords]uint64) {
	words = f.Words[h>>32*f.Blocks>>32*SplitBlockWords:][:SplitBlockWords]
	for lane, salt := range splitSalts {
		bits[lane/2] |= 1 << (uint32(h)*salt>>27 + 32*uint32(lane&1))
	}
	return words, bits
}

func (f *Split) containsGeneric(h uint64) bool {
	words, bits := f.block(h)
	miss := uint64(0)
	for i, b := range bits {
		miss |= b &^ words[i]
	}
	return miss == 0
}

func (f *Split) addGeneric(h uint64) bool {
	words, bits := f.block(h)
	miss := uint64(0)
	for i, b := range bits {
		miss |= b &^ words[i]
		words[i] |= b
	}
	if miss != 0 {
		f.Added++
	}
	return miss != 0
}
