// Package resp translates between bytes and commands or replies of the Redis protocols,
// RESP2 and RESP3. Only [ReplyReader] does I/O.
//
//   - [Parser] finds the commands in the bytes that a client has sent so far. Its
//     arguments are slices of those bytes.
//   - [Writer] appends replies to a slice, in the protocol that the client has chosen.
//   - [ReplyReader] reads replies, for tests and tools.
//
// A command comes as an array of bulk strings, or inline, as a line of words:
//
//	*2\r\n$7\r\nBF.CARD\r\n$4\r\nseen\r\n
//	BF.CARD seen\r\n
//
// What is accepted, and the texts of errors, are those of Redis 7.0, with few
// exceptions:
//
//   - A NUL byte has no meaning. Redis waits forever on a line that has one.
//   - A byte other than '$' before an argument is refused when it arrives, not at the
//     end of its line.
//   - The limit on arguments also applies to inline commands, and the limit on the
//     length of a line also to a line that arrives in one piece.
//   - The number of arguments and the bytes of a whole command have a limit.
//
// A Parser, Writer or ReplyReader is for one goroutine at a time.
package resp
