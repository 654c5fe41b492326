package server

import (
	"errors"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
)

// runKind says which commands can be in one run: those that call the same method of the
// filter.
type runKind uint8

const (
	runNone   runKind = iota
	runAdd            // BF.ADD, BF.MADD
	runExists         // BF.EXISTS, BF.MEXISTS
	runRemove         // BF.DEL, BF.MDEL

	// Of cuckoo filters.
	runNestAdd    // CF.ADD, CF.INSERT
	runNestAddNew // CF.ADDNX, CF.INSERTNX
	runNestExists // CF.EXISTS, CF.MEXISTS
	runNestRemove // CF.DEL
)

// runKinds are the commands that can be in runs, by name. Those that take items at their
// end join a run by joinItems.
var runKinds = map[string]runKind{
	"bf.add": runAdd, "bf.madd": runAdd,
	"bf.exists": runExists, "bf.mexists": runExists,
	"bf.del": runRemove, "bf.mdel": runRemove,
	"cf.add": runNestAdd, "cf.addnx": runNestAddNew,
	"cf.exists": runNestExists, "cf.mexists": runNestExists,
	"cf.del": runNestRemove,
}

func (k runKind) isLookup() bool  { return k == runExists || k == runNestExists }
func (k runKind) isNest() bool    { return k >= runNestAdd } // of cuckoo filters
func (k runKind) isNestAdd() bool { return k == runNestAdd || k == runNestAddNew }
func (k runKind) isRemoval() bool { return k == runRemove || k == runNestRemove }

// refusedKeys are keys of a run that the filter did not accept.
type refusedKeys struct {
	from, to int // of b.keys
	err      error
}

// open returns the run's filter. Commands that add make it if there is none.
func (b *batch) open() (store.Filter, error) {
	s := b.server
	filter, err := s.store.Open(b.name)
	if errors.Is(err, store.ErrNotFound) {
		switch b.kind {
		case runAdd:
			spec := *s.filter.Load()
			filter, err = s.openOrCreateAs(b.name, spec, spec.Growth, err)
		case runNestAdd, runNestAddNew:
			filter, err = s.openOrCreateNest(b.name, usualNest())
		}
	}
	if err == nil && isCuckoo(filter) != b.kind.isNest() {
		err = store.ErrWrongKind
	}
	return filter, err
}

// isCuckoo reports whether a filter is one of the CF commands, not of the BF commands.
func isCuckoo(filter store.Filter) bool {
	f, ok := filter.(store.Kinded)
	return ok && f.Kind() == store.Cuckoo
}

// lookUp executes a run of BF.EXISTS or CF.EXISTS. A name without a filter has no keys.
func (b *batch) lookUp() {
	err := store.ErrNotFound
	for range 2 { // dropped just now: the name may have a new filter
		var filter store.Filter
		if filter, err = b.open(); err != nil {
			break
		}
		if err = filter.Contains(b.server.ctx, b.keys, b.answers); !errors.Is(err, store.ErrNotFound) {
			break
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrWrongKind):
		clear(b.answers)
	case err != nil:
		b.refuseRun(err)
		return
	}
	b.answerRun()
	found := int64(0)
	for _, yes := range b.answers {
		if yes {
			found++
		}
	}
	b.hits += found
	b.misses += int64(len(b.answers)) - found
	b.server.countKeys(b.name, b.answers, b.kind)
}

// change executes a run that adds or removes keys, and continues it after keys that were
// refused.
func (b *batch) change() {
	filter, err := b.open()
	if err != nil {
		b.refuseRun(err)
		return
	}
	next, end := 0, 0 // a reply, and where the keys of the one before it end
	for from, again := 0, false; from < len(b.keys); {
		n, err := b.apply(filter, b.keys[from:], b.answers[from:])
		b.countChanges(b.answers[from : from+n])
		from += n
		switch {
		case err == nil:
		case errors.Is(err, errors.ErrUnsupported):
			b.refuseRun(err)
			return
		case errors.Is(err, store.ErrNotFound) && !again: // dropped just now: the name may have a new filter
			again = true
			if filter, err = b.open(); err != nil {
				b.refuseRun(err)
				return
			}
		case errors.Is(err, store.ErrFull):
			to := from + 1
			if b.kind == runAdd { // RedisBloom skips the command's other keys
				for ; end <= from; next++ {
					end += int(b.replies[next].keys)
				}
				to = end
			}
			b.refused = append(b.refused, refusedKeys{from, to, err})
			from = to
		default:
			b.refuseRest(filter, from, err)
			from = len(b.keys)
		}
	}
	b.answerRun()
	if b.server.observers.Load() > 0 {
		for _, reply := range b.replies {
			b.server.keyWritten(reply.client, b.name)
		}
	}
}

