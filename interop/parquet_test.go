package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
)

type parquetVectors struct {
	Positions []struct {
		Z     uint64
		Key   string
		Block int
		Bits  []int `json:"bits_in_block"`
	}
	Filters []struct {
		program
		Z      uint64
		BitSet string `json:"bitset_b64"`
	}
	Files []struct {
		File      string `json:"file_b64"`
		WrittenBy string `json:"written_by"`
		Rows      int
		Columns   []struct {
			Column   string
			Physical string `json:"physical_type"`
			Offset   *int64 `json:"bloom_filter_offset"`
			Length   int    `json:"bloom_filter_length"`
			BitSet   string `json:"bitset_b64"`
			Header   string `json:"header_hex"`
		}
	}
}

// zipped is a filter that parquet-go v0.32.0 wrote with SplitBlockFilter(10,
// "name") and BloomFilterCompression(&Gzip), from the file's byte 1489 on, of
// keys "https://example.com/%d" with 0 to 59.
const zipped = "15f2011c1c00001c1c00001c2c000000" +
	"1f8b080000096e8800ff0060009fff58b34543c719f1b176ba055e70cdbf171c5bb42316adeea43593447fb04656cd676132e06c31674846a807e3678659a0cad063098021d89a059441560581dc2c2a997cd9f58b1817cf187ab1bee036a8cf802b2217a85c087961e4b2a3f0bf0c0300d62f000b60000000"

// parquetHeader is the header that all writers write, for up to 63 bytes.
func parquetHeader(length byte) string {
	return "\x15" + string([]byte{2 * length}) + strings.Repeat("\x1c\x1c\x00\x00", 3) + "\x00"
}

// emptyBlocks makes an empty filter of z blocks.
func emptyBlocks(t testing.TB, z uint64) *bloom.SplitBlock {
	t.Helper()
	f, err := bloom.Config{Keys: z, Bits: z * 256}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParquet(t *testing.T) {
	var v parquetVectors
	keys := loadVectors(t, "parquet_sbbf", &v)
	for _, w := range v.Filters {
		data := fromBase64(t, w.BitSet)
		file := mustRewrite(t, "parquet-bitset", data, interop.Options{})
		w.compare(t, file, keys)
		made := emptyBlocks(t, w.Z)
		w.fill(made, keys)
		var b bytes.Buffer
		if err := interop.WriteParquet(&b, made); err != nil || !bytes.HasSuffix(b.Bytes(), data) {
			t.Errorf("%s: made from its keys it is %.80x..., %v, want %.80x...", w.Name, b.Bytes(), err, data)
		}
		w.compare(t, mustRewrite(t, "parquet", b.Bytes(), interop.Options{Limit: int64(b.Len())}), keys)
	}
	const large = 1 << 22 // 128 MiB: one filter for all keys
	all, union := emptyBlocks(t, large), map[int]byte{}
	for _, w := range v.Positions {
		if w.Z == large {
			all.Add(keys[w.Key])
			for _, bit := range w.Bits {
				union[w.Block*32+bit/8] |= 1 << (bit % 8)
			}
			continue
		}
		f := emptyBlocks(t, w.Z)
		f.Add(keys[w.Key])
		want := make([]byte, w.Z*32)
		for _, bit := range w.Bits {
			want[w.Block*32+bit/8] |= 1 << (bit % 8)
		}
		var b bytes.Buffer
		if _, err := f.WriteBits(&b); err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%d blocks, key %s: %v, bits other than %d of block %d", w.Z, w.Key, err, w.Bits, w.Block)
		}
	}
	set := setBytes{bytes: map[int]byte{}}
	if _, err := all.WriteBits(&set); err != nil || len(union) == 0 || !maps.Equal(set.bytes, union) {
		t.Errorf("%d blocks: %v, %d bytes with bits, want %d", large, err, len(set.bytes), len(union))
	}
	all.Close()
}

// setBytes keeps of what is written the bytes that are not zero.
type setBytes struct {
	at    int
	bytes map[int]byte
}

