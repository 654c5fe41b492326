package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// A wire is a connection to a test's server, on which each command is sent after the
// reply to the one before.
type wire struct {
	net.Conn
	reader *recorder
	pushes []resp.Reply // that came before the last reply
}

// A recorder reads replies and records their bytes.
type recorder struct {
	replies *resp.ReplyReader
	arrived bytes.Buffer // not yet in seen
	seen    bytes.Buffer // up to the end of the last reply
}

func newRecorder(in io.Reader) *recorder {
	r := &recorder{}
	r.replies = resp.NewReplyReader(io.TeeReader(in, &r.arrived), resp.ReplyLimits{})
	return r
}

func (r *recorder) Read() (resp.Reply, error) {
	reply, err := r.replies.Read()
	ahead := r.replies.Buffered()
	if err != nil {
		ahead = 0
	}
	r.seen.Write(r.arrived.Next(r.arrived.Len() - ahead))
	return reply, err
}

// startServer serves a store until the test ends, and returns the address.
func startServer(t testing.TB, config Config) string {
	t.Helper()
	local, err := store.OpenLocal(store.LocalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	return serve(t, local, config)
}

func serve(t testing.TB, st store.Store, config Config) string {
	t.Helper()
	s, err := New(st, config)
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, s)
}

// listen runs a server until the test ends, and returns the address.
func listen(t testing.TB, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		<-served
	})
	return l.Addr().String()
}

func connect(t testing.TB, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{Conn: conn, reader: newRecorder(conn)}
}

// raw sends bytes and returns those of the reply.
func (w *wire) raw(command string) (string, error) {
	w.pushes = nil
	w.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(w, command); err != nil {
		return "", err
	}
	for {
		w.reader.seen.Reset()
		reply, err := w.reader.Read()
		if err != nil {
			return w.reader.seen.String(), err
		}
		if reply.Kind != resp.Push {
			return w.reader.seen.String(), nil
		}
		w.pushes = append(w.pushes, reply)
	}
}

// command returns a command as an array of strings.
func command(args ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return text.String()
}

// must sends a command of words, quoted where they need it, and returns the bytes
// of the reply.
func (w *wire) must(t testing.TB, line string) string {
	t.Helper()
	got, err := w.raw(command(words(t, line)...))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return got
}

// expect sends a command and compares the reply.
func (w *wire) expect(t testing.TB, line, want string) {
	t.Helper()
	if got := w.must(t, line); got != want {
		t.Errorf("%s: got %q, want %q", line, got, want)
	}
}

// words splits a line as redis-cli would: "a b" and 'a b' are one word, and "\x00" is a
// byte.
func words(t testing.TB, line string) (found []string) {
	t.Helper()
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var end int
		if quote := line[:1]; quote == "'" || quote == `"` {
			if end = strings.Index(line[1:], quote); end < 0 {
				t.Fatalf("%q has no closing quote", line)
			}
			word := line[1 : end+1]
			if quote == `"` {
				word = unescaped(word)
			}
			found = append(found, word)
			end += 2
		} else {
			if end = strings.IndexByte(line, ' '); end < 0 {
				end = len(line)
			}
			found = append(found, line[:end])
		}
		line = line[end:]
	}
	return found
}

var escape = regexp.MustCompile(`\\(x[0-9a-f]{2}|.)`)

// unescaped undoes the escapes of a recording.
func unescaped(text string) string {
	return escape.ReplaceAllStringFunc(text, func(e string) string {
		switch e[1] {
		case 'r':
			return "\r"
		case 'n':
			return "\n"
		case 't':
			return "\t"
		case 'x':
			b, _ := strconv.ParseUint(e[2:], 16, 8)
			return string([]byte{byte(b)})
		}
		return e[1:]
	})
}

// A difference is a reply that differs from the recorded one: a regular expression for
// the whole reply, and why.
type difference struct{ want, why string }

const (
	noScripts = "there are no scripts here, and the error says what to do instead"
	versions  = "versions, the number of the connection, and the path of the module"
	ownKey    = "there, a key that is named as an option is taken for it"
	tableOf   = "the table of commands is ours: other families are missing, and there are some of our own"
)

