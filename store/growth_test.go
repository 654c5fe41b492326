package store

import "testing"

// TestGrowthIsReplayed: replay adds keys of a growing filter to the layers that they were
// in. Once it added them to the newest layer there was at the time. Then keys that had
// been false positives of a layer, and so are in no record, were lost.
func TestGrowthIsReplayed(t *testing.T) {
	const keys = 150_000
	for _, snapshot := range []bool{false, true} {
		lost := 0
		for seed := range 2 {
			p := newHarness(uint64(seed), Always, flawNone)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			f, err := p.store.Create(bg, "seen", Spec{Kind: Paired, Capacity: 20_000, Rate: 0.05, Growth: 2})
			if err != nil {
				t.Fatal(err)
			}
			for at := 0; at < keys; at += 1000 {
				f.Add(bg, goldenKeys(at, at+1000), make([]bool, 1000))
				if snapshot && at == 100_000 {
					more := 0
					p.disk.meanwhile = func() { // the snapshot has some of these, which the log has, too
						f.Add(bg, goldenKeys(at+1000+100*more, at+1000+100*more+100), make([]bool, 100))
						more = min(more+1, 9)
					}
					if err := p.store.Snapshot(bg); err != nil {
						t.Fatal(err)
					}
					p.disk.meanwhile = nil
				}
			}
			if err := p.store.Commit(bg); err != nil {
				t.Fatal(err)
			}
			before := f.Info()
			p.disk = p.disk.restart(false)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			if f, err = p.store.Open([]byte("seen")); err != nil {
				t.Fatal(err)
			}
			found := make([]bool, keys)
			f.Contains(bg, goldenKeys(0, keys), found)
			lost += keys - countTrue(found)
			if after := f.Info(); after.Items != before.Items || len(after.Layers) != len(before.Layers) {
				t.Errorf("%d items in %d layers, and then %d in %d", before.Items, len(before.Layers), after.Items, len(after.Layers))
			}
		}
		if lost > 0 {
			t.Errorf("with a snapshot: %v: %d of %d keys are lost", snapshot, lost, 2*keys)
		}
	}
}
