package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// httpOf serves HTTP until the test ends, and returns the address.
func (s *Server) httpOf(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTPOn(l, HTTPConfig{}) }()
	t.Cleanup(func() {
		if err := s.Shutdown(t.Context()); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestAPIEvents watches filters while a client uses them.
func TestAPIEvents(t *testing.T) {
	a := newAPI(t, Config{})
	addr := a.server.httpOf(t)
	w := connect(t, a.addr)
	w.expect(t, "BF.RESERVE one 0.01 1000 LAYOUT COUNTING PUBLIC", "+OK\r\n")
	w.expect(t, "BF.RESERVE other 0.01 1000", "+OK\r\n")
	events, conn, code := openStream(t, addr, "?filter=one&filter=none&filter=one")
	if code != 200 {
		t.Fatalf("%d, want a stream", code)
	}
	first := nextEvent(t, events)
	for len(first.Filters) == 0 { // it may come before the look
		first = nextEvent(t, events)
	}
	if len(first.Filters) != 1 || string(first.Filters[0].Name) != "one" || first.Filters[0].Rate == nil || !first.Filters[0].Counted ||
		first.Totals.Names != 2 || len(first.Gone) != 1 || string(first.Gone[0]) != "none" {
		t.Errorf("the first event is %+v", first)
	}
	w.expect(t, "BF.MADD one a b c a", "*4\r\n:1\r\n:1\r\n:1\r\n:0\r\n")
	w.expect(t, "BF.MDEL one a z", "*2\r\n:1\r\n:0\r\n")
	w.expect(t, "BF.ADD other x", ":1\r\n")
	w.expect(t, "BF.MEXISTS one a x y", "*3\r\n:1\r\n:0\r\n:0\r\n")
	for end := time.Now().Add(10 * time.Second); ; {
		e := nextEvent(t, events)
		if len(e.Filters) > 0 {
			row := e.Filters[0]
			if len(e.Filters) != 1 || string(row.Name) != "one" {
				t.Fatalf("%+v: want only the filter that is shown", e.Filters)
			}
			if row.Items == 3 && row.KeysNew == 3 && row.KeysSeen == 1 && row.KeysFound == 1 && row.KeysAbsent == 2 && row.KeysRemoved == 1 && row.KeysRefused == 1 && *row.Fill > 0 &&
				e.Totals.KeysNew == 4 && e.Totals.KeysRemoved == 1 && e.Totals.KeysRefused == 1 && e.Totals.Commands >= 5 {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the last event is %+v", e)
		}
	}
	if e := nextEvent(t, events); len(e.Filters) != 0 {
		t.Errorf("%+v: nothing has changed", e.Filters)
	}
	w.expect(t, "DEL one", ":1\r\n")
	for len(nextEvent(t, events).Gone) == 0 {
	}
	conn.Close()
	waitFor(t, func() bool { return a.server.watched.Load() == nil }) // nothing is counted any more
	events, _, _ = openStream(t, addr, "?filter=other")
	for e := nextEvent(t, events); len(e.Filters) == 0 || e.Filters[0].KeysNew != 0; e = nextEvent(t, events) {
	}
	query := ""
	for i := range httpShown + 1 {
		query += fmt.Sprintf("&filter=f%d", i)
	}
	if _, _, code := openStream(t, addr, "?"+query[1:]); code != 413 {
		t.Errorf("%d filters shown: %d, want 413", httpShown+1, code)
	}
}

// TestAPIEventTime: a stream outlives the times for requests and answers.
func TestAPIEventTime(t *testing.T) {
	t.Parallel()
	a := newAPI(t, Config{})
	events, _, _ := openStream(t, a.server.httpOf(t), "")
	for start := time.Now(); time.Since(start) < requestTime+2*time.Second; {
		nextEvent(t, events)
	}
}

// TestAPIEventsEnd: streams end when the server stops.
func TestAPIEventsEnd(t *testing.T) {
	a := newAPI(t, Config{})
	events, _, _ := openStream(t, a.server.httpOf(t), "")
	nextEvent(t, events)
	start := time.Now()
	if err := a.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, events); err != nil || time.Since(start) > requestTime {
		t.Errorf("%v after %v, want the stream's end", err, time.Since(start))
	}
}

// TestAPIManyStreams opens a thousand idle streams: some are served, the others refused,
// and health checks, metrics and requests are answered.
func TestAPIManyStreams(t *testing.T) {
	a := newAPI(t, Config{})
	addr := a.server.httpOf(t)
	var mu sync.Mutex
	codes := map[int]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 125 {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					continue
				}
				t.Cleanup(func() { conn.Close() })
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				fmt.Fprintf(conn, "GET %s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", apiPrefix)
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				code := 0 // closed in favour of a new one
				if err == nil {
					code = answer.StatusCode
				}
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if codes[200] != httpStreams || codes[200]+codes[429]+codes[0] != 1000 || codes[429] < 500 {
		t.Errorf("answers %v, want 200 for %d and 429 for most others", codes, httpStreams)
	}
	t.Logf("1,000 streams: %d served, %d refused, %d closed", codes[200], codes[429], codes[0])
	slowest := time.Duration(0)
	for range 20 {
		for _, path := range []string{"/healthz", "/metrics", apiPrefix + "/server"} {
			start := time.Now()
			if code := getCode(t, "http://"+addr+path); code != 200 {
				t.Errorf("%s while there are streams: %d", path, code)
			}
			slowest = max(slowest, time.Since(start))
		}
	}
	if slowest > 2*time.Second {
		t.Errorf("a request took %v", slowest)
	}
	if n := a.server.metrics.refused[limitHTTPStreams].Load(); n != int64(codes[429]) {
		t.Errorf("%d refused in the metrics, want %d", n, codes[429])
	}
}

// remoteStore is a store whose calls would wait for a network; it counts them.
type remoteStore struct{ *fakeStore }

func (remoteStore) Remote() {}

// TestAPIRemote: of filters on other machines a list has the names, and asks for nothing
// else.
func TestAPIRemote(t *testing.T) {
	st := newFakeStore()
	s := newQuiet(t, remoteStore{st}, Config{})
	a := &apiTester{handler: s.HTTPHandler(HTTPConfig{}), server: s}
	for i := range 500 {
		if _, err := st.Create(t.Context(), fmt.Sprint("f", i), store.Spec{Kind: store.RedisBloom, Capacity: 100, Rate: 0.01}); err != nil {
			t.Fatal(err)
		}
	}
	var page filterListJSON
	a.want(t, "GET", "/filters?count=1000", "", 200, &page)
	if len(page.Filters) == 0 || !page.Filters[0].Partial || page.Names != 500 {
		t.Errorf("%d filters of %d names, partial %v", len(page.Filters), page.Names, page.Filters[0].Partial)
	}
	if text := a.want(t, "GET", "/filters/f1/population", "", 501, nil); !strings.Contains(text, "other machines") {
		t.Error(text)
	}
	var v verdictJSON
	a.want(t, "POST", "/filters/f1/test", `{"key": "x"}`, 200, &v)
	if !v.Hidden || v.Found {
		t.Errorf("%+v, want nothing but the verdict", v)
	}
	var info serverJSON
	if a.want(t, "GET", "/server", "", 200, &info); !info.Remote {
		t.Error("the server does not say that the filters are elsewhere")
	}
	var d detailJSON
	a.want(t, "GET", "/filters/f1", "", 200, &d)
}

// pausingStore waits in Open, once it is told to.
type pausingStore struct {
	*fakeStore
	entered, let chan struct{}
}

func (s pausingStore) Open(name []byte) (store.Filter, error) {
	s.entered <- struct{}{}
	<-s.let
	return s.fakeStore.Open(name)
}

// TestAPIEventsInLook: a stream that asks while the filters are being looked at gets
// their rows afterwards. (Once it was told that it had seen them.)
func TestAPIEventsInLook(t *testing.T) {
	st := pausingStore{newFakeStore(), make(chan struct{}, 100), make(chan struct{})}
	if _, err := st.Create(t.Context(), "one", store.Spec{Kind: store.RedisBloom, Capacity: 100, Rate: 0.01}); err != nil {
		t.Fatal(err)
	}
	p, names := &newQuiet(t, st, Config{}).pulse, []string{"one"}
	if !p.join(names, httpStreams) {
		t.Fatal("the pulse takes no stream")
	}
	defer p.leave(names)
	<-st.entered
	_, seen, _ := p.next(names, 0)
	close(st.let)
	var e struct{ Filters []filterJSON }
	waitFor(t, func() bool {
		text, number, _ := p.next(names, seen)
		seen = number
		return text != nil && json.Unmarshal(text, &e) == nil && len(e.Filters) == 1
	})
	if string(e.Filters[0].Name) != "one" {
		t.Errorf("%+v, want the filter", e.Filters)
	}
}
