package server

import "time"

// A row is a command's entry in the table, one line each. The texts of COMMAND DOCS are
// in commanddocs.go.
type row struct {
	name       string // a subcommand's with its parent's: client|setname
	handler    func(c *Client, args [][]byte)
	arity      int // as Command.Arity
	flags      Flags
	keys       keySpan
	categories string // of ACL, in the order of COMMAND INFO
	group      string
	since      string // the version of Redis, or of RedisBloom, that introduced it
}

// A keySpan is where the keys are: the first, the last and the step, as in [Command].
type keySpan [3]int

var (
	noKeys   = keySpan{}
	key1     = keySpan{1, 1, 1}
	key2     = keySpan{2, 2, 1} // of a subcommand
	keys12   = keySpan{1, 2, 1}
	keys     = keySpan{1, -1, 1}
	keyPairs = keySpan{1, -1, 2} // each followed by a value
)

// commandRows is the table of commands. Subcommands follow their command, in the order
// of its HELP.
var commandRows = []row{
	// Filters.
	{"bf.reserve", (*Client).bfReserve, -4, Write | DenyMemory | Module, key1, "write fast bloom", "module", "1.0.0"},
	{"bf.add", (*Client).runOne, 3, Write | DenyMemory | Module, key1, "write bloom", "module", "1.0.0"},
	{"bf.madd", (*Client).runOne, -3, Write | DenyMemory | Module, key1, "write bloom", "module", "1.0.0"},
	{"bf.insert", (*Client).bfInsert, -4, Write | DenyMemory | Module, key1, "write bloom", "module", "1.0.0"},
	{"bf.exists", (*Client).runOne, 3, ReadOnly | Fast | Module, key1, "read bloom", "module", "1.0.0"},
	{"bf.mexists", (*Client).runOne, -3, ReadOnly | Fast | Module, key1, "read bloom", "module", "1.0.0"},
	{"bf.info", (*Client).bfInfo, -2, ReadOnly | Fast | Module | Long, key1, "read fast bloom", "module", "1.0.0"},
	{"bf.card", (*Client).bfCard, 2, ReadOnly | Fast | Module, key1, "read fast bloom", "module", "2.4.4"},
	{"bf.debug", (*Client).bfDebug, 2, ReadOnly | Fast | Module, key1, "read fast bloom", "module", "1.0.0"},
	{"bf.scandump", (*Client).bfScanDump, 3, ReadOnly | Fast | Module | Long, key1, "read bloom", "module", "1.0.0"},
	{"bf.loadchunk", (*Client).bfLoadChunk, 4, Write | DenyMemory | Module | Long | Payload, key1, "write bloom", "module", "1.0.0"},
	{"bf.swap", (*Client).bfSwap, 3, Write | Module, keys12, "write bloom", "module", "1.0.0"},
	{"bf.merge", (*Client).bfMerge, -3, Write | DenyMemory | Module | Long, keys, "write bloom", "module", "1.0.0"},
	{"bf.del", (*Client).runOne, 3, Write | Fast | Module, key1, "write bloom", "module", "1.0.0"},
	{"bf.mdel", (*Client).runOne, -3, Write | Fast | Module, key1, "write bloom", "module", "1.0.0"},
	{"bf.count", (*Client).bfCount, 3, ReadOnly | Fast | Module, key1, "read bloom", "module", "1.0.0"},
	{"bf.fold", (*Client).bfFold, 3, Write | Module | Long, key1, "write bloom", "module", "1.0.0"},

	// Cuckoo filters.
	{"cf.reserve", (*Client).cfReserve, -3, Write | DenyMemory | Module, key1, "write fast cuckoo", "module", "1.0.0"},
	{"cf.add", (*Client).runOne, 3, Write | DenyMemory | Module, key1, "write cuckoo", "module", "1.0.0"},
	{"cf.addnx", (*Client).runOne, 3, Write | DenyMemory | Module, key1, "write cuckoo", "module", "1.0.0"},
	{"cf.insert", (*Client).cfInsert, -4, Write | DenyMemory | Module, key1, "write cuckoo", "module", "1.0.0"},
	{"cf.insertnx", (*Client).cfInsert, -4, Write | DenyMemory | Module, key1, "write cuckoo", "module", "1.0.0"},
	{"cf.exists", (*Client).runOne, 3, ReadOnly | Fast | Module, key1, "read cuckoo", "module", "1.0.0"},
	{"cf.mexists", (*Client).runOne, -3, ReadOnly | Fast | Module, key1, "read cuckoo", "module", "1.0.0"},
	{"cf.del", (*Client).runOne, 3, Write | Fast | Module, key1, "write cuckoo", "module", "1.0.0"},
	{"cf.count", (*Client).cfCount, 3, ReadOnly | Fast | Module, key1, "read cuckoo", "module", "1.0.0"},
	{"cf.info", (*Client).cfInfo, 2, ReadOnly | Fast | Module, key1, "read fast cuckoo", "module", "1.0.0"},
	{"cf.compact", (*Client).cfCompact, 2, Write | Module | Long, key1, "write cuckoo", "module", "1.0.0"},
	{"cf.debug", (*Client).cfDebug, 2, ReadOnly | Fast | Module, key1, "read fast cuckoo", "module", "1.0.0"},
	{"cf.scandump", (*Client).cfScanDump, 3, ReadOnly | Fast | Module | Long, key1, "read cuckoo", "module", "1.0.0"},
	{"cf.loadchunk", (*Client).cfLoadChunk, 4, Write | DenyMemory | Module | Long | Payload, key1, "write cuckoo", "module", "1.0.0"},

	// Connections.
	{"auth", (*Client).auth, -2, Fast | NoAuth, noKeys, "fast connection", "connection", "1.0.0"},
	{"client", nil, -2, 0, noKeys, "slow connection", "connection", "2.4.0"},
	{"client|id", (*Client).clientID, 2, Fast, noKeys, "slow connection", "connection", "5.0.0"},
	{"client|setname", (*Client).clientSetName, 3, Fast, noKeys, "slow connection", "connection", "2.6.9"},
	{"client|getname", (*Client).clientGetName, 2, Fast, noKeys, "slow connection", "connection", "2.6.9"},
	{"client|setinfo", (*Client).clientSetInfo, 4, Fast, noKeys, "slow connection", "connection", "7.2.0"},
	{"client|info", (*Client).clientInfo, 2, 0, noKeys, "slow connection", "connection", "6.2.0"},
	{"client|list", (*Client).clientList, -2, Admin, noKeys, "admin slow dangerous connection", "connection", "2.4.0"},
	{"client|kill", (*Client).clientKill, -3, Admin, noKeys, "admin slow dangerous connection", "connection", "2.4.0"},
	{"client|no-evict", (*Client).clientNoEvict, 3, Admin, noKeys, "admin slow dangerous connection", "connection", "7.0.0"},
	{"client|no-touch", (*Client).clientNoTouch, 3, 0, noKeys, "slow connection", "connection", "7.2.0"},
	{"client|reply", (*Client).clientReply, 3, 0, noKeys, "slow connection", "connection", "3.2.0"},
	{"client|tracking", (*Client).clientTracking, -3, 0, noKeys, "slow connection", "connection", "6.0.0"},
	{"client|trackinginfo", (*Client).clientTrackingInfo, 2, 0, noKeys, "slow connection", "connection", "6.2.0"},
	{"client|caching", (*Client).clientCaching, 3, Fast, noKeys, "slow connection", "connection", "6.0.0"},
	{"client|getredir", (*Client).clientGetRedir, 2, 0, noKeys, "slow connection", "connection", "6.0.0"},
	{"client|unblock", (*Client).clientUnblock, -3, Admin, noKeys, "admin slow dangerous connection", "connection", "5.0.0"},
	{"client|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"echo", (*Client).echo, 2, Fast | Loading, noKeys, "fast connection", "connection", "1.0.0"},
	{"hello", (*Client).hello, -1, Fast | NoAuth | Loading, noKeys, "fast connection", "connection", "6.0.0"},
	{"ping", (*Client).ping, -1, Fast, noKeys, "fast connection", "connection", "1.0.0"},
	{"quit", (*Client).quit, -1, Fast | NoAuth | NoQueue | Loading, noKeys, "fast connection", "connection", "1.0.0"},
	{"reset", (*Client).reset, 1, Fast | NoAuth | NoQueue | Loading, noKeys, "fast connection", "connection", "6.2.0"},
	{"select", (*Client).selectDB, 2, Fast | Loading, noKeys, "fast connection", "connection", "1.0.0"},

	// Keys.
	{"copy", (*Client).copyKey, -3, Write | DenyMemory | Alone, keys12, "keyspace write slow", "generic", "6.2.0"},
	{"dbsize", (*Client).dbSize, 1, ReadOnly | Fast, noKeys, "keyspace read fast", "generic", "1.0.0"},
	{"del", (*Client).del, -2, Write, keys, "keyspace write slow", "generic", "1.0.0"},
	{"dump", (*Client).dump, 2, ReadOnly | Long, key1, "keyspace read slow", "generic", "2.6.0"},
	{"exists", (*Client).exists, -2, ReadOnly | Fast, keys, "keyspace read fast", "generic", "1.0.0"},
	{"expire", expireBy(time.Second, true), -3, Write | Fast | Alone, key1, "keyspace write fast", "generic", "1.0.0"},
	{"expireat", expireBy(time.Second, false), -3, Write | Fast | Alone, key1, "keyspace write fast", "generic", "1.2.0"},
	{"expiretime", lifetime(unixSeconds), 2, ReadOnly | Fast, key1, "keyspace read fast", "generic", "7.0.0"},
	{"flushall", (*Client).flushAll, -1, Write | Alone, noKeys, "keyspace write slow", "generic", "1.0.0"},
	{"flushdb", (*Client).flushDB, -1, Write | Alone, noKeys, "keyspace write slow", "generic", "1.0.0"},
	{"keys", (*Client).keys, 2, ReadOnly | Long, noKeys, "keyspace read slow", "generic", "1.0.0"},
	{"object", nil, -2, 0, noKeys, "slow", "generic", "2.2.3"},
	{"object|encoding", (*Client).objectEncoding, 3, ReadOnly, key2, "keyspace read slow", "generic", "2.2.3"},
	{"object|freq", (*Client).objectFreq, 3, ReadOnly, key2, "keyspace read slow", "generic", "4.0.0"},
	{"object|idletime", (*Client).objectIdleTime, 3, ReadOnly, key2, "keyspace read slow", "generic", "2.2.3"},
	{"object|refcount", (*Client).objectRefCount, 3, ReadOnly, key2, "keyspace read slow", "generic", "2.2.3"},
	{"object|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"persist", (*Client).persist, 2, Write | Fast | Alone, key1, "keyspace write fast", "generic", "2.2.0"},
	{"pexpire", expireBy(time.Millisecond, true), -3, Write | Fast | Alone, key1, "keyspace write fast", "generic", "2.6.0"},
	{"pexpireat", expireBy(time.Millisecond, false), -3, Write | Fast | Alone, key1, "keyspace write fast", "generic", "2.6.0"},
	{"pexpiretime", lifetime(time.Time.UnixMilli), 2, ReadOnly | Fast, key1, "keyspace read fast", "generic", "7.0.0"},
	{"pttl", lifetime(left), 2, ReadOnly | Fast, key1, "keyspace read fast", "generic", "2.6.0"},
	{"randomkey", (*Client).randomKey, 1, ReadOnly | Long, noKeys, "keyspace read slow", "generic", "1.0.0"},
	{"rename", (*Client).rename, 3, Write | Alone, keys12, "keyspace write slow", "generic", "1.0.0"},
	{"renamenx", (*Client).rename, 3, Write | Fast | Alone, keys12, "keyspace write fast", "generic", "1.0.0"},
	{"restore", (*Client).restore, -4, Write | DenyMemory | Long | Payload, key1, "keyspace write slow dangerous", "generic", "2.6.0"},
	{"scan", (*Client).scan, -2, ReadOnly | Long, noKeys, "keyspace read slow", "generic", "2.8.0"},
	{"touch", (*Client).exists, -2, ReadOnly | Fast, keys, "keyspace read fast", "generic", "3.2.1"},
	{"ttl", lifetime(secondsLeft), 2, ReadOnly | Fast, key1, "keyspace read fast", "generic", "1.0.0"},
	{"type", (*Client).typeOf, 2, ReadOnly | Fast, key1, "keyspace read fast", "generic", "1.0.0"},
	{"unlink", (*Client).del, -2, Write | Fast, keys, "keyspace write fast", "generic", "4.0.0"},
	{"wait", (*Client).wait, 3, Fast, noKeys, "slow connection", "generic", "3.0.0"},

	// Strings.
	{"get", (*Client).get, 2, ReadOnly | Fast, key1, "read string fast", "string", "1.0.0"},
	{"getdel", (*Client).getDel, 2, Write | Fast | Alone, key1, "write string fast", "string", "6.2.0"},
	{"mget", (*Client).mget, -2, ReadOnly | Fast, keys, "read string fast", "string", "1.0.0"},
	{"mset", (*Client).mset, -3, Write | DenyMemory | Alone, keyPairs, "write string slow", "string", "1.0.1"},
	{"psetex", setEX(time.Millisecond), 4, Write | DenyMemory | Alone, key1, "write string slow", "string", "2.6.0"},
	{"set", (*Client).set, -3, Write | DenyMemory | Alone, key1, "write string slow", "string", "1.0.0"},
	{"setex", setEX(time.Second), 4, Write | DenyMemory | Alone, key1, "write string slow", "string", "2.0.0"},
	{"setnx", (*Client).setNX, 3, Write | DenyMemory | Fast | Alone, key1, "write string fast", "string", "1.0.0"},
	{"strlen", (*Client).strlen, 2, ReadOnly | Fast, key1, "read string fast", "string", "2.2.0"},

	// Transactions.
	{"discard", (*Client).discard, 1, Fast | NoQueue, noKeys, "fast transaction", "transactions", "2.0.0"},
	{"exec", (*Client).exec, 1, NoQueue | Alone, noKeys, "slow transaction", "transactions", "1.2.0"},
	{"multi", (*Client).beginMulti, 1, Fast | NoQueue, noKeys, "fast transaction", "transactions", "1.2.0"},
	{"unwatch", (*Client).unwatchKeys, 1, Fast, noKeys, "fast transaction", "transactions", "2.2.0"},
	{"watch", (*Client).watchKeys, -2, Fast | NoQueue, keys, "fast transaction", "transactions", "2.2.0"},

	// The server.
	{"acl", nil, -2, 0, noKeys, "slow", "server", "6.0.0"},
	{"acl|cat", (*Client).aclCat, -2, Loading, noKeys, "slow", "server", "6.0.0"},
	{"acl|whoami", (*Client).aclWhoAmI, 2, Loading, noKeys, "slow", "server", "6.0.0"},
	{"acl|users", (*Client).aclUsers, 2, Admin | Loading, noKeys, "admin slow dangerous", "server", "6.0.0"},
	{"acl|list", (*Client).aclList, 2, Admin | Loading, noKeys, "admin slow dangerous", "server", "6.0.0"},
	{"acl|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"asking", noCluster, 1, Fast, noKeys, "slow", "server", "3.0.0"},
	{"bgsave", (*Client).backgroundSave, -1, Admin, noKeys, "admin slow dangerous", "server", "1.0.0"},
	{"cluster", noCluster, -2, Loading, noKeys, "slow", "server", "3.0.0"},
	{"command", (*Client).commandAll, -1, Loading, noKeys, "slow connection", "server", "2.8.13"},
	{"command|count", (*Client).commandCount, 2, Loading, noKeys, "slow connection", "server", "2.8.13"},
	{"command|info", (*Client).commandInfo, -2, Loading, noKeys, "slow connection", "server", "2.8.13"},
	{"command|docs", (*Client).commandDocs, -2, Loading, noKeys, "slow connection", "server", "7.0.0"},
	{"command|list", (*Client).commandList, -2, Loading, noKeys, "slow connection", "server", "7.0.0"},
	{"command|getkeys", (*Client).commandGetKeys, -3, Loading, noKeys, "slow connection", "server", "2.8.13"},
	{"command|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"config", nil, -2, 0, noKeys, "slow", "server", "2.0.0"},
	{"config|get", (*Client).configGet, -3, Admin, noKeys, "admin slow dangerous", "server", "2.0.0"},
	{"config|set", (*Client).configSet, -4, Admin | Alone, noKeys, "admin slow dangerous", "server", "2.0.0"},
	{"config|resetstat", (*Client).configResetStat, 2, Admin, noKeys, "admin slow dangerous", "server", "2.0.0"},
	{"config|rewrite", (*Client).configRewrite, 2, Admin, noKeys, "admin slow dangerous", "server", "2.8.0"},
	{"config|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"debug", (*Client).debug, -2, Admin, noKeys, "admin slow dangerous", "server", "1.0.0"},
	{"info", (*Client).info, -1, Loading, noKeys, "slow", "server", "1.0.0"},
	{"lastsave", (*Client).lastSave, 1, Fast | Loading, noKeys, "slow", "server", "1.0.0"},
	{"latency", nil, -2, 0, noKeys, "slow", "server", "2.8.13"},
	{"latency|latest", (*Client).emptyArray, 2, Admin | Loading, noKeys, "admin slow dangerous", "server", "2.8.13"},
	{"latency|history", (*Client).emptyArray, 3, Admin | Loading, noKeys, "admin slow dangerous", "server", "2.8.13"},
	{"latency|reset", (*Client).zero, -2, Admin | Loading, noKeys, "admin slow dangerous", "server", "2.8.13"},
	{"latency|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"memory", nil, -2, 0, noKeys, "slow", "server", "4.0.0"},
	{"memory|usage", (*Client).memoryUsage, -3, ReadOnly, key2, "read slow", "server", "4.0.0"},
	{"memory|doctor", (*Client).memoryDoctor, 2, ReadOnly, noKeys, "read slow", "server", "4.0.0"},
	{"memory|purge", (*Client).ok, 2, ReadOnly, noKeys, "read slow", "server", "4.0.0"},
	{"memory|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"module", nil, -2, 0, noKeys, "slow", "server", "4.0.0"},
	{"module|list", (*Client).moduleList, 2, Loading, noKeys, "slow", "server", "4.0.0"},
	{"module|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"readonly", noCluster, 1, Fast | Loading, noKeys, "slow", "server", "3.0.0"},
	{"readwrite", noCluster, 1, Fast | Loading, noKeys, "slow", "server", "3.0.0"},
	{"role", (*Client).role, 1, Fast | Loading, noKeys, "slow", "server", "2.8.12"},
	{"save", (*Client).save, 1, Admin | Long, noKeys, "admin slow dangerous", "server", "1.0.0"},
	{"shutdown", (*Client).shutdown, -1, Admin | NoQueue, noKeys, "admin slow dangerous", "server", "1.0.0"},
	{"slowlog", nil, -2, 0, noKeys, "slow", "server", "2.2.12"},
	{"slowlog|get", (*Client).slowlogGet, -2, Admin | Loading, noKeys, "admin slow dangerous", "server", "2.2.12"},
	{"slowlog|len", (*Client).zero, 2, Admin | Loading, noKeys, "admin slow dangerous", "server", "2.2.12"},
	{"slowlog|reset", (*Client).ok, 2, Admin | Loading, noKeys, "admin slow dangerous", "server", "2.2.12"},
	{"slowlog|help", (*Client).help, 2, Loading, noKeys, "slow", "server", "5.0.0"},
	{"time", (*Client).time, 1, Fast | Loading, noKeys, "fast", "server", "2.6.0"},

	// Refused with a sentence; COMMAND does not list them.
	{"eval", refuse(textNoScripts), -1, 0, noKeys, "", groupRefused, ""},
	{"eval_ro", refuse(textNoScripts), -1, 0, noKeys, "", groupRefused, ""},
	{"evalsha", noScript, -3, 0, noKeys, "", groupRefused, ""},
	{"evalsha_ro", noScript, -3, 0, noKeys, "", groupRefused, ""},
	{"failover", refuse(textNoReplication), -1, 0, noKeys, "", groupRefused, ""},
	{"fcall", refuse(textNoScripts), -1, 0, noKeys, "", groupRefused, ""},
	{"fcall_ro", refuse(textNoScripts), -1, 0, noKeys, "", groupRefused, ""},
	{"function", refuse(textNoScripts), -1, 0, noKeys, "", groupRefused, ""},
	{"monitor", refuse(textNoMonitor), -1, 0, noKeys, "", groupRefused, ""},
	{"psubscribe", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"psync", refuse(textNoReplication), -1, 0, noKeys, "", groupRefused, ""},
	{"publish", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"pubsub", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"punsubscribe", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"replconf", refuse(textNoReplication), -1, 0, noKeys, "", groupRefused, ""},
	{"replicaof", refuse(textNoReplication), -1, 0, noKeys, "", groupRefused, ""},
	{"script", (*Client).script, -2, 0, noKeys, "", groupRefused, ""},
	{"slaveof", refuse(textNoReplication), -1, 0, noKeys, "", groupRefused, ""},
	{"spublish", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"ssubscribe", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"subscribe", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"sunsubscribe", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
	{"swapdb", refuse(textNoSwapDB), -1, 0, noKeys, "", groupRefused, ""},
	{"sync", refuse(textNoReplication), -1, 0, noKeys, "", groupRefused, ""},
	{"unsubscribe", refuse(textNoChannels), -1, 0, noKeys, "", groupRefused, ""},
}
