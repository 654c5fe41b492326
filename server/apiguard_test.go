package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bloomery/bloom/store"
)

// anyPath returns a route's path with a filter and a client filled in.
func (row *route) anyPath() string {
	return strings.NewReplacer("{name}", "f", "{id}", "1").Replace(row.path)
}

// TestAPIAccess sends a request to every route with no password, wrong ones, the read
// password and the full one.
func TestAPIAccess(t *testing.T) {
	a := newAPI(t, Config{Password: "all", ReadOnlyPassword: "look"})
	for i := range apiRoutes {
		row := &apiRoutes[i]
		for _, tt := range []struct {
			password string
			want     int // 0: anything else
		}{{"", 401}, {"wrong", 401}, {"lookall", 401}, {"look", map[bool]int{true: 0, false: 403}[row.needs == accessRead]}, {"all", 0}} {
			if row.stream != nil && tt.want == 0 {
				continue // TestAPIEvents
			}
			code, text, header := a.send(row.method, row.anyPath(), "", func(r *http.Request) {
				if tt.password != "" {
					r.SetBasicAuth("any", tt.password)
				}
			})
			if tt.want != 0 && code != tt.want || tt.want == 0 && (code == 401 || code == 403) {
				t.Errorf("%s %s with %q: %d %s, want %d", row.method, row.path, tt.password, code, text, tt.want)
			}
			if asked := header.Get("WWW-Authenticate") != ""; asked != (code == 401) {
				t.Errorf("%s %s: %d, and WWW-Authenticate %v", row.method, row.path, code, asked)
			}
		}
	}
	if n := a.server.wrong.count.Load(); n != int64(2*len(apiRoutes)) {
		t.Errorf("%d wrong passwords counted, want %d", n, 2*len(apiRoutes))
	}
	// A script shows its own dialogue.
	code, _, header := a.send("GET", "/server", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Dest", "empty") })
	if code != 401 || header.Get("WWW-Authenticate") != "" {
		t.Errorf("to a script: %d, WWW-Authenticate %q, want 401 and none", code, header.Get("WWW-Authenticate"))
	}
	// An empty read-only password grants nothing.
	a = newAPI(t, Config{Password: "all"})
	if code, text, _ := a.send("GET", "/server", "", func(r *http.Request) { r.SetBasicAuth("readonly", "") }); code != 401 {
		t.Errorf("with an empty password: %d %s, want 401", code, text)
	}
}

// TestAPIReadPassword: it reads, changes nothing, and sees no secret.
func TestAPIReadPassword(t *testing.T) {
	a := newAPI(t, Config{Password: "all", ReadOnlyPassword: "look"})
	as := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("", password) }
	}
	for _, name := range []string{"public", "keyed"} {
		body := `{"capacity": 100, "rate": 0.01, "layout": "paired", "` + name + `": true}`
		if code, text, _ := a.send("PUT", "/filters/"+name, body, as("all")); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
		for _, password := range []string{"all", "look"} {
			code, text, _ := a.send("POST", "/filters/"+name+"/test", `{"key": "x"}`, as(password))
			var v verdictJSON
			if json.Unmarshal([]byte(text), &v); code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			if hidden := name == "keyed" && password == "look"; v.Hidden != hidden || (len(v.Hash) == 0) != hidden || (len(v.Layers) == 0) != hidden {
				t.Errorf("a %s filter, to %q: %s", name, password, text)
			}
		}
	}
	if code, text, _ := a.send("POST", "/filters/public/add", `{"keys": ["x"]}`, as("look")); code != 403 {
		t.Errorf("an add with the read password: %d %s, want 403", code, text)
	}
	if code, text, _ := a.send("POST", "/filters/public/check", `{"keys": ["x"]}`, as("look")); code != 200 || text != "{\"found\":[false]}\n" {
		t.Errorf("a check with the read password: %d %s", code, text)
	}
	var s serverJSON
	_, text, _ := a.send("GET", "/server", "", as("look"))
	if json.Unmarshal([]byte(text), &s); s.Access != "read" || !s.Password {
		t.Errorf("to the read password: %s", text)
	}
}

