package bloom_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/bloomery/bloom"
)

// TestReplay adds keys to the layers where they were new, in another order, from
// several goroutines: every key that was found is found, false positives included.
func TestReplay(t *testing.T) {
	config := bloom.ScalableConfig{First: 1000, Rate: 0.2}
	f := mustScale(t, config)
	const keys = 30_000
	var layers [][]uint64 // new keys
	for i := range uint64(keys) {
		if f.AddHash(hashOf(i)) {
			for len(layers) < len(bloom.Inside.Sizes(f)) {
				layers = append(layers, nil)
			}
			layers[len(layers)-1] = append(layers[len(layers)-1], hashOf(i))
		}
	}
	g := mustScale(t, config)
	for i, hashes := range layers {
		slices.Reverse(hashes)
		if err := bloom.Inside.Replay(g, i, nil); err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for part := range slices.Chunk(hashes, len(hashes)/4+1) {
			wait.Go(func() {
				if err := bloom.Inside.Replay(g, i, part); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	for i := range uint64(keys) {
		if !g.ContainsHash(hashOf(i)) {
			t.Fatalf("key %d is absent", i)
		}
	}
	if got, want := len(bloom.Inside.Sizes(g)), len(layers); got != want {
		t.Errorf("%d layers, want %d", got, want)
	}
	_, room := bloom.Inside.NewestLayer(f)
	if _, got := bloom.Inside.NewestLayer(g); got < room || got > room+50 { // a key may be old in another order
		t.Errorf("room for %d keys, want %d", got, room)
	}
	tight := mustScale(t, bloom.ScalableConfig{First: 1000, Rate: 0.2, Budget: 1024})
	if err := bloom.Inside.Replay(tight, 5, nil); err == nil {
		t.Error("it has grown beyond its limit")
	}
}
