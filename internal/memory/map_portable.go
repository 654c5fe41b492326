//go:build !linux

package memory

const hugePage = 4096 // the alignment that mappings have anyway

func wantHugePages([]byte) {}

func populate([]byte) bool { return false }
