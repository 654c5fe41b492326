package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
)

// The filter file of dedupe --state, which is changed in place.

// openState opens the state file, or creates it in the first run: of a fixed size
// if one is given, otherwise growing. An empty file, as mktemp makes it, counts as a
// first run.
func (d *dedupeCommand) openState(sources []*lines.Source, limit *limit) (remembered, error) {
	empty, err := removeEmpty(d.state)
	if err != nil {
		return nil, err
	}
	if empty != nil {
		seen, err := d.createState(sources, limit)
		if err == nil {
			err = os.Chmod(d.state, empty.Mode().Perm()) // as mktemp made it
		}
		return seen, err
	}
	if isDirectory(d.state) {
		return nil, fmt.Errorf("%s: is a directory: name a filter file in it", d.state)
	}
	kind, err := bloom.KindOf(d.state)
	if errors.Is(err, fs.ErrNotExist) {
		return d.createState(sources, limit)
	}
	if err != nil {
		return nil, anyfile.WithAdvice(err)
	}
	switch kind {
	case bloom.KindFilter:
		f, err := bloom.OpenUpdate(d.state)
		if err != nil {
			return nil, d.stateError(err)
		}
		err = d.refuseKeys(f.NeedsSecret(), f.Meta())
		if err == nil {
			err = d.suitsFixed(f.Plan())
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		d.tellState(limit.tell, f.Recovered(), f.Plan().Rate)
		return fileSeen{fixedSeen{f, newGauge(f, false), limit.of(fixedAdvice(d.state))}}, nil
	case bloom.KindScalable:
		f, err := bloom.OpenUpdateScalable(d.state)
		if err != nil {
			return nil, d.stateError(err)
		}
		err = d.refuseKeys(f.NeedsSecret(), f.Meta())
		if err == nil {
			err = d.suitsScalable(f.Config())
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		d.tellState(limit.tell, f.Recovered(), f.Config().Rate)
		return growingSeen{f, limit.of(stateGrowthAdvice)}, nil
	}
	return nil, fmt.Errorf("%s: holds a filter of the kind %v: a state is a filter or a scalable one", d.state, kind)
}

// removeEmpty removes an empty file, so that the state can be created, and returns
// its info, or nil if there was none.
func removeEmpty(path string) (was fs.FileInfo, err error) {
	isEmpty := func() bool {
		was, err = os.Lstat(path)
		return err == nil && was.Mode().IsRegular() && was.Size() == 0
	}
	if !isEmpty() {
		return nil, nil // opening it reports what is wrong
	}
	unlock, err := anyfile.Lock(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if !isEmpty() { // another process has started its state in it
		return nil, nil
	}
	if err := os.Remove(path); err != nil {
		return nil, lines.FileError(path, err)
	}
	return was, nil
}

// A state was planned when it was made. If it cannot keep what the flags ask for now,
// the run is refused: a flag that changed nothing would be a broken promise.

func (d *dedupeCommand) suitsFixed(plan bloom.Plan) error {
	switch keys := uint64(d.keys.N); {
	case d.keys.Auto:
		return fmt.Errorf("%s: was made for %s keys, and -n auto sizes a new file: leave -n out, or start another file", d.state, human.Commas(plan.Keys))
	case keys != 0 && keys != plan.Keys:
		return fmt.Errorf("%s: was made for %s keys, not %s: leave -n out, or start another file", d.state, human.Commas(plan.Keys), human.Commas(keys))
	case d.grow:
		return fmt.Errorf("%s: was made with -n and without --grow: leave --grow out; when it is full, 'bloomery add --grow %s </dev/null' turns it into one that grows, at up to five times its rate", d.state, anyfile.Quoted(d.state))
	case d.budget != 0 && plan.Bytes() > uint64(d.budget):
		return fmt.Errorf("%s: takes %s, more than the budget of %s: give a larger --budget, or start another file", d.state, human.BinarySize(plan.Bytes()), human.BinarySize(uint64(d.budget)))
	}
	return d.suitsRate(plan.Rate)
}

func (d *dedupeCommand) suitsScalable(c bloom.ScalableConfig) error {
	switch keys := uint64(d.keys.N); {
	case d.keys.Auto:
		return fmt.Errorf("%s: grows, and -n auto sizes a new file: leave -n out", d.state)
	case keys != 0 && !d.grow:
		return fmt.Errorf("%s: grows, and does not stop at %s keys: leave -n out, or start another file", d.state, human.Commas(keys))
	case keys != 0 && keys != c.First:
		return fmt.Errorf("%s: was started for %s keys, not %s: leave -n out, or start another file", d.state, human.Commas(c.First), human.Commas(keys))
	case d.budget != 0 && c.Budget == 0:
		return fmt.Errorf("%s: was made without --budget, and cannot take one later: leave it out, or start another file", d.state)
	case d.budget != 0 && c.Budget != uint64(d.budget):
		return fmt.Errorf("%s: was made with --budget %d, which cannot change later: leave it out, or start another file", d.state, c.Budget)
	}
	return d.suitsRate(c.Rate)
}

func (d *dedupeCommand) suitsRate(kept float64) error {
	if d.given("rate") && above(kept, float64(d.rate)) {
		return fmt.Errorf("%s: keeps a rate of %s, not %s: leave -p out to keep its rate, or start another file", d.state, human.OneIn(kept), human.OneIn(float64(d.rate)))
	}
	return nil
}

// above reports whether one rate is above another, beyond rounding.
func above(rate, other float64) bool { return rate > other*(1+1e-9) }

// tellState reports what is unexpected about the state.
func (d *dedupeCommand) tellState(tell *lines.Reporter, recovered bool, rate float64) {
	if recovered {
		tell.Say("%s: the last run was interrupted; what it had remembered is there", d.state)
	}
	if !d.quiet && !d.given("rate") && above(rate, defaultLoss) {
		tell.Say("%s: was made for a rate of %s, and the default is %s: new lines may be lost at its rate", d.state, human.OneIn(rate), human.OneIn(defaultLoss))
	}
}

// refuseKeys refuses filters whose keys are not the lines as they are.
func (d *dedupeCommand) refuseKeys(keyed bool, meta map[string]string) error {
	if keyed {
		return fmt.Errorf("%s: has a secret, which a state cannot have: use a filter without one", d.state)
	}
	if form := meta[anyfile.NormalizeMeta]; form != "" {
		return fmt.Errorf("%s: was built with --normalize %s, which dedupe does not do: use another file", d.state, form)
	}
	return nil
}

func (d *dedupeCommand) createState(sources []*lines.Source, limit *limit) (remembered, error) {
	if err := d.countKeys(sources, limit.tell); err != nil {
		return nil, err
	}
	keys, rate, budget := uint64(d.keys.N), float64(d.rate), uint64(d.budget)
	if keys == 0 || d.grow {
		if keys == 0 {
			keys = d.guess(sources)
		}
		f, err := bloom.ScalableConfig{First: keys, Rate: rate, Budget: budget}.Create(d.state)
		return growingSeen{f, limit.of(growthAdvice(d.budget, stateGrowthAdvice))}, d.stateError(err)
	}
	f, err := bloom.Config{Keys: keys, Rate: rate, Budget: budget}.Create(d.state, nil)
	if err != nil {
		return nil, d.stateError(err)
	}
	return fileSeen{fixedSeen{f, newGauge(f, d.keys.Auto), limit.of(fixedAdvice(d.state))}}, nil
}

func (d *dedupeCommand) stateError(err error) error {
	switch {
	case errors.Is(err, bloom.ErrRate) && (d.keys.N == 0 || d.grow):
		return fmt.Errorf("%w; a filter that grows starts at a fifth of the rate: give a higher -p, or -n without --grow", err)
	case errors.Is(err, bloom.ErrLocked):
		return fmt.Errorf("%w: wait for it to end, or give each its own --state", err)
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: --state needs a system that can change files through memory", err)
	}
	return anyfile.WithAdvice(err)
}
