package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/spf13/cobra"
)

// shutdownTime is how long clients may take to read their replies when the server
// stops.
const shutdownTime = 10 * time.Second

type serveOptions struct {
	listen, data           string
	store                  storeOptions
	durability, layout     string
	memory                 human.SizeFlag
	password, readPassword string // files
	cert, key              string // files
	unprotected            bool
	loops, clients         int
	payload, buffers       human.SizeFlag
	idle                   time.Duration
	web                    webOptions
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve filters over the Redis protocol",
		Long: `Serve answers the BF commands of RedisBloom, and the Redis commands that clients
need, so that programs written for them work unchanged. The filters are
RedisBloom's own, bit for bit, unless --layout or BF.RESERVE says otherwise.

Without --data, filters are lost when the server stops. With --store, they are
kept in Redis or Valkey, which several servers can share; see docs/cluster.md.
Without --password-file it serves this machine only. SIGINT, SIGTERM, SIGHUP and the command SHUTDOWN stop
it after the requests received so far are answered.`,
		Example: `  bloomery serve --data /var/lib/bloomery
  redis-cli -p 6380 BF.ADD seen https://example.com/`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },

		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:6380", "the `ADDRESS` to listen on, host:port, or a path for a Unix socket")
	f.StringVar(&o.data, "data", "", "keep filters in the directory `DIR`, which is created if missing")
	f.StringVar(&o.durability, "durability", "everysec", "`WHEN` an add is safe from a power failure: always (before the reply), everysec or none; with --store: async, wait:N (replicas) or replay:TIME")
	f.StringVar(&o.layout, "layout", "redisbloom", "the `LAYOUT` of filters that do not ask for one: redisbloom, or paired, which is faster, or counting, from which keys can be removed")
	f.Var(&o.memory, "memory", ceilingHelp)
	f.StringVar(&o.password, "password-file", "", "clients must send the password in `FILE`")
	f.StringVar(&o.readPassword, "read-password-file", "", "clients that send the password in `FILE` may only read")
	f.StringVar(&o.cert, "tls-cert", "", "use TLS, with the certificate in `FILE` (PEM)")
	f.StringVar(&o.key, "tls-key", "", "the key of the certificate, in `FILE` (PEM)")
	f.BoolVar(&o.unprotected, "unprotected", false, "serve other machines without a password")
	f.IntVar(&o.clients, "clients", server.DefaultLimits().Clients, "at most `N` connections")
	f.DurationVar(&o.idle, "idle", 0, "close connections that send nothing for this `TIME`; 0: never")
	f.Var(&o.payload, "payload-bytes", "the largest filter that DUMP and RESTORE move (default 512MiB)")
	f.Var(&o.buffers, "buffer-bytes", "the most memory for the buffers of all connections (default 1GiB, at most half of --memory)")
	f.IntVar(&o.loops, "loops", 0, "`N` event loops; 0: one for every two cores")
	o.store.add(cmd)
	o.web.add(cmd)
	cmd.RegisterFlagCompletionFunc("durability", fixed("always", "everysec", "none"))
	cmd.RegisterFlagCompletionFunc("layout", fixed("redisbloom", "paired", "counting"))
	return cmd
}

