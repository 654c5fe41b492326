package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bloomery/bloom"
)

// Changes of the set of names and of their values. Each change holds Local.changing,
// and is in the log before anybody can see it.

var errUnsupported = errors.ErrUnsupported

// change calls do with changing held. It may call it again if there was too little
// memory.
func (l *Local) change(do func() error) error {
	return l.patiently(func() error {
		l.changing.Lock()
		defer l.changing.Unlock()
		return do()
	})
}

// Create creates a filter.
func (l *Local) Create(ctx context.Context, name string, spec Spec) (f Filter, err error) {
	if spec.Kind == Cuckoo {
		return l.createNest(name, spec)
	}
	spec.Level = l.levelOf(spec.Kind, spec.Level)
	err = l.change(func() error {
		v, err := l.createAs(name, spec.Level, func() (body, error) { return l.newBody(spec) })
		if err != nil {
			return err
		}
		l.logCreate(v.id, name, spec)
		l.publish(v, toMillis(spec.Expires))
		f = v
		return nil
	})
	return f, err
}

// Load creates a filter from the first chunk of a dump.
func (l *Local) Load(ctx context.Context, name string, header []byte) (f Filter, err error) {
	level := l.level(StoreLevel)
	err = l.change(func() error {
		v, err := l.createAs(name, level, func() (body, error) { return l.loadBody(header) })
		if err != nil {
			return err
		}
		l.logLoad(recordLoad, v.id, name, level, header)
		l.publish(v, 0)
		f = v
		return nil
	})
	return f, err
}

// createAs creates a value under an unused name.
func (l *Local) createAs(name string, level Level, build func() (body, error)) (*value, error) {
	if err := l.vacate(name); err != nil {
		return nil, err
	}
	b, err := build()
	if err != nil {
		return nil, err
	}
	v, err := l.newValue(name, b, level)
	if err != nil {
		b.free(l)
	}
	return v, err
}

// Set stores a plain value under the name, replacing any value there.
func (l *Local) Set(ctx context.Context, name string, data []byte) error {
	if len(data) > maxText {
		return fmt.Errorf("%w: a value of %d bytes, of at most %d", bloom.ErrLimit, len(data), maxText)
	}
	body := text(slices.Clip(slices.Clone(data)))
	if body == nil {
		body = text{}
	}
	return l.change(func() error {
		if err := l.grant(body.bytes()); err != nil {
			return err
		}
		v, err := l.newValue(name, body, l.config.Level)
		if err != nil {
			body.free(l)
			return err
		}
		old := l.names.find([]byte(name))
		l.logSet(v.id, name, data)
		l.publish(v, 0)
		if old != nil {
			l.forget(old)
		}
		return nil
	})
}

// level returns the level of a filter whose Spec has this one.
func (l *Local) level(level Level) Level {
	if level == StoreLevel {
		return l.config.Level
	}
	return level
}

// levelOf is level for a filter of that kind. Filters with removals are always logged: a
// snapshot copies them while they change, and only the log makes its parts agree.
func (l *Local) levelOf(kind Kind, level Level) Level {
	level = l.level(level)
	if (kind == Counting || kind == Cuckoo) && level == Unlogged {
		return EverySecond
	}
	return level
}

// newBody creates the bits of a filter. It reserves their memory first.
func (l *Local) newBody(spec Spec) (body, error) {
	if spec.Level > Unlogged {
		return nil, fmt.Errorf("%w: no level %d", bloom.ErrConfig, spec.Level)
	}
	switch spec.Kind {
	case RedisBloom:
		return l.newChain(spec)
	case Paired, Window, Counting:
		return l.newPaired(spec)
	}
	return nil, fmt.Errorf("%w: a filter of kind %d", bloom.ErrConfig, spec.Kind)
}

// loadBody creates the body that a dump's header describes.
func (l *Local) loadBody(header []byte) (body, error) {
	if IsDumpHeader(header) {
		p, err := l.loadPaired(header)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return l.loadChain(header)
}

// newValue reserves memory for a name and gives its value an id.
func (l *Local) newValue(name string, b body, level Level) (*value, error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("%w: a name of %d bytes, of at most %d", bloom.ErrLimit, len(name), maxName)
	}
	if err := l.grant(overheadBytes(b, name)); err != nil {
		return nil, err
	}
	v := &value{local: l, name: strings.Clone(name), id: l.nextID, body: b, level: level}
	l.nextID++
	return v, nil
}

