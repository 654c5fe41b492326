package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bloomery/bloom/store"
)

// TestCountingCopy copies a filter from which items were removed, and which has grown,
// chunk by chunk: the copy counts the same, and items can be removed from it.
func TestCountingCopy(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	w.askOK(t, "BF.RESERVE", "from", "0.0001", "500", "LAYOUT", "COUNTING")
	w.ask(t, numbered("item", 3000, "BF.MADD", "from")...)
	w.ask(t, numbered("item", 100, "BF.MADD", "from")...)
	w.ask(t, numbered("item", 50, "BF.MDEL", "from")...)
	for next := "0"; ; {
		reply := w.ask(t, "BF.SCANDUMP", "from", next)
		if len(reply.Items) != 2 {
			t.Fatalf("BF.SCANDUMP: %v", reply)
		}
		if next = fmt.Sprint(reply.Items[0].Integer); next == "0" {
			break
		}
		w.askOK(t, "BF.LOADCHUNK", "to", next, reply.Items[1].Text)
	}
	for _, line := range []string{"BF.COUNT %s item10", "BF.COUNT %s item70", "BF.INFO %s LAYOUT", "BF.CARD %s", "BF.DEBUG %s", "BF.MDEL %s item0 item0 item99 item99 item99 item2000 none"} {
		if from, to := w.must(t, fmt.Sprintf(line, "from")), w.must(t, fmt.Sprintf(line, "to")); from != to || strings.HasPrefix(from, "-") {
			t.Errorf(line+": %q, and of the copy %q", "", from, to)
		}
	}
	for i, item := range w.ask(t, numbered("item", 3000, "BF.MEXISTS", "to")...).Items {
		if i != 0 && i != 99 && i != 2000 && item.Integer != 1 {
			t.Fatalf("item%d was added and is absent", i)
		}
	}
}

// TestCountingWatch changes a filter that another client watches.
func TestCountingWatch(t *testing.T) {
	addr := startServer(t, Config{})
	w, other := connect(t, addr), connect(t, addr)
	other.must(t, "BF.RESERVE k 0.01 100 LAYOUT COUNTING")
	for _, tt := range []struct {
		change string
		fails  bool
	}{
		{"BF.ADD k a", true}, {"BF.DEL k a", true}, {"BF.MDEL k a b", true}, {"BF.COUNT k a", false}, {"BF.INFO k ITEMS", false},
	} {
		w.expect(t, "WATCH k", "+OK\r\n")
		other.must(t, tt.change)
		w.expect(t, "MULTI", "+OK\r\n")
		w.expect(t, "PING", "+QUEUED\r\n")
		if got := w.must(t, "EXEC"); (got == "*-1\r\n") != tt.fails {
			t.Errorf("%s while it was watched: EXEC answers %q", tt.change, got)
		}
	}
}

// TestCountingByDefault reserves filters where the server's layout is counting.
func TestCountingByDefault(t *testing.T) {
	config := Config{}
	config.Filter.Kind = store.Counting
	w := connect(t, startServer(t, config))
	for _, line := range []string{"BF.ADD a x", "BF.RESERVE b 0.01 100", "BF.INSERT c ITEMS x"} {
		if got := w.must(t, line); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %q", line, got)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		w.expect(t, "BF.INFO "+name+" LAYOUT", "*1\r\n$8\r\ncounting\r\n")
	}
	w.expect(t, "BF.INSERT d LAYOUT REDISBLOOM ITEMS x", "*1\r\n:1\r\n")
	w.expect(t, "BF.INFO d LAYOUT", "*1\r\n$10\r\nredisbloom\r\n")
	w.expect(t, "BF.RESERVE e 0.01 100 WINDOW 1h", "+OK\r\n")
	w.expect(t, "BF.INFO e LAYOUT", "*1\r\n$6\r\nwindow\r\n")
	w.expect(t, "BF.DEL a x", ":1\r\n")
}
