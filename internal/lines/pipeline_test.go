package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
)

// TestOwners: every hash has one owner, every block belongs to one owner, and the shares
// are even.
func TestOwners(t *testing.T) {
	for _, blocks := range []uint64{1, 2, 3, 5, 16, 1000, 1<<20 + 1, 1<<33 - 1} {
		for owners := 1; owners <= maxOwners; owners++ {
			f := &ownedSeen{n: blocks}
			p := &Pipeline{to: f, owners: owners}
			p.own()
			at := uint64(0)
			last := uint64(0)
			for _, first := range p.first {
				if first > 0 && blockOf(blocks, first) == blockOf(blocks, first-1) {
					t.Fatalf("%d blocks, %d owners: hash %#x begins inside a block", blocks, owners, first)
				}
				if blockOf(blocks, first)-at > blocks/uint64(owners)+1 {
					t.Fatalf("%d blocks, %d owners: one has %d", blocks, owners, blockOf(blocks, first)-at)
				}
				at = blockOf(blocks, first)
				if o := p.owner(first); o < last || first > 0 && p.owner(first-1) > o {
					t.Fatalf("%d blocks, %d owners: the owners are out of order", blocks, owners)
				}
				last = p.owner(first)
			}
			if p.owner(0) >= uint64(owners) || p.owner(1<<64-1) != uint64(owners-1) {
				t.Fatalf("%d blocks, %d owners: hash 0 is %d's, the last %d's", blocks, owners, p.owner(0), p.owner(1<<64-1))
			}
		}
	}
}

type ownedSeen struct {
	Seen
	n uint64
}

func (s *ownedSeen) Blocks() uint64 { return s.n }

// TestPipelineErrors: an error of the consumer ends the work at once, an error of the
// input only after the lines before it are processed.
func TestPipelineErrors(t *testing.T) {
	f, err := bloom.New(1_000_000, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	s := filterSeen{f}
	path := filepath.Join(t.TempDir(), "lines")
	var text bytes.Buffer
	for i := range 1_000_000 {
		fmt.Fprintln(&text, i)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	found, err := Find([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough lines")
	jobs := 0
	err = NewAdding(s, '\n').Each(found, func(int) {}, func(*Job) error {
		jobs++
		if jobs == 3 {
			return enough
		}
		return nil
	})
	if err != enough || jobs != 3 {
		t.Errorf("after %d jobs: %v, want 3 and the error of the third", jobs, err)
	}
	broken := io.MultiReader(strings.NewReader("a\nb\nc"), brokenReader{})
	found, err = Find(nil, broken)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	err = NewAdding(s, '\n').Each(found, func(int) {}, func(j *Job) error {
		lines += len(j.Ends)
		return nil
	})
	if !errors.Is(err, errBroken) || lines != 2 {
		t.Errorf("%d lines and %v, want the 2 whole ones and then the error", lines, err)
	}
}

// filterSeen is a filter that is never full.
type filterSeen struct{ *bloom.Filter }

func (s filterSeen) AddHashes(hashes []uint64, isNew []bool) int {
	return bloom.Inside.AddDisjoint(s.Filter, hashes, isNew)
}
func (s filterSeen) Blocks() uint64       { return s.Plan().Blocks }
func (s filterSeen) Room() (int64, error) { return math.MaxInt64, nil }
func (s filterSeen) Grows() bool          { return false }
func (s filterSeen) Sync() error          { return nil }

var errBroken = errors.New("the disk is gone")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func blockOf(blocks, h uint64) uint64 {
	block, _ := bits.Mul64(h, blocks)
	return block
}
