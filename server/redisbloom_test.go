package server

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/bloomery/bloom/store"
)

// TestHeaderGrowth compares the growth in headers of filters without growth with
// RedisBloom's, which keeps what it was given; also after a restart.
func TestHeaderGrowth(t *testing.T) {
	config := store.LocalConfig{Dir: t.TempDir()}
	local, err := store.OpenLocal(config)
	if err != nil {
		t.Fatal(err)
	}
	type header struct {
		options, growth uint32
	}
	const fixed, grows = 13, 5
	want := map[string]header{}
	s, addr, served := serveOn(t, local, Config{}, transports["loops"])
	w := connect(t, addr)
	check := func() {
		t.Helper()
		for name, want := range want {
			items := w.ask(t, "BF.SCANDUMP", name, "0").Items
			if len(items) != 2 {
				t.Fatalf("%s is not there", name)
			}
			b := []byte(items[1].Text)
			if got := (header{binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:])}); got != want {
				t.Errorf("%s: options and growth %v, want %v", name, got, want)
			}
		}
	}
	for _, tt := range []struct {
		line string
		want header
	}{
		{"BF.RESERVE %s 0.01 100", header{grows, 2}},
		{"BF.RESERVE %s 0.01 100 NONSCALING", header{fixed, 2}},
		{"BF.RESERVE %s 0.01 100 EXPANSION 0", header{fixed, 0}},
		{"BF.RESERVE %s 0.01 100 EXPANSION 0 NONSCALING", header{fixed, 0}},
		{"BF.INSERT %s NONSCALING ITEMS a", header{fixed, 2}},
		{"BF.INSERT %s EXPANSION 5 NONSCALING ITEMS a", header{fixed, 5}},
		{"BF.INSERT %s NONSCALING EXPANSION 5 ITEMS a", header{fixed, 5}},
		{"BF.INSERT %s EXPANSION 0 ITEMS a", header{fixed, 0}},
		{"BF.INSERT %s EXPANSION 5 ITEMS a", header{grows, 5}},
	} {
		line := strings.Replace(tt.line, "%s", fmt.Sprintf("k%d", len(want)), 1)
		want[fmt.Sprintf("k%d", len(want))] = tt.want
		if got := w.must(t, line); got != "+OK\r\n" && got != "*1\r\n:1\r\n" {
			t.Errorf("%s: %q", line, got)
		}
	}
	for factor, tt := range map[string]header{"0": {fixed, 0}, "3": {grows, 3}} {
		w.askOK(t, "CONFIG", "SET", "bf-expansion-factor", factor)
		w.ask(t, "BF.ADD", "added"+factor, "a")
		w.askOK(t, "BF.RESERVE", "fixed"+factor, "0.01", "100", "NONSCALING")
		want["added"+factor] = tt
		want["fixed"+factor] = header{fixed, tt.growth}
	}
	check()
	w.expect(t, "BF.INFO k2 EXPANSION", "*1\r\n$-1\r\n")
	w.askOK(t, "BF.RESERVE", "ends", "0.01", "100", "EXPANSION", "0", "TTL", "4000")
	if got := w.must(t, "TTL ends"); got != ":4000\r\n" && got != ":3999\r\n" {
		t.Errorf("TTL of a filter without growth: %q", got)
	}

	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-served
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
	if local, err = store.OpenLocal(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	_, addr, _ = serveOn(t, local, Config{}, transports["loops"])
	w = connect(t, addr)
	check()
}

// TestItemsWithoutRoom adds items when no new one can be accepted: each is answered,
// existing ones with 0, as in RedisBloom. Only a filter without growth ends the reply
// where it is full.
func TestItemsWithoutRoom(t *testing.T) {
	const oom = "-OOM problem inserting into filter: "
	w := connectLocal(t, 16<<10)
	w.askOK(t, "BF.RESERVE", "k", "0.01", "5000")
	for i := range 10_000 {
		if strings.HasPrefix(w.must(t, fmt.Sprintf("BF.ADD k item%d", i)), oom) {
			break
		}
	}
	for _, line := range []string{"BF.MADD k zzz item0 yyy item0", "BF.INSERT k ITEMS zzz item0 yyy item0"} {
		got := strings.Split(w.must(t, line), "\r\n")
		if len(got) != 6 || got[0] != "*4" || !strings.HasPrefix(got[1], oom) || got[2] != ":0" || got[3] != got[1] || got[4] != ":0" {
			t.Errorf("%s: %q", line, got)
		}
	}
	w.send(t, command("BF.ADD", "k", "item0")+command("BF.ADD", "k", "zzz")+command("BF.MADD", "k", "item0", "zzz"))
	if got := w.read(t); got.Integer != 0 || got.Text != "" {
		t.Errorf("an item that is there: %v", got)
	}
	if got := w.read(t); !strings.HasPrefix(got.Text, "OOM ") {
		t.Errorf("one that is not: %v", got)
	}
	if got := w.read(t); len(got.Items) != 2 || !strings.HasPrefix(got.Items[1].Text, "OOM ") {
		t.Errorf("both: %v", got)
	}
	w.askOK(t, "BF.RESERVE", "full", "0.01", "2", "NONSCALING")
	w.expect(t, "BF.MADD full a b a c d a", "*4\r\n:1\r\n:1\r\n:0\r\n-ERR non scaling filter is full\r\n")
}

