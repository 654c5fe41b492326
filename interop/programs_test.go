package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/interop"
)

// The files in testdata/vectors come from the programs themselves, each as its
// made_by says. That the schemes set the programs' bits is tested beside them;
// here it is the files that are read, and written again byte for byte.

// program is what a program's filter was given, and what it answers.
type program struct {
	Name       string
	Inserted   []string
	Bulk       *keyRange
	BulkAbsent *struct {
		keyRange
		FalsePositives []int `json:"false_positives"`
	} `json:"bulk_absent"`
	Contains map[string]bool
}

// fill adds the keys to an empty filter.
func (p *program) fill(f interop.Filter, keys map[string][]byte) {
	for _, id := range p.Inserted {
		f.Add(keys[id])
	}
	if p.Bulk != nil {
		for i := p.Bulk.From; i < p.Bulk.To; i++ {
			f.Add(fmt.Appendf(nil, p.Bulk.Fmt, i))
		}
	}
}

// compare compares the answers.
func (p *program) compare(t *testing.T, f interop.Filter, keys map[string][]byte) {
	t.Helper()
	if len(p.Contains) == 0 {
		t.Errorf("%s: no answers to compare", p.Name)
	}
	for id, want := range p.Contains {
		if got := f.Contains(keys[id]); got != want {
			t.Errorf("%s: Contains(%s) = %v, want %v", p.Name, id, got, want)
		}
	}
	if p.Bulk != nil {
		for i := p.Bulk.From; i < p.Bulk.To; i++ {
			if !f.Contains(fmt.Appendf(nil, p.Bulk.Fmt, i)) {
				t.Fatalf("%s: key %d of the bulk is missing", p.Name, i)
			}
		}
	}
	if p.BulkAbsent != nil {
		found := p.BulkAbsent.foundAmong(func(i int) bool { return f.Contains(fmt.Appendf(nil, p.BulkAbsent.Fmt, i)) })
		if !slices.Equal(found, p.BulkAbsent.FalsePositives) {
			t.Errorf("%s: false positives %v, want %v", p.Name, found, p.BulkAbsent.FalsePositives)
		}
	}
}

func mustRead(t testing.TB, name string, o interop.Options, data []byte) *interop.File {
	t.Helper()
	file, err := format(t, name).Read(bytes.NewReader(data), o)
	if err != nil {
		t.Fatalf("reading %.80q: %v", data, err)
	}
	return file
}

func written(t testing.TB, f *interop.File, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b, format(t, name)); err != nil {
		t.Fatalf("writing: %v", err)
	}
	return b.Bytes()
}

// refusal is a file that must be an error.
type refusal struct {
	name string
	data string
	want error
}

func refuse(t *testing.T, name string, o interop.Options, all []refusal) {
	t.Helper()
	for _, r := range all {
		if _, err := format(t, name).Read(bytes.NewReader([]byte(r.data)), o); !errors.Is(err, r.want) {
			t.Errorf("%s, %s: error %v, want %v", name, r.name, err, r.want)
		}
	}
}

// refuseCut refuses every beginning of a file.
func refuseCut(t *testing.T, name string, o interop.Options, data []byte) {
	t.Helper()
	for n := range data {
		if _, err := format(t, name).Read(bytes.NewReader(data[:n]), o); !errors.Is(err, bloom.ErrFormat) {
			t.Fatalf("%s: the first %d of %d bytes: error %v, want ErrFormat", name, n, len(data), err)
		}
	}
}

// fuzzed reads hostile bytes. What reads must be written, and read again as the
// same filter.
func fuzzed(t *testing.T, name string, o interop.Options, data []byte) {
	file, err := format(t, name).Read(bytes.NewReader(data), o)
	if err != nil {
		if !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrVersion) && !errors.Is(err, bloom.ErrLimit) {
			t.Fatalf("%s: error %v is of no known kind", name, err)
		}
		return
	}
	file.Contains([]byte("key"))
	text := written(t, file, name)
	second := mustRead(t, name, o, text)
	if !equal(file, second) {
		t.Fatalf("%s: %v was read, and after writing %v", name, file.Filter, second.Filter)
	}
	if got := written(t, second, name); !bytes.Equal(got, text) {
		t.Fatalf("%s: written twice it is %q and %q", name, text, got)
	}
}

func equal(a, b *interop.File) bool {
	switch f := a.Filter.(type) {
	case *classic.Filter:
		g, ok := b.Filter.(*classic.Filter)
		return ok && f.Equal(g)
	case *bloom.SplitBlock:
		g, ok := b.Filter.(*bloom.SplitBlock)
		return ok && f.Equal(g)
	case *bloom.Cuckoo:
		g, ok := b.Filter.(*bloom.Cuckoo)
		return ok && f.Equal(g)
	}
	return false
}

func newClassic(t testing.TB, c classic.Config) *classic.Filter {
	t.Helper()
	f, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	return f
}
