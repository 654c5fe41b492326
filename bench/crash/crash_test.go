package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNoticed kills a server under load, then changes its removable filters behind the
// checker's back. The check must fail after each of the changes, and not without them.
func TestNoticed(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "bloomery")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/bloomery")
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	p := options{binary: binary}.plant(t.TempDir(), "everysec", rand.New(rand.NewPCG(1, 2)))
	if err := p.begin(); err != nil {
		t.Fatal(err)
	}
	defer func() { p.process.kill() }()
	check := func() error {
		_, err := p.check(p.process.address, promise{level: "everysec"}, true)
		return err
	}
	for range 5 {
		p.load()
		time.Sleep(100 * time.Millisecond)
		p.process.kill()
		p.running.Wait()
		if err := p.restart(); err != nil {
			t.Fatal(err)
		}
		if err := check(); err != nil {
			t.Fatal(err)
		}
	}
	c, err := dial(p.process.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	do := func(words ...string) {
		if _, err := c.do(words...); err != nil {
			t.Fatal(err)
		}
	}
	var removed [][]int // a check forgets them if there was no load
	for i := range removables {
		removed = append(removed, slices.Clone(p.workers[i].holdings[i].gone))
	}
	for i, f := range removables {
		w := p.workers[i]
		h := w.holdings[i]
		add, del := "BF.ADD", "BF.DEL"
		if f.cuckoo {
			add, del = "CF.ADD", "CF.DEL"
		}
		// Of the key that is missed, no other key must have the bits.
		there, gone := "", ""
		for _, number := range h.keys {
			if there = key(w.id, number); h.times[number] == 1 {
				do(del, f.name, there)
				r, err := c.do(strings.Replace(del, "DEL", "EXISTS", 1), f.name, there)
				if do(add, f.name, there); err == nil && r.Integer == 0 {
					break
				}
			}
		}
		for _, number := range removed[i] {
			gone = key(w.id, number)
		}
		if there == "" || gone == "" {
			t.Fatalf("%s: the load has left %d keys, and removed %d", f.name, len(h.keys), len(removed[i]))
		}
		t.Logf("%s: %d keys of worker %d, %d in doubt", f.name, len(h.keys), w.id, len(p.doubts[i]))
		for _, change := range []struct {
			name     string
			do, undo [][]string
			doubtful int
		}{
			{"nothing", nil, nil, 0},
			{"a key is missing", [][]string{{del, f.name, there}}, [][]string{{add, f.name, there}}, 0},
			{"a removed key is there", [][]string{{add, f.name, gone}}, [][]string{{del, f.name, gone}}, 0},
			{"one for another", [][]string{{del, f.name, there}, {add, f.name, gone}}, [][]string{{del, f.name, gone}, {add, f.name, there}}, 0},
			{"a removed key is there, and the count would allow it", [][]string{{add, f.name, gone}}, [][]string{{del, f.name, gone}}, 1},
			{"nothing", nil, nil, 0},
		} {
			before := slices.Clone(p.doubtful)
			for _, words := range change.do {
				do(words...)
			}
			p.doubtful[i] += change.doubtful
			err := check()
			switch lost := err != nil && strings.Contains(err.Error(), "LOST"); {
			case lost != (change.name != "nothing"):
				t.Errorf("%s, %s: %v", f.name, change.name, err)
			case lost:
				t.Logf("%s, %s: %v", f.name, change.name, err)
			}
			copy(p.doubtful, before)
			for _, words := range change.undo {
				do(words...)
			}
		}
	}
}

// TestSettleSteps: which keys are in doubt after a crash.
func TestSettleSteps(t *testing.T) {
	for _, test := range []struct {
		from, to int
		certain  string
		doubts   string
	}{
		{0, 0, "map[1:1 2:2]", "map[]"},
		{0, 1, "map[2:2]", "map[1:{0 1}]"},
		{1, 1, "map[2:2]", "map[]"},
		{3, 3, "map[2:2 3:1]", "map[]"},
		{3, 5, "map[2:2]", "map[3:{0 1}]"},
		{2, 6, "map[2:2]", "map[1:{0 1} 3:{0 1}]"},
		{6, 7, "map[1:1 2:2]", "map[4:{0 1}]"},
		{7, 7, "map[1:1 2:2]", "map[4:{0 1}]"},
	} {
		w := &worker{}
		for range removables {
			w.holdings = append(w.holdings, newHolding())
		}
		w.holdings[0].certain = map[int]int{1: 1, 2: 2}
		for _, s := range []step{{1, removes, true}, {2, addsUnless, true}, {3, adds, false}, {3, removes, true}, {1, addsUnless, false}, {1, adds, false}, {4, mayAdd, false}} {
			w.ops = append(w.ops, op{removable: 1, steps: []step{s}})
		}
		doubts := w.settleSteps(test.from, test.to)
		if got := fmt.Sprint(w.holdings[0].certain); got != test.certain {
			t.Errorf("after %d to %d steps it is certain of %s, want %s", test.from, test.to, got, test.certain)
		}
		if got := fmt.Sprint(doubts[0]); got != test.doubts {
			t.Errorf("after %d to %d steps in doubt are %s, want %s", test.from, test.to, got, test.doubts)
		}
	}
}
