//go:build !race

package redisstore_test

// The race detector would compile all of go-redis, for one client after the other.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/redis/go-redis/v9"
)

// gateway serves a store, and returns the address.
func gateway(t *testing.T, s store.Store) string {
	t.Helper()
	g, err := server.New(s, server.Config{NonScaling: true, Filter: store.Spec{Kind: store.Paired, Capacity: 10_000}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		g.Shutdown(ctx)
	})
	return l.Addr().String()
}

// TestGateway uses two gateways over one cluster by unmodified go-redis.
func TestGateway(t *testing.T) {
	var clients []*redis.Client
	config := redisstore.Config{Prefix: newPrefix()}
	for i := range 2 {
		s := openStore(t, connect(t, cluster(t)[i].Address), config)
		t.Cleanup(func() { s.Clear(ctx); s.Close() })
		client := redis.NewClient(&redis.Options{Addr: gateway(t, s)})
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	one, two := clients[0], clients[1]
	want := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
	ok, err := one.BFReserve(ctx, "r", 0.001, 20_000_000).Result()
	want("BFReserve", ok, "OK", err)
	yes, err := two.BFAdd(ctx, "r", "a").Result()
	want("BFAdd", yes, true, err)
	yes, err = one.BFExists(ctx, "r", "a").Result()
	want("BFExists", yes, true, err)
	yes, err = one.BFExists(ctx, "nothing", "a").Result()
	want("BFExists of nothing", yes, false, err)
	all, err := two.BFMAdd(ctx, "r", "a", "b", "b", "c").Result()
	want("BFMAdd", all, []bool{false, true, false, true}, err)
	all, err = one.BFMExists(ctx, "r", "a", "b", "z").Result()
	want("BFMExists", all, []bool{true, true, false}, err)
	all, err = one.BFInsert(ctx, "i", &redis.BFInsertOptions{Capacity: 2000, Error: 0.001, NonScaling: true}, "a", "b", "a").Result()
	want("BFInsert", all, []bool{true, true, false}, err)
	n, err := two.BFCard(ctx, "r").Result()
	want("BFCard", n, 3, err)
	for range 100 { // the other gateway hears of it a moment later
		if n, err = one.BFCard(ctx, "r").Result(); n == 3 || err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	want("BFCard of the other gateway", n, 3, err)
	info, err := two.BFInfoCapacity(ctx, "r").Result()
	want("BFInfoCapacity", info.Capacity, 20_000_000, err)
	size, err := two.DBSize(ctx).Result()
	want("DBSize", size, 2, err)
	yes, err = two.BFAdd(ctx, "made", "a").Result()
	want("BFAdd of nothing", yes, true, err)
	text, err := one.Do(ctx, "BF.SWAP", "made", "r").Text()
	want("BF.SWAP", text, "OK", err)
	yes, err = two.BFExists(ctx, "made", "c").Result()
	want("BFExists after BF.SWAP at the other gateway", yes, true, err)
	n, err = two.Del(ctx, "made", "r").Result()
	want("Del", n, 2, err)
	yes, err = one.BFExists(ctx, "made", "c").Result()
	want("BFExists after DEL at the other gateway", yes, false, err)
	for what, err := range map[string]error{
		"growth":  one.BFReserveExpansion(ctx, "g", 0.01, 1000, 2).Err(),
		"strings": one.Set(ctx, "s", "x", 0).Err(),
		"expiry":  one.Expire(ctx, "i", time.Hour).Err(),
		"layout":  one.Do(ctx, "BF.RESERVE", "g", "0.01", "1000", "LAYOUT", "REDISBLOOM", "NONSCALING").Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), "unsupported operation: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestGatewayBenchmark: redis-benchmark works through a gateway, pipelined and on many
// connections.
func TestGatewayBenchmark(t *testing.T) {
	s := openStore(t, connect(t, cluster(t)[0].Address), redisstore.Config{Prefix: newPrefix()})
	t.Cleanup(func() { s.Clear(ctx); s.Close() })
	create(t, s, "k", spec)
	_, port, _ := net.SplitHostPort(gateway(t, s))
	for _, command := range []string{"BF.ADD", "BF.EXISTS"} {
		out, err := exec.Command("redis-benchmark", "-p", port, "-q", "-n", "20000", "-c", "20", "-P", "20", "-r", "100000000", command, "k", "__rand_int__").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "requests per second") {
			t.Errorf("%s: %v, %s", command, err, out)
		}
	}
	if info := create(t, s, "other", spec).Info(); info.Items != 0 {
		t.Errorf("%+v", info)
	}
	f, err := s.Open([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	if items := f.Info().Items; items < 19_900 || items > 20_000 {
		t.Errorf("%d items of 20,000", items)
	}
}

// TestGatewayWithoutStore: while the store's server is down, every reply is an error, and
// never "absent".
func TestGatewayWithoutStore(t *testing.T) {
	t.Parallel() // it waits
	redisServer := redistest.Start(t)
	s := openStore(t, connect(t, redisServer.Address), redisstore.Config{Timeout: 200 * time.Millisecond})
	defer s.Close()
	client := redis.NewClient(&redis.Options{Addr: gateway(t, s), MaxRetries: -1})
	defer client.Close()
	if err := client.BFAdd(ctx, "f", "a").Err(); err != nil {
		t.Fatal(err)
	}
	redisServer.Kill()
	for _, words := range []string{
		"BF.ADD f a", "BF.ADD f b", "BF.MADD f a b", "BF.EXISTS f a", "BF.MEXISTS f a b", "BF.EXISTS g a", "BF.ADD g a", "BF.RESERVE h 0.01 100",
		"EXISTS f", "TYPE f", "DEL f", "DBSIZE", "KEYS *", "SCAN 0", "TTL f", "RENAME f g", "RANDOMKEY", "FLUSHALL", "FLUSHDB", "BF.SWAP f g", "PERSIST f",
	} {
		args := []any{}
		for _, word := range strings.Fields(words) {
			args = append(args, word)
		}
		got, err := client.Do(ctx, args...).Result()
		if items, ok := got.([]any); ok && err == nil && len(items) > 0 { // of BF.MADD, an error for each key
			err, _ = items[0].(error)
		}
		if e := redis.Error(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%s: %v, %v", words, got, err)
		}
	}
	if err := client.Ping(ctx).Err(); err != nil {
		t.Errorf("PING: %v", err)
	}
	redisServer.Restart(t)
	for range 100 {
		if yes, err := client.BFExists(ctx, "f", "a").Result(); err == nil {
			if !yes {
				t.Error("the key is gone after the server has started again")
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("no answer after the server has started again")
}
