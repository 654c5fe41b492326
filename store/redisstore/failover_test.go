//go:build unix

package redisstore_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/redis/rueidis"
	"github.com/zeebo/xxh3"
)

// An adder adds keys, and tells whether they are there.
type adder interface {
	add(keys [][]byte) error
	has(keys [][]byte) (found []bool, err error)
}

// guarded is our filter.
type guarded struct{ *redisstore.Filter }

func (g guarded) add(keys [][]byte) error {
	_, err := g.AddMany(ctx, keys, nil)
	return err
}

func (g guarded) has(keys [][]byte) ([]bool, error) {
	found := make([]bool, len(keys))
	_, err := g.ContainsMany(ctx, keys, found)
	return found, err
}

// plain is what is commonly done instead: SETBIT of eight bits in one of many strings.
type plain struct{ client rueidis.Client }

func (p plain) commands(key []byte, set bool) (commands []rueidis.Completed) {
	h := xxh3.Hash(key)
	name := fmt.Sprintf("plain:%d", h%64)
	for i := range uint64(8) {
		bit := int64((h + i*(h>>32|1)) % (1 << 19))
		if set {
			commands = append(commands, p.client.B().Setbit().Key(name).Offset(bit).Value(1).Build())
		} else {
			commands = append(commands, p.client.B().Getbit().Key(name).Offset(bit).Build())
		}
	}
	return commands
}

