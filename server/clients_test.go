package server

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// TestRueidisCache checks the cache of rueidis: the second read of a key is answered
// without the server, until another client changes the key.
func TestRueidisCache(t *testing.T) {
	addr := startServer(t, Config{})
	var invalidated atomic.Int64
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	listener, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, OnInvalidations: func(m []rueidis.RedisMessage) { invalidated.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	other := connect(t, addr)
	ctx := t.Context()
	ask := func(c rueidis.Client, item string) (yes, cached bool) {
		t.Helper()
		reply := c.DoCache(ctx, c.B().BfExists().Key("k").Item(item).Cache(), time.Minute)
		yes, err := reply.AsBool()
		if err != nil {
			t.Fatal(err)
		}
		return yes, reply.IsCacheHit()
	}
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not within 10 seconds", what)
			}
		}
	}
	changes := []string{"BF.ADD k x", "DEL k", "BF.ADD k x", "RENAME k l", "RENAME l k", "PEXPIRE k 20", "BF.MADD k x y",
		"FLUSHALL", "BF.ADD k x", "BF.INSERT k ITEMS z"}
	for _, change := range changes {
		for _, c := range []rueidis.Client{client, listener} {
			ask(c, "x")
			if _, cached := ask(c, "x"); !cached {
				t.Fatalf("before %s: the second question went to the server", change)
			}
		}
		before := invalidated.Load()
		other.must(t, change)
		until(change, func() bool { return invalidated.Load() > before })
		exists := other.must(t, "BF.EXISTS k x") == ":1\r\n"
		until(change+": the new answer", func() bool { yes, _ := ask(client, "x"); return yes == exists })
		if change == "PEXPIRE k 20" {
			until("the end of the key", func() bool { yes, _ := ask(client, "x"); return !yes })
		}
	}

	// Many at once, and the server says that it tracks.
	replies := client.DoMultiCache(ctx, rueidis.CT(client.B().BfExists().Key("k").Item("x").Cache(), time.Minute),
		rueidis.CT(client.B().Ttl().Key("k").Cache(), time.Minute))
	for _, reply := range replies {
		if reply.Error() != nil {
			t.Error(reply.Error())
		}
	}
	if info := other.must(t, "INFO clients"); strings.Contains(info, "tracking_clients:0\r\n") {
		t.Errorf("INFO clients: got %q, want tracking clients", info)
	}
}

// TestRueidisCuckoo builds the CF commands as rueidis does, and reads the replies as its
// users do; what it caches is invalidated by every change.
func TestRueidisCuckoo(t *testing.T) {
	addr := startServer(t, Config{})
	for _, resp2 := range []bool{false, true} {
		t.Run(fmt.Sprint("RESP2: ", resp2), func(t *testing.T) {
			ctx := t.Context()
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, AlwaysRESP2: resp2, DisableCache: resp2})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			key, b := fmt.Sprint("w", resp2), client.B()
			want := func(what string, got, want any, err error) {
				t.Helper()
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
				}
			}
			ok, err := client.Do(ctx, b.CfReserve().Key(key).Capacity(1000).Bucketsize(4).Maxiterations(30).Expansion(2).Build()).ToString()
			want("CfReserve", ok, "OK", err)
			yes, err := client.Do(ctx, b.CfAdd().Key(key).Item("a").Build()).AsBool()
			want("CfAdd", yes, true, err)
			yes, err = client.Do(ctx, b.CfAddnx().Key(key).Item("a").Build()).AsBool()
			want("CfAddnx", yes, false, err)
			all, err := client.Do(ctx, b.CfInsert().Key(key).Capacity(100).Nocreate().Items().Item("b", "c").Build()).AsBoolSlice()
			want("CfInsert", all, []bool{true, true}, err)
			numbers, err := client.Do(ctx, b.CfInsertnx().Key(key).Items().Item("c", "d").Build()).AsIntSlice()
			want("CfInsertnx", numbers, []int64{0, 1}, err)
			n, err := client.Do(ctx, b.CfCount().Key(key).Item("a").Build()).AsInt64()
			want("CfCount", n, 1, err)
			all, err = client.Do(ctx, b.CfMexists().Key(key).Item("a", "z").Build()).AsBoolSlice()
			want("CfMexists", all, []bool{true, false}, err)
			info, err := client.Do(ctx, b.CfInfo().Key(key).Build()).AsIntMap()
			want("CfInfo", info["Number of items inserted"], 4, err)
			dump, err := client.Do(ctx, b.CfScandump().Key(key).Iterator(0).Build()).ToArray()
			want("CfScandump", len(dump), 2, err)
			header, err := dump[1].ToString()
			want("the header", len(header), 38, err)
			ok, err = client.Do(ctx, b.CfLoadchunk().Key(key+"copy").Iterator(1).Data(header).Build()).ToString()
			want("CfLoadchunk", ok, "OK", err)
			if resp2 { // has no cache
				return
			}

			exists := func() (yes, cached bool) {
				reply := client.DoCache(ctx, b.CfExists().Key(key).Item("a").Cache(), time.Minute)
				yes, err := reply.AsBool()
				if err != nil {
					t.Fatal(err)
				}
				return yes, reply.IsCacheHit()
			}
			for _, change := range []struct {
				line string
				want bool
			}{
				{"CF.DEL " + key + " a", false}, {"CF.ADDNX " + key + " a", true}, {"CF.DEL " + key + " a", false},
				{"CF.INSERT " + key + " ITEMS a", true}, {"DEL " + key, false}, {"CF.ADD " + key + " a", true},
			} {
				exists()
				if _, cached := exists(); !cached {
					t.Fatalf("before %s: the second question went to the server", change.line)
				}
				connect(t, addr).must(t, change.line)
				for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
					if yes, _ := exists(); yes == change.want {
						break
					} else if time.Now().After(end) {
						t.Fatalf("%s: the old answer is still in the cache", change.line)
					}
				}
			}
		})
	}
}

