package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/long"
)

var powerCuts = flag.Int("powercuts", 400, "how many times TestPowerCuts cuts the power")

// modelValue is what a value must have.
type modelValue struct {
	kind    Kind
	keys    map[string]bool
	items   uint64
	text    string
	expires int64

	// Of a filter with removals: its keys, once for each time, and the checksum of its dump.
	added []string
	print uint32
}

// removes reports whether it is a filter with removals.
func (v *modelValue) removes() bool { return v.kind == Counting || v.kind == Cuckoo }

// modelState is all names at one time. It is copied, never changed.
type modelState map[string]*modelValue

func (s modelState) with(change func(next modelState)) modelState {
	next := maps.Clone(s)
	change(next)
	return next
}

// harness is a store under test, with its disk and the states that it may be in. The
// states begin with the last certain one; the disk may have any of them.
type harness struct {
	rng    *rand.Rand
	disk   *crashDisk
	store  *Local
	level  Level
	flaw   flaw
	clock  time.Time
	states []modelState // the first is certain after a power failure
	killed []modelState // the first is certain after the process ended
	later  int          // the number of states that came while a snapshot was taken
	acked  int          // adds that were acknowledged
	gone   int          // keys that were removed and acknowledged
	going  int          // and not acknowledged yet
	dead   bool         // the store has stopped, or the power has failed
	why    error        // what stopped it

	merging []string // the names of a merge in progress: into, from

	unchanged bool     // the last add changed nothing
	last      *segment // the last segment that recovery read
}

var errLost = errors.New("lost")

func newHarness(seed uint64, level Level, flaw flaw) *harness {
	rng := rand.New(rand.NewPCG(seed, 17))
	p := &harness{rng: rng, disk: newCrashDisk(rng), level: level, flaw: flaw, clock: time.Unix(1_700_000_000, 0)}
	p.states, p.killed = []modelState{{}}, []modelState{{}}
	return p
}

func (p *harness) open() error {
	s, err := OpenLocal(LocalConfig{
		Level: p.level, CheckpointBytes: 3000, Checkpoint: 1e-9,
		seams: seams{disk: p.flaw.over(p.disk), now: func() time.Time { return p.clock }, idle: true, between: p.between, recovered: p.recovered},
	})
	p.store = s
	p.dead = err != nil
	if err == nil {
		p.flaw.opened(p)
	}
	return err
}

func (p *harness) now() modelState { return p.states[len(p.states)-1] }

// did notes a change, which may not be durable yet.
func (p *harness) did(change func(next modelState)) {
	next := p.now().with(change)
	p.states, p.killed = append(p.states, next), append(p.killed, next)
	p.later++
}

// meanwhile calls do, and adds keys while that takes a snapshot: its values may have them
// or not, and their records are not written yet.
func (p *harness) meanwhile(do func()) {
	begun := false
	p.disk.meanwhile = func() {
		if !begun {
			begun, p.later = true, 0
		}
		for range p.rng.IntN(4) {
			p.add(string(rune('a' + p.rng.IntN(5))))
			p.remove(string(rune('a' + p.rng.IntN(5))))
		}
		if p.rng.IntN(20) == 0 {
			p.rename()
		}
	}
	p.later = 0
	do()
	p.disk.meanwhile = nil
}

var modelSpecs = []Spec{
	{Kind: RedisBloom, Capacity: 16, Rate: 0.01, Growth: 2},
	{Kind: RedisBloom, Capacity: 60, Rate: 0.01},
	{Kind: Paired, Capacity: 60, Rate: 0.01},
	{Kind: Paired, Capacity: 10, Rate: 0.01, Growth: 2},
	{Kind: Window, Capacity: 400, Rate: 0.01, Span: time.Hour},
	{Kind: Window, Capacity: 40, Rate: 1e-4, Growth: 2, Span: time.Hour},
	{Kind: Counting, Capacity: 60, Rate: 0.01},
	{Kind: Counting, Capacity: 1, Rate: 1e-5, Growth: 2}, // the first layer has room for 3 keys
	{Kind: Cuckoo, Capacity: 16, Growth: 1},
	{Kind: Cuckoo, Capacity: 64, Growth: 2},
}

// loadHeader makes the filter of a dump's header.
func loadHeader(l *Local, name string, kind Kind, header []byte) (Filter, error) {
	if kind == Cuckoo {
		return l.LoadCuckoo(bg, name, header)
	}
	return l.Load(bg, name, header)
}

