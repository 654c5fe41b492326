package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// ServeLoadingOn serves HTTP on the listener while the store is loaded, which may take
// long, and before which there can be no [Server]. /healthz says that the process is
// alive, everything else that it is not ready. The returned function ends that and
// leaves the listener open for [Server.ServeHTTPOn]; it may be called twice. A listener
// that cannot be taken back is not served until then.
func ServeLoadingOn(l net.Listener, config Config) (loaded func()) {
	lent, ok := l.(interface{ SetDeadline(time.Time) error })
	if !ok || config.MayListen(l.Addr()) != nil {
		return func() {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not ready: reading the data", http.StatusServiceUnavailable)
	})
	server := &http.Server{Handler: mux, ReadTimeout: requestTime, WriteTimeout: requestTime, ConnState: newHTTPLimit(httpConnections).state}
	if config.Log != nil {
		server.ErrorLog = slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug)
	}
	borrowed := net.Listener(keptOpen{l})
	if config.TLS != nil {
		secure := config.TLS.Clone()
		secure.NextProtos = []string{"http/1.1"}
		borrowed = tls.NewListener(borrowed, secure)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(borrowed)
	}()
	return sync.OnceFunc(func() {
		lent.SetDeadline(time.Unix(1, 0)) // ends the wait for a connection
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		lent.SetDeadline(time.Time{})
	})
}

// keptOpen is a listener that its borrower cannot close. For the borrower it ends when
// its deadline has passed.
type keptOpen struct{ net.Listener }

func (l keptOpen) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) { // http.Server would try again
		err = net.ErrClosed
	}
	return conn, err
}

func (keptOpen) Close() error { return nil }
