package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/store"
)

// An apiTester sends requests to the API of a server.
type apiTester struct {
	handler http.Handler
	server  *Server
	addr    string // of RESP
}

// newAPI serves a local store over RESP, and returns its API.
func newAPI(t testing.TB, config Config) *apiTester {
	t.Helper()
	local, err := store.OpenLocal(store.LocalConfig{Dir: t.TempDir(), Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	s, err := New(local, config)
	if err != nil {
		t.Fatal(err)
	}
	return &apiTester{s.HTTPHandler(HTTPConfig{}), s, listen(t, s)}
}

// send sends a request, as change modifies it, and returns what was answered.
func (a *apiTester) send(method, path, body string, change func(*http.Request)) (code int, text string, header http.Header) {
	r := httptest.NewRequest(method, "http://127.0.0.1:6381"+apiPrefix+path, strings.NewReader(body))
	if method != "GET" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// want sends a request and checks the code; the answer goes to into, unless nil.
func (a *apiTester) want(t testing.TB, method, path, body string, want int, into any) string {
	t.Helper()
	code, text, header := a.send(method, path, body, nil)
	if code != want {
		t.Fatalf("%s %s %.80s: %d %.300s, want %d", method, path, body, code, text, want)
	}
	if kind := header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: Content-Type %q, want application/json", method, path, kind)
	}
	if code != 200 {
		var e errorJSON
		if json.Unmarshal([]byte(text), &e) != nil || e.Error == "" {
			t.Errorf("%s %s: %q, want a JSON error", method, path, text)
		}
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s %s: %v in %.300s", method, path, err, text)
		}
	}
	return text
}

func asJSON[T any](value T) string {
	data, _ := json.Marshal(value)
	return string(data)
}

// TestAPIKeys adds and looks up keys over both protocols, in filters of every kind, under
// names of any bytes.
func TestAPIKeys(t *testing.T) {
	a := newAPI(t, Config{})
	w := connect(t, a.addr)
	keys := []apiText{apiText("a"), apiText(""), apiText("\xff\x00"), apiText("héllo \"x\" 中"), apiText("a\r\n b")}
	for i, reserve := range []string{
		`{"capacity": 1000, "rate": 0.01}`,
		`{"capacity": 1000, "rate": 0.001, "layout": "paired", "expansion": 2}`,
		`{"capacity": 1000, "rate": 0.001, "layout": "paired", "nonscaling": true, "public": true, "ttl": "1h"}`,
		`{"capacity": 1000, "rate": 0.001, "window": "24h", "keyed": true}`,
		`{"capacity": 1000, "rate": 0.001, "layout": "counting"}`,
	} {
		for j, name := range []string{"plain", "", "..", "a/b?c=d#e%", "\xff\xfe\x00", "中文 name", strings.Repeat("x", 300)} {
			name := fmt.Sprint(name, strings.Repeat("'", i))
			path := "/filters/" + url.PathEscape(name)
			if name == ".." { // as browsers must send it: they resolve two dots
				path = "/filters/" + base64.RawURLEncoding.EncodeToString([]byte(name))
			}
			at := func(more string) string {
				if name == ".." {
					more += "?base64=1"
				}
				return path + more
			}
			a.want(t, "PUT", at(""), reserve, 200, nil)
			a.want(t, "PUT", at(""), reserve, 409, nil)
			var added addedJSON
			a.want(t, "POST", at("/add"), asJSON(keysJSON{keys}), 200, &added)
			if want := []bool{true, true, true, true, true}; !reflect.DeepEqual(added.New, want) {
				t.Fatalf("%q: %v, want %v", name, added.New, want)
			}
			for _, key := range keys { // over RESP they are there
				w.send(t, fmt.Sprintf("*3\r\n$9\r\nBF.EXISTS\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(name), name, len(key), key))
				w.wantReply(t, ":1\r\n")
			}
			more := append([]apiText{apiText("absent")}, keys...)
			var found foundJSON
			a.want(t, "POST", at("/check"), asJSON(keysJSON{more}), 200, &found)
			if want := []bool{false, true, true, true, true, true}; !reflect.DeepEqual(found.Found, want) {
				t.Errorf("%q: %v, want %v", name, found.Found, want)
			}
			for _, key := range more {
				var v verdictJSON
				a.want(t, "POST", at("/test"), asJSON(keyJSON{key}), 200, &v)
				somewhere := false
				for _, layer := range v.Layers {
					somewhere = somewhere || layer.Found
				}
				if there := string(key) != "absent"; v.Found != there || !v.Hidden && (somewhere != there || len(v.Hash) == 0) {
					t.Errorf("%q, key %q: %+v, want %v", name, key, v, there)
				}
			}
			if j == 0 {
				continue // it stays
			}
			a.want(t, "DELETE", at(""), "", 200, nil)
			a.want(t, "DELETE", at(""), "", 404, nil)
			a.want(t, "GET", at(""), "", 404, nil)
		}
	}
}

// wantReply reads and compares a reply.
func (w *wire) wantReply(t testing.TB, want string) {
	t.Helper()
	w.SetDeadline(time.Now().Add(time.Minute))
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		m, err := w.Read(got[n:])
		if n += m; err != nil {
			t.Fatalf("%q and %v, want %q", got[:n], err, want)
		}
	}
	if string(got) != want {
		t.Fatalf("%q, want %q", got, want)
	}
}

// TestAPIDetail compares what is said of a filter with the store and the library.
func TestAPIDetail(t *testing.T) {
	a := newAPI(t, Config{})
	for name, reserve := range map[string]string{
		"chain":  `{"capacity": 100, "rate": 0.01, "expansion": 2}`,
		"fixed":  `{"capacity": 5000, "rate": 0.001, "layout": "paired", "nonscaling": true, "public": true}`,
		"grows":  `{"capacity": 100, "rate": 0.01, "layout": "paired", "expansion": 2}`,
		"window": `{"capacity": 1000, "rate": 0.01, "window": "1h"}`,
	} {
		path := "/filters/" + name
		a.want(t, "PUT", path, reserve, 200, nil)
		a.want(t, "POST", path+"/expire", `{"seconds": 3600}`, 200, nil)
		var keys keysJSON
		for i := range 1000 {
			keys.Keys = append(keys.Keys, fmt.Appendf(nil, "key %d", i))
		}
		a.want(t, "POST", path+"/add", asJSON(keys), 200, nil)
		filter, err := a.server.store.Open([]byte(name))
		if err != nil {
			t.Fatal(err)
		}
		info, report := filter.Info(), filter.Report()
		var d detailJSON
		a.want(t, "GET", path, "", 200, &d)
		for _, tt := range []struct {
			what      string
			got, want any
		}{
			{"name", string(d.Name), name},
			{"kind", d.Kind, info.Kind.String()},
			{"items", d.Items, info.Items},
			{"capacity", d.Capacity, info.Room},
			{"bytes", d.Bytes, info.Bytes},
			{"growth", d.Growth, info.Growth},
			{"layers", d.Layers, len(info.Layers)},
			{"all layers", len(d.AllLayers), len(info.Layers)},
			{"target", d.Target, info.Rate},
			{"rate", *d.Rate, report.Rate},
			{"fill", *d.Fill, report.Fill},
			{"span", d.Span, info.Span.Seconds()},
			{"expires", d.Expires, info.Expires.UnixMilli()},
			{"planned", d.Planned, info.Capacity},
			{"keys", *d.Keys, report.Keys},
			{"keys error", *d.KeysError, report.KeysError},
			{"remaining", d.Remaining, report.Remaining},
			{"overfull", d.Overfull, report.Overfull()},
			{"hash", d.Hash == "public", info.Public},
			{"points of the curve", len(d.Curve), map[bool]int{true: 0, false: curvePoints + 1}[info.Kind == store.Window]},
		} {
			if !reflect.DeepEqual(tt.got, tt.want) {
				t.Errorf("%s: %s is %v, want %v", name, tt.what, tt.got, tt.want)
			}
		}
		for i, layer := range d.AllLayers {
			want := info.Layers[i]
			if layer.Bits != want.Bits || layer.Probes != want.Probes || layer.Items != want.Items || layer.Target != want.Rate ||
				(layer.Starts != 0) != (info.Kind == store.Window) || layer.Expires-layer.Starts != int64(info.Span/time.Millisecond)*5/4 {
				t.Errorf("%s: layer %d: %+v, want %+v", name, i, layer, want)
			}
		}
		checkCurve(t, name, d, report.Plan.RateAt)
		var p populationJSON
		a.want(t, "GET", path+"/population?parts=16&layer=0", "", 200, &p)
		set, read, err := filter.(store.Inspector).Population(0, 16)
		if err != nil || !reflect.DeepEqual(p.Set, set) || !reflect.DeepEqual(p.Read, read) || p.Sampled {
			t.Errorf("%s: population %+v, want %v of %v, %v", name, p, set, read, err)
		}
		a.want(t, "GET", path+"/population?layer=99", "", 404, nil)
		a.want(t, "POST", path+"/expire", `{"seconds": null}`, 200, nil)
		d = detailJSON{}
		if a.want(t, "GET", path, "", 200, &d); d.Expires != 0 {
			t.Errorf("%s: it expires at %d, want never", name, d.Expires)
		}
	}
}

// checkCurve checks that the curve rises, and passes near the target at the capacity;
// for a filter of paired lines that does not grow it is the library's.
func checkCurve(t *testing.T, name string, d detailJSON, rateAt func(uint64) float64) {
	t.Helper()
	for i, point := range d.Curve {
		if i > 0 && (point.Rate < d.Curve[i-1].Rate || point.Items <= d.Curve[i-1].Items) {
			t.Errorf("%s: %v after %v", name, point, d.Curve[i-1])
		}
		if want := rateAt(point.Items); name == "fixed" && point.Rate != want {
			t.Errorf("%s: the rate at %d is %v, want %v", name, point.Items, point.Rate, want)
		}
		if i == curvePoints/2 && !(point.Rate > d.Target/4 && point.Rate <= d.Target*1.05) {
			t.Errorf("%s: the rate at the capacity is %v, want about %v", name, point.Rate, d.Target)
		}
	}
}

// TestAPIList lists thousands of names page by page.
func TestAPIList(t *testing.T) {
	a := newAPI(t, Config{})
	const n = 3000
	for i := range n {
		if _, err := a.server.store.Create(t.Context(), fmt.Sprintf("filter:%d", i), store.Spec{Kind: store.RedisBloom, Capacity: 100, Rate: 0.01, Public: true}); err != nil {
			t.Fatal(err)
		}
	}
	connect(t, a.addr).expect(t, "SET value x", "+OK\r\n")
	for _, tt := range []struct {
		query string
		want  int
	}{{"count=1000", n}, {"count=7", n}, {"count=1000&match=filter:1*", 1111}, {"match=nothing", 0}, {"count=500&rates=1", n}} {
		seen, rates, pages := map[string]bool{}, 0, 0
		for cursor := "0"; pages == 0 || cursor != "0"; pages++ {
			var page filterListJSON
			a.want(t, "GET", "/filters?cursor="+cursor+"&"+tt.query, "", 200, &page)
			for _, row := range page.Filters {
				if seen[string(row.Name)] = true; row.Rate != nil {
					rates++
				}
				if row.Capacity != 100 || row.Kind != "redisbloom" || row.Target != 0.01 {
					t.Fatalf("%+v, want 100 items at 0.01", row)
				}
			}
			if cursor = page.Next; page.Names != n+1 {
				t.Errorf("%d names, want %d", page.Names, n+1)
			}
		}
		if len(seen) != tt.want || strings.Contains(tt.query, "rates") && rates < pages {
			t.Errorf("%s: %d filters, %d with rates in %d pages, want %d", tt.query, len(seen), rates, pages, tt.want)
		}
	}
	for _, query := range []string{"cursor=x", "count=0", "count=1001", "count=x", "cursor=0&cursor=0", "page=2", "%zz"} {
		a.want(t, "GET", "/filters?"+query, "", 400, nil)
	}
}

// TestAPIChanges renames, swaps, folds, merges, saves and closes.
func TestAPIChanges(t *testing.T) {
	a := newAPI(t, Config{Version: "v1.2.3", Durability: "everysec"})
	w := connect(t, a.addr)
	paired := `{"capacity": 3000000, "rate": 0.01, "layout": "paired", "nonscaling": true}`
	for _, name := range []string{"one", "two", "three"} {
		a.want(t, "PUT", "/filters/"+name, paired, 200, nil)
		a.want(t, "POST", "/filters/"+name+"/add", `{"keys": ["`+name+`"]}`, 200, nil)
	}
	w.expect(t, "SET value x", "+OK\r\n")
	a.want(t, "POST", "/filters/one/rename", `{"to": "two"}`, 409, nil)
	a.want(t, "POST", "/filters/none/rename", `{"to": "two"}`, 404, nil)
	a.want(t, "POST", "/filters/one/rename", `{}`, 400, nil)
	a.want(t, "POST", "/filters/one/rename", `{"to": {"base64": "/wA="}}`, 200, nil)
	w.send(t, "*3\r\n$9\r\nBF.EXISTS\r\n$2\r\n\xff\x00\r\n$3\r\none\r\n")
	w.wantReply(t, ":1\r\n")
	a.want(t, "POST", "/filters/%FF%00/rename", `{"to": "three", "replace": true}`, 200, nil)
	w.expect(t, "BF.MEXISTS three one three", "*2\r\n:1\r\n:0\r\n")
	a.want(t, "POST", "/filters/two/swap", `{"with": "three"}`, 200, nil)
	w.expect(t, "BF.MEXISTS two one two", "*2\r\n:1\r\n:0\r\n")
	a.want(t, "POST", "/filters/two/swap", `{"with": "none"}`, 404, nil)
	a.want(t, "POST", "/filters/two/merge", `{"from": ["three"]}`, 200, nil)
	w.expect(t, "BF.MEXISTS two one two", "*2\r\n:1\r\n:1\r\n")
	before := len(a.want(t, "GET", "/filters/two", "", 200, nil))
	var d, folded detailJSON
	a.want(t, "GET", "/filters/two", "", 200, &d)
	a.want(t, "POST", "/filters/two/fold", `{"by": 2}`, 200, nil)
	if a.want(t, "GET", "/filters/two", "", 200, &folded); folded.AllLayers[0].Bits*2 != d.AllLayers[0].Bits || before == 0 {
		t.Errorf("folded by 2 it has %d bits of %d", folded.AllLayers[0].Bits, d.AllLayers[0].Bits)
	}
	a.want(t, "POST", "/filters/two/fold", `{"by": 0}`, 400, nil)
	a.want(t, "POST", "/filters/two/fold", `{"by": 7}`, 400, nil)

	for _, path := range []string{"/add", "/rename", "/expire", "/test"} {
		body := map[string]string{"/add": `{"keys": ["x"]}`, "/rename": `{"to": "x"}`, "/expire": `{"seconds": 1}`, "/test": `{"key": "x"}`}[path]
		a.want(t, "POST", "/filters/value"+path, body, 409, nil)
	}
	a.want(t, "GET", "/filters/value", "", 409, nil)
	a.want(t, "DELETE", "/filters/value", "", 409, nil)
	w.expect(t, "GET value", "$1\r\nx\r\n")
	w.expect(t, "DEL value", ":1\r\n")

	a.want(t, "POST", "/snapshot", "", 200, nil)
	waitFor(t, func() bool {
		var s serverJSON
		a.want(t, "GET", "/server", "", 200, &s)
		return s.Snapshot.At > 0 && !s.Snapshot.InProgress
	})
	var s serverJSON
	a.want(t, "GET", "/server", "", 200, &s)
	if s.Version != "v1.2.3" || s.Durability != "everysec" || s.Access != "full" || s.Password || s.Remote || s.MemoryLimit != 64<<20 ||
		s.Snapshot.Bytes == 0 || s.Totals.Names != 2 || s.Totals.Clients != 1 || s.Totals.KeysNew != 3 || s.Totals.KeysFound < 5 {
		t.Errorf("the server says %+v", s)
	}

	w.expect(t, "CLIENT SETNAME crawler", "+OK\r\n")
	var list clientListJSON
	a.want(t, "GET", "/clients", "", 200, &list)
	if len(list.Clients) != 1 || list.Connected != 1 || list.Clients[0].Name != "crawler" || list.Clients[0].Command != "client|setname" {
		t.Fatalf("clients %+v, want one, crawler", list)
	}
	a.want(t, "GET", fmt.Sprintf("/clients?after=%d", list.Clients[0].ID), "", 200, &list)
	if len(list.Clients) != 0 {
		t.Errorf("%d clients after the last", len(list.Clients))
	}
	a.want(t, "DELETE", "/clients/999", "", 404, nil)
	a.want(t, "DELETE", "/clients/x", "", 400, nil)
	id := a.server.firstClient()
	a.want(t, "DELETE", fmt.Sprintf("/clients/%d", id), "", 200, nil)
	w.wantEnd(t, "")
}

func (s *Server) firstClient() (id int64) {
	s.eachClient(func(c *Client) { id = c.id })
	return id
}

// TestAPICounting describes a filter from which keys were removed.
func TestAPICounting(t *testing.T) {
	a := newAPI(t, Config{})
	a.want(t, "PUT", "/filters/c", `{"capacity": 1000, "rate": 0.001, "layout": "counting", "nonscaling": true}`, 200, nil)
	a.want(t, "POST", "/filters/c/add", `{"keys": ["a", "b", "b"]}`, 200, nil)
	w := connect(t, a.addr)
	w.expect(t, "BF.MDEL c b none", "*2\r\n:1\r\n:0\r\n")
	var d detailJSON
	a.want(t, "GET", "/filters/c", "", 200, &d)
	if d.Kind != "counting" || d.Items != 2 || d.Removed != 1 || d.Refused != 1 || d.Stuck != 0 || d.Hash != "keyed" || len(d.AllLayers) != 1 || len(d.Curve) != 0 {
		t.Errorf("detail %s, want a keyed counting filter of 2 items and one layer, without a curve", asJSON(d))
	}
	if d.Rate == nil || d.Fill == nil || *d.Fill <= 0 || d.Keys == nil || *d.Keys < 1.5 || *d.Keys > 2.5 {
		t.Errorf("detail %s, want its rate, its fill, and about 2 keys", asJSON(d))
	}
	var verdict verdictJSON
	a.want(t, "POST", "/filters/c/test", `{"key": "b"}`, 200, &verdict)
	if !verdict.Found || !verdict.Hidden {
		t.Errorf("verdict %+v, want found, and hidden", verdict)
	}
	a.want(t, "GET", "/filters/c/population", "", 501, nil)
	a.want(t, "POST", "/filters/c/fold", `{"by": 2}`, 501, nil)
}

// TestAPICuckoo does with a cuckoo filter what the console does with any filter.
func TestAPICuckoo(t *testing.T) {
	a := newAPI(t, Config{})
	w := connect(t, a.addr)
	w.expect(t, "CF.RESERVE c 1000", "+OK\r\n")
	w.expect(t, "CF.ADD c old", ":1\r\n")
	w.expect(t, "CF.DEL c none", ":0\r\n")
	var added addedJSON
	a.want(t, "POST", "/filters/c/add", `{"keys": ["old", "new"]}`, 200, &added)
	if want := []bool{false, true}; !reflect.DeepEqual(added.New, want) {
		t.Errorf("added: %v, want %v", added.New, want)
	}
	var found foundJSON
	a.want(t, "POST", "/filters/c/check", `{"keys": ["old", "new", "none"]}`, 200, &found)
	if want := []bool{true, true, false}; !reflect.DeepEqual(found.Found, want) {
		t.Errorf("found: %v, want %v", found.Found, want)
	}
	var verdict verdictJSON
	a.want(t, "POST", "/filters/c/test", `{"key": "old"}`, 200, &verdict)
	if !verdict.Found || !verdict.Hidden {
		t.Errorf("verdict %+v, want found, and hidden", verdict)
	}
	var list filterListJSON
	a.want(t, "GET", "/filters?rates=1", "", 200, &list)
	if len(list.Filters) != 1 || list.Filters[0].Kind != "cuckoo" || list.Filters[0].Items != 2 || list.Filters[0].Rate == nil || *list.Filters[0].Rate <= 0 {
		t.Errorf("list %s, want a cuckoo filter of 2 items, with a rate", asJSON(list))
	}
	var d detailJSON
	a.want(t, "GET", "/filters/c", "", 200, &d)
	if d.Kind != "cuckoo" || d.Refused != 1 || d.Hash != "public" || len(d.AllLayers) != 1 || len(d.Curve) != 0 {
		t.Errorf("detail %s, want a public cuckoo filter of one layer, without a curve, and one removal refused", asJSON(d))
	}
	a.want(t, "GET", "/filters/c/population", "", 501, nil)
	a.want(t, "POST", "/filters/c/fold", `{"by": 2}`, 501, nil)
	w.expect(t, "CF.RESERVE full 4 EXPANSION 0", "+OK\r\n")
	var e errorJSON
	a.want(t, "POST", "/filters/full/add", asJSON(keysJSON{[]apiText{apiText("a"), apiText("b"), apiText("c"), apiText("d"), apiText("e"), apiText("f"), apiText("g"), apiText("h")}}), 409, &e)
	if len(e.New) == 0 || !strings.Contains(e.Error, "full") {
		t.Errorf("adding to a full filter: %+v, want the answers to those that were added", e)
	}
}
