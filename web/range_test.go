package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/webtest"
)

// A host serves a directory and counts what it is asked for and what it sends.
type host struct {
	*httptest.Server
	dir      string
	mu       sync.Mutex
	requests int
	sent     int
	widest   int // bytes of one answer but the first
	how      func(w http.ResponseWriter, r *http.Request, files http.Handler)
}

func newHost(t *testing.T, dir string) *host {
	h := &host{dir: dir}
	files := http.FileServer(http.Dir(dir))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &countingWriter{ResponseWriter: w}
		if h.how != nil {
			h.how(counted, r, files)
		} else {
			files.ServeHTTP(counted, r)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.requests++; h.requests > 1 {
			h.widest = max(h.widest, counted.sent)
		}
		h.sent += counted.sent
	}))
	t.Cleanup(h.Close)
	return h
}

// settle waits for what is under way: afterwards the counts are complete.
func (h *host) settle() { h.Close() }

type countingWriter struct {
	http.ResponseWriter
	sent int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.sent += n
	return n, err
}

// asked is what ranges.mjs does, one after the other, and what it says about it.
type asked struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
	Now    int64  `json:"now"`
	Keys   string `json:"keys"`
	Local  string `json:"local"` // the same file, to compare the answers with

	Opened    string // "" or the error: its name, code and message
	Requests  int    // as the reader counts them
	BytesRead int
	Wrong     int // answers that are not those of the local file
	Lookups   []string
	Many      string
}

func ranges(t *testing.T, script string, all ...asked) (done []asked) {
	t.Helper()
	if err := json.Unmarshal([]byte(node(t, script, inJSON(t, all))), &done); err != nil {
		t.Fatal(err)
	}
	return done
}

// TestRange: for each kind the answers by ranges are those of the whole file, and it
// takes the requests and bytes that README.md says.
func TestRange(t *testing.T) {
	t.Parallel()
	cases := webtest.Golden(t, root)
	cases = append(cases, larger(t)...)
	keys := webtest.Keys(28)
	packed := written(t, "keys", webtest.Pack(keys))
	var hosts []*host
	var all []asked
	for _, c := range cases {
		h := newHost(t, filepath.Dir(c.Path))
		hosts = append(hosts, h)
		all = append(all, asked{
			URL: h.URL + "/" + url.PathEscape(filepath.Base(c.Path)), Secret: fmt.Sprintf("%x", c.Secret), Now: c.Now.UnixMilli(), Keys: packed, Local: c.Path,
		})
	}
	for i, done := range ranges(t, "ranges.mjs", all...) {
		c, h := cases[i], hosts[i]
		h.settle()
		if done.Opened != "" || done.Wrong != 0 || len(done.Lookups) != len(keys) {
			t.Errorf("%s: opened %q, %d of %d answers are wrong: %q", c.Name, done.Opened, done.Wrong, len(keys), done.Lookups)
		}
		if done.Requests != h.requests || done.BytesRead != h.sent {
			t.Errorf("%s: the reader counts %d requests and %d bytes, the server %d and %d", c.Name, done.Requests, done.BytesRead, h.requests, h.sent)
		}
		block, exact := 512, true
		switch kind, _, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(c.Name, " ", "-"), ",", ""), "-"); kind {
		case "splitblock":
			block = 32
		case "counting":
			block = 2048
		case "scalable", "window":
			exact = false
		case "classic":
			block, exact = 1, false
		case "scalablecounting":
			block, exact = 2048, false
		case "cuckoo":
			block, exact = 9, false // the most slots of a bucket
		case "exceptions":
			continue // and the list, once
		}
		if h.widest > block {
			t.Errorf("%s: an answer of %d bytes, want at most %d", c.Name, h.widest, block)
		}
		if lookups := h.requests - 1; exact && (lookups != len(keys) || h.sent != 12_288+len(keys)*block) {
			t.Errorf("%s: %d requests and %d bytes for %d keys, want one of %d bytes each", c.Name, lookups, h.sent, len(keys), block)
		}
	}
}