func (s *setBytes) Write(b []byte) (int, error) {
	for i, octet := range b {
		if octet != 0 {
			s.bytes[s.at+i] = octet
		}
	}
	s.at += len(b)
	return len(b), nil
}

// TestParquetFiles reads the filters of whole Parquet files where their metadata
// says they are, and makes them again from the values of the rows.
func TestParquetFiles(t *testing.T) {
	var v parquetVectors
	keys := loadVectors(t, "parquet_sbbf", &v)
	var ids []string // in the order in which the programs had them
	for _, w := range v.Positions {
		if w.Z == 1 {
			ids = append(ids, w.Key)
		}
	}
	columns := 0
	for _, file := range v.Files {
		data := fromBase64(t, file.File)
		for _, column := range file.Columns {
			if column.Offset == nil {
				continue
			}
			columns++
			name := file.WrittenBy + ", " + column.Column
			f, err := interop.ReadParquetAt(bytes.NewReader(data), *column.Offset)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			whole := data[*column.Offset:][:column.Length]
			if want := string(fromHex(t, column.Header)) + string(fromBase64(t, column.BitSet)); want != string(whole) {
				t.Errorf("%s: the file has %.40x... and the vector %.40x...", name, whole, want)
			}
			mustRewrite(t, "parquet", whole, interop.Options{})
			made := emptyBlocks(t, f.Plan().Blocks)
			for row := range file.Rows {
				key := rowKey(column.Column, row, keys[ids[4*row]])
				made.Add(key)
				if !f.Contains(key) {
					t.Errorf("%s: row %d is not found", name, row)
				}
			}
			if !made.Equal(f) {
				t.Errorf("%s: made from its rows the filter differs", name)
			}
		}
	}
	if columns != 11 {
		t.Errorf("%d columns with a filter, want 11", columns)
	}
	if _, err := interop.ReadParquetAt(bytes.NewReader(nil), -1); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("offset -1: %v, want ErrFormat", err)
	}
	if _, err := interop.ReadParquetAt(bytes.NewReader(nil), 1<<40); !errors.Is(err, bloom.ErrFormat) {
		t.Errorf("an offset beyond the end: %v, want ErrFormat", err)
	}
}

// rowKey is the key of a row's value; the vectors say in row_values which it is.
func rowKey(column string, i int, text []byte) []byte {
	switch column {
	case "i64":
		return interop.ParquetKey(int64(i)*1000003 - 5)
	case "i32":
		return interop.ParquetKey(int32(i*i - 100))
	case "f64":
		return interop.ParquetKey(float64(i) / 3)
	case "f32":
		return interop.ParquetKey(float32(i) * 0.1)
	case "b":
		return interop.ParquetKey(i%2 == 0)
	}
	if i%2 == 0 {
		return interop.ParquetKey(string(text))
	}
	return interop.ParquetKey(text)
}

func TestParquetZipped(t *testing.T) {
	data := fromHex(t, zipped)
	rest := bytes.NewReader(append(data, "PAR1"...))
	f, err := interop.ReadParquet(rest)
	if err != nil {
		t.Fatal(err)
	}
	if rest.Len() != 4 {
		t.Errorf("%d bytes were left, want 4", rest.Len())
	}
	made := emptyBlocks(t, f.Plan().Blocks)
	for i := range 60 {
		made.Add(interop.ParquetKey(fmt.Sprintf("https://example.com/%d", i)))
	}
	if !made.Equal(f) {
		t.Error("made from its keys the filter differs")
	}
	file := mustRead(t, "parquet", interop.Options{}, data)
	if len(file.Details) != 1 || file.Details[0][0] != "compression" {
		t.Errorf("details %q", file.Details)
	}
	if again := mustRead(t, "parquet", interop.Options{}, written(t, file, "parquet")); !equal(file, again) {
		t.Error("written and read again the filter differs")
	}
	if got, ok := interop.Recognise(data[:64], int64(len(data))); !ok || got.Name != "parquet" {
		t.Errorf("Recognise = %v, %v", got, ok)
	}
	refuseCut(t, "parquet", interop.Options{}, data)
	for i := 16; i < len(data); i++ {
		damaged := slices.Clone(data)
		damaged[i] ^= 0x10
		if f, err := interop.ReadParquet(bytes.NewReader(damaged)); err == nil && !f.Equal(made) {
			t.Errorf("byte %d was damaged, and another filter was read", i)
		} else if err != nil && !errors.Is(err, bloom.ErrFormat) {
			t.Errorf("byte %d was damaged: %v, want ErrFormat", i, err)
		}
	}
	refuse(t, "parquet", interop.Options{Limit: int64(len(data)) - 1}, []refusal{{"over the limit", string(data), bloom.ErrLimit}})
}

