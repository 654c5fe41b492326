package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/bloomery/bloom/interop"
)

// A peer is a format, a program that implements it, and the trials of the two.
type peer struct {
	format string // of package interop
	start  func() (program, error)
	trials []trial

	// ours returns an empty filter like the program's. key converts a key of the
	// program to ours; nil if the bytes are the same.
	ours func(t trial) (interop.Filter, error)
	key  func(t trial, key []byte) []byte

	// loose is set if the format leaves its writer a choice, such as whether to
	// compress. Then files are not compared, but read back.
	loose bool

	// options returns what the format's files do not contain; nil for nothing.
	options func(t trial) interop.Options
}

// A trial is one filter: for n keys at rate p, or of m bits and k probes, depending
// on the program's variant. n keys are added.
type trial struct {
	variant string
	shape   shape
	n       uint64
	p       float64
	m       uint64
	k       int

	// data follows the filter, in formats that allow it.
	data []byte

	// oneWay is set if a switch of the program changes what it writes and reads. We
	// read such filters, but write only the program's normal form.
	oneWay bool
}

func (t trial) String() string {
	return fmt.Sprintf("%s, %s, n=%d p=%v m=%d k=%d", t.variant, t.shape.name, t.n, t.p, t.m, t.k)
}

// A result is a row of the table.
type result struct {
	format, program string

	filters   int // made by the program
	read      int // of these, how many we read, with the program's answers
	rewritten int // of these, how many we wrote again byte for byte

	built     int // the same filters, built by us from the keys
	identical int // of these, how many are byte for byte the program's
	offered   int // of these, how many the program was given; none if it is recorded
	accepted  int // of these, how many it read, with our answers

	answers        int // number compared
	falsePositives int // among them; equal if all answers are

	loose    bool // files were not compared
	problems []string
}

func (r *result) bad(t trial, format string, values ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s, %s, %v: %s", r.format, r.program, t, fmt.Sprintf(format, values...)))
}

// compare runs the trials of a peer.
func compare(p peer) (*result, error) {
	format, ok := interop.FormatNamed(p.format)
	if !ok {
		return nil, fmt.Errorf("package interop has no format %q", p.format)
	}
	program, err := p.start()
	if err != nil {
		return nil, err
	}
	defer program.stop()
	r := &result{format: p.format, program: program.about(), loose: p.loose}
	for _, j := range p.jobs(program) {
		r.filters++
		r.try(p, format, program, j)
	}
	if r.falsePositives == 0 {
		r.bad(trial{}, "no filter gave a false positive, so none were compared: choose higher rates")
	}
	return r, nil
}

// jobs returns the peer's trials with their keys, or the recorded jobs.
func (p peer) jobs(program program) (jobs []job) {
	if r, ok := program.(*recorded); ok {
		return r.jobs()
	}
	for _, t := range p.trials {
		jobs = append(jobs, job{trial: t, keys: t.shape.added(t.n), probes: t.shape.probes(t.n)})
	}
	return jobs
}

// try tries one filter in both directions.
func (r *result) try(p peer, format *interop.Format, program program, j job) {
	t := j.trial
	file, theirs, err := program.make(j)
	if err != nil {
		r.bad(t, "making a filter: %v", err)
		return
	}
	if len(theirs) != len(j.probes) {
		r.bad(t, "%d answers to %d probes", len(theirs), len(j.probes))
		return
	}
	added, probes := p.keys(t, j.keys), p.keys(t, j.probes)
	wrong := falsePositives(j, theirs)
	r.answers += len(probes)
	r.falsePositives += wrong
	r.readTheirs(p, format, t, file, probes, theirs)
	if t.oneWay {
		return
	}

	r.built++
	ours, err := p.ours(t)
	if err != nil {
		r.bad(t, "building the same filter: %v", err)
		return
	}
	defer ours.Close()
	ours.AddMany(added, nil)
	var out bytes.Buffer
	if err := (&interop.File{Filter: ours, Data: j.data}).Write(&out, format); err != nil {
		r.bad(t, "writing our filter: %v", err)
		return
	}
	if at, same := difference(out.Bytes(), file); same {
		r.identical++
	} else if !p.loose {
		r.bad(t, "the filter that we built has %d bytes, the program's %d; they differ from byte %d on", out.Len(), len(file), at)
	}
	answers := make([]bool, len(probes))
	ours.ContainsMany(probes, answers)
	again, err := program.read(j, out.Bytes())
	if errors.Is(err, errRecorded) {
		return
	}
	r.offered++
	r.answers += len(probes)
	r.falsePositives += wrong
	if err != nil {
		r.bad(t, "the program reads our filter: %v", err)
		return
	}
	if r.same(t, "of our filter", j.probes, answers, again) {
		r.accepted++
	}
}

