package store

import (
	"math/rand/v2"
	"sync/atomic"
)

// Groups is the number of groups of names that a store counts; see [Local.GroupNames].
const Groups = 16

// groups counts the names in each group. Local.changing guards it, except for the
// counts.
type groups struct {
	of     func(name string) (group int) // nil: nothing is counted
	counts [Groups]atomic.Int64
}

func (g *groups) add(name string, n int64) {
	if g.of != nil {
		g.counts[g.of(name)].Add(n)
	}
}

// GroupNames counts names by group from now on, as for databases that share one store.
// The function of returns a name's group, which is less than [Groups] and depends on
// the name alone.
func (l *Local) GroupNames(of func(name string) (group int)) {
	l.changing.Lock()
	defer l.changing.Unlock()
	g := &l.names.groups
	g.of = of
	for i := range g.counts {
		g.counts[i].Store(0)
	}
	l.names.all(func(v *value) { g.add(v.name, 1) })
}

// LenOf is Len for one group. GroupNames must have been called.
func (l *Local) LenOf(group int) int { return int(l.names.groups.counts[group].Load()) }

// Random returns a name, each with the same probability, and false if there are none.
func (l *Local) Random() (name string, ok bool) { return l.names.random() }

// randomTries is the number of slots that random tries before it counts the names. About
// one slot in six has a name, or more. Only where names are few, or most were deleted, do
// fewer slots have one, and then counting is cheaper.
const randomTries = 64

// random picks a slot of the largest table that any shard has had, in any shard, and
// retries if that slot is empty, expired or beyond the shard's table. So every name has
// the same probability, however full its shard is and whatever precedes it.
func (n *names) random() (name string, ok bool) {
	if most := n.mostSlots.Load(); most > 0 {
		for range randomTries {
			s, at := &n.shards[rand.IntN(shardCount)], rand.IntN(int(most))
			s.RLock()
			if at < len(s.slots) && s.slots[at] != nil && !s.slots[at].expired() {
				name, ok = s.slots[at].name, true
			}
			s.RUnlock()
			if ok {
				return name, true
			}
		}
	}
	total := 0
	n.all(func(v *value) {
		if v.expired() {
			return
		}
		if total++; rand.IntN(total) == 0 { // reservoir sampling: each name seen so far is equally likely
			name, ok = v.name, true
		}
	})
	return name, ok
}