func (p plain) do(keys [][]byte, set bool) ([]rueidis.RedisResult, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var commands []rueidis.Completed
	for _, key := range keys {
		commands = append(commands, p.commands(key, set)...)
	}
	replies := p.client.DoMulti(ctx, commands...)
	for _, r := range replies {
		if err := r.Error(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

func (p plain) add(keys [][]byte) error {
	_, err := p.do(keys, true)
	return err
}

func (p plain) has(keys [][]byte) ([]bool, error) {
	replies, err := p.do(keys, false)
	found := make([]bool, len(keys))
	for i := range found {
		found[i] = err == nil
		for j := range 8 {
			if err == nil {
				bit, _ := replies[8*i+j].AsInt64()
				found[i] = found[i] && bit == 1
			}
		}
	}
	return found, err
}

// A crowd adds keys all the time and keeps those that were acknowledged.
type crowd struct {
	adder adder
	stop  atomic.Bool
	wait  sync.WaitGroup

	mu           sync.Mutex
	acknowledged [][]byte
	last         time.Time
	outage       time.Duration // the longest time without an acknowledgement, of anybody
	failed       int           // keys whose add failed
}

const inFlight = 50 // keys of a batch

func gather(a adder, name string) *crowd {
	c := &crowd{adder: a, last: time.Now()}
	for w := range 4 {
		c.wait.Go(func() {
			for n := uint64(0); !c.stop.Load(); {
				keys := make([][]byte, inFlight)
				for i := range keys {
					keys[i] = binary.BigEndian.AppendUint64(fmt.Appendf(nil, "%s/%d/", name, w), n)
					n++
				}
				err := a.add(keys)
				c.mu.Lock()
				if now := time.Now(); err == nil {
					c.acknowledged = append(c.acknowledged, keys...)
					c.outage = max(c.outage, now.Sub(c.last))
					c.last = now
				} else {
					c.failed += len(keys)
				}
				c.mu.Unlock()
				if err != nil {
					time.Sleep(10 * time.Millisecond)
				} else {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	return c
}

func (c *crowd) end() {
	c.stop.Store(true)
	c.wait.Wait()
}

// count looks for everything that was acknowledged: what is absent was lost in silence,
// what cannot be asked for was lost with an error.
func (c *crowd) count(t *testing.T) (silent, reported int) {
	t.Helper()
	for from := 0; from < len(c.acknowledged); from += 100 {
		keys := c.acknowledged[from:min(from+100, len(c.acknowledged))]
		found, err := c.adder.has(keys)
		if err != nil { // one by one
			for _, key := range keys {
				one, err := c.adder.has([][]byte{key})
				if errors.Is(err, redisstore.ErrDamaged) {
					reported++
				} else if err != nil {
					t.Fatal(err)
				} else if !one[0] {
					silent++
				}
			}
			continue
		}
		for _, is := range found {
			if !is {
				silent++
			}
		}
	}
	return silent, reported
}

// A fault is something that happens to a cluster under load.
type fault struct {
	name string
	do   func(t *testing.T, c *testCluster)
}

// testCluster is a cluster, and the network between it and a client.
type testCluster struct {
	servers []*redistest.Server
	cut     atomic.Int64 // the port that cannot be reached; zero: none
}

// roles returns a master and its replica.
func (c *testCluster) roles(t *testing.T) (master, replica *redistest.Server) {
	t.Helper()
	for _, s := range c.servers {
		out, _ := s.CLI(ctx, "INFO", "replication")
		if !strings.Contains(out, "role:master") || !strings.Contains(out, "connected_slaves:1") {
			continue
		}
		for _, r := range c.servers {
			if out, _ := r.CLI(ctx, "INFO", "replication"); strings.Contains(out, "role:slave") &&
				strings.Contains(out, fmt.Sprintf("master_port:%d\r", s.Port())) {
				return s, r
			}
		}
	}
	t.Fatal("no master has a replica")
	return nil, nil
}

func (c *testCluster) settle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		masters, replicas := 0, 0
		for _, s := range c.servers {
			state, _ := s.CLI(ctx, "CLUSTER", "INFO")
			out, _ := s.CLI(ctx, "INFO", "replication")
			if !strings.Contains(state, "cluster_state:ok") {
				continue
			}
			if strings.Contains(out, "role:master") && strings.Contains(out, "connected_slaves:1") && strings.Contains(out, "state=online") {
				masters++
			} else if strings.Contains(out, "master_link_status:up") {
				replicas++
			}
		}
		if masters == 3 && replicas == 3 {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("after a minute there are %d masters with a replica", masters)
		}
	}
}

const nodeTimeout = 2 * time.Second // of redistest

var faults = []fault{
	{"kill -9 of a master", func(t *testing.T, c *testCluster) {
		master, replica := c.roles(t)
		master.Kill()
		replica.WaitFor(t, "role:master", "INFO", "replication")
		time.Sleep(time.Second)
		master.Restart(t)
	}},
	{"replica 3 s behind, then kill -9 of its master", func(t *testing.T, c *testCluster) {
		master, replica := c.roles(t)
		replica.Signal(syscall.SIGSTOP)
		time.Sleep(3 * time.Second)
		master.Kill()
		replica.Signal(syscall.SIGCONT)
		replica.WaitFor(t, "role:master", "INFO", "replication")
		time.Sleep(time.Second)
		master.Restart(t)
	}},
	{"master paused for 5 s", func(t *testing.T, c *testCluster) {
		master, replica := c.roles(t)
		master.Signal(syscall.SIGSTOP)
		time.Sleep(5 * time.Second)
		master.Signal(syscall.SIGCONT)
		replica.WaitFor(t, "role:", "INFO", "replication")
	}},
	{"master starts again, empty", func(t *testing.T, c *testCluster) {
		master, _ := c.roles(t)
		master.Kill()
		if err := os.RemoveAll(filepath.Join(master.Dir(), "appendonlydir")); err != nil {
			t.Fatal(err)
		}
		master.Restart(t)
	}},
	{"resharding of 500 slots", func(t *testing.T, c *testCluster) {
		id := func(s *redistest.Server) string {
			out, err := s.CLI(ctx, "CLUSTER", "MYID")
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(out)
		}
		var masters []*redistest.Server
		for _, s := range c.servers {
			if out, _ := s.CLI(ctx, "INFO", "replication"); strings.Contains(out, "role:master") {
				masters = append(masters, s)
			}
		}
		out, err := masters[0].CLI(ctx, "--cluster", "reshard", masters[0].Address, "--cluster-from", id(masters[0]), "--cluster-to", id(masters[1]),
			"--cluster-slots", "500", "--cluster-yes")
		if err != nil {
			t.Fatalf("resharding: %v\n%s", err, out)
		}
	}},
	{"no network to a master for 5 s", func(t *testing.T, c *testCluster) {
		master, _ := c.roles(t)
		c.cut.Store(int64(master.Port()))
		time.Sleep(5 * time.Second)
		c.cut.Store(0)
	}},
}

// cutConn is a connection that carries nothing while its port is cut.
type cutConn struct {
	net.Conn
	port int64
	c    *testCluster
}

func (c cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.c.cut.Load() == c.port {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c cutConn) Write(b []byte) (int, error) {
	if c.c.cut.Load() == c.port {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *testCluster) connect(t *testing.T) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{c.servers[0].Address, c.servers[1].Address}, DisableCache: true, ConnWriteTimeout: 3 * time.Second,
		DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			_, text, _ := net.SplitHostPort(address)
			port, _ := strconv.ParseInt(text, 10, 64)
			if c.cut.Load() == port {
				return nil, fmt.Errorf("%s: cut off by the test", address)
			}
			conn, err := d.DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return cutConn{conn, port, c}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestFailover: of the adds that were acknowledged while servers failed, none is lost in
// silence if replicas confirm them, or if they are sent again. It prints the table in
// docs/reliability.md.
func TestFailover(t *testing.T) {
	if *failovers == 0 {
		t.Skip("it takes minutes: make failover runs it")
	}
	cycles := *failovers
	fmt.Println("| failure | adds | acknowledged | lost in silence | lost with an error | longest time without an answer |\n|---|---|--:|--:|--:|--:|")
	c := &testCluster{servers: redistest.Cluster(t, 3)}
	for _, fault := range faults {
		for _, way := range []string{"SETBIT", "async", "wait:1", "replay:10s"} {
			acknowledged, silent, reported, outage := 0, 0, 0, time.Duration(0)
			for cycle := range cycles {
				c.settle(t)
				client := c.connect(t)
				var a adder = plain{client}
				var s *redisstore.Store
				if way != "SETBIT" {
					durability, err := redisstore.ParseDurability(way)
					if err != nil {
						t.Fatal(err)
					}
					s = openStore(t, client, redisstore.Config{Prefix: newPrefix(), Durability: durability})
					create(t, s, "f", store.Spec{Kind: store.Paired, Capacity: 10_000_000, Rate: 1e-6})
					f, err := s.Filter(ctx, "f")
					if err != nil {
						t.Fatal(err)
					}
					a = guarded{f}
					time.Sleep(200 * time.Millisecond) // the replicas have the chunks
				}
				crowd := gather(a, fmt.Sprint(fault.name, way, cycle))
				time.Sleep(time.Second)
				fault.do(t, c)
				time.Sleep(2 * time.Second)
				crowd.end()
				c.settle(t)
				if s != nil {
					s.WaitReplayed(t)
				}
				lost, errors := crowd.count(t)
				silent, reported = silent+lost, reported+errors
				acknowledged += len(crowd.acknowledged)
				outage = max(outage, crowd.outage)
				if s != nil {
					s.Clear(ctx)
					s.Close()
				}
				client.Close()
			}
			fmt.Printf("| %s | %s | %d | %d | %d | %.1f s |\n", fault.name, way, acknowledged, silent, reported, outage.Seconds())
			if acknowledged < 1000 {
				t.Errorf("%s, %s: only %d adds were acknowledged", fault.name, way, acknowledged)
			}
			if silent != 0 && (strings.HasPrefix(way, "wait") || strings.HasPrefix(way, "replay")) {
				t.Errorf("%s, %s: %d of %d adds were lost in silence", fault.name, way, silent, acknowledged)
			}
		}
	}
}
