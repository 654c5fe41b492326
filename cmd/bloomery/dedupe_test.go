package main

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// TestStreaming writes a line at a time into a pipe and waits for the answer
// before it writes the next, as somebody behind `tail -f` does: plain, and
// packed by programs that flush.
func TestStreaming(t *testing.T) {
	type flusher interface {
		io.WriteCloser
		Flush() error
	}
	for name, packer := range map[string]func(io.Writer) flusher{
		"plain": func(w io.Writer) flusher { return unpacked{w} },
		"gzip":  func(w io.Writer) flusher { return gzip.NewWriter(w) },
		"zstd": func(w io.Writer) flusher {
			encoder, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return encoder
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdin, toStdin := pipe(t)
			fromStdout, stdout := pipe(t)
			code := make(chan int)
			go func() {
				root := newRoot()
				root.SetArgs([]string{"dedupe", "-n", "1000"})
				root.SetIn(stdin)
				root.SetOut(stdout)
				code <- execute(root)
			}()
			to := packer(toStdin)
			fromStdout.SetReadDeadline(time.Now().Add(10 * time.Second))
			from := bufio.NewReader(fromStdout)
			// Half a line must not hold back the whole one before it, nor a
			// first byte that a packed file could begin with.
			for _, part := range []struct{ write, want string }{
				{"(\n", "(\n"}, {"a\nb", "a\n"}, {"b\n(\n", "bb\n"}, {"\n", "\n"},
			} {
				io.WriteString(to, part.write)
				if err := to.Flush(); err != nil {
					t.Fatal(err)
				}
				got, err := from.ReadString('\n')
				if err != nil || got != part.want {
					t.Fatalf("after %q: got %q, %v, want %q", part.write, got, err, part.want)
				}
			}
			to.Close()
			toStdin.Close()
			if got := <-code; got != exitDone {
				t.Errorf("exit code %d", got)
			}
		})
	}
}

type unpacked struct{ io.Writer }

func (unpacked) Flush() error { return nil }
func (unpacked) Close() error { return nil }

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
