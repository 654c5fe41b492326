package server

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/store"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds what a server counts for /metrics, in addition to stats. Each goroutine
// counts in a tally of its own, which is added here once a batch.
type metrics struct {
	places   map[*Command]int // index of a row in commands; does not change
	rows     []*Command       // by place; the first is nil
	commands []commandCount   // by place; the first counts unknown names
	refused  [limitCount]atomic.Int64
	fresh    atomic.Int64 // keys added that were new
	seen     atomic.Int64 // keys added that were already there
	gone     atomic.Int64 // keys removed
	notThere atomic.Int64 // removals of keys that were certainly not there
	time     histogram    // of batches, in nanoseconds
	size     histogram    // of batches, in commands
}

type commandCount struct{ calls, failures atomic.Int64 }

func newMetrics(commands table) *metrics {
	m := &metrics{places: map[*Command]int{}, rows: []*Command{nil}}
	for _, cmd := range commands {
		for _, row := range append([]*Command{cmd}, cmd.Subcommands...) {
			m.places[row] = len(m.rows)
			m.rows = append(m.rows, row)
		}
	}
	m.commands = make([]commandCount, len(m.rows))
	m.time.bounds = timeBounds
	m.time.counts = make([]atomic.Int64, len(timeBounds)+1)
	m.size.bounds = sizeBounds
	m.size.counts = make([]atomic.Int64, len(sizeBounds)+1)
	return m
}

// A tally counts the commands of a batch. It belongs to the goroutine that executes the
// batch, and reads the clock twice per batch.
type tally struct {
	metrics *metrics
	started time.Duration // by clock()
	last    *Command      // the row counted last, nearly always the next one too
	at      int           // its place
	counts  []tallied
	touched []int // places whose counts are not zero
	nested  int   // commands entered and not yet left

	fresh, seen   int64 // keys added
	gone, refused int64 // removals
}

type tallied struct{ calls, failures int64 }

func newTally(m *metrics) tally {
	return tally{metrics: m, counts: make([]tallied, len(m.rows))}
}

// begin is called before the first command of a batch.
func (t *tally) begin() { t.started = clock() }

// clock returns the time since some moment. time.Now would also read the wall clock.
func clock() time.Duration { return time.Since(clockStart) }

var clockStart = time.Now()

// count counts a call of a command, and whether its reply was an error. cmd is nil for
// an unknown name.
func (t *tally) count(cmd *Command, failed bool) {
	if cmd != t.last {
		t.last, t.at = cmd, t.metrics.places[cmd] // 0 for nil
	}
	c := t.touch(t.at)
	c.calls++
	if failed {
		c.failures++
	}
}

// touch returns the counts at a place for the caller to change.
func (t *tally) touch(at int) *tallied {
	c := &t.counts[at]
	if c.calls|c.failures == 0 {
		t.touched = append(t.touched, at)
	}
	return c
}

// enter and leave are called before and after a command that is executed by itself, not
// in a run. leave learns from the reply whether the command failed.
func (t *tally) enter(c *Client) (replyAt int) {
	t.nested++
	return len(c.w.Buf)
}

func (t *tally) leave(cmd *Command, c *Client, replyAt int) {
	t.nested--
	t.count(cmd, replyAt < len(c.w.Buf) && c.w.Buf[replyAt] == '-')
}

// failRun counts the failure of a command in a run, whose call is counted already. If
// the command was entered, leave counts it.
func (t *tally) failRun(kind runKind, list bool) {
	if t.nested > 0 {
		return
	}
	for at, row := range t.metrics.rows {
		if row != nil && row.run == kind && (row.Arity < 0) == list {
			t.touch(at).failures++
		}
	}
}

// added counts the keys that a filter accepted.
func (t *tally) added(isNew []bool) {
	fresh := int64(0)
	for _, is := range isNew {
		if is {
			fresh++
		}
	}
	t.fresh += fresh
	t.seen += int64(len(isNew)) - fresh
}

// removed counts the answers to removals.
func (t *tally) removed(answers []bool) {
	gone := int64(0)
	for _, is := range answers {
		if is {
			gone++
		}
	}
	t.gone += gone
	t.refused += int64(len(answers)) - gone
}

