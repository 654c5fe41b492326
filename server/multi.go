package server

import "bytes"

// A transaction holds the commands that a client has queued since MULTI.
type transaction struct {
	client   *Client
	commands []queued
	bytes    int
	broken   bool // a command was refused: EXEC must fail
}

type queued struct {
	command *Command
	args    [][]byte
}

// argumentCost is what a queued argument counts in addition to its bytes.
const argumentCost = 32

// queue adds a command that has passed all checks. If the transaction exceeds the limit
// on the length of one command, nothing is kept and EXEC will fail.
func (t *transaction) queue(cmd *Command, args [][]byte) {
	for _, arg := range args {
		t.bytes += argumentCost + len(arg)
	}
	if t.bytes > t.client.server.limits.Load().CommandBytes {
		t.broken, t.commands = true, nil
		return
	}
	kept := make([][]byte, len(args))
	for i, arg := range args {
		kept[i] = bytes.Clone(arg)
	}
	t.commands = append(t.commands, queued{cmd, kept})
	t.client.tracking.shown.queued.Store(int64(len(t.commands)))
}

func (c *Client) beginMulti(args [][]byte) {
	if c.multi != nil {
		c.w.Error("ERR MULTI calls can not be nested")
		return
	}
	c.multi = &transaction{client: c}
	c.w.SimpleString("OK")
}

// exec executes a transaction. Since it has the flag Alone, no client sees it half
// done, and no command is executed between its check of the watched names and its
// commands.
func (c *Client) exec(args [][]byte) {
	t := c.multi
	if t == nil {
		c.w.Error("ERR EXEC without MULTI")
		return
	}
	defer c.endMulti()
	switch {
	case t.broken:
		c.w.Error("EXECABORT Transaction discarded because of previous errors.")
		return
	case c.watchBroken():
		c.w.NullArray()
		return
	}
	c.unwatch() // the transaction's own commands need not check
	start, dropped := len(c.w.Buf), false
	c.w.Array(len(t.commands))
	for _, q := range t.commands {
		if dropped && !q.command.Flags.Has(Write) {
			continue
		}
		if refusal := c.forbidden(q.command); refusal != "" { // an AUTH came in between
			c.w.Error(refusal)
		} else {
			c.call(q.command, q.args)
		}
		// A client that is dropped here gets no replies, so commands that only read are
		// skipped. Those that write are executed: no client may see the transaction
		// half done.
		if dropped = dropped || c.isKilled() || !c.fits(0); dropped {
			c.w.Buf = c.w.Buf[:start]
		}
	}
}

func (c *Client) discard(args [][]byte) {
	if c.multi == nil {
		c.w.Error("ERR DISCARD without MULTI")
		return
	}
	c.endMulti()
	c.w.SimpleString("OK")
}

// endMulti discards the transaction and the watched names.
func (c *Client) endMulti() {
	c.multi = nil
	c.tracking.shown.queued.Store(0)
	c.unwatch()
}

func (c *Client) watchKeys(args [][]byte) {
	if c.multi != nil {
		c.w.Error("ERR WATCH inside MULTI is not allowed")
		return
	}
	for _, key := range args[1:] {
		if !c.watch(key) {
			c.unwatch()
			c.w.Error("ERR the watched keys take too much memory and are no longer watched: send EXEC or UNWATCH more often")
			return
		}
	}
	c.w.SimpleString("OK")
}

func (c *Client) unwatchKeys(args [][]byte) {
	c.unwatch()
	c.w.SimpleString("OK")
}