// readTheirs reads the program's filter, compares the answers, and writes it again.
func (r *result) readTheirs(p peer, format *interop.Format, t trial, file []byte, probes [][]byte, theirs []bool) {
	var options interop.Options
	if p.options != nil {
		options = p.options(t)
	}
	if format.Matches != nil {
		if found, _ := interop.Recognise(file[:min(len(file), 64)], int64(len(file))); found != format {
			r.bad(t, "the file is not recognised, but mistaken for %v", nameOf(found))
		}
	}
	read, err := format.Read(bytes.NewReader(file), options)
	if err != nil {
		r.bad(t, "reading the program's filter: %v", err)
		return
	}
	defer read.Close()
	answers := make([]bool, len(probes))
	read.ContainsMany(probes, answers)
	if r.same(t, "of the program's filter", probes, answers, theirs) {
		r.read++
	}
	var out bytes.Buffer
	if err := read.Write(&out, format); err != nil {
		r.bad(t, "writing the program's filter again: %v", err)
		return
	}
	if p.loose {
		r.readBack(t, format, out.Bytes(), probes, theirs)
	} else if at, same := difference(out.Bytes(), file); same {
		r.rewritten++
	} else {
		r.bad(t, "written again, the program's filter has %d bytes instead of %d; the first difference is at byte %d", out.Len(), len(file), at)
	}
}

// readBack checks what we wrote in a format that leaves its writer a choice.
func (r *result) readBack(t trial, format *interop.Format, file []byte, probes [][]byte, theirs []bool) {
	read, err := format.Read(bytes.NewReader(file), interop.Options{})
	if err != nil {
		r.bad(t, "reading what we wrote again: %v", err)
		return
	}
	defer read.Close()
	answers := make([]bool, len(probes))
	read.ContainsMany(probes, answers)
	r.same(t, "of what we wrote again", probes, answers, theirs)
}

// same compares our answers with the program's.
func (r *result) same(t trial, what string, probes [][]byte, ours, theirs []bool) bool {
	if len(ours) != len(theirs) {
		r.bad(t, "%s: %d answers, we gave %d", what, len(theirs), len(ours))
		return false
	}
	differ, first := 0, 0
	for i := range ours {
		if ours[i] != theirs[i] {
			if differ == 0 {
				first = i
			}
			differ++
		}
	}
	if differ > 0 {
		r.bad(t, "%s: %d of %d answers differ, first that to %.60q: we say %v, the program %v", what, differ, len(ours), probes[first], ours[first], theirs[first])
	}
	return differ == 0
}

func (p peer) keys(t trial, keys [][]byte) [][]byte {
	if p.key == nil {
		return keys
	}
	ours := make([][]byte, len(keys))
	for i, key := range keys {
		ours[i] = p.key(t, key)
	}
	return ours
}

// falsePositives counts the keys that were found although they were never added.
func falsePositives(j job, answers []bool) (count int) {
	added := make(map[string]bool, len(j.keys))
	for _, key := range j.keys {
		added[string(key)] = true
	}
	for i, key := range j.probes {
		if answers[i] && !added[string(key)] {
			count++
		}
	}
	return count
}

// difference returns the index of the first byte at which a and b differ.
func difference(a, b []byte) (at int, same bool) {
	if bytes.Equal(a, b) {
		return 0, true
	}
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return at, false
}

func nameOf(f *interop.Format) string {
	if f == nil {
		return "nothing"
	}
	return f.Name
}
