package server

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

// typeName returns the reply of TYPE: RedisBloom's name of the filters that take the same
// commands.
func typeName(kind store.Kind) string {
	switch kind {
	case store.None:
		return "none"
	case store.String:
		return "string"
	case store.Cuckoo:
		return "MBbloomCF"
	}
	return "MBbloom--"
}

func (c *Client) kind(key []byte) store.Kind {
	kind, _ := c.kindAndEnd(key)
	return kind
}

// unknownKind is the kind of a key when the store does not answer: not None, so that no
// handler replaces what may be there.
const unknownKind store.Kind = 255

// kindAndEnd returns what a key stands for, and when it expires. If the store does not
// answer, the command fails, whatever its handler makes of unknownKind.
func (c *Client) kindAndEnd(key []byte) (store.Kind, time.Time) {
	kind, ends, err := c.server.store.Kind(key)
	if err != nil {
		c.failed = err
		return unknownKind, time.Time{}
	}
	return kind, ends
}

func (c *Client) del(args [][]byte) {
	names := make([]string, len(args)-1)
	for i, key := range args[1:] {
		names[i] = string(key)
	}
	var there [][]byte // those that exist, to notify observers
	if c.server.observers.Load() > 0 {
		for _, key := range args[1:] {
			if c.kind(key) != store.None {
				there = append(there, key)
			}
		}
	}
	n, err := c.server.store.Drop(c.server.ctx, names...)
	for _, key := range there {
		c.server.keyWritten(c, key)
	}
	c.unchanged = true // except for these
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Integer(int64(n))
}

func (c *Client) exists(args [][]byte) {
	n := int64(0)
	for _, key := range args[1:] {
		if c.kind(key) != store.None {
			n++
		}
	}
	c.w.Integer(n)
}

func (c *Client) typeOf(args [][]byte) { c.w.SimpleString(typeName(c.kind(args[1]))) }

// rename executes RENAME and RENAMENX.
func (c *Client) rename(args [][]byte) {
	from, to := string(args[1]), string(args[2])
	onlyFree := is(args[0], "RENAMENX")
	switch {
	case c.kind(args[1]) == store.None:
		c.unchanged = true
		c.w.Error(textNoKey)
		return
	case onlyFree && c.kind(args[2]) != store.None:
		c.unchanged = true
		c.w.Integer(0)
		return
	case from == to:
		c.unchanged = true
	default:
		if err := c.server.store.Rename(c.server.ctx, from, to); err != nil {
			c.storeError(err)
			return
		}
	}
	if onlyFree {
		c.w.Integer(1)
	} else {
		c.w.SimpleString("OK")
	}
}

// copyKey executes COPY source destination [DB n] [REPLACE].
func (c *Client) copyKey(args [][]byte) {
	c.unchanged = true // except for the destination, which may be in another database
	to, replace := args[2], false
	for i := 3; i < len(args); i++ {
		switch {
		case is(args[i], "REPLACE"):
			replace = true
		case is(args[i], "DB") && i+1 < len(args):
			i++
			db, ok := c.database(args[i])
			if !ok {
				return
			}
			_, plain := splitName(string(to))
			to = scopedName(db, []byte(plain))
		default:
			c.w.Error(textSyntax)
			return
		}
	}
	s := c.server.store
	kind, expires := c.kindAndEnd(args[1])
	switch {
	case string(args[1]) == string(to):
		c.w.Error("ERR source and destination objects are the same")
		return
	case kind == store.None, !replace && c.kind(to) != store.None:
		c.w.Integer(0)
		return
	case kind != store.String:
		c.w.Error("ERR not supported for this module key")
		return
	}
	value, err := s.Get(args[1])
	if err == nil {
		err = s.Set(c.server.ctx, string(to), slices.Clone(value))
	}
	if err == nil && !expires.IsZero() {
		err = s.Expire(c.server.ctx, string(to), expires)
	}
	if err != nil {
		c.storeError(err)
		return
	}
	if c.server.observers.Load() > 0 {
		c.server.keyWritten(c, to)
	}
	c.w.Integer(1)
}

func (c *Client) dbSize(args [][]byte) {
	count, err := c.server.keysIn()
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Integer(int64(count[c.db]))
}

