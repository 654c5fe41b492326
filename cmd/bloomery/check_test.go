package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/rogpeppe/go-internal/testscript"
)

// Files that other programs wrote, from the vectors in testdata/vectors: the
// programs themselves made those, each as its made_by says.

// vectorFile is a file of vectors, as far as it is about whole filters.
type vectorFile struct {
	Keys    map[string]struct{ Hex *string }
	Filters []map[string]json.RawMessage
}

func readVectors(path string) (v vectorFile, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(text, &v)
}

func vectorPath(name string) string {
	path, err := filepath.Abs(filepath.Join("..", "..", "testdata", "vectors", name+".json"))
	if err != nil {
		panic(err)
	}
	return path
}

// filterNamed is the filter of that name.
func (v vectorFile) filterNamed(name string) (map[string]json.RawMessage, error) {
	for _, f := range v.Filters {
		var its string
		if json.Unmarshal(f["name"], &its) == nil && its == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no filter %q", name)
}

// decodeField is a field of a filter as the bytes of a file. How it is written
// its name says: _b64, _hex, or else text.
func decodeField(f map[string]json.RawMessage, field string) ([]byte, error) {
	raw, ok := f[field]
	if !ok {
		return nil, fmt.Errorf("the filter has no %q", field)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return raw, nil // an array, for one
	}
	switch {
	case strings.HasSuffix(field, "_b64"):
		return base64.StdEncoding.DecodeString(text)
	case strings.HasSuffix(field, "_hex"):
		return hex.DecodeString(text)
	}
	return []byte(text), nil
}

// answers are the keys that the program found in the filter, and those it did
// not, each ended by a NUL. Keys with a NUL in them are left out.
func (v vectorFile) answers(f map[string]json.RawMessage) (found, not []byte, err error) {
	var contains map[string]bool
	for _, field := range []string{"contains", "might_contain", "exists", "contains_v1_1_0"} {
		if f[field] != nil {
			if err := json.Unmarshal(f[field], &contains); err != nil {
				return nil, nil, err
			}
		}
	}
	for id, is := range contains {
		if v.Keys[id].Hex == nil {
			continue // an unpaired surrogate, which is no text
		}
		key, err := hex.DecodeString(*v.Keys[id].Hex)
		if err != nil {
			return nil, nil, err
		}
		if bytes.IndexByte(key, 0) >= 0 {
			continue
		}
		if is {
			found = append(append(found, key...), 0)
		} else {
			not = append(append(not, key...), 0)
		}
	}
	return found, not, nil
}

// scriptVector writes the file of another program, and the keys that program
// found in it and did not, each ended by a NUL: vector VECTORS NAME FIELD FILE
// [FOUND NOT].
func scriptVector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 && len(args) != 6 {
		ts.Fatalf("usage: vector VECTORS NAME FIELD FILE [FOUND NOT]")
	}
	v, err := readVectors(vectorPath(args[0]))
	ts.Check(err)
	f, err := v.filterNamed(args[1])
	ts.Check(err)
	content, err := decodeField(f, args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), content, 0o666))
	if len(args) == 6 {
		found, not, err := v.answers(f)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[4]), found, 0o666))
		ts.Check(os.WriteFile(ts.MkAbs(args[5]), not, 0o666))
	}
}

// scriptCuckoo writes a dump of RedisBloom's cuckoo filter, and the keys that it was found to
// have and not to have: cuckoo NAME FILE FOUND NOT.
func scriptCuckoo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: cuckoo NAME FILE FOUND NOT")
	}
	file, err := os.ReadFile(vectorPath("cuckoo"))
	ts.Check(err)
	var vectors struct {
		Cases []struct {
			Name   string
			Chunks []struct{ B64 []byte }
			Probes []string
			Counts []int
		}
	}
	ts.Check(json.Unmarshal(file, &vectors))
	var dump, found, not []byte
	for _, c := range vectors.Cases {
		if c.Name != args[0] {
			continue
		}
		for _, chunk := range c.Chunks {
			dump = append(dump, chunk.B64...)
		}
		for i, key := range c.Probes {
			if c.Counts[i] > 0 {
				found = fmt.Appendln(found, key)
			} else {
				not = fmt.Appendln(not, key)
			}
		}
	}
	if len(found) == 0 || len(not) == 0 {
		ts.Fatalf("no case %s with keys that it has and has not", args[0])
	}
	for i, content := range [][]byte{dump, found, not} {
		ts.Check(os.WriteFile(ts.MkAbs(args[1+i]), content, 0o666))
	}
}

