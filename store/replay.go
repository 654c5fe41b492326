package store

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom"
)

// readLog replays the segments that follow the snapshot, in order.
func (r *recovery) readLog(segments []uint64) error {
	for len(segments) > 0 && segments[0] < r.start {
		segments = segments[1:]
	}
	if len(segments) == 0 {
		if r.mayBeAlone {
			return nil
		}
		if r.salvage != nil {
			r.salvage.lostRecords("%s is not there: all of the log since the snapshot is lost", segmentName(r.start))
			return nil
		}
		return fmt.Errorf("%w: the log %s, which follows the snapshot %s, is not there: put it back from a backup", ErrDamaged, segmentName(r.start), snapshotName(r.start))
	}
	for i, start := range segments {
		if start != r.next && r.salvage != nil {
			r.salvage.lostRecords("records %d to %d of the log are lost: %s is missing", r.next, start-1, segmentName(r.next))
		} else if start != r.next {
			return fmt.Errorf("%w: the log ends before record %d, but its next file begins with %d: %s is missing: restore it from a backup", ErrDamaged, r.next, start, segmentName(r.next))
		}
		if err := r.readSegment(start, i == len(segments)-1); err != nil {
			return err
		}
	}
	return nil
}

// readSegment replays the records of one segment.
func (r *recovery) readSegment(start uint64, last bool) error {
	in, err := r.openSegment(start)
	if in == nil || err != nil {
		return err
	}
	defer in.close()
	r.found.Segments++
	in.next = start
	for err == nil {
		var kind byte
		var f fields
		if kind, f, err = in.read(); err == nil {
			err = r.apply(in, kind, &f)
		}
		if errors.Is(err, errTorn) && (in.guessed || !(last && r.isEnd(in))) {
			err = r.skipDamage(in, err, nil)
		}
	}
	r.workers.wait()
	r.found.LogBytes += in.at
	r.next = in.next
	r.last = &segment{in.fileHead, in.at}
	switch {
	case errors.Is(err, errTorn):
		r.found.Torn = in.name
		r.found.TornBytes = uint64(in.size) - min(in.at, uint64(in.size))
	case !ended(err):
		return err
	}
	return nil
}

// openSegment opens a segment, and makes sure that it is the right one. If it returns
// neither a reader nor an error, the segment is lost.
func (r *recovery) openSegment(start uint64) (*recordReader, error) {
	in, err := openRecords(r.local.config.disk, segmentName(start), fileMagicLog)
	if errors.Is(err, ErrDamaged) && r.salvage != nil {
		return openAnyRecords(r.local.config.disk, segmentName(start))
	}
	if err != nil {
		return nil, err
	}
	switch {
	case start != in.start:
		err = in.failed(nil, fmt.Sprintf("it says that it begins with record %d", in.start))
	case r.local.id == (storeID{}):
		r.local.id = in.store
	case r.local.id != in.store:
		err = fmt.Errorf("%w: %s is of another directory: put the right file back, or repair the directory, which says before what becomes unknown", ErrDamaged, in.name)
	}
	if err == nil {
		return in, nil
	}
	in.close()
	if r.salvage == nil {
		return nil, err
	}
	r.salvage.lostRecords("%v: its records are lost", err)
	return nil, nil
}

// isEnd reports whether the log may end here: whether no later record says that this
// one was on disk. It counts the whole records after this point.
func (r *recovery) isEnd(in *recordReader) bool {
	r.found.TornRecords = 0
	behind, err := openRecords(r.local.config.disk, in.name, fileMagicLog)
	if err != nil {
		return false // it is reported as damage
	}
	defer behind.close()
	behind.at, behind.next = in.at, in.next
	for {
		if found, err := behind.resync(); err != nil || !found {
			return true
		}
		for {
			kind, f, err := behind.read()
			if err != nil {
				break
			}
			r.found.TornRecords++
			if kind == recordMark && f.uint64() > in.next {
				return false
			}
		}
	}
}