// vacate makes sure that the name is unused.
func (l *Local) vacate(name string) error {
	old := l.names.find([]byte(name))
	switch {
	case old == nil:
		return nil
	case !old.expired():
		return ErrExists
	}
	l.drop(old)
	return nil
}

// publish makes the value visible, replacing any value with its name.
func (l *Local) publish(v *value, expires int64) {
	l.expireAt(v, expires)
	if !l.names.put(v) {
		l.count.Add(1)
	}
}

// drop removes a value's name.
func (l *Local) drop(v *value) {
	l.logDrop(v.id)
	l.names.remove(v)
	l.count.Add(-1)
	l.forget(v)
}

// forget releases the memory of a value that has lost its name. Callers that still hold
// it get errDropped from now on. Bits that are pinned stay, and are charged, until the
// last pin is removed.
func (l *Local) forget(v *value) {
	gate := v.gate()
	gate.Lock()
	v.dropped.Store(true)
	v.body.free(l)
	l.release(overheadBytes(v.body, v.name) + v.expiryCharge())
	gate.Unlock()
	if v.expired() {
		l.noteExpired(v.name)
	}
}

// Rename renames a value.
func (l *Local) Rename(ctx context.Context, from, to string) error {
	return l.change(func() error {
		v := l.lookup([]byte(from))
		switch {
		case v == nil:
			return ErrNotFound
		case from == to:
			return nil
		case len(to) > maxName:
			return fmt.Errorf("%w: a name of %d bytes, of at most %d", bloom.ErrLimit, len(to), maxName)
		}
		if err := l.grantName(from, to); err != nil {
			return err
		}
		l.logRename(v.id, to)
		l.rename(v, strings.Clone(to))
		return nil
	})
}

// grantName reserves the memory that a new name takes beyond that of the old one, or
// releases the difference.
func (l *Local) grantName(from, to string) error {
	before, after := nameBytes(from), nameBytes(to)
	if after > before {
		return l.grant(after - before)
	}
	l.release(before - after)
	return nil
}

func (l *Local) rename(v *value, to string) {
	old := l.names.find([]byte(to))
	l.names.rename(v, to)
	if old != nil {
		l.count.Add(-1)
		l.forget(old)
	}
}

// Swap exchanges two values. Each value keeps its time of expiry.
func (l *Local) Swap(ctx context.Context, a, b string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	va, vb := l.lookup([]byte(a)), l.lookup([]byte(b))
	switch {
	case va == nil || vb == nil:
		return ErrNotFound
	case va == vb:
		return nil
	}
	l.logSwap(va.id, vb.id)
	l.names.swap(va, vb)
	return nil
}

// Expire sets when a name expires.
func (l *Local) Expire(ctx context.Context, name string, at time.Time) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	v := l.lookup([]byte(name))
	if v == nil {
		return ErrNotFound
	}
	l.logExpire(v.id, toMillis(at))
	l.expireAt(v, toMillis(at))
	return nil
}

// Drop deletes the names.
func (l *Local) Drop(ctx context.Context, dropped ...string) (n int, err error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, name := range dropped {
		v := l.names.find([]byte(name))
		if v == nil {
			continue
		}
		if !v.expired() {
			n++
		}
		l.drop(v)
	}
	return n, nil
}

// Clear deletes all names.
func (l *Local) Clear(ctx context.Context) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.logClear()
	l.clear()
	return nil
}

// forgetInline is the number of values that clear forgets itself.
const forgetInline = 1 << 12

// clear deletes all names. With many values, forgetting them takes seconds, and nobody
// should wait for that: they count as dropped at once, and their memory is released in
// the background.
func (l *Local) clear() {
	all, n := l.names.takeAll()
	l.count.Store(0)
	later := n > forgetInline && l.replay.Load() == 0
	if later {
		l.cleared.Store(l.nextID)
	}
	for _, values := range all {
		if later {
			l.unmapper.add(func() { l.forgetAll(values) })
		} else {
			l.forgetAll(values)
		}
	}
}

// forgetAll forgets the values that are not nil.
func (l *Local) forgetAll(values []*value) {
	for _, v := range values {
		if v != nil {
			l.forget(v)
		}
	}
}

// chunkError wraps an error about a chunk. Errors of package redisbloom wrap
// RedisBloom's own texts.
func chunkError(err error) error {
	if errors.Is(err, ErrMemory) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrChunk, err)
}
