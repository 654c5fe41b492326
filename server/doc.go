// Package server answers the commands of Redis and of RedisBloom over TCP: RESP2
// and RESP3, filters in a [store.Store].
//
// A [Server] is made by [New] and started by [Server.Serve]. On Linux a few
// event loops read what has come on all their connections, execute it as one
// batch, commit the batch once and then answer (loop_linux.go); elsewhere, and
// for TLS, there is a goroutine for each connection (stream.go). Both end in the
// same place, batch.go, where runs of BF.ADD and the like on one filter become
// one call of the filter. Everything else is a row of the table (commands.go) with a
// handler.
package server