// apply replays a record.
func (r *recovery) apply(in *recordReader, kind byte, f *fields) error {
	lsn := in.next - 1
	r.found.Records++
	if kind != recordMark {
		r.changes++
	}
	if kind == recordPairs || kind == recordHashes || kind == recordTimed || kind == recordSlots || kind == recordCounts {
		return r.applyAdds(in, lsn, kind, f)
	}
	r.workers.wait()
	err := r.applyChange(lsn, kind, f)
	if err == nil && f.bad {
		err = errors.New("it has too few bytes")
	}
	if err != nil && r.salvage != nil {
		r.salvage.note("%s: record %d of the log cannot be applied: %v", in.name, lsn, err)
		return nil
	}
	if err != nil {
		return in.failed(nil, fmt.Sprintf("record %d, of type %d, cannot be applied: %v", lsn, kind, err))
	}
	return nil
}

// applyAdds sets the bits of keys. It skips filters that are no longer there, and adds
// that the value had when the snapshot read it.
func (r *recovery) applyAdds(in *recordReader, lsn uint64, kind byte, f *fields) error {
	id, layer, count := f.uint64(), f.uint32(), f.uint32()
	v := r.values[id]
	if v == nil || lsn < v.lsn {
		return nil
	}
	switch b := v.body.(type) {
	case *nest:
		if kind != recordSlots {
			break
		}
		r.found.Adds += uint64(count)
		if err := b.replaySlots(&v.held, int(layer), f); err != nil {
			return in.failed(nil, err.Error())
		}
		return nil
	case chain:
		if kind != recordPairs || len(f.b)%16 != 0 {
			break
		}
		r.found.Adds += uint64(count)
		if err := r.growTo(v, b, int(layer)); err != nil {
			return in.failed(nil, err.Error())
		}
		v.layers[layer] += uint64(count)
		r.workers.pairs(b, int(layer), f.b)
		return nil
	case *paired:
		if kind == recordCounts {
			r.found.Adds += uint64(count)
			if err := b.replayCounts(layer, f); err != nil {
				return in.failed(nil, err.Error())
			}
			return nil
		}
		if kind == recordTimed {
			r.local.replay.Store(max(int64(f.uint64()), 1))
		}
		if kind == recordPairs || len(f.b)%8 != 0 || b.spec.Kind == Counting {
			break
		}
		r.found.Adds += uint64(count)
		b.items.Add(uint64(count))
		bits, grows := b.now().(*bloom.Scalable)
		if grows && in.version > 0 {
			if err := r.growScalable(b, bits, int(layer)); err != nil {
				return in.failed(nil, err.Error())
			}
		}
		// A window's clock is right only now; and version 0 did not record the layer,
		// so its keys must come in order.
		r.workers.hashes(b.now(), int(layer), f.b, kind == recordTimed || grows && in.version == 0)
		return nil
	}
	return in.failed(nil, fmt.Sprintf("record %d adds to value %d what does not go into it", lsn, id))
}

// growTo grows the chain until it has the layer, and begins to count its items.
func (r *recovery) growTo(v *recovered, c chain, layer int) error {
	if !v.counts {
		v.counts = true
		for _, l := range c.Layers() {
			v.layers = append(v.layers, l.Items)
		}
	}
	for layer >= len(v.layers) {
		r.workers.wait()
		if err := c.Grow(); err != nil {
			return err
		}
		v.layers = append(v.layers, 0)
	}
	return nil
}

// growScalable grows the filter until it has the layer.
func (r *recovery) growScalable(p *paired, bits *bloom.Scalable, layer int) error {
	if layer == int(p.layer) {
		return nil
	}
	p.layer = uint32(layer)
	r.workers.wait()
	return bloom.Inside.Replay(bits, layer, nil)
}

