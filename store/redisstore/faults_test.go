package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/bloomery/bloom/store/storetest"
	"github.com/redis/rueidis"
)

var spec = store.Spec{Kind: store.Paired, Capacity: 1_000_000, Rate: 0.001}

func create(t testing.TB, s *redisstore.Store, name string, spec store.Spec) store.Filter {
	t.Helper()
	f, err := s.Create(ctx, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func keysAt(t testing.TB, client rueidis.Client, pattern string) (keys []string) {
	t.Helper()
	for _, node := range client.Nodes() {
		of, err := node.Do(ctx, node.B().Keys().Pattern(pattern).Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, of...)
	}
	slices.Sort(keys)
	return slices.Compact(keys) // replicas have them, too
}

// TestChunkLost: a chunk that is gone, too short or another filter's is an error for
// adds and for lookups, never "absent", and no add makes it again.
func TestChunkLost(t *testing.T) {
	client := connect(t, cluster(t)[0].Address)
	for _, tt := range []struct {
		name string
		harm func(key string) rueidis.Completed
	}{
		{"gone", func(key string) rueidis.Completed { return client.B().Del().Key(key).Build() }},
		{"empty", func(key string) rueidis.Completed { return client.B().Set().Key(key).Value("").Build() }},
		{"another's", func(key string) rueidis.Completed {
			return client.B().Setrange().Key(key).Offset(16).Value("01234567").Build()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prefix := newPrefix()
			s := openStore(t, client, redisstore.Config{Prefix: prefix})
			t.Cleanup(func() { s.Clear(ctx); s.Close() })
			f := create(t, s, "f", spec)
			keys := storetest.Keys("k", 2000)
			if n, err := f.Add(ctx, keys, make([]bool, len(keys))); n != len(keys) || err != nil {
				t.Fatal(n, err)
			}
			chunks := keysAt(t, client, prefix+"b:*")
			if len(chunks) < 20 {
				t.Fatalf("%d chunks", len(chunks))
			}
			if err := client.Do(ctx, tt.harm(chunks[3])).Error(); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, key := range keys {
				isNew, found := make([]bool, 1), make([]bool, 1)
				n, err := f.Add(ctx, [][]byte{key}, isNew)
				if err != nil {
					if failed++; n != 0 || isNew[0] || !errors.Is(err, redisstore.ErrDamaged) || !strings.Contains(err.Error(), "build it again") {
						t.Fatalf("Add: %d, %v, %v", n, isNew, err)
					}
				} else if isNew[0] {
					t.Fatalf("%s is new again", key)
				}
				if wrong := f.Contains(ctx, [][]byte{key}, found); (wrong != nil) != (err != nil) || wrong == nil && !found[0] {
					t.Fatalf("Contains: %v, %v; Add: %v", found, wrong, err)
				}
			}
			if failed < 2000/len(chunks)/2 {
				t.Errorf("%d of 2,000 keys failed, of one chunk in %d", failed, len(chunks))
			}
			if _, err := f.Add(ctx, keys, make([]bool, len(keys))); !errors.Is(err, redisstore.ErrDamaged) {
				t.Errorf("adding all: %v", err)
			}
			if err := f.Contains(ctx, keys, make([]bool, len(keys))); !errors.Is(err, redisstore.ErrDamaged) {
				t.Errorf("looking up all: %v", err)
			}
			if tt.name == "gone" && len(keysAt(t, client, chunks[3])) != 0 {
				t.Error("an add has made the chunk again")
			}
		})
	}
}

// TestChunks: chunks take hardly more memory than the bits, are of the planned length
// and lie on all masters.
func TestChunks(t *testing.T) {
	client := connect(t, cluster(t)[0].Address)
	prefix := newPrefix()
	s := openStore(t, client, redisstore.Config{Prefix: prefix})
	defer s.Close()
	f := create(t, s, "f", store.Spec{Kind: store.Paired, Capacity: 50_000_000, Rate: 0.01})
	chunks := keysAt(t, client, prefix+"b:*")
	var taken, least int64
	slots := map[int64]int{}
	for _, key := range chunks {
		bytes, err := client.Do(ctx, client.B().MemoryUsage().Key(key).Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		taken += bytes
		slot, err := client.Do(ctx, client.B().Arbitrary("CLUSTER", "KEYSLOT").Args(key).Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		slots[slot*3/16384]++
	}
	info := f.Info()
	least = int64(info.Layers[0].Bytes)
	over := float64(taken)/float64(least) - 1
	t.Logf("%d chunks of %d bytes of bits take %d bytes, %.2f%% more", len(chunks), least, taken, 100*over)
	if over > 0.02 || taken < least {
		t.Errorf("%d bytes of bits take %d bytes, more than 2%% over", least, taken)
	}
	if len(slots) != 3 || slots[0] < len(chunks)/6 {
		t.Errorf("of %d chunks, the thirds of the slots have %v", len(chunks), slots)
	}
	if err := s.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if chunks = keysAt(t, client, prefix+"b:*"); len(chunks) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d chunks are left of a filter that was dropped", len(chunks))
}

// TestOthers: what another process does to the names is noticed when a filter is used.
func TestOthers(t *testing.T) {
	config := redisstore.Config{Prefix: newPrefix()}
	ours := openStore(t, connect(t, cluster(t)[0].Address), config)
	theirs := openStore(t, connect(t, cluster(t)[1].Address), config)
	t.Cleanup(func() { ours.Clear(ctx); ours.Close(); theirs.Close() })
	create(t, ours, "live", spec)
	next := create(t, ours, "next", spec)
	key := [][]byte{[]byte("key")}
	if _, err := next.Add(ctx, key, make([]bool, 1)); err != nil {
		t.Fatal(err)
	}
	live, err := ours.Filter(ctx, "live")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := live.Contains(ctx, key[0]); found || err != nil {
		t.Fatal(found, err)
	}
	if err := theirs.Swap(ctx, "live", "next"); err != nil {
		t.Fatal(err)
	}
	if found, err := live.Contains(ctx, key[0]); !found || err != nil {
		t.Errorf("after another process has swapped the names: %v, %v", found, err)
	}
	if isNew, err := live.Add(ctx, key[0]); isNew || err != nil {
		t.Errorf("Add: %v, %v", isNew, err)
	}
	if n, err := theirs.Drop(ctx, "live"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for range 2 {
		if found, err := live.Contains(ctx, key[0]); found || !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after it was dropped: %v, %v", found, err)
		}
	}
	create(t, theirs, "live", spec)
	if isNew, err := live.Add(ctx, key[0]); !isNew || err != nil {
		t.Errorf("after it was made again: %v, %v", isNew, err)
	}
}

// TestRacing: several stores and a library client add the same keys. Each key is new to
// at most one, and all are there in the end.
func TestRacing(t *testing.T) {
	const racers, keys, batch = 3, 100_000, 500
	config := redisstore.Config{Prefix: newPrefix()}
	first := openStore(t, connect(t, cluster(t)[0].Address), config)
	t.Cleanup(func() { first.Clear(ctx); first.Close() })
	create(t, first, "f", store.Spec{Kind: store.Paired, Capacity: keys, Rate: 1e-6})
	all := storetest.Keys("raced", keys)
	var isNew [racers][]bool
	var wait sync.WaitGroup
	for r := range racers {
		isNew[r] = make([]bool, keys)
		s := openStore(t, connect(t, cluster(t)[r].Address), config)
		t.Cleanup(func() { s.Close() })
		f, err := s.Filter(ctx, "f")
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			for part := range keys / batch {
				from := (part + r*11) % (keys / batch) * batch
				if _, err := f.AddMany(ctx, all[from:from+batch], isNew[r][from:from+batch]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	none := 0
	for i := range all {
		winners := 0
		for r := range racers {
			if isNew[r][i] {
				winners++
			}
		}
		if winners > 1 {
			t.Fatalf("%s was new to %d", all[i], winners)
		} else if winners == 0 {
			none++
		}
	}
	if none > 10 {
		t.Errorf("%d keys were new to nobody", none)
	}
	f, err := first.Filter(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.ContainsMany(ctx, all, nil); n != keys || err != nil {
		t.Errorf("%d of %d keys are there, %v", n, keys, err)
	}
	if r, err := f.Report(ctx); err != nil || r.Keys < 0.99*keys || r.Keys > 1.01*keys {
		t.Errorf("the report says %v, %v", r, err)
	}
}

// TestSettings: servers whose settings lose filters are refused, with the command that
// mends each.
func TestSettings(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	client := connect(t, server.Address)
	_, err := redisstore.New(ctx, client, redisstore.Config{})
	if !errors.Is(err, redisstore.ErrSettings) {
		t.Fatal(err)
	}
	for _, want := range []string{server.Address, "CONFIG SET appendonly yes", "CONFIG SET maxmemory-policy noeviction"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if _, err := redisstore.New(ctx, client, redisstore.Config{Trusted: true}); err != nil {
		t.Errorf("trusted: %v", err)
	}
	for _, setting := range []string{"appendonly yes", "maxmemory-policy noeviction"} {
		if out, err := server.CLI(ctx, strings.Fields("CONFIG SET "+setting)...); err != nil {
			t.Fatal(err, out)
		}
	}
	if _, err := redisstore.New(ctx, client, redisstore.Config{}); err != nil {
		t.Errorf("as it asked for: %v", err)
	}
	if _, err := redisstore.New(ctx, client, redisstore.Config{Prefix: "{x}"}); err == nil {
		t.Error("a prefix by which all keys fall on one node was accepted")
	}
}

// TestRefusals: servers that cannot answer, or that have no memory left, give errors
// that say so, and no answer.
func TestRefusals(t *testing.T) {
	t.Parallel() // it waits
	server := redistest.Start(t)
	client := connect(t, server.Address)
	s := openStore(t, client, redisstore.Config{Timeout: time.Second})
	defer s.Close()
	f := create(t, s, "f", spec)
	keys := storetest.Keys("k", 100)
	if _, err := f.Add(ctx, keys, make([]bool, 100)); err != nil {
		t.Fatal(err)
	}
	config := func(words string) {
		t.Helper()
		if out, err := server.CLI(ctx, strings.Fields(words)...); err != nil || !strings.Contains(out, "OK") {
			t.Fatal(words, err, out)
		}
	}
	config("CONFIG SET maxmemory 1mb")
	if _, err := s.Create(ctx, "g", spec); !errors.Is(err, store.ErrMemory) {
		t.Errorf("a filter without memory for it: %v", err)
	}
	if _, err := f.Add(ctx, storetest.Keys("more", 100), make([]bool, 100)); !errors.Is(err, store.ErrMemory) {
		t.Errorf("an add without memory: %v", err)
	}
	if err := f.Contains(ctx, keys, make([]bool, 100)); err != nil {
		t.Errorf("a lookup without memory: %v", err)
	}
	config("CONFIG SET maxmemory 0")
	if n := len(keysAt(t, client, "bloomery:b:*")); n != 29 {
		t.Errorf("%d chunks, with those of the filter that was not made", n)
	}
	config("REPLICAOF 127.0.0.1 1")
	config("CONFIG SET replica-serve-stale-data yes")
	if _, err := f.Add(ctx, keys, make([]bool, 100)); !errors.Is(err, redisstore.ErrUnreachable) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("an add to a read-only replica: %v", err)
	}
	config("CONFIG SET replica-serve-stale-data no")
	found := make([]bool, 100)
	if err := f.Contains(ctx, keys, found); !errors.Is(err, redisstore.ErrUnreachable) || slices.Contains(found, true) {
		t.Errorf("a lookup at a replica without its master: %v", err)
	}
	config("REPLICAOF NO ONE")
	if err := f.Contains(ctx, keys, found); err != nil || slices.Contains(found, false) {
		t.Errorf("a lookup afterwards: %v", err)
	}
	server.Kill()
	for what, err := range map[string]error{
		"a lookup": f.Contains(ctx, keys, found),
		"an add":   second(f.Add(ctx, keys, found)),
		"Kind":     third(s.Kind([]byte("f"))),
		"Len":      second(s.Len()),
		"List":     third(s.List(0, 10)),
		"Open":     second(s.Open([]byte("unknown"))),
		"Drop":     second(s.Drop(ctx, "f")),
	} {
		if !errors.Is(err, redisstore.ErrUnreachable) {
			t.Errorf("%s, of a server that was killed: %v", what, err)
		}
	}
	server.Restart(t)
	for range 100 {
		if err := f.Contains(ctx, keys, found); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if slices.Contains(found, false) {
		t.Error("after the server has started again, keys are missing")
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// TestSentinel: when the master of a store dies and Sentinel makes its replica the master,
// everything that a replica had confirmed is there, and adds go on.
func TestSentinel(t *testing.T) {
	t.Parallel() // it waits
	sentinels, servers := redistest.Sentinels(t, 2)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{sentinels[0].Address, sentinels[1].Address}, DisableCache: true, Sentinel: rueidis.SentinelOption{MasterSet: "mymaster"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := openStore(t, client, redisstore.Config{Timeout: 5 * time.Second, Durability: redisstore.Durability{Replicas: 1}})
	defer s.Close()
	f := create(t, s, "f", spec)
	for _, replica := range servers[1:] {
		replica.WaitFor(t, "master_link_status:up", "INFO", "replication")
	}
	keys := storetest.Keys("k", 2000)
	if n, err := f.Add(ctx, keys, make([]bool, len(keys))); n != len(keys) || err != nil {
		t.Fatal(n, err)
	}
	servers[0].Kill()
	found := make([]bool, len(keys))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if err = f.Contains(ctx, keys, found); err == nil {
			break
		} else if !errors.Is(err, redisstore.ErrUnreachable) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if slices.Contains(found, false) {
		t.Error("keys that a replica had confirmed are gone")
	}
	more := storetest.Keys("more", 100)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err = f.Add(ctx, more, make([]bool, len(more))); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("30 seconds after the failover: %v", err)
		}
	}
}

// TestPassword: without the password, or with a wrong one, the error says so.
func TestPassword(t *testing.T) {
	server := redistest.Start(t)
	if out, err := server.CLI(ctx, "CONFIG", "SET", "requirepass", "right"); err != nil {
		t.Fatal(err, out)
	}
	for password, want := range map[string]string{"": "NOAUTH", "wrong": "WRONGPASS"} {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Address}, DisableCache: true, Password: password})
		if err == nil {
			_, err = redisstore.New(ctx, client, redisstore.Config{})
			client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("password %q: %v, want %s", password, err, want)
		}
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Address}, DisableCache: true, Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := redisstore.New(ctx, client, redisstore.Config{}); err != nil {
		t.Error(err)
	}
}

// TestClusterDown: a part of the keys that no server has is an error.
func TestClusterDown(t *testing.T) {
	t.Parallel() // it waits
	servers := redistest.Cluster(t, 3, "--cluster-require-full-coverage", "no")
	client := connect(t, servers[0].Address)
	s := openStore(t, client, redisstore.Config{Timeout: time.Second})
	defer s.Close()
	f := create(t, s, "f", spec)
	keys := storetest.Keys("k", 3000)
	if _, err := f.Add(ctx, keys, make([]bool, len(keys))); err != nil {
		t.Fatal(err)
	}
	servers[1].Kill() // a master, and its replica
	for _, replica := range servers[3:] {
		if out, _ := replica.CLI(ctx, "INFO", "replication"); strings.Contains(out, fmt.Sprintf("master_port:%d", servers[1].Port())) {
			replica.Kill()
		}
	}
	time.Sleep(3 * time.Second)
	answered, failed := 0, 0
	for from := 0; from < len(keys); from += 10 {
		found := make([]bool, 10)
		if err := f.Contains(ctx, keys[from:from+10], found); err == nil {
			if answered++; slices.Contains(found, false) {
				t.Fatal("a key is absent, because a server is")
			}
		} else if failed++; !errors.Is(err, redisstore.ErrUnreachable) {
			t.Fatal(err)
		}
		if failed > 2 {
			break
		}
	}
	if failed == 0 {
		t.Error("a third of the servers is gone, and everything was answered")
	}
}

// TestGatewayKilled: what gateways have acknowledged is there when they are killed in
// the middle of adds. A gateway has nothing of its own, so closing its connections is
// what a kill is to the servers.
func TestGatewayKilled(t *testing.T) {
	config := redisstore.Config{Prefix: newPrefix()}
	keeper := openStore(t, connect(t, cluster(t)[0].Address), config)
	t.Cleanup(func() { keeper.Clear(ctx); keeper.Close() })
	create(t, keeper, "f", store.Spec{Kind: store.Paired, Capacity: 1_000_000, Rate: 1e-6})
	var mu sync.Mutex
	var acknowledged []string
	var next atomic.Int64
	for range 5 {
		client := connect(t, cluster(t)[1].Address)
		f, err := openStore(t, client, config).Filter(ctx, "f")
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for {
					keys := make([][]byte, 100)
					for i := range keys {
						keys[i] = fmt.Appendf(nil, "key %d", next.Add(1))
					}
					if _, err := f.AddMany(ctx, keys, nil); err != nil {
						return
					}
					mu.Lock()
					for _, key := range keys {
						acknowledged = append(acknowledged, string(key))
					}
					mu.Unlock()
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		client.Close()
		wait.Wait()
	}
	f, err := keeper.Filter(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	keys := make([][]byte, len(acknowledged))
	for i, key := range acknowledged {
		keys[i] = []byte(key)
	}
	if n, err := f.ContainsMany(ctx, keys, nil); n != len(keys) || err != nil || n < 1000 {
		t.Errorf("%d of %d acknowledged keys are there, %v", n, len(keys), err)
	}
}
