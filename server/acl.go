package server

import (
	"slices"
	"strings"
)

func (c *Client) aclWhoAmI([][]byte) { c.w.BulkString(c.description().user) }
func (c *Client) aclUsers([][]byte)  { c.bulks(c.server.users()) }

// users are those that a client can be.
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

// aclList answers the users as ACL rules, without their passwords.
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
