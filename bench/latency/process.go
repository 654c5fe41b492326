//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A process is a running `bloomery serve`.
type process struct {
	cmd     *exec.Cmd
	address string
	ended   chan struct{}

	mu  sync.Mutex
	log bytes.Buffer // what it printed
}

var servingAt = regexp.MustCompile(`msg=serving .*?address=(127\.0\.0\.1:[0-9]+)`)

// start starts the server and waits until it listens.
func start(binary, dir string) (*process, error) {
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(interrupted, binary, "serve", "--listen", "127.0.0.1:0", "--http", "off", "--data", dir, "--durability", *level, "--loops", strconv.Itoa(*loops))
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		for lines := bufio.NewReader(pipe); ; {
			line, err := lines.ReadString('\n')
			if at := servingAt.FindStringSubmatch(line); at != nil {
				ready <- at[1]
			}
			p.mu.Lock()
			p.log.WriteString(line)
			p.mu.Unlock()
			if err != nil {
				io.Copy(io.Discard, pipe)
				break
			}
		}
		p.cmd.Wait()
		close(p.ended)
	}()
	select {
	case p.address = <-ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("the server did not start:\n%s", p.printed())
	case <-time.After(time.Minute):
		p.kill()
		return nil, fmt.Errorf("the server was not listening after a minute:\n%s", p.printed())
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// newMemory runs a process that touches n bytes of new memory.
func newMemory(n uint64) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(interrupted, self, "-touch", strconv.FormatUint(n, 10)).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// touchNew is what that process does: it maps memory as the server does, and writes to
// each page.
func touchNew(n int) error {
	room, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	if err := unix.Madvise(room, unix.MADV_HUGEPAGE); err != nil {
		return err
	}
	for i := 0; i < n; i += 4096 {
		room[i] = 1
	}
	return nil
}
