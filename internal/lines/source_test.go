package lines

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestHeads: formats are recognised by their first bytes, in one piece or byte by byte,
// and no more bytes are read than necessary.
func TestHeads(t *testing.T) {
	for _, test := range []struct {
		input      string
		gzip, zstd bool
		read       int // if the input comes byte by byte
	}{
		{"", false, false, 0},
		{"\n", false, false, 1},
		{"abcdef", false, false, 1},
		{"(", false, false, 1},
		{"(\n", false, false, 2},
		{"\x1f\x8b\x08\x00rest", true, false, 3},
		{"\x1f\x8b\x07\x00rest", false, false, 3},
		{"\x1f\x8b", false, false, 2},
		{"\x28\xb5\x2f\xfdrest", false, true, 4},
		{"\x28\xb5\x2f", false, false, 3},
		{"\x50\x2a\x4d\x18rest", false, true, 4},
		{"\x5e\x2a\x4d\x18rest", false, true, 4},
		{"P*M", false, false, 3},
		{"\xfd7zXZ\x00rest", false, false, 6},
		{"BZh91AY&SYrest", false, false, 10},
		{"BZh9\nrest", false, false, 5},
		{"Pa", false, false, 2},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(test.input),
			"bytes": iotest.OneByteReader(strings.NewReader(test.input)),
		} {
			head, err := readHead(r)
			if err != nil || isGzip(head) != test.gzip || isZstd(head) != test.zstd {
				t.Errorf("%q, %s: gzip %v, zstd %v, %v", test.input, name, isGzip(head), isZstd(head), err)
			}
			if name == "bytes" && len(head) != test.read {
				t.Errorf("%q: %d bytes read, want %d", test.input, len(head), test.read)
			}
		}
	}
}

func TestCountLines(t *testing.T) {
	for input, want := range map[string]uint64{"": 0, "\n": 1, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2} {
		for _, r := range []io.Reader{strings.NewReader(input), iotest.OneByteReader(strings.NewReader(input))} {
			if got, ok, err := countIn(r, '\n'); got != want || !ok || err != nil {
				t.Errorf("%q: %d, %v, %v, want %d", input, got, ok, err, want)
			}
		}
	}
}
