package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// TestCommandRows checks the table: each name appears once, in lower case, after its
// parent if it has one, with texts if COMMAND lists it; and no text is left over.
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
		case runKinds[r.name] != runNone && (runKinds[r.name].isLookup() != r.flags.Has(ReadOnly) || r.flags.Has(ReadOnly) == r.flags.Has(Write)):
			t.Errorf("%s: the flags and the kind of run contradict each other", r.name)
		}
		rows[r.name] = true
	}
	for name := range runKinds {
		if !rows[name] {
			t.Errorf("a kind of run for %s, which is no command", name)
		}
	}
	for name := range commandTexts {
		if !rows[name] {
			t.Errorf("texts for %s, which is no command", name)
		}
	}
}

// TestTranscripts plays each file of testdata/transcripts on one connection to a
// server of its own, and compares the replies.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(names) < 9 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			w, played := connect(t, startServer(t, Config{})), 0
			for line := range strings.Lines(string(text)) {
				sent, reply, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
				if !ok {
					t.Fatalf("%q: no =>", line)
				}
				sent = strings.TrimRight(sent, " ")
				got := strings.TrimRight(strings.ReplaceAll(w.must(t, sent), "\r\n", " "), " ")
				want, pattern := strings.CutPrefix(reply, "~")
				if pattern && !regexp.MustCompile(`^(?s:`+want+`)$`).MatchString(got) || !pattern && got != want {
					t.Errorf("%s: got %q, want %q", sent, got, reply)
				}
				played++
			}
			if played < 18 {
				t.Errorf("played %d commands, want all of the transcript", played)
			}
		})
	}
}

func TestHelloAndReset(t *testing.T) {
	addr := startServer(t, Config{Password: "full", ReadOnlyPassword: "read"})
	w := connect(t, addr)
	for _, step := range [][2]string{
		{"HELLO 3", "-NOAUTH HELLO must"}, {"PING", "-NOAUTH"}, {"HELLO 3 AUTH default wrong", "-WRONGPASS"}, {"CLIENT ID", "-NOAUTH"},
		{"HELLO 4 AUTH default full", "-NOPROTO"}, {"PING", "-NOAUTH"},
		{"HELLO 3 AUTH readonly read SETNAME me", "%7"}, {"ACL WHOAMI", "$8\r\nreadonly"}, {"CLIENT GETNAME", "$2\r\nme"},
		{"SET k v", "-NOPERM"}, {"CONFIG SET timeout 1", "-NOPERM"}, {"CLIENT LIST", "-NOPERM"}, {"FLUSHALL", "-NOPERM"},
		{"DBSIZE", ":0"},
		{"MULTI", "+OK"}, {"SELECT 3", "+QUEUED"}, {"RESET", "+RESET"}, {"PING", "-NOAUTH"}, {"hello 2 auth default full", "*14"},
		{"CLIENT GETNAME", "$-1"}, {"SET k v", "+OK"}, {"CLIENT INFO", "$"},
	} {
		if got := w.must(t, step[0]); !strings.HasPrefix(got, step[1]) {
			t.Errorf("%s: got %q, want %q...", step[0], got, step[1])
		}
	}
}

func TestClientReply(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	for _, tt := range []struct{ send, want string }{
		{command("CLIENT", "REPLY", "SKIP") + command("PING") + command("ECHO", "a"), "$1\r\na\r\n"},
		{command("CLIENT", "REPLY", "OFF") + command("PING") + command("CLIENT", "REPLY", "SKIP") + command("PING") + command("CLIENT", "REPLY", "ON"), "+OK\r\n"},
		{command("CLIENT", "REPLY", "WHAT"), "-ERR syntax error\r\n"},
	} {
		if got, err := w.raw(tt.send); err != nil || got != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.send, got, err, tt.want)
		}
	}
}

