package server

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/store"
)

// Errors that many commands answer with. The words are Redis's and RedisBloom's:
// clients compare them.
const (
	textWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	textNotFound  = "ERR not found"
	textNoKey     = "ERR no such key"
	textSyntax    = "ERR syntax error"
	textInteger   = "ERR value is not an integer or out of range"
	textNoAuth    = "NOAUTH Authentication required."
	textFull      = "ERR non scaling filter is full"
)

// dispatch checks, queues or calls one command and applies CLIENT REPLY. cmd is nil
// for an unknown name.
func (b *batch) dispatch(c *Client, cmd *Command, args [][]byte) {
	start := len(c.w.Buf)
	skip := c.replies == replySkip
	if skip {
		c.replies = replyAll
	}
	if cmd, refusal := c.admit(cmd, args); refusal != "" {
		c.w.Error(refusal)
		b.tally.count(b.server.commands.find(args[0]), true)
		if c.multi != nil {
			c.multi.broken = true
		}
	} else if cmd != nil {
		switch {
		case c.multi != nil && !cmd.Flags.Has(NoQueue):
			c.multi.queue(cmd, args)
			c.w.SimpleString("QUEUED")
		case cmd.isLong(args):
			c.detour = &detour{command: cmd, args: slices.Clone(args), silent: skip || c.replies != replyAll}
			return
		case cmd.Flags.Has(Alone):
			b.server.alone.RUnlock()
			b.server.alone.Lock()
			c.call(cmd, args)
			b.server.alone.Unlock()
			b.server.alone.RLock()
		default:
			c.call(cmd, args)
		}
	}
	if skip || c.replies != replyAll {
		c.w.Buf = c.w.Buf[:start]
	}
	c.settle()
}

// call executes a command that was admitted, for dispatch or EXEC.
func (c *Client) call(cmd *Command, args [][]byte) {
	s := c.server
	c.lastCommand.Store(cmd)
	c.batch.touched = true
	args = c.scope(cmd, args)
	c.beforeCall(cmd, args)
	at := c.batch.tally.enter(c)
	c.unchanged = false
	if c.batch.detours && cmd.Flags.Has(Write) {
		s.beginChange(cmd, args)
		defer s.endChange(cmd, args)
	}
	start := len(c.w.Buf)
	c.failed = nil // what failed after the reply of another command is not this one's
	cmd.Handler(c, args)
	if err := c.failed; err != nil {
		c.failed, c.w.Buf = nil, c.w.Buf[:start]
		c.storeError(err)
	}
	c.batch.tally.leave(cmd, c, at)
	c.afterCall(cmd, args)
	if cmd.Flags.Has(Write) && cmd.run == runNone && !c.unchanged && s.observers.Load() > 0 {
		cmd.keys(args, func(key []byte) { s.keyWritten(c, key) }) // runs have called it
	}
}

// admit returns the row of a command, down to the subcommand, or why it is refused. It
// returns neither if the client is to be closed without a reply.
func (c *Client) admit(cmd *Command, args [][]byte) (row *Command, refusal string) {
	if cmd == nil {
		if is(args[0], "POST") || is(args[0], "HOST:") {
			c.server.log.Warn("closed a connection that speaks HTTP: a web page may be trying to send commands", "client", c.addr)
			c.end()
			return nil, ""
		}
		return nil, unknownCommand(args)
	}
	if len(cmd.Subcommands) > 0 && len(args) > 1 {
		sub := cmd.sub(args[1])
		if sub == nil {
			return nil, "ERR unknown subcommand '" + clip(args[1]) + "'. Try " + strings.ToUpper(cmd.Name) + " HELP."
		}
		cmd = sub
	}
	if cmd.Handler == nil || !cmd.takes(len(args)) {
		if cmd.Name == "exec" {
			c.endMulti()
			return nil, "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(cmd.arityError(), "ERR ")
		}
		return nil, cmd.arityError()
	}
	if refusal := c.forbidden(cmd); refusal != "" {
		return nil, refusal
	}
	limit := c.server.limits.Load().KeyBytes
	cmd.keys(args, func(key []byte) {
		if len(key) > limit {
			c.server.metrics.refuse(limitKey)
			refusal = "ERR a key of " + strconv.Itoa(len(key)) + " bytes is too long" + limitSuffix(limitKey, limit)
		}
	})
	if refusal != "" {
		return nil, refusal
	}
	return cmd, ""
}

