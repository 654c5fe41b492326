package lines

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A Job is a block of lines on its way through a pipeline.
type Job struct {
	Text    []byte // whole lines, each with its separator
	Ends    []int  // where each ends, after its separator
	hashes  []uint64
	parts   []part       // one for each owner
	Answers []bool       // what was decided about each line
	Count   atomic.Int64 // of answers that are true
	Own     any          // scratch space of the work function

	worked chan struct{}
	left   atomic.Int32 // owners that are not done yet
	added  chan struct{}

	parted bool          // a part of another job, but not its last
	whole  *Job          // the job that this is the last part of, or nil
	Err    error         // ends the stream, after the lines
	Synced chan struct{} // if not nil, the job has no lines: make everything before it durable
}

// part is an owner's share of a job: hashes, and the indices of their lines.
type part struct {
	hashes []uint64
	lines  []int32
	isNew  []bool
}

// part returns some lines of a job as a job of their own.
func (j *Job) part(from, to int) *Job {
	start := 0
	if from > 0 {
		start = j.Ends[from-1]
	}
	part := &Job{hashes: j.hashes[from:to], Answers: j.Answers[from:to], parts: j.parts, added: make(chan struct{}, 1)}
	part.Text = j.Text[start:j.Ends[to-1]]
	for _, end := range j.Ends[from:to] {
		part.Ends = append(part.Ends, end-start)
	}
	if part.parted = to < len(j.hashes); !part.parted {
		part.whole = j
	}
	return part
}

func (s *part) addTo(to Seen, isNew []bool) (count int) {
	s.isNew = grown(s.isNew, len(s.hashes))
	count = to.AddHashes(s.hashes, s.isNew)
	for i, line := range s.lines {
		isNew[line] = s.isNew[i]
	}
	return count
}

// grown returns a slice of n elements, in the memory of s if that suffices.
func grown[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n, n+n/4)
	}
	return s[:n]
}

// hashSet holds the new hashes of one job. It is exact, unlike the filter.
type hashSet struct {
	slots  []uint64 // 1 + an index of hashes, zero if free
	hashes []uint64
}

func (s *hashSet) reset(most int) {
	if len(s.slots) < 2*most {
		s.slots = make([]uint64, 2<<bits.Len(uint(most)))
	}
	clear(s.slots)
	s.hashes = s.hashes[:0]
}

// AddHashes reports whether the hash was not there yet.
func (s *hashSet) add(h uint64) bool {
	for at := h; ; at++ {
		slot := &s.slots[at&uint64(len(s.slots)-1)]
		if *slot == 0 {
			s.hashes = append(s.hashes, h)
			*slot = uint64(len(s.hashes))
			return true
		}
		if s.hashes[*slot-1] == h {
			return false
		}
	}
}

// bytesHeld bounds the memory of lines that were read but not yet written: many jobs
// of the usual size, but only one with a line longer than mostHeld.
type bytesHeld struct {
	sync.Mutex
	freed sync.Cond
	bytes int
}

const mostHeld = 16 << 20

func (h *bytesHeld) take(n int) {
	h.Lock()
	defer h.Unlock()
	for h.bytes > 0 && h.bytes+n > mostHeld {
		h.freed.Wait()
	}
	h.bytes += n
}

// free subtracts n bytes; math.MaxInt/2 lets every waiting goroutine continue.
func (h *bytesHeld) free(n int) {
	h.Lock()
	h.bytes -= n
	h.freed.Broadcast()
	h.Unlock()
}
