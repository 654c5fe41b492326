package server

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (c *Client) clientUnblock(args [][]byte) {
	_, ok := integer(args[2])
	switch {
	case len(args) > 4:
		c.w.Error("ERR unknown subcommand or wrong number of arguments for '" + clip(args[1]) + "'. Try CLIENT HELP.")
	case len(args) == 4 && !is(args[3], "TIMEOUT") && !is(args[3], "ERROR"):
		c.w.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	case !ok:
		c.w.Error(textInteger)
	default:
		c.w.Integer(0)
	}
}

func (c *Client) ok([][]byte)         { c.w.SimpleString("OK") }
func (c *Client) zero([][]byte)       { c.w.Integer(0) }
func (c *Client) emptyArray([][]byte) { c.w.Array(0) }

func (c *Client) clientID(args [][]byte) { c.w.Integer(c.id) }

func (c *Client) clientSetName(args [][]byte) {
	if !isName(args[2]) {
		c.w.Error(textClientName)
		return
	}
	name := string(args[2])
	c.describe(func(a *about) { a.name = name })
	c.w.SimpleString("OK")
}

func (c *Client) clientGetName(args [][]byte) {
	if name := c.description().name; name != "" {
		c.w.BulkString(name)
	} else {
		c.w.Null()
	}
}

func (c *Client) clientSetInfo(args [][]byte) {
	value := string(args[3])
	var set func(*about)
	switch {
	case is(args[2], "LIB-NAME"):
		set = func(a *about) { a.libName = value }
	case is(args[2], "LIB-VER"):
		set = func(a *about) { a.libVersion = value }
	default:
		c.w.Error("ERR Unrecognized option '" + clip(args[2]) + "'")
		return
	}
	if !isName(args[3]) {
		c.w.Error("ERR " + strings.ToLower(clip(args[2])) + " cannot contain spaces, newlines or special characters.")
		return
	}
	c.describe(set)
	c.w.SimpleString("OK")
}

// line describes the client as CLIENT LIST does. Fields that a Go program cannot know,
// or that nobody uses, are zero. Any goroutine may call it.
func (c *Client) line() string {
	a := c.description()
	shown := &c.tracking.shown
	flags := ""
	if shown.queued.Load() > 0 {
		flags += "x"
	}
	if shown.noEvict.Load() {
		flags += "e"
	}
	if shown.tracks.Load() {
		flags += "t"
	}
	if shown.noTouch.Load() {
		flags += "T"
	}
	if c.away.Load() {
		flags += "b" // blocked is the closest match
	}
	if flags == "" {
		flags = "N"
	}
	command := "NULL"
	if cmd := c.lastCommand.Load(); cmd != nil {
		command = cmd.fullName()
	}
	redirect, queued := -1, int64(-1)
	if shown.tracks.Load() {
		redirect = 0
	}
	if n := shown.queued.Load(); n > 0 {
		queued = n
	}
	now := time.Now()
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=0 psub=0 ssub=0 multi=%d watch=%d "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.id, c.addr, c.laddr, a.name, int(now.Sub(c.since).Seconds()), max(now.Unix()-c.lastActive.Load(), 0), flags, a.db,
		queued, shown.watched.Load(), command, a.user, redirect, a.protocol, a.libName, a.libVersion)
}

func (c *Client) clientInfo(args [][]byte) { c.w.Verbatim("txt", c.line()) }

func (c *Client) clientList(args [][]byte) {
	var ids []int64
	switch {
	case len(args) == 2:
	case len(args) == 4 && is(args[2], "TYPE"):
		switch {
		case is(args[3], "NORMAL"):
		case isClientType(string(args[3])):
			ids = []int64{} // there are none
		default:
			c.w.Error("ERR Unknown client type '" + clip(args[3]) + "'")
			return
		}
	case len(args) > 3 && is(args[2], "ID"):
		for _, arg := range args[3:] {
			id, ok := integer(arg)
			if !ok {
				c.w.Error("ERR Invalid client ID")
				return
			}
			ids = append(ids, id)
		}
	default:
		c.w.Error(textSyntax)
		return
	}
	var list strings.Builder
	c.server.eachClient(func(other *Client) {
		if ids == nil || slices.Contains(ids, other.id) {
			list.WriteString(other.line())
		}
	})
	c.w.Verbatim("txt", list.String())
}

const textNoClient = "ERR No such client"

