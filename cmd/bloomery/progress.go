package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	progressAfter = time.Second            // shorter work needs no bar
	progressEvery = 100 * time.Millisecond // how often it is drawn
)

// A teller is standard error: the messages, and while the work goes on a
// progress bar below them, if a person watches. Any goroutine may use it.
type teller struct {
	sync.Mutex
	to    io.Writer
	bar   *progressbar.ProgressBar // nil: nobody watches
	start time.Time
	drawn time.Time
	bytes int64 // read since drawn
	shown bool
}

// newTeller prepares a bar for reading the sources. printing says that lines
// go to stdout meanwhile: on one terminal the two would mix.
func newTeller(stderr, stdout io.Writer, printing bool, sources []*source) *teller {
	now := time.Now()
	t := &teller{to: stderr, start: now, drawn: now}
	if !isTerminal(stderr) || printing && isTerminal(stdout) {
		return t
	}
	total := int64(0)
	for _, s := range sources {
		total += s.bytes
		if !s.regular {
			total = -1 // unknown
			break
		}
	}
	if total == 0 {
		return t
	}
	t.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine that draws on its own
	)
	t.bar.StartWithoutRender()
	return t
}

// read counts bytes of the sources, and draws the bar when it is time.
func (t *teller) read(n int) {
	t.Lock()
	defer t.Unlock()
	if t.bar == nil {
		return
	}
	t.bytes += int64(n)
	now := time.Now()
	if now.Sub(t.start) < progressAfter || now.Sub(t.drawn) < progressEvery {
		return
	}
	t.bar.Add64(t.bytes)
	t.drawn, t.bytes, t.shown = now, 0, true
}

// finish removes the bar.
func (t *teller) finish() {
	t.Lock()
	defer t.Unlock()
	if t.shown {
		t.bar.Clear()
		t.shown = false
	}
	t.bar = nil
}

// say prints a message.
func (t *teller) say(format string, args ...any) {
	t.Lock()
	defer t.Unlock()
	if t.shown {
		t.bar.Clear()
	}
	fmt.Fprintf(t.to, "bloomery: "+format+"\n", args...)
}

// warn prints a warning, which may have an error of the library in it.
func (t *teller) warn(format string, args ...any) {
	t.say("warning: %s", forPeople(fmt.Sprintf(format, args...)))
}

// isTerminal reports whether a person sees what is written to w, or types what
// is read from it.
func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