// end is called when the batch is committed.
func (t *tally) end() {
	if len(t.touched) == 0 {
		return
	}
	calls := int64(0)
	for _, at := range t.touched {
		c := &t.counts[at]
		to := &t.metrics.commands[at]
		to.calls.Add(c.calls)
		if c.failures != 0 {
			to.failures.Add(c.failures)
		}
		calls += c.calls
		*c = tallied{}
	}
	t.touched = t.touched[:0]
	if t.fresh|t.seen != 0 {
		t.metrics.fresh.Add(t.fresh)
		t.metrics.seen.Add(t.seen)
		t.fresh, t.seen = 0, 0
	}
	if t.gone|t.refused != 0 {
		t.metrics.gone.Add(t.gone)
		t.metrics.notThere.Add(t.refused)
		t.gone, t.refused = 0, 0
	}
	t.metrics.time.observe(int64(clock() - t.started))
	t.metrics.size.observe(calls)
}

// A histogram counts values in buckets with ascending upper bounds.
type histogram struct {
	bounds []int64
	counts []atomic.Int64 // one more than bounds
	sum    atomic.Int64
}

var (
	timeBounds = []int64{1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10}
	sizeBounds = []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536}
)

func (h *histogram) observe(value int64) {
	at := 0
	for at < len(h.bounds) && value > h.bounds[at] {
		at++
	}
	h.counts[at].Add(1)
	h.sum.Add(value)
}

// metric returns the histogram for Prometheus, in another unit.
func (h *histogram) metric(desc *prometheus.Desc, perUnit float64) prometheus.Metric {
	upTo, count := map[float64]uint64{}, uint64(0)
	for i := range h.counts {
		count += uint64(h.counts[i].Load())
		if i < len(h.bounds) {
			upTo[float64(h.bounds[i])/perUnit] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, float64(h.sum.Load())/perUnit, upTo)
}

// A Metric is a metric in /metrics, apart from those of the Go runtime and the process.
type Metric struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string

	desc *prometheus.Desc
}

var metricTable []*Metric

func newMetric(name, kind, help string, labels ...string) *Metric {
	name = "bloomery_" + name
	m := &Metric{name, kind, labels, help, prometheus.NewDesc(name, help, labels, nil)}
	metricTable = append(metricTable, m)
	return m
}

// Metrics returns the metrics, in an order for reading.
func Metrics() []Metric {
	rows := make([]Metric, len(metricTable))
	for i, row := range metricTable {
		rows[i] = *row
	}
	return rows
}

const (
	counter      = "counter"
	gauge        = "gauge"
	histogramRow = "histogram"
)