// apply adds or removes keys, up to the first that is refused.
func (b *batch) apply(filter store.Filter, keys [][]byte, answers []bool) (int, error) {
	ctx := b.server.ctx
	switch b.kind {
	case runAdd:
		return filter.Add(ctx, keys, answers)
	case runNestAdd, runNestAddNew:
		if f, ok := filter.(store.Nest); ok {
			return f.Insert(ctx, keys, b.kind == runNestAddNew, answers)
		}
	default:
		if f, ok := filter.(store.Remover); ok {
			return f.Remove(ctx, keys, answers)
		}
	}
	return 0, errors.ErrUnsupported
}

func (b *batch) countChanges(answers []bool) {
	if b.kind.isRemoval() {
		b.tally.removed(answers)
	} else {
		b.tally.added(answers)
	}
	b.server.countKeys(b.name, answers, b.kind)
}

// refuseRest refuses the keys from the first that the filter did not accept, when it can
// accept no other: without trying them one by one. Keys that would not be added again,
// as they are there already, are answered as such.
func (b *batch) refuseRest(filter store.Filter, from int, err error) {
	keys, answers := b.keys[from:], b.answers[from:]
	if b.kind != runAdd && b.kind != runNestAddNew || filter.Contains(b.server.ctx, keys, answers) != nil {
		clear(answers)
	}
	for i, there := range answers {
		at, last := from+i, len(b.refused)-1
		switch {
		case there:
			b.answers[at] = false // not new
			b.tally.seen++
		case last >= 0 && b.refused[last].to == at && b.refused[last].err == err:
			b.refused[last].to++
		default:
			b.refused = append(b.refused, refusedKeys{at, at + 1, err})
		}
	}
}

// refuseRun answers all commands of the run with an error.
func (b *batch) refuseRun(err error) {
	for _, reply := range b.replies {
		b.refuse(reply, err)
	}
}

func (b *batch) refuse(reply runReply, err error) {
	b.tally.failRun(b.kind, reply.list)
	b.server.metrics.refuseMemory(err)
	reply.client.w.Error(b.errorText(err))
}

// answerRun writes the replies of the run.
func (b *batch) answerRun() {
	at, refused := 0, b.refused
	for _, reply := range b.replies {
		end := at + int(reply.keys)
		for len(refused) > 0 && refused[0].to <= at {
			refused = refused[1:]
		}
		if len(refused) > 0 && refused[0].from < end {
			b.answerRefused(reply, at, end, refused)
		} else {
			if reply.list {
				reply.client.w.Array(end - at)
			}
			b.answerKeys(reply, b.answers[at:end])
		}
		at = end
	}
}

// answerKeys answers keys that were not refused.
func (b *batch) answerKeys(reply runReply, answers []bool) {
	w := &reply.client.w
	if reply.list && b.kind == runNestAddNew { // integers also in RESP3
		for _, yes := range answers {
			if yes {
				w.Integer(1)
			} else {
				w.Integer(0)
			}
		}
		return
	}
	for _, yes := range answers {
		w.Bool(yes)
	}
}

// answerRefused answers a command of whose keys, from at to end, some were refused.
func (b *batch) answerRefused(reply runReply, at, end int, refused []refusedKeys) {
	full := errors.Is(refused[0].err, store.ErrFull)
	switch {
	case !reply.list, b.kind.isNestAdd() && refused[0].from <= at && errors.Is(refused[0].err, bloom.ErrLayers):
		b.refuse(reply, refused[0].err)
		return
	case b.kind == runAdd && full: // the error is the last element
		end = refused[0].from + 1
	}
	w, failed := &reply.client.w, error(nil)
	w.Array(end - at)
	for ; at < end; at++ {
		for len(refused) > 0 && refused[0].to <= at {
			refused = refused[1:]
		}
		switch {
		case len(refused) == 0 || at < refused[0].from:
			b.answerKeys(reply, b.answers[at:at+1])
		case b.kind.isNestAdd() && errors.Is(refused[0].err, store.ErrFull):
			if b.kind == runNestAdd && w.Protocol == 3 {
				w.Bool(false)
			} else {
				w.Integer(-1)
			}
		default:
			failed = refused[0].err
			w.Error(b.errorText(failed))
		}
	}
	b.server.metrics.refuseMemory(failed)
}

// errorText is the error of a run.
func (b *batch) errorText(err error) string {
	switch {
	case b.kind.isNestAdd() && errors.Is(err, bloom.ErrLayers):
		return textNestLayers
	case b.kind.isNestAdd() && errors.Is(err, store.ErrFull):
		return textNestFull
	case b.kind == runNestRemove && (errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrWrongKind)):
		return textNestNotFound
	case b.kind == runRemove && errors.Is(err, errors.ErrUnsupported):
		return textNoRemovals
	}
	return storeErrorText(err)
}
