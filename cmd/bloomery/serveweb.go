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

// webOptions are the flags of serve for who operates it: HTTP, and what only
// prints.
type webOptions struct {
	config  server.HTTPConfig
	address string
	chosen  func() bool // whether the address was given

	limits, metrics bool
}

// noHTTP is the address for no HTTP at all.
const noHTTP = "off"

func (o *webOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.address, "http", "127.0.0.1:6381", "the `ADDRESS` for /metrics, /healthz and /readyz over HTTP; off: none")
	f.StringSliceVar(&o.config.Hosts, "http-host", nil, "a further `NAME` that requests over HTTP may come for, while there is no password")
	f.IntVar(&o.config.Filters, "metrics-filters", server.DefaultHTTPFilters, "how many filters have metrics of their own: the largest; -1: none")
	f.BoolVar(&o.config.Profiling, "pprof", false, "serve profiles of this process under /debug/pprof")
	f.BoolVar(&o.limits, "limits", false, "print the limits to clients, and do nothing else")
	f.BoolVar(&o.metrics, "metrics", false, "print what /metrics has, and do nothing else")
	o.chosen = func() bool { return f.Changed("http") }
}

// start serves HTTP. The function that it returns is for when the server is shut
// down: it returns when the last request is answered.
func (o *webOptions) start(s *server.Server, log *slog.Logger) (wait func(), err error) {
	if o.address == noHTTP {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", o.address)
	if err != nil && !o.chosen() {
		log.Warn("no metrics and health checks over HTTP: choose an address by --http", "error", err)
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (choose another address by --http, or --http %s)", err, noHTTP)
	}
	log.Info("serving HTTP", "address", l.Addr().String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.ServeHTTPOn(l, o.config); !errors.Is(err, server.ErrStopped) && !errors.Is(err, store.ErrStopped) {
			log.Error("no more metrics and health checks over HTTP", "error", err)
		}
	}()
	return func() { <-ended }, nil
}

// prints reports whether serve is only to print.
func (o *webOptions) prints() bool { return o.limits || o.metrics }

func (o *webOptions) print(w io.Writer) error {
	var b strings.Builder
	if o.limits {
		rows := server.LimitTable()
		for _, row := range rows {
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