func (o *serveOptions) run(cmd *cobra.Command) error {
	if o.web.prints() {
		return o.web.print(cmd.OutOrStdout())
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := o.checkStore(cmd); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	config, err := o.config(log)
	if err != nil {
		return err
	}
	if o.store.used() {
		return o.serveStore(cmd, config)
	}
	level, ok := map[string]store.Level{"always": store.Always, "everysec": store.EverySecond, "none": store.Unlogged}[o.durability]
	if !ok {
		return usagef("--durability is always, everysec or none, not %q", o.durability)
	}
	if err := checkData(o.data); err != nil {
		return err
	}
	o.setCeiling(log)
	defer boundHeap(uint64(o.memory))()
	// Listen before reading the data, which may take long: an address in use fails at once.
	l, end, err := o.listenAll(config)
	if err != nil {
		return err
	}
	defer end()
	if o.data == "" {
		log.Warn("filters are kept in memory only, and lost when the server stops: give a directory with --data to keep them")
	} else {
		log.Info("reading the data", "data", o.data)
	}
	filters, err := store.OpenLocal(store.LocalConfig{Dir: o.data, Memory: uint64(o.memory), Level: level,
		Warn: func(err error) { log.Warn("adds continue, and are safe in the log", "error", err) }})
	if err != nil {
		return withRepair(o.data, err)
	}
	if o.data != "" {
		logRecovered(log, filters.Recovered())
		if failure := filters.Stats().SnapshotFailure; failure != nil {
			log.Warn("continuing with a log that is larger than the filters", "error", failure)
		}
	}
	err = o.serve(cmd, filters, config, l)
	closed := filters.Close()
	if failure := filters.Stats().SnapshotFailure; failure != nil && closed == nil {
		log.Warn("stopped without a final snapshot: the log has everything, and the next start reads it", "error", failure)
	}
	return joinClosed(err, closed)
}

// joinClosed joins the errors of serving and of closing the store. If the store has
// stopped, they are the same error.
func joinClosed(err, closed error) error {
	if errors.Is(err, store.ErrStopped) {
		return err
	}
	return errors.Join(err, closed)
}

// check refuses values that would be mistaken for something else.
func (o *serveOptions) check() error {
	switch {
	case o.clients < 1:
		return usagef("--clients is 1 or more, not %d", o.clients)
	case o.idle < 0:
		return usagef("--idle is 0 or more, not %v", o.idle)
	case o.loops < 0:
		return usagef("--loops is 0 or more, not %d", o.loops)
	case o.web.config.Filters < -1: // -1 is none, as 0 is
		return usagef("--metrics-filters is 0 or more, not %d", o.web.config.Filters)
	}
	return nil
}

// listenAll is listenAt, and the same for HTTP. The caller calls end when the server has
// stopped, or has not started.
func (o *serveOptions) listenAll(config server.Config) (l net.Listener, end func(), err error) {
	if l, err = o.listenAt(config); err != nil {
		return nil, nil, err
	}
	if err = o.web.open(config); err != nil {
		l.Close()
		return nil, nil, err
	}
	return l, func() { o.web.close(); l.Close() }, nil
}

// listenAt listens, and accepts nothing yet: clients wait until the data is there.
func (o *serveOptions) listenAt(config server.Config) (net.Listener, error) {
	network := "tcp"
	if strings.Contains(o.listen, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, o.listen)
	if errors.Is(err, syscall.EADDRINUSE) && network == "unix" && removeStale(o.listen) {
		l, err = net.Listen(network, o.listen)
	}
	var wrong *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w (another server may be running; choose another address with --listen)", err)
	case errors.As(err, &wrong):
		return nil, usagef("--listen %s: %s: give host:port, like 127.0.0.1:6380, or a path with a / for a Unix socket", o.listen, wrong.Err)
	case err != nil:
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return l, checkProtected(l, config)
}

// isStoreFile reports whether a file of this name holds a server's data.
func isStoreFile(name string) bool {
	return name == "secrets" || strings.HasPrefix(name, "snapshot-") || strings.HasPrefix(name, "log-")
}

// isDataDirectory reports whether a directory holds a server's data. It is true for
// one that cannot be read, as that may.
func isDataDirectory(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return isStoreFile(e.Name()) })
}

// checkData refuses a directory that holds files, but none of a server's: it is most
// likely a typing error.
func checkData(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("--data %s: is not a directory: choose another name", dir)
	}
	entries, err := os.ReadDir(dir)
	if dir == "" || err != nil { // it is created, or the store reports what is wrong
		return nil
	}
	foreign := ""
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == "lock" || isStoreFile(name):
			return nil
		case name != "lost+found" && !strings.HasPrefix(name, "."): // those of file systems
			foreign = name
		}
	}
	if foreign == "" {
		return nil
	}
	return fmt.Errorf("--data %s: the directory holds files that no server wrote, such as %s: choose an empty or a new one", dir, foreign)
}

// removeStale removes a socket on which nobody answers, left by a server that was
// killed, and reports whether it did.
func removeStale(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED) && os.Remove(path) == nil
}