func TestParquetRefuses(t *testing.T) {
	blocks := strings.Repeat("\x00", 32)
	good := parquetHeader(32) + blocks
	refuseCut(t, "parquet", interop.Options{}, []byte(good))
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	refuse(t, "parquet", interop.Options{}, []refusal{
		{"no bytes", parquetHeader(0), bloom.ErrFormat},
		{"half a block", parquetHeader(48) + blocks + blocks, bloom.ErrFormat},
		{"less than nothing", "\x15\x3f" + good[2:], bloom.ErrFormat},
		{"2 GiB claimed", "\x15\xc0\xff\xff\xff\x0f" + good[2:], bloom.ErrFormat},
		{"more than 2 GiB", "\x15\x80\x80\x80\x80\x10" + good[2:], bloom.ErrFormat},
		{"more than 64 bits", "\x15" + strings.Repeat("\xff", 10) + good[2:], bloom.ErrFormat},
		{"another algorithm", with("\x1c\x1c\x00\x00", "\x1c\x2c\x00\x00"), bloom.ErrVersion},
		{"another hash", good[:6] + "\x1c\x7c\x00\x00" + good[10:], bloom.ErrVersion},
		{"another compression", good[:10] + "\x1c\x3c\x00\x00" + good[14:], bloom.ErrVersion},
		{"no compression", good[:10] + "\x00" + blocks, bloom.ErrFormat},
		{"an empty union", good[:2] + "\x1c\x00" + good[6:], bloom.ErrFormat},
		{"a union of two", good[:2] + "\x1c\x1c\x00\x1c\x00\x00" + good[6:], bloom.ErrFormat},
		{"numBytes as struct", "\x1c\x00" + good[2:], bloom.ErrFormat},
		{"numBytes twice", "\x15\x40\x05\x02\x40" + good[2:], bloom.ErrFormat},
		{"a bomb of structs", strings.Repeat("\x1c", 1<<20), bloom.ErrFormat},
		{"a bomb of lists", "\x69" + strings.Repeat("\x19", 1<<20), bloom.ErrFormat},
		{"a list of 2^64-1", "\x69\xf3" + strings.Repeat("\xff", 9) + "\x01" + strings.Repeat("\x00", 1<<20), bloom.ErrFormat},
		{"a string of 2^64-1", "\x68" + strings.Repeat("\xff", 9) + "\x01" + strings.Repeat("\x00", 1<<20), bloom.ErrFormat},
		{"an unknown type", "\x6f" + good, bloom.ErrFormat},
		{"not gzip", good[:10] + "\x1c\x2c\x00\x00\x00" + blocks, bloom.ErrFormat},
	})
	refuse(t, "parquet-bitset", interop.Options{}, []refusal{
		{"no bytes", "", bloom.ErrFormat},
		{"33 bytes", blocks + "x", bloom.ErrFormat},
	})
	refuse(t, "parquet-bitset", interop.Options{Bits: 512}, []refusal{{"fewer bits", blocks, bloom.ErrFormat}})
	if f := mustRead(t, "parquet-bitset", interop.Options{Bits: 256}, []byte(blocks)); f.Plan().Bits != 256 {
		t.Errorf("as many bits as were expected read as %v", f.Plan())
	}
	refuse(t, "parquet-bitset", interop.Options{Limit: 32}, []refusal{{"over the limit", blocks + blocks, bloom.ErrLimit}})
}

