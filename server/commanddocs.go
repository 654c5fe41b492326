package server

import "strings"

// A commandText is what COMMAND DOCS says of a command beyond its row in the table.
type commandText struct {
	summary, complexity string
	arguments           []Argument
}

// helpText is the text of HELP, for every command with subcommands.
var helpText = commandText{"Lists the subcommands.", "O(1)", nil}

// commandTexts are the texts by name, in the order of commandRows.
var commandTexts = map[string]commandText{
	// Filters.
	"bf.reserve": {"Creates an empty Bloom filter with a capacity and an error rate", "O(1)", []Argument{
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
	"bf.madd": {"Adds items to a Bloom filter, and creates the filter if the key does not exist",
		"O(k * n), where k is the number of hash functions and n is the number of items", []Argument{key("key"), text("item").multiple()}},
	"bf.insert": {"Adds items to a Bloom filter, and creates it with the given options if the key does not exist",
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
	"bf.exists": {"Checks whether an item may be in a Bloom filter; 0 means certainly not",
		"O(k), where k is the number of hash functions used by the last sub-filter", []Argument{key("key"), text("item")}},
	"bf.mexists": {"Checks whether each item may be in a Bloom filter; 0 means certainly not",
		"O(k * n), where k is the number of hash functions and n is the number of items", []Argument{key("key"), text("item").multiple()}},
	"bf.info": {"Returns information about a Bloom filter, or a single value", "O(1)", []Argument{
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
			word("LOADED"),
			word("REMOVED"),
			word("REFUSED"),
			word("STUCK"),
		).optional(),
	}},
	"bf.card":  {"Returns the number of items that were new to a Bloom filter when they were added", "O(1)", []Argument{key("key")}},
	"bf.debug": {"Describes the layers of a Bloom filter", "O(n), where n is the number of layers", []Argument{key("key")}},
	"bf.scandump": {"Returns the next chunk of a dump, and the iterator for the chunk after it",
		"O(n), where n is the capacity", []Argument{key("key"), integerArg("iterator")}},
	"bf.loadchunk": {"Loads a chunk returned by BF.SCANDUMP; the first chunk creates the filter",
		"O(n), where n is the capacity", []Argument{key("key"), integerArg("iterator"), text("data")}},
	"bf.swap": {"Swaps two keys atomically", "O(1)", []Argument{key("key1"), key("key2")}},
	"bf.merge": {"Merges Bloom filters into one, and creates it if the key does not exist",
		"O(n), where n is the size of the filters", []Argument{key("destination"), key("source").multiple()}},
	"bf.fold": {"Shrinks a Bloom filter by a factor, at a higher error rate",
		"O(n), where n is the size of the filter", []Argument{key("key"), integerArg("factor")}},
	"bf.del": {"Removes an item from a Bloom filter of layout COUNTING; 0 means that it was certainly not there",
		"O(k), where k is the number of hash functions used by the last sub-filter", []Argument{key("key"), text("item")}},
	"bf.mdel": {"Removes items from a Bloom filter of layout COUNTING; 0 means that an item was certainly not there",
		"O(k * n), where k is the number of hash functions and n is the number of items", []Argument{key("key"), text("item").multiple()}},
	"bf.count": {"Returns how often an item is in a Bloom filter of layout COUNTING, or more; 15 means at least 15 times",
		"O(k), where k is the number of hash functions used by the last sub-filter", []Argument{key("key"), text("item")}},

	// Cuckoo filters.
	"cf.reserve": {"Creates an empty Cuckoo filter", "O(1)", []Argument{
		key("key"),
		integerArg("capacity"),
		integerArg("bucketsize").after("BUCKETSIZE").optional(),
		integerArg("maxiterations").after("MAXITERATIONS").optional(),
		integerArg("expansion").after("EXPANSION").optional(),
	}},
	"cf.add": {"Adds an item to a Cuckoo filter, once more if it is there already",
		"O(k + i), where k is the number of sub-filters and i is maxIterations", []Argument{key("key"), text("item")}},
	"cf.addnx": {"Adds an item to a Cuckoo filter unless it may be there already",
		"O(k + i), where k is the number of sub-filters and i is maxIterations", []Argument{key("key"), text("item")}},
	"cf.insert": {"Adds items to a Cuckoo filter, and creates it if the key does not exist",
		"O(n * (k + i)), where n is the number of items, k of sub-filters, and i is maxIterations", insertArguments},
	"cf.insertnx": {"Adds those items to a Cuckoo filter that are certainly not there, and creates it if the key does not exist",
		"O(n * (k + i)), where n is the number of items, k of sub-filters, and i is maxIterations", insertArguments},
	"cf.exists": {"Checks whether an item may be in a Cuckoo filter; 0 means certainly not",
		"O(k), where k is the number of sub-filters", []Argument{key("key"), text("item")}},
	"cf.mexists": {"Checks whether each item may be in a Cuckoo filter; 0 means certainly not",
		"O(k * n), where k is the number of sub-filters and n is the number of items", []Argument{key("key"), text("item").multiple()}},
	"cf.del": {"Removes an item from a Cuckoo filter once; 0 means that it was certainly not there",
		"O(k), where k is the number of sub-filters", []Argument{key("key"), text("item")}},
	"cf.count": {"Returns how often an item may be in a Cuckoo filter",
		"O(k), where k is the number of sub-filters", []Argument{key("key"), text("item")}},
	"cf.info":    {"Returns information about a Cuckoo filter", "O(1)", []Argument{key("key")}},
	"cf.compact": {"Moves the items of a Cuckoo filter to its older sub-filters, and frees those that are empty then", "O(n), where n is the capacity", []Argument{key("key")}},
	"cf.debug":   {"Describes a Cuckoo filter in a line", "O(1)", []Argument{key("key")}},
	"cf.scandump": {"Returns the next chunk of a dump, and the iterator for the chunk after it",
		"O(n), where n is the capacity", []Argument{key("key"), integerArg("iterator")}},
	"cf.loadchunk": {"Loads a chunk returned by CF.SCANDUMP; the first chunk creates the filter",
		"O(n), where n is the capacity", []Argument{key("key"), integerArg("iterator"), text("data")}},

	// Connections.
	"auth":           {"Authenticates the connection.", "O(1)", []Argument{text("username").optional(), text("password")}},
	"client":         {"A container for client connection commands.", "Depends on the subcommand", nil},
	"client|id":      {"Returns the connection's ID.", "O(1)", nil},
	"client|setname": {"Sets the connection's name.", "O(1)", []Argument{text("connection-name")}},
	"client|getname": {"Returns the connection's name.", "O(1)", nil},
	"client|setinfo": {"Sets the name or version of the client's library.",
		"O(1)", []Argument{oneOf("attr", text("libname").after("LIB-NAME"), text("libver").after("LIB-VER"))}},
	"client|info": {"Returns information about the connection.", "O(1)", nil},
	"client|list": {"Lists all connections, or some of them.",
		"O(1)", []Argument{text("client-type").after("TYPE").optional(), integerArg("client-id").after("ID").optional().multiple()}},
	"client|kill": {"Closes connections.", "O(1)", []Argument{text("filter").multiple()}},
	"client|no-evict": {"Accepted, without effect: no connection is chosen for eviction.",
		"O(1)", []Argument{oneOf("enabled", word("ON"), word("OFF"))}},
	"client|no-touch": {"Accepted, without effect: no access times are kept.",
		"O(1)", []Argument{oneOf("enabled", word("ON"), word("OFF"))}},
	"client|reply": {"Turns replies on or off, or skips the next one.",
		"O(1)", []Argument{oneOf("action", word("ON"), word("OFF"), word("SKIP"))}},
	"client|tracking": {"Turns on invalidation messages for keys that the client has read. Needs RESP3.", "O(1)", []Argument{
		oneOf("status", word("ON"), word("OFF")),
		text("prefix").after("PREFIX").optional().multiple(),
		word("BCAST").optional(),
		word("OPTIN").optional(),
		word("OPTOUT").optional(),
		word("NOLOOP").optional(),
	}},
	"client|trackinginfo": {"Returns the connection's tracking options.", "O(1)", nil},
	"client|caching":      {"Sets whether the keys of the next command are tracked.", "O(1)", []Argument{oneOf("mode", word("YES"), word("NO"))}},
	"client|getredir":     {"Returns the client that invalidation messages go to: 0, this one, or -1 without tracking.", "O(1)", nil},
	"client|unblock": {"Returns 0: no command blocks.",
		"O(1)", []Argument{integerArg("client-id"), oneOf("unblock-type", word("TIMEOUT"), word("ERROR")).optional()}},
	"echo": {"Returns the message.", "O(1)", []Argument{text("message")}},
	"hello": {"Selects RESP2 or RESP3, and can authenticate and name the connection.", "O(1)", []Argument{
		block("arguments",
			integerArg("protover"),
			block("auth", text("username"), text("password")).after("AUTH").optional(),
			text("clientname").after("SETNAME").optional(),
		).optional(),
	}},
	"ping":   {"Returns PONG, or the message.", "O(1)", []Argument{text("message").optional()}},
	"quit":   {"Closes the connection.", "O(1)", nil},
	"reset":  {"Resets the connection to its initial state.", "O(1)", nil},
	"select": {"Selects one of 16 databases.", "O(1)", []Argument{integerArg("index")}},

	// Keys.
	"copy": {"Copies a string. Filters are refused, as RedisBloom refuses them.", "O(N) where N is the length", []Argument{
		key("source"),
		key("destination"),
		integerArg("destination-db").after("DB").optional(),
		word("REPLACE").optional(),
	}},
	"dbsize": {"Returns the number of keys in the database.", "O(1)", nil},
	"del":    {"Deletes keys.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"dump":   {"Returns a filter of RedisBloom's kind in Redis's serialized form.", "O(M) where M is the size of the filter", []Argument{key("key")}},
	"exists": {"Returns how many of the keys exist.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"expire": {"Sets a key's time to live in seconds.", "O(1)", []Argument{
		key("key"),
		integerArg("seconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"expireat": {"Sets a key's expiration time, in seconds since 1970.", "O(1)", []Argument{
		key("key"),
		integerArg("unix-time-seconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"expiretime": {"Returns a key's expiration time, in seconds since 1970.", "O(1)", []Argument{key("key")}},
	"flushall": {"Deletes all keys of all databases.",
		"O(N) where N is the number of keys", []Argument{oneOf("flush-type", word("ASYNC"), word("SYNC")).optional()}},
	"flushdb": {"Deletes all keys of the database.",
		"O(N) where N is the number of keys", []Argument{oneOf("flush-type", word("ASYNC"), word("SYNC")).optional()}},
	"keys":            {"Returns the keys that match a pattern.", "O(N) where N is the number of keys", []Argument{text("pattern")}},
	"object":          {"A container for commands that inspect values.", "Depends on the subcommand", nil},
	"object|encoding": {"Returns the encoding of a value, as Redis names it.", "O(1)", []Argument{key("key")}},
	"object|freq":     {"Refused: access frequency is not tracked.", "O(1)", []Argument{key("key")}},
	"object|idletime": {"Refused: idle times are not tracked.", "O(1)", []Argument{key("key")}},
	"object|refcount": {"Returns 1.", "O(1)", []Argument{key("key")}},
	"persist":         {"Removes a key's expiration time.", "O(1)", []Argument{key("key")}},
	"pexpire": {"Sets a key's time to live in milliseconds.", "O(1)", []Argument{
		key("key"),
		integerArg("milliseconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"pexpireat": {"Sets a key's expiration time, in milliseconds since 1970.", "O(1)", []Argument{
		key("key"),
		integerArg("unix-time-milliseconds"),
		oneOf("condition", word("NX"), word("XX"), word("GT"), word("LT")).optional(),
	}},
	"pexpiretime": {"Returns a key's expiration time, in milliseconds since 1970.", "O(1)", []Argument{key("key")}},
	"pttl":        {"Returns a key's time to live in milliseconds.", "O(1)", []Argument{key("key")}},
	"randomkey":   {"Returns a random key.", "O(1), or the number of keys where few of them are in the database", nil},
	"rename":      {"Renames a key, replacing any key with that name.", "O(1)", []Argument{key("key"), key("newkey")}},
	"renamenx":    {"Renames a key if no key has the new name.", "O(1)", []Argument{key("key"), key("newkey")}},
	"restore": {"Creates a filter from the serialized form that DUMP returned, here or in Redis.", "O(M) where M is the size of the filter", []Argument{
		key("key"),
		integerArg("ttl"),
		text("serialized-value"),
		word("REPLACE").optional(),
		word("ABSTTL").optional(),
		integerArg("seconds").after("IDLETIME").optional(),
		integerArg("frequency").after("FREQ").optional(),
	}},
	"scan": {"Iterates over the keys of the database.", "O(1) for each call", []Argument{
		integerArg("cursor"),
		text("pattern").after("MATCH").optional(),
		integerArg("count").after("COUNT").optional(),
		text("type").after("TYPE").optional(),
	}},
	"touch":  {"Returns how many of the keys exist.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"ttl":    {"Returns a key's time to live in seconds.", "O(1)", []Argument{key("key")}},
	"type":   {"Returns the type of a key's value.", "O(1)", []Argument{key("key")}},
	"unlink": {"Deletes keys, as DEL does.", "O(N) where N is the number of keys", []Argument{key("key").multiple()}},
	"wait": {"Returns the number of replicas that have all writes: 0, as there are no replicas.",
		"O(1)", []Argument{integerArg("numreplicas"), integerArg("timeout")}},

	// Strings.
	"get":    {"Returns a string.", "O(1) for each key", []Argument{key("key")}},
	"getdel": {"Returns a string and deletes it.", "O(1) for each key", []Argument{key("key")}},
	"mget":   {"Returns several strings.", "O(1) for each key", []Argument{key("key").multiple()}},
	"mset":   {"Sets several strings.", "O(1) for each key", []Argument{block("data", key("key"), text("value")).multiple()}},
	"psetex": {"Sets a string with a time to live in milliseconds.",
		"O(1) for each key", []Argument{key("key"), integerArg("milliseconds"), text("value")}},
	"set": {"Sets a string, replacing any value of the key.", "O(1) for each key", []Argument{
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
	"setex":  {"Sets a string with a time to live in seconds.", "O(1) for each key", []Argument{key("key"), integerArg("seconds"), text("value")}},
	"setnx":  {"Sets a string if the key does not exist.", "O(1) for each key", []Argument{key("key"), text("value")}},
	"strlen": {"Returns the length of a string.", "O(1) for each key", []Argument{key("key")}},

	// Transactions.
	"discard": {"Discards the queued commands.", "O(N) where N is the number of queued commands", nil},
	"exec":    {"Executes the queued commands; no other client's command runs in between.", "Depends on the commands", nil},
	"multi":   {"Starts a transaction: the commands that follow are queued until EXEC.", "O(1)", nil},
	"unwatch": {"Stops watching all keys.", "O(1)", nil},
	"watch":   {"Makes the next EXEC fail if any of the keys changes before it.", "O(1) for each key", []Argument{key("key").multiple()}},

	// The server.
	"acl": {"A container for commands about users: default, with full access, and readonly.", "Depends on the subcommand", nil},
	"acl|cat": {"Lists the categories of commands, or the commands of one.",
		"O(N) where N is the number of commands", []Argument{text("category").optional()}},
	"acl|whoami":    {"Returns the connection's user.", "O(N) where N is the number of commands", nil},
	"acl|users":     {"Lists the users.", "O(N) where N is the number of commands", nil},
	"acl|list":      {"Lists the users and their permissions.", "O(N) where N is the number of commands", nil},
	"asking":        {"Refused: cluster support is disabled.", "O(1)", nil},
	"bgsave":        {"Starts writing a snapshot in the background, if the store supports it.", "O(1)", []Argument{word("SCHEDULE").optional()}},
	"cluster":       {"Refused: cluster support is disabled.", "O(1)", []Argument{text("subcommand").multiple()}},
	"command":       {"Returns details about all commands.", "O(N) where N is the number of commands", nil},
	"command|count": {"Returns the number of commands.", "O(N) where N is the number of commands", nil},
	"command|info": {"Returns details about commands.",
		"O(N) where N is the number of commands", []Argument{text("command-name").optional().multiple()}},
	"command|docs": {"Returns documentation of commands.",
		"O(N) where N is the number of commands", []Argument{text("command-name").optional().multiple()}},
	"command|list": {"Lists the commands.", "O(N) where N is the number of commands", []Argument{
		oneOf("filterby",
			text("module-name").after("MODULE"), text("category").after("ACLCAT"), text("pattern").after("PATTERN"),
		).after("FILTERBY").optional(),
	}},
	"command|getkeys": {"Returns the arguments of a command that are keys.",
		"O(N) where N is the number of commands", []Argument{text("command"), text("arg").optional().multiple()}},
	"config": {"A container for configuration commands.", "Depends on the subcommand", nil},
	"config|get": {"Returns the settings that match the patterns.",
		"O(N) where N is the number of settings", []Argument{text("parameter").multiple()}},
	"config|set": {"Changes settings: bf-error-rate, bf-initial-size, bf-expansion-factor, maxclients, timeout.",
		"O(N) where N is the number of settings", []Argument{block("data", text("parameter"), text("value")).multiple()}},
	"config|resetstat": {"Resets the counters of INFO.", "O(N) where N is the number of settings", nil},
	"config|rewrite":   {"Refused: settings come from the command line.", "O(N) where N is the number of settings", nil},
	"debug":            {"Refused.", "O(1)", []Argument{text("subcommand").multiple()}},
	"info":             {"Returns information about the server.", "O(1)", []Argument{text("section").optional().multiple()}},
	"lastsave":         {"Returns the time of the last snapshot.", "O(1)", nil},
	"latency":          {"A container for latency commands. Latency is not recorded: see the metrics.", "Depends on the subcommand", nil},
	"latency|latest":   {"Returns an empty list: latency is not recorded.", "O(1)", nil},
	"latency|history":  {"Returns an empty list: latency is not recorded.", "O(1)", []Argument{text("event")}},
	"latency|reset":    {"Returns 0.", "O(1)", []Argument{text("event").optional().multiple()}},
	"memory":           {"A container for memory commands.", "Depends on the subcommand", nil},
	"memory|usage": {"Returns the memory that a key and its value take, in bytes.",
		"O(1)", []Argument{key("key"), integerArg("count").after("SAMPLES").optional()}},
	"memory|doctor": {"Reports memory use.", "O(1)", nil},
	"memory|purge":  {"Does nothing: memory is released as it becomes free.", "O(1)", nil},
	"module":        {"A container for module commands.", "Depends on the subcommand", nil},
	"module|list":   {"Lists RedisBloom's module.", "O(1)", nil},
	"readonly":      {"Refused: cluster support is disabled.", "O(1)", nil},
	"readwrite":     {"Refused: cluster support is disabled.", "O(1)", nil},
	"role":          {"Returns the role: a master without replicas.", "O(1)", nil},
	"save":          {"Writes a snapshot, if the store supports it.", "O(1)", nil},
	"shutdown": {"Stops the server. The argument changes nothing: the store is always closed as --durability says.",
		"O(1)", []Argument{oneOf("save-selector", word("NOSAVE"), word("SAVE")).optional()}},
	"slowlog":       {"A container for slow log commands. Slow commands are not recorded.", "Depends on the subcommand", nil},
	"slowlog|get":   {"Returns an empty list.", "O(1)", []Argument{integerArg("count").optional()}},
	"slowlog|len":   {"Returns 0.", "O(1)", nil},
	"slowlog|reset": {"Does nothing.", "O(1)", nil},
	"time":          {"Returns the server's time.", "O(1)", nil},
}

// insertArguments are those of CF.INSERT and CF.INSERTNX.
var insertArguments = []Argument{
	key("key"),
	integerArg("capacity").after("CAPACITY").optional(),
	word("NOCREATE").optional(),
	word("ITEMS"),
	text("item").multiple(),
}

func key(name string) Argument        { return Argument{Name: name, Type: "key"} }
func text(name string) Argument       { return Argument{Name: name, Type: "string"} }
func integerArg(name string) Argument { return Argument{Name: name, Type: "integer"} }
func double(name string) Argument     { return Argument{Name: name, Type: "double"} }

// word returns an argument that is a literal word.
func word(token string) Argument {
	return Argument{Name: strings.ToLower(token), Type: "pure-token", Token: token}
}

// oneOf returns a choice of one of some arguments, block a sequence of all of them.
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
