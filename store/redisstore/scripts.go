package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"strconv"

	"github.com/redis/rueidis"
)

// The scripts are sent by EVALSHA, and by EVAL to a server that does not have them.

// A script is a program of the server's, and its digest.
type script struct{ text, digest string } // the digest is SHA-1, in hexadecimal

// Every script that touches a chunk begins by comparing the chunk's identity, so that a
// chunk that was lost is an error. SETBIT, BITFIELD and the like would make an empty
// string in its place, and all keys in it would be forgotten in silence.
const mustBeOurs = `
local key, id = KEYS[1], ARGV[1]
if redis.call('GETRANGE', key, 0, #id - 1) ~= id then
	return redis.error_reply('` + chunkLost + `')
end
`

// chunkLost is the code of the error for a chunk that is not there, or is another's.
const chunkLost = "CHUNKLOST"

// addScript adds keys to a chunk, in order, and returns a digit for each: 1 if it set a
// bit. ARGV[2] is what span.appendBits appends.
var addScript = newScript(mustBeOurs + `
local byte, char, sub, bor = string.byte, string.char, string.sub, bit.bor
local ops, new = ARGV[2], {}
local at, last = 1, #ops
while at <= last do
	local a, b, c, d, e, f, bits = byte(ops, at, at + 6)
	local offset, length = ((a * 256 + b) * 256 + c) * 256 + d, e * 256 + f
	at = at + 7
	local old = redis.call('GETRANGE', key, offset, offset + length - 1)
	local text, done, first
	for _ = 1, bits do
		local hi, lo, mask = byte(ops, at, at + 2)
		local i = hi * 256 + lo
		local had = byte(old, i)
		local has = bor(had, mask)
		if has ~= had then
			if first then
				text = text .. sub(old, done + 1, i - 1) .. char(has)
			else
				first, text = i, char(has)
			end
			done = i
		end
		at = at + 3
	end
	if first then
		redis.call('SETRANGE', key, offset + first - 1, text)
		new[#new + 1] = '1'
	else
		new[#new + 1] = '0'
	end
end
return table.concat(new)
`)

// makeScript makes a chunk, whole: a string that grows is allocated twice as large as
// it is long.
var makeScript = newScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then
	return redis.error_reply('ERR the chunk exists')
end
redis.call('SETRANGE', KEYS[1], ARGV[2] - 1, '\0')
redis.call('SETRANGE', KEYS[1], 0, ARGV[1])
return 1
`)

// putScript replaces a part of a chunk.
var putScript = newScript(mustBeOurs + `
redis.call('SETRANGE', key, ARGV[2], ARGV[3])
return 1
`)

// orScript sets the bits of another string in a chunk, and deletes the string.
var orScript = newScript(`
local ours = redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) == ARGV[1]
	and redis.call('STRLEN', KEYS[1]) == redis.call('STRLEN', KEYS[2])
if ours then
	redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
end
redis.call('UNLINK', KEYS[2])
if ours then
	return 1
end
return redis.error_reply('` + chunkLost + `')
`)

// Every script that reads or changes names begins by comparing the directory's identity,
// so that a directory that was lost, with the server that had it, is an error.
const mustBeWhole = `
local names = KEYS[1]
if redis.call('HGET', names, '` + idField + `') ~= ARGV[1] then
	return redis.error_reply('` + namesLost + `')
end
`

// namesLost is the code of the error for a directory that is not there, or another.
const namesLost = "NAMESLOST"

// countScript adds to a filter's count of keys, and returns the count, or nothing if the
// name now stands for another filter. KEYS are the names and the metadata.
var countScript = newScript(mustBeWhole + `
if redis.call('HGET', names, ARGV[2]) ~= ARGV[3] then
	return false
end
if redis.call('EXISTS', KEYS[2]) == 0 then
	return redis.error_reply('` + chunkLost + `')
