package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bloomery/bloom/web"
	"github.com/spf13/cobra"
)

// playCommand is `bloomery play`.
type playCommand struct {
	listen string
}

func newPlay() *cobra.Command {
	c := &playCommand{}
	cmd := &cobra.Command{
		Use:   "play",
		Short: "Show how filters work, in a browser",
		Long: `Play serves two pages to browsers on this machine, and prints their addresses:

  /play   the playground: add words, watch their bits, and see why an answer is wrong
  /plan   the planner: n, p, m and k, with charts; the numbers are those of
          'bloomery plan'

The pages compute everything in the browser and send nothing back. 'bloomery serve'
has them on its HTTP port, too. Ctrl-C stops it.`,
		Example: `  bloomery play
  bloomery play --listen 127.0.0.1:8080`,
		Args:                  noArgs,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().StringVar(&c.listen, "listen", "127.0.0.1:0", "the `ADDRESS` of this machine to serve on; port 0: a free one")
	return cmd
}

const (
	pageTime = 10 * time.Second // to read a request, and to answer it
	quitTime = time.Second      // for the answers under way, when it stops
)

func (c *playCommand) run(cmd *cobra.Command) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("%w (choose another address with --listen)", err)
	}
	defer l.Close()
	if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return usagef("--listen %s is open to other machines, and these pages are for this one: listen on 127.0.0.1, or use 'bloomery serve --http'", c.listen)
	}
	mux := http.NewServeMux()
	web.Mount(mux, false)
	mux.Handle("GET /{$}", http.RedirectHandler("/play", http.StatusSeeOther))
	server := &http.Server{Handler: mux, ReadTimeout: pageTime, WriteTimeout: pageTime, MaxHeaderBytes: 64 << 10}
	stopped := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.Background(), quitTime)
		defer cancel()
		if server.Shutdown(within) != nil {
			server.Close()
		}
	})
	defer stopped()
	out := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(out, "playground  http://%s/play\nplanner     http://%s/plan\n", l.Addr(), l.Addr()); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
