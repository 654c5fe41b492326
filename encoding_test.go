package bloom_test

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/bloomery/bloom"
)

type coded interface {
	encoding.BinaryMarshaler
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
	bloom.Any
}

// TestEncoding: every kind goes through encoding/gob and is then what it was, from a
// zero value or over another filter.
func TestEncoding(t *testing.T) {
	filters := map[string]coded{}
	for _, kind := range storedKinds {
		f, ok := kind.make(t, nil).(coded)
		if !ok {
			t.Fatalf("a %s has no binary encoding", kind.name)
		}
		filters[kind.name] = f
	}
	shared, err := bloom.NewShared(3000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	filters["Shared"] = shared
	key := func(i int) []byte { return fmt.Append(nil, "key ", i) }
	for name, f := range filters {
		t.Run(name, func(t *testing.T) {
			for i := range 1000 {
				f.Add(key(i))
			}
			file, err := f.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if more, err := f.AppendBinary([]byte("before")); err != nil || !bytes.Equal(more, append([]byte("before"), file...)) {
				t.Errorf("AppendBinary has other bytes than MarshalBinary, or %v", err)
			}
			fresh := func() coded { return reflect.New(reflect.TypeOf(f).Elem()).Interface().(coded) }
			g := fresh()
			var stream bytes.Buffer
			if err := gob.NewEncoder(&stream).Encode(f); err != nil {
				t.Fatal(err)
			}
			if err := gob.NewDecoder(&stream).Decode(g); err != nil {
				t.Fatal(err)
			}
			for again := range 2 {
				if again == 1 { // over one with other keys
					g.Add([]byte("another"))
					if err := g.UnmarshalBinary(file); err != nil {
						t.Fatal(err)
					}
				}
				if g.Plan() != f.Plan() || g.Report() != f.Report() {
					t.Errorf("it reports %+v, was %+v", g.Report(), f.Report())
				}
				for i := range 3000 {
					if got, want := g.Contains(key(i)), f.Contains(key(i)); got != want {
						t.Fatalf("Contains(%q) = %v, was %v", key(i), got, want)
					}
				}
			}
			for what, bad := range map[string][]byte{"nothing": nil, "half": file[:len(file)/2], "more": append(bytes.Clone(file), 0)} {
				if err := g.UnmarshalBinary(bad); !errors.Is(err, bloom.ErrFormat) && !errors.Is(err, bloom.ErrLimit) {
					t.Errorf("%s of the file: %v, want ErrFormat or ErrLimit", what, err)
				}
				if err := fresh().UnmarshalBinary(bad); err == nil {
					t.Errorf("%s of the file makes a filter of a zero value", what)
				}
			}
			if !g.Add([]byte("one more")) || !g.Contains([]byte("one more")) || !g.Contains(key(1)) {
				t.Error("after an error the filter is not what it was")
			}
			g.Close()
			f.Close()
		})
	}
}
