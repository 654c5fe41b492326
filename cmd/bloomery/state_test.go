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
// signal 9 at some moment. Whatever it has printed by then, the next run knows.
func TestStateSurvivesKill(t *testing.T) {
	bloomery := bloomeryBinary(t)
	const rounds = 10
	for _, args := range [][]string{
		{"dedupe", "-n", "1M"},
		{"dedupe", "-n", "100", "--grow"}, // is killed while it grows, too
		{"dedupe", "-n", "1M", "--sync", "1ms"},
	} {
		t.Run(strings.Join(args[1:], " "), func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "seen.bloom")
			printed := map[string]bool{}
			next := 0
			for range rounds {
				for _, line := range killedRun(t, bloomery, append(args, "--state", state), &next) {
					if printed[line] {
						t.Fatalf("%q was printed again after a kill", line)
					}
					printed[line] = true
				}
			}
			if len(printed) < 100 {
				t.Fatalf("only %d lines were printed: the test kills too early", len(printed))
			}
			if again := feed(t, bloomery, append(args, "--state", state), printed); len(again) > 0 {
				t.Fatalf("%d of %d lines were forgotten, among them %q", len(again), len(printed), again[0])
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
	cmd.Stderr = os.Stderr
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
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if len(lines) == 1 {
			first <- true
		}
	}
	*next = <-fed
	cmd.Wait()
	if len(lines) > 0 { // the last one may be cut off
		lines = lines[:len(lines)-1]
	}
	return lines
}

// feed runs the command on lines that it has seen, and returns those it prints.
func feed(t *testing.T, bloomery string, args []string, lines map[string]bool) []string {
	t.Helper()
	var input strings.Builder
	for line := range lines {
		fmt.Fprintln(&input, line)
	}
	cmd := exec.Command(bloomery, args...)
	cmd.Stdin = strings.NewReader(input.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != exitNothing) {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
