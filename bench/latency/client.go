//go:build linux

package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// A client is a connection. It collects commands, sends them together, and reads
// their replies in order.
type client struct {
	conn net.Conn
	in   *resp.ReplyReader
	out  []byte
}

// patience is how long an operation may take.
const patience = 10 * time.Minute

// A refusal is an error reply: the server cannot do what was asked.
type refusal string

func (r refusal) Error() string { return string(r) }

func dial(address string) (*client, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: resp.NewReplyReader(conn, resp.ReplyLimits{})}, nil
}

func appendCommand(out []byte, words ...string) []byte {
	out = append(strconv.AppendInt(append(out, '*'), int64(len(words)), 10), "\r\n"...)
	for _, word := range words {
		out = append(strconv.AppendInt(append(out, '$'), int64(len(word)), 10), "\r\n"...)
		out = append(append(out, word...), "\r\n"...)
	}
	return out
}

// collect appends a command to those that flush will send.
func (c *client) collect(words ...string) { c.out = appendCommand(c.out, words...) }

func (c *client) flush() error {
	c.conn.SetDeadline(time.Now().Add(patience))
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// reply reads the next reply. An error reply is returned as a refusal.
func (c *client) reply() (resp.Reply, error) {
	r, err := c.in.Read()
	if err == nil && r.Kind == resp.SimpleError {
		err = refusal(r.Text)
	}
	return r, err
}

// do sends one command and reads its reply.
func (c *client) do(words ...string) (resp.Reply, error) {
	c.collect(words...)
	if err := c.flush(); err != nil {
		return resp.Reply{}, err
	}
	return c.reply()
}

// pair is do for a command that returns an iterator and bytes.
func (c *client) pair(words ...string) (next int64, chunk string, err error) {
	r, err := c.do(words...)
	if err == nil && len(r.Items) != 2 {
		err = fmt.Errorf("%s: %d items, want 2", words[0], len(r.Items))
	}
	if err != nil {
		return 0, "", err
	}
	return r.Items[0].Integer, r.Items[1].Text, nil
}
