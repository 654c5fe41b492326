// Command summarycache runs two web caches that tell each other what they hold by
// exchanging filters:
//
//	go run ./examples/summarycache
//
// It is the protocol of L. Fan, P. Cao, J. Almeida and A. Broder, "Summary cache: a
// scalable wide-area Web cache sharing protocol" (SIGCOMM 1998). A cache that lacks a
// document could ask all of its peers before it goes to the origin, which is a message
// per peer for each miss. With a summary of each peer it asks only those that probably
// have the document. A summary is a filter and a little old, so both mistakes happen:
// asking in vain, and not asking a peer that has the document. Each costs time, and
// neither gives a wrong answer.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
)

const (
	capacity  = 500    // documents in a cache
	documents = 5_000  // at the origin
	requests  = 10_000 // of the clients of both caches
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	// Three servers on ports of their own: the origin and two caches.
	origin, err := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "the document %s", r.URL.Path)
	}))
	if err != nil {
		return err
	}
	var caches [2]*cache
	for i := range caches {
		if caches[i], err = newCache(origin); err != nil {
			return err
		}
		if caches[i].address, err = serve(caches[i].handler()); err != nil {
			return err
		}
	}
	caches[0].peer, caches[1].peer = caches[1].address, caches[0].address

	// Clients ask for popular documents more often (Zipf's law).
	random := rand.New(rand.NewPCG(1998, 1))
	popular := rand.NewZipf(random, 1.1, 10, documents-1)
	var missed int // the peer had it and was not asked
	for i := range requests {
		path := fmt.Sprintf("/%d.html", popular.Uint64())
		c, peer := caches[i%2], caches[1-i%2]
		asked, peerHas, has := c.counted().asked, peer.has(path), c.has(path)
		body, err := get("http://" + c.address + path)
		if err != nil {
			return err
		}
		if string(body) != "the document "+path {
			return fmt.Errorf("%s: got %q", path, body)
		}
		if !has && peerHas && c.counted().asked == asked {
			missed++
		}
	}

	a, b := caches[0].counted(), caches[1].counted()
	hits := a.hits + b.hits
	fmt.Printf("%d requests: %d answered by the own cache, %d by the peer, %d by the origin\n",
		requests, hits, a.peerHits+b.peerHits, a.fetched+b.fetched)
	fmt.Printf("messages to the peer: %d questions, %d of them in vain; %d summaries of %d bytes\n",
		a.asked+b.asked, a.inVain+b.inVain, a.summaries+b.summaries, a.summaryBytes)
	fmt.Printf("without summaries: %d questions; the peer had it and was not asked: %d times\n", requests-hits, missed)
	return nil
}

// serve starts a server on a free port and returns its address.
func serve(handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(listener, handler)
	return listener.Addr().String(), nil
}
