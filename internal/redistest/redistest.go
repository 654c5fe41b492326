// Package redistest starts real Redis servers for tests, alone or as a cluster, on free
// ports of this machine.
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running server.
type Server struct {
	Address string // host:port
	port    int
	dir     string
	first   []string // arguments before all others, in place of those of a server
	args    []string
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// program returns the path of redis-server. Debian's redis-tools has it, too: there it is
// redis-check-rdb, which becomes the server if it is called by that name.
var program = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("redis-server"); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("redis-check-rdb")
	if err != nil {
		return "", fmt.Errorf("no redis-server and no redis-check-rdb: run make test, which installs redis-tools")
	}
	dir, err := tempDir()
	if err != nil {
		return "", err
	}
	link := filepath.Join(dir, "redis-server")
	return link, os.Symlink(path, link)
})

// started are the servers to be killed at the end of all tests.
var started struct {
	sync.Mutex
	servers []*Server
	dirs    []string
}

// Main runs the tests of a package, which may start servers, and then ends the servers.
func Main(m *testing.M) (code int) {
	defer func() {
		for _, s := range started.servers {
			s.Kill()
		}
		for _, dir := range started.dirs {
			os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

// tempDir returns a directory that is there until Main ends.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "bloomery-redis-")
	started.Lock()
	defer started.Unlock()
	started.dirs = append(started.dirs, dir)
	return dir, err
}

// Start starts a server that keeps its data in a log, with more arguments. It runs until
// Main ends, or Kill.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	dir, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: dir, args: args, port: freePort(t)}
	s.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	s.Restart(t)
	started.Lock()
	defer started.Unlock()
	started.servers = append(started.servers, s)
	return s
}

// busPort is the port for a cluster's own connections.
func busPort(port int) int {
	if port > 55535 {
		return port - 10000
	}
	return port + 10000
}

// freePort returns a port that is free, as is its busPort.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(busPort(port)))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free pair of ports")
	return 0
}

// Restart starts a server that was killed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--cluster-port", strconv.Itoa(busPort(s.port)), "--save", "", "--appendonly", "yes", "--appendfsync", "everysec"}, s.args...)
	if s.first != nil {
		args = append(s.first, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1")
	}
	s.cmd = exec.Command(path, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = dieWithUs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if out, err := s.CLI(t.Context(), "PING"); err == nil && strings.TrimSpace(out) == "PONG" {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("redis-server does not answer: %v, %s\n%s", err, out, &s.log)
		}
	}
}

// Port is the port of its address.
func (s *Server) Port() int { return s.port }

// Dir is where it keeps its data.
func (s *Server) Dir() string { return s.dir }

// Signal sends the process a signal.
func (s *Server) Signal(signal os.Signal) { s.cmd.Process.Signal(signal) }

// Kill is kill -9.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// CLI sends a command by redis-cli.
func (s *Server) CLI(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "redis-cli", append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.port)}, args...)...).CombinedOutput()
	return string(out), err
}

// Cluster starts a cluster of masters, each with a replica.
func Cluster(t testing.TB, masters int, args ...string) []*Server {
	t.Helper()
	var servers []*Server
	var addresses []string
	for range 2 * masters {
		server := Start(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"}, args...)...)
		servers = append(servers, server)
		addresses = append(addresses, server.Address)
	}
	command := append(append([]string{"--cluster", "create"}, addresses...), "--cluster-replicas", "1", "--cluster-yes")
	if out, err := servers[0].CLI(t.Context(), command...); err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	for _, server := range servers {
		server.WaitFor(t, "cluster_state:ok", "CLUSTER", "INFO")
	}
	return servers
}

// Sentinels starts a master with replicas, and three Sentinels that watch it under the
// name "mymaster". It returns the Sentinels and the servers, the master first.
func Sentinels(t testing.TB, replicas int) (sentinels, servers []*Server) {
	t.Helper()
	servers = []*Server{Start(t)}
	master := servers[0]
	for range replicas {
		servers = append(servers, Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(master.port), "--repl-diskless-sync-delay", "0"))
	}
	for range 3 {
		dir, err := tempDir()
		if err != nil {
			t.Fatal(err)
		}
		config := fmt.Sprintf("sentinel monitor mymaster 127.0.0.1 %d 2\nsentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n", master.port)
		path := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Server{dir: dir, port: freePort(t), first: []string{path, "--sentinel"}}
		s.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		s.Restart(t)
		started.Lock()
		started.servers = append(started.servers, s)
		started.Unlock()
		sentinels = append(sentinels, s)
	}
	for _, s := range sentinels {
		s.WaitFor(t, fmt.Sprintf("slaves=%d,sentinels=3", replicas), "INFO", "sentinel")
	}
	return sentinels, servers
}

// WaitFor waits until a command's reply contains a text.
func (s *Server) WaitFor(t testing.TB, text string, command ...string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out, err := s.CLI(t.Context(), command...)
		if err == nil && strings.Contains(out, text) {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%v, after 30 seconds, instead of %q: %v, %s", command, text, err, out)
		}
	}
}
