package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
)

// pipeline returns n commands like BF.EXISTS seen key:000042.
func pipeline(n int) []byte {
	var w resp.Writer
	for i := range n {
		w.Array(3)
		w.BulkString("BF.EXISTS")
		w.BulkString("seen")
		w.BulkString(fmt.Sprintf("key:%06d", i))
	}
	return w.Buf
}

// takeAll parses all commands in buf, as a server would for one batch.
func takeAll(p *resp.Parser, buf []byte, args [][]byte) (commands int, out [][]byte) {
	for {
		more, used, err := p.Next(buf, args)
		if err != nil {
			return commands, args
		}
		args, buf = more, buf[used:]
		commands++
	}
}

// trickle gives a command to the parser in pieces of a given size.
func trickle(p *resp.Parser, command []byte, piece int, args [][]byte) (out [][]byte, err error) {
	for came := piece; ; came += piece {
		out, _, err := p.Next(command[:min(came, len(command))], args)
		if err == nil || came >= len(command) || !errors.Is(err, resp.ErrIncomplete) {
			return out, err
		}
	}
}

func TestParserAllocations(t *testing.T) {
	batch := pipeline(100)
	inline := []byte("BF.ADD seen \"a \\x00 b\"\r\nBF.ADD seen 'c'\r\n\r\n*0\r\n")
	scratch := bytes.Clone(inline)
	claim := []byte("*1048576\r\n$536870912\r\n")
	wrong := []byte("*1\r\n$-1\r\n")
	args := make([][]byte, 0, 1000)
	var p resp.Parser
	for _, tt := range []struct {
		name string
		run  func()
	}{
		{"pipeline", func() {
			if n, _ := takeAll(&p, batch, args); n != 100 {
				t.Fatalf("%d commands, want 100", n)
			}
		}},
		{"pipeline in pieces", func() {
			buf := batch
			for came := 7; came < len(batch); came += 7 {
				_, used, _ := p.Next(buf[:max(0, len(buf)-len(batch)+came)], args)
				buf = buf[used:]
			}
			p = resp.Parser{}
		}},
		{"inline", func() {
			copy(scratch, inline)
			if n, _ := takeAll(&p, scratch, args); n != 4 {
				t.Fatalf("%d commands, want 4", n)
			}
		}},
		{"claim", func() {
			if _, _, err := p.Next(claim, nil); !errors.Is(err, resp.ErrIncomplete) {
				t.Fatal(err)
			}
			p = resp.Parser{}
		}},
		{"refusal", func() {
			if _, _, err := p.Next(wrong, args); errors.Is(err, resp.ErrIncomplete) {
				t.Fatal(err)
			}
			p = resp.Parser{}
		}},
	} {
		if n := testing.AllocsPerRun(100, tt.run); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.name, n)
		}
	}
}

func BenchmarkPipeline(b *testing.B) {
	const commands = 100
	batch := pipeline(commands)
	args := make([][]byte, 0, 3*commands)
	var p resp.Parser
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if n, _ := takeAll(&p, batch, args); n != commands {
			b.Fatalf("%d commands, want %d", n, commands)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*commands), "ns/command")
}

// BenchmarkMany parses one complete command with very many arguments.
func BenchmarkMany(b *testing.B) {
	const keys = 100_000
	command := many(keys)
	args := make([][]byte, 0, keys+2)
	var p resp.Parser
	for b.Loop() {
		if out, _, err := p.Next(command, args); len(out) != keys+2 {
			b.Fatalf("%d arguments, error %v", len(out), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/argument")
}

// BenchmarkTrickle parses the same command in reads of 16 KiB, and of 1 KiB: the cost
// must not depend on the number of reads.
func BenchmarkTrickle(b *testing.B) {
	const keys = 100_000
	command := many(keys)
	args := make([][]byte, 0, keys+2)
	for _, piece := range []int{16 << 10, 1 << 10} {
		b.Run(fmt.Sprint(piece), func(b *testing.B) {
			var p resp.Parser
			for b.Loop() {
				if out, err := trickle(&p, command, piece, args); len(out) != keys+2 {
					b.Fatalf("%d arguments, error %v", len(out), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/argument")
		})
	}
}

// many returns a BF.MADD of n keys.
func many(n int) []byte {
	var w resp.Writer
	w.Array(n + 2)
	w.BulkString("BF.MADD")
	w.BulkString("seen")
	for i := range n {
		w.BulkString(fmt.Sprintf("key:%06d", i))
	}
	return w.Buf
}

func BenchmarkReplies(b *testing.B) {
	var w resp.Writer
	const replies = 100
	for b.Loop() {
		w.Buf = w.Buf[:0]
		for i := range replies {
			w.Integer(int64(i & 1))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*replies), "ns/reply")
}
