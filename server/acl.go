package server

import (
	"slices"
	"strings"
)

func init() {
	row := func(name string, arity int, flags Flags, handler func(*Client, [][]byte), summary string, arguments ...Argument) *Command {
		categories := []string{"slow"}
		if flags.Has(Admin) {
			categories = []string{"admin", "slow", "dangerous"}
		}
		return &Command{Name: name, Arity: arity, Flags: flags | Loading, Categories: categories, Handler: handler,
			Since: "6.0.0", Group: "server", Complexity: "O(N) where N is the number of commands", Summary: summary, Arguments: arguments}
	}
	register(&Command{Name: "acl", Arity: -2, Categories: []string{"slow"}, Since: "6.0.0", Group: "server", Complexity: "Depends on the subcommand",
		Summary: "Commands on users: default, who may do all, and readonly.",
		Subcommands: []*Command{
			row("cat", -2, 0, (*Client).aclCat, "Lists the categories of commands, or the commands of one.", Argument{Name: "category", Type: "string", Optional: true}),
			row("whoami", 2, 0, func(c *Client, args [][]byte) { c.w.BulkString(c.description().user) }, "Tells the connection's user."),
			row("users", 2, Admin, func(c *Client, args [][]byte) { c.bulks(c.server.users()) }, "Lists the users."),
			row("list", 2, Admin, (*Client).aclList, "Lists the users and what they may do."),
			helpOf("acl"),
		}})
}

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
	for _, cmd := range Commands() {
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
