package redisstore_test

import (
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/redis/rueidis"
)

var failovers = flag.Int("failovers", 0, "how often each failure happens in TestFailover; 0: it is not run")

var gib = flag.Float64("gib", 0, "size of the filter of TestLarge, in GiB; 0: it is not run")

// memoryOf returns the memory of servers, by the system's count, in bytes.
func memoryOf(t *testing.T, servers []*redistest.Server) (total float64) {
	t.Helper()
	for _, s := range servers {
		out, err := s.CLI(ctx, "INFO", "memory")
		if err != nil {
			continue // killed
		}
		_, rest, _ := strings.Cut(out, "used_memory_rss:")
		n, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 64)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

// TestLarge: a filter of gigabytes is filled and checked, a master is lost and replaced,
// and everything is there. make cluster-large prints the times and the memory.
func TestLarge(t *testing.T) {
	if *gib == 0 {
		t.Skip("it takes minutes, and twice the memory: make cluster-large runs it")
	}
	servers := redistest.Cluster(t, 3)
	client := connect(t, servers[0].Address)
	s := openStore(t, client, redisstore.Config{Timeout: 20 * time.Second})
	defer s.Close()
	const rate, keys = 0.001, 5_000_000
	capacity := uint64(*gib * (1 << 30) * 8 / 14.71)
	began := time.Now()
	step := func(format string, args ...any) {
		fmt.Printf("%6.1f s  %s; the servers have %.2f GiB\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...), memoryOf(t, servers)/(1<<30))
	}
	f := create(t, s, "large", store.Spec{Kind: store.Paired, Capacity: capacity, Rate: rate})
	info := f.Info()
	step("a filter of %.2f GiB for %d keys at %v", float64(info.Layers[0].Bytes)/(1<<30), info.Capacity, rate)
	all := func(prefix string, do func(keys [][]byte, answers []bool) error) (yes int64) {
		t.Helper()
		var count atomic.Int64
		var wait sync.WaitGroup
		for w := range 8 {
			wait.Go(func() {
				for from := w * 1000; from < keys; from += 8000 {
					part, answers := make([][]byte, 1000), make([]bool, 1000)
					for i := range part {
						part[i] = fmt.Appendf(nil, "%s/%d", prefix, from+i)
					}
					if err := do(part, answers); err != nil {
						t.Error(err)
						return
					}
					for _, is := range answers {
						if is {
							count.Add(1)
						}
					}
				}
			})
		}
		wait.Wait()
		return count.Load()
	}
	add := func(keys [][]byte, isNew []bool) error { _, err := f.Add(ctx, keys, isNew); return err }
	has := func(keys [][]byte, found []bool) error { return f.Contains(ctx, keys, found) }
	at := time.Now()
	added := all("in", add)
	step("%d keys added, %d of them new, %.0f a second", keys, added, keys/time.Since(at).Seconds())
	at = time.Now()
	if found := all("in", has); found != keys {
		t.Errorf("%d of %d keys are there", found, keys)
	}
	step("all of them found, %.0f a second", keys/time.Since(at).Seconds())
	at = time.Now()
	strangers := all("out", has)
	step("%d of %d others found, %.0f a second", strangers, keys, keys/time.Since(at).Seconds())
	check := func() {
		t.Helper()
		at = time.Now()
		c, err := s.Check(ctx, func(text string) { t.Error(text) })
		if err != nil {
			t.Fatal(err)
		}
		step("fsck: %d chunks whole, %d problems, in %.1f s", c.Chunks, c.All(), time.Since(at).Seconds())
	}
	check()
	time.Sleep(2 * time.Second) // the replicas are up to date
	servers[0].Kill()
	at = time.Now()
	for deadline := at.Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, _ := servers[1].CLI(ctx, "CLUSTER", "INFO")
		if strings.Contains(out, "cluster_state:ok") && has([][]byte{[]byte("in/1")}, make([]bool, 1)) == nil && time.Since(at) > 3*time.Second {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("no failover in two minutes")
		}
	}
	step("a master killed, its replica has taken over")
	if found := all("in", has); found != keys {
		t.Errorf("%d of %d keys are there after the failover", found, keys)
	}
	step("all keys found again")
	check()
}

// gatewayAt is the environment variable that makes the test program a gateway: the address
// of a server and the prefix.
const gatewayAt = "BLOOMERY_GATEWAY"

// serveGateway serves until it is killed, and prints its address.
func serveGateway(where string) error {
	address, prefix, _ := strings.Cut(where, " ")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		return err
	}
	s, err := redisstore.New(ctx, client, redisstore.Config{Prefix: prefix})
	if err != nil {
		return err
	}
	g, err := server.New(s, server.Config{NonScaling: true, Filter: store.Spec{Kind: store.Paired}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return g.Serve(l)
}

// TestGatewaysKilled: two gateways in processes of their own and a library client add the
// same million keys, while one gateway after the other is killed and replaced. Each key
// is new to one of them at most, and what was acknowledged is there.
func TestGatewaysKilled(t *testing.T) {
	if *failovers == 0 {
		t.Skip("it takes a minute: make failover runs it")
	}
	const keys, batch = 1_000_000, 500
	prefix := newPrefix()
	s := openStore(t, connect(t, cluster(t)[0].Address), redisstore.Config{Prefix: prefix})
	t.Cleanup(func() { s.Clear(ctx); s.Close() })
	create(t, s, "f", store.Spec{Kind: store.Paired, Capacity: keys, Rate: 1e-9})
	f, err := s.Filter(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	part := func(n int) (texts []string) {
		for i := range batch {
			texts = append(texts, fmt.Sprint("raced/", n*batch+i))
		}
		return texts
	}
	var winners, acknowledged [keys]atomic.Int32
	note := func(n int, isNew func(i int) bool) {
		for i := range batch {
			acknowledged[n*batch+i].Add(1)
			if isNew(i) {
				winners[n*batch+i].Add(1)
			}
		}
	}
	var wait sync.WaitGroup
	var kills, failed atomic.Int64
	for g := range 2 {
		start := func() (*exec.Cmd, rueidis.Client) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", gatewayAt, cluster(t)[g].Address, prefix))
			cmd.Stderr = os.Stderr
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var address string
			fmt.Fscanln(pipe, &address)
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true})
			if err != nil {
				t.Fatal(err)
			}
			return cmd, client
		}
		wait.Go(func() {
			cmd, client := start()
			defer func() { cmd.Process.Kill(); cmd.Wait() }()
			killAt := time.Now().Add(time.Duration(1+g) * time.Second)
			for n := range keys / batch {
				n = (n + g*700) % (keys / batch)
				if time.Now().After(killAt) && kills.Load() < 10 {
					kills.Add(1)
					go func(p *os.Process) { time.Sleep(5 * time.Millisecond); p.Kill() }(cmd.Process)
				}
				answers, err := client.Do(ctx, client.B().Arbitrary("BF.MADD").Keys("f").Args(part(n)...).Build()).AsIntSlice()
				if err != nil {
					failed.Add(batch)
					cmd.Wait()
					client.Close()
					cmd, client = start()
					killAt = time.Now().Add(2 * time.Second)
					continue
				}
				note(n, func(i int) bool { return answers[i] == 1 })
			}
			client.Close()
		})
	}
	wait.Go(func() {
		for n := range keys / batch {
			n = keys/batch - 1 - n
			texts, isNew := part(n), make([]bool, batch)
			bytes := make([][]byte, batch)
			for i, text := range texts {
				bytes[i] = []byte(text)
			}
			if _, err := f.AddMany(ctx, bytes, isNew); err != nil {
				t.Error(err)
				return
			}
			note(n, func(i int) bool { return isNew[i] })
		}
	})
	wait.Wait()
	missing, none := 0, 0
	for n := range keys / batch {
		texts := part(n)
		bytes, found := make([][]byte, batch), make([]bool, batch)
		for i, text := range texts {
			bytes[i] = []byte(text)
		}
		if _, err := f.ContainsMany(ctx, bytes, found); err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			if !found[i] && acknowledged[n*batch+i].Load() > 0 {
				missing++
			}
			switch w := winners[n*batch+i].Load(); {
			case w > 1:
				t.Fatalf("key %d was new to %d", n*batch+i, w)
			case w == 0:
				none++
			}
		}
	}
	fmt.Printf("%d keys, two gateways and a library client, %d kills of gateways: none was new twice; %d acknowledged and missing; %d new to nobody who heard of it, of %d whose add failed\n",
		keys, kills.Load(), missing, none, failed.Load())
	if missing > 0 || int64(none) > failed.Load()+10 {
		t.Errorf("%d acknowledged keys are missing, %d were new to nobody, and %d adds failed", missing, none, failed.Load())
	}
}
