package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/bloomery/bloom"
)

const (
	// fresh is how many documents must be new before a cache sends its summary again: a
	// twentieth of them. The paper finds a delay of 1% to 10% harmless.
	fresh = capacity / 20

	// summaryLimit is the longest summary that a cache accepts from its peer.
	summaryLimit = 1 << 20
)

// A cache keeps documents and knows what its peer probably has.
type cache struct {
	origin, address, peer string

	mu        sync.Mutex
	documents map[string][]byte
	order     []string        // oldest first
	own       *bloom.Counting // of documents: keys leave, so it has to count
	summary   *bloom.Filter   // the peer's, as it was; nil before the first
	news      int             // documents since the last summary was sent
	counts
}

// counts says where documents came from, and what was sent to the peer.
type counts struct{ hits, peerHits, fetched, asked, inVain, summaries, summaryBytes int }

func newCache(origin string) (*cache, error) {
	own, err := bloom.NewCounting(capacity, 0.01)
	return &cache{origin: origin, documents: map[string][]byte{}, own: own}, err
}

// handler returns what the cache serves: documents for clients, documents it holds for
// the peer, and a place for the peer's summary.
func (c *cache) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{path}", func(w http.ResponseWriter, r *http.Request) {
		body, err := c.document(r.URL.Path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Write(body)
	})
	mux.HandleFunc("GET /held/{path}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		body, found := c.documents["/"+r.PathValue("path")]
		c.mu.Unlock()
		if !found {
			http.NotFound(w, r)
			return
		}
		w.Write(body)
	})
	mux.HandleFunc("PUT /summary", func(w http.ResponseWriter, r *http.Request) {
		// Read verifies checksums, and believes no length that the bytes do not justify.
		summary, err := bloom.Read(r.Body, summaryLimit)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		c.summary = summary
		c.mu.Unlock()
	})
	return mux
}

// document returns a document from the cache, from the peer or from the origin.
func (c *cache) document(path string) ([]byte, error) {
	c.mu.Lock()
	body, found := c.documents[path]
	ask := c.summary != nil && c.summary.ContainsString(path)
	c.mu.Unlock()
	if found {
		c.count(&c.hits)
		return body, nil
	}
	if ask {
		c.count(&c.asked)
		if body, err := get("http://" + c.peer + "/held" + path); err == nil {
			c.count(&c.peerHits)
			return body, nil // the peer keeps it; a copy here would waste room
		}
		c.count(&c.inVain) // a false positive, or the peer has dropped it since
	}
	body, err := get("http://" + c.origin + path)
	if err != nil {
		return nil, err
	}
	c.count(&c.fetched)
	summary, err := c.keep(path, body)
	if err != nil || summary == nil {
		return body, err
	}
	return body, c.send(summary)
}

// keep puts a document into the cache, and drops the oldest one if it is full. It returns
// a summary if one is due: the bits without the counters, a quarter of the size.
func (c *cache) keep(path string, body []byte) (*bloom.Filter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.documents[path] != nil {
		return nil, nil // two clients asked for it at the same time
	}
	if len(c.order) == capacity {
		// Remove only what was added. Here the list of documents says so: a filter could
		// be wrong about it, and would lose other keys.
		c.own.RemoveString(c.order[0])
		delete(c.documents, c.order[0])
		c.order = c.order[1:]
	}
	c.documents[path] = body
	c.order = append(c.order, path)
	c.own.AddString(path)
	if c.news++; c.news < fresh {
		return nil, nil
	}
	c.news = 0
	return c.own.Filter()
}

// send sends the peer a summary. It holds no lock: the peer may be sending one, too.
func (c *cache) send(summary *bloom.Filter) error {
	var file bytes.Buffer // most of a small one is empty: files consist of whole pages
	if _, err := summary.WriteTo(&file); err != nil {
		return err
	}
	c.mu.Lock()
	c.summaries++
	c.summaryBytes = file.Len()
	c.mu.Unlock()
	request, err := http.NewRequest(http.MethodPut, "http://"+c.peer+"/summary", &file)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the peer refuses the summary: %s", answer.Status)
	}
	return nil
}

func (c *cache) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// counted returns the counts so far.
func (c *cache) counted() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// has reports whether the cache holds a document.
func (c *cache) has(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.documents[path] != nil
}

func get(url string) ([]byte, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return body, err
}
