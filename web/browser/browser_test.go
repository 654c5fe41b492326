package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// programs are the browsers that will do, the best first.
var programs = []string{"chromium-headless-shell", "chromium", "google-chrome"}

// tabTime is how long a test may use its tab.
const tabTime = 2 * time.Minute

var (
	started sync.Once
	browser context.Context // of the one browser, whose tabs the tests use
	stop    = func() {}
	failure error
)

func TestMain(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
}

// start starts the browser, for the first test that needs it.
func start() {
	path := ""
	for _, program := range slices.Backward(programs) {
		if found, err := exec.LookPath(program); err == nil {
			path = found
		}
	}
	if path == "" {
		failure = errors.New("there is no Chromium: make browser installs chromium-headless-shell")
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	var stopBrowser context.CancelFunc
	browser, stopBrowser = chromedp.NewContext(allocator)
	stop = func() { stopBrowser(); stopAllocator() }
	failure = chromedp.Do(browser)
}

// A tab is a page of the browser, for one test.
type tab struct {
	t        *testing.T
	ctx      context.Context
	refusals bool // requests that are refused are no problem

	mu       sync.Mutex
	problems []string // which fail the test when it ends
}

// newTab opens a tab, which closes when the test ends. An exception that a page does not
// catch, and an error that it logs, fail the test.
func newTab(t *testing.T) *tab {
	t.Helper()
	if started.Do(start); failure != nil {
		t.Fatal(failure)
	}
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, tabTime)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			t.Error(problem)
		}
	})
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// listen notes what the test must not overlook.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.problems = append(b.problems, "the page throws: "+text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			text := "the page logs an error:"
			for _, arg := range e.Args {
				text += " " + string(arg.Value) + arg.Description
			}
			b.problems = append(b.problems, text)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" && !(b.refusals && e.Entry.Source == "network") {
			b.problems = append(b.problems, "the browser logs an error: "+e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// do runs actions of chromedp.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open loads a page.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

// run runs the body of an async function in the page, and stores what it returns in
// result, a pointer.
func (b *tab) run(body string, result any) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]byte]("(async () => {"+body+"})()", chromedp.EvalAwaitPromise))
	if err == nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		b.t.Fatalf("%v in:%s", err, body)
	}
}

// serve serves the files of handlers, by the beginning of their paths, on the
// loopback interface, and returns the address. At /blank is an empty page.
func serve(t *testing.T, handlers map[string]http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	for prefix, handler := range handlers {
		mux.Handle(prefix, http.StripPrefix(strings.TrimSuffix(prefix, "/"), handler))
	}
	mux.HandleFunc("/blank", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>test</title></html>`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
