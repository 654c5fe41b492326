package server

import (
	"slices"
	"strings"
)

// Commands returns the table of commands, without those that are only refused. It is
// for programs that print documents.
func Commands() []*Command { return newTable().listed() }

func (c *Client) commandAll([][]byte) { c.commandInfos(c.server.commands.listed()) }

// Syntax returns the command with its arguments, as documents write them: SET key value
// [NX|XX] [GET].
func (cmd *Command) Syntax() string {
	return strings.ToUpper(strings.ReplaceAll(cmd.fullName(), "|", " ")) + syntax(cmd.Arguments)
}

func syntax(arguments []Argument) string {
	var text strings.Builder
	for _, a := range arguments {
		text.WriteString(" " + a.syntax())
	}
	return text.String()
}

func (a Argument) syntax() string {
	var parts []string
	for _, inner := range a.Arguments {
		parts = append(parts, inner.syntax())
	}
	var text string
	switch a.Type {
	case "oneof":
		text = strings.Join(parts, "|")
	case "block":
		text = strings.Join(parts, " ")
	case "pure-token":
	default:
		text = a.Name
	}
	text = strings.TrimSpace(a.Token + " " + text)
	if a.Multiple {
		text += " [" + text + " ...]"
	}
	if a.Optional {
		text = "[" + text + "]"
	}
	return text
}

// findFull looks up a name as COMMAND writes it: client|setname.
func (t table) findFull(name []byte) *Command {
	parent, sub, hasSub := strings.Cut(string(name), "|")
	cmd := t.find([]byte(parent))
	if cmd == nil || cmd.Group == groupRefused {
		return nil
	}
	if hasSub {
		return cmd.sub([]byte(sub))
	}
	return cmd
}

func (c *Client) commandCount(args [][]byte) { c.w.Integer(int64(len(c.server.commands.listed()))) }

func (c *Client) commandInfo(args [][]byte) {
	if len(args) == 2 {
		c.commandInfos(c.server.commands.listed())
		return
	}
	rows := make([]*Command, 0, len(args)-2)
	for _, name := range args[2:] {
		rows = append(rows, c.server.commands.findFull(name))
	}
	c.commandInfos(rows)
}

func (c *Client) commandInfos(rows []*Command) {
	c.w.Array(len(rows))
	for _, row := range rows {
		if !c.fits(0) { // a name may be given many times
			return
		}
		if row == nil {
			c.w.Null()
		} else {
			c.infoOf(row)
		}
	}
}

// flagWords are COMMAND INFO's names of the flags, in its order.
var flagWords = []struct {
	flag Flags
	word string
}{
	{Write, "write"}, {ReadOnly, "readonly"}, {DenyMemory, "denyoom"}, {Module, "module"}, {Admin, "admin"}, {Loading, "loading"},
	{Loading, "stale"}, {Fast, "fast"}, {NoAuth, "no_auth"},
}

// infoOf writes a row of COMMAND INFO.
func (c *Client) infoOf(cmd *Command) {
	w := &c.w
	w.Array(10)
	w.BulkString(cmd.fullName())
	w.Integer(int64(cmd.Arity))
	var flags []string
	for _, f := range flagWords {
		if cmd.Flags.Has(f.flag) {
			flags = append(flags, f.word)
		}
	}
	c.statusSet(flags, "")
	w.Integer(int64(cmd.FirstKey))
	w.Integer(int64(cmd.LastKey))
	w.Integer(int64(cmd.KeyStep))
	c.statusSet(cmd.Categories, "@")
	w.Set(0) // tips
	if cmd.FirstKey == 0 {
		w.Set(0)
	} else {
		w.Set(1)
		c.keySpec(cmd)
	}
	w.Set(len(cmd.Subcommands))
	for _, sub := range cmd.Subcommands {
		c.infoOf(sub)
	}
}

func (c *Client) statusSet(words []string, prefix string) {
	c.w.Set(len(words))
	for _, word := range words {
		c.w.SimpleString(prefix + word)
	}
}

// keySpec writes the positions of the keys as Redis 7 does.
func (c *Client) keySpec(cmd *Command) {
	w := &c.w
	access, last := "RW", cmd.LastKey
	if !cmd.Flags.Has(Write) {
		access = "RO"
	}
	if last > 0 {
		last -= cmd.FirstKey
	}
	w.Map(3)
	w.BulkString("flags")
	c.statusSet([]string{access}, "")
	w.BulkString("begin_search")
	w.Map(2)
	w.BulkString("type")
	w.BulkString("index")
	w.BulkString("spec")
	w.Map(1)
	w.BulkString("index")
	w.Integer(int64(cmd.FirstKey))
	w.BulkString("find_keys")
	w.Map(2)
	w.BulkString("type")
	w.BulkString("range")
	w.BulkString("spec")
	w.Map(3)
	w.BulkString("lastkey")
	w.Integer(int64(last))
	w.BulkString("keystep")
	w.Integer(int64(cmd.KeyStep))
	w.BulkString("limit")
	w.Integer(0)
}