// TestRedisBloomTexts checks replies that once differed from RedisBloom 2.8.20 and that
// of Redis 8 for no reason.
func TestRedisBloomTexts(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	const badRate, rateRange = "-ERR bad error rate\r\n", "-ERR error rate must be in the range (0.000000, 1.000000)\r\n"
	for _, tt := range [][2]string{
		{"BF.RESERVE hex 0x0.1 100", "+OK\r\n"}, {"BF.RESERVE hex2 0X1p-4 100", "+OK\r\n"}, {"BF.RESERVE x 0x10 100", rateRange},
		{"BF.RESERVE x 0x 100", badRate}, {"BF.RESERVE x 0x1p 100", badRate},
		{"BF.RESERVE x 1e-400 100", badRate}, {"BF.RESERVE x 0." + strings.Repeat("0", 500) + "1 100", badRate},
		{"BF.RESERVE x 0e-400 100", rateRange}, {"BF.RESERVE x 0.0 100", rateRange},
		{"BF.RESERVE x 1_0e-3 100", badRate}, {"BF.RESERVE x 1e400 100", badRate}, {"BF.RESERVE x inf 100", rateRange}, {"BF.RESERVE x nan 100", badRate},
		{"BF.INSERT hex3 ERROR 0x0.1 ITEMS a", "*1\r\n:1\r\n"}, {"BF.INSERT x ERROR 1e-400 ITEMS a", "-Bad error rate\r\n"},
		{"BF.RESERVE x 0.1 5 EXPANSION 65536 NONSCALING", "-Nonscaling filters cannot expand\r\n"},
		{"BF.RESERVE x 0.1 5 EXPANSION 65536", "-ERR expansion must be in the range [0, 32768]\r\n"},
		{"BF.RESERVE x 0.1 5 EXPANSION -1", "-ERR expansion must be in the range [0, 32768]\r\n"},
		{"BF.RESERVE x 0.1 5 EXPANSION", "-ERR no expansion\r\n"}, {"BF.RESERVE x 0.1 5 EXPANSION y", "-ERR bad expansion\r\n"},
		{"BF.RESERVE twice 0.1 5 EXPANSION 2 EXPANSION", "+OK\r\n"},
		{"BF.LOADCHUNK twice 1 a", "-ERR invalid offset - no link found\r\n"},
		{"BF.LOADCHUNK twice 2 abc", "-ERR received bad data\r\n"},
		{"BF.LOADCHUNK twice -9223372036854775808 a", "-ERR received bad data\r\n"},
		{"CONFIG SET bf-error-rate 0.3", "+OK\r\n"}, {"CONFIG GET bf-error-rate", "*2\r\n$13\r\nbf-error-rate\r\n$4\r\n0.25\r\n"},
	} {
		w.expect(t, tt[0], tt[1])
	}
	for _, name := range []string{"hex", "hex2", "hex3"} {
		if got := w.must(t, "BF.DEBUG "+name); !strings.Contains(got, " ratio:0.03125\r\n") { // half of 1/16
			t.Errorf("%s: %q, want a rate of 1 in 16", name, got)
		}
	}
}

// TestMergeMakes merges into a new name: it gets the same layers, even if the source
// has grown, and does not expire when the source does.
func TestMergeMakes(t *testing.T) {
	w := connectLocal(t, 1<<30)
	for _, kind := range []string{"", "LAYOUT PAIRED NONSCALING"} {
		w.must(t, "FLUSHALL")
		for _, name := range []string{"a", "b"} {
			w.askOK(t, append([]string{"BF.RESERVE", name, "0.01", "1000", "TTL", "5000"}, strings.Fields(kind)...)...)
			count := 450
			if kind == "" {
				count = 5000 // in several layers
			}
			w.ask(t, numbered(name, count, "BF.MADD", name)...)
		}
		w.expect(t, "BF.MERGE all a b", "+OK\r\n")
		w.expect(t, "TTL all", ":-1\r\n")
		w.wantAll(t, "all", "a", 450)
		w.wantAll(t, "all", "b", 450)
		if got, want := w.must(t, "BF.INFO all FILTERS"), w.must(t, "BF.INFO a FILTERS"); got != want {
			t.Errorf("layers: %q, of the source %q", got, want)
		}
		if got := w.must(t, "BF.ADD all another"); got != ":1\r\n" {
			t.Errorf("an item more: %q", got)
		}
	}
}
