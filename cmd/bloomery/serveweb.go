package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/spf13/cobra"
)

// webOptions are serve's flags for its operator: HTTP, and those that only print.
type webOptions struct {
	config  server.HTTPConfig
	address string
	chosen  func() bool  // whether the address was given
	l       net.Listener // nil: no HTTP
	loaded  func()       // ends what is served while the data is read

	limits, metrics bool
}

// noHTTP is the address for no HTTP at all.
const noHTTP = "off"

func (o *webOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.address, "http", "127.0.0.1:6381", "the `ADDRESS` for the console, /api/v1, /metrics, /healthz and /readyz over HTTP; off: none")
	f.StringSliceVar(&o.config.Hosts, "http-host", nil, "without a password: also accept HTTP requests for the host `NAME`")
	f.IntVar(&o.config.Filters, "metrics-filters", server.DefaultHTTPFilters, "the `N` largest filters have metrics of their own; 0: none")
	f.BoolVar(&o.config.Profiling, "pprof", false, "serve profiles of this process under /debug/pprof")
	f.BoolVar(&o.limits, "limits", false, "print the limits on clients, and exit")
	f.BoolVar(&o.metrics, "metrics", false, "list the metrics, and exit")
	o.chosen = func() bool { return f.Changed("http") }
}

// open listens, and accepts nothing yet.
func (o *webOptions) open(config server.Config) error {
	if o.address == noHTTP {
		return nil
	}
	l, err := net.Listen("tcp", o.address)
	if err != nil && !o.chosen() {
		config.Log.Warn("no metrics or health checks over HTTP: choose an address with --http", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w (choose another address with --http, or --http %s)", err, noHTTP)
	}
	if err := checkProtected(l, config); err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	o.l = l
	o.loaded = server.ServeLoadingOn(l, config)
	return nil
}

// close is for a server that did not start.
func (o *webOptions) close() {
	if o.l != nil {
		o.loaded()
		o.l.Close()
	}
}

// start serves HTTP. It returns a function to call when the server shuts down, which
// returns when the last request is answered.
func (o *webOptions) start(s *server.Server, log *slog.Logger) (wait func()) {
	if o.l == nil {
		return func() {}
	}
	config := o.config
	if config.Filters == 0 {
		config.Filters = -1 // in server.HTTPConfig zero means the default
	}
	o.loaded()
	log.Info("serving HTTP", "address", o.l.Addr().String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.ServeHTTPOn(o.l, config); !errors.Is(err, server.ErrStopped) && !errors.Is(err, store.ErrStopped) {
			log.Error("metrics and health checks over HTTP have stopped", "error", err)
		}
	}()
	return func() { <-ended }
}

// prints reports whether serve is only to print.
func (o *webOptions) prints() bool { return o.limits || o.metrics }

func (o *webOptions) print(w io.Writer) error {
	var b strings.Builder
	if o.limits {
		rows := server.LimitTable()
		for _, row := range rows {
			if row.Name == "memory" { // see setCeiling; package server has no default
				row.Value, row.What = fmt.Sprintf("%.0f%%", 100*ceilingShare), "of the usable memory: "+row.What
			}
			fmt.Fprintf(&b, "%-21s  %9s  %s\n", row.Name, row.Value, row.What)
		}
	}
	if o.metrics {
		for _, m := range server.Metrics() {
			labels := ""
			if len(m.Labels) > 0 {
				labels = "{" + strings.Join(m.Labels, ", ") + "}"
			}
			fmt.Fprintf(&b, "%s%s  %s\n    %s\n", m.Name, labels, m.Type, m.Help)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