// printOf is the checksum of a filter's dump.
func printOf(f Filter) (sum uint32) {
	for at := int64(0); ; {
		next, chunk, err := f.Dump(at)
		if err != nil {
			return 0 // it is being loaded
		}
		sum = crc32.Update(sum, castagnoli, chunk)
		if at = next; next == 0 {
			return sum
		}
	}
}

var bg = context.Background()

// act does a random operation.
func (p *harness) act() {
	s, rng := p.store, p.rng
	name := func() string { return string(rune('a' + rng.IntN(5))) }
	a, b := name(), name()
	switch n := rng.IntN(100); {
	case n < 35:
		p.add(a)
	case n < 45:
		p.add(a)
		p.remove(a)
	case n < 60:
		p.commit()
	case n < 66:
		p.second()
	case n < 74:
		spec := modelSpecs[rng.IntN(len(modelSpecs))]
		if f, err := s.Create(bg, a, spec); err == nil {
			p.did(func(next modelState) { next[a] = newModel(f, spec) })
		}
	case n < 77:
		p.drop(a)
	case n < 84:
		p.rename()
	case n < 87:
		text := fmt.Sprint("text ", rng.Uint32())
		if s.Set(bg, a, []byte(text)) == nil {
			p.did(func(next modelState) { next[a] = &modelValue{kind: String, text: text} })
		}
	case n < 90:
		at := p.clock.Add(time.Duration(1+rng.IntN(8)) * time.Second)
		if rng.IntN(2) == 0 {
			at = p.clock.Add(time.Duration(1+rng.IntN(1e6)) * time.Hour)
		}
		if s.Expire(bg, a, at) == nil {
			p.did(func(next modelState) {
				v := *next[a]
				v.expires = at.UnixMilli()
				next[a] = &v
			})
		}
	case n < 94:
		p.copyTo(a, b)
	case n < 97:
		p.merge(a, b)
		p.fold(b)
	case n < 98:
		if s.Clear(bg) == nil {
			p.did(func(next modelState) { clear(next) })
		}
	default:
		p.clock = p.clock.Add(time.Second)
		p.meanwhile(func() {
			if s.Snapshot(bg) == nil {
				p.certainBut(p.later)
			}
		})
	}
}

func (p *harness) drop(name string) {
	if dropped, _ := p.store.Drop(bg, name); dropped > 0 {
		p.did(func(next modelState) { delete(next, name) })
	}
}

// rename renames a value, swaps two, or drops one.
func (p *harness) rename() {
	a, b := string(rune('a'+p.rng.IntN(5))), string(rune('a'+p.rng.IntN(5)))
	switch p.rng.IntN(3) {
	case 0:
		if p.store.Rename(bg, a, b) == nil {
			p.did(func(next modelState) {
				v := next[a]
				delete(next, a)
				next[b] = v
			})
		}
	case 1:
		if p.store.Swap(bg, a, b) == nil {
			p.did(func(next modelState) { next[a], next[b] = next[b], next[a] })
		}
	default:
		p.drop(a)
	}
}

// between is what other clients do during a merge or a fold: they add to its filters,
// commit, and sometimes drop one. While a store is opened, which replays merges and
// folds, there are no other clients.
func (p *harness) between() {
	if p.merging == nil {
		return
	}
	p.flaw.merging(p)
	for _, name := range p.merging {
		if p.rng.IntN(2) == 0 {
			p.add(name)
		}
		if p.rng.IntN(8) == 0 {
			p.drop(name)
		}
	}
	if p.rng.IntN(2) == 0 && !p.dead {
		p.commit()
	}
}

// add adds some keys out of sixty, so that many are old.
func (p *harness) add(name string) {
	f, err := p.store.Open([]byte(name))
	if err != nil {
		return
	}
	var keys [][]byte
	for range 1 + p.rng.IntN(12) {
		keys = append(keys, fmt.Appendf(nil, "key %d", p.rng.IntN(60)))
	}
	p.addKeys(name, f, keys)
}