// TestRangeBatch: in a batch, lookups run at the same time, and keys that fall on the same
// block share a request.
func TestRangeBatch(t *testing.T) {
	t.Parallel()
	keys := webtest.Keys(160)
	packed := written(t, "keys", webtest.Pack(keys))
	var cases []webtest.Case
	var hosts []*host
	var all []asked
	for _, c := range append(webtest.Golden(t, root), larger(t)...) {
		if c.Secret != "" || strings.HasPrefix(c.Name, "classic-") || strings.Contains(c.Name, "later") {
			continue
		}
		h := newHost(t, filepath.Dir(c.Path))
		cases, hosts = append(cases, c), append(hosts, h)
		all = append(all, asked{URL: h.URL + "/" + url.PathEscape(filepath.Base(c.Path)), Keys: packed, Local: c.Path, Now: c.Now.UnixMilli()})
	}
	for i, done := range ranges(t, "batch.mjs", all...) {
		if done.Opened != "" || done.Wrong != 0 {
			t.Errorf("%s: opened %q, %d wrong answers", cases[i].Name, done.Opened, done.Wrong)
		}
	}
	first := slices.IndexFunc(cases, func(c webtest.Case) bool { return c.Name == "filter" }) // the golden one
	hosts[first].settle()
	if requests := hosts[first].requests; requests != 2 {
		t.Errorf("%d requests for one batch; want 2: the filter has one block", requests)
	}
}

