package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/long"
)

// bloomeryBinary is bloomery, to be run as a process of its own: the test binary under
// another name, which testscript's Main understands.
func bloomeryBinary(t *testing.T) string {
	t.Helper()
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bloomery")
	if err := os.Symlink(test, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStateSurvivesKill feeds dedupe --state from a pipe and kills it with
// signal 9 at some moment, again and again. No line is lost: each comes out in
// some run, and only those of the block that was being written may come twice.
func TestStateSurvivesKill(t *testing.T) {
	long.Test(t)
	bloomery := bloomeryBinary(t)
	const rounds = 10
	for _, args := range [][]string{
		{"dedupe", "-n", "5M", "-p", "1e-10"},
		{"dedupe", "-n", "100", "-p", "1e-10", "--grow"}, // is killed while it grows, too
		{"dedupe", "-n", "5M", "-p", "1e-10", "--sync", "1ms"},
	} {
		t.Run(strings.Join(args[1:], " "), func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "seen.bloom")
			printed := map[string]bool{}
			next, twice := 0, 0
			for range rounds {
				for _, line := range killedRun(t, bloomery, append(args, "--state", state), &next) {
					if printed[line] {
						twice++
					}
					printed[line] = true
				}
			}
			if len(printed) < 100 {
				t.Fatalf("only %d lines were printed: the test kills too early", len(printed))
			}
			var all strings.Builder
			for i := range next {
				fmt.Fprintf(&all, "line %d\n", i)
			}
			for _, line := range feed(t, bloomery, append(args, "--state", state), all.String()) {
				if printed[line] {
					twice++
				}
				printed[line] = true
			}
			if len(printed) < next {
				t.Errorf("%d of %d lines never came out", next-len(printed), next)
			}
			if most := (rounds + 1) * lines.BlockBytes / len("line 0\n"); twice > most {
				t.Errorf("%d lines came twice: more than a block for each kill", twice)
			}
			if again := feed(t, bloomery, append(args, "--state", state), all.String()); len(again) > 0 {
				t.Errorf("%d lines are forgotten by a run that was not killed, among them %q", len(again), again[0])
			}
			// And after all that the file is whole.
			if out, err := exec.Command(bloomery, "info", "--verify", state).CombinedOutput(); err != nil {
				t.Fatalf("info: %v: %s", err, out)
			}
		})
	}
}

// killedRun writes new lines until it kills the command, and returns what came
// out of it.
func killedRun(t *testing.T, bloomery string, args []string, next *int) (lines []string) {
	t.Helper()
	cmd := exec.Command(bloomery, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make(chan bool, 1)
	fed := make(chan int)
	go func() {
		i := *next
		defer func() { fed <- i }()
		for {
			var batch strings.Builder
			for range 1 + rand.IntN(500) {
				fmt.Fprintf(&batch, "line %d\n", i)
				i++
			}
			if _, err := in.Write([]byte(batch.String())); err != nil {
				return
			}
		}
	}()
	go func() {
		<-first // the program has begun
		time.Sleep(time.Duration(rand.IntN(20000)) * time.Microsecond)
		cmd.Process.Kill()
	}()
	for from := bufio.NewReader(out); ; {
		line, err := from.ReadString('\n')
		if err != nil {
			break // and a line that is cut off was not written
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		if len(lines) == 1 {
			first <- true
		}
	}
	*next = <-fed
	cmd.Wait()
	return lines
}

// feed runs the command on the lines, to the end, and returns those it prints.
func feed(t *testing.T, bloomery string, args []string, lines string) []string {
	t.Helper()
	cmd := exec.Command(bloomery, args...)
	cmd.Stdin = strings.NewReader(lines)
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != exitNothing) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}
