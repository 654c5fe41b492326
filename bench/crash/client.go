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

func dial(address string) (*client, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: resp.NewReplyReader(conn, resp.DefaultReplyLimits)}, nil
}

// command appends a command to those that flush will send.
func (c *client) command(words ...string) {
	c.begin(len(words))
	for _, word := range words {
		c.word(word)
	}
}

func (c *client) begin(words int) {
	c.out = append(strconv.AppendInt(append(c.out, '*'), int64(words), 10), "\r\n"...)
}

func (c *client) word(word string) {
	c.out = append(strconv.AppendInt(append(c.out, '$'), int64(len(word)), 10), "\r\n"...)
	c.out = append(append(c.out, word...), "\r\n"...)
}

func (c *client) flush() error {
	c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// reply reads the next reply. An error reply is not an error of this function.
func (c *client) reply() (resp.Reply, error) { return c.in.Read() }

// do sends one command and fails if the reply is an error.
func (c *client) do(words ...string) (resp.Reply, error) {
	c.command(words...)
	if err := c.flush(); err != nil {
		return resp.Reply{}, err
	}
	r, err := c.reply()
	if err == nil && r.Kind == resp.SimpleError {
		err = fmt.Errorf("%q: %s", words, r.Text)
	}
	return r, err
}