// dumpHead is DUMP's reply up to the version.
const dumpHead = "$68\r\n\x07\x81\x30\x16\xe5\xa2\x89\xbe\xf8\x04\x02\x02\x02\x01\x02\x05\x02\x02\x02\n\x04\x9a\x99\x99\x99\x99\x99\xa9?" +
	"\x02\x05\x04J\xf7\xd4\x9e\xde\xf0\x18@\x02@@\x02\x00\x05\x08\x05\x08D\x80\x00\x04 @\x02\x02\x00"

var noScriptsError = `-ERR there are no scripts here: send the commands themselves, between MULTI and EXEC if they belong together\r\n`

// modulesList is the end of HELLO and the reply of MODULE LIST, in RESP3 and RESP2.
const (
	modules3 = `\*1\r\n%4\r\n\$4\r\nname\r\n\$2\r\nbf\r\n\$3\r\nver\r\n:80000\r\n\$4\r\npath\r\n\$0\r\n\r\n\$4\r\nargs\r\n\*0\r\n`
	modules2 = `\*1\r\n\*8\r\n\$4\r\nname\r\n\$2\r\nbf\r\n\$3\r\nver\r\n:80000\r\n\$4\r\npath\r\n\$0\r\n\r\n\$4\r\nargs\r\n\*0\r\n`
)

func helloPattern(head, proto, modules string) string {
	return head + `\$6\r\nserver\r\n\$5\r\nredis\r\n\$7\r\nversion\r\n\$5\r\n8\.0\.0\r\n\$5\r\nproto\r\n:` + proto +
		`\r\n\$2\r\nid\r\n:\d+\r\n\$4\r\nmode\r\n\$10\r\nstandalone\r\n\$4\r\nrole\r\n\$6\r\nmaster\r\n\$7\r\nmodules\r\n` + modules
}

// differences are all differences, by command.
var differences = map[string]difference{
	`BF.RESERVE EXPANSION 0.01 100`: {`\+OK\r\n`, ownKey},
	`BF.INFO EXPANSION`:             {`(\*10|%5)\r\n(?s:.*)`, ownKey},
	`BF.INFO NONSCALING EXPANSION`:  {`(\*1\r\n|%1\r\n\+Expansion rate\r\n):2\r\n`, ownKey},
	`DUMP d`: {regexp.QuoteMeta(runes(dumpHead)) + `\n\x00(?s:.{8})\r\n`,
		"the version of RDB files is that of Redis 7.0, so that more servers take it, and with it the checksum"},

	`COMMAND COUNT`: {`:\d+\r\n`, tableOf},
	`ACL CAT bloom`: {`\*\d+\r\n(\$\d+\r\nbf\.[a-z]+\r\n)+`, tableOf + "; the order is that of the alphabet"},

	`EVAL "return redis.call('BF.ADD',KEYS[1],ARGV[1])" 1 evalf a`:      {noScriptsError, noScripts},
	`EVAL "return redis.call('BF.INFO',KEYS[1])" 1 evalf`:               {noScriptsError, noScripts},
	`EVAL "return redis.call('BF.EXISTS',KEYS[1],ARGV[1])" 1 evalf zzz`: {noScriptsError, noScripts},
	`EVAL "return 1" 0`:        {noScriptsError, noScripts},
	`SCRIPT LOAD "return 1"`:   {noScriptsError, noScripts},
	`HELLO 3`:                  {helloPattern("%7\r\n", "3", modules3), versions},
	`HELLO`:                    {helloPattern("%7\r\n", "3", modules3), versions},
	`HELLO 2`:                  {helloPattern(`\*14\r\n`, "2", modules2), versions},
	`HELLO 3 AUTH default bad`: {helloPattern("%7\r\n", "3", modules3), versions},
	`HELLO 3 SETNAME foo`:      {helloPattern("%7\r\n", "3", modules3), versions},
	`MODULE LIST`:              {modules3, versions},
	`CLIENT ID`:                {`:\d+\r\n`, "the number of the connection"},
	`CLIENT INFO`: {`=\d+\r\ntxt:id=\d+ addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ fd=-1 name=x age=\d+ idle=\d+ flags=e ` +
		`db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf=0 qbuf-free=0 ` +
		`argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=client\|info user=default redir=-1 resp=3 ` +
		`lib-name=go-redis\(,go1\.26\) lib-ver=9\n\r\n`,
		"addresses and figures of the process; the fields and their order are the same"},
	`ROLE`:                            {`\*3\r\n\$6\r\nmaster\r\n:0\r\n\*0\r\n`, "the offset in a log of replication, which is not there"},
	`COMMAND LIST FILTERBY MODULE bf`: {`\*\d+\r\n(\$\d+\r\n[bc]f\.[a-z]+\r\n)+`, tableOf},
	`TIME`:                            {`\*2\r\n\$10\r\n\d{10}\r\n\$\d\r\n\d+\r\n`, "the time"},
	`LASTSAVE`:                        {`:\d{10}\r\n`, "the time"},
	`DEBUG SLEEP 0`:                   {`-ERR DEBUG command not allowed: [^\r]+\r\n`, "there is no option to allow it"},
	`INFO server`: {`\$\d+\r\n# Server\r\nredis_version:8\.0\.0\r\nbloomery_version:[^\r]*\r\nredis_mode:standalone\r\n` +
		`(?:[a-z_]+:[^\r]*\r\n)+\r\n`, "figures of the process"},
}

