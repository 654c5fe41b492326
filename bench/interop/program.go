package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A program is another implementation. One that is not in Go runs as a child process
// and speaks a small protocol. Its first line is its name and version. Then each line
// on standard input is a job, its words separated by tabs:
//
//	make DIR VARIANT N P M K     make a filter of n keys at rate p, or of m bits
//	                             and k probes, add DIR/keys, write DIR/filter
//	read DIR VARIANT N P M K     read DIR/filter
//
// After either, it looks up each key in DIR/probes and writes DIR/answers, a 0 or 1
// for each. Its reply is one line, "ok" or an error message. A file of keys is a count,
// then a length and the bytes of each key. Numbers have 4 bytes, big-endian.
type program interface {
	about() string // name and version
	make(j job) (file []byte, answers []bool, err error)
	read(j job, file []byte) (answers []bool, err error)
	stop()
}

// A job is one filter.
type job struct {
	trial
	keys, probes [][]byte
}

// child is a program in a child process.
type child struct {
	name    string
	process *exec.Cmd
	dir     string
	jobs    *bufio.Writer
	replies *bufio.Scanner
}

// startChild starts a program that works in directory dir.
func startChild(dir string, command ...string) (*child, error) {
	c := &child{process: exec.Command(command[0], command[1:]...), dir: dir}
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	c.jobs, c.replies = bufio.NewWriter(in), bufio.NewScanner(out)
	if !c.replies.Scan() {
		c.stop()
		return nil, fmt.Errorf("%s exited before it printed its version", strings.Join(command, " "))
	}
	c.name = c.replies.Text()
	return c, nil
}

func (c *child) about() string { return c.name }

func (c *child) stop() {
	c.process.Process.Kill() // it has no state to save
	c.process.Wait()
}

func (c *child) make(j job) (file []byte, answers []bool, err error) {
	if err := writeKeys(filepath.Join(c.dir, "keys"), j.keys); err != nil {
		return nil, nil, err
	}
	if answers, err = c.run("make", j); err != nil {
		return nil, nil, err
	}
	file, err = os.ReadFile(filepath.Join(c.dir, "filter"))
	return file, answers, err
}

func (c *child) read(j job, file []byte) ([]bool, error) {
	if err := os.WriteFile(filepath.Join(c.dir, "filter"), file, 0o666); err != nil {
		return nil, err
	}
	return c.run("read", j)
}

func (c *child) run(verb string, j job) ([]bool, error) {
	if err := writeKeys(filepath.Join(c.dir, "probes"), j.probes); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.jobs, "%s\t%s\t%s\t%d\t%v\t%d\t%d\n", verb, c.dir, j.variant, j.n, j.p, j.m, j.k)
	if err := c.jobs.Flush(); err != nil {
		return nil, err
	}
	if !c.replies.Scan() {
		return nil, fmt.Errorf("the program exited: %v", c.replies.Err())
	}
	if reply := c.replies.Text(); reply != "ok" {
		return nil, fmt.Errorf("the program reports: %s", reply)
	}
	digits, err := os.ReadFile(filepath.Join(c.dir, "answers"))
	if err != nil {
		return nil, err
	}
	answers := make([]bool, len(digits))
	for i, digit := range digits {
		answers[i] = digit == '1'
	}
	return answers, nil
}

func writeKeys(path string, keys [][]byte) error {
	data := binary.BigEndian.AppendUint32(nil, uint32(len(keys)))
	for _, key := range keys {
		data = binary.BigEndian.AppendUint32(data, uint32(len(key)))
		data = append(data, key...)
	}
	return os.WriteFile(path, data, 0o666)
}
