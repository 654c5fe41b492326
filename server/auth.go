package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The user names that clients may send with a password. A password alone suffices.
const (
	fullUser     = "default"
	readOnlyUser = "readonly"
)

const (
	textWrongPassword = "WRONGPASS invalid username-password pair or user is disabled."
	textNoPassword    = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
)

func (c *Client) auth(args [][]byte) {
	var refusal string
	switch len(args) {
	case 2:
		if c.server.config.Password == "" {
			refusal = textNoPassword
			break
		}
		refusal = c.authenticate(nil, args[1])
	case 3:
		refusal = c.authenticate(args[1], args[2])
	default:
		refusal = textSyntax
	}
	if refusal != "" {
		c.w.Error(refusal)
		return
	}
	c.w.SimpleString("OK")
}

// authenticate gives the client the access that the password grants, and returns "".
// Otherwise it returns the text of an error, and the client keeps its access. user is
// nil if only a password was sent. If no password is set, any is right for the user
// default, as in Redis.
func (c *Client) authenticate(user, password []byte) (refusal string) {
	config := &c.server.config
	full := equalSecret(password, config.Password)
	read := equalSecret(password, config.ReadOnlyPassword)
	switch {
	case (user == nil || string(user) == fullUser) && (full || config.Password == ""):
		c.grant(accessFull, fullUser)
	case (user == nil || string(user) == readOnlyUser) && read && config.ReadOnlyPassword != "":
		c.grant(accessRead, readOnlyUser)
	default:
		c.server.wrongPassword(c.addr)
		return textWrongPassword
	}
	return ""
}

// wrongPasswords counts wrong passwords and logs them, at most one line a second, so
// that guessing does not fill the log.
type wrongPasswords struct {
	count  atomic.Int64
	told   atomic.Int64 // the count that was logged last
	toldAt atomic.Int64 // seconds since 1970
}

// wrongPassword counts a wrong password from a client. The log line says how many there
// were since the last one.
func (s *Server) wrongPassword(addr string) {
	w := &s.wrong
	count, now := w.count.Add(1), time.Now().Unix()
	if last := w.toldAt.Load(); now != last && w.toldAt.CompareAndSwap(last, now) {
		s.log.Warn("wrong password", "client", addr, "count", count-w.told.Swap(count))
	}
}

// deauthenticate resets the client to its initial access: none if a password is set,
// full otherwise.
func (c *Client) deauthenticate() {
	if c.server.config.Password == "" {
		c.grant(accessFull, fullUser)
	} else {
		c.grant(accessNone, fullUser)
	}
}

func (c *Client) grant(a access, user string) {
	c.access = a
	c.parser.SetLimits(c.server.parserLimits(a))
	c.describe(func(about *about) { about.user = user })
	c.settle()
}

// equalSecret compares in a time that reveals nothing about the secret, not even its
// length.
func equalSecret(given []byte, secret string) bool {
	a, b := sha256.Sum256(given), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func (c *Client) aclWhoAmI([][]byte) { c.w.BulkString(c.description().user) }
func (c *Client) aclUsers([][]byte)  { c.bulks(c.server.users()) }

// users are the users that a client can be.
func (s *Server) users() []string {
	if s.config.ReadOnlyPassword != "" {
		return []string{fullUser, readOnlyUser}
	}
	return []string{fullUser}
}

func (c *Client) aclCat(args [][]byte) {
	if len(args) > 3 {
		c.w.Error(textSyntax)
		return
	}
	categories := map[string][]string{}
	for _, cmd := range c.server.commands.listed() {
		for _, row := range append([]*Command{cmd}, cmd.Subcommands...) {
			for _, category := range row.Categories {
				categories[category] = append(categories[category], row.fullName())
			}
		}
	}
	if len(args) == 3 {
		names, ok := categories[strings.ToLower(string(args[2]))]
		if !ok {
			c.w.Error("ERR Unknown category '" + clip(args[2]) + "'")
			return
		}
		c.bulks(names)
		return
	}
	var names []string
	for category := range categories {
		names = append(names, category)
	}
	slices.Sort(names)
	c.bulks(names)
}

// aclList replies with the users as ACL rules, without their passwords.
func (c *Client) aclList(args [][]byte) {
	var lines []string
	for _, user := range c.server.users() {
		line := "user " + user + " on "
		if c.server.config.Password == "" {
			line += "nopass "
		}
		if user == readOnlyUser {
			line += "~* &* +@all -@write -@admin"
		} else {
			line += "~* &* +@all"
		}
		lines = append(lines, line)
	}
	c.bulks(lines)
}
