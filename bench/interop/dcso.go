package main

import (
	"bytes"

	dcso "github.com/DCSO/bloom"
)

// dcsoBloom is github.com/DCSO/bloom, version 1 of the format.
type dcsoBloom struct{}

func (dcsoBloom) about() string { return "DCSO/bloom " + moduleVersion("github.com/DCSO/bloom") }
func (dcsoBloom) stop()         {}

func (d dcsoBloom) make(j job) (file []byte, answers []bool, err error) {
	f := dcso.Initialize(j.n, j.p)
	for _, key := range j.keys {
		f.Add(key)
	}
	f.Data = j.data
	var out bytes.Buffer
	err = f.Write(&out)
	return out.Bytes(), d.checkAll(&f, j.probes), err
}

func (d dcsoBloom) read(j job, file []byte) ([]bool, error) {
	f, err := dcso.LoadFromBytes(file, false)
	if err != nil {
		return nil, err
	}
	return d.checkAll(f, j.probes), nil
}

func (dcsoBloom) checkAll(f *dcso.BloomFilter, probes [][]byte) []bool {
	answers := make([]bool, len(probes))
	for i, key := range probes {
		answers[i] = f.Check(key)
	}
	return answers
}
