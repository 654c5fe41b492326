package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The API below /api/v1 is a translation: a request becomes a command, which a client
// without a connection executes (apicommand.go), or a read of the store. So the limits,
// refusals and durability are those of the commands. apiRoutes is the table; it also
// makes docs/openapi.json.

// apiPrefix begins the paths of the API.
const apiPrefix = "/api/v1"

// A route is a row of the table.
type route struct {
	method, path string // below apiPrefix; {name} stands for the name of a filter
	summary      string
	needs        access // the access that it takes
	params       []param
	body, result any   // zero values of what is sent and answered, nil for nothing
	codes        []int // of errors, besides those of all routes

	handle func(q *apiRequest) (any, error)
	stream func(q *apiRequest, w http.ResponseWriter) error // instead of handle
}

// A param is a parameter of a query.
type param struct {
	name, kind, about string // kind: string, integer or boolean
	many              bool
}

// allCodes are the errors that every route may answer with.
var allCodes = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable}

// An apiRequest is a request that was admitted.
type apiRequest struct {
	web    *web
	server *Server
	http   *http.Request
	route  *route
	access access
	name   []byte // {name}
	query  url.Values
	sent   any // the body: a pointer to a value of route.body's type
}

// An apiError is an answer other than success.
type apiError struct {
	code int
	text string
}

func (e *apiError) Error() string { return e.text }

func refusal(code int, format string, args ...any) error {
	return &apiError{code, fmt.Sprintf(format, args...)}
}

// An errorJSON is the body of every answer that is not a success.
type errorJSON struct {
	Error string `json:"error" doc:"why, in words"`

	New []bool `json:"new,omitempty" doc:"of an add that ended early: the answers to the keys that were added"`
}

// serveAPI answers a request below apiPrefix.
func (h *web) serveAPI(w http.ResponseWriter, r *http.Request) {
	result, err := h.admitAPI(w, r)
	if err != nil {
		h.answerError(w, r, err)
		return
	}
	if result != nil {
		answer(w, http.StatusOK, result)
	}
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(value)
}

// answerError sends an error as JSON.
func (h *web) answerError(w http.ResponseWriter, r *http.Request, err error) {
	sent := errorJSON{Error: err.Error()}
	code := http.StatusInternalServerError
	if e := (*apiError)(nil); errors.As(err, &e) {
		code = e.code
	}
	if e := (*addError)(nil); errors.As(err, &e) {
		sent.New = e.isNew
	}
	switch code {
	case http.StatusUnauthorized:
		// A script asks its user by itself: the browser's own dialogue would cover the page.
		if dest := r.Header.Get("Sec-Fetch-Dest"); dest == "" || dest == "document" {
			w.Header().Set("WWW-Authenticate", challenge)
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	answer(w, code, sent)
}

// challenge asks for a password.
const challenge = `Basic realm="bloomery", charset="UTF-8"`

// admitAPI checks a request and executes it.
func (h *web) admitAPI(w http.ResponseWriter, r *http.Request) (any, error) {
	row, name, err := findRoute(r)
	if err != nil {
		if e := err.(*apiError); e.code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", e.text)
			err = refusal(e.code, "this path takes %s, not %s", e.text, r.Method)
		}
		return nil, err
	}
	q := &apiRequest{web: h, server: h.server, http: r, route: row, name: name}
	if q.access, err = h.accessOf(r); err != nil {
		return nil, err
	}
	if q.access < row.needs {
		return nil, refusal(http.StatusForbidden, "this takes the full password; the one that was sent may only read")
	}
	if err := q.parseQuery(); err != nil {
		return nil, err
	}
	if row.stream != nil {
		return nil, row.stream(q, w)
	}
	select {
	case h.working <- struct{}{}:
		defer func() { <-h.working }()
	default:
		h.server.metrics.refuse(limitHTTPRequests)
		return nil, refusal(http.StatusTooManyRequests, "too many requests at the same time%s", limitSuffix(limitHTTPRequests, httpRequests))
	}
	if err := q.readBody(w); err != nil {
		return nil, err
	}
	result, err := row.handle(q)
	if err == nil && reflect.TypeOf(result) != reflect.TypeOf(row.result) {
		panic(fmt.Sprintf("server: %s %s answers %T, not as in the table", row.method, row.path, result))
	}
	return result, err
}

// findRoute returns the row for a request, and the name in its path. The error for a
// method that the path does not take has the methods that it does as its text.
func findRoute(r *http.Request) (row *route, name []byte, err error) {
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), apiPrefix), "/")
	var allowed []string
	for i := range apiRoutes {
		row := &apiRoutes[i]
		words := strings.Split(row.path, "/")
		if !slices.EqualFunc(words, path, func(word, given string) bool { return word == given || word == "{name}" || word == "{id}" }) {
			continue
		}
		if row.method != r.Method {
			allowed = append(allowed, row.method)
			continue
		}
		if at := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "{") }); at >= 0 {
			text, err := url.PathUnescape(path[at])
			if err == nil && isSet(r.URL.Query(), "base64") {
				var bytes []byte
				bytes, err = unBase64(text)
				text = string(bytes)
			}
			if err != nil {
				return nil, nil, refusal(http.StatusBadRequest, "bad name in the path: %v", err)
			}
			name = []byte(text)
		}
		return row, name, nil
	}
	if allowed != nil {
		return nil, nil, refusal(http.StatusMethodNotAllowed, "%s", strings.Join(allowed, ", "))
	}
	return nil, nil, refusal(http.StatusNotFound, "there is nothing at this path: docs/http.md has the table")
}