func TestClientKill(t *testing.T) {
	addr := startServer(t, Config{})
	w := connect(t, addr)
	victim := func() *wire {
		v := connect(t, addr)
		v.expect(t, "CLIENT SETNAME victim", "+OK\r\n")
		return v
	}
	gone := func(how string, v *wire) {
		t.Helper()
		v.SetDeadline(time.Now().Add(time.Minute))
		if n, err := v.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: read %d bytes, %v, want a closed connection", how, n, err)
		}
	}
	v := victim()
	id := strings.Trim(v.must(t, "CLIENT ID"), ":\r\n")
	if list := w.must(t, "CLIENT LIST"); !strings.Contains(list, "name=victim") {
		t.Errorf("CLIENT LIST: got %q, want the victim in it", list)
	}
	w.expect(t, "CLIENT KILL ID "+id, ":1\r\n")
	gone("ID", v)
	v = victim()
	w.expect(t, "CLIENT KILL "+v.LocalAddr().String(), "+OK\r\n")
	gone("address", v)
	v = victim()
	w.expect(t, "CLIENT KILL TYPE normal USER default", ":1\r\n")
	gone("TYPE", v)
	w.expect(t, "CLIENT KILL SKIPME no LADDR "+addr, ":1\r\n")
	gone("itself", w)
}

func TestShutdownCommand(t *testing.T) {
	addr := startServer(t, Config{})
	w := connect(t, addr)
	w.expect(t, "SHUTDOWN WHAT", "-ERR syntax error\r\n")
	if got, err := w.raw(command("SHUTDOWN", "NOSAVE")); err == nil {
		t.Errorf("SHUTDOWN: got %q, want a closed connection", got)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a client is served after SHUTDOWN")
		}
		conn.Close()
	}
}

func TestDumpRestore(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	w.must(t, "BF.RESERVE f 0.01 10 EXPANSION 2")
	for i := range 100 {
		w.must(t, fmt.Sprintf("BF.ADD f item%d", i))
	}
	dump := w.must(t, "DUMP f")
	payload := dump[strings.Index(dump, "\r\n")+2 : len(dump)-2]
	restore := func(args ...string) string {
		got, err := w.raw(command(append([]string{"RESTORE"}, args...)...))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"f", "0", payload}, "-BUSYKEY"},
		{[]string{"g", "0", payload}, "+OK"},
		{[]string{"f", "100000", payload, "REPLACE", "IDLETIME", "5"}, "+OK"},
		{[]string{"h", "4000000000000", payload, "ABSTTL"}, "+OK"},
		{[]string{"i", "-1", payload}, "-ERR Invalid TTL value, must be >= 0"},
		{[]string{"i", "x", payload}, "-ERR value is not an integer"},
		{[]string{"i", "0", payload, "WHAT"}, "-ERR syntax error"},
		{[]string{"i", "0", payload[:len(payload)-1] + "x"}, "-ERR DUMP payload version or checksum are wrong"},
		{[]string{"i", "0", ""}, "-ERR DUMP payload version or checksum are wrong"},
	} {
		if got := restore(tt.args...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("RESTORE %.40q: got %q, want %q...", tt.args, got, tt.want)
		}
	}
	for _, name := range []string{"f", "g", "h"} {
		if got := w.must(t, "DUMP "+name); got != dump {
			t.Errorf("DUMP %s differs from what was restored", name)
		}
	}
	w.expect(t, "TTL f", ":100\r\n")
	w.expect(t, "TTL g", ":-1\r\n")
	w.expect(t, "EXPIRETIME h", ":4000000000\r\n")
	w.expect(t, "KEYS *", "*3\r\n$1\r\nf\r\n$1\r\ng\r\n$1\r\nh\r\n")
	w.expect(t, "DUMP none", "$-1\r\n")
	w.must(t, "SET s x")
	if got := w.must(t, "DUMP s"); !strings.HasPrefix(got, "-ERR DUMP is for filters") {
		t.Errorf("DUMP of a string: got %q", got)
	}
}

