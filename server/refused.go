package server

// groupRefused is the group of commands that are in the table only so that they
// are refused with a sentence. COMMAND does not list them.
const groupRefused = "refused"

const (
	textNoScripts     = "ERR there are no scripts here: send the commands themselves, between MULTI and EXEC if they belong together"
	textNoReplication = "ERR there is no replication here: copy filters by BF.SCANDUMP or DUMP, " +
		"or the directory of the data while the server is down"
	textNoChannels = "ERR there are no channels here"
	textNoMonitor  = "ERR MONITOR is not supported: see the metrics and the log"
	textNoSwapDB   = "ERR databases cannot be exchanged; BF.SWAP exchanges two filters"
)

// refuse returns a handler that answers with an error.
func refuse(text string) func(*Client, [][]byte) {
	return func(c *Client, _ [][]byte) { c.w.Error(text) }
}

// noScript answers EVALSHA. A client that is told that the script is not known sends
// EVAL, and learns there that scripts are not supported.
func noScript(c *Client, _ [][]byte) { c.w.Error("NOSCRIPT No matching script. Please use EVAL.") }

// script is SCRIPT. A client may ask which scripts are loaded.
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