// addKeys adds keys, as far as there is room.
func (p *harness) addKeys(name string, f Filter, keys [][]byte) {
	isNew := make([]bool, len(keys))
	before := twinOf(f)
	n, err := f.Add(bg, keys, isNew)
	if err != nil && !errors.Is(err, ErrFull) && !errors.Is(err, ErrChunk) {
		panic(err)
	}
	v := p.now()[name]
	if v.removes() && errors.Is(err, ErrChunk) {
		return // it is being loaded
	}
	if v.removes() {
		p.unchanged = n == 0
		added := slices.Clone(v.added)
		for _, key := range keys[:n] {
			added = append(added, string(key))
			if before != nil {
				before.Add(key)
				p.did(func(next modelState) { next[name] = v.with(slices.Clone(added), before.print()) })
			}
		}
		p.did(func(next modelState) { next[name] = v.with(added, printOf(f)) })
		return
	}
	p.unchanged = countTrue(isNew) == 0
	w := *v
	w.keys = maps.Clone(v.keys)
	for i, key := range keys[:n] {
		w.keys[string(key)] = true
		if isNew[i] {
			w.items++
		}
	}
	p.did(func(next modelState) { next[name] = &w })
}

func newModel(f Filter, spec Spec) *modelValue {
	v := &modelValue{kind: spec.Kind, keys: map[string]bool{}}
	if v.removes() {
		v.print = printOf(f)
	}
	return v
}

// remove removes some of the keys that were added, and one that was not.
func (p *harness) remove(name string) {
	v := p.now()[name]
	f, err := p.store.Open([]byte(name))
	if err != nil || !v.removes() {
		return
	}
	left := slices.Clone(v.added)
	keys := [][]byte{[]byte("never added")}
	for range min(p.rng.IntN(8), len(left)) {
		i := p.rng.IntN(len(left))
		keys = append(keys, []byte(left[i]))
		left = slices.Delete(left, i, i+1)
	}
	if found := make([]bool, 1); f.Contains(bg, keys[:1], found) == nil && found[0] {
		keys = keys[1:] // by mistake: it must not be removed
	}
	removed, before := make([]bool, len(keys)), twinOf(f)
	n, err := f.(Remover).Remove(bg, keys, removed)
	if errors.Is(err, ErrChunk) {
		return // it is being loaded
	}
	if want := len(v.added) - len(left); err != nil || n != len(keys) || countTrue(removed) != want {
		panic(fmt.Sprintf("of %d keys %d were removed, and %d of %d answers are true: %v", len(keys), n, countTrue(removed), want, err))
	}
	p.unchanged = len(left) == len(v.added)
	p.going += len(v.added) - len(left)
	if before != nil {
		some := slices.Clone(v.added)
		for _, key := range keys {
			if before.Remove(key) {
				i := slices.Index(some, string(key))
				some = slices.Delete(some, i, i+1)
				p.did(func(next modelState) { next[name] = v.with(slices.Clone(some), before.print()) })
			}
		}
	}
	p.did(func(next modelState) { next[name] = v.with(left, printOf(f)) })
}

// with is the value with other keys.
func (v *modelValue) with(added []string, print uint32) *modelValue {
	w := *v
	w.added, w.keys, w.items, w.print = added, map[string]bool{}, uint64(len(added)), print
	for _, key := range added {
		w.keys[key] = true
	}
	return &w
}

// commit makes the states certain that the level promises.
func (p *harness) commit() {
	if err := p.flaw.commit(p); err != nil {
		p.dead, p.why = true, err
		return
	}
	p.killed = []modelState{p.now()}
	if p.level == Always {
		p.certain()
	}
}

func (p *harness) certain() { p.certainBut(0) }

// certainBut makes all states certain except the last few, later in number.
func (p *harness) certainBut(later int) {
	last := slices.Clone(p.states[len(p.states)-1-later:])
	for _, v := range last[0] {
		p.acked += len(v.keys)
	}
	p.states, p.killed = last, slices.Clone(last)
	if later == 0 {
		p.gone, p.going = p.gone+p.going, 0
	}
}

// second is what happens each second.
func (p *harness) second() {
	p.clock = p.clock.Add(time.Second)
	p.store.sweep()
	p.store.last.retry = time.Time{} // the store waits by the real clock, not by p.clock
	p.meanwhile(p.store.eachSecond)
	if err := p.store.log.stopped(); err != nil {
		p.dead, p.why = true, err
		return
	}
	if p.flaw != flawAnswerEarly { // that flaw breaks only the promise of Always
		p.certainBut(p.later)
	}
}

