package server

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

// Plain strings are here because test suites and tools set some, most of all to
// see what a filter's commands say of a wrong type.

func init() {
	key, value := Argument{Name: "key", Type: "key"}, Argument{Name: "value", Type: "string"}
	row := func(name string, arity int, flags Flags, last, step int, handler func(*Client, [][]byte), since, summary string, arguments ...Argument) {
		categories := []string{"read", "string"}
		if flags.Has(Write) {
			categories = []string{"write", "string"}
		}
		if flags.Has(Fast) {
			categories = append(categories, "fast")
		} else {
			categories = append(categories, "slow")
		}
		register(&Command{Name: name, Arity: arity, Flags: flags, Categories: categories, FirstKey: 1, LastKey: last, KeyStep: step, Handler: handler,
			Since: since, Group: "string", Complexity: "O(1) for each key", Summary: summary, Arguments: arguments})
	}
	condition := oneOf("condition", "NX", "XX")
	condition.Optional = true
	row("set", -3, Write|DenyMemory|Alone, 1, 1, (*Client).set, "1.0.0", "Sets a string, whatever the key held before.", key, value, condition, word("GET"),
		Argument{Name: "expiration", Type: "oneof", Optional: true, Arguments: []Argument{{Name: "seconds", Type: "integer", Token: "EX"}, {Name: "milliseconds", Type: "integer", Token: "PX"},
			{Name: "unix-time-seconds", Type: "integer", Token: "EXAT"}, {Name: "unix-time-milliseconds", Type: "integer", Token: "PXAT"}, {Name: "keepttl", Type: "pure-token", Token: "KEEPTTL"}}})
	row("setnx", 3, Write|DenyMemory|Fast|Alone, 1, 1, (*Client).setNX, "1.0.0", "Sets a string if the key holds nothing.", key, value)
	row("setex", 4, Write|DenyMemory|Alone, 1, 1, setEX(time.Second), "2.0.0", "Sets a string that ends in so many seconds.", key, Argument{Name: "seconds", Type: "integer"}, value)
	row("psetex", 4, Write|DenyMemory|Alone, 1, 1, setEX(time.Millisecond), "2.6.0", "Sets a string that ends in so many milliseconds.", key, Argument{Name: "milliseconds", Type: "integer"}, value)
	row("mset", -3, Write|DenyMemory|Alone, -1, 2, (*Client).mset, "1.0.1", "Sets several strings.", Argument{Name: "data", Type: "block", Multiple: true, Arguments: []Argument{key, value}})
	row("get", 2, ReadOnly|Fast, 1, 1, (*Client).get, "1.0.0", "Answers a string.", key)
	row("getdel", 2, Write|Fast|Alone, 1, 1, (*Client).getDel, "6.2.0", "Answers a string and deletes it.", key)
	row("mget", -2, ReadOnly|Fast, -1, 1, (*Client).mget, "1.0.0", "Answers several strings.", Argument{Name: "key", Type: "key", Multiple: true})
	row("strlen", 2, ReadOnly|Fast, 1, 1, (*Client).strlen, "2.2.0", "Tells how long a string is.", key)
}

// setting is what the options of SET say.
type setting struct {
	nx, xx, get, keep bool
	endWord           string // EX, PX, EXAT or PXAT
	ends              time.Time
}

// parse reads [NX|XX] [GET] [EX n|PX n|EXAT n|PXAT n|KEEPTTL], and returns the text
// of an error for anything else.
func (o *setting) parse(options [][]byte) (refusal string) {
	for i := 0; i < len(options); i++ {
		switch {
		case is(options[i], "NX"):
			o.nx = true
		case is(options[i], "XX"):
			o.xx = true
		case is(options[i], "GET"):
			o.get = true
		case is(options[i], "KEEPTTL") && o.endWord == "":
			o.keep = true
		// Only one of these, but that as often as one likes: the last one counts.
		case o.keep || i+1 == len(options) || o.endWord != "" && !is(options[i], o.endWord):
			return textSyntax
		default:
			o.endWord = strings.ToUpper(clip(options[i]))
			if o.ends, refusal = setTime(options[i], options[i+1]); refusal != "" {
				return refusal
			}
			i++
		}
	}
	if o.nx && o.xx {
		return textSyntax
	}
	return ""
}

// setTime reads EX, PX, EXAT or PXAT and its number.
func setTime(word, number []byte) (at time.Time, refusal string) {
	switch {
	case is(word, "EX"):
		return stringEnd(number, time.Second, true, "set")
	case is(word, "PX"):
		return stringEnd(number, time.Millisecond, true, "set")
	case is(word, "EXAT"):
		return stringEnd(number, time.Second, false, "set")
	case is(word, "PXAT"):
		return stringEnd(number, time.Millisecond, false, "set")
	}
	return at, textSyntax
}