// keys executes KEYS.
func (c *Client) keys(args [][]byte) {
	pattern, ok := c.glob(args[1])
	if !ok {
		return
	}
	var found []string
	for name := range c.allNames {
		if db, key := splitName(name); db == c.db && pattern.matches(key) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	c.bulks(slices.Compact(found))
}

// scan executes SCAN cursor [MATCH pattern] [COUNT n] [TYPE type].
func (c *Client) scan(args [][]byte) {
	cursor, ok := parseCursor(string(args[1]))
	if !ok {
		c.w.Error("ERR invalid cursor")
		return
	}
	pattern, kind, count := newGlob("*"), "", int64(10)
	for i := 2; i < len(args); i += 2 {
		switch {
		case i+1 == len(args):
			c.w.Error(textSyntax)
			return
		case is(args[i], "MATCH"):
			if pattern, ok = c.glob(args[i+1]); !ok {
				return
			}
		case is(args[i], "TYPE"):
			kind = string(args[i+1])
		case is(args[i], "COUNT"):
			n, ok := integer(args[i+1])
			if !ok {
				c.w.Error(textInteger)
				return
			}
			if n < 1 {
				c.w.Error(textSyntax)
				return
			}
			count = min(n, 1<<20)
		default:
			c.w.Error(textSyntax)
			return
		}
	}
	names, next, err := c.server.list(cursor, int(count))
	if err != nil {
		c.storeError(err)
		return
	}
	found := make([]string, 0, len(names))
	for _, name := range names {
		db, key := splitName(name)
		if db == c.db && pattern.matches(key) && (kind == "" || strings.EqualFold(typeName(c.kind([]byte(name))), kind)) {
			found = append(found, key)
		}
	}
	c.w.Array(2)
	c.w.BulkString(strconv.FormatUint(next, 10))
	c.bulks(found)
}

// parseCursor reads a cursor as Redis does, by strtoul: empty is 0, and -1 is the
// highest cursor.
func parseCursor(text string) (cursor uint64, ok bool) {
	digits := strings.TrimPrefix(text, "+")
	digits, negative := strings.CutPrefix(digits, "-")
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if len(text)-len(digits) > 1 || err != nil {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// randomTries is how often the store is asked for a random name before all names are
// listed, when most are in other databases.
const randomTries = 20

// randomKey picks one of the database's names, uniformly.
func (c *Client) randomKey(args [][]byte) {
	if st, ok := c.server.store.(store.Randomizer); ok {
		for range randomTries {
			name, ok := st.Random()
			if db, key := splitName(name); ok && db == c.db && !isAside(name) {
				c.w.BulkString(key)
				return
			}
		}
	}
	picked, seen := "", 0
	for name := range c.allNames {
		if db, key := splitName(name); db == c.db {
			if seen++; rand.IntN(seen) == 0 {
				picked = key
			}
		}
	}
	if seen == 0 {
		c.w.Null()
		return
	}
	c.w.BulkString(picked)
}

// isFlush reports whether the arguments are valid for FLUSHALL, and replies with an
// error if not.
func (c *Client) isFlush(args [][]byte) bool {
	if len(args) > 2 || len(args) == 2 && !is(args[1], "ASYNC") && !is(args[1], "SYNC") {
		c.w.Error(textSyntax)
		return false
	}
	return true
}

func (c *Client) flushAll(args [][]byte) {
	if !c.isFlush(args) {
		return
	}
	changed := c.server.watchedNames(-1)
	if err := c.server.store.Clear(c.server.ctx); err != nil {
		c.storeError(err)
		return
	}
	c.server.allWritten(changed)
	c.w.SimpleString("OK")
}

func (c *Client) flushDB(args [][]byte) {
	if !c.isFlush(args) {
		return
	}
	s := c.server
	changed := s.watchedNames(c.db)
	others, err := s.scoped(c.db)
	switch {
	case err != nil:
	case others:
		var names []string
		err = s.eachName(func(name string) bool {
			if db, _ := splitName(name); db == c.db {
				names = append(names, name)
			}
			return true
		})
		if err == nil {
			_, err = s.store.Drop(s.ctx, names...)
		}
	default:
		err = s.store.Clear(s.ctx)
	}
	if err != nil {
		c.storeError(err)
		return
	}
	s.allWritten(changed)
	c.w.SimpleString("OK")
}

// bulks replies with an array of strings.
func (c *Client) bulks(texts []string) {
	c.w.Array(len(texts))
	for _, text := range texts {
		c.w.BulkString(text)
	}
}
