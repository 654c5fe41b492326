package resp_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
)

func TestWriter(t *testing.T) {
	for _, tt := range []struct {
		name         string
		write        func(*resp.Writer)
		resp2, resp3 string
	}{
		{"simple string", func(w *resp.Writer) { w.SimpleString("OK") }, "+OK\r\n", ""},
		{"simple string, broken", func(w *resp.Writer) { w.SimpleString("a\r\nb\n") }, "+a  b \r\n", ""},
		{"simple string, empty", func(w *resp.Writer) { w.SimpleString("") }, "+\r\n", ""},
		{"error", func(w *resp.Writer) { w.Error("ERR not found") }, "-ERR not found\r\n", ""},
		{"error, broken", func(w *resp.Writer) { w.Error("ERR '\r\n+OK\r\n'") }, "-ERR '  +OK  '\r\n", ""},
		{"integer", func(w *resp.Writer) { w.Integer(1234) }, ":1234\r\n", ""},
		{"integer, least", func(w *resp.Writer) { w.Integer(math.MinInt64) }, ":-9223372036854775808\r\n", ""},
		{"bulk", func(w *resp.Writer) { w.Bulk([]byte("a\r\nb")) }, "$4\r\na\r\nb\r\n", ""},
		{"bulk, empty", func(w *resp.Writer) { w.Bulk(nil) }, "$0\r\n\r\n", ""},
		{"bulk string", func(w *resp.Writer) { w.BulkString("a\r\nb") }, "$4\r\na\r\nb\r\n", ""},
		{"null", func(w *resp.Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
		{"null array", func(w *resp.Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
		{"true", func(w *resp.Writer) { w.Bool(true) }, ":1\r\n", "#t\r\n"},
		{"false", func(w *resp.Writer) { w.Bool(false) }, ":0\r\n", "#f\r\n"},
		{"double", func(w *resp.Writer) { w.Double(1.5) }, "$3\r\n1.5\r\n", ",1.5\r\n"},
		{"array", func(w *resp.Writer) { w.Array(2); w.Integer(1); w.Integer(2) }, "*2\r\n:1\r\n:2\r\n", ""},
		{"array, empty", func(w *resp.Writer) { w.Array(0) }, "*0\r\n", ""},
		{"map", func(w *resp.Writer) { w.Map(1); w.SimpleString("Capacity"); w.Integer(100) }, "*2\r\n+Capacity\r\n:100\r\n", "%1\r\n+Capacity\r\n:100\r\n"},
		{"set", func(w *resp.Writer) { w.Set(1); w.SimpleString("write") }, "*1\r\n+write\r\n", "~1\r\n+write\r\n"},
		{"push", func(w *resp.Writer) { w.Push(2); w.BulkString("invalidate"); w.NullArray() },
			"*2\r\n$10\r\ninvalidate\r\n*-1\r\n", ">2\r\n$10\r\ninvalidate\r\n_\r\n"},
		{"verbatim", func(w *resp.Writer) { w.Verbatim("txt", "id=1\n") }, "$5\r\nid=1\n\r\n", "=9\r\ntxt:id=1\n\r\n"},
		{"two", func(w *resp.Writer) { w.Protocol = 2; w.Null(); w.Protocol = 3; w.Null() }, "$-1\r\n_\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.resp3 == "" {
				tt.resp3 = tt.resp2
			}
			for protocol, want := range map[int]string{0: tt.resp2, 2: tt.resp2, 3: tt.resp3} {
				w := resp.Writer{Protocol: protocol, Buf: []byte("+before\r\n")}
				tt.write(&w)
				if got := string(w.Buf); got != "+before\r\n"+want {
					t.Errorf("RESP%d: %q, want %q after the one before", protocol, got, want)
				}
			}
		})
	}
}

func TestVerbatimFormat(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Verbatim(text, ...) did not panic")
		}
	}()
	new(resp.Writer).Verbatim("text", "x")
}

func TestDouble(t *testing.T) {
	for _, tt := range []struct {
		value float64
		want  string
	}{
		{0, "0"}, {math.Copysign(0, -1), "-0"}, {1, "1"}, {-1, "-1"}, {10, "10"}, {1.5, "1.5"}, {-2.25, "-2.25"},
		{0.1, "0.1"}, {0.01, "0.01"}, {0.005, "0.005"}, {1.0 / 3, "0.3333333333333333"}, {100.0 / 3, "33.333333333333336"},
		{math.Pi, "3.141592653589793"}, {3.0e6, "3000000"}, {1e7, "10000000"}, {1e8, "1e+8"}, {12e7, "120000000"}, {12e8, "1.2e+9"}, {123456789, "123456789"},
		{0.000001, "0.000001"}, {0.0000001, "1e-7"}, {5e-10, "5e-10"}, {1.25e-5, "1.25e-5"}, {0.001234567, "0.001234567"}, {0.0001234567, "1.234567e-4"},
		{1 << 53, "9007199254740992"}, {1e21, "1e+21"}, {1e22, "1e+22"}, {1234.0000001, "1234.0000001"}, {12345.0000001, "1.23450000001e+4"}, {1e100, "1e+100"},
		{math.MaxFloat64, "1.7976931348623157e+308"}, {math.SmallestNonzeroFloat64, "5e-324"},
		{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"}, {math.Copysign(math.NaN(), -1), "nan"},
	} {
		w := resp.Writer{Protocol: 3}
		w.Double(tt.value)
		if got, want := string(w.Buf), ","+tt.want+"\r\n"; got != want {
			t.Errorf("Double(%g) = %q, want %q", tt.value, got, want)
		}
	}
}

// TestDoubleMeansItself writes doubles of any size and reads them back.
func TestDoubleMeansItself(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		value := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 { // or one with few digits
			value = float64(random.IntN(1_000_000)) * math.Pow10(random.IntN(40)-20)
		}
		if math.IsNaN(value) {
			continue
		}
		w := resp.Writer{Protocol: 3}
		w.Double(value)
		text := string(w.Buf[1 : len(w.Buf)-2])
		if got, err := strconv.ParseFloat(text, 64); got != value || err != nil {
			t.Fatalf("Double(%g) = %s, which reads as %g, error %v", value, text, got, err)
		}
		if len(text) > 25 {
			t.Fatalf("Double(%g) = %s is %d bytes long", value, text, len(text))
		}
	}
}

func TestWriterAllocations(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 100)
	for _, protocol := range []int{2, 3} {
		w := resp.Writer{Protocol: protocol, Buf: make([]byte, 0, 4096)}
		allocations := testing.AllocsPerRun(100, func() {
			w.Buf = w.Buf[:0]
			w.SimpleString("OK")
			w.Error("ERR not found")
			w.Integer(math.MinInt64)
			w.Bulk(value)
			w.BulkString("item")
			w.Null()
			w.NullArray()
			w.Bool(true)
			w.Double(1.0 / 3)
			w.Array(1)
			w.Map(1)
			w.Set(1)
			w.Push(1)
			w.Verbatim("txt", "text")
		})
		if allocations != 0 {
			t.Errorf("RESP%d: %v allocations, want 0", protocol, allocations)
		}
	}
}