// checkProtected closes a listener that the server would refuse, and says why.
func checkProtected(l net.Listener, config server.Config) error {
	err := config.MayListen(l.Addr())
	if err != nil {
		l.Close()
	}
	return err
}

// spareThreads are threads for Go code beyond the number of CPUs, for long commands
// and snapshots. Without them, Go lets one that computes run for 10 ms while an event
// loop waits for a thread; with them the system decides, and it prefers the loop that
// has slept. DUMP of 24 MiB kept others waiting for 66 ms without and for 10 with them.
const spareThreads = 2

// serve runs until a signal arrives, a client sends SHUTDOWN, or the server cannot
// continue.
func (o *serveOptions) serve(cmd *cobra.Command, filters store.Store, config server.Config, l net.Listener) error {
	cpus := runtime.GOMAXPROCS(0)
	if config.Loops <= 0 {
		config.Loops = max(cpus/2, 1) // one for every two CPUs: see server.Config
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus + spareThreads))
	if config.Durability = o.durability; o.data == "" && !o.store.used() {
		config.Durability = "memory"
	}
	s, err := server.New(filters, config)
	if err != nil {
		return err
	}
	defer o.web.start(s, config.Log)()
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(hangup) { // otherwise it runs under nohup
		signals = append(signals, hangup)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), signals...)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	names, _ := filters.Len()
	config.Log.Info("serving", "address", l.Addr().String(), "data", o.data, "durability", o.durability, "layout", o.layout, "names", names,
		"tls", config.TLS != nil, "password", config.Password != "")
	tellSystemd("READY=1", config.Log)
	select {
	case err = <-ended:
		if errors.Is(err, server.ErrStopped) { // by SHUTDOWN
			tellSystemd("STOPPING=1", config.Log)
			err = nil
		}
	case <-ctx.Done():
		stop() // a second signal ends it at once
		tellSystemd("STOPPING=1", config.Log)
		config.Log.Info("stopping: finishing the requests received")
		err = nil
	}
	late, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if s.Shutdown(late) != nil {
		config.Log.Warn("some clients did not read their last replies")
	}
	return err
}

// config returns the server's config by the flags, all but its store.
func (o *serveOptions) config(log *slog.Logger) (server.Config, error) {
	config := server.Config{
		Unprotected: o.unprotected, Loops: o.loops, Log: log, Version: readVersion().Version,
		Limits: server.Limits{Clients: o.clients, Idle: o.idle, PayloadBytes: int(min(o.payload, math.MaxInt)), BufferBytes: int(min(o.buffers, math.MaxInt))},
	}
	switch o.layout {
	case "redisbloom":
		config.Filter.Kind = store.RedisBloom
	case "paired":
		config.Filter.Kind = store.Paired
	case "counting":
		config.Filter.Kind = store.Counting
	default:
		return config, usagef("--layout is redisbloom, paired or counting, not %q", o.layout)
	}
	var err error
	if config.Password, err = readPassword(o.password); err != nil {
		return config, err
	}
	if config.ReadOnlyPassword, err = readPassword(o.readPassword); err != nil {
		return config, err
	}
	if (o.cert == "") != (o.key == "") {
		return config, usagef("--tls-cert and --tls-key go together")
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return config, fmt.Errorf("%s and %s: %w", o.cert, o.key, err)
		}
		config.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return config, nil
}

// readPassword reads the first line of a file. No path means no password.
func readPassword(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", lines.FileError(path, err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("%s: a password is on the first line of its file, and this one is empty", path)
	}
	return line, nil
}

// notifySystemd tells systemd, if it has started us as a service of Type=notify,
// that a state is reached: READY=1, or STOPPING=1. See sd_notify(3).
func notifySystemd(state string) error {
	path := os.Getenv("NOTIFY_SOCKET") // a leading @ means an abstract socket, in package net too
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}

// tellSystemd is notifySystemd for a server, which continues without it.
func tellSystemd(state string, log *slog.Logger) {
	if err := notifySystemd(state); err != nil {
		log.Warn("cannot tell systemd the state of the service", "state", state, "error", err)
	}
}
