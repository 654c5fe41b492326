package server

// groupRefused is the group of commands that are in the table only so that they
// are refused with a sentence. COMMAND does not list them.
const groupRefused = "refused"

func init() {
	refuse := func(sentence string, names ...string) {
		for _, name := range names {
			register(&Command{Name: name, Arity: -1, Group: groupRefused, Handler: func(c *Client, args [][]byte) { c.w.Error("ERR " + sentence) }})
		}
	}
	refuse("there are no scripts here: send the commands themselves, between MULTI and EXEC if they belong together",
		"eval", "eval_ro", "fcall", "fcall_ro", "function")
	refuse("there is no replication here: copy filters by BF.SCANDUMP or DUMP, or the directory of the data while the server is down",
		"sync", "psync", "replconf", "replicaof", "slaveof", "failover")
	refuse("there are no channels here", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "publish", "spublish", "pubsub")
	refuse("MONITOR is not supported: see the metrics and the log", "monitor")
	refuse("databases cannot be exchanged; BF.SWAP exchanges two filters", "swapdb")

	// A client that sends EVALSHA sends EVAL when the script is not known, and is
	// told there. It may also ask which scripts are.
	noScript := func(c *Client, args [][]byte) { c.w.Error("NOSCRIPT No matching script. Please use EVAL.") }
	register(
		&Command{Name: "evalsha", Arity: -3, Group: groupRefused, Handler: noScript},
		&Command{Name: "evalsha_ro", Arity: -3, Group: groupRefused, Handler: noScript},
		&Command{Name: "script", Arity: -2, Group: groupRefused, Handler: func(c *Client, args [][]byte) {
			switch {
			case is(args[1], "EXISTS") && len(args) > 2:
				c.w.Array(len(args) - 2)
				for range args[2:] {
					c.w.Integer(0)
				}
			case is(args[1], "FLUSH"):
				c.w.SimpleString("OK")
			default:
				c.w.Error("ERR there are no scripts here: send the commands themselves, between MULTI and EXEC if they belong together")
			}
		}},
	)
}
