package server

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

// Plain strings exist because test suites and tools set some, mostly to see how a
// filter's commands answer for a wrong type.

// setting holds the options of SET.
type setting struct {
	nx, xx, get, keep bool
	endWord           string // EX, PX, EXAT or PXAT
	ends              time.Time
}

// parse reads [NX|XX] [GET] [EX n|PX n|EXAT n|PXAT n|KEEPTTL], and returns an error
// text for anything else.
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
		// Only one of these is allowed, but it may be repeated: the last one counts.
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

// stringEnd reads when a string is to expire.
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
	kind, ends := c.kindAndEnd(args[1])
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

// put sets a string and when it expires; zero means never.
func (c *Client) put(key, value []byte, ends time.Time) error {
	s := c.server
	if !ends.IsZero() && !ends.After(time.Now()) {
		_, err := s.store.Drop(s.ctx, string(key))
		return err
	}
	if err := s.store.Set(s.ctx, string(key), bytes.Clone(value)); err != nil {
		return err
	}
	// Also if it is never to expire: the value before it may have had a time to live.
	if _, now := c.kindAndEnd(key); !now.Equal(ends) {
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

// setEX executes SETEX and PSETEX.
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
		c.wrongArity(c.server.commands.find(args[0]))
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

// getAnd replies with a string after calling then with its key.
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
		case !c.fits(len(value)): // a name may be given many times
			return
		case err == nil:
			c.w.Bulk(value)
		default:
			c.w.Null() // also for a filter
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
