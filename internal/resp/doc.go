// Package resp is the protocol of Redis, RESP2 and RESP3, between bytes and
// commands or replies. It does no I/O of its own, [ReplyReader] aside.
//
//   - [Parser] finds the commands in the bytes that a client has sent so far. Its
//     arguments are slices of those bytes.
//   - [Writer] appends replies to a slice, in the protocol that the client asked
//     for.
//   - [ReplyReader] reads replies, for tests and tools.
//
// A command comes as an array of bulk strings, or inline, as a line of words:
//
//	*2\r\n$7\r\nBF.CARD\r\n$4\r\nseen\r\n
//	BF.CARD seen\r\n
//
// What is accepted, and the words of a refusal, are those of Redis 7.0, with few
// exceptions:
//
//   - A NUL byte has no meaning. Redis waits for ever on a line that has one.
//   - What is not a '$' is refused when it comes, not at the end of its line.
//   - The limit on arguments is for inline commands, too, and the one on the
//     length of a line also for a line that comes as a whole.
//   - The number of arguments and the bytes of a whole command have a limit.
//
// A Parser, Writer or ReplyReader is for one goroutine at a time.
package resp
