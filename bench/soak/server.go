//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bloomery/bloom/internal/resp"
)

// A server is a running `bloomery serve` in a group, with the ceiling that it chose.
type server struct {
	cmd     *exec.Cmd
	address string
	ceiling uint64
	ended   chan struct{} // closed when the process has exited
	err     error         // the result of Wait, after that

	mu  sync.Mutex
	log bytes.Buffer
}

var (
	servingAt = regexp.MustCompile(`msg=serving .*?address=(127\.0\.0\.1:[0-9]+)`)
	ceilingIs = regexp.MustCompile(`msg="memory ceiling" bytes=([0-9]+)`)
)

// startServer starts the server in the group, and waits until it listens.
func startServer(g *group, binary string, flags ...string) (*server, error) {
	s := &server{ended: make(chan struct{})}
	script := `echo $$ > "$1" && shift && exec "$@"` // join the group before the program starts
	args := append([]string{"-c", script, "sh", g.processes(), binary, "serve", "--listen", "127.0.0.1:0", "--http", "off"}, flags...)
	s.cmd = exec.Command("sh", args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // die with this program
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			s.mu.Lock()
			fmt.Fprintln(&s.log, lines.Text())
			s.mu.Unlock()
			if at := ceilingIs.FindStringSubmatch(lines.Text()); at != nil {
				s.ceiling, _ = strconv.ParseUint(at[1], 10, 64)
			}
			if at := servingAt.FindStringSubmatch(lines.Text()); at != nil {
				s.address = at[1]
				close(ready)
			}
		}
		s.err = s.cmd.Wait()
	}()
	select {
	case <-ready:
		if s.ceiling == 0 {
			s.stop()
			return nil, errors.New("the server did not report its memory ceiling")
		}
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server did not start: %v\n%s", s.err, s.printed())
	case <-time.After(30 * time.Second):
		s.stop()
		return nil, errors.New("the server was not listening after 30 s")
	}
}

func (s *server) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// gone reports whether the server has exited.
func (s *server) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// stop stops the server and waits until it has exited.
func (s *server) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		s.cmd.Process.Kill()
		<-s.ended
	}
}

// resident returns the process's resident memory in bytes.
func (s *server) resident() uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseUint(fields[0], 10, 64)
	return kib << 10
}

// A client is a connection. It collects commands, sends them together, and reads
// their replies in order.
type client struct {
	conn net.Conn
	in   *resp.ReplyReader
	out  []byte

	commands, refused int // refused for lack of memory
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
	c.out = fmt.Appendf(c.out, "*%d\r\n", len(words))
	for _, word := range words {
		c.out = fmt.Appendf(c.out, "$%d\r\n%s\r\n", len(word), word)
	}
	c.commands++
}

// flush sends the collected commands and reads their replies. It returns how many
// succeeded. Refusals for lack of memory are counted; any other error stops the load.
func (c *client) flush(replies int) (good int, err error) {
	c.conn.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	c.out = c.out[:0]
	for range replies {
		reply, err := c.in.Read()
		if err != nil {
			return good, err
		}
		switch text := reply.Text; {
		case reply.Kind != resp.SimpleError:
			good++
		case strings.Contains(text, "out of memory"):
			c.refused++
		default:
			return good, errors.New(text)
		}
	}
	return good, nil
}

// do sends one command and reports whether it succeeded.
func (c *client) do(words ...string) (bool, error) {
	c.command(words...)
	good, err := c.flush(1)
	return good == 1, err
}

// used returns the server's accounted memory.
func (c *client) used() (uint64, error) {
	c.command("INFO", "memory")
	c.commands--
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	c.out = c.out[:0]
	reply, err := c.in.Read()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(reply.Text, "used_memory:")
	digits, _, _ := strings.Cut(rest, "\r\n")
	return strconv.ParseUint(digits, 10, 64)
}