// foreignFiles are the vectors whose files the commands read without being told
// the format.
var foreignFiles = []struct{ vectors, field, format string }{
	{"dcso_bloom", "file_b64", "dcso"},
	{"guava_filters", "write_to_b64", "guava"},
	{"bits_and_blooms", "binary_b64", "bits-and-blooms"},
	{"bits_and_blooms", "json", "bits-and-blooms-json"},
	{"redisbloom", "redis_dump_hex", "redis-dump"},
	{"jasondavies_bloomfilter", "json_v1_1_0", "bloomfilter.js"},
	{"callidon_bloom_filters", "json", "npm-bloom-filters"},
}

// TestCheckForeignFiles: check answers as the program did that wrote the file,
// key by key, whether the file is plain or packed, or was taken over into a file
// of ours, and add changes none of it when there is nothing to add.
func TestCheckForeignFiles(t *testing.T) {
	for _, test := range foreignFiles {
		v, err := readVectors(vectorPath(test.vectors))
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, f := range v.Filters {
			var name string
			json.Unmarshal(f["name"], &name)
			content, err := decodeField(f, test.field)
			if err != nil || len(content) == 0 || !keysAreLines(f) {
				continue
			}
			found, not, err := v.answers(f)
			if err != nil {
				t.Fatal(err)
			}
			if len(found)+len(not) == 0 {
				continue
			}
			tried++
			t.Run(test.format+" "+name, func(t *testing.T) {
				checkForeignFile(t, test.format, content, found, not)
			})
		}
		if tried == 0 {
			t.Errorf("%s: no filter was tried", test.vectors)
		}
	}
}

// keysAreLines is false for a Guava filter whose funnel makes other bytes of
// text; the scripts have those.
func keysAreLines(f map[string]json.RawMessage) bool {
	var funnel string
	json.Unmarshal(f["funnel"], &funnel)
	return funnel == "" || strings.Contains(funnel, "UTF_8") || strings.Contains(funnel, "byteArray")
}

func checkForeignFile(t *testing.T, format string, content, found, not []byte) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	filter, members, strangers := file("filter", content), file("found", found), file("not", not)
	ask := func(filter string) {
		t.Helper()
		if stdout, stderr, code := command(t, "check", "-0vc", filter, members); stdout != "0\n" || code != exitNothing {
			t.Errorf("%s: %s of the keys that were found are not: %s", filepath.Base(filter), strings.TrimSpace(stdout), stderr)
		}
		if stdout, stderr, code := command(t, "check", "-0c", filter, strangers); stdout != "0\n" || code != exitNothing {
			t.Errorf("%s: %s of the keys that were not found are: %s", filepath.Base(filter), strings.TrimSpace(stdout), stderr)
		}
	}
	ask(filter)
	stdout, stderr, code := command(t, "info", "--json", filter)
	var info struct {
		Format, Kind string
		Bits         uint64
	}
	if err := json.Unmarshal([]byte(stdout), &info); err != nil || code != exitDone || info.Format != format || info.Bits == 0 {
		t.Fatalf("info: %+v, %v, %s", info, err, stderr)
	}
	empty := file("empty", nil)
	if _, stderr, code := command(t, "add", "--allow-overfull", filter, empty); code != exitDone {
		t.Errorf("add: %s", stderr)
	}
	ask(filter)
	ours := filepath.Join(dir, "ours")
	switch _, stderr, code := command(t, "convert", "--force", "--to", anyfile.OurFormat, "-o", ours, filter); {
	case code == exitDone:
		ask(ours)
	case info.Kind != "chain":
		t.Errorf("convert: %s", stderr)
	}
}