// TestAPIForeign has pages of other sites, and other hosts, send every change.
func TestAPIForeign(t *testing.T) {
	a := newAPI(t, Config{})
	for i := range apiRoutes {
		row := &apiRoutes[i]
		for _, tt := range []struct {
			what   string
			change func(*http.Request)
			want   int
			reads  bool // also a GET is refused
		}{
			{"another host", func(r *http.Request) { r.Host = "evil.example" }, 403, true},
			{"a page of another site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, true},
			{"a page of a sibling", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403, false},
			{"another origin", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403, false},
			{"another port", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403, false},
			{"no origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, false},
			{"a form", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415, false},
			{"plain text", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, false},
			{"no type", func(r *http.Request) { r.Header.Del("Content-Type") }, 415, false},
		} {
			if row.method == "GET" && !tt.reads {
				continue
			}
			if code, text, _ := a.send(row.method, row.anyPath(), "", tt.change); code != tt.want {
				t.Errorf("%s %s by %s: %d %s, want %d", row.method, row.path, tt.what, code, text, tt.want)
			}
		}
	}
	own := func(r *http.Request) {
		r.Header.Set("Origin", "http://127.0.0.1:6381")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	if code, text, _ := a.send("POST", "/filters/f/add", `{"keys": ["x"]}`, own); code != 200 {
		t.Errorf("by our own page: %d %s, want 200", code, text)
	}
}

// TestAPIRefuses sends what is wrong, and counts what limits refuse.
func TestAPIRefuses(t *testing.T) {
	a := newAPI(t, Config{Limits: Limits{KeyBytes: 100, ItemBytes: 1000}})
	a.want(t, "PUT", "/filters/full", `{"capacity": 2, "rate": 0.01, "nonscaling": true}`, 200, nil)
	many := `{"keys": ["a"` + strings.Repeat(`,"a"`, httpKeys) + `]}`
	for _, tt := range []struct {
		method, path, body string
		want               int
		says               string
	}{
		{"GET", "/nothing", "", 404, "nothing at this path"},
		{"GET", "/filters/f/nothing", "", 404, "nothing at this path"},
		{"GET", "", "", 404, "nothing at this path"},
		{"POST", "/filters", "{}", 405, "takes GET, not POST"},
		{"HEAD", "/filters", "", 405, ""},
		{"PATCH", "/filters/f", "{}", 405, "takes GET, PUT, DELETE"},
		{"GET", "/filters/absent", "", 404, "no filter with this name"},
		{"GET", "/filters/x?base64=1", "", 400, "not base64"},
		{"GET", "/filters/full?x=1", "", 400, `no parameter \"x\"`},
		{"GET", "/filters/full/population?parts=0", "", 400, "parts is a number from 1"},
		{"GET", "/filters/full/population?parts=5000", "", 400, "parts is a number"},
		{"GET", "/filters/full/population?layer=-1", "", 400, "layer is a number"},
		{"GET", "/filters/" + strings.Repeat("x", 101), "", 413, "limit key-bytes: 100"},
		{"GET", "/filters?match=" + strings.Repeat("x", 101), "", 413, "limit key-bytes: 100"},
		{"PUT", "/filters/" + strings.Repeat("x", 101), `{"capacity": 1, "rate": 0.01}`, 413, "limit key-bytes: 100"},
		{"PUT", "/filters/f", `{"capacity": 0, "rate": 0.01}`, 400, "capacity"},
		{"PUT", "/filters/f", `{"capacity": 1, "rate": 2}`, 400, "error rate"},
		{"PUT", "/filters/f", `{"capacity": 1, "rate": 1e-3, "layout": "x"}`, 400, "unknown layout"},
		{"PUT", "/filters/f", `{"capacity": 1, "rate": 1e-3, "window": "soon"}`, 400, "bad window"},
		{"PUT", "/filters/f", `{"capacity": 1, "rate": 1e-3, "expansion": 40000}`, 400, "expansion"},
		{"PUT", "/filters/f", `{"capacity": -1, "rate": 1e-3}`, 400, "bad JSON"},
		{"PUT", "/filters/f", `{"capacity": 1000000000, "rate": 1e-9}`, 507, "memory"},
		{"PUT", "/filters/f", `{"capazity": 1}`, 400, `unknown field \"capazity\"`},
		{"POST", "/filters/f/add", ``, 400, "bad JSON"},
		{"POST", "/filters/f/add", `{"keys": []}`, 400, "at least one key"},
		{"POST", "/filters/f/add", `{"keys": [null]}`, 400, "want a string"},
		{"POST", "/filters/f/add", `{"keys": [1]}`, 400, "want a string"},
		{"POST", "/filters/f/add", `{"keys": [{"base64": "*"}]}`, 400, "not base64"},
		{"POST", "/filters/f/add", `{"keys": [{}]}`, 400, "want a string"},
		{"POST", "/filters/f/add", `{"keys": ["\ud800"]}`, 400, "surrogate"},
		{"POST", "/filters/f/add", "{\"keys\": [\"\xff\"]}", 400, "not UTF-8"},
		{"POST", "/filters/f/add", `{"keys": ["x"]} {}`, 400, "something follows"},
		{"POST", "/filters/f/add", many, 413, "limit http-keys: 10000"},
		{"POST", "/filters/f/add", `{"keys": ["` + strings.Repeat("x", 1001) + `"]}`, 413, "limit item-bytes: 1000"},
		{"POST", "/filters/f/add", strings.Repeat(" ", httpBodyBytes+1), 413, "limit http-body-bytes: 1048576"},
		{"POST", "/filters/full/add", `{"keys": ["a", "b", "c", "d"]}`, 409, `"new":[true,true]`},
		{"POST", "/filters/f/test", `{}`, 400, "send a key"},
		{"POST", "/filters/f/swap", `{}`, 400, "send the other name"},
		{"POST", "/filters/f/merge", `{}`, 400, "send names"},
		{"POST", "/filters/f/merge", `{"from": ["absent"]}`, 404, "not found"},
		{"POST", "/filters/full/expire", `{"seconds": -1}`, 400, "above 0"},
		{"POST", "/filters/absent/expire", `{"seconds": 1}`, 404, ""},
		{"POST", "/snapshot", `{"now": true}`, 400, "takes no body"},
	} {
		code, text, _ := a.send(tt.method, tt.path, tt.body, nil)
		if code != tt.want || !strings.Contains(text, tt.says) {
			t.Errorf("%s %.60s %.60s: %d %.200s, want %d and %q", tt.method, tt.path, tt.body, code, text, tt.want, tt.says)
		}
	}
	for l, want := range map[limit]int64{limitHTTPBody: 1, limitHTTPKeys: 1, limitKey: 3, limitItem: 1, limitMemory: 1} {
		if got := a.server.metrics.refused[l].Load(); got != want {
			t.Errorf("%d refused by %s, want %d", got, limitNames[l], want)
		}
	}
}

// TestAPIStopped: a store that cannot commit acknowledges nothing.
func TestAPIStopped(t *testing.T) {
	st := newFakeStore()
	s := newQuiet(t, st, Config{})
	a := &apiTester{handler: s.HTTPHandler(HTTPConfig{}), server: s}
	broken := fmt.Errorf("%w: no space left on device", store.ErrStopped)
	st.failure.Store(&broken)
	if text := a.want(t, "POST", "/filters/f/add", `{"keys": ["x"]}`, 503, nil); !strings.Contains(text, "no space left") {
		t.Errorf("%s, want the reason", text)
	}
	a.want(t, "POST", "/filters/f/add", `{"keys": ["x"]}`, 503, nil) // it is stopping
}

// TestAPIBusy: beyond the limit, requests are refused, and others are answered.
func TestAPIBusy(t *testing.T) {
	st := newFakeStore()
	s := newQuiet(t, st, Config{})
	a := &apiTester{handler: s.HTTPHandler(HTTPConfig{}), server: s}
	for _, name := range []string{"f", "g"} {
		a.want(t, "PUT", "/filters/"+name, `{"capacity": 10000000, "rate": 0.01}`, 200, nil)
	}
	_, letGo := st.holdLong(t)
	done := make(chan int)
	for range httpRequests {
		go func() {
			code := 429
			for code == 429 { // refusesNow may have been a moment earlier
				code, _, _ = a.send("POST", "/filters/f/merge", `{"from": ["g"]}`, nil)
			}
			done <- code
		}()
	}
	waitFor(t, a.refusesNow)
	if code, _ := get(a.handler, "/healthz", nil); code != 200 {
		t.Errorf("/healthz of a busy server: %d", code)
	}
	letGo()
	for range httpRequests {
		<-done
	}
	a.want(t, "GET", "/server", "", 200, nil)
}

func (a *apiTester) refusesNow() bool {
	code, _, header := a.send("GET", "/server", "", nil)
	return code == 429 && header.Get("Retry-After") != ""
}

// openStream opens an event stream over TCP, as name:value lines follow.
func openStream(t testing.TB, addr, path string) (*bufio.Reader, net.Conn, int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "GET %s/events%s HTTP/1.1\r\nHost: localhost\r\n\r\n", apiPrefix, path)
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, conn, 0
	}
	return bufio.NewReader(answer.Body), conn, answer.StatusCode
}

// nextEvent reads the next event.
func nextEvent(t testing.TB, r *bufio.Reader) (e struct {
	Totals  totalsJSON
	Filters []filterJSON
	Gone    []apiText
}) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
}

