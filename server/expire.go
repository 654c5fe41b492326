package server

import (
	"math"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

// left returns the milliseconds that remain until at. A Duration would overflow after
// 292 years.
func left(at time.Time) int64 { return max(at.UnixMilli()-time.Now().UnixMilli(), 0) }

// seconds rounds milliseconds to seconds.
func seconds(ms int64) int64 { return ms/1000 + (ms%1000+500)/1000 }

func secondsLeft(at time.Time) int64 { return seconds(left(at)) }
func unixSeconds(at time.Time) int64 { return seconds(at.UnixMilli()) }

// endTime returns when a key expires, or false if that overflows an int64 of
// milliseconds since 1970, as in Redis. Times before 1970 count as 1970.
func endTime(n int64, unit time.Duration, relative bool) (time.Time, bool) {
	step := unit.Milliseconds()
	if n > math.MaxInt64/step || n < math.MinInt64/step {
		return time.Time{}, false
	}
	ms := n * step
	if relative {
		now := time.Now().UnixMilli()
		if ms > math.MaxInt64-now {
			return time.Time{}, false
		}
		ms += now
	}
	return time.UnixMilli(max(ms, 1)), true
}

// expireBy executes EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
func expireBy(unit time.Duration, relative bool) func(*Client, [][]byte) {
	return func(c *Client, args [][]byte) {
		n, ok := integer(args[2])
		if !ok {
			c.w.Error(textInteger)
			return
		}
		var allowed func(now, then time.Time) bool
		if allowed, ok = c.expireCondition(args[3:]); !ok {
			return
		}
		at, ok := endTime(n, unit, relative)
		if !ok {
			c.w.Error("ERR invalid expire time in '" + strings.ToLower(string(args[0])) + "' command")
			return
		}
		kind, now := c.kindAndEnd(args[1])
		if kind == store.None || !allowed(now, at) {
			c.unchanged = true
			c.w.Integer(0)
			return
		}
		var err error
		if at.After(time.Now()) {
			err = c.server.store.Expire(c.server.ctx, string(args[1]), at)
		} else {
			_, err = c.server.store.Drop(c.server.ctx, string(args[1]))
		}
		if err != nil {
			c.storeError(err)
			return
		}
		c.w.Integer(1)
	}
}

// expireCondition reads NX, XX, GT and LT, and replies with an error to anything else.
// A key that never expires counts as one that expires after any time.
func (c *Client) expireCondition(words [][]byte) (allowed func(now, then time.Time) bool, ok bool) {
	var nx, xx, gt, lt bool
	for _, arg := range words {
		switch {
		case is(arg, "NX"):
			nx = true
		case is(arg, "XX"):
			xx = true
		case is(arg, "GT"):
			gt = true
		case is(arg, "LT"):
			lt = true
		default:
			c.w.Error("ERR Unsupported option " + clip(arg))
			return nil, false
		}
	}
	switch {
	case nx && (xx || gt || lt):
		c.w.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
		return nil, false
	case gt && lt:
		c.w.Error("ERR GT and LT options at the same time are not compatible")
		return nil, false
	}
	return func(now, then time.Time) bool {
		never := now.IsZero()
		return !(nx && !never || xx && never || gt && (never || !then.After(now)) || lt && !never && !then.Before(now))
	}, true
}

// lifetime replies with -2 for a key that does not exist, and -1 for one that does not
// expire.
func lifetime(tell func(at time.Time) int64) func(*Client, [][]byte) {
	return func(c *Client, args [][]byte) {
		kind, at := c.kindAndEnd(args[1])
		switch {
		case kind == store.None:
			c.w.Integer(-2)
		case at.IsZero():
			c.w.Integer(-1)
		default:
			c.w.Integer(tell(at))
		}
	}
}

func (c *Client) persist(args [][]byte) {
	kind, at := c.kindAndEnd(args[1])
	if kind == store.None || at.IsZero() {
		c.unchanged = true
		c.w.Integer(0)
		return
	}
	if err := c.server.store.Expire(c.server.ctx, string(args[1]), time.Time{}); err != nil {
		c.storeError(err)
		return
	}
	c.w.Integer(1)
}
