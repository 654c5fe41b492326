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

// Random returns some name, and is false if there is none. All have about the same
// chance.
func (l *Local) Random() (name string, ok bool) {
	for i, first := uint64(0), rand.Uint64(); i < shardCount; i++ {
		if name, ok = l.names.randomOf(&l.names.shards[(first+i)%shardCount]); ok {
			return name, true
		}
	}
	return "", false
}

// randomOf returns some name of a shard.
func (n *names) randomOf(s *shard) (name string, ok bool) {
	s.RLock()
	defer s.RUnlock()
	if s.used == 0 {
		return "", false
	}
	for i, first := 0, rand.IntN(len(s.slots)); i < len(s.slots); i++ {
		if v := s.slots[(first+i)%len(s.slots)]; v != nil && !v.expired() {
			return v.name, true
		}
	}
	return "", false
}