// The rows of /metrics, in the order of the printed table.
var (
	metricBuild    = newMetric("build_info", gauge, "1, with the program's version.", "version")
	metricCommands = newMetric("commands_total", counter, "Commands, by name and by whether the reply was an error. "+
		"Unknown names are counted together.", "command", "result")
	metricBatchTime = newMetric("batch_seconds", histogramRow, "Time to execute and commit a batch, until its replies may be sent. "+
		"A batch is what all clients of an event loop had sent when the loop polled.")
	metricBatchSize   = newMetric("batch_commands", histogramRow, "Commands per batch.")
	metricAdds        = newMetric("keys_added_total", counter, "Keys added, by whether they were new or already seen.", "result")
	metricLookups     = newMetric("keys_checked_total", counter, "Keys looked up, by whether they were found or absent.", "result")
	metricRemovals    = newMetric("keys_removed_total", counter, "Removals, by whether the key was removed, or refused: it was certainly not there.", "result")
	metricClients     = newMetric("connections", gauge, "Open connections.")
	metricAccepted    = newMetric("connections_total", counter, "Connections accepted, including those refused at once.")
	metricIn          = newMetric("received_bytes_total", counter, "Bytes of commands received.")
	metricOut         = newMetric("sent_bytes_total", counter, "Bytes of replies sent.")
	metricRefused     = newMetric("refused_total", counter, "Connections, commands and replies refused by a limit.", "limit")
	metricPasswords   = newMetric("wrong_passwords_total", counter, "Wrong passwords, over RESP and HTTP.")
	metricMemory      = newMetric("memory_bytes", gauge, "Memory used by all filters and values.")
	metricMemoryLimit = newMetric("memory_limit_bytes", gauge, "The limit on that memory. Absent if there is none.")
	metricNames       = newMetric("names", gauge, "Filters and values.")

	metricFill    = newMetric("filter_fill_ratio", gauge, "Fraction of a filter's bits that are set.", "name")
	metricRate    = newMetric("filter_rate", gauge, "Current false-positive rate, computed from the bits.", "name")
	metricPlanned = newMetric("filter_planned_rate", gauge, "Planned false-positive rate: the sum over all layers.", "name")
	metricItems   = newMetric("filter_items", gauge, "Items that were new when they were added.", "name")
	metricRoom    = newMetric("filter_room_items", gauge, "Capacity in items: of all layers, or of one span of a window. "+
		"Beyond it, a filter grows or refuses items.", "name")
	metricBytes = newMetric("filter_bytes", gauge, "Memory used by a filter.", "name")
	metricStuck = newMetric("filter_stuck_counters", gauge, "Counters that stay at 15, so that the keys that share them are never gone. "+
		"Of filters of layout COUNTING.", "name")
	metricShown = newMetric("filters_shown", gauge, "Number of filters with the metrics above: the largest, up to --metrics-filters.")
	metricAge   = newMetric("filter_reports_age_seconds", gauge, "Age of the oldest fill and rate above. "+
		"Each scrape rereads as many filters as its time allows.")

	metricStopped    = newMetric("store_stopped", gauge, "1 once the store can no longer make anything durable, and acknowledges nothing.")
	metricLogSize    = newMetric("store_log_bytes", gauge, "Size of the log on disk, since the newest snapshot.")
	metricLogBytes   = newMetric("store_log_written_bytes_total", counter, "Bytes written to the log.")
	metricLogRecords = newMetric("store_log_records_total", counter, "Records written to the log.")
	metricLogWrites  = newMetric("store_log_writes_total", counter, "Writes to the log, each a group of records for all commits "+
		"that waited.")
	metricCommits       = newMetric("store_commits_total", counter, "Commits, one per batch.")
	metricSync          = newMetric("store_sync_seconds", histogramRow, "Time to make the log durable (fdatasync).")
	metricSnapshots     = newMetric("store_snapshots_total", counter, "Snapshots written.")
	metricSnapshotSize  = newMetric("store_snapshot_bytes", gauge, "Size of the newest snapshot.")
	metricSnapshotAge   = newMetric("store_snapshot_age_seconds", gauge, "Age of the newest snapshot.")
	metricSnapshotTime  = newMetric("store_snapshot_seconds", gauge, "Time it took to write the newest snapshot.")
	metricSnapshotFails = newMetric("store_snapshot_failures_total", counter, "Snapshots that failed. Nothing is lost: "+
		"the log holds the same data, and the snapshot is retried.")
	metricSnapshotBad   = newMetric("store_snapshot_failed", gauge, "1 if the last attempt to write a snapshot failed, as on a full disk.")
	metricRecovery      = newMetric("store_recovery_seconds", gauge, "Time from the start until the store was ready.")
	metricRecoveredAdds = newMetric("store_recovery_adds", gauge, "Adds replayed from the log at the start.")
	metricTorn          = newMetric("store_recovery_torn_bytes", gauge, "Bytes after the last complete record of the log at the start: "+
		"the last shutdown was not clean. With --durability always, nothing acknowledged is among them.")
)

