package web_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bloomery/bloom"
)

// BenchmarkNode measures lookups in Node.js: a million URLs of 40 to 50 bytes in a filter of
// ten million, at 1%.
func BenchmarkNode(b *testing.B) {
	const keys = 10_000_000
	filter, err := bloom.New(keys, 0.01)
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint32(keys) {
		filter.AddString(fmt.Sprintf("https://example.com/%08x/articles/%d.html", i*2654435761, i))
	}
	path := filepath.Join(b.TempDir(), "ten.bloom")
	if err := filter.Save(path); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		printed, err := exec.Command("node", filepath.Join("testdata", "speed.mjs"), path).Output()
		if err != nil {
			b.Fatal(err)
		}
		var rates map[string]float64
		if err := json.Unmarshal(printed, &rates); err != nil {
			b.Fatal(err)
		}
		for what, rate := range rates {
			b.ReportMetric(rate, what+"/s")
		}
	}
}
