package server

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bloomery/bloom/store"
	"github.com/prometheus/client_golang/prometheus"
)

// scrape returns the lines of /metrics that are ours.
func scrape(t *testing.T, s *Server, config HTTPConfig) (lines []string) {
	t.Helper()
	code, body := get(s.HTTPHandler(config), "/metrics", func(r *http.Request) { r.SetBasicAuth("default", s.config.Password) })
	if code != 200 {
		t.Fatalf("/metrics: %d %s", code, body)
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "bloomery_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// wantLines checks that all the lines are there.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	all := "\n" + strings.Join(got, "\n") + "\n"
	for _, line := range want {
		if !strings.Contains(all, "\n"+line+"\n") {
			name := line[:strings.LastIndexByte(line, ' ')+1]
			var near []string
			for _, g := range got {
				if strings.HasPrefix(g, name) {
					near = append(near, g)
				}
			}
			t.Errorf("no line %q, but of that name %q", line, near)
		}
	}
}

func TestMetricsOfCommands(t *testing.T) {
	st := newFakeStore()
	st.limit = 5000
	s := newQuiet(t, st, Config{Version: "v1.2.3", Limits: Limits{KeyBytes: 300}})
	defer s.Shutdown(t.Context())
	talk(t, s,
		"BF.ADD f a",
		"BF.ADD f a",
		"BF.MADD f a b c",
		"BF.INSERT g ITEMS x y",
		"BF.EXISTS f a",
		"BF.EXISTS f zzz",
		"BF.MEXISTS nothing a b c",
		"BF.RESERVE h 0.01 6000", // more memory than there is
		"BF.RESERVE "+strings.Repeat("k", 301)+" 0.01 100", // a longer name than allowed
		"BF.CARD", // arity
		"NONSENSE 1 2",
		"SET plain value",
		"BF.ADD plain a", // a wrong type, in a run
		"BF.RESERVE full 0.01 1 NONSCALING",
		"BF.ADD full a",
		"BF.ADD full b",
		"BF.MADD full c d", // an array with an error in it
		"MULTI",
		"BF.ADD f tx", // QUEUED
		"EXEC",
	)
	lines := scrape(t, s, HTTPConfig{})
	wantLines(t, lines,
		`bloomery_build_info{version="v1.2.3"} 1`,
		`bloomery_commands_total{command="bf.add",result="ok"} 4`,
		`bloomery_commands_total{command="bf.add",result="error"} 2`,
		`bloomery_commands_total{command="bf.madd",result="ok"} 2`,
		`bloomery_commands_total{command="bf.madd",result="error"} 0`,
		`bloomery_commands_total{command="bf.insert",result="ok"} 1`,
		`bloomery_commands_total{command="bf.exists",result="ok"} 2`,
		`bloomery_commands_total{command="bf.mexists",result="ok"} 1`,
		`bloomery_commands_total{command="bf.reserve",result="ok"} 1`,
		`bloomery_commands_total{command="bf.reserve",result="error"} 2`,
		`bloomery_commands_total{command="bf.card",result="error"} 1`,
		`bloomery_commands_total{command="unknown",result="error"} 1`,
		`bloomery_commands_total{command="exec",result="ok"} 1`,
		`bloomery_keys_added_total{result="new"} 7`,  // a b c; x y; a; tx
		`bloomery_keys_added_total{result="seen"} 2`, // a a
		`bloomery_keys_checked_total{result="found"} 1`,
		`bloomery_keys_checked_total{result="absent"} 4`,
		`bloomery_refused_total{limit="memory"} 1`,
		`bloomery_refused_total{limit="key-bytes"} 1`,
		`bloomery_refused_total{limit="clients"} 0`,
		`bloomery_connections_total 1`,
		`bloomery_batch_commands_bucket{le="1"} 18`, // all but what was queued, which is executed with EXEC
		`bloomery_batch_commands_bucket{le="2"} 19`,
		`bloomery_batch_commands_count 19`,
		`bloomery_batch_commands_sum 20`,
		`bloomery_batch_seconds_count 19`,
		`bloomery_names 4`,
		`bloomery_filters_shown 3`,
		`bloomery_filter_items{name="f"} 4`,
	)
}

// TestMetricsOfRemovals removes keys that are there, that are not, and one whose counters
// are stuck.
func TestMetricsOfRemovals(t *testing.T) {
	s := newQuiet(t, openLocal(t, 0), Config{})
	defer s.Shutdown(t.Context())
	talk(t, s, "BF.RESERVE f 0.000001 100 LAYOUT COUNTING", "BF.MADD f a b", "BF.DEL f a", "BF.MDEL f a b c", "BF.DEL none a",
		"BF.MADD f"+strings.Repeat(" s", 16), "CF.INSERT c ITEMS a b", "CF.DEL c a", "CF.DEL c z", "CF.ADDNX c b", "CF.EXISTS c a", "CF.EXISTS c b", "BF.EXISTS f z")
	wantLines(t, scrape(t, s, HTTPConfig{}),
		`bloomery_keys_removed_total{result="removed"} 3`,
		`bloomery_keys_removed_total{result="refused"} 3`,
		`bloomery_keys_added_total{result="new"} 5`,
		`bloomery_keys_added_total{result="seen"} 16`,
		`bloomery_keys_checked_total{result="found"} 1`,
		`bloomery_keys_checked_total{result="absent"} 2`,
		`bloomery_commands_total{command="bf.del",result="error"} 1`,
		`bloomery_commands_total{command="bf.del",result="ok"} 1`,
		`bloomery_commands_total{command="cf.del",result="ok"} 2`,
		`bloomery_filter_items{name="c"} 1`,
	)
	lines := strings.Join(scrape(t, s, HTTPConfig{}), "\n")
	if !regexp.MustCompile(`(?m)^bloomery_filter_stuck_counters\{name="f"\} [1-9]`).MatchString(lines) || strings.Contains(lines, `stuck_counters{name="c"}`) {
		t.Error("want the stuck counters of f, and none of c")
	}
}

func TestMetricsOfLimits(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limits   Limits
		password string
		send     string
		want     string
	}{
		{"arguments", Limits{Arguments: 4}, "", "*5\r\n", "arguments"},
		{"item", Limits{ItemBytes: 100}, "", "*1\r\n$101\r\n", "item-bytes"},
		{"command", Limits{CommandBytes: 1000, ItemBytes: 900}, "", "*3\r\n$900\r\n" + strings.Repeat("x", 900) + "\r\n$900\r\n", "command-bytes"},
		{"unauthenticated", Limits{}, "p", "*2\r\n$4\r\nAUTH\r\n$100000\r\n", "unauthenticated-bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newQuiet(t, newFakeStore(), Config{Limits: tt.limits, Password: tt.password})
			defer s.Shutdown(t.Context())
			reply := talk(t, s, tt.send)[0]
			if !strings.HasPrefix(reply, "-ERR Protocol error") {
				t.Errorf("%q, want a protocol error", reply)
			}
			wantLines(t, scrape(t, s, HTTPConfig{}), `bloomery_refused_total{limit="`+tt.want+`"} 1`)
		})
	}
}