// TestParquetUnknownFields: fields of later versions are skipped, whatever their
// type.
func TestParquetUnknownFields(t *testing.T) {
	good := parquetHeader(32) + strings.Repeat("\x01", 32)
	want := mustRead(t, "parquet", interop.Options{}, []byte(good))
	for name, field := range map[string]string{ // numbers 5, or 200 where it is written out
		"true":                  "\x11",
		"false":                 "\x12",
		"byte":                  "\x13\x7f",
		"i16":                   "\x14\x80\x01",
		"i32":                   "\x15\x80\x80\x01",
		"i64":                   "\x16\x01",
		"double":                "\x1712345678",
		"binary":                "\x18\x05hello",
		"uuid":                  "\x1d0123456789abcdef",
		"struct":                "\x1c\x15\x02\x18\x01x\x00",
		"list of bool":          "\x19\x31\x01\x02\x01",
		"list of 15 i32":        "\x19\xf5\x0f" + strings.Repeat("\x02", 15),
		"set of binary":         "\x1a\x28\x01x\x00",
		"list of struct":        "\x19\x2c\x11\x00\x00",
		"empty map":             "\x1b\x00",
		"map of binary to bool": "\x1b\x02\x81\x01x\x01\x01y\x02",
		"number written out":    "\x05\x90\x03\x02",
	} {
		data := good[:14] + field + good[14:]
		file, err := format(t, "parquet").Read(strings.NewReader(data), interop.Options{})
		if err != nil || !equal(file, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The fields in another order, each with its number written out.
	reordered := "\x0c\x08\x1c\x00\x00" + "\x0c\x06\x1c\x00\x00" + "\x0c\x04\x1c\x00\x00" + "\x05\x02\x40" + good[14:]
	if file, err := format(t, "parquet").Read(strings.NewReader(reordered), interop.Options{}); err != nil || !equal(file, want) {
		t.Errorf("in another order: %v", err)
	}
}

func TestParquetKey(t *testing.T) {
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{interop.ParquetKey(true), "01"},
		{interop.ParquetKey(false), "00"},
		{interop.ParquetKey(int32(-2)), "feffffff"},
		{interop.ParquetKey(int64(1)), "0100000000000000"},
		{interop.ParquetKey(float32(1)), "0000803f"},
		{interop.ParquetKey(math.Copysign(0, -1)), "0000000000000080"},
		{interop.ParquetKey("ab"), "6162"},
		{interop.ParquetKey([]byte{7}), "07"},
	} {
		if got := fmt.Sprintf("%x", tt.got); got != tt.want {
			t.Errorf("key %s, want %s", got, tt.want)
		}
	}
}

func ExampleReadParquet() {
	// The filter of a column of INT64, as an engine wrote it: header and one block.
	theirs := "\x15\x40\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00" +
		"\xa8\x39\x5c\xc3\xeb\x15\x7e\x2b\x7c\x4f\x46\xe5\x2f\x54\x1e\x3b" +
		"\x6e\x21\xb8\xda\x53\x23\x77\x66\xba\x84\xe3\xe7\xca\xe5\xc5\x7b"
	f, err := interop.ReadParquet(strings.NewReader(theirs))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Plan().Blocks, "block")
	fmt.Println(f.Contains(interop.ParquetKey(int64(1000003 - 5))))
	fmt.Println(f.Contains(interop.ParquetKey(int64(1000003))))
	// Output:
	// 1 block
	// true
	// false
}

func FuzzParquet(f *testing.F) {
	var v parquetVectors
	loadVectors(f, "parquet_sbbf", &v)
	for _, file := range v.Files {
		for _, column := range file.Columns {
			if column.Offset != nil {
				f.Add(fromBase64(f, file.File)[*column.Offset:][:column.Length])
			}
		}
	}
	f.Add(fromHex(f, zipped))
	f.Add([]byte(parquetHeader(32)[:14] + "\x1b\x02\x81\x01x\x01\x01y\x02\x00" + strings.Repeat("\x01", 32)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzed(t, "parquet", interop.Options{}, data)
		fuzzed(t, "parquet-bitset", interop.Options{}, data)
	})
}