// stringEnd reads when a string is to end.
func stringEnd(number []byte, unit time.Duration, relative bool, command string) (at time.Time, refusal string) {
	n, ok := integer(number)
	if !ok {
		return at, textInteger
	}
	at, ok = endTime(n, unit, relative)
	if !ok || n <= 0 {
		return at, "ERR invalid expire time in '" + command + "' command"
	}
	return at, ""
}

func (c *Client) set(args [][]byte) {
	var o setting
	if refusal := o.parse(args[3:]); refusal != "" {
		c.w.Error(refusal)
		return
	}
	kind, ends := c.server.store.Kind(args[1])
	var old []byte
	if o.get && kind != store.None {
		value, err := c.server.store.Get(args[1])
		if err != nil {
			c.storeError(err)
			return
		}
		old = bytes.Clone(value)
	}
	if o.keep {
		o.ends = ends
	}
	done := !(o.nx && kind != store.None || o.xx && kind == store.None)
	c.unchanged = !done
	if done {
		if err := c.put(args[1], args[2], o.ends); err != nil {
			c.storeError(err)
			return
		}
	}
	switch {
	case o.get && kind != store.None:
		c.w.Bulk(old)
	case o.get || !done:
		c.w.Null()
	default:
		c.w.SimpleString("OK")
	}
}

// put sets a string and when it ends, zero for never.
func (c *Client) put(key, value []byte, ends time.Time) error {
	s := c.server
	if !ends.IsZero() && !ends.After(time.Now()) {
		_, err := s.store.Drop(s.ctx, string(key))
		return err
	}
	if err := s.store.Set(s.ctx, string(key), bytes.Clone(value)); err != nil {
		return err
	}
	// Also where it shall not end: what had the name before may have been to.
	if _, now := s.store.Kind(key); !now.Equal(ends) {
		return s.store.Expire(s.ctx, string(key), ends)
	}
	return nil
}

func (c *Client) setNX(args [][]byte) {
	if c.kind(args[1]) != store.None {
		c.unchanged = true
		c.w.Integer(0)
		return
	}
	if err := c.put(args[1], args[2], time.Time{}); err != nil {
		c.storeError(err)
		return
	}
	c.w.Integer(1)
}

// setEX is SETEX and PSETEX.
func setEX(unit time.Duration) func(*Client, [][]byte) {
	name := "setex"
	if unit == time.Millisecond {
		name = "psetex"
	}
	return func(c *Client, args [][]byte) {
		at, refusal := stringEnd(args[2], unit, true, name)
		if refusal != "" {
			c.w.Error(refusal)
			return
		}
		if err := c.put(args[1], args[3], at); err != nil {
			c.storeError(err)
			return
		}
		c.w.SimpleString("OK")
	}
}

func (c *Client) mset(args [][]byte) {
	if len(args)%2 == 0 {
		c.wrongArity(find(args[0]))
		return
	}
	for i := 1; i < len(args); i += 2 {
		if err := c.put(args[i], args[i+1], time.Time{}); err != nil {
			c.storeError(err)
			return
		}
	}
	c.w.SimpleString("OK")
}

func (c *Client) get(args [][]byte) { c.getAnd(args, func([]byte) error { return nil }) }

func (c *Client) getDel(args [][]byte) {
	c.getAnd(args, func(key []byte) error {
		_, err := c.server.store.Drop(c.server.ctx, string(key))
		return err
	})
}

// getAnd answers a string when then has done something with its key.
func (c *Client) getAnd(args [][]byte, then func(key []byte) error) {
	value, err := c.server.store.Get(args[1])
	if errors.Is(err, store.ErrNotFound) {
		c.unchanged = true
		c.w.Null()
		return
	}
	if err == nil {
		err = then(args[1])
	}
	if err != nil {
		c.storeError(err)
		return
	}
	c.w.Bulk(value)
}

func (c *Client) mget(args [][]byte) {
	c.w.Array(len(args) - 1)
	for _, key := range args[1:] {
		value, err := c.server.store.Get(key)
		switch {
		case !c.fits(len(value)): // a name may be there again and again
			return
		case err == nil:
			c.w.Bulk(value)
		default:
			c.w.Null() // also where there is a filter
		}
	}
}

func (c *Client) strlen(args [][]byte) {
	value, err := c.server.store.Get(args[1])
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.storeError(err)
		return
	}
	c.w.Integer(int64(len(value)))
}