// invalidated returns the names that pushes have declared changed; "*" means all.
func invalidated(pushes []resp.Reply) (names []string) {
	for _, push := range pushes {
		if push.Items[1].Kind == resp.Null {
			names = append(names, "*")
		}
		for _, name := range push.Items[1].Items {
			names = append(names, name.Text)
		}
	}
	return names
}

// pushed waits for the invalidations of what was just done.
func (w *wire) pushed(t *testing.T, count int) (names []string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(names) < count && time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.must(t, "PING")
		names = append(names, invalidated(w.pushes)...)
	}
	return names
}

func TestTracking(t *testing.T) {
	addr := startServer(t, Config{})
	reader, writer := connect(t, addr), connect(t, addr)
	reader.must(t, "HELLO 3")
	// With no want, nothing may arrive: a push would precede the reply to a command
	// that was sent after the writer's reply.
	check := func(what string, want ...string) {
		t.Helper()
		got := reader.pushed(t, len(want))
		if len(want) == 0 {
			time.Sleep(20 * time.Millisecond)
			got = reader.pushed(t, 0)
			reader.must(t, "PING")
			got = append(got, invalidated(reader.pushes)...)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: invalidated %q, want %q", what, got, want)
		}
	}
	reader.must(t, "CLIENT TRACKING ON")
	for _, write := range []string{
		"BF.ADD k 1", "BF.MADD k 1 2", "BF.INSERT k ITEMS 3", "EXPIRE k 100", "PERSIST k", "RENAME k l", "RENAME l k",
		"SET k v", "DEL k", "RESTORE k 0 x", "SET k v PX 30",
	} {
		reader.must(t, "BF.EXISTS k 1")
		if got := writer.must(t, write); strings.HasPrefix(got, "-") && !strings.HasPrefix(write, "RESTORE") {
			t.Fatalf("%s: %s", write, got)
		}
		check(write, "k")
	}
	reader.must(t, "EXISTS k")
	check("the end of the key", "k")
	writer.must(t, "BF.ADD k 1")
	check("a write of what was not read since")
	reader.must(t, "BF.EXISTS k 1")
	writer.must(t, "FLUSHALL")
	check("FLUSHALL", "*")
	reader.must(t, "EXISTS a b")
	reader.must(t, "SET a 1")
	check("its own write", "a")
	reader.must(t, "SELECT 5")
	reader.must(t, "EXISTS in5")
	writer.must(t, "SET in5 0")
	check("a write in another database")
	writer.must(t, "SELECT 5")
	writer.must(t, "SET in5 0")
	check("a write in the same database", "in5")
	writer.must(t, "SELECT 0")
	reader.must(t, "SELECT 0")
	reader.must(t, "CLIENT TRACKING OFF")
	reader.must(t, "EXISTS a b")
	writer.must(t, "SET b 1")
	check("off")

	reader.must(t, "CLIENT TRACKING ON OPTIN NOLOOP")
	reader.must(t, "EXISTS a")
	writer.must(t, "SET a 1")
	check("opted in to nothing")
	reader.must(t, "CLIENT CACHING YES")
	reader.must(t, "EXISTS a")
	reader.must(t, "EXISTS b") // not this one
	reader.must(t, "SET a 1")  // by itself
	reader.must(t, "CLIENT CACHING YES")
	reader.must(t, "MULTI")
	reader.must(t, "EXISTS c")
	reader.must(t, "EXISTS d")
	reader.must(t, "EXEC")
	reader.must(t, "EXISTS e")
	writer.must(t, "MSET a 1 b 1 c 1 d 1 e 1")
	check("opted in", "c", "d")
	reader.must(t, "CLIENT TRACKING OFF")

	reader.must(t, "CLIENT TRACKING ON OPTOUT")
	reader.must(t, "CLIENT CACHING NO")
	reader.must(t, "EXISTS a")
	reader.must(t, "EXISTS b")
	writer.must(t, "MSET a 1 b 1")
	check("opted out", "b")
	reader.must(t, "CLIENT TRACKING OFF")

	reader.must(t, "CLIENT TRACKING ON BCAST PREFIX user: PREFIX item: NOLOOP")
	writer.must(t, "MSET user:1 x other x item:2 x")
	check("prefixes", "user:1", "item:2")
	writer.must(t, "BF.ADD user:f x")
	check("a run", "user:f")
	reader.must(t, "SET user:2 x")
	check("NOLOOP")
	writer.must(t, "FLUSHDB")
	check("FLUSHDB", "*")
	reader.Close()
	for end := time.Now().Add(time.Minute); strings.Contains(writer.must(t, "INFO clients"), "tracking_clients:1\r\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that is gone still tracks")
		}
	}
}

