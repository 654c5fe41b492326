package main

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/machine"
)

func TestDefaultCeiling(t *testing.T) {
	for _, tt := range []struct {
		name        string
		total       uint64
		least, most float64 // shares of it
	}{
		{"a machine", 24 << 30, 0.65, 0.65},
		{"a group", 2 << 30, 0.65, 0.65},
		{"a small group", 400 << 20, 0.59, 0.62},
		{"a very small group", 200 << 20, 0.41, 0.43},
		{"a tiny group", 64 << 20, 0.125, 0.125},
	} {
		got := defaultCeiling(tt.total)
		if share := float64(got) / float64(tt.total); share < tt.least-1e-6 || share > tt.most+1e-6 {
			t.Errorf("%s: a share of %v, want %v to %v", tt.name, share, tt.least, tt.most)
		}
		if tt.total > 150<<20 && mayTake(got) > float64(tt.total)+1 {
			t.Errorf("%s of %d bytes: up to %.0f may be resident", tt.name, tt.total, mayTake(got))
		}
	}
}

// TestSetCeiling: serve says which ceiling it has, and warns of one that is too high.
func TestSetCeiling(t *testing.T) {
	total, _ := machine.Usable()
	if total == 0 {
		t.Skip("nothing here says how much memory there is")
	}
	for _, tt := range []struct {
		given human.SizeFlag
		want  uint64
		says  string
	}{
		{0, defaultCeiling(total), `level=INFO msg="memory ceiling" bytes=`},
		{64 << 20, 64 << 20, `level=INFO msg="memory ceiling" bytes=67108864`},
		{human.SizeFlag(total), total, `level=WARN msg="the memory ceiling is too high`},
	} {
		var said bytes.Buffer
		o := serveOptions{memory: tt.given}
		o.setCeiling(slog.New(slog.NewTextHandler(&said, nil)))
		if uint64(o.memory) != tt.want || !strings.Contains(said.String(), tt.says) {
			t.Errorf("--memory %d: %d bytes, want %d, and %q", tt.given, o.memory, tt.want, said.String())
		}
	}
}

// TestBoundHeap: what is mapped outside Go's heap is taken off its limit, and what
// is unmapped put back.
func TestBoundHeap(t *testing.T) {
	const ceiling = 256 << 20
	before := debug.SetMemoryLimit(-1)
	done := boundHeap(ceiling)
	empty := debug.SetMemoryLimit(-1)
	f, err := bloom.Config{Bits: 8 * 64 << 20, Rate: 0.01}.New()
	if err != nil {
		t.Fatal(err)
	}
	full := debug.SetMemoryLimit(-1)
	f.Close()
	again := debug.SetMemoryLimit(-1)
	done()
	if f.Plan().Bytes() < 63<<20 {
		t.Fatalf("a filter of %d bytes", f.Plan().Bytes())
	}
	if empty > ceiling*5/4+100e6 || empty-full < 63<<20 || again < full+63<<20 {
		t.Errorf("limit %d; with a filter of %d bytes %d, and %d without it again", empty, f.Plan().Bytes(), full, again)
	}
	if after := debug.SetMemoryLimit(-1); after != before {
		t.Errorf("limit %d before, %d after", before, after)
	}
	if limit := heapLimit(ceiling, 10*ceiling); limit != leastHeap {
		t.Errorf("limit %d, want %d, the least", limit, leastHeap)
	}
}

// TestReadersHaveACeiling: what a file of another program unpacks to may take the
// memory there is, and no more.
func TestReadersHaveACeiling(t *testing.T) {
	total, _ := machine.Usable()
	if total == 0 {
		t.Skip("nothing here says how much memory there is")
	}
	o, err := new(anyfile.Options).Interop()
	if err != nil {
		t.Fatal(err)
	}
	if o.Limit != int64(total) || o.Grant == nil || o.Release == nil {
		t.Fatalf("the limit is %d bytes of %d, with a Grant: %v", o.Limit, total, o.Grant != nil)
	}
	if err := o.Grant(total); err != nil {
		t.Error(err)
	}
	if err := o.Grant(1); !errors.Is(err, bloom.ErrBudget) || !strings.Contains(err.Error(), "the memory of this machine") {
		t.Errorf("a byte more than there is: %v", err)
	}
	o.Release(total)
	if err := o.Grant(1); err != nil {
		t.Errorf("after all was given back: %v", err)
	}
}
