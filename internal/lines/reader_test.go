package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// inPieces returns its pieces, one per Read, as a slow pipe does, and then err.
type inPieces struct {
	pieces []string
	err    error
}

func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, r.err
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// wantLines splits s in the simplest way.
func wantLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// readAll reads all lines through blockReader and split, with blocks of this many bytes
// and batches of two lines, and checks that text and keys agree.
func readAll(t *testing.T, in *stream, block int, beforeWait func() error) (lines []string, err error) {
	t.Helper()
	r := &blockReader{in: in, separator: '\n', beforeWait: beforeWait}
	buffer := make([]byte, 0, block)
	for {
		text, err := r.next(buffer)
		if err != nil {
			return lines, err
		}
		if len(text) == 0 || text[len(text)-1] != '\n' {
			t.Fatalf("block %q is not of whole lines", text)
		}
		for len(text) > 0 {
			keys, rest := split(text, '\n', make([][]byte, 0, 2))
			if want := string(bytes.Join(keys, []byte("\n"))) + "\n"; string(text[:len(text)-len(rest)]) != want {
				t.Fatalf("text %q, keys %q", text[:len(text)-len(rest)], keys)
			}
			for _, key := range keys {
				lines = append(lines, string(key))
			}
			text = rest
		}
	}
}

func never() bool          { return false }
func always() bool         { return true }
func doNothing() error     { return nil }
func ignoreProgress(n int) {}

// TestEverySplit cuts small inputs into pieces in every possible way, and reads them
// into blocks shorter and longer than the lines.
func TestEverySplit(t *testing.T) {
	inputs := []string{"", "\n", "a", "a\n", "\n\n", "a\nb", "ab\n\nc\n", "abcdefg\nh", "a\r\nbc\n", "\x00\xff\nb", "abcdefghij"}
	for _, input := range inputs {
		for cuts := range 1 << max(len(input)-1, 0) {
			var pieces []string
			from := 0
			for i := 1; i < len(input); i++ {
				if cuts>>(i-1)&1 == 1 {
					pieces = append(pieces, input[from:i])
					from = i
				}
			}
			if from < len(input) {
				pieces = append(pieces, input[from:])
			}
			for _, ready := range []func() bool{never, always} {
				for _, block := range []int{1, 3, 64} {
					in := &stream{Reader: &inPieces{slices.Clone(pieces), io.EOF}, ready: ready}
					got, err := readAll(t, in, block, doNothing)
					if err != io.EOF || !slices.Equal(got, wantLines(input)) {
						t.Fatalf("%q in pieces %q, block %d: %q, %v", input, pieces, block, got, err)
					}
				}
			}
		}
	}
}

// TestLongLines reads lines about as long as the block, and much longer ones.
func TestLongLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var input strings.Builder
	for _, n := range []int{0, 1, BlockBytes - 2, BlockBytes - 1, BlockBytes, BlockBytes + 1, 70_000, 3*BlockBytes + 5, 1 << 23, 2} {
		for range n {
			input.WriteByte(byte('a' + random.IntN(26)))
		}
		input.WriteByte('\n')
	}
	for name, reader := range map[string]io.Reader{
		"whole":  strings.NewReader(input.String()),
		"halves": iotest.HalfReader(strings.NewReader(input.String())),
		"eof":    iotest.DataErrReader(strings.NewReader(input.String())),
	} {
		got, err := readAll(t, &stream{Reader: reader, ready: always}, BlockBytes, doNothing)
		if err != io.EOF || !slices.Equal(got, wantLines(input.String())) {
			t.Errorf("%s: %d lines, %v", name, len(got), err)
		}
	}
}

// TestReadError: the lines before an error are returned, the one it cut off is dropped.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	in := &stream{Reader: &inPieces{[]string{"a\nb", "c\nde"}, broken}, ready: always}
	got, err := readAll(t, in, 64, doNothing)
	if err != broken || !slices.Equal(got, []string{"a", "bc"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestNothingHeldBack has a writer that waits: before every Read that may wait, all whole
// lines so far must have been returned, and beforeWait called.
func TestNothingHeldBack(t *testing.T) {
	var log []string
	pieces := []string{"a\nb\nc", "d", "\n", "e\n"}
	source := &inPieces{pieces, io.EOF}
	in := &stream{
		Reader: readerFunc(func(p []byte) (int, error) {
			n, err := source.Read(p)
			log = append(log, fmt.Sprintf("read %q", p[:n]))
			return n, err
		}),
		ready: never,
	}
	r := &blockReader{in: in, separator: '\n', beforeWait: func() error { log = append(log, "flush"); return nil }}
	for {
		text, err := r.next(make([]byte, 0, 64))
		if err != nil {
			break
		}
		log = append(log, fmt.Sprintf("lines %q", text))
	}
	want := []string{
		"flush", `read "a\nb\nc"`, `lines "a\nb\n"`,
		"flush", `read "d"`, "flush", `read "\n"`, `lines "cd\n"`,
		"flush", `read "e\n"`, `lines "e\n"`,
		"flush", `read ""`,
	}
	if !slices.Equal(log, want) {
		t.Errorf("got  %q\nwant %q", log, want)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestLineWriter writes every selection of a few lines.
func TestLineWriter(t *testing.T) {
	j := &Job{Text: []byte("a\n\nbcd\ne\n"), Ends: []int{2, 3, 7, 9}}
	keys := []string{"a", "", "bcd", "e"}
	for mask := range 1 << len(keys) {
		for _, want := range []bool{false, true} {
			j.Answers = make([]bool, len(keys))
			expected := ""
			for i := range keys {
				j.Answers[i] = mask>>i&1 == 1
				if j.Answers[i] == want {
					expected += keys[i] + "\n"
				}
			}
			var got bytes.Buffer
			w := NewWriter(&got)
			if err := w.Write(j, want); err != nil {
				t.Fatal(err)
			}
			if got.String() != expected {
				t.Errorf("answers %v, want %v: %q, not %q", j.Answers, want, got.String(), expected)
			}
		}
	}
}
