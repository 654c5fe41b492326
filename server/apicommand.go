package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// nowhere is the transport of a client without a connection.
type nowhere struct{}

func (nowhere) start()   {}
func (nowhere) discard() {}
func (nowhere) wake()    {}
func (nowhere) stop()    {}
func (nowhere) retime()  {}

// command executes a command as a client with the request's access does, and commits.
// The error is an apiError; a reply that is one becomes one.
func (q *apiRequest) command(args ...[]byte) (resp.Reply, error) {
	s := q.server
	c := &Client{server: s, addr: q.http.RemoteAddr, since: time.Now(), transport: nowhere{}}
	c.setProtocol(3)
	user := fullUser
	if q.access == accessRead {
		user = readOnlyUser
	}
	c.grant(q.access, user)
	if !s.enterUnlisted(c) {
		return resp.Reply{}, refusal(http.StatusServiceUnavailable, "the server is stopping")
	}
	defer s.running.Done()
	defer c.count(0)
	c.in = commandBytes(args)
	if !c.count(c.held()) {
		s.metrics.refuse(limitBuffers)
		return resp.Reply{}, refusal(http.StatusServiceUnavailable, "the buffers of all clients are full%s",
			limitSuffix(limitBuffers, s.limits.Load().BufferBytes))
	}
	if err := s.executeAll(c); err != nil {
		s.fail(err)
		return resp.Reply{}, refusal(http.StatusServiceUnavailable, "%s", reason(err))
	}
	reply, err := resp.NewReplyReader(bytes.NewReader(c.w.Buf), resp.DefaultReplyLimits).Read()
	if err != nil {
		return reply, fmt.Errorf("the command %s was not answered: %w", args[0], err)
	}
	if reply.Kind == resp.SimpleError || reply.Kind == resp.BulkError {
		return reply, replyError(reply.Text)
	}
	return reply, nil
}

// enterUnlisted gives a client that is not listed a number. Shutdown waits for it until
// it calls running.Done. It returns false if the server is stopping.
func (s *Server) enterUnlisted(c *Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.lastID++
	c.id = s.lastID
	s.running.Add(1)
	return true
}

// commandBytes returns a command as it comes over the wire.
func commandBytes(args [][]byte) []byte {
	size := 16
	for _, arg := range args {
		size += len(arg) + bulkOverhead
	}
	sent := fmt.Appendf(make([]byte, 0, size), "*%d\r\n", len(args))
	for _, arg := range args {
		sent = append(strconv.AppendInt(append(sent, '$'), int64(len(arg)), 10), "\r\n"...)
		sent = append(append(sent, arg...), "\r\n"...)
	}
	return sent
}

// executeAll executes what a client without a connection has sent. If it returns an
// error, nothing may be answered.
func (s *Server) executeAll(c *Client) error {
	b := s.takeBatch()
	defer s.batches.Put(b)
	for used := 0; ; {
		b.begin()
		used += b.execute(c, c.in[used:])
		if err := b.end(); err != nil {
			return err
		}
		if c.detour == nil {
			return nil
		}
		err := s.takeDetour(c)
		if c.detour = nil; err != nil {
			return err
		}
	}
}

// replyError translates a command's error.
func replyError(text string) error {
	word, rest, _ := strings.Cut(text, " ")
	code := http.StatusBadRequest
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case word == "NOAUTH":
		code = http.StatusUnauthorized
	case word == "NOPERM":
		code = http.StatusForbidden
	case text == textNotFound, text == textNoKey, text == textNoClient:
		code = http.StatusNotFound
	case word == "OOM", strings.HasPrefix(text, textNoMemory), has("out of memory"):
		code = http.StatusInsufficientStorage
	case word == "WRONGTYPE", text == textExists, text == textFull, has("is full"), text == textSaving, has("target key name is busy"):
		code = http.StatusConflict
	case has("(limit "):
		code = http.StatusRequestEntityTooLarge
	case text == textNoSnapshot, text == "ERR "+errRemovable.Error(), has("unsupported"), has("not supported"):
		code = http.StatusNotImplemented
	}
	if word == "ERR" || word == "WRONGTYPE" || word == "OOM" {
		text = rest
	}
	return &apiError{code, text}
}

// argsOf returns the arguments of a command.
func argsOf(args ...string) [][]byte {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	return list
}
