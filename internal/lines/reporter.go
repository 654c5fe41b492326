package lines

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/bloomery/bloom/internal/human"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	progressAfter = time.Second            // shorter work needs no bar
	progressEvery = 100 * time.Millisecond // how often it is drawn
)

// A Reporter prints on standard error: messages, and during the work a progress bar
// below them, if it is a terminal. Any goroutine may use it.
type Reporter struct {
	sync.Mutex
	to    io.Writer
	bar   *progressbar.ProgressBar // nil: not a terminal
	start time.Time
	drawn time.Time
	bytes int64 // read since the bar was drawn
	shown bool
}

// NewReporter prepares a bar for reading the sources. printing means that lines are
// written to stdout meanwhile: on the same terminal, the bar and the lines would mix.
func NewReporter(stderr, stdout io.Writer, printing bool, sources []*Source) *Reporter {
	t := &Reporter{to: stderr}
	if !IsTerminal(stderr) || printing && IsTerminal(stdout) {
		return t
	}
	total := int64(0)
	for _, s := range sources {
		total += s.Bytes
		if !s.Regular {
			total = -1 // unknown
			break
		}
	}
	if total == 0 {
		return t
	}
	return NewBar(stderr, total)
}

// NewBar returns a Reporter with a progress bar for total bytes, -1 if that is unknown.
func NewBar(to io.Writer, total int64) *Reporter {
	now := time.Now()
	t := &Reporter{to: to, start: now, drawn: now}
	t.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(to),
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

// Read counts n bytes read from the sources, and draws the bar if it is due.
func (t *Reporter) Read(n int) {
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
	t.draw()
}

// Draw draws the bar now.
func (t *Reporter) Draw() {
	t.Lock()
	defer t.Unlock()
	if t.bar != nil {
		t.draw()
	}
}

func (t *Reporter) draw() {
	t.bar.Add64(t.bytes)
	t.drawn, t.bytes, t.shown = time.Now(), 0, true
}

// Finish removes the bar.
func (t *Reporter) Finish() {
	t.Lock()
	defer t.Unlock()
	if t.shown {
		t.bar.Clear()
		t.shown = false
	}
	t.bar = nil
}

// Say prints a message.
func (t *Reporter) Say(format string, args ...any) {
	t.Lock()
	defer t.Unlock()
	if t.shown {
		t.bar.Clear()
	}
	fmt.Fprintf(t.to, "bloomery: "+format+"\n", args...)
}

// Warn prints a warning, which may contain an error of the library.
func (t *Reporter) Warn(format string, args ...any) {
	t.Say("warning: %s", human.Error(fmt.Sprintf(format, args...)))
}

// IsTerminal reports whether a stream is a terminal, so that a person reads its output or
// types its input.
func IsTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// HintTerminal explains why nothing happens to a user who forgot to name a file.
func HintTerminal(t *Reporter, sources []*Source) {
	for _, s := range sources {
		if s.stdin != nil && IsTerminal(s.stdin) {
			t.Say("reading lines from the terminal; Ctrl-D ends them")
		}
	}
}