// redisCLI runs redis-cli with some input, and returns its output.
func redisCLI(t *testing.T, addr, input string, args ...string) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	out, err := runProgram(t, "redis-cli", input, append([]string{"-h", host, "-p", port}, args...)...)
	if err != nil {
		t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func runProgram(t *testing.T, name, input string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%v: run make redis, which installs it", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// conversation is every BF and CF command, as people type it, and what redis-cli prints for
// RESP2 and, if different, for RESP3.
var conversation = []struct{ send, want, want3 string }{
	{"BF.RESERVE f 0.01 100", "OK", ""},
	{"bf.add f a", "(integer) 1", "(true)"},
	{"BF.ADD f a", "(integer) 0", "(false)"},
	{"BF.MADD f b c", "1) (integer) 1\n2) (integer) 1", "1) (true)\n2) (true)"},
	{"BF.EXISTS f b", "(integer) 1", "(true)"},
	{"BF.MEXISTS f b z", "1) (integer) 1\n2) (integer) 0", "1) (true)\n2) (false)"},
	{"BF.INSERT g CAPACITY 10 ERROR 0.1 NONSCALING ITEMS a", "1) (integer) 1", "1) (true)"},
	{"BF.CARD f", "(integer) 3", ""},
	{"BF.INFO f ITEMS", "1) (integer) 3", "1# Number of items inserted => (integer) 3"},
	{"BF.DEBUG g", "1) \"size:1\"\n2) \"bytes:8 bits:64 hashes:4 hashwidth:64 capacity:10 size:1 ratio:0.1\"", ""},
	{"BF.SCANDUMP g 9999", "1) (integer) 0\n2) \"\"", ""},
	{"BF.LOADCHUNK g 9999 abc", "(error) ERR invalid offset - no link found", ""},
	{"BF.SWAP f g", "OK", ""},
	{"BF.EXISTS g c", "(integer) 1", "(true)"},
	{"TYPE g", "MBbloom--", ""},
	{"BF.RESERVE h 0.01 100 LAYOUT COUNTING", "OK", ""},
	{"BF.MADD h a a b", "1) (integer) 1\n2) (integer) 0\n3) (integer) 1", "1) (true)\n2) (false)\n3) (true)"},
	{"BF.COUNT h a", "(integer) 2", ""},
	{"BF.DEL h b", "(integer) 1", "(true)"},
	{"BF.MDEL h b a", "1) (integer) 0\n2) (integer) 1", "1) (false)\n2) (true)"},
	{"BF.INFO h REFUSED", "1) (integer) 1", "1# Number of removals refused => (integer) 1"},
	{"CF.RESERVE c 100 EXPANSION 0", "OK", ""},
	{"cf.add c a", "(integer) 1", "(true)"},
	{"CF.ADDNX c a", "(integer) 0", "(false)"},
	{"CF.INSERT c ITEMS a b", "1) (integer) 1\n2) (integer) 1", "1) (true)\n2) (true)"},
	{"CF.INSERTNX c ITEMS a c", "1) (integer) 0\n2) (integer) 1", ""},
	{"CF.EXISTS c b", "(integer) 1", "(true)"},
	{"CF.MEXISTS c b z", "1) (integer) 1\n2) (integer) 0", "1) (true)\n2) (false)"},
	{"CF.COUNT c a", "(integer) 2", ""},
	{"CF.DEL c a", "(integer) 1", "(true)"},
	{"CF.DEL none a", "(error) Not found", ""},
	{"CF.COMPACT c", "OK", ""},
	{"CF.DEBUG c", "\"bktsize:2 buckets:64 items:3 deletes:0 filters:1 max_iterations:20 expansion:0\"", ""},
	{"CF.SCANDUMP c 999", "1) (integer) 0\n2) (nil)", ""},
	{"CF.LOADCHUNK c 999 abc", "(error) Couldn't load chunk!", ""},
	{"TYPE c", "MBbloomCF", ""},
	{"DEL f g h c", "(integer) 4", ""},
}

func TestRedisCLI(t *testing.T) {
	addr := startServer(t, Config{})
	for _, protocol := range []string{"-2", "-3"} {
		for _, line := range conversation {
			want := line.want
			if protocol == "-3" && line.want3 != "" {
				want = line.want3
			}
			got := strings.TrimSpace(redisCLI(t, addr, "", append([]string{"--no-raw", protocol}, words(t, line.send)...)...))
			if got != want {
				t.Errorf("redis-cli %s %s: got %q, want %q", protocol, line.send, got, want)
			}
		}
	}

	// Its own modes: lines from a pipe, the protocol from a pipe, and scanning.
	if got := redisCLI(t, addr, "BF.ADD x 1\nBF.ADD x 2\nSELECT 3\nBF.CARD x\n"); got != "1\n1\nOK\n0\n" {
		t.Errorf("lines: got %q", got)
	}
	var protocol strings.Builder
	for i := range 10_000 {
		protocol.WriteString(command("BF.ADD", "piped", fmt.Sprint(i)))
	}
	if got := redisCLI(t, addr, protocol.String(), "--pipe"); !strings.Contains(got, "errors: 0, replies: 10000") {
		t.Errorf("--pipe: got %q, want 10000 replies and no error", got)
	}
	if got := redisCLI(t, addr, "BF.ADD x 3\nBF.ADD x 4\n", "--pipe"); !strings.Contains(got, "errors: 0, replies: 2") {
		t.Errorf("--pipe of lines: got %q, want 2 replies and no error", got)
	}
	for _, mode := range []struct{ flag, want string }{
		{"--scan", "piped"}, {"--bigkeys", "Sampled 2 keys"}, {"--memkeys", "Sampled 2 keys"},
	} {
		if got := redisCLI(t, addr, "", mode.flag); !strings.Contains(got, mode.want) {
			t.Errorf("%s: got %q, want %q in it", mode.flag, got, mode.want)
		}
	}
	if got := redisCLI(t, addr, "", "INFO", "keyspace"); !strings.Contains(got, "db0:keys=2,") {
		t.Errorf("INFO keyspace: got %q, want 2 keys in db0", got)
	}
	host, port, _ := net.SplitHostPort(addr)
	if out, err := runProgram(t, "redis-cli", "", "-h", host, "-p", port, "--rdb", t.TempDir()+"/dump.rdb"); err == nil {
		t.Errorf("--rdb: got %q, want a failure: there is no replication", out)
	}
}

func TestRedisBenchmark(t *testing.T) {
	addr := startServer(t, Config{})
	host, port, _ := net.SplitHostPort(addr)
	for _, args := range [][]string{
		{"-n", "2000", "-c", "8", "BF.ADD", "k", "__rand_int__"},
		{"-n", "20000", "-c", "8", "-P", "16", "-r", "100000", "BF.ADD", "k", "__rand_int__"},
		{"-3", "-n", "20000", "-c", "8", "-P", "16", "-r", "100000", "BF.EXISTS", "k", "__rand_int__"},
		{"-n", "2000", "-c", "4", "-t", "ping_inline,ping_mbulk,set,get"},
	} {
		out, err := runProgram(t, "redis-benchmark", "", append([]string{"-h", host, "-p", port, "-q"}, args...)...)
		if err != nil || !strings.Contains(out, "requests per second") || strings.Contains(strings.ToLower(out), "error") {
			t.Errorf("redis-benchmark %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	w := connect(t, addr)
	if got := w.must(t, "BF.CARD k"); got == ":0\r\n" {
		t.Error("redis-benchmark has added nothing")
	}
}
