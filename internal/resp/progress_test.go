package resp

import (
	"bytes"
	"errors"
	"testing"
)

// TestProgress lets commands trickle in, byte by byte, and checks where the parser would
// continue: at the incomplete argument, or at the end of an incomplete line. So before
// the command is complete, only the bytes of one length are read twice.
func TestProgress(t *testing.T) {
	t.Run("arguments", func(t *testing.T) {
		var w Writer
		w.Array(1000)
		var begins []int // of arguments
		for i := range 1000 {
			begins = append(begins, len(w.Buf))
			w.Bulk(make([]byte, i%7))
		}
		var p Parser
		for came := begins[0]; came < len(w.Buf); came++ {
			if _, _, err := p.Next(w.Buf[:came], nil); !errors.Is(err, ErrIncomplete) {
				t.Fatalf("after %d bytes: error %v, want %v", came, err, ErrIncomplete)
			}
			for len(begins) > 1 && begins[1] <= came {
				begins = begins[1:]
			}
			if p.at != begins[0] || p.left != len(begins) {
				t.Fatalf("after %d bytes: at argument %d from the last at %d, want %d at %d", came, p.left, p.at, len(begins), begins[0])
			}
		}
		if args, used, err := p.Next(w.Buf, nil); len(args) != 1000 || used != len(w.Buf) || err != nil {
			t.Errorf("complete: %d arguments, %d bytes, error %v, want 1000, %d, none", len(args), used, err, len(w.Buf))
		}
		if p.progress != (progress{}) {
			t.Errorf("after the command: progress %+v, want none", p.progress)
		}
	})
	for name, line := range map[string][]byte{
		"inline": bytes.Repeat([]byte("x"), 1000),
		"count":  append([]byte("*1"), bytes.Repeat([]byte("0"), 1000)...),
		"length": append([]byte("*1\r\n$1"), bytes.Repeat([]byte("0"), 1000)...),
	} {
		t.Run(name, func(t *testing.T) {
			var p Parser
			for came := 1; came <= len(line); came++ {
				_, _, err := p.Next(line[:came], nil)
				if !errors.Is(err, ErrIncomplete) {
					t.Fatalf("after %d bytes: error %v, want %v", came, err, ErrIncomplete)
				}
				if came > len("*1\r\n$") && p.scanned != came {
					t.Fatalf("after %d bytes: no end before %d, want %d", came, p.scanned, came)
				}
			}
		})
	}
}
