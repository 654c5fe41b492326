// Command hourly handles each message of a stream once, though some are delivered again
// within an hour:
//
//	go run ./examples/hourly
//
// A filter of all messages would fill up. A Window finds each message for an hour after
// it was last added, forgets it soon after, and so keeps its size and its rate on a
// stream without an end.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/bloomery/bloom"
)

// A message may be delivered again.
type message struct {
	number int
	at     time.Time
}

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "hourly")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(filepath.Join(dir, "window.bloom")); err != nil {
		log.Fatal(err)
	}
}

func run(path string) error {
	// The stream brings its own time, so a replay of yesterday's stream behaves as
	// yesterday. Leave Now out to use the system's clock.
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := start
	now := func() time.Time { return clock }
	recent, err := bloom.WindowConfig{
		Keys: 12_000, // different messages in an hour, some more than come on average
		Rate: 0.001,
		Span: time.Hour,
		Now:  now,
	}.New()
	if err != nil {
		return err
	}

	var handled, again, lost, hours int
	done := map[int]bool{} // what a filter is there to avoid; here to check it
	for m := range stream(start, 6*time.Hour, 10_000) {
		clock = m.at
		switch {
		case recent.AddString(fmt.Sprint("message ", m.number)):
			handled++
			if done[m.number] {
				return fmt.Errorf("message %d was handled twice", m.number)
			}
			done[m.number] = true
		case done[m.number]:
			again++
		default:
			lost++ // new, but taken for a repeat
		}

		// Every hour, stop and start again. Time goes on while a window is in a file.
		if hour := int(m.at.Sub(start) / time.Hour); hour > hours {
			hours = hour
			if err := recent.Save(path); err != nil {
				return err
			}
			if recent, err = bloom.LoadWindow(path, now); err != nil {
				return err
			}
			report := recent.Report()
			fmt.Printf("%s  about %.0f messages in %d KiB\n", clock.Format("15:04"), report.Keys, report.Plan.Bytes()/1024)
		}
	}
	fmt.Printf("%d messages handled once, %d repeats recognised, %d new ones lost\n", handled, again, lost)

	clock = clock.Add(2 * time.Hour)
	fmt.Printf("%s  about %.0f messages\n", clock.Format("15:04"), recent.Report().Keys)
	return nil
}