// A collector reads a server's metrics at each scrape.
type collector struct {
	server  *Server
	filters *filterGauges
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metricTable {
		to <- m.desc
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.server
	one := func(m *Metric, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Type == counter {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(m.desc, kind, value, labels...)
	}
	count := func(m *Metric, value *atomic.Int64, labels ...string) { one(m, float64(value.Load()), labels...) }

	one(metricBuild, 1, s.config.Version)
	s.metrics.collectCommands(one)
	to <- s.metrics.time.metric(metricBatchTime.desc, 1e9)
	to <- s.metrics.size.metric(metricBatchSize.desc, 1)
	count(metricAdds, &s.metrics.fresh, "new")
	count(metricAdds, &s.metrics.seen, "seen")
	count(metricLookups, &s.stats.hits, "found")
	count(metricLookups, &s.stats.misses, "absent")
	count(metricRemovals, &s.metrics.gone, "removed")
	count(metricRemovals, &s.metrics.notThere, "refused")
	one(metricClients, float64(s.clientCount()))
	count(metricAccepted, &s.stats.connections)
	count(metricIn, &s.stats.bytesIn)
	count(metricOut, &s.stats.bytesOut)
	for l := range limitCount {
		switch l {
		case limitClients:
			count(metricRefused, &s.stats.rejected, limitNames[l])
		case limitOutput:
			count(metricRefused, &s.stats.dropped, limitNames[l])
		default:
			count(metricRefused, &s.metrics.refused[l], limitNames[l])
		}
	}
	count(metricPasswords, &s.wrong.count)
	used, most := s.store.Usage()
	one(metricMemory, float64(used))
	if most > 0 {
		one(metricMemoryLimit, float64(most))
	}
	one(metricNames, float64(s.nameCount()))
	c.filters.collect(one)
	if st, ok := s.store.(store.Statistician); ok {
		collectStore(st.Stats(), one, to)
	}
}

// collectStore collects the metrics of a store's log and snapshots.
func collectStore(s store.Stats, one func(*Metric, float64, ...string), to chan<- prometheus.Metric) {
	oneIf := func(failure error) float64 {
		if failure != nil {
			return 1
		}
		return 0
	}
	one(metricStopped, oneIf(s.Failure))
	one(metricLogSize, float64(s.LogBytes))
	one(metricLogBytes, float64(s.Log.Bytes))
	one(metricLogRecords, float64(s.Log.Records))
	one(metricLogWrites, float64(s.Log.Writes))
	one(metricCommits, float64(s.Log.Commits))
	upTo, count := map[float64]uint64{}, uint64(0)
	for i, bound := 0, store.SyncBucket; i < len(s.Log.SyncBuckets); i, bound = i+1, 2*bound {
		count += s.Log.SyncBuckets[i]
		if i < len(s.Log.SyncBuckets)-1 {
			upTo[bound.Seconds()] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(metricSync.desc, count, s.Log.SyncTime.Seconds(), upTo)
	one(metricSnapshots, float64(s.Snapshots))
	if !s.SnapshotAt.IsZero() {
		one(metricSnapshotSize, float64(s.SnapshotBytes))
		one(metricSnapshotAge, time.Since(s.SnapshotAt).Seconds())
		one(metricSnapshotTime, s.SnapshotTime.Seconds())
	}
	one(metricSnapshotFails, float64(s.SnapshotFailures))
	one(metricSnapshotBad, oneIf(s.SnapshotFailure))
	one(metricRecovery, s.Recovered.Took.Seconds())
	one(metricRecoveredAdds, float64(s.Recovered.Adds))
	one(metricTorn, float64(s.Recovered.TornBytes))
}

// collectCommands collects the counts of all commands that were called, by name.
func (m *metrics) collectCommands(one func(*Metric, float64, ...string)) {
	places := make([]int, 0, len(m.rows))
	for at := range m.rows {
		if m.commands[at].calls.Load() > 0 {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(m.nameAt(a), m.nameAt(b)) })
	for _, at := range places {
		failures := m.commands[at].failures.Load() // read before calls, which is never less
		calls := m.commands[at].calls.Load()
		one(metricCommands, float64(calls-failures), m.nameAt(at), "ok")
		one(metricCommands, float64(failures), m.nameAt(at), "error")
	}
}

// nameAt returns the name of the row at a place.
func (m *metrics) nameAt(place int) string {
	if place == 0 {
		return "unknown"
	}
	return m.rows[place].fullName()
}
