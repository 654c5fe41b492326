package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// ask sends a GET to the pages.
func ask(console bool, target string, header http.Header) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	Mount(mux, console)
	r := httptest.NewRequest("GET", target, nil)
	for key, values := range header {
		r.Header[key] = values
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// TestPages: pages and files have their types, and a policy that allows no script in the
// page; a browser that has one is told so.
func TestPages(t *testing.T) {
	for target, want := range map[string]string{
		"/play":                "text/html; charset=utf-8",
		"/plan":                "text/html; charset=utf-8",
		"/web/pages/style.css": "text/css; charset=utf-8",
		"/web/pages/plan.js":   "text/javascript; charset=utf-8",
		"/web/bloomery.js":     "text/javascript; charset=utf-8",
		"/web/pages/icon.svg":  "image/svg+xml",
	} {
		w := ask(false, target, nil)
		h := w.Result().Header
		if w.Code != http.StatusOK || h.Get("Content-Type") != want || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %q, %d bytes", target, w.Code, h.Get("Content-Type"), w.Body.Len())
		}
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") != (target == "/play") {
			t.Errorf("%s: policy %q", target, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("ETag") == "" {
			t.Errorf("%s: %v", target, h)
		}
		again := ask(false, target, http.Header{"If-None-Match": {h.Get("ETag")}})
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s again: %d, %d bytes", target, again.Code, again.Body.Len())
		}
		if changed := ask(false, target, http.Header{"If-None-Match": {`"other"`}}); changed.Code != http.StatusOK {
			t.Errorf("%s with another ETag: %d", target, changed.Code)
		}
	}
}

// TestPagesRefuse: there is nothing else below /web/.
func TestPagesRefuse(t *testing.T) {
	for _, target := range []string{"/web/", "/web/pages", "/web/pages/", "/web/pages.go", "/web/pages/plan.html", "/web/pages/none.js", "/web/testdata/answers.mjs", "/web/browser/go.mod"} {
		if w := ask(false, target, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

// TestConsoleLink: the link to the console is shown where there is one.
func TestConsoleLink(t *testing.T) {
	for _, console := range []bool{false, true} {
		body := ask(console, "/plan", nil).Body.String()
		if strings.Contains(body, `data-console="on"`) != console || strings.Contains(body, `data-console="off"`) == console {
			t.Errorf("with console %v: %.80q", console, body)
		}
	}
}

// inline matches what the policy forbids: styles, handlers and scripts in the page.
var inline = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script>|javascript:`)

// reference matches what a page or a module loads.
var reference = regexp.MustCompile(`(?m)(?:(?:src|href)="|^import [^"';]*["']|^\} from ["'])(/web/[^"']+|\.{1,2}/[^"']+)["']`)

// TestPagesAreWhole: every file has a type and is loaded by something, everything that is
// loaded is there, nothing comes from elsewhere, and nothing is inline.
func TestPagesAreWhole(t *testing.T) {
	texts := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		texts[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]bool{}
	for name, text := range texts {
		if contentTypes[path.Ext(name)] == "" {
			t.Errorf("%s has no content type", name)
		}
		if path.Ext(name) == ".html" && inline.MatchString(text) {
			t.Errorf("%s has %q inline", name, inline.FindString(text))
		}
		for _, found := range reference.FindAllStringSubmatch(text, -1) {
			target := strings.TrimPrefix(found[1], "/web/")
			if target == found[1] {
				target = path.Join(path.Dir(name), found[1])
			}
			if texts[target] == "" {
				t.Errorf("%s loads %s, which is not there", name, found[1])
			}
			loaded[target] = true
		}
		for _, elsewhere := range regexp.MustCompile(`(?:src|href)="(?:https?:)?//[^"]*`).FindAllString(text, -1) {
			t.Errorf("%s loads %s", name, elsewhere)
		}
		if lines := strings.Count(text, "\n"); lines > 600 {
			t.Errorf("%s has %d lines, want at most 600", name, lines)
		}
	}
	for name := range texts {
		if path.Ext(name) != ".html" && !loaded[name] {
			t.Errorf("nothing loads %s", name)
		}
	}
}