// forbidden returns why the client may not execute a command, "" if it may.
func (c *Client) forbidden(cmd *Command) (refusal string) {
	switch {
	case c.access == accessNone && !cmd.Flags.Has(NoAuth):
		return textNoAuth
	case c.access == accessRead && cmd.Flags&(Write|Admin) != 0:
		return "NOPERM User " + readOnlyUser + " has no permissions to run the '" + cmd.fullName() + "' command"
	}
	return ""
}

// arityError returns the error for too few or too many arguments.
func (cmd *Command) arityError() string {
	return "ERR wrong number of arguments for '" + cmd.fullName() + "' command"
}

// wrongArity replies with that error.
func (c *Client) wrongArity(cmd *Command) { c.w.Error(cmd.arityError()) }

// maxQuoted is how many bytes of a client's input an error quotes.
const maxQuoted = 128

// unknownCommand returns the error for a command that is not in the table. It quotes
// the beginning of the command.
func unknownCommand(args [][]byte) string {
	text := "ERR unknown command '" + clip(args[0]) + "', with args beginning with: "
	for quoted := 0; len(args) > 1 && quoted < maxQuoted; {
		args = args[1:]
		word := args[0][:min(len(args[0]), maxQuoted-quoted)]
		text += "'" + string(word) + "' "
		quoted += len(word) + len("'' ")
	}
	return text
}

func clip(arg []byte) string { return string(arg[:min(len(arg), maxQuoted)]) }

// storeError replies with an error of the store or of a filter.
func (c *Client) storeError(err error) {
	c.server.metrics.refuseMemory(err)
	c.w.Error(storeErrorText(err))
}

func storeErrorText(err error) string {
	switch {
	case errors.Is(err, store.ErrWrongKind):
		return textWrongType
	case errors.Is(err, store.ErrNotFound):
		return textNotFound
	case errors.Is(err, store.ErrFull):
		return textFull
	case errors.Is(err, store.ErrMemory):
		return "OOM " + reason(err)
	}
	return "ERR " + reason(err)
}

// reason returns the text of an error without package names, which mean nothing to a
// client.
func reason(err error) string { return human.TrimPrefixes(err.Error()) }

// groupRefused is the group of commands that are in the table only to be refused with
// an explanation. COMMAND does not list them.
const groupRefused = "refused"

const (
	textNoScripts     = "ERR there are no scripts here: send the commands themselves, between MULTI and EXEC if they belong together"
	textNoReplication = "ERR there is no replication here: copy filters by BF.SCANDUMP or DUMP, " +
		"or the data directory while the server is stopped"
	textNoChannels = "ERR there are no channels here"
	textNoMonitor  = "ERR MONITOR is not supported: see the metrics and the log"
	textNoSwapDB   = "ERR databases cannot be exchanged; BF.SWAP exchanges two filters"
)

// refuse returns a handler that replies with an error.
func refuse(text string) func(*Client, [][]byte) {
	return func(c *Client, _ [][]byte) { c.w.Error(text) }
}

// noScript executes EVALSHA. The client sends EVAL when it hears that the script is
// unknown, and that says that scripts are not supported.
func noScript(c *Client, _ [][]byte) { c.w.Error("NOSCRIPT No matching script. Please use EVAL.") }

// script executes SCRIPT. A client may ask which scripts are loaded: none.
func (c *Client) script(args [][]byte) {
	switch {
	case is(args[1], "EXISTS") && len(args) > 2:
		c.w.Array(len(args) - 2)
		for range args[2:] {
			c.w.Integer(0)
		}
	case is(args[1], "FLUSH"):
		c.w.SimpleString("OK")
	default:
		c.w.Error(textNoScripts)
	}
}