// TestRangeRefused: what a server can do wrong is an error that says so, and little is
// read.
func TestRangeRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := []byte(webtest.ReadFile(t, filepath.Join(root, "testdata", "golden", "scalable.bloom")))
	big := make([]byte, 64<<20) // no filter, but a server would send all of it
	name := filepath.Join(dir, "f.bloom")
	put := func(content []byte, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(name, content, 0o666); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(name, when, when); err != nil {
			t.Fatal(err)
		}
	}
	modified := func() string {
		info, err := os.Stat(name)
		if err != nil {
			t.Error(err)
		}
		return info.ModTime().UTC().Format(http.TimeFormat)
	}
	packed := written(t, "keys", webtest.Pack(webtest.Keys(4)))
	type handler = func(w http.ResponseWriter, r *http.Request, files http.Handler)
	afterFirst := func(then handler) handler {
		first := true
		return func(w http.ResponseWriter, r *http.Request, files http.Handler) {
			if first {
				first = false
				files.ServeHTTP(w, r)
				return
			}
			then(w, r, files)
		}
	}
	answer := func(status int, header, body string) handler {
		return func(w http.ResponseWriter, r *http.Request, files http.Handler) {
			if header != "" {
				w.Header().Set("Content-Range", header)
			}
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	ignores := func(w http.ResponseWriter, r *http.Request, files http.Handler) {
		r.Header.Del("Range")
		files.ServeHTTP(w, r)
	}
	for _, tt := range []struct {
		name, opened, lookup string
		content              []byte
		how                  handler
		most                 int // bytes that the server could send
	}{
		{"ignores Range", "SourceError range", "", big, ignores, 32 << 20},
		{"404", "SourceError http: * status 404", "", good, answer(404, "", "nothing here"), 1000},
		{"500", "SourceError http: * status 500", "", good, answer(500, "", "oh"), 1000},
		{"another range", "SourceError range: * another range", "", good, answer(206, "bytes 5-9/100", "hello"), 1000},
		{"a range without sense", "SourceError range: * another range", "", good, answer(206, "bytes x", "hello"), 1000},
		{"fewer bytes than announced", "SourceError short", "", good, answer(206, "bytes 0-12287/16904", "hello"), 1000},
		{"more bytes than asked for", "SourceError range: * more bytes", "", good, answer(206, "", strings.Repeat("x", 1<<20)), 8 << 20},
		{"empty file", "FormatError format: * too short", "", nil, nil, 1000},
		{"short file", "FormatError format: * 5000 bytes", "", good[:5000], nil, 20_000},
		{"truncated file", "FormatError format: * its header says", "", good[:13_000], nil, 20_000},
		{"not a filter", "FormatError format: * does not begin", "", big, nil, 20_000},
		{"damaged header", "FormatError checksum: * header page", "", append(append([]byte{}, good[:100]...), append([]byte{1}, good[101:]...)...), nil, 40_000},
		{"ignores Range later", "", "SourceError range", good, afterFirst(ignores), 100_000},
		{"404 later", "", "SourceError http: * status 404", good, afterFirst(answer(404, "", "gone")), 20_000},
		{"changed later", "", "SourceError changed", good, afterFirst(func(w http.ResponseWriter, r *http.Request, files http.Handler) {
			put(append([]byte{}, good...), time.Hour)
			files.ServeHTTP(w, r)
		}), 100_000},
		{"shorter later", "", "SourceError changed", good, afterFirst(func(w http.ResponseWriter, r *http.Request, files http.Handler) {
			put(good[:100], 0)
			files.ServeHTTP(w, r)
		}), 20_000},
		{"another length later", "", "SourceError changed", good, afterFirst(func(w http.ResponseWriter, r *http.Request, files http.Handler) {
			at := 0
			fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at)
			w.Header().Set("Last-Modified", modified())
			answer(206, fmt.Sprintf("bytes %d-%d/17000", at, at+511), strings.Repeat("x", 512))(w, r, files)
		}), 20_000},
		{"short answer later", "", "SourceError short", good, afterFirst(func(w http.ResponseWriter, r *http.Request, files http.Handler) {
			w.Header().Set("Last-Modified", modified())
			answer(206, "", "hello")(w, r, files)
		}), 20_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			put(tt.content, 2*time.Hour)
			h := newHost(t, dir)
			h.how = tt.how
			local := filepath.Join(root, "testdata", "golden", "scalable.bloom")
			done := ranges(t, "ranges.mjs", asked{URL: h.URL + "/f.bloom", Keys: packed, Local: local})[0]
			h.settle()
			if !matches(done.Opened, tt.opened) {
				t.Errorf("opening: %q, want %q", done.Opened, tt.opened)
			}
			if tt.opened == "" && (len(done.Lookups) == 0 || !matches(done.Lookups[0], tt.lookup)) {
				t.Errorf("a lookup: %q, want %q", done.Lookups, tt.lookup)
			}
			if done.BytesRead > 100_000 || h.sent > tt.most {
				t.Errorf("%d bytes were read, %d sent", done.BytesRead, h.sent)
			}
		})
	}
}

// matches reports whether got begins with want, whose " * " stands for any text.
func matches(got, want string) bool {
	if want == "" {
		return got == ""
	}
	for i, part := range strings.Split(want, " * ") {
		at := strings.Index(got, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		got = got[at+len(part):]
	}
	return true
}

// TestRangeAborted: a signal ends opening and lookups while the server waits.
func TestRangeAborted(t *testing.T) {
	t.Parallel()
	h := newHost(t, filepath.Join(root, "testdata", "golden"))
	let := make(chan struct{})
	first := true
	h.how = func(w http.ResponseWriter, r *http.Request, files http.Handler) {
		if r.URL.Query().Get("first") != "" && first {
			first = false
			files.ServeHTTP(w, r)
			return
		}
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}
	defer close(let)
	for _, query := range []string{"", "?first=fast"} {
		if done := ranges(t, "abort.mjs", asked{URL: h.URL + "/filter.bloom" + query})[0]; done.Many != "AbortError" {
			t.Errorf("%q: %q, want an AbortError", query, done.Many)
		}
	}
}