// copyTo dumps a filter and loads it under another name.
func (p *harness) copyTo(from, to string) {
	f, err := p.store.Open([]byte(from))
	if err != nil {
		return
	}
	v := p.now()[from]
	iterator, header, err := f.Dump(0)
	if errors.Is(err, ErrChunk) {
		return // it is being loaded itself
	}
	if err != nil {
		panic(err)
	}
	g, err := loadHeader(p.store, to, v.kind, header)
	if err != nil {
		return
	}
	p.did(func(next modelState) {
		next[to] = &modelValue{kind: v.kind, items: v.items, keys: map[string]bool{}}
		if v.removes() {
			next[to].print = printOf(g)
		}
	})
	for {
		next, chunk, err := f.Dump(iterator)
		if err != nil {
			panic(err)
		}
		if next == 0 {
			break
		}
		if err := g.Load(bg, next, chunk); err != nil {
			panic(err)
		}
		iterator = next
		p.did(func(next modelState) {
			if w := *next[to]; v.removes() {
				w.print = printOf(g)
				next[to] = &w
			}
		})
	}
	// A copy counts the keys estimated from its bits, if that is more: they may include
	// keys of a failed merge.
	items := max(v.items, g.Info().Items)
	p.did(func(next modelState) {
		next[to] = &modelValue{kind: v.kind, items: items, keys: v.keys, added: v.added}
		if v.removes() {
			next[to].print = printOf(g)
		}
	})
}

// merge merges a filter into another. If that fails, the other may have some of the keys.
func (p *harness) merge(to, from string) {
	f, err := p.store.Open([]byte(to))
	g, err2 := p.store.Open([]byte(from))
	if err != nil || err2 != nil || to == from {
		return
	}
	merged := p.now()[from].keys // keys added meanwhile may be merged or not
	p.merging = []string{to, from}
	err = f.Merge(bg, g)
	p.merging = nil
	p.flaw.merged(p)
	if err != nil {
		if p.store.log != nil && p.store.log.stopped() != nil {
			p.dead = true // stopped by the snapshot that the failed merge needs
		}
		return
	}
	p.did(func(next modelState) {
		v := *next[to]
		v.keys = maps.Clone(v.keys)
		maps.Copy(v.keys, merged)
		v.items = f.Info().Items
		next[to] = &v
	})
}

// fold folds a filter by 1: that takes all steps of a fold, and changes no size.
func (p *harness) fold(name string) {
	f, err := p.store.Open([]byte(name))
	if err != nil {
		return
	}
	p.merging = []string{name}
	f.Fold(bg, 1)
	p.merging = nil
	p.did(func(modelState) {})
}

// check compares the reopened store with the possible states. The state that it finds is
// the certain one from then on.
func (p *harness) check(possible []modelState) error {
	var why error
	for i := len(possible) - 1; i >= 0; i-- {
		after := possible[min(i+1, len(possible)-1)]
		if why = p.compare(possible[i], after); why == nil {
			found := possible[i].with(func(next modelState) {
				for name, v := range next {
					if f, err := p.store.Open([]byte(name)); err == nil {
						w := *v
						w.items = f.Info().Items
						next[name] = &w
					}
				}
			})
			p.states, p.killed = []modelState{found}, []modelState{found}
			return nil
		}
	}
	return fmt.Errorf("%w: none of %d states fits; of the one that is certain: %w", errLost, len(possible), why)
}

// compare compares the store with a state. An add of many keys is several records if the
// filter grew, so counts may be up to those of the state after.
func (p *harness) compare(want, after modelState) error {
	want = want.with(func(next modelState) {
		maps.DeleteFunc(next, func(_ string, v *modelValue) bool {
			return v.expires != 0 && v.expires <= p.clock.UnixMilli()
		})
	})
	names, _, _ := p.store.List(0, 1000)
	if got, want := slices.Sorted(slices.Values(names)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) || p.store.len() < len(want) {
		return fmt.Errorf("there are %q, want %q", got, want)
	}
	for name, v := range want {
		kind, expires, _ := p.store.Kind([]byte(name))
		if kind != v.kind || toMillis(expires) != v.expires {
			return fmt.Errorf("%q is of kind %d and ends at %v, want %d and %v", name, kind, expires, v.kind, fromMillis(v.expires))
		}
		if kind == String {
			if text, _ := p.store.Get([]byte(name)); string(text) != v.text {
				return fmt.Errorf("%q is %q, want %q", name, text, v.text)
			}
			continue
		}
		f, err := p.store.Open([]byte(name))
		if err != nil {
			return err
		}
		var keys [][]byte
		for key := range v.keys {
			keys = append(keys, []byte(key))
		}
		found := make([]bool, len(keys))
		f.Contains(bg, keys, found)
		if n := countTrue(found); n < len(keys) {
			return fmt.Errorf("%q has lost %d of %d keys", name, len(keys)-n, len(keys))
		}
		most := v.items
		if w := after[name]; w != nil && w.kind == v.kind {
			most = max(most, w.items)
		}
		if items := f.Info().Items; items < v.items || items > most {
			return fmt.Errorf("%q counts %d items, want %d", name, items, v.items)
		}
		if v.removes() && printOf(f) != v.print {
			return fmt.Errorf("%q has other slots or counters than it had", name)
		}
	}
	return nil
}

