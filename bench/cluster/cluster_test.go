// Package cluster compares filters in a Redis Cluster with those of go-zero's core/bloom,
// on the same six servers:
//
//	go test -v -bench-keys 400000
//
// It prints what a key costs, and fails only if something is wrong, not slow.
package cluster

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ours "github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/redis/rueidis"
	"github.com/zeromicro/go-zero/core/bloom"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

var (
	benchKeys = flag.Int("bench-keys", 200_000, "keys of each measurement")
	rounds    = flag.Int("rounds", 3, "rounds, of which the table has the median")
)

var ctx = context.Background()

const (
	filterKeys = 20_000_000
	workers    = 8
	batch      = 100
	// go-zero has no batches, so it gets more goroutines.
	callers = 64
)

// A side is a way to add and to look up.
type side struct {
	name    string
	batch   int // of a call
	workers int
	add     func(keys [][]byte) error
	has     func(keys [][]byte) (found int, err error)
}

// run does all keys by a side, and returns how many a second.
func (s side) run(t *testing.T, what string, keys [][]byte) float64 {
	t.Helper()
	parts := make(chan [][]byte, len(keys)/s.batch+1)
	for part := range slices.Chunk(keys, s.batch) {
		parts <- part
	}
	close(parts)
	var wait sync.WaitGroup
	began := time.Now()
	for range s.workers {
		wait.Go(func() {
			for part := range parts {
				var err error
				found := len(part)
				if what == "add" {
					err = s.add(part)
				} else {
					found, err = s.has(part)
				}
				if err != nil || found < len(part) && what == "check" || found > len(part)/2 && what == "check of new keys" && s.batch > 1 {
					t.Errorf("%s, %s: %d of %d, %v", s.name, what, found, len(part), err)
					return
				}
			}
		})
	}
	wait.Wait()
	return float64(len(keys)) / time.Since(began).Seconds()
}

func randomKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = binary.LittleEndian.AppendUint64(nil, rand.Uint64())
	}
	return keys
}

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestCluster(t *testing.T) {
	logx.SetWriter(logx.NewWriter(io.Discard))
	servers := redistest.Cluster(t, 3)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{servers[0].Address}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := redisstore.New(ctx, client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Create(ctx, "ours", store.Spec{Kind: store.Paired, Capacity: filterKeys, Rate: 1e-4}); err != nil {
		t.Fatal(err)
	}
	filter, err := s.Filter(ctx, "ours")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, "gateway", store.Spec{Kind: store.Paired, Capacity: filterKeys, Rate: 1e-4}); err != nil {
		t.Fatal(err)
	}
	gateway, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{serve(t, s)}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	theirs := bloom.New(redis.New(servers[0].Address, redis.Cluster()), "theirs", 20*filterKeys)
	// Its scripts are sent first: otherwise its circuit breaker takes their absence for
	// a failure of the server.
	if err := theirs.AddCtx(ctx, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if is, err := theirs.ExistsCtx(ctx, []byte("first")); !is || err != nil {
		t.Fatal(is, err)
	}

	through := func(command string, keys [][]byte) (n int, err error) {
		args := make([]string, len(keys))
		for i, key := range keys {
			args[i] = rueidis.BinaryString(key)
		}
		got, err := gateway.Do(ctx, gateway.B().Arbitrary(command).Keys("gateway").Args(args...).Build()).AsIntSlice()
		for _, is := range got {
			n += int(is)
		}
		return n, err
	}
	sides := []side{
		{"go-zero core/bloom", 1, callers,
			func(keys [][]byte) error { return theirs.AddCtx(ctx, keys[0]) },
			func(keys [][]byte) (int, error) {
				is, err := theirs.ExistsCtx(ctx, keys[0])
				if is {
					return 1, err
				}
				return 0, err
			}},
		{"redisstore", batch, workers,
			func(keys [][]byte) error { _, err := filter.AddMany(ctx, keys, nil); return err },
			func(keys [][]byte) (int, error) { return filter.ContainsMany(ctx, keys, nil) }},
		{"redisstore, a key a call", 1, callers,
			func(keys [][]byte) error { _, err := filter.Add(ctx, keys[0]); return err },
			func(keys [][]byte) (int, error) { return filter.ContainsMany(ctx, keys, nil) }},
		{"a gateway", batch, workers,
			func(keys [][]byte) error { _, err := through("BF.MADD", keys); return err },
			func(keys [][]byte) (int, error) { return through("BF.MEXISTS", keys) }},
	}
	whats := []string{"add", "check", "check of new keys"}
	speed, cost := map[string][]float64{}, map[string][]float64{} // keys a second; microseconds of the servers' CPUs
	for range *rounds {
		for _, side := range sides {
			keys := randomKeys(*benchKeys)
			if side.workers == callers {
				keys = keys[:len(keys)/4] // it takes longer
			}
			for _, what := range whats {
				if what == "check of new keys" {
					keys = randomKeys(len(keys))
				}
				before := cpuOf(t, servers)
				speed[side.name+what] = append(speed[side.name+what], side.run(t, what, keys))
				cost[side.name+what] = append(cost[side.name+what], 1e6*(cpuOf(t, servers)-before)/float64(len(keys)))
			}
		}
	}
	median := func(of map[string][]float64, side, what string) float64 {
		all := of[side+what]
		slices.Sort(all)
		return all[len(all)/2]
	}
	fmt.Println("| | adds a second | of go-zero's | checks of present keys | of go-zero's | checks of new keys | of go-zero's |\n|---|--:|--:|--:|--:|--:|--:|")
	for _, side := range sides {
		fmt.Printf("| %s, %d at a time, %d goroutines |", side.name, side.batch, side.workers)
		for _, what := range whats {
			is := median(speed, side.name, what)
			fmt.Printf(" %.0f | %.1f |", is, is/median(speed, sides[0].name, what))
		}
		fmt.Println()
	}
	fmt.Println("\nmicroseconds of all six servers' CPUs for a key:\n\n| | add | check of a present key | check of a new key |\n|---|--:|--:|--:|")
	for _, side := range sides {
		fmt.Printf("| %s |", side.name)
		for _, what := range whats {
			fmt.Printf(" %.1f |", median(cost, side.name, what))
		}
		fmt.Println()
	}
	capacity(t, median(cost, "redisstore", "add"), median(cost, "redisstore", "check"))
	fmt.Printf("\n%d cores; %s %s/%s; %s; six redis-server processes, the gateway and the client on one machine. Median of %d rounds.\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly), *rounds)
}

// serve is a gateway in this process, reached through the network.
func serve(t *testing.T, s *redisstore.Store) string {
	t.Helper()
	g, err := server.New(s, server.Config{NonScaling: true, Filter: store.Spec{Kind: store.Paired}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	t.Cleanup(func() { g.Shutdown(ctx) })
	return strings.TrimSpace(l.Addr().String())
}

// cpuOf returns the seconds of CPU that servers have used.
func cpuOf(t *testing.T, servers []*redistest.Server) (total float64) {
	t.Helper()
	for _, s := range servers {
		out, err := s.CLI(ctx, "INFO", "cpu")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
				if text, ok := strings.CutPrefix(line, name); ok {
					n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
					if err != nil {
						t.Fatal(err)
					}
					total += n
				}
			}
		}
	}
	return total
}

// capacity prints what filters of many keys need, if a master has 64 GiB of memory, of
// which its chunks take 48, and a CPU for itself and one for its replica.
func capacity(t *testing.T, add, check float64) {
	t.Helper()
	const chunk, head, perMaster = 1 << 20, 512, 48 << 30
	fmt.Println("\n| keys | rate | bits in all | masters | chunks | over the bits | checks a second | adds a second |\n|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, n := range []uint64{1e9, 1e10, 1e11, 1e12} {
		for _, p := range []float64{0.01, 0.001} {
			plan, err := (ours.Config{Keys: n, Rate: p}).Plan()
			if err != nil {
				t.Fatal(err)
			}
			chunks := (plan.Bytes() + chunk - head - 1) / (chunk - head)
			masters := max((chunks*chunk+perMaster-1)/perMaster, 3)
			fmt.Printf("| 10^%.0f | %v | %.1f GiB | %d | %d | %.2f%% | %.1f million | %.2f million |\n", math.Log10(float64(n)), p, float64(plan.Bytes())/(1<<30), masters, chunks,
				100*(float64(chunks*chunk)/float64(plan.Bytes())-1), float64(masters)/check, float64(masters)/add)
		}
	}
}