end
return redis.call('HINCRBY', KEYS[2], 'items', ARGV[4])
`)

// findScript returns the epoch of a name, or nothing.
var findScript = newScript(mustBeWhole + `
return redis.call('HGET', names, ARGV[2])
`)

// publishScript gives a name to a filter, and returns 0 if another has it.
var publishScript = newScript(mustBeWhole + `
return redis.call('HSETNX', names, ARGV[2], ARGV[3])
`)

// listScript returns what HSCAN does.
var listScript = newScript(mustBeWhole + `
return redis.call('HSCAN', names, ARGV[2], 'COUNT', ARGV[3])
`)

// lenScript returns the number of names.
var lenScript = newScript(mustBeWhole + `
return redis.call('HLEN', names) - 1
`)

// renameScript gives a filter another name and returns the epochs of the filter and of
// the one that had that name before, or an empty string.
var renameScript = newScript(mustBeWhole + `
local from = redis.call('HGET', names, ARGV[2])
if not from then
	return false
end
if ARGV[2] == ARGV[3] then
	return {from, ''}
end
local to = redis.call('HGET', names, ARGV[3])
redis.call('HSET', names, ARGV[3], from)
redis.call('HDEL', names, ARGV[2])
return {from, to or ''}
`)

// swapScript exchanges two names.
var swapScript = newScript(mustBeWhole + `
local a, b = redis.call('HGET', names, ARGV[2]), redis.call('HGET', names, ARGV[3])
if not a or not b then
	return false
end
redis.call('HSET', names, ARGV[2], b, ARGV[3], a)
return {a, b}
`)

// dropScript removes names and returns the epochs of those there were.
var dropScript = newScript(mustBeWhole + `
local gone = {}
for i = 2, #ARGV do
	local epoch = redis.call('HGET', names, ARGV[i])
	if epoch then
		redis.call('HDEL', names, ARGV[i])
		gone[#gone + 1] = epoch
	end
end
return gone
`)

// clearScript removes all names and returns their epochs.
var clearScript = newScript(mustBeWhole + `
redis.call('HDEL', names, '` + idField + `')
local gone = redis.call('HVALS', names)
redis.call('DEL', names)
redis.call('HSET', names, '` + idField + `', ARGV[1])
return gone
`)

func newScript(text string) *script {
	digest := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(digest[:])}
}

// A call is a script with its keys, which lie in one slot, and arguments.
type call struct {
	*script
	keys, args []string
}

func (c call) build(b rueidis.Builder, whole bool) rueidis.Completed {
	command, text := "EVALSHA", c.digest
	if whole {
		command, text = "EVAL", c.text
	}
	return b.Arbitrary(command).Args(text, strconv.Itoa(len(c.keys))).Keys(c.keys...).Args(c.args...).Build()
}

// named is a call of a script that reads or changes names.
func (s *Store) named(script *script, args ...string) call {
	return call{script, []string{s.keys.names}, append([]string{s.id}, args...)}
}

// do sends plain commands and calls, each node's in one go, and returns the replies: of
// the calls first.
func (s *Store) do(ctx context.Context, calls []call, plain ...rueidis.Completed) (ofCalls, ofPlain []rueidis.RedisResult) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	commands := make([]rueidis.Completed, 0, len(calls)+len(plain))
	for _, c := range calls {
		commands = append(commands, c.build(s.client.B(), false))
	}
	replies := s.client.DoMulti(ctx, append(commands, plain...)...)
	var missing []int
	for i := range calls {
		if e, ok := rueidis.IsRedisErr(replies[i].Error()); ok && e.IsNoScript() {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 {
		commands = commands[:0]
		for _, i := range missing {
			commands = append(commands, calls[i].build(s.client.B(), true))
		}
		for at, reply := range s.client.DoMulti(ctx, commands...) {
			replies[missing[at]] = reply
		}
	}
	return replies[:len(calls)], replies[len(calls):]
}

func (s *Store) call(ctx context.Context, c call) rueidis.RedisResult {
	replies, _ := s.do(ctx, []call{c})
	return replies[0]
}

// ask sends one command.
func (s *Store) ask(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	_, replies := s.do(ctx, nil, command)
	return replies[0]
}