// powerRun uses a store through some restarts, the last one after a power failure. The
// error wraps errLost if something certain is missing, or ErrDamaged if the store refuses
// to open.
func powerRun(p *harness, faults bool) error {
	for p.open() != nil {
		if p.disk.failed == "" || p.disk.fail == 0 && p.disk.failSite != "" {
			return fmt.Errorf("opening a new store: %w", p.open())
		}
		p.disk = p.disk.restart(p.rng.IntN(2) == 0)
	}
	lives := 1 + p.rng.IntN(3)
	for life := range lives {
		if err := p.live(faults && life == 0, life == lives-1); err != nil {
			return err
		}
	}
	return nil
}

// live acts until the power fails, or the process ends or fails, and reopens the store.
func (p *harness) live(fault, last bool) error {
	ahead := 1 + p.rng.IntN(60)
	power := last || p.rng.IntN(2) == 0
	switch {
	case fault:
		p.disk.fail = p.disk.calls + ahead
		power = p.rng.IntN(3) == 0
	case power:
		p.disk.cut = p.disk.calls + ahead
	}
	for n := 0; n < 120 && !p.dead && !p.disk.dead; n++ {
		p.act()
	}
	if p.rng.IntN(4) == 0 && !p.disk.dead {
		if p.store.Close() == nil {
			p.certain()
		}
	}
	possible, certain := p.killed, p.states
	for again := 0; ; again++ {
		if power || p.disk.dead {
			possible = certain
		}
		p.disk = p.disk.restart(power || p.disk.dead)
		if again < 2 && p.rng.IntN(3) == 0 { // the power fails again while the store is opened
			p.disk.cut = 1 + p.rng.IntN(25)
		}
		before := p.disk.failed
		err := p.open()
		if err == nil {
			p.disk.cut = 0
			err = p.check(possible)
		}
		if !p.disk.dead && before == p.disk.failed {
			return err
		}
		power = power && p.disk.dead
		if !p.disk.dead && err == nil {
			return nil // the fault did no harm
		}
	}
}

// TestPowerCuts cuts the power again and again. Each time, everything that was
// acknowledged must be there: at Always all of it, at EverySecond what was acknowledged
// before the last second.
func TestPowerCuts(t *testing.T) {
	sites := map[string]*site{}
	acked, gone := map[Level]int{}, 0
	for i := range *powerCuts {
		p := newHarness(uint64(i), []Level{Always, EverySecond}[i%2], flawNone)
		p.disk.sites = sites
		if err := powerRun(p, false); err != nil {
			t.Fatalf("seed %d, level %v: %v", i, p.level, err)
		}
		acked[p.level] += p.acked
		gone += p.gone
	}
	t.Logf("%d power cuts: of %d adds acknowledged at %v and %d at %v, and of %d removals, 0 lost", *powerCuts, acked[Always], Always, acked[EverySecond], EverySecond, gone)
	if gone < *powerCuts {
		t.Errorf("only %d keys were removed", gone)
	}
}

