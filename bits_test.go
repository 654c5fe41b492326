package bloom_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/bloomery/bloom"
)

func TestReadSplitBlockBitsRefuses(t *testing.T) {
	if _, err := bloom.ReadSplitBlockBits(bytes.NewReader(make([]byte, 1000)), 1<<30); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("32 GiB of 1000 bytes: %v, want ErrFormat", err)
	}
	if _, err := bloom.ReadSplitBlockBits(bytes.NewReader(nil), 0); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("no blocks: %v, want ErrConfig", err)
	}
}

func TestSplitBlockBits(t *testing.T) {
	f, err := bloom.NewSplitBlock(100_000, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		f.AddUint64(uint64(i))
	}
	var file bytes.Buffer
	if n, err := f.WriteBits(&file); err != nil || n != int64(f.Plan().Bytes()) || n != int64(file.Len()) {
		t.Fatalf("WriteBits = %d, %v", n, err)
	}
	g, err := bloom.ReadSplitBlockBits(&file, f.Plan().Blocks)
	if err != nil || !g.Equal(f) {
		t.Fatalf("what was read differs from what was written: %v", err)
	}
}

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}
