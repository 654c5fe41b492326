package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// A process is a running `bloomery serve`.
type process struct {
	cmd     *exec.Cmd
	address string        // where it listens
	took    time.Duration // from its start until it listens
	ended   chan struct{} // closed when the process has exited
	err     error         // the result of Wait, after that

	mu  sync.Mutex
	log bytes.Buffer // what it printed
}

var servingAt = regexp.MustCompile(`msg=serving .*?address=(127\.0\.0\.1:[0-9]+)`)

// launch starts the server. The channel delivers the address when the server
// listens, and is closed when the server exits.
func launch(binary, dir, durability string) (*process, <-chan string, error) {
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--http", "off", "--data", dir, "--durability", durability)
	p.cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	began, ready := time.Now(), make(chan string, 1)
	go func() {
		for lines := bufio.NewReader(pipe); ; {
			line, err := lines.ReadString('\n')
			if at := servingAt.FindStringSubmatch(line); at != nil {
				p.took = time.Since(began)
				ready <- at[1]
			}
			p.mu.Lock()
			p.log.WriteString(line)
			p.mu.Unlock()
			if err != nil {
				if err != io.EOF {
					io.Copy(io.Discard, lines)
				}
				break
			}
		}
		p.err = p.cmd.Wait()
		close(p.ended)
		close(ready)
	}()
	return p, ready, nil
}

// start starts the server and waits until it listens.
func start(binary, dir, durability string) (*process, error) {
	p, ready, err := launch(binary, dir, durability)
	if err != nil {
		return nil, err
	}
	select {
	case address, ok := <-ready:
		if !ok {
			return nil, fmt.Errorf("the server did not start: %v\n%s", p.err, p.printed())
		}
		p.address = address
		return p, nil
	case <-time.After(60 * time.Second):
		p.kill()
		return nil, fmt.Errorf("the server did not listen within a minute\n%s", p.printed())
	}
}

// kill is kill -9. It returns when the process has exited, or at once if it already
// had.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}