func TestSave(t *testing.T) {
	local, err := store.OpenLocal(store.LocalConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	w := connect(t, serve(t, local, Config{}))
	w.must(t, "BF.ADD k x")
	before := local.Stats().Snapshots
	w.expect(t, "SAVE", "+OK\r\n")
	if after := local.Stats().Snapshots; after != before+1 {
		t.Errorf("SAVE: %d snapshots, want %d", after, before+1)
	}
	w.expect(t, "LASTSAVE", fmt.Sprintf(":%d\r\n", local.Stats().SnapshotAt.Unix()))
	w.expect(t, "BGSAVE WHAT", "-ERR syntax error\r\n")
	w.expect(t, "BGSAVE", "+Background saving started\r\n")
	for end := time.Now().Add(time.Minute); local.Stats().Snapshots != before+2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("BGSAVE has not saved within 10 seconds")
		}
	}
	memory := connect(t, startServer(t, Config{}))
	if got := memory.must(t, "SAVE"); got != "-"+textNoSnapshot+"\r\n" {
		t.Errorf("SAVE in memory: got %q, want an error", got)
	}
}

// interrupted is a store in which another client writes a key just after it was read.
type interrupted struct {
	store.Store
	meanwhile func(name []byte)
}

func (s *interrupted) Kind(name []byte) (store.Kind, time.Time, error) {
	kind, ends, err := s.Store.Kind(name)
	s.meanwhile(name)
	return kind, ends, err
}

// silent is a store that does not say what one name stands for.
type silent struct {
	store.Store
	about string
}

func (s silent) Kind(name []byte) (store.Kind, time.Time, error) {
	if strings.HasSuffix(string(name), s.about) {
		return store.None, time.Time{}, errors.New("no answer")
	}
	return s.Store.Kind(name)
}

// TestKindUnknown: a command that depends on what a name stands for fails if the store
// does not say, and replaces nothing.
func TestKindUnknown(t *testing.T) {
	st := newFakeStore()
	healthy := connect(t, serve(t, st, Config{}))
	healthy.must(t, "BF.ADD from a")
	healthy.must(t, "BF.ADD to b")
	w := connect(t, serve(t, silent{st, "to"}, Config{}))
	for _, line := range []string{"RENAMENX from to", "EXISTS to", "TYPE to", "TTL to", "BF.RESERVE to 0.01 100"} {
		w.expect(t, line, "-ERR no answer\r\n")
	}
	w.expect(t, "PING", "+PONG\r\n")
	healthy.expect(t, "BF.EXISTS to b", ":1\r\n")
	healthy.expect(t, "BF.EXISTS from a", ":1\r\n")
}

