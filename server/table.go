package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Command is a row of the table of commands.
type Command struct {
	Name string // lower case: bf.add; for a subcommand only its own word: setname

	// Arity is the number of arguments, including the command's name and a
	// subcommand's, as in Redis: n for exactly n, -n for n or more.
	Arity int

	Flags      Flags
	Categories []string // of ACL, without the @: write, fast, bloom

	// Keys are at FirstKey, FirstKey+KeyStep, and so on up to LastKey, which counts
	// from the end if negative. FirstKey 0: no keys.
	FirstKey, LastKey, KeyStep int

	// Handler executes the command and writes exactly one reply to c.w. The arguments,
	// the name first, are valid only until it returns. It is nil if the command
	// requires one of its Subcommands.
	Handler func(c *Client, args [][]byte)

	Subcommands []*Command

	Summary, Since, Group, Complexity string
	Arguments                         []Argument

	run runKind // of commands that can be in a run

	parent *Command // the command of a subcommand
}

// An Argument is an argument of a command, for COMMAND DOCS.
type Argument struct {
	Name, Type, Token  string // Type: key, string, integer, double, pure-token, oneof, block
	Optional, Multiple bool
	Arguments          []Argument // of oneof and block
}

// Flags say what a command does and where it may be sent.
type Flags uint16

const (
	Write      Flags = 1 << iota // changes values; refused to read-only clients
	ReadOnly                     // reads values
	DenyMemory                   // may need memory
	Fast                         // takes constant time, or time linear in its arguments
	Admin                        // concerns the server; refused to read-only clients
	NoAuth                       // allowed before AUTH
	NoQueue                      // executed at once, also after MULTI
	Alone                        // executed while no other command is
	Module                       // of the module bf
	Loading                      // harmless at any time, like PING
	Long                         // takes long: executed on a detour, see detour.go
	Payload                      // an argument may be as long as a filter
)

// Has reports whether all flags of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// A table holds all commands by name. It does not change once made.
type table map[string]*Command

// newTable makes the table from the rows in commands.go and the texts in
// commanddocs.go.
func newTable() table {
	t := table{}
	for _, r := range commandRows {
		about := commandTexts[r.name]
		parent, name, isSub := strings.Cut(r.name, "|")
		if isSub && name == "help" {
			about = helpText
		}
		cmd := &Command{
			Name: r.name, Arity: r.arity, Flags: r.flags, Categories: strings.Fields(r.categories),
			FirstKey: r.keys[0], LastKey: r.keys[1], KeyStep: r.keys[2], Handler: r.handler, Since: r.since, Group: r.group,
			Summary: about.summary, Complexity: about.complexity, Arguments: about.arguments, run: runKinds[r.name],
		}
		if !isSub {
			t[cmd.Name] = cmd
			continue
		}
		cmd.Name, cmd.parent = name, t[parent]
		cmd.parent.Subcommands = append(cmd.parent.Subcommands, cmd)
	}
	return t
}

// listed returns the commands that COMMAND lists, by name.
func (t table) listed() []*Command {
	rows := slices.SortedFunc(maps.Values(t), func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(rows, func(cmd *Command) bool { return cmd.Group == groupRefused })
}

// fullName returns the name as it appears in messages: bf.add, client|setname.
func (cmd *Command) fullName() string {
	if cmd.parent != nil {
		return cmd.parent.Name + "|" + cmd.Name
	}
	return cmd.Name
}

// takes reports whether a command may have n arguments.
func (cmd *Command) takes(n int) bool {
	if cmd.Arity < 0 {
		return n >= -cmd.Arity
	}
	return n == cmd.Arity
}

// keys calls f with each of the command's keys.
func (cmd *Command) keys(args [][]byte, f func(key []byte)) {
	if cmd.FirstKey == 0 {
		return
	}
	last := cmd.LastKey
	if last < 0 {
		last += len(args)
	}
	for i := cmd.FirstKey; i <= last && i < len(args); i += max(cmd.KeyStep, 1) {
		f(args[i])
	}
}

// longestName is the length of the longest name in the table, with room for growth.
const longestName = 32

// find returns the row with a name, in any letter case, nil if there is none.
func (t table) find(name []byte) *Command {
	var lower [longestName]byte
	if len(name) > len(lower) {
		return nil
	}
	return t[string(lowered(&lower, name))]
}

// sub returns the row of the subcommand with a name, nil if there is none.
func (cmd *Command) sub(name []byte) *Command {
	var lower [longestName]byte
	if len(name) > len(lower) {
		return nil
	}
	word := lowered(&lower, name)
	for _, sub := range cmd.Subcommands {
		if sub.Name == string(word) {
			return sub
		}
	}
	return nil
}

func lowered(scratch *[longestName]byte, name []byte) []byte {
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		scratch[i] = c
	}
	return scratch[:len(name)]
}

// is reports whether arg is the word, in any letter case. word is in upper case.
func is(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i, c := range arg {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// integer reads an integer as Redis does: without spaces, plus sign or leading
// zeros.
func integer(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(text)
}
