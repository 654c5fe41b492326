package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// transports are the ways to serve a connection: by the event loops of this system, if
// it has any, and by a goroutine.
var transports = map[string]func(net.Listener) net.Listener{
	"loops":   func(l net.Listener) net.Listener { return l },
	"streams": func(l net.Listener) net.Listener { return plainListener{l} },
}

// plainListener hides that its connections have descriptors.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}

// eachTransport runs a test with a server of either transport.
func eachTransport(t *testing.T, config Config, test func(t *testing.T, s *Server, st *fakeStore, addr string)) {
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			st := newFakeStore()
			s, addr, _ := serveOn(t, st, config, wrap)
			test(t, s, st, addr)
		})
	}
}

// serveOn runs a server until the test ends. The channel yields the error of Serve.
func serveOn(t testing.TB, st store.Store, config Config, wrap func(net.Listener) net.Listener) (*Server, string, <-chan error) {
	t.Helper()
	s, err := New(st, config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(wrap(l)) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s, l.Addr().String(), served
}

// send sends text without waiting for replies.
func (w *wire) send(t testing.TB, text string) {
	t.Helper()
	w.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// read reads one reply.
func (w *wire) read(t testing.TB) resp.Reply {
	t.Helper()
	reply, err := w.reader.Read()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// wantEnd checks that the server closes the connection, after a last error that
// begins with the text, or without one if it is empty.
func (w *wire) wantEnd(t testing.TB, text string) {
	t.Helper()
	w.SetDeadline(time.Now().Add(time.Minute))
	last := ""
	for {
		reply, err := w.reader.Read()
		if err != nil {
			if err, ok := errors.AsType[net.Error](err); ok && err.Timeout() {
				t.Fatal("the connection was not closed")
			}
			break
		}
		if reply.Kind == resp.SimpleError {
			last = reply.Text
		}
	}
	if !strings.HasPrefix(last, text) || text == "" && last != "" {
		t.Errorf("the last error before the end is %q, want %q", last, text)
	}
}

func TestAuth(t *testing.T) {
	config := Config{Password: "write", ReadOnlyPassword: "read"}
	eachTransport(t, config, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		w := connect(t, addr)
		w.expect(t, "BF.ADD k a", "-NOAUTH Authentication required.\r\n")
		w.expect(t, "AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
		w.expect(t, "AUTH writ", "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
		w.expect(t, "AUTH default read", "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
		w.expect(t, "AUTH a b c", "-ERR syntax error\r\n")
		w.expect(t, "BF.EXISTS k a", "-NOAUTH Authentication required.\r\n")
		w.expect(t, "AUTH read", "+OK\r\n")
		w.expect(t, "BF.EXISTS k a", ":0\r\n")
		w.expect(t, "BF.ADD k a", "-NOPERM User readonly has no permissions to run the 'bf.add' command\r\n")
		w.expect(t, "FLUSHALL", "-NOPERM User readonly has no permissions to run the 'flushall' command\r\n")
		w.expect(t, "AUTH default write", "+OK\r\n")
		w.expect(t, "BF.ADD k a", ":1\r\n")
		w.expect(t, "AUTH readonly read", "+OK\r\n")
		w.expect(t, "BF.EXISTS k a", ":1\r\n")
		// One pipeline: commands after AUTH already have its rights.
		w = connect(t, addr)
		w.send(t, command("BF.EXISTS", "k", "a")+command("AUTH", "write")+command("BF.ADD", "k", strings.Repeat("x", 20<<10)))
		for _, kind := range []resp.Kind{resp.SimpleError, resp.SimpleString, resp.Integer} {
			if reply := w.read(t); reply.Kind != kind {
				t.Errorf("reply %v, want one of kind %c", reply, kind)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	for _, config := range []Config{
		{ReadOnlyPassword: "x"}, {ReadOnlyPassword: "x", Password: "x"},
		{Filter: store.Spec{Rate: 1}}, {Filter: store.Spec{Kind: store.String}},
	} {
		if _, err := New(newFakeStore(), config); err == nil {
			t.Errorf("New(%+v) has no error", config)
		}
	}
}

func TestProtected(t *testing.T) {
	s, err := New(newFakeStore(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); !errors.Is(err, ErrProtected) {
		t.Errorf("Serve on all addresses: error %v, want %v", err, ErrProtected)
	}
	// A client from elsewhere that somehow connects to a loopback listener.
	us, them := net.Pipe()
	go s.accept(fromElsewhere{us})
	them.SetDeadline(time.Now().Add(time.Minute))
	text, _ := io.ReadAll(them)
	if !strings.HasPrefix(string(text), "-DENIED ") || !strings.HasSuffix(string(text), "\r\n") {
		t.Errorf("a client from elsewhere got %q, want DENIED", text)
	}
	if n := s.clientCount(); n != 0 {
		t.Errorf("%d clients, want 0", n)
	}
}

type fromElsewhere struct{ net.Conn }

func (fromElsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

func TestCrossProtocol(t *testing.T) {
	eachTransport(t, Config{}, func(t *testing.T, s *Server, st *fakeStore, addr string) {
		for _, sent := range []string{"POST / HTTP/1.1\r\nHost: x\r\n\r\nBF.ADD k a\r\n", "GET / HTTP/1.1\r\nHost: x\r\nBF.ADD k a\r\n"} {
			w := connect(t, addr)
			w.send(t, sent)
			w.SetDeadline(time.Now().Add(time.Minute))
			if text, _ := io.ReadAll(w); strings.Contains(string(text), ":1") {
				t.Errorf("%q: got %q, want no command behind it executed", sent, text)
			}
		}
		if nameCount(st) != 0 {
			t.Error("a command behind HTTP was executed")
		}
	})
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	_, addr, _ := serveOn(t, newFakeStore(), config, transports["loops"])

	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := &wire{Conn: conn, reader: newRecorder(conn)}
	w.expect(t, "BF.MADD k a b", "*2\r\n:1\r\n:1\r\n")
	w.expect(t, "BF.EXISTS k a", ":1\r\n")

	plain := connect(t, addr)
	plain.send(t, command("BF.ADD", "k", "a"))
	plain.SetDeadline(time.Now().Add(time.Minute))
	if text, _ := io.ReadAll(plain); strings.Contains(string(text), ":") {
		t.Errorf("without TLS: got %q, want nothing executed", text)
	}
}

// TestShutdown sends pipelines and stops the server at once: the commands received are
// executed, and all of their replies arrive.
func TestShutdown(t *testing.T) {
	const commands = 5000
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			st := newFakeStore()
			s, addr, served := serveOn(t, st, Config{}, wrap)
			var wires []*wire
			for i := range 4 {
				w := connect(t, addr)
				w.must(t, "PING") // it is registered
				var sent bytes.Buffer
				for j := range commands {
					sent.WriteString(command("BF.ADD", "k", fmt.Sprint(i, "/", j)))
				}
				w.send(t, sent.String())
				wires = append(wires, w)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			if err := <-served; !errors.Is(err, ErrStopped) {
				t.Errorf("Serve: error %v, want %v", err, ErrStopped)
			}
			for _, w := range wires {
				for i := range commands {
					if reply, err := w.reader.Read(); err != nil || reply.Kind != resp.Integer {
						t.Fatalf("reply %d: %v, error %v", i, reply, err)
					}
				}
				if _, err := w.reader.Read(); err != io.EOF {
					t.Errorf("after the replies: error %v, want EOF", err)
				}
			}
			if n := s.clientCount(); n != 0 {
				t.Errorf("%d clients are left, want 0", n)
			}
		})
	}
}

// TestCommitFails checks that nothing is acknowledged that is not durable.
func TestCommitFails(t *testing.T) {
	for name, wrap := range transports {
		t.Run(name, func(t *testing.T) {
			st := newFakeStore()
			_, addr, served := serveOn(t, st, Config{}, wrap)
			w := connect(t, addr)
			w.expect(t, "BF.ADD k a", ":1\r\n")
			failure := fmt.Errorf("%w: no space left on device", store.ErrStopped)
			st.failure.Store(&failure)
			w.send(t, command("BF.ADD", "k", "b"))
			w.wantEnd(t, "")
			if strings.Contains(w.reader.seen.String(), ":1\r\n:1\r\n") {
				t.Error("an add that was not committed was acknowledged")
			}
			if err := <-served; !errors.Is(err, store.ErrStopped) {
				t.Errorf("Serve: error %v, want %v", err, store.ErrStopped)
			}
		})
	}
}

// TestCommitsOnce checks that a pipeline is committed before it is answered, and
// not once per command.
func TestCommitsOnce(t *testing.T) {
	st := newFakeStore()
	_, addr, _ := serveOn(t, st, Config{}, transports["loops"])
	w := connect(t, addr)
	w.must(t, "BF.ADD k a")
	before := st.commits.Load()
	w.send(t, strings.Repeat(command("BF.ADD", "k", "b"), 100))
	for range 100 {
		w.read(t)
	}
	if n := st.commits.Load() - before; n < 1 || n > 20 {
		t.Errorf("100 commands in one packet: %d commits, want about one", n)
	}
}
