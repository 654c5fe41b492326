package main

import (
	"errors"
	"fmt"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/machine"
)

// newFilter makes a filter if it keeps within the budget, or without one within
// the memory of the machine, or of its control group: a filter is touched
// everywhere from the first key on, so one that does not fit is no slower filter but
// a dead machine.
func newFilter(c bloom.Config, budget uint64) (*bloom.Filter, error) {
	c.Budget = budget
	if budget == 0 {
		c.Budget, _ = machine.Usable()
	}
	f, err := c.New()
	if budget == 0 && errors.Is(err, bloom.ErrBudget) {
		err = fmt.Errorf("%w; without --budget it is the memory of this machine, or of its control group", err)
	}
	return f, err
}