// clientKill executes CLIENT KILL addr, or CLIENT KILL with filters.
func (c *Client) clientKill(args [][]byte) {
	if len(args) == 3 {
		killed := false
		c.server.eachClient(func(other *Client) {
			if !killed && other.addr == string(args[2]) {
				killed = true
				c.killOther(other)
			}
		})
		if killed {
			c.w.SimpleString("OK")
		} else {
			c.w.Error(textNoClient)
		}
		return
	}
	matches, skipSelf, refusal := c.server.killFilter(args[2:])
	if refusal != "" {
		c.w.Error(refusal)
		return
	}
	killed := int64(0)
	c.server.eachClient(func(other *Client) {
		if matches(other) && !(skipSelf && other == c) {
			killed++
			c.killOther(other)
		}
	})
	c.w.Integer(killed)
}

// killOther closes a connection; if it is the client's own, after the reply.
func (c *Client) killOther(other *Client) {
	if other == c {
		c.end()
	} else {
		other.kill()
	}
}

// killFilter reads pairs of a filter and its value. All filters must match.
func (s *Server) killFilter(pairs [][]byte) (matches func(*Client) bool, skipSelf bool, refusal string) {
	if len(pairs)%2 != 0 {
		return nil, false, textSyntax
	}
	var all []func(*Client) bool
	skipSelf = true
	for i := 0; i < len(pairs); i += 2 {
		value := string(pairs[i+1])
		number, isNumber := integer(pairs[i+1])
		switch {
		case is(pairs[i], "ID") && (!isNumber || number < 1):
			return nil, false, "ERR client-id should be greater than 0"
		case is(pairs[i], "ID"):
			all = append(all, func(c *Client) bool { return c.id == number })
		case is(pairs[i], "ADDR"):
			all = append(all, func(c *Client) bool { return c.addr == value })
		case is(pairs[i], "LADDR"):
			all = append(all, func(c *Client) bool { return c.laddr == value })
		case is(pairs[i], "USER") && !slices.Contains(s.users(), value):
			return nil, false, "ERR No such user '" + clip(pairs[i+1]) + "'"
		case is(pairs[i], "USER"):
			all = append(all, func(c *Client) bool { return c.description().user == value })
		case is(pairs[i], "TYPE") && !isClientType(value):
			return nil, false, "ERR Unknown client type '" + clip(pairs[i+1]) + "'"
		case is(pairs[i], "TYPE"):
			all = append(all, func(*Client) bool { return strings.EqualFold(value, "normal") })
		case is(pairs[i], "MAXAGE") && isNumber:
			all = append(all, func(c *Client) bool { return int64(time.Since(c.since).Seconds()) >= number })
		case is(pairs[i], "SKIPME") && strings.EqualFold(value, "yes"):
			skipSelf = true
		case is(pairs[i], "SKIPME") && strings.EqualFold(value, "no"):
			skipSelf = false
		default:
			return nil, false, textSyntax
		}
	}
	return func(c *Client) bool {
		for _, match := range all {
			if !match(c) {
				return false
			}
		}
		return true
	}, skipSelf, ""
}

// isClientType reports whether Redis has clients of this type. Here all clients are
// normal.
func isClientType(name string) bool {
	return slices.Contains([]string{"normal", "master", "replica", "slave", "pubsub"}, strings.ToLower(name))
}

// onOff reads ON or OFF, and replies with an error to anything else.
func (c *Client) onOff(arg []byte) (on, ok bool) {
	switch {
	case is(arg, "ON"):
		return true, true
	case is(arg, "OFF"):
		return false, true
	}
	c.w.Error(textSyntax)
	return false, false
}

func (c *Client) clientNoEvict(args [][]byte) {
	if on, ok := c.onOff(args[2]); ok {
		c.tracking.shown.noEvict.Store(on)
		c.w.SimpleString("OK")
	}
}

func (c *Client) clientNoTouch(args [][]byte) {
	if on, ok := c.onOff(args[2]); ok {
		c.tracking.shown.noTouch.Store(on)
		c.w.SimpleString("OK")
	}
}

// clientReply sets what dispatch does with replies. The OK of OFF and SKIP is
// suppressed, too.
func (c *Client) clientReply(args [][]byte) {
	switch {
	case is(args[2], "ON"):
		c.replies = replyAll
	case is(args[2], "OFF"):
		c.replies = replyNone
	case is(args[2], "SKIP"):
		if c.replies != replyNone {
			c.replies = replySkip
		}
	default:
		c.w.Error(textSyntax)
		return
	}
	c.w.SimpleString("OK")
}
