package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// files are the pages and what they load, at the paths they have here, below /web/.
//
//go:embed *.js pages/*.html pages/*.css pages/*.js pages/*.svg
var files embed.FS

// policy is the pages' Content-Security-Policy. They load nothing but what is in this
// package, and have no script or style in their HTML. The one exception is the playground,
// which reads a block of a file by HTTP Range from an address that the reader types.
const (
	policy     = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	policyPlay = policy + "; connect-src *"
)

// contentTypes are fixed here, because package mime reads the system's tables.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Mount adds the playground at /play, the planner at /plan, and what they load below
// /web/. The pages keep no state on the server and ask it nothing. With console, their
// heads link to the console at /.
func Mount(mux *http.ServeMux, console bool) {
	for _, page := range []string{"play", "plan"} {
		mux.Handle("GET /"+page, Page(page, console))
	}
	mux.Handle("GET /web/", http.HandlerFunc(serveFile))
}

// Page serves pages/name.html.
func Page(name string, console bool) http.Handler {
	body, err := files.ReadFile("pages/" + name + ".html")
	if err != nil {
		panic("web: no page " + name)
	}
	if console {
		body = bytes.Replace(body, []byte(`data-console="off"`), []byte(`data-console="on"`), 1)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, name+".html", body)
	})
}

// serveFile serves a file at its path below /web/.
func serveFile(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/web/")
	body, err := fs.ReadFile(files, name)
	if err != nil || path.Ext(name) == ".html" {
		http.NotFound(w, r)
		return
	}
	serve(w, r, name, body)
}

// serve answers with a body that browsers keep, and ask for again by its ETag.
func serve(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	if name == "play.html" {
		h.Set("Content-Security-Policy", policyPlay)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentTypes[path.Ext(name)])
	w.Write(body)
}
