package main

import (
	"bytes"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// arrowGo does for Apache Arrow's Parquet what parquetGo does for parquet-go. It
// sizes filters from n and p, as powers of two.
type arrowGo struct{}

func (arrowGo) about() string { return "arrow-go " + moduleVersion("github.com/apache/arrow-go/v18") }
func (arrowGo) stop()         {}

func (arrowGo) make(j job) (cut []byte, answers []bool, err error) {
	whole, at, length, err := writeArrowGo(j)
	if err != nil {
		return nil, nil, err
	}
	answers, err = askArrowGo(whole, j)
	return whole[at:][:length], answers, err
}

func (arrowGo) read(j job, ours []byte) ([]bool, error) {
	whole, at, length, err := writeArrowGo(j)
	if err != nil {
		return nil, err
	}
	if err := replace(whole, at, length, ours); err != nil {
		return nil, err
	}
	return askArrowGo(whole, j)
}

func writeArrowGo(j job) (whole []byte, at, length int, err error) {
	required := parquet.Repetitions.Required
	node := map[string]schema.Node{
		"byte-array": schema.NewByteArrayNode("key", required, -1),
		"int32":      schema.NewInt32Node("key", required, -1),
		"int64":      schema.NewInt64Node("key", required, -1),
		"double":     schema.NewFloat64Node("key", required, -1),
	}[j.variant]
	group, err := schema.NewGroupNode("keys", required, schema.FieldList{node}, -1)
	if err != nil {
		return nil, 0, 0, err
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, group, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithBloomFilterEnabled(true), parquet.WithBloomFilterNDV(int64(j.n)), parquet.WithBloomFilterFPP(j.p))))
	rows := w.AppendRowGroup()
	column, err := rows.NextColumn()
	if err != nil {
		return nil, 0, 0, err
	}
	if err := writeColumn(column, j); err != nil {
		return nil, 0, 0, err
	}
	for _, end := range []func() error{column.Close, rows.Close, w.Close} {
		if err := end(); err != nil {
			return nil, 0, 0, err
		}
	}
	r, err := file.NewParquetReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		return nil, 0, 0, err
	}
	defer r.Close()
	chunk, err := r.MetaData().RowGroup(0).ColumnChunk(0)
	if err != nil {
		return nil, 0, 0, err
	}
	return out.Bytes(), int(chunk.BloomFilterOffset()), int(chunk.BloomFilterLength()), nil
}

func writeColumn(column file.ColumnChunkWriter, j job) (err error) {
	for _, key := range j.keys {
		number := decimal(j.variant, key)
		switch column := column.(type) {
		case *file.ByteArrayColumnChunkWriter:
			_, err = column.WriteBatch([]parquet.ByteArray{key}, nil, nil)
		case *file.Int32ColumnChunkWriter:
			_, err = column.WriteBatch([]int32{int32(number)}, nil, nil)
		case *file.Int64ColumnChunkWriter:
			_, err = column.WriteBatch([]int64{number}, nil, nil)
		case *file.Float64ColumnChunkWriter:
			_, err = column.WriteBatch([]float64{float64(number)}, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func askArrowGo(whole []byte, j job) ([]bool, error) {
	r, err := file.NewParquetReader(bytes.NewReader(whole))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	group, err := r.GetBloomFilterReader().RowGroup(0)
	if err != nil {
		return nil, err
	}
	filter, err := group.GetColumnBloomFilter(0)
	if err != nil {
		return nil, err
	}
	answers := make([]bool, len(j.probes))
	for i, key := range j.probes {
		number := decimal(j.variant, key)
		var hash uint64
		switch j.variant {
		case "int32":
			hash = metadata.GetHash(filter.Hasher(), int32(number))
		case "int64":
			hash = metadata.GetHash(filter.Hasher(), number)
		case "double":
			hash = metadata.GetHash(filter.Hasher(), float64(number))
		default:
			hash = metadata.GetHash(filter.Hasher(), parquet.ByteArray(key))
		}
		answers[i] = filter.CheckHash(hash)
	}
	return answers, nil
}
