package server

import (
	"context"
	"strings"
	"testing"

	"github.com/bloomery/bloom/store"
)

// dropsOnOpen drops a filter just after it was opened, as another client may, a number
// of times.
type dropsOnOpen struct {
	store.Store
	times int
}

func (s *dropsOnOpen) Open(name []byte) (store.Filter, error) {
	filter, err := s.Store.Open(name)
	if err == nil && s.times > 0 {
		s.times--
		s.Store.Drop(context.Background(), string(name))
	}
	return filter, err
}

// TestDroppedMeanwhile: a filter that is dropped between lookup and use has no keys;
// adds go to a new one, as if they had come later.
func TestDroppedMeanwhile(t *testing.T) {
	local, err := store.OpenLocal(store.LocalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	s := &dropsOnOpen{Store: local}
	b, c := newBatchClient(t, s)
	for _, tt := range []struct{ sent, want string }{
		{command("BF.EXISTS", "f", "a") + command("BF.MEXISTS", "f", "a", "b"), ":0\r\n*2\r\n:0\r\n:0\r\n"},
		{command("BF.INFO", "f"), "-ERR not found\r\n"},
		{command("BF.DEBUG", "f"), "-ERR not found\r\n"},
		{command("BF.CARD", "f"), ":0\r\n"},
		{command("BF.SCANDUMP", "f", "0"), "-ERR not found\r\n"},
		{command("BF.ADD", "f", "a"), ":1\r\n"},
		{command("BF.MADD", "f", "a", "b") + command("BF.ADD", "f", "a"), "*2\r\n:1\r\n:1\r\n:0\r\n"},
	} {
		if got := b.all(t, c, command("BF.ADD", "f", "a")); !strings.HasPrefix(got, ":") {
			t.Fatalf("%q", got)
		}
		s.times = 1
		if got := b.all(t, c, tt.sent); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.sent, got, tt.want)
		}
	}
}

// flushesOnLoad deletes all names when the first chunk of a filter arrives, as another
// client may.
type flushesOnLoad struct{ *store.Local }

func (s flushesOnLoad) Load(ctx context.Context, name string, header []byte) (store.Filter, error) {
	filter, err := s.Local.Load(ctx, name, header)
	if err == nil {
		err = s.Clear(ctx)
	}
	return filter, err
}

// TestFlushedMeanwhile: a RESTORE or BF.MERGE during which all names are deleted
// creates nothing, and says why.
func TestFlushedMeanwhile(t *testing.T) {
	const want = "-ERR all keys were deleted while this one was being made: send the command again\r\n"
	local := openLocal(t, 0)
	_, addr, _ := serveOn(t, flushesOnLoad{local}, Config{}, transports["loops"])
	w := connect(t, addr)
	for _, name := range []string{"RESTORE", "BF.MERGE"} {
		w.expect(t, "BF.ADD f a", ":1\r\n")
		long := []string{"BF.MERGE", "new", "f"}
		if name == "RESTORE" {
			long = []string{"RESTORE", "new", "0", w.payloadOf(t, "f")}
		}
		if got, err := w.raw(command(long...)); err != nil || got != want {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
		w.expect(t, "DBSIZE", ":0\r\n")
	}
}
