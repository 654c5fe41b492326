package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom/store"
)

// The versions that we report: clients decide by them which commands to send. The BF
// commands are those of Redis 8.
const (
	redisVersion  = "8.0.0"
	moduleVersion = 80000
)

func (c *Client) slowlogGet(args [][]byte) {
	if len(args) > 3 {
		c.w.Error("ERR unknown subcommand or wrong number of arguments for '" + clip(args[1]) + "'. Try SLOWLOG HELP.")
		return
	}
	if len(args) == 3 {
		if n, ok := integer(args[2]); !ok || n < -1 {
			c.w.Error("ERR count should be greater than or equal to -1")
			return
		}
	}
	c.w.Array(0)
}

// help executes the subcommand HELP of any command: it lists the subcommands, a line
// each.
func (c *Client) help(args [][]byte) {
	parent := c.server.commands.find(args[0])
	c.w.Array(2*len(parent.Subcommands) + 1)
	c.w.SimpleString(strings.ToUpper(parent.Name) + " <subcommand> [<arg> ...]. The subcommands are:")
	for _, sub := range parent.Subcommands {
		c.w.SimpleString(strings.TrimSpace(strings.ToUpper(sub.Name) + syntax(sub.Arguments)))
		c.w.SimpleString("    " + sub.Summary)
	}
}

func (c *Client) moduleList([][]byte) { c.modules() }

// noCluster replies to commands for clusters.
func noCluster(c *Client, _ [][]byte) { c.w.Error("ERR This instance has cluster support disabled") }

// modules replies with the list of modules: the one whose commands we have.
func (c *Client) modules() {
	c.w.Array(1)
	c.w.Map(4)
	c.w.BulkString("name")
	c.w.BulkString("bf")
	c.w.BulkString("ver")
	c.w.Integer(moduleVersion)
	c.w.BulkString("path")
	c.w.BulkString("")
	c.w.BulkString("args")
	c.w.Array(0)
}

func (c *Client) role(args [][]byte) {
	c.w.Array(3)
	c.w.BulkString("master")
	c.w.Integer(0)
	c.w.Array(0)
}

const (
	textNoSnapshot = "ERR this store writes no snapshots: durability was set when the server was started"
	textSaving     = "ERR Background save already in progress"
)

// snapshotter returns the store if it can write snapshots. A store in memory cannot; it
// is recognized by its empty record of recovery.
func (s *Server) snapshotter() (store.Snapshotter, bool) {
	st, ok := s.store.(store.Snapshotter)
	return st, ok && st.Stats().Recovered != (store.Recovery{})
}

// saving is the state of SAVE and BGSAVE. At most one snapshot is written at a time,
// and at most one more is scheduled.
type saving struct {
	mu      sync.Mutex
	running bool // guarded by mu, as is again
	again   bool // BGSAVE SCHEDULE requested another one
}

// informed is what a server keeps only for INFO.
type informed struct {
	saving saving
	reset  atomic.Pointer[counted] // the counts at CONFIG RESETSTAT; nil if there was none
}

func (s *Server) saving() *saving { return &s.informed.saving }

// begin reports whether the caller must write a snapshot now, and then call end.
func (v *saving) begin(schedule bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.running {
		v.again = v.again || schedule
		return false
	}
	v.running = true
	return true
}

// end reports whether the caller must write another snapshot.
func (v *saving) end() (again bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running, v.again = v.again, false
	return v.running
}

// underway reports whether a snapshot is being written.
func (v *saving) underway() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.running
}

func (c *Client) save(args [][]byte) {
	s := c.server
	st, ok := s.snapshotter()
	switch {
	case !ok:
		c.w.Error(textNoSnapshot)
		return
	case !s.saving().begin(false):
		c.w.Error(textSaving)
		return
	}
	err := st.Snapshot(s.ctx)
	if s.saving().end() {
		go s.saveOn(st)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		c.w.Error(textNoSnapshot)
	case err != nil:
		c.storeError(err)
	default:
		c.w.SimpleString("OK")
	}
}