// TestTrackingMeanwhile: a change between the read and its reply is reported.
func TestTrackingMeanwhile(t *testing.T) {
	local, err := store.OpenLocal(store.LocalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	var s *Server
	st := &interrupted{local, func(name []byte) {
		local.Set(context.Background(), string(name), nil)
		if s.observers.Load() > 0 {
			s.keyWritten(nil, name)
		}
	}}
	if s, err = New(st, Config{}); err != nil {
		t.Fatal(err)
	}
	w := connect(t, listen(t, s))
	w.must(t, "HELLO 3")
	w.must(t, "CLIENT TRACKING ON")
	w.expect(t, "EXISTS k", ":0\r\n")
	if got := w.pushed(t, 1); len(got) != 1 {
		t.Errorf("invalidated %q, want k", got)
	}
}

// TestTrackingRaces reads keys and caches them as clients do, while others write them.
// Whatever is cached in the end must be true.
func TestTrackingRaces(t *testing.T) {
	const keys, writers, rounds = 4, 3, 200
	addr := startServer(t, Config{Loops: 4})
	done := make(chan error, writers)
	for range writers {
		w := connect(t, addr)
		go func() {
			for i := range rounds {
				key := fmt.Sprint("k", i%keys)
				for _, change := range []string{command("BF.ADD", key, "x"), command("DEL", key)} {
					if _, err := w.raw(change); err != nil {
						done <- err
						return
					}
				}
			}
			done <- nil
		}()
	}
	// Readers come and go, so that some land on a loop with no writer.
	var readers []*wire
	for range 4 {
		w := connect(t, addr)
		w.must(t, "HELLO 3")
		w.must(t, "CLIENT TRACKING ON")
		readers = append(readers, w)
	}
	caches := make([]map[string]string, len(readers))
	look := func(i int, key string) {
		if caches[i] == nil {
			caches[i] = map[string]string{}
		}
		got := readers[i].must(t, "BF.EXISTS "+key+" x")
		for _, name := range invalidated(readers[i].pushes) {
			delete(caches[i], name)
		}
		if _, ok := caches[i][key]; !ok {
			caches[i][key] = got
		}
	}
	for running, n := writers, 0; running > 0; n++ {
		look(n%len(readers), fmt.Sprint("k", n%keys))
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running--
		default:
		}
	}
	time.Sleep(50 * time.Millisecond) // for the last pushes to be sent
	now := connect(t, addr)
	now.must(t, "HELLO 3")
	for i := range readers {
		look(i, "unwritten")
		for key, cached := range caches[i] {
			if truth := now.must(t, "BF.EXISTS "+key+" x"); cached != truth {
				t.Errorf("reader %d remembers %s as %q, and it is %q", i, key, cached, truth)
			}
		}
	}
}

// TestTrackingTable fills the table of names read: its size stays bounded, and every
// name that is evicted is declared changed.
func TestTrackingTable(t *testing.T) {
	s := &Server{}
	limits := DefaultLimits()
	s.limits.Store(&limits)
	c := &Client{server: s, transport: deaf{}}
	c.startTracking(trackReads, false, nil)
	long := strings.Repeat("x", 1<<20)
	for i := range 100 {
		s.keyRead(c, fmt.Append(nil, long, i))
		s.keyRead(c, fmt.Append(nil, long, i)) // counts once
		if s.observed.bytes > maxNotedBytes {
			t.Fatalf("after %d names: %d bytes, want at most %d", i+1, s.observed.bytes, maxNotedBytes)
		}
	}
	if kept, told := len(s.observed.readers), strings.Count(string(c.pushed), "invalidate"); kept+told != 100 || told == 0 {
		t.Errorf("%d names are kept and %d declared changed, want 100 together", kept, told)
	}
	s.clientGone(c)
	for name := range s.observed.readers {
		s.keyWritten(nil, []byte(name))
	}
	if s.observed.bytes != 0 || s.observers.Load() != 0 {
		t.Errorf("%d bytes and %d observers are left, want none", s.observed.bytes, s.observers.Load())
	}
}

type deaf struct{ transport }

func (deaf) wake() {}

