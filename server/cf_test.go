package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
)

// dumpCuckoo returns the iterators and the chunks of a dump.
func (w *wire) dumpCuckoo(t *testing.T, name string) (iterators, chunks []string) {
	t.Helper()
	for next := "0"; ; {
		reply := w.ask(t, "CF.SCANDUMP", name, next)
		if len(reply.Items) != 2 {
			t.Fatalf("CF.SCANDUMP %s %s: %v", name, next, reply)
		}
		if next = fmt.Sprint(reply.Items[0].Integer); next == "0" {
			return iterators, chunks
		}
		iterators, chunks = append(iterators, next), append(chunks, reply.Items[1].Text)
	}
}

// TestCuckooCopy copies a filter of several sub-filters, from which items were removed,
// chunk by chunk: the copy has the same dump, and goes on as the original does.
func TestCuckooCopy(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	w.askOK(t, "CF.RESERVE", "from", "1000", "EXPANSION", "2")
	w.ask(t, numbered("item", 5000, "CF.INSERT", "from", "ITEMS")...)
	for i := range 100 {
		w.expect(t, fmt.Sprint("CF.DEL from item", i), ":1\r\n")
	}
	iterators, chunks := w.dumpCuckoo(t, "from")
	if len(chunks) < 4 {
		t.Fatalf("%d chunks, want a header and several sub-filters", len(chunks))
	}
	for i := range chunks {
		w.askOK(t, "CF.LOADCHUNK", "to", iterators[i], chunks[i])
	}
	for _, line := range []string{"CF.DEBUG %s", "CF.INFO %s", "CF.COUNT %s item7", "CF.ADD %s item7", "CF.DEL %s item200", "CF.COMPACT %s", "CF.INFO %s"} {
		if from, to := w.must(t, fmt.Sprintf(line, "from")), w.must(t, fmt.Sprintf(line, "to")); from != to {
			t.Errorf(line+": %q, and of the copy %q", "", from, to)
		}
	}
	_, original := w.dumpCuckoo(t, "from")
	if _, copied := w.dumpCuckoo(t, "to"); !slices.Equal(original, copied) {
		t.Error("the copy's dump differs")
	}
	for i, item := range w.ask(t, numbered("item", 5000, "CF.MEXISTS", "to")...).Items {
		if i >= 100 && i != 200 && item.Integer != 1 {
			t.Fatalf("item%d was added and is absent", i)
		}
	}

	// A chunk that does not fit changes nothing.
	for _, iterator := range []string{"2", "-7", "40", "1000000"} {
		if got := w.ask(t, "CF.LOADCHUNK", "to", iterator, strings.Repeat("x", 5000)); got.Text != "Couldn't load chunk!" {
			t.Errorf("CF.LOADCHUNK with iterator %s: %v", iterator, got)
		}
	}
	if _, copied := w.dumpCuckoo(t, "to"); !slices.Equal(original, copied) {
		t.Error("a chunk that was refused has changed the filter")
	}
}

// TestCuckooMemory reserves, loads and grows filters for which there is no memory.
func TestCuckooMemory(t *testing.T) {
	local := openLocal(t, 1<<20)
	w := connect(t, serve(t, local, Config{}))
	refused := func(reply resp.Reply, want string) {
		t.Helper()
		if reply.Kind != resp.SimpleError || !strings.HasPrefix(reply.Text, want) {
			t.Errorf("got %.200v, want an error that begins with %q", reply, want)
		}
	}
	refused(w.ask(t, "CF.RESERVE", "c", "1073741824"), "ERR Insufficient memory to create filter: ")
	refused(w.ask(t, "CF.INSERT", "c", "CAPACITY", "1073741824", "ITEMS", "a"), "ERR Insufficient memory to create filter: ")
	header := func(buckets, layers uint64, slots, growth uint16) string {
		b := binary.LittleEndian.AppendUint64(nil, 1)
		for _, field := range []uint64{buckets, 0, layers} {
			b = binary.LittleEndian.AppendUint64(b, field)
		}
		for _, field := range []uint16{slots, 20, growth} {
			b = binary.LittleEndian.AppendUint16(b, field)
		}
		return string(b)
	}
	for _, hostile := range []string{
		header(1<<30, 1, 2, 1), header(1<<20, 32, 255, 1), header(1, 32, 255, 32768), header(1<<62, 1, 255, 1), header(1<<16, 12, 16, 2),
	} {
		refused(w.ask(t, "CF.LOADCHUNK", "c", "1", hostile), "Couldn't create filter!")
	}
	if used, _ := local.Usage(); used != 0 {
		t.Errorf("%d bytes are used after refusals, want none", used)
	}

	// One that grows keeps what was accepted, and answers each item that was not.
	w.askOK(t, "CF.RESERVE", "c", "65536", "EXPANSION", "4")
	items := numbered("item", 200_000)
	var stored []string
	for len(items) > 0 && len(stored) < 150_000 {
		part := items[:1000]
		items = items[1000:]
		reply := w.ask(t, append([]string{"CF.INSERTNX", "c", "ITEMS"}, part...)...)
		if len(reply.Items) != len(part) {
			t.Fatalf("%d answers to %d items: %.200v", len(reply.Items), len(part), reply)
		}
		if at := slices.IndexFunc(reply.Items, func(item resp.Reply) bool { return item.Kind == resp.SimpleError }); at >= 0 {
			refused(reply.Items[at], "OOM ")
			stored = append(stored, part[:at]...)
			break
		}
		stored = append(stored, part...)
	}
	if len(items) == 0 || len(stored) < 30_000 {
		t.Fatalf("stored %d items, %d left", len(stored), len(items))
	}
	reply := w.ask(t, append([]string{"CF.INSERTNX", "c", "ITEMS", items[0]}, stored[:100]...)...)
	for _, item := range reply.Items[1:] {
		if item.Kind == resp.SimpleError || item.Integer == 1 {
			t.Fatalf("items that are there: %.300v", reply)
		}
	}
	for i, item := range w.ask(t, append([]string{"CF.MEXISTS", "c"}, stored...)...).Items {
		if item.Integer != 1 {
			t.Fatalf("%s was added and is absent", stored[i])
		}
	}
	if used, limit := local.Usage(); used > limit {
		t.Errorf("%d bytes are used, of %d", used, limit)
	}
}

