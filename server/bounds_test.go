package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// TestLimitOutputOfOne requests a huge reply by one small command: no more than the
// limit is produced, and the writes of a transaction still happen.
func TestLimitOutputOfOne(t *testing.T) {
	const size, times = 1 << 20, 200
	for what, sent := range map[string]string{
		"exec":         command("MULTI") + strings.Repeat(command("GET", "v"), times) + command("SET", "after", "1") + command("EXEC"),
		"mget":         command(append([]string{"MGET"}, strings.Fields(strings.Repeat("v ", times))...)...),
		"mget in exec": command("MULTI") + strings.Repeat(command("MGET", "v", "v", "v", "v", "v"), times/5) + command("SET", "after", "1") + command("EXEC"),
		"docs":         fmt.Sprintf("*%d\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n", 2+100*times) + strings.Repeat("$6\r\nclient\r\n", 100*times),
		"info":         fmt.Sprintf("*%d\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n", 2+500*times) + strings.Repeat("$6\r\nclient\r\n", 500*times),
	} {
		t.Run(what, func(t *testing.T) {
			eachTransport(t, Config{Limits: Limits{OutputBytes: 8 << 20}}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
				st.Set(t.Context(), "v", bytes.Repeat([]byte("x"), size))
				w := connect(t, addr)
				w.must(t, "PING")
				before := allocated()
				w.send(t, sent)
				waitFor(t, func() bool { return s.clientCount() == 0 })
				const detour = 8 << 20 // for copies of this many arguments
				if grown := allocated() - before; grown > 64<<20+detour {
					t.Errorf("%d bytes were allocated", grown)
				}
				if n := s.stats.dropped.Load(); n != 1 {
					t.Errorf("%d clients were dropped, want 1", n)
				}
				if _, err := st.Get([]byte("after")); err != nil && strings.Contains(what, "exec") {
					t.Errorf("the transaction is half done: %v", err)
				}
			})
		})
	}
}

// allocated returns the bytes allocated since the start.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestStreamWakes pushes to a client that cannot be sent anything: one goroutine waits
// until it can, and all pushes arrive.
func TestStreamWakes(t *testing.T) {
	s, addr, _ := serveOn(t, newFakeStore(), Config{}, transports["streams"])
	w := connect(t, addr)
	w.must(t, "HELLO 3")
	var c *Client
	s.eachClient(func(one *Client) { c = one })
	k := c.transport.(*stream)
	k.mu.Lock()
	before := runtime.NumGoroutine()
	const pushes = 1000
	for i := range pushes {
		c.pushInvalid(fmt.Sprint(i))
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("%d goroutines for %d pushes", more, pushes)
	}
	k.mu.Unlock()
	for i := range 2 * pushes {
		if i >= pushes { // each one may find the goroutine at any point
			c.pushInvalid(fmt.Sprint(i))
		}
		if reply := w.read(t); reply.Kind != resp.Push || reply.Items[1].Items[0].Text != fmt.Sprint(i) {
			t.Fatalf("push %d: %v", i, reply)
		}
	}
}

// TestUnreadIsTold drops clients that do not read pushes, or are too slow to read
// replies. The log and the metrics report each once.
func TestUnreadIsTold(t *testing.T) {
	t.Parallel() // it waits
	var log lockedBuffer
	config := Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Limits: Limits{OutputBytes: 64 << 20, Idle: time.Second}}
	st := newFakeStore()
	s, addr, _ := serveOn(t, st, config, transports["streams"])
	told := func(want int) {
		t.Helper()
		waitFor(t, func() bool { return s.clientCount() == 0 })
		if n := s.stats.dropped.Load(); int(n) != want {
			t.Errorf("%d clients were counted, want %d", n, want)
		}
		if n := strings.Count(log.String(), "does not read"); n != want {
			t.Errorf("%d clients were logged, want %d", n, want)
		}
	}
	connect(t, addr).must(t, "HELLO 3")
	s.eachClient(func(c *Client) {
		k := c.transport.(*stream)
		k.mu.Lock()
		for range 70 {
			c.pushInvalid(strings.Repeat("x", 1<<20))
		}
		k.mu.Unlock()
	})
	told(1)

	st.Set(t.Context(), "v", bytes.Repeat([]byte("x"), 1<<20))
	w := connect(t, addr)
	w.must(t, "PING")
	w.send(t, strings.Repeat(command("GET", "v"), 40))
	told(2)
}

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestFilterGaugesKeepNothing deletes a filter between two scrapes: its memory is free,
// and a new filter with the name has none of its numbers.
func TestFilterGaugesKeepNothing(t *testing.T) {
	st := newFakeStore()
	spec := store.Spec{Kind: store.RedisBloom, Capacity: 1000, Rate: 0.01, Growth: 2}
	create := func() weak.Pointer[fakeFilter] {
		f, err := st.Create(t.Context(), "f", spec)
		if err != nil {
			t.Fatal(err)
		}
		f.Add(t.Context(), [][]byte{[]byte("a"), []byte("b")}, make([]bool, 2))
		return weak.Make(f.(*fakeFilter))
	}
	old := create()
	g := &filterGauges{store: st, most: 3}
	if rows := g.refresh(); len(rows) != 1 || rows[0].report.Fill == 0 {
		t.Fatalf("%d rows, want one with its fill", len(rows))
	}
	g.search(time.Now().Add(time.Minute))
	if g.rows[0].reported.IsZero() {
		t.Error("the numbers of a filter that is still there are gone")
	}
	st.Drop(t.Context(), "f")
	runtime.GC()
	runtime.GC()
	if old.Value() != nil {
		t.Error("a deleted filter is kept in memory")
	}
	create()
	g.search(time.Now().Add(time.Minute))
	if len(g.rows) != 1 || !g.rows[0].reported.IsZero() {
		t.Error("a new filter has the numbers of the old one of its name")
	}
	runtime.KeepAlive(g)
}

