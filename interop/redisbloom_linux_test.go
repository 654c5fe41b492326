package interop_test

import (
	"errors"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// TestGrantsOfNoMemory: where the machine has not what was granted, it is given
// back.
func TestGrantsOfNoMemory(t *testing.T) {
	used := uint64(0)
	config := redisbloom.Config{
		Keys:    1 << 10,
		Growth:  1 << 31,
		Grant:   func(bytes uint64) error { used += bytes; return nil },
		Release: func(bytes uint64) { used -= bytes },
	}
	const links = 100 // of 4 TiB each: more than any processor addresses
	if c, err := config.LoadHeader(manyLinks(terabytes(t), links)); !errors.Is(err, bloom.ErrBudget) || used != 0 {
		t.Errorf("400 TiB: %v, %v, and %d bytes stay taken", c, err, used)
	}
	c := mustChain(t, config)
	before := used
	err := c.Grow() // by 3 TiB, which a machine can seem to have
	if grew := uint64(c.Info().Filters - 1); used < before+grew*3<<40 || grew == 0 && used != before {
		t.Errorf("growing: %v, and %d bytes stay taken, of %d before", err, used, before)
	}
	if err := c.Close(); err != nil || used != 0 {
		t.Errorf("closing: %v, and %d bytes stay taken", err, used)
	}
}
