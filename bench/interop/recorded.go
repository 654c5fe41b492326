package main

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom/interop"
	"github.com/bloomery/bloom/redisbloom"
)

// recorded replaces a program that cannot be installed by filters that it once wrote,
// with their keys and its answers, from a file in testdata/vectors. It can repeat
// them, but read nothing.
type recorded struct {
	name  string
	files []recording
}

type recording struct {
	job
	file    []byte
	answers []bool
}

// errRecorded is returned because a recording cannot read our filters.
var errRecorded = errors.New("only recorded")

func (r *recorded) about() string { return r.name }
func (r *recorded) stop()         {}

func (r *recorded) read(job, []byte) ([]bool, error) { return nil, errRecorded }

func (r *recorded) make(j job) (file []byte, answers []bool, err error) {
	for _, f := range r.files {
		if f.variant == j.variant {
			return f.file, f.answers, nil
		}
	}
	return nil, nil, errors.New("not recorded")
}

// jobs returns the recorded filters, each as its own variant.
func (r *recorded) jobs() (jobs []job) {
	for _, f := range r.files {
		jobs = append(jobs, f.job)
	}
	return jobs
}

// vectors has the fields of a file in testdata/vectors that are used here.
type vectors struct {
	Made struct{ Program, Version string } `json:"made_by"`
	Keys map[string]struct{ Hex string }

	Filters []struct {
		Name     string
		Inserted []string // names of Keys
		Bulk     *span    // inserted after Inserted
		Absent   *span    `json:"bulk_absent"`

		Reserve []string
		Exists  map[string]bool
		Header  string `json:"header_hex"`
		Bits    []byte `json:"bits_b64"` // of all layers
		Dump    string `json:"redis_dump_hex"`
	}
}

// span is a range of generated keys.
type span struct {
	Format         string `json:"fmt"`
	From, To       int
	FalsePositives []int `json:"false_positives"`
}

func (s *span) key(i int) []byte {
	if s.Format == "sha1upper:%d" {
		return fmt.Appendf(nil, "%X", sha1.Sum(fmt.Append(nil, i)))
	}
	return fmt.Appendf(nil, s.Format, i)
}

// openRecorded reads a file of vectors. fill completes each recording.
func openRecorded(path string, fill func(v *vectors, i int, r *recording) error) (*recorded, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	program, _, _ := strings.Cut(v.Made.Program, " (")
	r := &recorded{name: program + ", as recorded"}
	for i := range v.Filters {
		var one recording
		if err := v.keys(i, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := fill(&v, i, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(one.file) > 0 { // some have no dump
			r.files = append(r.files, one)
		}
	}
	return r, nil
}

// keys sets the keys of filter i and the program's answers.
func (v *vectors) keys(i int, r *recording) error {
	f := v.Filters[i]
	r.variant, r.shape.name = f.Name, "recorded keys"
	for _, name := range f.Inserted {
		key, err := hex.DecodeString(v.Keys[name].Hex)
		if err != nil {
			return err
		}
		r.keys = append(r.keys, key)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Exists)) {
		key, err := hex.DecodeString(v.Keys[name].Hex)
		if err != nil {
			return err
		}
		r.probes, r.answers = append(r.probes, key), append(r.answers, f.Exists[name])
	}
	if f.Bulk != nil {
		for i := f.Bulk.From; i < f.Bulk.To; i++ {
			r.keys = append(r.keys, f.Bulk.key(i))
			r.probes, r.answers = append(r.probes, f.Bulk.key(i)), append(r.answers, true)
		}
	}
	if f.Absent != nil {
		for i := f.Absent.From; i < f.Absent.To; i++ {
			r.probes = append(r.probes, f.Absent.key(i))
			r.answers = append(r.answers, slices.Contains(f.Absent.FalsePositives, i))
		}
	}
	return nil
}

// recordedRedisBloom has the dumps of a live RedisBloom. Variants are the arguments of
// BF.RESERVE after the name.
func recordedRedisBloom(dir string) (program, error) {
	return openRecorded(filepath.Join(dir, "redisbloom.json"), func(v *vectors, i int, r *recording) error {
		f := v.Filters[i]
		header, err := hex.DecodeString(f.Header)
		r.variant, r.file = strings.Join(f.Reserve, " "), append(header, f.Bits...)
		return err
	})
}

// recordedDump has Redis's replies to DUMP for the same filters.
func recordedDump(dir string) (program, error) {
	return openRecorded(filepath.Join(dir, "redisbloom.json"), func(v *vectors, i int, r *recording) (err error) {
		f := v.Filters[i]
		r.variant = strings.Join(f.Reserve, " ")
		r.file, err = hex.DecodeString(f.Dump)
		return err
	})
}

// reserved returns the filter that BF.RESERVE creates.
func reserved(t trial) (interop.Filter, error) {
	var c redisbloom.Config
	words := strings.Fields(t.variant)
	if len(words) == 0 {
		return redisbloom.New(c)
	}
	var err error
	if c.Rate, err = strconv.ParseFloat(words[0], 64); err != nil {
		return nil, err
	}
	if c.Keys, err = strconv.ParseUint(words[1], 10, 64); err != nil {
		return nil, err
	}
	for i, word := range words {
		switch word {
		case "NONSCALING":
			c.NonScaling = true
		case "EXPANSION":
			growth, err := strconv.ParseUint(words[i+1], 10, 32)
			if err != nil {
				return nil, err
			}
			c.Growth = uint32(growth)
		}
	}
	return redisbloom.New(c)
}
