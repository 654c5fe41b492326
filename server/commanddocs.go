package server

import "strings"

// A commandText is what COMMAND DOCS says of a command beyond its row in the table.
type commandText struct {
	summary, complexity string
	arguments           []Argument
}

// helpText is for HELP of all commands with subcommands.
var helpText = commandText{"Lists the subcommands.", "O(1)", nil}

// commandTexts are the texts by name, in the order of commandRows.
var commandTexts = map[string]commandText{
	// Filters.
	"bf.reserve": {"Makes an empty filter for so many keys at a rate of false positives", "O(1)", []Argument{
		key("key"),
		double("error_rate"),
		integerArg("capacity"),
		integerArg("expansion").after("EXPANSION").optional(),
		word("NONSCALING").optional(),
		text("layout").after("LAYOUT").optional(),
		text("window").after("WINDOW").optional(),
		integerArg("seconds").after("TTL").optional(),
		oneOf("hash", word("KEYED"), word("PUBLIC")).optional(),
	}},
	"bf.add": {"Adds an item to a Bloom Filter",
		"O(k), where k is the number of hash functions used by the last sub-filter", []Argument{key("key"), text("item")}},
	"bf.madd": {"Adds several items, and makes the filter if the key has none",
		"O(k * n), where k is the number of hash functions and n is the number of items", []Argument{key("key"), text("item").multiple()}},
	"bf.insert": {"Adds several items, and makes a filter as the options say if the key has none",
		"O(k * n), where k is the number of hash functions and n is the number of items", []Argument{
			key("key"),
			integerArg("capacity").after("CAPACITY").optional(),
			double("error").after("ERROR").optional(),
			integerArg("expansion").after("EXPANSION").optional(),
			word("NOCREATE").optional(),
			word("NONSCALING").optional(),
			word("ITEMS"),
			text("item").multiple(),
		}},
	"bf.exists": {"Tells whether an item may have been added: 0 is certain",
		"O(k), where k is the number of hash functions used by the last sub-filter", []Argument{key("key"), text("item")}},
	"bf.mexists": {"Tells of each of several items whether it may have been added: 0 is certain",
		"O(k * n), where k is the number of hash functions and n is the number of items", []Argument{key("key"), text("item").multiple()}},
	"bf.info": {"Tells of a filter how large and how full it is, or one such fact", "O(1)", []Argument{
		key("key"),
		oneOf("single_value",
			word("CAPACITY"),
			word("SIZE"),
			word("FILTERS"),
			word("ITEMS"),
			word("EXPANSION"),
			word("RATE"),
			word("FILL"),
			word("FULLAT"),
			word("LAYOUT"),
		).optional(),
	}},
	"bf.card":  {"Counts the items that were new to a filter when they were added", "O(1)", []Argument{key("key")}},
	"bf.debug": {"Shows the layers of a Bloom Filter", "O(n), where n is the number of layers", []Argument{key("key")}},
	"bf.scandump": {"Answers with the next chunk of a dump, and the iterator that asks for the one behind it",
		"O(n), where n is the capacity", []Argument{key("key"), integerArg("iterator")}},
	"bf.loadchunk": {"Takes a chunk of a dump that BF.SCANDUMP has answered with; the first one makes the filter",
		"O(n), where n is the capacity", []Argument{key("key"), integerArg("iterator"), text("data")}},
	"bf.swap": {"Exchanges what two names stand for, in one step", "O(1)", []Argument{key("key1"), key("key2")}},
	"bf.merge": {"Adds all that other Bloom Filters have to one, which is made if there is none",
		"O(n), where n is the size of the filters", []Argument{key("destination"), key("source").multiple()}},
	"bf.fold": {"Makes a Bloom Filter smaller by a factor, at a higher rate",
		"O(n), where n is the size of the filter", []Argument{key("key"), integerArg("factor")}},

	// Connections.
	"auth":           {"Authenticates the connection.", "O(1)", []Argument{text("username").optional(), text("password")}},
	"client":         {"Commands on connections.", "Depends on the subcommand", nil},
	"client|id":      {"Tells the connection's number.", "O(1)", nil},
	"client|setname": {"Names the connection.", "O(1)", []Argument{text("connection-name")}},
	"client|getname": {"Tells the connection's name.", "O(1)", nil},
	"client|setinfo": {"Tells the server which library the client is.",
		"O(1)", []Argument{oneOf("attr", text("libname").after("LIB-NAME"), text("libver").after("LIB-VER"))}},
	"client|info": {"Describes the connection.", "O(1)", nil},
	"client|list": {"Describes all connections, or some.",
		"O(1)", []Argument{text("client-type").after("TYPE").optional(), integerArg("client-id").after("ID").optional().multiple()}},
	"client|kill": {"Closes connections.", "O(1)", []Argument{text("filter").multiple()}},
	"client|no-evict": {"Means nothing: connections are never closed to save memory.",
		"O(1)", []Argument{oneOf("enabled", word("ON"), word("OFF"))}},
	"client|no-touch": {"Means nothing: filters do not remember when they were used.",
		"O(1)", []Argument{oneOf("enabled", word("ON"), word("OFF"))}},
	"client|reply": {"Switches replies on or off, or skips the next one.",
		"O(1)", []Argument{oneOf("action", word("ON"), word("OFF"), word("SKIP"))}},
	"client|tracking": {"Tells the client when what it has read changes. Needs RESP3.", "O(1)", []Argument{
		oneOf("status", word("ON"), word("OFF")),
		text("prefix").after("PREFIX").optional().multiple(),
		word("BCAST").optional(),
		word("OPTIN").optional(),
		word("OPTOUT").optional(),
		word("NOLOOP").optional(),
	}},
	"client|trackinginfo": {"Tells how the connection tracks.", "O(1)", nil},
	"client|caching":      {"Says whether what the next command reads is tracked.", "O(1)", []Argument{oneOf("mode", word("YES"), word("NO"))}},
	"client|getredir":     {"Tells where invalidations go: here.", "O(1)", nil},
	"client|unblock": {"Answers 0: no command blocks.",
		"O(1)", []Argument{integerArg("client-id"), oneOf("unblock-type", word("TIMEOUT"), word("ERROR")).optional()}},
	"echo": {"Answers the message.", "O(1)", []Argument{text("message")}},
	"hello": {"Chooses RESP2 or RESP3, and can send a password and set a name.", "O(1)", []Argument{
		block("arguments",
			integerArg("protover"),
			block("auth", text("username"), text("password")).after("AUTH").optional(),
			text("clientname").after("SETNAME").optional(),
		).optional(),
	}},
	"ping":   {"Answers PONG, or the message.", "O(1)", []Argument{text("message").optional()}},
	"quit":   {"Closes the connection.", "O(1)", nil},
	"reset":  {"Makes the connection as it was when it was new.", "O(1)", nil},
	"select": {"Chooses one of 16 sets of names.", "O(1)", []Argument{integerArg("index")}},

	// Keys.
	"copy": {"Copies a string. Filters are refused, as RedisBloom refuses them.", "O(N) where N is the length", []Argument{
		key("source"),
		key("destination"),
		integerArg("destination-db").after("DB").optional(),
		word("REPLACE").optional(),
	}},
	"dbsize": {"Counts the keys.", "O(1)", nil},
	"del":    {"Deletes keys.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"dump":   {"Writes a filter of RedisBloom's kind as Redis does.", "O(M) where M is the size of the filter", []Argument{key("key")}},
	"exists": {"Counts the keys that exist.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"expire": {"Lets a key end in so many seconds.", "O(1)", []Argument{
		key("key"),
		integerArg("seconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"expireat": {"Lets a key end at a time, in seconds since 1970.", "O(1)", []Argument{
		key("key"),
		integerArg("unix-time-seconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"expiretime": {"Tells when a key ends, in seconds since 1970.", "O(1)", []Argument{key("key")}},
	"flushall": {"Deletes all keys of all databases.",
		"O(N) where N is the number of keys", []Argument{oneOf("flush-type", word("ASYNC"), word("SYNC")).optional()}},
	"flushdb": {"Deletes all keys of the database.",
		"O(N) where N is the number of keys", []Argument{oneOf("flush-type", word("ASYNC"), word("SYNC")).optional()}},
	"keys":            {"Lists the keys that match a pattern.", "O(N) where N is the number of keys", []Argument{text("pattern")}},
	"object":          {"Commands on how values are kept.", "Depends on the subcommand", nil},
	"object|encoding": {"Tells how a value is kept, in Redis's words.", "O(1)", []Argument{key("key")}},
	"object|freq":     {"Refused: uses are not counted.", "O(1)", []Argument{key("key")}},
	"object|idletime": {"Refused: uses are not remembered.", "O(1)", []Argument{key("key")}},
	"object|refcount": {"Answers 1.", "O(1)", []Argument{key("key")}},
	"persist":         {"Lets a key never end.", "O(1)", []Argument{key("key")}},
	"pexpire": {"Lets a key end in so many milliseconds.", "O(1)", []Argument{
		key("key"),
		integerArg("milliseconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"pexpireat": {"Lets a key end at a time, in milliseconds since 1970.", "O(1)", []Argument{
		key("key"),
		integerArg("unix-time-milliseconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"pexpiretime": {"Tells when a key ends, in milliseconds since 1970.", "O(1)", []Argument{key("key")}},
	"pttl":        {"Tells in how many milliseconds a key ends.", "O(1)", []Argument{key("key")}},
	"randomkey":   {"Tells some key.", "O(1), or the number of keys where few of them are in the database", nil},
	"rename":      {"Gives a key another name, in place of what had it.", "O(1)", []Argument{key("key"), key("newkey")}},
	"renamenx":    {"Gives a key another name, if nothing has it.", "O(1)", []Argument{key("key"), key("newkey")}},
	"restore": {"Reads what DUMP of a filter has written, here or in Redis.", "O(M) where M is the size of the filter", []Argument{
		key("key"),
		integerArg("ttl"),
		text("serialized-value"),
		word("REPLACE").optional(),
		word("ABSTTL").optional(),
		integerArg("seconds").after("IDLETIME").optional(),
		integerArg("frequency").after("FREQ").optional(),
	}},
	"scan": {"Lists the keys piece by piece.", "O(1) for each call", []Argument{
		integerArg("cursor"),
		text("pattern").after("MATCH").optional(),
		integerArg("count").after("COUNT").optional(),
		text("type").after("TYPE").optional(),
	}},
	"touch":  {"Counts the keys that exist.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"ttl":    {"Tells in how many seconds a key ends.", "O(1)", []Argument{key("key")}},
	"type":   {"Tells what a key holds.", "O(1)", []Argument{key("key")}},
	"unlink": {"Deletes keys, as DEL does.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"wait": {"Answers how many replicas have all writes: none, as there are none.",
		"O(1)", []Argument{integerArg("numreplicas"), integerArg("timeout")}},

	// Strings.
	"get":    {"Answers a string.", "O(1) for each key", []Argument{key("key")}},
	"getdel": {"Answers a string and deletes it.", "O(1) for each key", []Argument{key("key")}},
	"mget":   {"Answers several strings.", "O(1) for each key", []Argument{key("key").multiple()}},
	"mset":   {"Sets several strings.", "O(1) for each key", []Argument{block("data", key("key"), text("value")).multiple()}},
	"psetex": {"Sets a string that ends in so many milliseconds.",
		"O(1) for each key", []Argument{key("key"), integerArg("milliseconds"), text("value")}},
	"set": {"Sets a string, whatever the key held before.", "O(1) for each key", []Argument{
		key("key"),
		text("value"),
		oneOf("condition", word("NX"), word("XX")).optional(),
		word("GET").optional(),
		oneOf("expiration",
			integerArg("seconds").after("EX"),
			integerArg("milliseconds").after("PX"),
			integerArg("unix-time-seconds").after("EXAT"),
			integerArg("unix-time-milliseconds").after("PXAT"),
			word("KEEPTTL"),
		).optional(),
	}},
	"setex":  {"Sets a string that ends in so many seconds.", "O(1) for each key", []Argument{key("key"), integerArg("seconds"), text("value")}},
	"setnx":  {"Sets a string if the key holds nothing.", "O(1) for each key", []Argument{key("key"), text("value")}},
	"strlen": {"Tells how long a string is.", "O(1) for each key", []Argument{key("key")}},

	// Transactions.
	"discard": {"Forgets what was queued.", "O(N) where N is the number of queued commands", nil},
	"exec":    {"Executes what was queued, while nobody else executes anything.", "Depends on the commands", nil},
	"multi":   {"Begins a transaction: what follows is queued until EXEC.", "O(1)", nil},
	"unwatch": {"Forgets what is watched.", "O(1)", nil},
	"watch":   {"Lets the next EXEC fail if one of the keys changes before.", "O(1) for each key", []Argument{key("key").multiple()}},

	// The server.
	"acl": {"Commands on users: default, who may do all, and readonly.", "Depends on the subcommand", nil},
	"acl|cat": {"Lists the categories of commands, or the commands of one.",
		"O(N) where N is the number of commands", []Argument{text("category").optional()}},
	"acl|whoami":    {"Tells the connection's user.", "O(N) where N is the number of commands", nil},
	"acl|users":     {"Lists the users.", "O(N) where N is the number of commands", nil},
	"acl|list":      {"Lists the users and what they may do.", "O(N) where N is the number of commands", nil},
	"asking":        {"Answers that this is no cluster.", "O(1)", nil},
	"bgsave":        {"Begins to write a snapshot, if the store can.", "O(1)", []Argument{word("SCHEDULE").optional()}},
	"cluster":       {"Answers that this is no cluster.", "O(1)", []Argument{text("subcommand").multiple()}},
	"command":       {"Describes all commands, for programs.", "O(N) where N is the number of commands", nil},
	"command|count": {"Counts the commands.", "O(N) where N is the number of commands", nil},
	"command|info": {"Describes commands, for programs.",
		"O(N) where N is the number of commands", []Argument{text("command-name").optional().multiple()}},
	"command|docs": {"Describes commands, for people.",
		"O(N) where N is the number of commands", []Argument{text("command-name").optional().multiple()}},
	"command|list": {"Lists the commands.", "O(N) where N is the number of commands", []Argument{
		oneOf("filterby",
			text("module-name").after("MODULE"), text("category").after("ACLCAT"), text("pattern").after("PATTERN"),
		).after("FILTERBY").optional(),
	}},
	"command|getkeys": {"Tells which arguments are keys.",
		"O(N) where N is the number of commands", []Argument{text("command"), text("arg").optional().multiple()}},
	"config": {"Commands on settings.", "Depends on the subcommand", nil},
	"config|get": {"Tells the settings that match patterns.",
		"O(N) where N is the number of settings", []Argument{text("parameter").multiple()}},
	"config|set": {"Changes settings: bf-error-rate, bf-initial-size, bf-expansion-factor, maxclients, timeout.",
		"O(N) where N is the number of settings", []Argument{block("data", text("parameter"), text("value")).multiple()}},
	"config|resetstat": {"Sets the counters of INFO to zero.", "O(N) where N is the number of settings", nil},
	"config|rewrite":   {"Refused: the settings are those of the command line.", "O(N) where N is the number of settings", nil},
	"debug":            {"Refused.", "O(1)", []Argument{text("subcommand").multiple()}},
	"info":             {"Tells what the server is and does.", "O(1)", []Argument{text("section").optional().multiple()}},
	"lastsave":         {"Tells when the last snapshot was written.", "O(1)", nil},
	"latency":          {"Commands on latency, which is not recorded: see the metrics.", "Depends on the subcommand", nil},
	"latency|latest":   {"Answers that there is nothing.", "O(1)", nil},
	"latency|history":  {"Answers that there is nothing.", "O(1)", []Argument{text("event")}},
	"latency|reset":    {"Answers 0.", "O(1)", []Argument{text("event").optional().multiple()}},
	"memory":           {"Commands on memory.", "Depends on the subcommand", nil},
	"memory|usage": {"Tells how many bytes a key and its value take.",
		"O(1)", []Argument{key("key"), integerArg("count").after("SAMPLES").optional()}},
	"memory|doctor": {"Tells how much of the memory is used.", "O(1)", nil},
	"memory|purge":  {"Does nothing: memory is given back as it becomes free.", "O(1)", nil},
	"module":        {"Commands on modules.", "Depends on the subcommand", nil},
	"module|list":   {"Answers that there is RedisBloom's module.", "O(1)", nil},
	"readonly":      {"Answers that this is no cluster.", "O(1)", nil},
	"readwrite":     {"Answers that this is no cluster.", "O(1)", nil},
	"role":          {"Answers that this is a master without replicas.", "O(1)", nil},
	"save":          {"Writes a snapshot, if the store can.", "O(1)", nil},
	"shutdown": {"Ends the server. The store is made durable as it always is, whatever the argument.",
		"O(1)", []Argument{oneOf("save-selector", word("NOSAVE"), word("SAVE")).optional()}},
	"slowlog":       {"Commands on slow commands, which are not recorded.", "Depends on the subcommand", nil},
	"slowlog|get":   {"Answers that there are none.", "O(1)", []Argument{integerArg("count").optional()}},
	"slowlog|len":   {"Answers 0.", "O(1)", nil},
	"slowlog|reset": {"Does nothing.", "O(1)", nil},
	"time":          {"Tells the server's time.", "O(1)", nil},
}

func key(name string) Argument        { return Argument{Name: name, Type: "key"} }
func text(name string) Argument       { return Argument{Name: name, Type: "string"} }
func integerArg(name string) Argument { return Argument{Name: name, Type: "integer"} }
func double(name string) Argument     { return Argument{Name: name, Type: "double"} }

// word is an argument that is a word of its own.
func word(token string) Argument {
	return Argument{Name: strings.ToLower(token), Type: "pure-token", Token: token}
}

// oneOf is one of some arguments, and block all of them.
func oneOf(name string, arguments ...Argument) Argument {
	return Argument{Name: name, Type: "oneof", Arguments: arguments}
}

func block(name string, arguments ...Argument) Argument {
	return Argument{Name: name, Type: "block", Arguments: arguments}
}

// after returns the argument with a word before it.
func (a Argument) after(token string) Argument {
	a.Token = token
	return a
}

func (a Argument) optional() Argument {
	a.Optional = true
	return a
}

func (a Argument) multiple() Argument {
	a.Multiple = true
	return a
}