func (c *Client) commandDocs(args [][]byte) {
	rows := c.server.commands.listed()
	if len(args) > 2 {
		rows = nil
		for _, name := range args[2:] {
			if cmd := c.server.commands.findFull(name); cmd != nil {
				rows = append(rows, cmd)
			}
		}
	}
	c.docsOf(rows)
}

// docsOf writes the map of a command in COMMAND DOCS.
func (c *Client) docsOf(rows []*Command) {
	w := &c.w
	w.Map(len(rows))
	for _, cmd := range rows {
		if !c.fits(0) {
			return
		}
		w.BulkString(cmd.fullName())
		fields := [][2]string{{"summary", cmd.Summary}, {"since", cmd.Since}, {"group", cmd.Group}, {"complexity", cmd.Complexity}}
		if cmd.Flags.Has(Module) {
			fields = append(fields, [2]string{"module", "bf"})
		}
		more := 0
		if len(cmd.Arguments) > 0 {
			more++
		}
		if len(cmd.Subcommands) > 0 {
			more++
		}
		w.Map(len(fields) + more)
		for _, f := range fields {
			w.BulkString(f[0])
			w.BulkString(f[1])
		}
		if len(cmd.Arguments) > 0 {
			w.BulkString("arguments")
			c.argumentDocs(cmd.Arguments)
		}
		if len(cmd.Subcommands) > 0 {
			w.BulkString("subcommands")
			c.docsOf(cmd.Subcommands)
		}
	}
}

func (c *Client) argumentDocs(arguments []Argument) {
	w := &c.w
	w.Array(len(arguments))
	for _, a := range arguments {
		nested := a.Type == "oneof" || a.Type == "block"
		fields := [][2]string{{"name", a.Name}, {"type", a.Type}}
		if !nested {
			fields = append(fields, [2]string{"display_text", a.Name})
		}
		if a.Token != "" {
			fields = append(fields, [2]string{"token", a.Token})
		}
		var flags []string
		if a.Optional {
			flags = append(flags, "optional")
		}
		if a.Multiple {
			flags = append(flags, "multiple")
		}
		count := len(fields)
		for _, there := range []bool{a.Type == "key", len(flags) > 0, nested} {
			if there {
				count++
			}
		}
		w.Map(count)
		for _, f := range fields {
			w.BulkString(f[0])
			w.BulkString(f[1])
		}
		if a.Type == "key" {
			w.BulkString("key_spec_index")
			w.Integer(0)
		}
		if len(flags) > 0 {
			w.BulkString("flags")
			c.statusSet(flags, "")
		}
		if nested {
			w.BulkString("arguments")
			c.argumentDocs(a.Arguments)
		}
	}
}

// commandList executes COMMAND LIST [FILTERBY MODULE name|ACLCAT category|PATTERN p].
func (c *Client) commandList(args [][]byte) {
	fits := func(*Command) bool { return true }
	if len(args) > 2 {
		if len(args) != 5 || !is(args[2], "FILTERBY") {
			c.w.Error(textSyntax)
			return
		}
		value := strings.ToLower(string(args[4]))
		switch {
		case is(args[3], "MODULE"):
			fits = func(cmd *Command) bool { return value == "bf" && cmd.Flags.Has(Module) }
		case is(args[3], "ACLCAT"):
			fits = func(cmd *Command) bool { return slices.Contains(cmd.Categories, value) }
		case is(args[3], "PATTERN"):
			pattern, ok := c.glob([]byte(value))
			if !ok {
				return
			}
			fits = func(cmd *Command) bool { return pattern.matches(cmd.fullName()) }
		default:
			c.w.Error(textSyntax)
			return
		}
	}
	var names []string
	for _, cmd := range c.server.commands.listed() {
		for _, row := range append([]*Command{cmd}, cmd.Subcommands...) {
			if fits(row) && (row == cmd || len(args) > 2) {
				names = append(names, row.fullName())
			}
		}
	}
	c.bulks(names)
}

func (c *Client) commandGetKeys(args [][]byte) {
	cmd := c.server.commands.findFull(args[2])
	if cmd != nil && len(cmd.Subcommands) > 0 && len(args) > 3 {
		cmd = cmd.sub(args[3])
	}
	switch {
	case cmd == nil:
		c.w.Error("ERR Invalid command specified")
		return
	case cmd.FirstKey == 0:
		c.w.Error("ERR The command has no key arguments")
		return
	case !cmd.takes(len(args) - 2):
		c.w.Error("ERR Invalid number of arguments specified for command")
		return
	}
	var keys []string
	cmd.keys(args[2:], func(key []byte) { keys = append(keys, string(key)) })
	c.bulks(keys)
}
