package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/redistest"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(withRedis{m}, map[string]func(){"bloomery": main})
}

// withRedis ends the Redis servers that tests have started.
type withRedis struct{ *testing.M }

func (m withRedis) Run() int { return redistest.Main(m.M) }

// TestScript runs the sessions in testdata. They know six commands more than
// testscript does.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		// Under the race detector a program waits a second when it is done, which
		// makes minutes of hundreds of commands.
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=10")
			return setPorts(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": scriptStatus,
			"lines":  scriptLines,
			"pack":   scriptPack,
			"poke":   scriptPoke,
			"vector": scriptVector,
			"cuckoo": scriptCuckoo,
		},
	})
}

// scriptStatus runs a command and checks its exit code: status 1 bloomery ...
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// scriptLines writes the numbers from FIRST to LAST, or lines of that many
// letters: lines FILE FIRST LAST [LETTERS].
func scriptLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: lines FILE FIRST LAST [LETTERS]")
	}
	first, err := strconv.Atoi(args[1])
	ts.Check(err)
	last, err := strconv.Atoi(args[2])
	ts.Check(err)
	letters := 0
	if len(args) > 3 {
		letters, err = strconv.Atoi(args[3])
		ts.Check(err)
	}
	var b bytes.Buffer
	for i := first; i <= last; i++ {
		fmt.Fprintf(&b, "%d%s\n", i, strings.Repeat("x", letters))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// scriptPack packs a file: pack gzip FROM TO.
func scriptPack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pack {gzip|zstd} FROM TO")
	}
	var packed bytes.Buffer
	var to io.WriteCloser
	switch args[0] {
	case "gzip":
		to = gzip.NewWriter(&packed)
	case "zstd":
		encoder, err := zstd.NewWriter(&packed)
		ts.Check(err)
		to = encoder
	}
	_, err := io.WriteString(to, ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(to.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), packed.Bytes(), 0o666))
}

// scriptPoke damages a file: poke FILE OFFSET flips a byte, poke FILE OFFSET cut
// cuts it off there.
func scriptPoke(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: poke FILE OFFSET [cut]")
	}
	content := []byte(ts.ReadFile(args[0]))
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if len(args) > 2 {
		content = content[:at]
	} else {
		content[at] ^= 0xff
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o666))
}