// cuckooDifferences are those of the recordings of cuckoo filters, by line.
var cuckooDifferences = map[int]difference{
	821: {`-Couldn't create filter!\r\n`, "70,000 sub-filters: there, it keeps 16 bits of the number, and makes 4,464 of them; 32 are the most that a filter grows to"},
	827: {`-Couldn't create filter!\r\n`, "an expansion that CF.RESERVE would round up: in 12 buckets, the two of an item do not lead to each other"},

	// So there is no filter.
	822: {`-ERR not found\r\n`, ""}, 823: {`-ERR not found\r\n`, ""}, 824: {`-ERR not found\r\n`, ""}, 825: {`-ERR not found\r\n`, ""},
	826: {`:0\r\n`, ""},
	828: {`-ERR not found\r\n`, ""}, 829: {`-ERR not found\r\n`, ""}, 830: {`-ERR not found\r\n`, ""}, 831: {`-ERR not found\r\n`, ""},
}

func TestReplies(t *testing.T) {
	used := map[string]bool{}
	for _, name := range []string{"replies-resp2.txt", "replies-resp3.txt", "replies-other-commands.txt", "cuckoo-replies-resp2.txt", "cuckoo-replies-resp3.txt"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			w := connect(t, startServer(t, Config{}))
			if strings.HasSuffix(name, "-resp3.txt") {
				w.must(t, "HELLO 3")
			}
			played := 0
			for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
				if strings.HasPrefix(line, "# ") {
					continue
				}
				sent, reply, ok := strings.Cut(line, " => ")
				if !ok {
					t.Fatalf("line %d: no =>", i+1)
				}
				sent = strings.TrimSpace(sent)
				played++
				got := w.must(t, sent)
				problem := compare(sent, got, reply)
				d, ok := differences[sent]
				if strings.HasPrefix(name, "cuckoo") {
					if d, ok = cuckooDifferences[i+1]; ok && problem == "" {
						t.Errorf("line %d: %s: the reply is the recorded one: take it off the list of differences", i+1, sent)
					}
				}
				if problem == "" {
					continue
				} else if !ok {
					t.Errorf("line %d: %s: %s", i+1, sent, problem)
				} else if used[sent] = true; !regexp.MustCompile(`^(?s:` + d.want + `)$`).MatchString(runes(got)) {
					t.Errorf("line %d: %s: got %q, want a match of %q", i+1, sent, got, d.want)
				}
			}
			if played < 80 {
				t.Errorf("played %d commands, want all of the recording", played)
			}
		})
	}
	for sent := range differences {
		if !used[sent] {
			t.Errorf("%s: the reply is the recorded one: take it off the list of differences", sent)
		}
	}
}

