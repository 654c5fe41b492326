package server

import (
	"strings"
)

func (c *Client) ping(args [][]byte) {
	switch len(args) {
	case 1:
		c.w.SimpleString("PONG")
	case 2:
		c.w.Bulk(args[1])
	default:
		c.wrongArity(c.server.commands.find(args[0]))
	}
}

func (c *Client) echo(args [][]byte) { c.w.Bulk(args[1]) }

// hello executes HELLO [version [AUTH user password] [SETNAME name]]. It changes
// nothing unless every part is valid.
func (c *Client) hello(args [][]byte) {
	version := c.w.Protocol
	var user, password, name []byte
	if len(args) > 1 {
		n, ok := integer(args[1])
		if !ok {
			c.w.Error("ERR Protocol version is not an integer or out of range")
			return
		}
		if n != 2 && n != 3 {
			c.w.Error("NOPROTO unsupported protocol version")
			return
		}
		version = int(n)
	}
	for i := 2; i < len(args); i++ {
		switch {
		case is(args[i], "AUTH") && i+2 < len(args):
			user, password = args[i+1], args[i+2]
			i += 2
		case is(args[i], "SETNAME") && i+1 < len(args):
			name = args[i+1]
			i++
			if !isName(name) {
				c.w.Error(textClientName)
				return
			}
		default:
			c.w.Error("ERR Syntax error in HELLO option '" + clip(args[i]) + "'")
			return
		}
	}
	if user != nil {
		if refusal := c.authenticate(user, password); refusal != "" {
			c.w.Error(refusal)
			return
		}
	}
	if c.access == accessNone {
		c.w.Error("NOAUTH HELLO must be called with the client already authenticated, " +
			"otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client " +
			"and select the RESP protocol version at the same time")
		return
	}
	if name != nil {
		c.describe(func(a *about) { a.name = string(name) })
	}
	if version == 2 {
		c.stopTracking() // RESP2 has no invalidation messages
	}
	c.setProtocol(version)
	c.w.Map(7)
	c.w.BulkString("server")
	c.w.BulkString("redis")
	c.w.BulkString("version")
	c.w.BulkString(redisVersion)
	c.w.BulkString("proto")
	c.w.Integer(int64(version))
	c.w.BulkString("id")
	c.w.Integer(c.id)
	c.w.BulkString("mode")
	c.w.BulkString("standalone")
	c.w.BulkString("role")
	c.w.BulkString("master")
	c.w.BulkString("modules")
	c.modules()
}

func (c *Client) selectDB(args [][]byte) {
	if db, ok := c.database(args[1]); ok {
		c.setDB(db)
		c.w.SimpleString("OK")
	}
}

// database reads the number of a database, and replies with an error if it is not one.
func (c *Client) database(arg []byte) (db int, ok bool) {
	n, ok := integer(arg)
	switch {
	case !ok:
		c.w.Error(textInteger)
		return 0, false
	case n < 0 || n >= databases:
		c.w.Error("ERR DB index is out of range")
		return 0, false
	}
	return int(n), true
}

func (c *Client) quit(args [][]byte) {
	c.w.SimpleString("OK")
	c.end()
}

func (c *Client) reset(args [][]byte) {
	c.endMulti()
	c.stopTracking()
	c.setProtocol(2)
	c.setDB(0)
	c.replies = replyAll
	c.tracking.shown.noEvict.Store(false)
	c.tracking.shown.noTouch.Store(false)
	c.describe(func(a *about) { a.name = "" })
	c.deauthenticate()
	c.w.SimpleString("RESET")
}

const textClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// isName reports whether text can be in a line of CLIENT LIST.
func isName(text []byte) bool {
	return !strings.ContainsFunc(string(text), func(r rune) bool { return r < '!' || r > '~' })
}