// A savingStore finishes a snapshot when the test supplies its result.
type savingStore struct {
	*fakeStore
	ends    chan error
	begun   atomic.Int64
	failure atomic.Pointer[error] // the store has stopped
	unsaved atomic.Pointer[error] // how the last snapshot ended
}

func (s *savingStore) Snapshot(context.Context) error {
	s.begun.Add(1)
	err := <-s.ends
	s.unsaved.Store(&err)
	return err
}

func (s *savingStore) Stats() (stats store.Stats) {
	stats.Recovered.Fresh = true
	if err := s.unsaved.Load(); err != nil {
		stats.SnapshotFailure = *err
	}
	if err := s.failure.Load(); err != nil {
		stats.Failure, stats.SnapshotFailure = *err, *err
	}
	return stats
}

func TestBackgroundSaves(t *testing.T) {
	st := &savingStore{fakeStore: newFakeStore(), ends: make(chan error)}
	w := connect(t, serve(t, st, Config{}))
	info := func(lines ...string) {
		t.Helper()
		got := w.must(t, "INFO persistence")
		for _, line := range lines {
			if !strings.Contains(got, line+"\r\n") {
				t.Errorf("no %q in %q", line, got)
			}
		}
	}
	info("rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:ok", "aof_last_write_status:ok")
	w.expect(t, "BGSAVE", "+Background saving started\r\n")
	w.expect(t, "BGSAVE", "-"+textSaving+"\r\n")
	w.expect(t, "SAVE", "-"+textSaving+"\r\n")
	w.expect(t, "BGSAVE SCHEDULE", "+Background saving scheduled\r\n")
	w.expect(t, "BGSAVE SCHEDULE", "+Background saving scheduled\r\n")
	info("rdb_bgsave_in_progress:1", "rdb_last_bgsave_status:ok")
	st.ends <- errors.New("no room")
	waitFor(t, func() bool { return st.begun.Load() == 2 })
	info("rdb_bgsave_in_progress:1", "rdb_last_bgsave_status:err", "bloomery_last_snapshot_error:no room")
	st.ends <- nil
	waitFor(t, func() bool { return strings.Contains(w.must(t, "INFO persistence"), "rdb_bgsave_in_progress:0\r\n") })
	info("rdb_last_bgsave_status:ok", "bloomery_last_snapshot_error:")
	if n := st.begun.Load(); n != 2 {
		t.Errorf("%d snapshots, want 2", n)
	}
	failure := errors.New("the disk is gone")
	st.failure.Store(&failure)
	info("aof_last_write_status:err", "rdb_last_bgsave_status:err")

	memory := connect(t, startServer(t, Config{}))
	for _, line := range []string{"SAVE", "BGSAVE", "BGSAVE SCHEDULE"} {
		memory.expect(t, line, "-"+textNoSnapshot+"\r\n")
	}
}

// TestTimeoutReachesIdle sets the time limit when clients are already idle, and every
// loop sleeps.
func TestTimeoutReachesIdle(t *testing.T) {
	t.Parallel() // it waits
	eachTransport(t, Config{Loops: 2}, func(t *testing.T, s *Server, _ *fakeStore, addr string) {
		idle := []*wire{connect(t, addr), connect(t, addr), connect(t, addr)}
		for _, w := range idle {
			w.must(t, "PING")
		}
		time.Sleep(50 * time.Millisecond)
		connect(t, addr).expect(t, "CONFIG SET timeout 1", "+OK\r\n")
		for _, w := range idle {
			w.wantEnd(t, "")
		}
	})
}

// TestResetStat resets the counts of INFO, but not the metrics.
func TestResetStat(t *testing.T) {
	st := newFakeStore()
	s, addr, _ := serveOn(t, st, Config{}, transports["loops"])
	w := connect(t, addr)
	w.must(t, "BF.ADD k a")
	w.must(t, "BF.EXISTS k a")
	w.expect(t, "CONFIG RESETSTAT", "+OK\r\n")
	w.must(t, "BF.EXISTS k b")
	got := w.must(t, "INFO all")
	for _, line := range []string{"total_connections_received:0", "keyspace_hits:0", "keyspace_misses:1", "cmdstat_bf.exists:calls=1,"} {
		if !strings.Contains(got, "\n"+line) {
			t.Errorf("no line %s in %s", line, got)
		}
	}
	if strings.Contains(got, "cmdstat_bf.add:") {
		t.Error("BF.ADD is told of still")
	}
	wantLines(t, scrape(t, s, HTTPConfig{}),
		`bloomery_connections_total 1`,
		`bloomery_keys_checked_total{result="found"} 1`,
		`bloomery_commands_total{command="bf.exists",result="ok"} 2`,
	)
}
