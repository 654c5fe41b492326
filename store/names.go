package store

import (
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
)

// names maps names to values, in shards. A name's shard depends on the name alone, and
// a shard is listed with its lock held. So listing shard after shard meets every name
// that stays, and the shard serves as the cursor.
//
// A shard is a hash table with open addressing: for a million small filters, a Go map
// of names would take more than everything else in addition to their bits.
//
// Lookups take the shard's lock for reading. Changes require Local.changing and take
// the lock for writing; two shards are locked in ascending order.
type names struct {
	seed   maphash.Seed
	shards []shard
	groups groups

	mostSlots atomic.Int64 // the most slots that any shard has had
}

type shard struct {
	sync.RWMutex
	slots []*value // a power of two of them, at most three quarters in use
	used  int
}

const (
	shardCount = 1 << 12
	firstSlots = 4
)

func newNames() *names {
	return &names{seed: maphash.MakeSeed(), shards: make([]shard, shardCount)}
}

// of returns the shard of a hash, and where to start probing in it.
func (n *names) of(hash uint64) (s *shard, start uint64) {
	return &n.shards[hash%shardCount], hash / shardCount
}

// find returns the value with the name, expired or not, or nil.
func (n *names) find(name []byte) *value {
	s, start := n.of(maphash.Bytes(n.seed, name))
	s.RLock()
	v := s.find(name, start)
	s.RUnlock()
	return v
}

// find is names.find with the lock held.
func (s *shard) find(name []byte, start uint64) *value {
	mask := uint64(len(s.slots) - 1)
	for at := start; s.used > 0; at++ {
		if v := s.slots[at&mask]; v == nil || v.name == string(name) {
			return v
		}
	}
	return nil
}

// slot returns the slot that the name is in, or the empty slot where it would go. A
// shard without slots has none.
func (s *shard) slot(name string, start uint64) (at uint64, found bool) {
	mask := uint64(len(s.slots) - 1)
	if len(s.slots) == 0 {
		return 0, false
	}
	for at = start & mask; s.slots[at] != nil; at = (at + 1) & mask {
		if s.slots[at].name == name {
			return at, true
		}
	}
	return at, false
}

// put stores v under its name, replacing any other value, and reports whether there was
// one.
func (n *names) put(v *value) (found bool) {
	s, start := n.of(maphash.String(n.seed, v.name))
	s.Lock()
	defer s.Unlock()
	return n.putLocked(s, start, v)
}

func (n *names) putLocked(s *shard, start uint64, v *value) (found bool) {
	at, found := s.slot(v.name, start)
	if !found {
		if 4*(s.used+1) > 3*len(s.slots) {
			n.grow(s)
			at, _ = s.slot(v.name, start)
		}
		s.used++
		n.groups.add(v.name, 1)
	}
	s.slots[at] = v
	return found
}

func (n *names) grow(s *shard) {
	old := s.slots
	s.slots = make([]*value, max(firstSlots, 2*len(old)))
	n.mostSlots.Store(max(n.mostSlots.Load(), int64(len(s.slots)))) // safe: one goroutine at a time changes names
	for _, v := range old {
		if v != nil {
			at, _ := s.slot(v.name, maphash.String(n.seed, v.name)/shardCount)
			s.slots[at] = v
		}
	}
}

// remove deletes v's name.
func (n *names) remove(v *value) {
	s, start := n.of(maphash.String(n.seed, v.name))
	s.Lock()
	n.removeLocked(s, start, v)
	s.Unlock()
}

// removeLocked closes the gap: entries after it, up to the next empty slot, move into
// it if their probes pass it.
func (n *names) removeLocked(s *shard, start uint64, v *value) {
	at, found := s.slot(v.name, start)
	if !found || s.slots[at] != v {
		return
	}
	mask := uint64(len(s.slots) - 1)
	s.slots[at] = nil
	s.used--
	n.groups.add(v.name, -1)
	for next := (at + 1) & mask; s.slots[next] != nil; next = (next + 1) & mask {
		home := maphash.String(n.seed, s.slots[next].name) / shardCount & mask
		if (next-home)&mask >= (next-at)&mask {
			s.slots[at], s.slots[next] = s.slots[next], nil
			at = next
		}
	}
}

// takeAll removes all names. It returns the slots of the shards, some of them nil, and the
// number of values in them.
func (n *names) takeAll() (all [][]*value, values int) {
	for i := range n.shards {
		s := &n.shards[i]
		s.Lock()
		if s.used > 0 {
			all, values = append(all, s.slots), values+s.used
		}
		s.slots, s.used = nil, 0
		s.Unlock()
	}
	for i := range n.groups.counts {
		n.groups.counts[i].Store(0)
	}
	return all, values
}

// both calls do with the shards of two names locked.
func (n *names) both(a, b string, do func(sa *shard, startA uint64, sb *shard, startB uint64)) {
	hashA, hashB := maphash.String(n.seed, a), maphash.String(n.seed, b)
	sa, startA := n.of(hashA)
	sb, startB := n.of(hashB)
	first, second := sa, sb
	if hashA%shardCount > hashB%shardCount {
		first, second = sb, sa
	}
	first.Lock()
	if first != second {
		second.Lock()
	}
	do(sa, startA, sb, startB)
	if first != second {
		second.Unlock()
	}
	first.Unlock()
}

// rename renames v, replacing any value with that name.
func (n *names) rename(v *value, to string) {
	n.both(v.name, to, func(from *shard, startFrom uint64, into *shard, startInto uint64) {
		n.removeLocked(from, startFrom, v)
		v.name = to
		n.putLocked(into, startInto, v)
	})
}

// swap exchanges the names of two different values.
func (n *names) swap(a, b *value) {
	n.both(a.name, b.name, func(sa *shard, startA uint64, sb *shard, startB uint64) {
		atA, _ := sa.slot(a.name, startA)
		atB, _ := sb.slot(b.name, startB)
		sa.slots[atA], sb.slots[atB] = b, a
		a.name, b.name = b.name, a.name
	})
}

// all calls do with every value, while its shard is locked for reading.
func (n *names) all(do func(v *value)) {
	for i := range n.shards {
		s := &n.shards[i]
		s.RLock()
		for _, v := range s.slots {
			if v != nil {
				do(v)
			}
		}
		s.RUnlock()
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
}
