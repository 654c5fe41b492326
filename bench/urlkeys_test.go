package main

import (
	"strings"
	"testing"
)

func TestWriteKeys(t *testing.T) {
	var out strings.Builder
	writeKeys(&out, options{sizes: []uint64{2000}, rate: 0.01, rounds: 1})
	rows := strings.Count(out.String(), "\n| 2e3 |")
	if want := len(keyLengths) * 7; rows != want {
		t.Errorf("%d rows, want %d:\n%s", rows, want, out.String())
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		hashes, many, keyed float64
		n                   uint64
		want                string
	}{
		{4, 7, 14, 1e5, "met"},
		{4, 7.3, 14, 1e5, "**missed: keys**"},
		{4, 7, 15, 1e5, "**missed: keyed**"},
		{4, 8, 17, 1e5, "**missed: keys, keyed**"},
		{4, 8, 17, 1e6, "-"},
	} {
		if got := verdict(tt.hashes, tt.many, tt.keyed, tt.n); got != tt.want {
			t.Errorf("verdict(%g, %g, %g, %g) = %q, want %q", tt.hashes, tt.many, tt.keyed, float64(tt.n), got, tt.want)
		}
	}
}