// TestMetricTable compares the table, from which documents are printed, with what is
// exported.
func TestMetricTable(t *testing.T) {
	st := openLocal(t, 0)
	s := newQuiet(t, st, Config{})
	defer s.Shutdown(t.Context())
	talk(t, s, "BF.RESERVE f 0.01 100 LAYOUT COUNTING", "BF.ADD f a")
	registry := prometheus.NewPedanticRegistry() // refuses what was not described
	registry.MustRegister(&collector{s, &filterGauges{store: st, most: 10}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, f := range families {
		shown[f.GetName()] = strings.ToLower(f.GetType().String()) + ": " + f.GetHelp()
	}
	rows := Metrics()
	for _, row := range rows {
		got, ok := shown[row.Name]
		absent := row.Name == "bloomery_memory_limit_bytes" || strings.HasPrefix(row.Name, "bloomery_store_") // of other stores
		if want := row.Type + ": " + row.Help; ok && got != want || !ok && !absent {
			t.Errorf("%s is shown as %q, want %q", row.Name, got, want)
		}
		delete(shown, row.Name)
		if !regexp.MustCompile(`^bloomery_[a-z_]+$`).MatchString(row.Name) || row.Type == counter != strings.HasSuffix(row.Name, "_total") {
			t.Errorf("%s, a %s: the names of counters, and only theirs, end with _total", row.Name, row.Type)
		}
		if !strings.HasSuffix(row.Help, ".") {
			t.Errorf("%s: the help %q is no sentence", row.Name, row.Help)
		}
	}
	for name := range shown {
		t.Errorf("%s is shown and not in the table", name)
	}
}

// manyNames is a store that lists its names a few at a time, and takes its time.
type manyNames struct {
	*fakeStore
	names []string
	pause time.Duration
}

func (s manyNames) List(cursor uint64, count int) ([]string, uint64, error) {
	time.Sleep(s.pause)
	to := min(int(cursor)+count, len(s.names))
	if to == len(s.names) {
		return s.names[cursor:to], 0, nil
	}
	return s.names[cursor:to], uint64(to), nil
}

// TestFilterGauges runs on a fake clock, so that a slow machine finds as much in the
// time of a scrape as a fast one.
func TestFilterGauges(t *testing.T) { synctest.Test(t, testFilterGauges) }

func testFilterGauges(t *testing.T) {
	st := manyNames{fakeStore: newFakeStore()}
	for i := range 5000 {
		name := fmt.Sprintf("f%04d", i)
		capacity := uint64(10)
		if i%1000 == 999 {
			capacity = uint64(i) // f0999 .. f4999 are the largest
		}
		if _, err := st.Create(t.Context(), name, store.Spec{Capacity: capacity, Rate: 0.01}); err != nil {
			t.Fatal(err)
		}
		st.names = append(st.names, name)
	}
	shown := func(g *filterGauges) string {
		var names []string
		for _, row := range g.refresh() {
			names = append(names, row.name)
		}
		return strings.Join(names, " ")
	}
	g := &filterGauges{store: st, most: 3}
	if got := shown(g); got != "f4999 f3999 f2999" {
		t.Errorf("the largest are %s", got)
	}
	st.Drop(t.Context(), "f3999")
	if got := shown(g); got != "f4999 f2999 f1999" {
		t.Errorf("without f3999, the largest are %s", got)
	}
	if got := shown(&filterGauges{store: st}); got != "" {
		t.Errorf("of none, the largest are %s", got)
	}

	// If listing takes too long for one scrape, the next ones continue.
	st.pause = listTime * 2 / 3
	g = &filterGauges{store: st, most: 2}
	start := time.Now()
	first := shown(g)
	if took := time.Since(start); took > 4*listTime+reportTime {
		t.Errorf("a scrape took %v", took)
	}
	if first == "f4999 f2999" {
		t.Errorf("all of a slow store was listed in one scrape")
	}
	for range 3 {
		first = shown(g)
	}
	if first != "f4999 f2999" {
		t.Errorf("after some scrapes the largest are %s", first)
	}
}

func TestFilterGaugesReports(t *testing.T) {
	st := newFakeStore()
	s := newQuiet(t, st, Config{})
	for _, name := range []string{"", `"quoted"`, "\xff\xfe", strings.Repeat("é", 300), strings.Repeat("é", 301), "中文", "\x001:other"} {
		f, err := st.Create(t.Context(), name, store.Spec{Capacity: 100, Rate: 0.01, Growth: 2})
		if err != nil {
			t.Fatal(err)
		}
		f.Add(t.Context(), [][]byte{[]byte("a")}, make([]bool, 1))
	}
	h := s.HTTPHandler(HTTPConfig{})
	var lines []string
	waitFor(t, func() bool { // on a busy machine the time of one scrape is not enough for all
		_, body := get(h, "/metrics", nil)
		lines = strings.Split(body, "\n")
		return strings.Count(body, "\nbloomery_filter_planned_rate{") == 7
	})
	wantLines(t, lines,
		`bloomery_filters_shown 7`,
		`bloomery_filter_items{name="\"\\x001:other\""} 1`, // of another database
		`bloomery_filter_items{name="\"\""} 1`,
		`bloomery_filter_items{name="\"\\\"quoted\\\"\""} 1`,
		`bloomery_filter_items{name="\"\\xff\\xfe\""} 1`,
		`bloomery_filter_items{name="中文"} 1`,
		`bloomery_filter_room_items{name="中文"} 100`,
		`bloomery_filter_planned_rate{name="中文"} 0.005`, // RedisBloom halves it for the first layer
	)
	for _, name := range []string{"fill_ratio", "rate", "bytes"} {
		n := 0
		for _, line := range lines {
			if strings.HasPrefix(line, "bloomery_filter_"+name+"{") && !strings.HasSuffix(line, "} 0") {
				n++
			}
		}
		if n != 7 {
			t.Errorf("%d filters have a %s above zero, want 7", n, name)
		}
	}
}

func TestTallyAllocates(t *testing.T) {
	commands := newTable()
	tally := newTally(newMetrics(commands))
	add, card := commands.find([]byte("bf.add")), commands.find([]byte("bf.card"))
	isNew := []bool{true, false, true}
	if n := testing.AllocsPerRun(100, func() {
		tally.begin()
		tally.count(add, false)
		tally.count(card, true)
		tally.added(isNew)
		tally.failRun(runAdd, false)
		tally.end()
	}); n != 0 {
		t.Errorf("a batch's tally allocates %v times, want 0", n)
	}
	if fresh, seen := tally.metrics.fresh.Load(), tally.metrics.seen.Load(); fresh != 2*101 || seen != 101 {
		t.Errorf("%d new and %d seen, want 202 and 101", fresh, seen)
	}
}

func TestHistogram(t *testing.T) {
	m := newMetrics(newTable())
	for _, n := range []int64{1, 2, 3, 65536, 65537} {
		m.size.observe(n)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(one{m.size.metric(metricBatchSize.desc, 1)})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	h := families[0].GetMetric()[0].GetHistogram()
	upTo := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		upTo[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	if upTo[1] != 1 || upTo[2] != 2 || upTo[4] != 3 || upTo[65536] != 4 || h.GetSampleCount() != 5 || h.GetSampleSum() != 1+2+3+65536+65537 {
		t.Errorf("%v", h)
	}
}

// one is a collector for one metric.
type one struct{ metric prometheus.Metric }

func (o one) Describe(to chan<- *prometheus.Desc) { to <- o.metric.Desc() }
func (o one) Collect(to chan<- prometheus.Metric) { to <- o.metric }

// BenchmarkTally measures the cost of counting for a batch of one command, and for each
// further command.
func BenchmarkTally(b *testing.B) {
	commands := newTable()
	add := commands.find([]byte("bf.add"))
	for _, size := range []int{1, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			tally := newTally(newMetrics(commands))
			for b.Loop() {
				tally.begin()
				for range size {
					tally.count(add, false)
				}
				tally.end()
			}
		})
	}
}

// recorded is a store with a log.
type recorded struct {
	*fakeStore
	stats store.Stats
}

func (s recorded) Stats() store.Stats { return s.stats }

func TestMetricsOfStore(t *testing.T) {
	stats := store.Stats{
		Log:           store.LogStats{Bytes: 1000, Records: 20, Commits: 30, Writes: 10, Syncs: 6, SyncTime: 3 * time.Second},
		LogBytes:      400,
		Snapshots:     2,
		SnapshotBytes: 5000,
		SnapshotAt:    time.Now().Add(-time.Hour),
		SnapshotTime:  50 * time.Millisecond,
		Recovered:     store.Recovery{Adds: 7, TornBytes: 8, Took: 1500 * time.Millisecond},
		Failure:       store.ErrStopped,
	}
	stats.Log.SyncBuckets[0], stats.Log.SyncBuckets[4], stats.Log.SyncBuckets[len(stats.Log.SyncBuckets)-1] = 1, 2, 3
	lines := scrape(t, newQuiet(t, recorded{newFakeStore(), stats}, Config{}), HTTPConfig{})
	wantLines(t, lines,
		`bloomery_store_stopped 1`,
		`bloomery_store_log_bytes 400`,
		`bloomery_store_log_written_bytes_total 1000`,
		`bloomery_store_log_records_total 20`,
		`bloomery_store_log_writes_total 10`,
		`bloomery_store_commits_total 30`,
		`bloomery_store_sync_seconds_bucket{le="6.4e-05"} 1`,
		`bloomery_store_sync_seconds_bucket{le="0.000512"} 1`,
		`bloomery_store_sync_seconds_bucket{le="0.001024"} 3`,
		`bloomery_store_sync_seconds_bucket{le="1.048576"} 3`,
		`bloomery_store_sync_seconds_bucket{le="+Inf"} 6`,
		`bloomery_store_sync_seconds_sum 3`,
		`bloomery_store_sync_seconds_count 6`,
		`bloomery_store_snapshots_total 2`,
		`bloomery_store_snapshot_bytes 5000`,
		`bloomery_store_snapshot_seconds 0.05`,
		`bloomery_store_recovery_seconds 1.5`,
		`bloomery_store_recovery_adds 7`,
		`bloomery_store_recovery_torn_bytes 8`,
	)
	age := ""
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "bloomery_store_snapshot_age_seconds "); ok {
			age = rest
		}
	}
	if !strings.HasPrefix(age, "36") {
		t.Errorf("a snapshot of an hour ago has the age %q", age)
	}
	shown := strings.Join(lines, "\n")
	for _, row := range Metrics() {
		if strings.HasPrefix(row.Name, "bloomery_store_") && !strings.Contains(shown, row.Name) {
			t.Errorf("%s is not shown", row.Name)
		}
	}
}
