package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/bloomery/bloom"
)

// What dedupe --state remembers lines in: a filter file, changed in place.

// openState opens the state file, and makes it at the first run: of a fixed size
// if that was given, or else of one that grows.
func (d *dedupeCommand) openState(sources []*source, limit *limit) (remembered, error) {
	kind, err := bloom.KindOf(d.state)
	if errors.Is(err, fs.ErrNotExist) {
		return d.createState(sources, limit)
	}
	if err != nil {
		return nil, withAdvice(err)
	}
	switch kind {
	case bloom.KindFilter:
		f, err := bloom.OpenUpdate(d.state)
		if err != nil {
			return nil, d.stateError(err)
		}
		if err := d.refuseKeys(f.NeedsSecret(), f.Meta()); err != nil {
			f.Close()
			return nil, err
		}
		if keys := uint64(d.keys.n); keys != 0 && keys != f.Plan().Keys {
			f.Close()
			return nil, fmt.Errorf("%s: was made for %s keys, not %s: leave -n out, or begin another file", d.state, commas(f.Plan().Keys), commas(keys))
		}
		if d.grow {
			f.Close()
			return nil, fmt.Errorf("%s: was made with -n and without --grow, and cannot grow: begin another file", d.state)
		}
		tellRecovered(limit.tell, d.state, f.Recovered())
		return fileSeen{fixedSeen{f, newGauge(f, false), limit}}, nil
	case bloom.KindScalable:
		f, err := bloom.OpenUpdateScalable(d.state)
		if err != nil {
			return nil, d.stateError(err)
		}
		if err := d.refuseKeys(f.NeedsSecret(), nil); err != nil {
			f.Close()
			return nil, err
		}
		tellRecovered(limit.tell, d.state, f.Recovered())
		return growingSeen{f, limit}, nil
	}
	return nil, fmt.Errorf("%s: holds a filter of the kind %v: a state is a filter or a scalable one", d.state, kind)
}

// refuseKeys refuses filters whose keys are not the lines as they are.
func (d *dedupeCommand) refuseKeys(keyed bool, meta map[string]string) error {
	if keyed {
		return fmt.Errorf("%s: is keyed, which a state cannot be: use a filter without a secret", d.state)
	}
	if form := meta[normalizeMeta]; form != "" {
		return fmt.Errorf("%s: was built with --normalize %s, which dedupe does not do: use another file", d.state, form)
	}
	return nil
}

func tellRecovered(tell *teller, path string, recovered bool) {
	if recovered {
		tell.say("%s: the last run was cut off; what it had remembered is there", path)
	}
}

func (d *dedupeCommand) createState(sources []*source, limit *limit) (remembered, error) {
	if err := d.countKeys(sources, limit.tell); err != nil {
		return nil, err
	}
	keys, rate, budget := uint64(d.keys.n), float64(d.rate), uint64(d.budget)
	if keys == 0 || d.grow {
		if keys == 0 {
			keys = d.guess(sources)
		}
		f, err := bloom.ScalableConfig{First: keys, Rate: rate, MaxBytes: budget}.Create(d.state)
		return growingSeen{f, limit}, d.stateError(err)
	}
	f, err := bloom.Config{Keys: keys, Rate: rate, Budget: budget}.Create(d.state, nil)
	if err != nil {
		return nil, d.stateError(err)
	}
	return fileSeen{fixedSeen{f, newGauge(f, false), limit}}, nil
}

func (d *dedupeCommand) stateError(err error) error {
	switch {
	case errors.Is(err, bloom.ErrLocked):
		return fmt.Errorf("%w: wait for it to end, or give each its own --state", err)
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: --state needs files that are changed in memory", err)
	}
	return withAdvice(err)
}
