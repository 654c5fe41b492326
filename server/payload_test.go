package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/long"
	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// sendLong sends a command whose last argument is long, and returns the reply.
func (w *wire) sendLong(t testing.TB, value []byte, args ...string) resp.Reply {
	t.Helper()
	head := fmt.Sprintf("*%d\r\n", len(args)+1)
	for _, arg := range args {
		head += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	w.SetDeadline(time.Now().Add(time.Minute))
	buffers := net.Buffers{[]byte(head + fmt.Sprintf("$%d\r\n", len(value))), value, []byte("\r\n")}
	if _, err := buffers.WriteTo(w.Conn); err != nil {
		t.Fatalf("%v of %d bytes: %v", args, len(value), err)
	}
	return w.read(t)
}

// fastWire is a connection for long replies.
func fastWire(t testing.TB, addr string) *wire {
	t.Helper()
	w := connect(t, addr)
	return w
}

// TestLargeFiltersMove dumps and restores filters that are larger than an item may be,
// and than a client could leave unread.
func TestLargeFiltersMove(t *testing.T) {
	long.Test(t)
	sizes := []int{29_000_000, 125_000_000} // 34 MiB, 143 MiB
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, keys := range sizes {
		for name, wrap := range transports {
			if keys > sizes[0] && name != "loops" {
				continue // the other one reads and writes the same
			}
			t.Run(fmt.Sprint(name, " ", keys), func(t *testing.T) {
				local, err := store.OpenLocal(store.LocalConfig{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { local.Close() })
				_, addr, _ := serveOn(t, local, Config{}, wrap)
				w := fastWire(t, addr)
				w.send(t, command("BF.RESERVE", "k", "0.01", fmt.Sprint(keys), "NONSCALING")+command("BF.ADD", "k", "a")+command("DUMP", "k"))
				w.read(t)
				w.read(t)
				w.SetDeadline(time.Now().Add(time.Minute))
				dump := w.read(t)
				if least := keys * 9 / 8; len(dump.Text) < least {
					t.Fatalf("DUMP answers %q with %d bytes, want %d at least", dump.Kind, len(dump.Text), least)
				}
				if reply := w.sendLong(t, []byte(dump.Text), "RESTORE", "copy", "0"); reply.Text != "OK" {
					t.Fatalf("RESTORE answers %q", reply.Text)
				}
				w.send(t, command("BF.MEXISTS", "copy", "a", "b"))
				if got := w.read(t); len(got.Items) != 2 || got.Items[0].Integer != 1 || got.Items[1].Integer != 0 {
					t.Errorf("the copy answers %v, want 1 and 0", got)
				}
			})
		}
	}
}

// TestLongChunk loads a chunk that is longer than any that BF.SCANDUMP makes.
func TestLongChunk(t *testing.T) {
	addr := startServer(t, Config{})
	w, asking := fastWire(t, addr), connect(t, addr)
	w.send(t, command("BF.RESERVE", "k", "0.01", "33000000", "NONSCALING")+command("BF.MADD", "k", "a", "b")+command("BF.SCANDUMP", "k", "0"))
	w.read(t)
	w.read(t)
	header := w.read(t).Items[1].Text
	var chunk []byte
	for next := int64(1); ; {
		w.send(t, command("BF.SCANDUMP", "k", fmt.Sprint(next)))
		items := w.read(t).Items
		if next = items[0].Integer; next == 0 {
			break
		}
		chunk = append(chunk, items[1].Text...)
	}
	if len(chunk) < 37<<20 {
		t.Fatalf("a dump of %d bytes, want 37 MiB", len(chunk))
	}
	end := fmt.Sprint(len(chunk) + 1)
	if reply := w.sendLong(t, []byte(header), "BF.LOADCHUNK", "copy", "1"); reply.Text != "OK" {
		t.Fatal(reply.Text)
	}
	if reply := w.sendLong(t, append(chunk, 0), "BF.LOADCHUNK", "copy", fmt.Sprint(len(chunk)+2)); reply.Text != "ERR invalid chunk - Too big for current filter" {
		t.Errorf("a chunk of a byte too many: %q", reply.Text)
	}
	asking.expect(t, "BF.MEXISTS copy a b", "*2\r\n:0\r\n:0\r\n")
	if reply := w.sendLong(t, chunk, "BF.LOADCHUNK", "copy", end); reply.Text != "OK" {
		t.Fatal(reply.Text)
	}
	asking.expect(t, "BF.MEXISTS copy a b c", "*3\r\n:1\r\n:1\r\n:0\r\n")
}

// TestRefusalIsRead sends an item over the limit in one go, as clients do that read
// afterwards: they read why it is refused, and then the end.
func TestRefusalIsRead(t *testing.T) {
	t.Parallel() // it waits
	item := bytes.Repeat([]byte("x"), 40<<20)
	addr := startServer(t, Config{})
	w := fastWire(t, addr)
	start := time.Now()
	if reply := w.sendLong(t, item, "BF.ADD", "k"); reply.Text != "ERR Protocol error: invalid bulk length (limit item-bytes: 33554432)" {
		t.Errorf("got %q", reply.Text)
	}
	w.wantEnd(t, "")
	if waited := time.Since(start); waited > lingerTime {
		t.Errorf("it took %v", waited)
	}
	// One that does not read does not keep its connection.
	s, addr, _ := serveOn(t, newFakeStore(), Config{}, transports["loops"])
	w = connect(t, addr)
	w.send(t, "*2\r\n$-7\r\n")
	waitFor(t, func() bool { return s.clientCount() == 0 })
}

// TestDumpAsLongAsRestore: RESTORE accepts what DUMP returns, and what RESTORE would
// refuse, DUMP refuses with the name of the limit.
func TestDumpAsLongAsRestore(t *testing.T) {
	local, err := store.OpenLocal(store.LocalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	s, addr, _ := serveOn(t, local, Config{Limits: Limits{PayloadBytes: 50_000, ItemBytes: 1000}}, transports["loops"])
	w := connect(t, addr)
	w.expect(t, "BF.RESERVE fits 0.01 40000 NONSCALING", "+OK\r\n")
	w.expect(t, "BF.RESERVE long 0.01 43000 NONSCALING", "+OK\r\n")
	got := w.must(t, "DUMP long")
	if !strings.HasPrefix(got, "-ERR the filter's ") || !strings.Contains(got, "(limit payload-bytes: 50000)") {
		t.Errorf("DUMP of a long one: %q", got)
	}
	dump, err := resp.NewReplyReader(strings.NewReader(w.must(t, "DUMP fits")), resp.ReplyLimits{}).Read()
	if err != nil || len(dump.Text) < 47_000 {
		t.Fatalf("DUMP answers %.80q", dump.Text)
	}
	if reply := w.sendLong(t, []byte(dump.Text), "RESTORE", "copy", "0"); reply.Text != "OK" {
		t.Errorf("RESTORE answers %q", reply.Text)
	}
	if reply := w.sendLong(t, make([]byte, 50_001), "RESTORE", "copy", "0"); reply.Text != "ERR Protocol error: invalid bulk length (limit payload-bytes: 50000)" {
		t.Errorf("a payload that is too long: %q", reply.Text)
	}
	wantLines(t, scrape(t, s, HTTPConfig{}), `bloomery_refused_total{limit="payload-bytes"} 2`)
}

// TestLimitBufferBytes has clients send long incomplete commands, or leave replies
// unread: together they hold no more than the limit, the one that holds the most is
// closed, and the others continue.
func TestLimitBufferBytes(t *testing.T) {
	const limit = 8 << 20
	for _, what := range []string{"sent", "unread", "queued", "pushed"} {
		t.Run(what, func(t *testing.T) {
			var log lockedBuffer
			config := Config{Limits: Limits{BufferBytes: limit, PayloadBytes: 6 << 20}, Log: slog.New(slog.NewTextHandler(&log, nil))}
			eachTransport(t, config, func(t *testing.T, s *Server, st *fakeStore, addr string) {
				st.Set(t.Context(), "v", make([]byte, 1<<20))
				witness := connect(t, addr)
				for i := range 12 {
					w := connect(t, addr)
					w.must(t, "PING")
					switch what {
					case "sent":
						go io.WriteString(w, "*2\r\n$7\r\nRESTORE\r\n$4000000\r\n"+strings.Repeat("x", 3_000_000+i))
					case "unread":
						go io.WriteString(w, strings.Repeat(command("GET", "v"), 5))
					case "queued":
						go io.WriteString(w, command("MULTI")+strings.Repeat(command("SET", "a", strings.Repeat("x", 1<<20)), 3))
					case "pushed":
						s.eachClient(func(c *Client) {
							if c.addr == w.LocalAddr().String() {
								c.countPushed(3 << 20)
							}
						})
					}
				}
				waitFor(t, func() bool { return s.metrics.refused[limitBuffers].Load() >= 5 })
				waitFor(t, func() bool { return s.buffered.Load() <= limit })
				witness.expect(t, "PING", "+PONG\r\n")
				s.eachClient(func(c *Client) {
					if c.addr != witness.LocalAddr().String() {
						c.kill()
					}
				})
				waitFor(t, func() bool { return s.clientCount() == 1 && s.buffered.Load() == 0 })
			})
			if what != "sent" && !strings.Contains(log.String(), "limit=buffer-bytes") {
				t.Errorf("the log does not tell: %s", log.String())
			}
		})
	}
}

// TestBuffersWithinMemory bounds the buffers by the store's memory.
func TestBuffersWithinMemory(t *testing.T) {
	for memory, want := range map[uint64]int{0: 1 << 30, 1 << 20: 64 << 20, 400 << 20: 200 << 20, 1 << 40: 1 << 30} {
		l := Limits{}.within(memory).filled()
		if l.BufferBytes != want || l.PayloadBytes != min(512<<20, want) {
			t.Errorf("with %d bytes of memory: %d in buffers, payloads of %d", memory, l.BufferBytes, l.PayloadBytes)
		}
	}
}

// TestRestoreRefusals: a payload with a wrong checksum is damaged, and one with the
// right checksum may not be a filter.
func TestRestoreRefusals(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	w.must(t, "BF.ADD k a")
	reply, err := resp.NewReplyReader(strings.NewReader(w.must(t, "DUMP k")), resp.ReplyLimits{}).Read()
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte(reply.Text)
	damaged[20] ^= 1
	text := append([]byte("\x00\x01a"), reply.Text[len(reply.Text)-10:len(reply.Text)-8]...) // the string "a", and the version
	text = binary.LittleEndian.AppendUint64(text, ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), text))
	for _, tt := range []struct {
		payload []byte
		want    string
	}{
		{damaged, "ERR DUMP payload version or checksum are wrong"},
		{damaged[:50], "ERR DUMP payload version or checksum are wrong"},
		{nil, "ERR DUMP payload version or checksum are wrong"},
		{text, "ERR Bad data format: redis-dump: bloom: not a filter file: a value of kind 0, not of a module"},
		{[]byte(reply.Text), "OK"},
	} {
		if got := w.sendLong(t, tt.payload, "RESTORE", "copy", "0"); got.Text != tt.want {
			t.Errorf("RESTORE of %d bytes: %q, want %q", len(tt.payload), got.Text, tt.want)
		}
	}
}