func TestWatchManyClients(t *testing.T) {
	addr := startServer(t, Config{})
	const clients, rounds = 8, 20
	done := make(chan error, clients)
	for range clients {
		w := connect(t, addr)
		go func() {
			done <- func() error {
				for n := 0; n < rounds; {
					// A counter: no round may be lost.
					steps := []string{command("WATCH", "n"), command("GET", "n")}
					var value string
					for _, step := range steps {
						var err error
						if value, err = w.raw(step); err != nil {
							return err
						}
					}
					count := 0
					if lines := strings.Split(value, "\r\n"); len(lines) > 2 {
						fmt.Sscan(lines[1], &count)
					}
					for _, step := range []string{command("MULTI"), command("SET", "n", fmt.Sprint(count+1))} {
						if _, err := w.raw(step); err != nil {
							return err
						}
					}
					reply, err := w.raw(command("EXEC"))
					if err != nil {
						return err
					}
					if reply != "*-1\r\n" {
						n++
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	connect(t, addr).expect(t, "GET n", fmt.Sprintf("$3\r\n%d\r\n", clients*rounds))
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abbcd", false},
		{"*a*b*", "xaxbx", true}, {"*a*b*", "xbxax", false},
		{"?", "", false}, {"?", "a", true}, {"a?c", "abc", true}, {"[abc]", "b", true}, {"[^abc]", "b", false}, {"[^abc]", "d", true},
		{"[a-c]x", "bx", true}, {"[c-a]", "b", true}, {"[a-c]", "d", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true}, {"[abc", "b", true}, {"[", "a", false}, {`a\`, `a\`, true},
		{"h[ae]llo", "hello", true}, {"**", "a", true}, {"a*", "b", false},
		{"user:*", "user:", true}, {"[^]", "a", true},
	} {
		if got := matches(tt.pattern, tt.text); got != tt.want {
			t.Errorf("matches(%q, %q) = %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
	// Patterns on which backtracking is slow.
	long, most := strings.Repeat("a", 60_000), 2*time.Second
	if raceEnabled {
		most *= 10
	}
	for _, pattern := range []string{
		strings.Repeat("a*", 1000) + "b", "*" + strings.Repeat("a", 30_000) + "b*", "*" + strings.Repeat("?a", 15_000) + "b*",
		"*" + strings.Repeat("[^b]", 8_000) + "b*", "*[" + strings.Repeat("b", 30_000) + "]*", strings.Repeat("*?", 15_000) + "b*",
	} {
		start := time.Now()
		if matches(pattern, long) {
			t.Errorf("%.20q... matches", pattern)
		}
		if took := time.Since(start); took > most {
			t.Errorf("%.20q... took %v", pattern, took)
		}
	}
}

// matchesSlowly is matches as in Redis: it tries every length that a star can match.
func matchesSlowly(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] == '*' {
		return matchesSlowly(pattern[1:], text) || text != "" && matchesSlowly(pattern, text[1:])
	}
	if text == "" {
		return false
	}
	set, next := parseElement(pattern, 0)
	return set.has(text[0]) && matchesSlowly(pattern[next:], text[1:])
}

// TestMatchesAsSlowly compares with that, for patterns and texts of few letters, so
// that they match often.
func TestMatchesAsSlowly(t *testing.T) {
	random, fit := rand.New(rand.NewPCG(1, 2)), 0
	word := func(letters string, most int) string {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for range 50_000 {
		pattern, text := word(`ab**?[]^-\`, 10), word("ab-", 12)
		if random.IntN(10) == 0 { // more elements than bits in a word
			pattern = "*" + strings.Repeat("?[ab]a", 30) + pattern
			text = strings.Repeat("aba", 32) + text
		}
		got, want := matches(pattern, text), matchesSlowly(pattern, text)
		if got != want {
			t.Fatalf("matches(%q, %q) = %v, want %v", pattern, text, got, want)
		}
		if want {
			fit++
		}
	}
	if fit < 1000 {
		t.Errorf("only %d fit", fit)
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("a[b-d]*\\x?[^q", "abx")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if matches(pattern, text) && !matches("*"+pattern, text) {
			t.Errorf("%q matches %q, but not behind a star", pattern, text)
		}
		if len(pattern) < 12 && len(text) < 24 && matches(pattern, text) != matchesSlowly(pattern, text) {
			t.Errorf("matches(%q, %q) = %v", pattern, text, matches(pattern, text))
		}
	})
}
