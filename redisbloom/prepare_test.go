package redisbloom_test

import (
	"errors"
	"testing"

	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/redisbloom"
)

// TestNextLayerIsPrepared: a chain with a Grant makes a large next layer before it needs
// it, touches its memory, uses it when it grows, and releases it when it is closed.
func TestNextLayerIsPrepared(t *testing.T) {
	const keys, growth = 1600, 40_000 // the second layer has some 90 MB
	for _, grows := range []bool{false, true} {
		granted, refused := uint64(0), false
		config := redisbloom.Config{Keys: keys, Growth: growth,
			Grant: func(bytes uint64) error {
				if refused {
					return errors.New("no memory")
				}
				granted += bytes
				return nil
			},
			Release: func(bytes uint64) { granted -= bytes },
		}
		before := memory.Mapped()
		c, plain := mustChain(t, config), mustChain(t, redisbloom.Config{Keys: keys, Growth: growth})
		add := func(from, to int) error {
			for i := from; i < to; i++ {
				pairs, isNew := []redisbloom.Pair{{}}, []bool{false}
				redisbloom.HashMany([][]byte{numbered(i)}, pairs)
				if _, _, err := c.AddPairs(pairs, isNew); err != nil {
					return err
				}
				if isNew[0] != plain.Add(numbered(i)) {
					t.Fatalf("key %d: %v, and without a Grant the opposite", i, isNew[0])
				}
			}
			return nil
		}
		if err := add(0, keys/2); err != nil || granted > 1<<20 {
			t.Fatalf("half full: %d bytes granted, %v", granted, err)
		}
		refused = !grows
		if err := add(keys/2, keys-20); err != nil {
			t.Fatal(err)
		}
		if ahead := granted > 64<<20; ahead != grows || c.Info().Filters != 1 {
			t.Errorf("nearly full: %d bytes granted, %d layers, want a further layer ahead: %v", granted, c.Info().Filters, grows)
		}
		if memory.Mapped() > before && !grows {
			t.Errorf("%d bytes are mapped that were refused", memory.Mapped()-before)
		}
		err := add(keys-20, keys+100)
		if grows && (err != nil || c.Info().Filters != 2 || c.Info() != plain.Info()) {
			t.Errorf("grown to %+v, want %+v, %v", c.Info(), plain.Info(), err)
		}
		if !grows && !errors.Is(err, redisbloom.ErrInsert) {
			t.Errorf("growing without memory: %v, want %v", err, redisbloom.ErrInsert)
		}
		c.Close()
		plain.Close()
		if granted != 0 || memory.Mapped() != before {
			t.Errorf("closed: %d bytes are granted and %d mapped", granted, memory.Mapped()-before)
		}
	}
	// Closed, or given another Grant, while the memory is being touched.
	for name, end := range map[string]func(c *redisbloom.Filter){
		"Close":    func(c *redisbloom.Filter) { c.Close() },
		"SetGrant": func(c *redisbloom.Filter) { c.SetGrant(nil, nil) },
	} {
		granted := uint64(0)
		c := mustChain(t, redisbloom.Config{Keys: keys, Growth: growth,
			Grant:   func(bytes uint64) error { granted += bytes; return nil },
			Release: func(bytes uint64) { granted -= bytes },
		})
		before := memory.Mapped()
		pairs := make([]redisbloom.Pair, keys-20)
		names := make([][]byte, len(pairs))
		for i := range names {
			names[i] = numbered(i)
		}
		redisbloom.HashMany(names, pairs)
		if _, _, err := c.AddPairs(pairs, make([]bool, len(pairs))); err != nil {
			t.Fatal(err)
		}
		if memory.Mapped() == before {
			t.Errorf("%s: no layer was prepared", name)
		}
		end(c)
		if granted != 0 || memory.Mapped() != before {
			t.Errorf("%s: %d bytes are granted and %d mapped", name, granted, memory.Mapped()-before)
		}
		c.Close()
	}
}
