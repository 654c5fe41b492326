package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	pages "github.com/bloomery/bloom/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// HTTPConfig configures the HTTP side of a server. The zero value is right for most.
type HTTPConfig struct {
	// Hosts are the host names, besides localhost and addresses, that requests may name
	// while there is no password. A web page that has made its own name resolve to this
	// machine (DNS rebinding) sends another name.
	Hosts []string

	// Filters is how many filters, the largest, have metrics of their own. Zero means
	// DefaultHTTPFilters; negative means none.
	Filters int

	// Profiling serves /debug/pprof.
	Profiling bool
}

// DefaultHTTPFilters bounds the number of time series that a server exports.
const DefaultHTTPFilters = 100

const (
	readyTime     = 2 * time.Second  // within which a working store commits
	requestTime   = 10 * time.Second // to read a request, and to finish those under way
	responseTime  = time.Minute      // to respond, except profiles
	profileTime   = 5 * time.Minute  // the longest profile, with a margin
	keepAliveTime = 2 * time.Minute

	// httpConnections is the most connections: each takes a descriptor, and needs no
	// password.
	httpConnections = 128
)

// web is the HTTP side of a server.
type web struct {
	server  *Server
	config  HTTPConfig
	filters *filterGauges

	working chan struct{} // holds an element for each request to the API in progress
	streams int           // the most event streams
}

// ServeHTTPOn serves HTTP on the listener until Shutdown has returned, and then returns
// ErrStopped; during Shutdown, /readyz says that the server is stopping. It closes the
// listener. The rules for addresses, and TLS, are those of [Server.Serve]. If a
// password is set, /metrics and everything that shows names requires it, by basic
// authentication.
func (s *Server) ServeHTTPOn(l net.Listener, config HTTPConfig) error {
	defer l.Close()
	if err := s.config.MayListen(l.Addr()); err != nil {
		return err
	}
	server := &http.Server{
		Handler:           s.HTTPHandler(config),
		ReadHeaderTimeout: requestTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      responseTime,
		IdleTimeout:       keepAliveTime,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState:         newHTTPLimit(mostHTTP()).state,
	}
	if s.config.TLS != nil {
		config := s.config.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, config)
	}
	ended := make(chan struct{})
	release := context.AfterFunc(s.ctx, func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), requestTime)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	})
	err := server.Serve(l)
	if release() { // Shutdown did not end it
		server.Close()
		return fmt.Errorf("server: serving HTTP: %w", err)
	}
	<-ended
	return s.whyStopped()
}

// HTTPHandler returns what [Server.ServeHTTPOn] serves.
func (s *Server) HTTPHandler(config HTTPConfig) http.Handler {
	if config.Filters == 0 {
		config.Filters = DefaultHTTPFilters
	}
	h := &web{
		server:  s,
		config:  config,
		filters: &filterGauges{store: s.store, most: max(config.Filters, 0)},
		working: make(chan struct{}, max(min(httpRequests, mostHTTP()/5), 1)),
		streams: max(min(httpStreams, mostHTTP()/2), 1),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{s, h.filters}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	pages.Mount(mux, true)
	mux.Handle("GET /{$}", pages.Page("console", true))
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.Handle("GET /metrics", h.private(promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})))
	if config.Profiling {
		mux.Handle("GET /debug/pprof/", h.profile(pprof.Index))
		mux.Handle("GET /debug/pprof/cmdline", h.profile(pprof.Cmdline))
		mux.Handle("GET /debug/pprof/profile", h.profile(pprof.Profile))
		mux.Handle("GET /debug/pprof/symbol", h.profile(pprof.Symbol))
		mux.Handle("GET /debug/pprof/trace", h.profile(pprof.Trace))
	}
	return h.checkHost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") { // not by mux, which would clean the names in paths
			h.serveAPI(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// mostHTTP is the most HTTP connections that there are descriptors for.
func mostHTTP() int { return max(min(httpConnections, maxFiles()/4), 2) }

// checkHost refuses requests that name another host, and requests that a page of
// another site made a browser send.
func (h *web) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if h.server.config.Password == "" && !h.isOurs(r.Host) {
			http.Error(w, "unknown host "+clip([]byte(r.Host))+": use the server's address, or start the server with this name as --http-host", http.StatusForbidden)
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			http.Error(w, "refused: a page of another site sent this request", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports whether a Host header names this server: an address, which cannot be
// rebound; localhost; or a configured name. An empty header is allowed: every browser
// sends one.
func (h *web) isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	address, _, _ := strings.Cut(strings.Trim(host, "[]"), "%") // without the zone
	return host == "" || net.ParseIP(address) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(h.config.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// private requires a password, if one is set. The read-only password suffices.
func (h *web) private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.accessOf(r); err != nil {
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// profile extends the deadline for a profile.
func (h *web) profile(next http.HandlerFunc) http.Handler {
	return h.private(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(profileTime))
		next(w, r)
	}))
}

// healthz says only that the process is alive.
func (h *web) healthz(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// readyz says whether adds are being acknowledged.
func (h *web) readyz(w http.ResponseWriter, r *http.Request) {
	if err := h.ready(r.Context()); err != nil {
		http.Error(w, "not ready: "+reason(err), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// ready makes the store commit. If the disk hangs, the request does not.
func (h *web) ready(ctx context.Context) error {
	if s := h.server; s.isStopping() {
		return s.whyStopped()
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err := h.server.store.Commit(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the store has committed nothing for %v", readyTime)
	}
	return err
}