// TestRepliesOfRedis7 replays what redis-server 7.0.15 replied to wrong or unusual
// options and values.
func TestRepliesOfRedis7(t *testing.T) {
	text, err := os.ReadFile("testdata/replies-redis-7.0.15.txt")
	if err != nil {
		t.Fatal(err)
	}
	w, played := connect(t, startServer(t, Config{})), 0
	for line := range strings.Lines(string(text)) {
		sent, reply, compared := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if strings.HasPrefix(sent, "# ") {
			continue
		}
		got := w.must(t, sent)
		if problem := compare(sent, got, reply); compared && problem != "" {
			t.Errorf("%s: %s", sent, problem)
		}
		played++
	}
	if played < 90 {
		t.Errorf("played %d commands, want all of the recording", played)
	}
}

// runes makes each byte a rune, as regular expressions want them.
func runes(bytes string) string {
	var text strings.Builder
	for i := range len(bytes) {
		text.WriteRune(rune(bytes[i]))
	}
	return text.String()
}

var cut = regexp.MustCompile(`\.\.\.\((\d+) bytes\)$`)

// compare returns what is wrong with a reply, or "". For a truncated recording, the
// length and the recorded bytes must match.
func compare(sent, got, recorded string) string {
	if tail := cut.FindStringSubmatch(recorded); tail != nil {
		head := unescaped(strings.TrimSuffix(recorded, tail[0]))
		if size, _ := strconv.Atoi(tail[1]); len(got) != size || !strings.HasPrefix(got, head) {
			return fmt.Sprintf("got %d bytes %q, want %d that begin with %q", len(got), got, size, head)
		}
		return ""
	}
	if want := unescaped(recorded); got != want {
		return fmt.Sprintf("got %q, want %q", got, want)
	}
	return ""
}

// mayFail are the commands of the logs whose reply may be an error. With one exception,
// a real server returns one, too.
var mayFail = []struct{ prefix, why string }{
	{"CLIENT MAINT_NOTIFICATIONS", "Redis knows no such subcommand, and the clients go on"},
	{"DPING", "no command: the suite wants the error"},
	{"AUTH", "no password is set"},
	{"CLUSTER", "no cluster: the client asks to know"},
	{"REPLCONF", "redis-cli --rdb; Redis would send its data, in a format of its own"},
	{"SYNC", "the same"},
}

// TestClientLogs replays what clients sent, each on the same number of connections.
func TestClientLogs(t *testing.T) {
	logs, err := filepath.Glob("testdata/clients/*.log")
	if err != nil || len(logs) < 5 {
		t.Fatal(logs, err)
	}
	for _, name := range logs {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			addr := startServer(t, Config{})
			wires := map[string]*wire{}
			for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
				conn, sent, _ := strings.Cut(line, " ")
				switch sent {
				case "OPEN":
					wires[conn] = connect(t, addr)
					continue
				case "CLOSE":
					wires[conn].Close()
					delete(wires, conn)
					continue
				case "INLINE": // an empty line has no reply
					io.WriteString(wires[conn], "\r\n")
					continue
				}
				bytes := command(strings.Fields(unescaped(sent))...)
				if line, inline := strings.CutPrefix(sent, "INLINE "); inline {
					sent, bytes = line, line+"\r\n"
				}
				got, err := wires[conn].raw(bytes)
				if err != nil {
					t.Fatalf("line %d: %s: %v", i+1, line, err)
				}
				allowed := slices.ContainsFunc(mayFail, func(m struct{ prefix, why string }) bool {
					return strings.HasPrefix(strings.ToUpper(sent), m.prefix)
				})
				if strings.HasPrefix(got, "-") && !allowed {
					t.Errorf("line %d: %s: got %q, want no error", i+1, line, got)
				}
			}
		})
	}
}
