package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestTerminal parses the picture as a browser does: it must be well formed and contain
// every word of the session.
func TestTerminal(t *testing.T) {
	long := strings.Repeat("word ", 60)
	picture := terminalSVG("$ make run\n\n1. <Say> & show\n   $ bloomery plan\n   " + long + "\n")
	text := ""
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, picture)
		}
		if data, ok := token.(xml.CharData); ok {
			text += string(data)
		}
	}
	for _, want := range []string{"$ make run", "1. <Say> & show", "   $ bloomery plan"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if got := strings.Count(text, "word"); got != 60 {
		t.Errorf("the picture has %d of 60 words", got)
	}
	if !strings.Contains(picture, "prefers-color-scheme: dark") {
		t.Error("no dark theme")
	}
}
