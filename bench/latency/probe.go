//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// every is the interval between a probe's commands.
const every = time.Millisecond

// A prober controls the probes' process: it starts a measurement and returns the
// results.
type prober struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// A result holds the latencies of one probe, in milliseconds.
type result struct{ worst, high float64 }

func startProbes(addresses string) (*prober, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &prober{cmd: exec.Command(self, "-probe", addresses)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

func (p *prober) end() {
	p.in.Close()
	p.cmd.Wait()
}

// tell sends a word and waits for the answer.
func (p *prober) tell(word string) error {
	_, err := p.ask(word)
	return err
}

func (p *prober) ask(word string) (answer string, err error) {
	if _, err := fmt.Fprintln(p.in, word); err != nil {
		return "", err
	}
	answer, err = p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the probes have exited: %w", err)
	}
	return answer, nil
}

// results ends the measurement that tell("begin") started.
func (p *prober) results() (all []result, err error) {
	answer, err := p.ask("end")
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(answer)
	for i := 0; i+1 < len(fields); i += 2 {
		worst, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, err
		}
		high, err := strconv.ParseFloat(fields[i+1], 64)
		if err != nil {
			return nil, err
		}
		all = append(all, result{worst, high})
	}
	return all, nil
}

// A station is one probe.
type station struct {
	fd      int
	command func(i int) []byte
	idle    bool // probes the idle server

	mu      sync.Mutex
	on      bool
	begun   time.Time // when the pending command was sent; zero: none is pending
	samples []float64 // in milliseconds
	failure error
}

// probes is the main function of the probes' process. It reads words from its input.
func probes(addresses string) error {
	address, idle, _ := strings.Cut(addresses, ",")
	key := func(i int) string { return fmt.Sprint("probe", i) }
	stations := []*station{
		{command: func(int) []byte { return appendCommand(nil, "PING") }},
		{command: func(i int) []byte { return appendCommand(nil, "BF.ADD", big, key(i)) }},
		{command: func(i int) []byte { return appendCommand(nil, "BF.EXISTS", big, key(i)) }},
		{command: func(i int) []byte { return appendCommand(nil, "BF.ADD", small, key(i)) }},
		{command: func(int) []byte { return appendCommand(nil, "PING") }, idle: true},
	}
	for _, s := range stations {
		to := address
		if s.idle {
			to = idle
		}
		if err := s.connect(to); err != nil {
			return err
		}
		go s.run()
	}
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		switch words.Text() {
		case "begin":
			for _, s := range stations {
				s.begin()
			}
			fmt.Println("ok")
		case "end":
			var line strings.Builder
			for _, s := range stations {
				r, err := s.end()
				if err != nil {
					return err
				}
				fmt.Fprintf(&line, "%f %f ", r.worst, r.high)
			}
			fmt.Println(line.String())
		}
	}
	return nil
}

// connect opens a blocking socket, so that wakeups by Go's poller are not measured.
func (s *station) connect(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	defer file.Close()
	if s.fd, err = syscall.Dup(int(file.Fd())); err != nil {
		return err
	}
	return syscall.SetNonblock(s.fd, false)
}

// run sends a command every millisecond, and waits for each reply.
func (s *station) run() {
	runtime.LockOSThread()
	var room [4096]byte
	next := time.Now()
	for i := 0; ; i++ {
		time.Sleep(time.Until(next))
		s.mu.Lock()
		s.begun = time.Now()
		s.mu.Unlock()
		_, err := syscall.Write(s.fd, s.command(i))
		for n := 0; err == nil && (n == 0 || room[n-1] != '\n'); {
			var more int
			more, err = syscall.Read(s.fd, room[n:])
			if n += more; err == nil && more == 0 {
				err = io.EOF
			}
			if err == syscall.EINTR {
				err = nil
			}
		}
		s.mu.Lock()
		s.sample(time.Now())
		s.begun = time.Time{}
		s.failure = err
		s.mu.Unlock()
		if err != nil {
			return
		}
		if next = next.Add(every); time.Since(next) > 0 {
			next = time.Now()
		}
	}
}

// sample records the latency of the pending command, and of those that should have
// been sent in the meantime. The caller holds mu.
func (s *station) sample(now time.Time) {
	if !s.on {
		return
	}
	for waited := now.Sub(s.begun); waited > 0; waited -= every {
		s.samples = append(s.samples, float64(waited)/float64(time.Millisecond))
	}
}

func (s *station) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.samples = true, nil
}

// end computes the result. A pending command counts with its latency so far.
func (s *station) end() (r result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun.IsZero() {
		s.sample(time.Now())
	}
	s.on = false
	slices.Sort(s.samples)
	if n := len(s.samples); n > 0 {
		r = result{s.samples[n-1], s.samples[int(math.Ceil(0.999*float64(n)))-1]}
	}
	return r, s.failure
}
