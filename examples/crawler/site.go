package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
)

// linkIn finds the links of a page. A real crawler needs an HTML parser.
var linkIn = regexp.MustCompile(`href="([^"]+)"`)

// fetch returns the links on a page.
func fetch(page string) (links []string, err error) {
	answer, err := http.Get(page)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", page, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	for _, match := range linkIn.FindAllSubmatch(body, -1) {
		link, err := answer.Request.URL.Parse(string(match[1]))
		if err != nil {
			continue // not a link that anybody can follow
		}
		links = append(links, link.String())
	}
	return links, nil
}

// demonstrate crawls a site of a hundred pages in three runs.
func demonstrate() error {
	const pages = 100
	served := make([]int, pages) // how often each page was served
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	site := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil || page < 0 || page >= pages {
			http.NotFound(w, r)
			return
		}
		served[page]++ // the crawler waits for each page: one request at a time
		for _, to := range []int{page + 1, 7*page + 3, page / 2} {
			fmt.Fprintf(w, "<a href=\"/%d\">page %[1]d</a>\n", to%pages)
		}
	})}
	go site.Serve(listener)
	defer site.Close()

	state, err := os.MkdirTemp("", "crawler")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	for range 3 {
		if err := crawl(fmt.Sprintf("http://%s/0", listener.Addr()), state, 40); err != nil {
			return err
		}
	}
	once, again := 0, 0
	for _, times := range served {
		once += min(times, 1)
		again += max(times-1, 0)
	}
	fmt.Printf("the site has %d pages, served %d, and %d of them again\n", pages, once, again)
	return nil
}