// TestCuckooLayers fills a filter up to its 32 sub-filters within a command: items that do
// not fit are answered as such, and a further command gets RedisBloom's error.
func TestCuckooLayers(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	for _, tt := range []struct {
		insert, want string
		items        []string
	}{
		{"CF.INSERT", "*3\r\n:1\r\n:-1\r\n:-1\r\n", []string{"same", "same", "same"}},
		{"CF.INSERTNX", "*3\r\n:1\r\n:0\r\n:-1\r\n", []string{"other", "same", "another"}},
	} {
		w.expect(t, "CF.RESERVE m 4", "+OK\r\n")
		for range 62 {
			w.expect(t, "CF.ADD m same", ":1\r\n")
		}
		if got, err := w.raw(command(append([]string{tt.insert, "m", "ITEMS"}, tt.items...)...)); got != tt.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", tt.insert, got, err, tt.want)
		}
		w.expect(t, tt.insert+" m ITEMS third fourth", "-Maximum expansions reached\r\n")
		w.expect(t, "DEL m", ":1\r\n")
	}
}

// TestCuckooWatch changes a filter that another client watches.
func TestCuckooWatch(t *testing.T) {
	addr := startServer(t, Config{})
	w, other := connect(t, addr), connect(t, addr)
	for _, tt := range []struct {
		change string
		fails  bool
	}{
		{"CF.RESERVE c 100", true}, {"CF.RESERVE c 100", false}, {"CF.ADD c a", true}, {"CF.INSERT c ITEMS b", true}, {"CF.DEL c a", true},
		{"CF.COMPACT c", true}, {"CF.EXISTS c a", false}, {"CF.INFO c", false}, {"CF.SCANDUMP c 0", false}, {"DEL c", true},
	} {
		w.expect(t, "WATCH c", "+OK\r\n")
		other.must(t, tt.change)
		w.expect(t, "MULTI", "+OK\r\n")
		w.expect(t, "PING", "+QUEUED\r\n")
		if got := w.must(t, "EXEC"); (got == "*-1\r\n") != tt.fails {
			t.Errorf("%s while it was watched: EXEC answers %q", tt.change, got)
		}
	}
}

// TestCuckooReadOnly sends every CF command as a client that may only read.
func TestCuckooReadOnly(t *testing.T) {
	addr := startServer(t, Config{Password: "full", ReadOnlyPassword: "read"})
	w := connect(t, addr)
	w.expect(t, "AUTH read", "+OK\r\n")
	for _, line := range []string{"CF.RESERVE c 100", "CF.ADD c a", "CF.ADDNX c a", "CF.INSERT c ITEMS a", "CF.INSERTNX c ITEMS a", "CF.DEL c a",
		"CF.COMPACT c", "CF.LOADCHUNK c 1 a", "BF.DEL c a", "BF.MDEL c a"} {
		if got := w.must(t, line); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("%s: got %q, want it refused", line, got)
		}
	}
	for _, line := range []string{"CF.EXISTS c a", "CF.COUNT c a", "BF.COUNT c a"} {
		w.expect(t, line, ":0\r\n")
	}
}

// TestCuckooPieces loads a chunk that is longer than those that CF.SCANDUMP makes.
func TestCuckooPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("48 MiB are sent")
	}
	const slots = 32 << 20
	w := connect(t, startServer(t, Config{Limits: Limits{PayloadBytes: 64 << 20}}))
	w.askOK(t, "CF.RESERVE", "from", fmt.Sprint(slots), "BUCKETSIZE", "1")
	w.ask(t, "CF.ADD", "from", "a")
	iterators, chunks := w.dumpCuckoo(t, "from")
	if len(chunks) != 3 {
		t.Fatalf("%d chunks, want a header and two of 16 MiB", len(chunks))
	}
	w.askOK(t, "CF.LOADCHUNK", "to", iterators[0], chunks[0])
	whole := chunks[1] + chunks[2]
	if got := w.ask(t, "CF.LOADCHUNK", "to", iterators[2], whole+"x"); got.Kind != resp.SimpleError {
		t.Errorf("a byte too many: %.100v", got)
	}
	w.expect(t, "CF.EXISTS to a", ":0\r\n")
	w.askOK(t, "CF.LOADCHUNK", "to", iterators[2], whole)
	w.expect(t, "CF.EXISTS to a", ":1\r\n")
	if _, copied := w.dumpCuckoo(t, "to"); !bytes.Equal([]byte(copied[1]), []byte(chunks[1])) || copied[2] != chunks[2] {
		t.Error("the copy's dump differs")
	}
}
