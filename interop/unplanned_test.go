package interop_test

import (
	"bytes"
	"testing"

	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

// A file with neither n nor p is reported as such, without a plan.
func TestUnplanned(t *testing.T) {
	for _, c := range []struct {
		format string
		scheme classic.Scheme
		want   bool
	}{
		{"guava", classic.SchemeGuava64, true},
		{"bits-and-blooms", classic.SchemeBitsAndBlooms, true},
		{"bits-and-blooms-json", classic.SchemeBitsAndBlooms, true},
		{"dcso", classic.SchemeDCSO, false},
	} {
		t.Run(c.format, func(t *testing.T) {
			f, err := classic.Config{Keys: 1000, Rate: 0.01, Scheme: c.scheme}.New()
			if err != nil {
				t.Fatal(err)
			}
			format, _ := interop.FormatNamed(c.format)
			var b bytes.Buffer
			if err := (&interop.File{Filter: f}).Write(&b, format); err != nil {
				t.Fatal(err)
			}
			file, err := format.Read(&b, interop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if file.Unplanned != c.want {
				t.Errorf("Unplanned = %v, want %v", file.Unplanned, c.want)
			}
		})
	}
}
