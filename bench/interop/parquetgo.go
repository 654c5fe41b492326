package main

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// parquetGo writes Parquet files of one column with a Bloom filter, and extracts the
// filter. It reads our filters in place of its own in such a file. Variants are column
// types; k is the bits per value.
type parquetGo struct{}

func (parquetGo) about() string {
	return "parquet-go " + moduleVersion("github.com/parquet-go/parquet-go")
}
func (parquetGo) stop() {}

func (parquetGo) make(j job) (file []byte, answers []bool, err error) {
	whole, at, length, err := writeParquetGo(j)
	if err != nil {
		return nil, nil, err
	}
	answers, err = askParquetGo(whole, j)
	return whole[at:][:length], answers, err
}

func (parquetGo) read(j job, file []byte) ([]bool, error) {
	whole, at, length, err := writeParquetGo(j)
	if err != nil {
		return nil, err
	}
	if err := replace(whole, at, length, file); err != nil {
		return nil, err
	}
	return askParquetGo(whole, j)
}

// replace replaces the filter in a Parquet file by ours.
func replace(whole []byte, at, length int, ours []byte) error {
	if len(ours) != length {
		return fmt.Errorf("our filter has %d bytes, the program's own has %d", len(ours), length)
	}
	copy(whole[at:], ours)
	return nil
}

func writeParquetGo(j job) (whole []byte, at, length int, err error) {
	node := map[string]parquet.Node{
		"byte-array": parquet.Leaf(parquet.ByteArrayType),
		"int32":      parquet.Int(32),
		"int64":      parquet.Int(64),
		"double":     parquet.Leaf(parquet.DoubleType),
	}[j.variant]
	var out bytes.Buffer
	w := parquet.NewWriter(&out, parquet.NewSchema("keys", parquet.Group{"key": node}),
		parquet.BloomFilters(parquet.SplitBlockFilter(uint(j.k), "key")))
	for _, key := range j.keys {
		if _, err := w.WriteRows([]parquet.Row{{parquetGoValue(j.variant, key).Level(0, 0, 0)}}); err != nil {
			return nil, 0, 0, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, 0, 0, err
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		return nil, 0, 0, err
	}
	column := file.Metadata().RowGroups[0].Columns[0].MetaData
	return out.Bytes(), int(column.BloomFilterOffset), int(column.BloomFilterLength), nil
}

func askParquetGo(whole []byte, j job) ([]bool, error) {
	file, err := parquet.OpenFile(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		return nil, err
	}
	filter := file.RowGroups()[0].ColumnChunks()[0].BloomFilter()
	answers := make([]bool, len(j.probes))
	for i, key := range j.probes {
		if answers[i], err = filter.Check(parquetGoValue(j.variant, key)); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func parquetGoValue(variant string, key []byte) parquet.Value {
	switch number := decimal(variant, key); variant {
	case "int32":
		return parquet.Int32Value(int32(number))
	case "int64":
		return parquet.Int64Value(number)
	case "double":
		return parquet.DoubleValue(float64(number))
	}
	return parquet.ByteArrayValue(key)
}

// decimal returns the number that a key of a numeric column stands for.
func decimal(variant string, key []byte) int64 {
	if variant == "byte-array" {
		return 0
	}
	number, err := strconv.ParseInt(string(key), 10, 64)
	if err != nil {
		panic(err) // the shape has no numbers
	}
	return number
}