func (c *Client) backgroundSave(args [][]byte) {
	s := c.server
	st, ok := s.snapshotter()
	schedule := len(args) == 2 && is(args[1], "SCHEDULE")
	switch {
	case len(args) > 1 && !schedule:
		c.w.Error(textSyntax)
	case !ok:
		c.w.Error(textNoSnapshot)
	case s.saving().begin(schedule):
		go s.saveOn(st)
		c.w.SimpleString("Background saving started")
	case schedule:
		c.w.SimpleString("Background saving scheduled")
	default:
		c.w.Error(textSaving)
	}
}

// saveOn writes a snapshot, and then any that was requested in the meantime.
func (s *Server) saveOn(st store.Snapshotter) {
	for again := true; again; {
		err := st.Snapshot(s.ctx)
		if err != nil {
			s.log.Error("the snapshot requested by BGSAVE failed", "error", err)
		}
		again = s.saving().end()
	}
}

// lastSnapshot returns the time of the last snapshot, or of the server's start, as
// Redis does.
func (s *Server) lastSnapshot() time.Time {
	if st, ok := s.store.(store.Snapshotter); ok {
		if at := st.Stats().SnapshotAt; !at.IsZero() {
			return at
		}
	}
	return s.start
}

func (c *Client) lastSave(args [][]byte) { c.w.Integer(c.server.lastSnapshot().Unix()) }

func (c *Client) debug(args [][]byte) {
	c.w.Error("ERR DEBUG command not allowed: clients could stop or damage the server with it")
}

// A section is a part of INFO.
type section struct {
	name  string
	usual bool // also in INFO without a name
	lines func(c *Client) []field
}

// A field is a line of INFO.
type field struct {
	name  string
	value any
}

var sections = []section{
	{"Server", true, (*Client).infoServer},
	{"Clients", true, (*Client).infoClients},
	{"Memory", true, (*Client).infoMemory},
	{"Persistence", true, (*Client).infoPersistence},
	{"Stats", true, (*Client).infoStats},
	{"Replication", true, func(*Client) []field {
		return []field{{"role", "master"}, {"connected_slaves", 0}, {"master_failover_state", "no-failover"}, {"master_repl_offset", 0}, {"repl_backlog_active", 0}}
	}},
	{"CPU", true, (*Client).infoCPU},
	{"Modules", true, func(*Client) []field {
		return []field{{"module", fmt.Sprintf("name=bf,ver=%d,api=1,filters=0,usedby=[],using=[],options=[]", moduleVersion)}}
	}},
	{"Commandstats", false, (*Client).infoCommands},
	{"Cluster", true, func(*Client) []field { return []field{{"cluster_enabled", 0}} }},
	{"Keyspace", true, (*Client).infoKeyspace},
}

