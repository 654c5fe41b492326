package server

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/bloomery/bloom/store"
)

// limit is one of those that clients meet; see [Limits].
type limit uint8

const (
	limitClients limit = iota
	limitUnauthenticated
	limitArguments
	limitItem
	limitPayload
	limitInline
	limitKey
	limitCommand
	limitOutput
	limitBuffers
	limitIdle
	limitMemory
	limitCount
)

// limitNames are the names of flags and of the label limit.
var limitNames = [limitCount]string{"clients", "unauthenticated-bytes", "arguments", "item-bytes", "payload-bytes", "inline-bytes",
	"key-bytes", "command-bytes", "output-bytes", "buffer-bytes", "idle", "memory"}

// limitSuffix names a limit behind the text of a refusal.
func limitSuffix(l limit, most int) string {
	return fmt.Sprintf(" (limit %s: %d)", limitNames[l], most)
}

// refuse counts what a limit was in the way of.
func (m *metrics) refuse(l limit) { m.refused[l].Add(1) }

// refuseMemory counts an error of the store, if it is that of its limit.
func (m *metrics) refuseMemory(err error) {
	if errors.Is(err, store.ErrMemory) {
		m.refuse(limitMemory)
	}
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
		if n >= 1<<30 && n%(1<<30) == 0 {
			return fmt.Sprintf("%d GiB", n>>30)
		}
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
		limitClients:         {Value: strconv.Itoa(l.Clients), What: "connections; further ones are refused"},
		limitUnauthenticated: {Value: bytes(l.UnauthenticatedBytes), What: "a command before authentication; beyond, the connection is closed"},
		limitArguments:       {Value: strconv.Itoa(l.Arguments), What: "arguments of a command, including its name; beyond, the connection is closed"},
		limitItem:            {Value: bytes(l.ItemBytes), What: "one argument; beyond, the connection is closed"},
		limitPayload:         {Value: bytes(l.PayloadBytes), What: "the payload of RESTORE or BF.LOADCHUNK; beyond, the connection is closed. DUMP of a larger one is refused"},
		limitInline:          {Value: bytes(l.InlineBytes), What: "an inline command; beyond, the connection is closed"},
		limitKey:             {Value: bytes(l.KeyBytes), What: "the name of a filter or value; beyond, the command is refused"},
		limitCommand:         {Value: bytes(l.CommandBytes), What: "a command as it comes over the wire; beyond, the connection is closed"},
		limitOutput:          {Value: bytes(l.OutputBytes), What: "replies that a client has not read; beyond, the connection is closed"},
		limitBuffers:         {Value: bytes(l.BufferBytes), What: "incomplete commands and unread replies of all connections together, at most half of --memory; beyond, the connection that holds the most is closed"},
		limitIdle:            {Value: idle, What: "time without a command from a client; then the connection is closed"},
		limitMemory:          {Value: "none", What: "memory of all filters and values; beyond, the command is refused, and the error names the bytes needed"},
	}
	for l := range rows {
		rows[l].Name = limitNames[l]
	}
	return rows[:]
}