func isSet(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && value != "false"
}

// accessOf returns what the request's password grants, full access if none is needed.
func (h *web) accessOf(r *http.Request) (access, error) {
	config := &h.server.config
	if config.Password == "" {
		return accessFull, nil
	}
	_, password, given := r.BasicAuth()
	switch {
	case !given:
		return accessNone, refusal(http.StatusUnauthorized, "send the server's password by basic authentication, with any user")
	case equalSecret([]byte(password), config.Password):
		return accessFull, nil
	case equalSecret([]byte(password), config.ReadOnlyPassword) && config.ReadOnlyPassword != "":
		return accessRead, nil
	}
	h.server.wrongPassword(r.RemoteAddr)
	return accessNone, refusal(http.StatusUnauthorized, "wrong password")
}

// parseQuery reads the query, which may have the route's parameters only.
func (q *apiRequest) parseQuery() (err error) {
	if q.query, err = url.ParseQuery(q.http.URL.RawQuery); err != nil {
		return refusal(http.StatusBadRequest, "bad query: %v", err)
	}
	for name, values := range q.query {
		p := q.route.param(name)
		switch {
		case name == "base64" && strings.Contains(q.route.path, "{name}"):
		case p == nil:
			return refusal(http.StatusBadRequest, "there is no parameter %q here", clip([]byte(name)))
		case !p.many && len(values) > 1:
			return refusal(http.StatusBadRequest, "the parameter %s is given twice", name)
		}
	}
	return nil
}

func (row *route) param(name string) *param {
	if i := slices.IndexFunc(row.params, func(p param) bool { return p.name == name }); i >= 0 {
		return &row.params[i]
	}
	return nil
}

// declared panics unless a parameter is in the table: the documents are made from it.
func (q *apiRequest) declared(name string) {
	if q.route.param(name) == nil {
		panic("server: " + q.route.path + " has no parameter " + name)
	}
}

func (q *apiRequest) text(name, standard string) string {
	if q.declared(name); q.query.Has(name) {
		return q.query.Get(name)
	}
	return standard
}

// number returns a parameter from least to most.
func (q *apiRequest) number(name string, standard, least, most int) (int, error) {
	q.declared(name)
	if !q.query.Has(name) {
		return standard, nil
	}
	n, err := strconv.Atoi(q.query.Get(name))
	if err != nil || n < least || n > most {
		return 0, refusal(http.StatusBadRequest, "%s is a number from %d to %d, not %q", name, least, most, clip([]byte(q.query.Get(name))))
	}
	return n, nil
}

// readBody checks that a page of another site cannot have sent the request, and reads
// its body, if it has one.
func (q *apiRequest) readBody(w http.ResponseWriter) error {
	r := q.http
	if r.Method == "GET" {
		return nil
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return refusal(http.StatusForbidden, "refused: a page of another site sent this request")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return refusal(http.StatusForbidden, "refused: a page of another site, %s, sent this request", clip([]byte(origin)))
		}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refusal(http.StatusUnsupportedMediaType, "send the header Content-Type: application/json")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, httpBodyBytes))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		q.server.metrics.refuse(limitHTTPBody)
		return refusal(http.StatusRequestEntityTooLarge, "the body is too long%s", limitSuffix(limitHTTPBody, httpBodyBytes))
	} else if err != nil {
		return refusal(http.StatusBadRequest, "the body did not arrive: %v", err)
	}
	q.server.stats.bytesIn.Add(int64(len(text)))
	return q.parseBody(text)
}

// parseBody reads JSON into a new value of the route's type.
func (q *apiRequest) parseBody(text []byte) error {
	if q.route.body == nil {
		if s := strings.TrimSpace(string(text)); s != "" && s != "{}" {
			return refusal(http.StatusBadRequest, "this request takes no body")
		}
		return nil
	}
	if !utf8.Valid(text) { // json would replace what is not
		return refusal(http.StatusBadRequest, `the body is not UTF-8: send other bytes as {"base64": "..."}`)
	}
	q.sent = reflect.New(reflect.TypeOf(q.route.body)).Interface()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(q.sent); err != nil {
		return refusal(http.StatusBadRequest, "bad JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return refusal(http.StatusBadRequest, "bad JSON: something follows the first value")
	}
	return nil
}
