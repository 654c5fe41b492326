package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bloomery/bloom/store"
)

// limit is one of those that clients meet; see [Limits].
type limit uint8

const (
	limitClients limit = iota
	limitUnauthenticated
	limitArguments
	limitItem
	limitKey
	limitCommand
	limitOutput
	limitIdle
	limitMemory
	limitCount
)

// limitNames are the names of flags and of the label limit.
var limitNames = [limitCount]string{"clients", "unauthenticated-bytes", "arguments", "item-bytes", "key-bytes", "command-bytes", "output-bytes", "idle", "memory"}

// limitOfProtocol are the limits behind errors of the parser. Numbers that are
// none at all meet the same errors.
var limitOfProtocol = map[string]limit{
	"invalid multibulk length":         limitArguments,
	"too big mbulk count string":       limitArguments,
	"invalid bulk length":              limitItem,
	"too big bulk count string":        limitItem,
	"too big inline request":           limitItem,
	"too big command":                  limitCommand,
	"unauthenticated multibulk length": limitUnauthenticated,
	"unauthenticated bulk length":      limitUnauthenticated,
}

// refuse counts what a limit was in the way of.
func (m *metrics) refuse(l limit) { m.refused[l].Add(1) }

// refuseMemory counts an error of the store, if it is that of its limit.
func (m *metrics) refuseMemory(err error) {
	if errors.Is(err, store.ErrMemory) {
		m.refuse(limitMemory)
	}
}

// refuseProtocol counts bytes that were no command, if a limit was in the way.
func (m *metrics) refuseProtocol(c *Client, err error) {
	l, ok := limitOfProtocol[strings.TrimPrefix(err.Error(), "Protocol error: ")]
	if !ok {
		return
	}
	if c.access == accessNone {
		l = limitUnauthenticated
	}
	m.refuse(l)
}

// A LimitRow is a limit with its name, for people.
type LimitRow struct {
	Name  string // the label of bloomery_refused_total
	Value string // of DefaultLimits
	What  string
}

// LimitTable returns the limits to clients.
func LimitTable() []LimitRow {
	l := DefaultLimits
	bytes := func(n int) string {
		if n >= 1<<20 {
			return fmt.Sprintf("%d MiB", n>>20)
		}
		return fmt.Sprintf("%d KiB", n>>10)
	}
	idle := "none"
	if l.Idle > 0 {
		idle = l.Idle.String()
	}
	rows := [limitCount]LimitRow{
		limitClients:         {Value: strconv.Itoa(l.Clients), What: "connections; one more is told so and closed"},
		limitUnauthenticated: {Value: bytes(l.UnauthenticatedBytes), What: "a command before the password; beyond, the connection is closed"},
		limitArguments:       {Value: strconv.Itoa(l.Arguments), What: "arguments of a command, with its name; beyond, the connection is closed"},
		limitItem:            {Value: bytes(l.ItemBytes), What: "one argument; beyond, the connection is closed"},
		limitKey:             {Value: bytes(l.KeyBytes), What: "the name of a filter or value; beyond, the command is refused"},
		limitCommand:         {Value: bytes(l.CommandBytes), What: "a command as it comes over the wire; beyond, the connection is closed"},
		limitOutput:          {Value: bytes(l.OutputBytes), What: "replies that a client has not read; beyond, the connection is closed"},
		limitIdle:            {Value: idle, What: "time in which a client sends nothing; then the connection is closed"},
		limitMemory:          {Value: "none", What: "memory of all filters and values; beyond, the command is refused with the bytes that it would need"},
	}
	for l := range rows {
		rows[l].Name = limitNames[l]
	}
	return rows[:]
}
