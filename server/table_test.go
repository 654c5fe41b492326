package server

import (
	"strings"
	"testing"
)

// TestCommandRows holds the table: a name stands there once, in lower case, behind
// its parent if it has one, with texts if COMMAND lists it; and no text is left over.
func TestCommandRows(t *testing.T) {
	rows := map[string]bool{}
	for _, r := range commandRows {
		parent, name, isSub := strings.Cut(r.name, "|")
		_, hasText := commandTexts[r.name]
		switch {
		case rows[r.name]:
			t.Errorf("%s is in the table twice", r.name)
		case r.name != strings.ToLower(r.name) || len(r.name) > longestName:
			t.Errorf("%s is not in lower case, or too long", r.name)
		case isSub && !rows[parent]:
			t.Errorf("%s stands before its parent", r.name)
		case hasText != (r.group != groupRefused && name != "help"):
			t.Errorf("%s: texts are there: %v", r.name, hasText)
		case r.flags.Has(Adds) && !r.flags.Has(Write) || r.flags.Has(Checks) && !r.flags.Has(ReadOnly):
			t.Errorf("%s: flags contradict each other", r.name)
		}
		rows[r.name] = true
	}
	for name := range commandTexts {
		if !rows[name] {
			t.Errorf("texts for %s, which is no command", name)
		}
	}
}