// info executes INFO [section ...].
func (c *Client) info(args [][]byte) {
	wanted := func(s section) bool {
		if len(args) == 1 {
			return s.usual
		}
		for _, arg := range args[1:] {
			if is(arg, "ALL") || is(arg, "EVERYTHING") || is(arg, "DEFAULT") && s.usual || strings.EqualFold(string(arg), s.name) {
				return true
			}
		}
		return false
	}
	var text strings.Builder
	for _, s := range sections {
		if !wanted(s) {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		fmt.Fprintf(&text, "# %s\r\n", s.name)
		for _, line := range s.lines(c) {
			fmt.Fprintf(&text, "%s:%v\r\n", line.name, line.value)
		}
	}
	c.w.Verbatim("txt", text.String())
}

func (c *Client) infoServer() []field {
	s := c.server
	up := time.Since(s.start)
	_, port, _ := net.SplitHostPort(c.laddr)
	executable, _ := os.Executable()
	return []field{
		{"redis_version", redisVersion}, {"bloomery_version", s.config.Version}, {"redis_mode", "standalone"},
		{"os", runtime.GOOS + " " + runtime.GOARCH}, {"arch_bits", 32 << (^uint(0) >> 63)}, {"go_version", runtime.Version()},
		{"process_id", os.Getpid()}, {"run_id", s.runID()}, {"tcp_port", port}, {"server_time_usec", time.Now().UnixMicro()},
		{"uptime_in_seconds", int64(up.Seconds())}, {"uptime_in_days", int64(up.Hours()) / 24}, {"hz", 10}, {"configured_hz", 10},
		{"executable", executable}, {"config_file", ""}, {"io_threads_active", 0},
	}
}

// runID is forty hexadecimal digits that differ for each run, as in Redis.
func (s *Server) runID() string {
	return fmt.Sprintf("%016x%08x%016x", s.start.UnixNano(), os.Getpid(), s.start.UnixNano()*0x5851f42d4c957f2d&(1<<63-1))
}

func (c *Client) infoClients() []field {
	s := c.server
	tracking, away := 0, 0
	s.eachClient(func(other *Client) {
		if other.away.Load() {
			away++
		}
		if other.tracking.shown.tracks.Load() {
			tracking++
		}
	})
	return []field{{"connected_clients", s.clientCount()}, {"cluster_connections", 0}, {"maxclients", s.limits.Load().Clients},
		{"blocked_clients", away}, {"tracking_clients", tracking}, {"pubsub_clients", 0}}
}

func (c *Client) infoMemory() []field {
	used, limit := c.server.store.Usage()
	resident := residentBytes()
	return []field{{"used_memory", used}, {"used_memory_human", redisSize(used)}, {"used_memory_rss", resident}, {"used_memory_rss_human", redisSize(resident)},
		{"used_memory_peak", max(used, resident)}, {"used_memory_peak_human", redisSize(max(used, resident))}, {"used_memory_dataset", used}, {"used_memory_lua", 0},
		{"maxmemory", limit}, {"maxmemory_human", redisSize(limit)}, {"maxmemory_policy", "noeviction"}, {"mem_fragmentation_ratio", "1.00"}, {"mem_allocator", "go"}}
}

// redisSize formats a size as Redis does: 1.50M.
func redisSize(bytes uint64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%dB", bytes)
	}
	value, unit := float64(bytes)/(1<<10), 0
	for value >= 1<<10 && unit < 4 {
		value /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.2f%c", value, "KMGTP"[unit])
}

func (c *Client) infoPersistence() []field {
	failed, stopped, why := false, false, ""
	if st, ok := c.server.store.(store.Statistician); ok {
		stats := st.Stats()
		failed, stopped = stats.SnapshotFailure != nil, stats.Failure != nil
		if failed {
			why = strings.Join(strings.Fields(stats.SnapshotFailure.Error()), " ") // on one line
		}
	}
	inProgress := 0
	if c.server.saving().underway() {
		inProgress = 1
	}
	status := func(bad bool) string {
		if bad {
			return "err"
		}
		return "ok"
	}
	return []field{{"loading", 0}, {"async_loading", 0}, {"rdb_changes_since_last_save", 0}, {"rdb_bgsave_in_progress", inProgress},
		{"rdb_last_save_time", c.server.lastSnapshot().Unix()}, {"rdb_last_bgsave_status", status(failed)}, {"bloomery_last_snapshot_error", why}, {"aof_enabled", 0},
		{"aof_rewrite_in_progress", 0}, {"aof_last_bgrewrite_status", "ok"}, {"aof_last_write_status", status(stopped)}}
}

// counted is a copy of a server's counts.
type counted struct {
	connections, rejected, dropped int64
	commands, hits, misses         int64
	bytesIn, bytesOut              int64
	calls, failures                []int64 // of commands, by place in the metrics
}

func (s *Server) counted() counted {
	st := &s.stats
	now := counted{
		connections: st.connections.Load(), rejected: st.rejected.Load(), dropped: st.dropped.Load(),
		commands: st.commands.Load(), hits: st.hits.Load(), misses: st.misses.Load(),
		bytesIn: st.bytesIn.Load(), bytesOut: st.bytesOut.Load(),
	}
	for i := range s.metrics.commands {
		now.failures = append(now.failures, s.metrics.commands[i].failures.Load()) // read before calls, which is never less
		now.calls = append(now.calls, s.metrics.commands[i].calls.Load())
	}
	return now
}

// countedSince returns the counts since CONFIG RESETSTAT. The metrics are not reset:
// monitoring takes a counter that goes down for a restart.
func (s *Server) countedSince() counted {
	now, before := s.counted(), s.informed.reset.Load()
	if before == nil {
		return now
	}
	now.connections -= before.connections
	now.rejected -= before.rejected
	now.dropped -= before.dropped
	now.commands -= before.commands
	now.hits -= before.hits
	now.misses -= before.misses
	now.bytesIn -= before.bytesIn
	now.bytesOut -= before.bytesOut
	for i := range now.calls {
		now.calls[i] -= before.calls[i]
		now.failures[i] -= before.failures[i]
	}
	return now
}

func (c *Client) infoStats() []field {
	st := c.server.countedSince()
	seconds := max(time.Since(c.server.start).Seconds(), 1)
	return []field{{"total_connections_received", st.connections}, {"total_commands_processed", st.commands},
		{"instantaneous_ops_per_sec", int64(float64(c.server.stats.commands.Load()) / seconds)},
		{"total_net_input_bytes", st.bytesIn}, {"total_net_output_bytes", st.bytesOut}, {"rejected_connections", st.rejected},
		{"evicted_keys", 0}, {"keyspace_hits", st.hits}, {"keyspace_misses", st.misses},
		{"pubsub_channels", 0}, {"pubsub_patterns", 0}, {"client_output_buffer_limit_disconnections", st.dropped}}
}

func (c *Client) infoCPU() []field {
	user, system := processorSeconds()
	return []field{{"used_cpu_sys", fmt.Sprintf("%.6f", system)}, {"used_cpu_user", fmt.Sprintf("%.6f", user)}}
}

// infoCommands reports how often each command was called. Times are measured per batch:
// see the metrics.
func (c *Client) infoCommands() (lines []field) {
	st := c.server.countedSince()
	for i, row := range c.server.metrics.rows {
		if calls := st.calls[i]; row != nil && calls > 0 {
			lines = append(lines, field{"cmdstat_" + row.fullName(), fmt.Sprintf(
				"calls=%d,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=%d", calls, st.failures[i])})
		}
	}
	slices.SortFunc(lines, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return lines
}

func (c *Client) infoKeyspace() (lines []field) {
	count, _ := c.server.keysIn()
	for db, n := range count {
		if n > 0 {
			lines = append(lines, field{fmt.Sprintf("db%d", db), fmt.Sprintf("keys=%d,expires=0,avg_ttl=0,subexpiry=0", n)})
		}
	}
	return lines
}

// residentBytes returns the resident memory of the process on Linux, and elsewhere the
// memory that Go has obtained.
func residentBytes() uint64 {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, resident uint64
		if n, _ := fmt.Sscan(string(text), &size, &resident); n == 2 {
			return resident * uint64(os.Getpagesize())
		}
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Sys
}

func (c *Client) wait(args [][]byte) {
	_, ok := integer(args[1])
	timeout, okToo := integer(args[2])
	switch {
	case !ok || !okToo:
		c.w.Error(textInteger)
	case timeout < 0:
		c.w.Error("ERR timeout is negative")
	default:
		c.w.Integer(0)
	}
}

func (c *Client) time(args [][]byte) {
	now := time.Now()
	c.w.Array(2)
	c.w.BulkString(strconv.FormatInt(now.Unix(), 10))
	c.w.BulkString(strconv.Itoa(now.Nanosecond() / 1000))
}
