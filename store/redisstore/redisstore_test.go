package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/bloomery/bloom/store/storetest"
	"github.com/redis/rueidis"
)

var ctx = context.Background()

func connect(t testing.TB, address string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// prefixes are the tests' own, so that they can share servers.
var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("test%d:", prefixes.Add(1)) }

func openStore(t testing.TB, client rueidis.Client, config redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(ctx, client, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testStore(t *testing.T, address string, change func(*redisstore.Config)) {
	client := connect(t, address)
	configs := map[store.Store]redisstore.Config{}
	open := func(t *testing.T, config redisstore.Config) store.Store {
		s := openStore(t, client, config)
		configs[s] = config
		t.Cleanup(func() { s.Close() })
		return s
	}
	storetest.Run(t, storetest.Config{
		Open: func(t *testing.T) store.Store {
			config := redisstore.Config{Prefix: newPrefix()}
			if change != nil {
				change(&config)
			}
			s := open(t, config)
			t.Cleanup(func() { s.Clear(ctx) })
			return s
		},
		Reopen: func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, configs[s])
		},
		Specs: []store.Spec{
			{Kind: store.Paired, Capacity: 1000, Rate: 0.01},
			{Kind: store.Paired, Capacity: 2000, Rate: 0.001, Public: true},
		},
		Swaps: true,
	})
}

// TestStore: a cluster of six servers, and a single server, are stores.
func TestStore(t *testing.T) {
	t.Run("Cluster", func(t *testing.T) { testStore(t, cluster(t)[0].Address, nil) })
	t.Run("Cluster, check first", func(t *testing.T) {
		testStore(t, cluster(t)[0].Address, func(c *redisstore.Config) { c.CheckFirst = true })
	})
	t.Run("Single", func(t *testing.T) { testStore(t, redistest.Start(t).Address, nil) })
}

var shared struct {
	sync.Mutex
	servers []*redistest.Server
}

// cluster returns the cluster of all tests that do not harm it. It runs until the
// process ends, and then its servers do.
func cluster(t testing.TB) []*redistest.Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.servers == nil {
		shared.servers = redistest.Cluster(t, 3)
	}
	return shared.servers
}

func TestMain(m *testing.M) {
	if where := os.Getenv(gatewayAt); where != "" {
		fmt.Fprintln(os.Stderr, "gateway:", serveGateway(where))
		os.Exit(1)
	}
	if where := os.Getenv(crawlAt); where != "" {
		if err := crawl(where); err != nil {
			fmt.Fprintln(os.Stderr, "crawler:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(redistest.Main(m))
}
