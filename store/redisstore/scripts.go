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

// countScript adds to a filter's count of keys, and returns the count, or nothing if the
// name now stands for another filter. KEYS are the names and the metadata.
var countScript = newScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
	return false
end
return redis.call('HINCRBY', KEYS[2], 'items', ARGV[3])
`)

// renameScript gives a filter another name and returns the epochs of the filter and of
// the one that had that name before, or an empty string.
var renameScript = newScript(`
local from = redis.call('HGET', KEYS[1], ARGV[1])
if not from then
	return false
end
if ARGV[1] == ARGV[2] then
	return {from, ''}
end
local to = redis.call('HGET', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[2], from)
redis.call('HDEL', KEYS[1], ARGV[1])
return {from, to or ''}
`)

// swapScript exchanges two names.
var swapScript = newScript(`
local a, b = redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[1], ARGV[2])
if not a or not b then
	return false
end
redis.call('HSET', KEYS[1], ARGV[1], b, ARGV[2], a)
return {a, b}
`)

// dropScript removes names and returns the epochs of those there were.
var dropScript = newScript(`
local gone = {}
for _, name in ipairs(ARGV) do
	local epoch = redis.call('HGET', KEYS[1], name)
	if epoch then
		redis.call('HDEL', KEYS[1], name)
		gone[#gone + 1] = epoch
	end
end
return gone
`)

// clearScript removes all names and returns their epochs.
var clearScript = newScript(`
local gone = redis.call('HVALS', KEYS[1])
redis.call('DEL', KEYS[1])
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