// applyChange replays everything except adds.
func (r *recovery) applyChange(lsn uint64, kind byte, f *fields) error {
	l := r.local
	switch kind {
	case recordMark:
		f.uint64()
		return nil
	case recordCreate:
		id, spec := f.uint64(), f.spec()
		name := f.name()
		b, err := l.newBody(spec)
		if err == nil {
			err = r.create(id, name, b, spec.Level, toMillis(spec.Expires))
		}
		return err
	case recordLoad, recordLoadCuckoo:
		id, level, name := f.uint64(), Level(f.byte()), ""
		name = f.name()
		load := l.loadBody
		if kind == recordLoadCuckoo {
			load = l.loadNest
		}
		b, err := load(f.rest())
		if err == nil {
			err = r.create(id, name, b, level, 0)
		}
		return err
	case recordSet:
		id, name := f.uint64(), f.name()
		b := slices.Clip(append(text{}, f.rest()...))
		l.grant(b.bytes())
		return r.create(id, name, b, l.config.Level, 0)
	case recordClear:
		l.clear()
		clear(r.values)
		return nil
	}
	v := r.values[f.uint64()]
	if v == nil {
		if kind == recordDrop || kind == recordChunk || kind == recordMerge || kind == recordFold {
			f.rest()
			return nil // it had just lost its name, or lost it while the snapshot was taken
		}
		if r.salvage != nil {
			f.rest()
			return nil // it was lost, and that was reported
		}
		return errors.New("there is no such value")
	}
	switch kind {
	case recordDrop:
		delete(r.values, v.id)
		l.drop(v.value)
	case recordRename:
		to := f.name()
		l.grantName(v.name, to)
		if old := l.names.find([]byte(to)); old != nil && old != v.value {
			delete(r.values, old.id)
		}
		l.rename(v.value, to)
	case recordSwap:
		other := r.values[f.uint64()]
		if other == nil || other == v {
			return errors.New("there is no such value")
		}
		l.names.swap(v.value, other.value)
	case recordExpire:
		l.expireAt(v.value, int64(f.uint64()))
	case recordChunk, recordMerge, recordFold:
		if lsn >= v.lsn {
			return r.applyContent(v, kind, f)
		}
		f.rest()
	default:
		return errors.New("unknown record type")
	}
	return nil
}

// create creates a value as the store did, with the same id, replacing any value with
// its name.
func (r *recovery) create(id uint64, name string, b body, level Level, expires int64) error {
	l := r.local
	if r.values[id] != nil || id < l.nextID {
		return fmt.Errorf("its id %d is already in use", id)
	}
	if level < Always || level > Unlogged {
		return fmt.Errorf("level %d", level)
	}
	l.nextID = id
	v, err := l.newValue(name, b, level)
	if err != nil {
		return err
	}
	old := l.names.find([]byte(name))
	l.publish(v, expires)
	if old != nil {
		delete(r.values, old.id)
		l.forget(old)
	}
	r.values[id] = &recovered{value: v}
	return nil
}

// applyContent replays changes of a value's bits.
func (r *recovery) applyContent(v *recovered, kind byte, f *fields) error {
	switch kind {
	case recordChunk:
		iterator := int64(f.uint64())
		return v.body.load(v.value, iterator, f.rest())
	case recordMerge:
		other, items := r.values[f.uint64()], f.items()
		if other == nil {
			return errors.New("the filter to merge is not there")
		}
		if err := v.replayMerge(other.value, items); err != nil {
			return err
		}
		if v.kind() == RedisBloom {
			v.layers, v.counts = items, true
		}
		return nil
	}
	return v.body.fold(v.value, f.uint64())
}

// finish sets the counts of chains, and charges filters the memory that they take now.
func (r *recovery) finish() {
	r.workers.wait()
	for _, v := range r.values {
		switch b := v.body.(type) {
		case chain:
			if v.counts {
				for i, n := range v.layers {
					b.SetItems(i, n)
				}
			}
		case *paired:
			if b.incoming == nil {
				bytes := memoryOf(b.now())
				r.local.release(b.charged.Load())
				r.local.grant(bytes)
				b.charged.Store(bytes)
			}
		}
	}
	r.dropUnfinished()
	r.local.expiries.expired = nil // they had expired before
	r.found.Values = r.local.len()
}

// dropUnfinished drops filters whose names begin with UnfinishedPrefix: no client was
// told that they exist, and which of their bits are missing is unknown.
func (r *recovery) dropUnfinished() {
	for id, v := range r.values {
		digits, ok := strings.CutPrefix(v.name, UnfinishedPrefix)
		if _, err := strconv.ParseInt(digits, 10, 64); ok && err == nil {
			r.found.Unfinished++
			delete(r.values, id)
			r.local.drop(v.value)
		}
	}
}
