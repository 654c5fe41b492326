package store

import (
	"math/rand/v2"
	"sync/atomic"
)

// Groups is how many groups of names a store counts; see [Local.GroupNames].
const Groups = 16

// groups counts names by what of makes of each. It is guarded by Local.changing, but
// for the counts.
type groups struct {
	of     func(name string) (group int) // nil: nothing is counted
	counts [Groups]atomic.Int64
}

func (g *groups) add(name string, n int64) {
	if g.of != nil {
		g.counts[g.of(name)].Add(n)
	}
}

// GroupNames counts names from now on by the group, below [Groups], that of says a
// name belongs to, as for databases that keep theirs apart in one store. A group
// depends on the name alone.
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

// LenOf is Len of a group, for a store that GroupNames was called of.
func (l *Local) LenOf(group int) int { return int(l.names.groups.counts[group].Load()) }

// Random returns a name, each with the same chance, and false if there is none.
func (l *Local) Random() (name string, ok bool) { return l.names.random() }

// randomTries is how many slots random looks at before it counts the names. A table
// that has not shrunk has a name in about one slot in six; where names are few, or
// most were deleted, counting takes less.
const randomTries = 64

// random picks a slot of the largest table that any shard has had, in any shard, and
// tries again where that slot is empty, expired or not there: so every name has the
// same chance, however full its shard is and whatever stands before it.
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
		if total++; rand.IntN(total) == 0 { // each of those seen has the same chance
			name, ok = v.name, true
		}
	})
	return name, ok
}