// FuzzAPI sends any request; the answer is JSON, and the server survives.
func FuzzAPI(f *testing.F) {
	for i := range apiRoutes {
		row := &apiRoutes[i]
		if row.stream == nil {
			f.Add(row.method, row.anyPath(), `{"keys": ["x", {"base64": "/w=="}], "key": "\ud83d\ude00", "capacity": 10, "rate": 0.1}`)
			f.Add(row.method, row.anyPath(), asJSON(reflect.New(reflect.TypeOf(row.result)).Interface()))
		}
	}
	f.Add("GET", "/filters?cursor=-1&count=10&match=[a-", "")
	f.Add("GET", "/filters/%2e%2e/population?parts=4096&layer=1", "")
	f.Add("POST", "/filters/f/add", `{"keys": ["\u00", "\ud800\ud800"]}`)
	a := newAPI(f, Config{Limits: Limits{KeyBytes: 100}})
	a.want(f, "PUT", "/filters/f", `{"capacity": 100, "rate": 0.01}`, 200, nil)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequest(method, "http://localhost"+apiPrefix+path, strings.NewReader(body))
		if err != nil || strings.Contains(path, "events") || !utf8.ValidString(method) {
			return
		}
		r.RequestURI, r.RemoteAddr = "", "127.0.0.1:1"
		r.Header.Set("Content-Type", "application/json")
		code, text := answerTo(a.handler, r)
		if !json.Valid([]byte(text)) && strings.HasPrefix(r.URL.Path, "/api/") || code == 500 || code == 0 {
			t.Errorf("%s %q %q: %d %q", method, path, body, code, text)
		}
	})
}

func answerTo(h http.Handler, r *http.Request) (code int, text string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}