// TestFaults makes each call of the disk fail, at every place in the store that makes one:
// by an error, for lack of space, by a short write. What was acknowledged before must be
// there for the next process, even if the power fails then.
func TestFaults(t *testing.T) {
	sites := map[string]*site{}
	acked, runs := 0, 0
	run := func(failSite string) {
		p := newHarness(uint64(1_000_000+runs), []Level{Always, EverySecond}[runs%2], flawNone)
		runs++
		p.disk.sites = sites
		p.disk.failSite, p.disk.failSkip = failSite, p.rng.IntN(4)*p.rng.IntN(2)
		if failSite != "" && runs%2 == 0 { // some are called only after another fault
			p.disk.fail = 1 + p.rng.IntN(30)
		}
		if err := powerRun(p, runs%3 != 0); err != nil {
			t.Fatalf("seed %d, level %v, after a fault at %s: %v", 1_000_000+runs-1, p.level, p.disk.failed, err)
		}
		acked += p.acked
	}
	for range max(*powerCuts/2, 300) {
		run("") // finds the sites, and lets any call fail
	}
	bare := func() (names []string) {
		for name, s := range sites {
			if s.faults < 3 {
				names = append(names, name)
			}
		}
		sort.Strings(names)
		return names
	}
	for tries := 0; len(bare()) > 0 && tries < 200; tries++ {
		for _, name := range bare() {
			run(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		t.Logf("%6d calls, %4d faults  %s", sites[name].calls, sites[name].faults, name)
	}
	t.Logf("%d runs: all %d call sites had faults; of %d adds acknowledged 0 lost", runs, len(sites), acked)
	if missed := bare(); len(missed) > 0 {
		t.Errorf("call sites that hardly failed: %q", missed)
	}
}

// TestSnapshotFaults makes snapshots fail at random, at any of their calls, and cuts the
// power as well: no snapshot stops the store, and nothing is lost.
func TestSnapshotFaults(t *testing.T) {
	acked, faults := 0, 0
	for i := range max(*powerCuts/4, 100) {
		p := newHarness(uint64(3_000_000+i), []Level{Always, EverySecond}[i%2], flawNone)
		p.disk.full = []float64{0.2, 0.5, 0.9}[i%3]
		if err := powerRun(p, false); err != nil {
			t.Fatalf("seed %d, level %v, after %s: %v", 3_000_000+i, p.level, p.disk.failed, err)
		}
		if p.why != nil && !errors.Is(p.why, errPower) {
			t.Fatalf("seed %d: a snapshot has stopped the store: %v", 3_000_000+i, p.why)
		}
		acked += p.acked
		faults += p.disk.fullFaults
	}
	t.Logf("%d snapshots failed: of %d adds acknowledged 0 lost", faults, acked)
	if faults < 100 {
		t.Errorf("only %d snapshots failed", faults)
	}
}

// TestFlaws breaks the rules of the log one by one: each must be noticed.
func TestFlaws(t *testing.T) {
	long.Test(t)
	names := map[flaw]string{
		flawSnapshotUnsynced: "snapshot renamed without sync",
		flawLogRemovedEarly:  "log removed before the snapshot is in place",
		flawNoDirSync:        "directory not synced",
		flawAnswerEarly:      "answered before the sync",
		flawSyncAgain:        "sync tried again after it failed",
		flawSameSegment:      "gone on in the same segment after a failed sync",
		flawUnchangedEarly:   "answered at once when nothing changed",
		flawDamageIsEnd:      "damage taken for the end of the log",
		flawLogKept:          "what was read of the log not written again at the start",
		flawSnapshotAhead:    "snapshot renamed before the log that it has seen is synced",
		flawNumbersAgain:     "numbers given again that such a snapshot has seen",
		flawMergeLogsNew:     "adds that were not new not logged while a merge went on",
		flawMergeLeaks:       "adds that were not new not logged after a merge that failed",
		flawDroppedLeftOut:   "a value left out of a snapshot because it was dropped meanwhile",
		flawRemovedFirst:     "a removal logged before the add that it follows",
	}
	caught := 0
	for flaw := flawNone + 1; flaw < flawCount; flaw++ {
		runs, err := 0, error(nil)
		for ; runs < 5000 && err == nil; runs++ {
			switch flaw {
			case flawDamageIsEnd:
				err = damageRun(uint64(runs), flaw)
				continue
			case flawSnapshotAhead:
				err = orderRun(uint64(runs), flaw)
				continue
			case flawDroppedLeftOut:
				err = droppedRun(modelSpecs[runs%len(modelSpecs)], flaw)
				continue
			case flawMergeLogsNew, flawMergeLeaks:
				err = mergeRun(uint64(runs), flaw)
				continue
			}
			p := newHarness(uint64(2_300_000+runs), Always, flaw)
			err = powerRun(p, flaw == flawSyncAgain || flaw == flawSameSegment || flaw == flawLogKept)
		}
		if err == nil {
			t.Errorf("%s: not noticed in %d runs", names[flaw], runs)
			continue
		}
		caught++
		t.Logf("%-50s noticed in run %d: %v", names[flaw], runs, err)
	}
	t.Logf("%d of %d caught", caught, flawCount-1)
}

// damageRun flips a bit of the log, before its last mark, and opens the store. It returns
// an error if the damage is not noticed and something is missing.
func damageRun(seed uint64, flaw flaw) error {
	p := newHarness(seed, Always, flaw)
	if err := p.open(); err != nil {
		return err
	}
	for range 60 {
		p.act()
	}
	p.commit()
	p.second()
	p.second()
	files, _ := p.disk.List()
	log := p.disk.cached[segmentName(starts(files, segmentPrefix)[0])]
	const lastMark = frameBytes + recordBytes + 8
	if len(log.cache) <= headBytes+lastMark {
		return nil
	}
	at := headBytes + p.rng.IntN(len(log.cache)-headBytes-lastMark)
	log.cache[at] ^= 1 << p.rng.IntN(8)
	possible := p.states
	p.disk = p.disk.restart(false)
	err := p.open()
	switch {
	case errors.Is(err, ErrDamaged):
		return nil
	case err != nil:
		return err
	}
	return p.check(possible)
}

// orderRun adds each key to one filter and then to another, in either order, while a
// snapshot copies them, until the process ends. It returns an error if a key is in the
// filter that got it second, but not in the one that got it first.
func orderRun(seed uint64, flaw flaw) error {
	p := newHarness(seed, Always, flaw)
	if err := p.open(); err != nil {
		return err
	}
	names := []string{"a", "b"}
	filters := func() (both [2]Filter) {
		for i, name := range names {
			both[i], _ = p.store.Open([]byte(name))
		}
		return both
	}
	for _, name := range names { // large enough for several writes each
		if _, err := p.store.Create(bg, name, Spec{Kind: Paired, Capacity: 2_000_000, Rate: 0.01}); err != nil {
			return err
		}
	}
	both, rounds := filters(), 0
	key := func(round, from int) [][]byte { return [][]byte{fmt.Append(nil, "key ", round, " ", from)} }
	p.disk.meanwhile = func() {
		for from := range both {
			both[from].Add(bg, key(rounds, from), make([]bool, 1))
			both[1-from].Add(bg, key(rounds, from), make([]bool, 1))
		}
		rounds++
	}
	if err := p.store.Snapshot(bg); err != nil {
		return err
	}
	p.disk = p.disk.restart(false)
	if err := p.open(); err != nil {
		return err
	}
	both = filters()
	for round := range rounds {
		for from := range both {
			var found [2][1]bool
			for i, f := range both {
				f.Contains(bg, key(round, from), found[i][:])
			}
			if found[1-from][0] && !found[from][0] {
				return fmt.Errorf("%w: the later of two adds is there, and the earlier not", errLost)
			}
		}
	}
	return nil
}

// mergeRun merges filters while the same keys are added to them, and continues to add keys
// until the power fails. It returns an error if an acknowledged key is missing.
func mergeRun(seed uint64, flaw flaw) error {
	p := newHarness(seed, Always, flaw)
	if err := p.open(); err != nil {
		return err
	}
	spec := modelSpecs[p.rng.IntN(3)]
	for _, name := range []string{"a", "b"} {
		f, err := p.store.Create(bg, name, spec)
		if err != nil {
			return err
		}
		p.did(func(next modelState) { next[name] = newModel(f, spec) })
	}
	for range 4 {
		p.add("b")
	}
	p.commit()
	p.disk.cut = p.disk.calls + 1 + p.rng.IntN(10)
	p.merge("a", "b")
	for range 20 {
		p.add("a")
		p.commit()
	}
	possible := p.states
	p.disk = p.disk.restart(true)
	if err := p.open(); err != nil {
		return err
	}
	return p.check(possible)
}

// TestMergeCuts cuts the power while filters are merged, and after a failed merge.
func TestMergeCuts(t *testing.T) {
	for seed := range uint64(500) {
		if err := mergeRun(seed, flawNone); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestSnapshotOrder: after recovery no add is there without the adds before it.
func TestSnapshotOrder(t *testing.T) {
	for seed := range 5 {
		if err := orderRun(uint64(seed), flawNone); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestDamagedLog: a flipped bit anywhere in the log before the last mark is noticed.
func TestDamagedLog(t *testing.T) {
	for i := range 200 {
		if err := damageRun(uint64(i), flawNone); err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
	}
}
