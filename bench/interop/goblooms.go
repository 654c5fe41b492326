package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"

	"github.com/bits-and-blooms/bitset"
	"github.com/bits-and-blooms/bloom/v3"
)

// goBlooms is github.com/bits-and-blooms/bloom. Variants: "binary" is WriteTo,
// "json" MarshalJSON; "little-endian" and "base64-std" are the same with the two
// switches of package bitset, which apply to the whole process.
type goBlooms struct{}

func (goBlooms) about() string {
	return "bits-and-blooms " + moduleVersion("github.com/bits-and-blooms/bloom/v3") + ", bitset " + moduleVersion("github.com/bits-and-blooms/bitset")
}

func (goBlooms) stop() {}

func (goBlooms) make(j job) (file []byte, answers []bool, err error) {
	defer setBitset(j.variant)()
	f := bloom.NewWithEstimates(uint(j.n), j.p)
	if j.p == 0 {
		f = bloom.New(uint(j.m), uint(j.k))
	}
	for _, key := range j.keys {
		f.Add(key)
	}
	var out bytes.Buffer
	if isJSON(j.variant) {
		file, err = json.Marshal(f)
		out.Write(file)
	} else {
		_, err = f.WriteTo(&out)
	}
	return out.Bytes(), testAll(f, j.probes), err
}

func (goBlooms) read(j job, file []byte) (answers []bool, err error) {
	defer setBitset(j.variant)()
	f := new(bloom.BloomFilter)
	if isJSON(j.variant) {
		err = json.Unmarshal(file, f)
	} else {
		_, err = f.ReadFrom(bytes.NewReader(file))
	}
	if err != nil {
		return nil, err
	}
	return testAll(f, j.probes), nil
}

func isJSON(variant string) bool { return variant == "json" || variant == "base64-std" }

// setBitset sets the variant's switch and returns a function that resets it. The
// switch for base64 cannot be reset, so that variant comes last.
func setBitset(variant string) (reset func()) {
	switch variant {
	case "little-endian":
		bitset.LittleEndian()
		return bitset.BigEndian
	case "base64-std":
		bitset.Base64StdEncoding()
	}
	return func() {}
}

func testAll(f *bloom.BloomFilter, probes [][]byte) []bool {
	answers := make([]bool, len(probes))
	for i, key := range probes {
		answers[i] = f.Test(key)
	}
	return answers
}

// moduleVersion returns the version of a module that this program is built with.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "of unknown version"
}
