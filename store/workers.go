package store

import (
	"cmp"
	"runtime"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// workers are goroutines that set bits, in any order, while recovery reads on.
type workers struct {
	jobs    chan *job
	spare   chan *job
	pending sync.WaitGroup // jobs
	now     *job

	mutex sync.Mutex
	err   error // the first error
}

// job is some thousands of keys, a MiB of bits, or both.
type job struct {
	pairs  []redisbloom.Pair
	hashes []uint64
	isNew  []bool
	adds   []jobAdd

	bits   []byte
	chunks []jobChunk
}

// jobChunk is a number of bytes of a chain, and the iterator to load them with.
type jobChunk struct {
	chain    chain
	iterator int64
	n        int
}

// jobAdd is n keys of one filter: pairs of a chain, otherwise hashes. They follow those of
// the job's previous adds.
type jobAdd struct {
	chain chain
	layer int // of a chain, or of a growing filter of our own
	bits  hashed
	n     int
}

const jobKeys = 8192

func (w *workers) start() {
	n := runtime.GOMAXPROCS(0)
	jobs, spare := make(chan *job, 2*n), make(chan *job, 4*n)
	w.jobs, w.spare = jobs, spare
	for range n {
		go func() {
			for j := range jobs {
				if err := j.do(); err != nil {
					w.mutex.Lock()
					w.err = cmp.Or(w.err, err)
					w.mutex.Unlock()
				}
				select {
				case spare <- j:
				default:
				}
				w.pending.Done()
			}
		}()
	}
}

func (j *job) do() (err error) {
	pairs, hashes, bits := j.pairs, j.hashes, j.bits
	for _, chunk := range j.chunks {
		err = cmp.Or(err, chunk.chain.RestoreChunk(chunk.iterator, bits[:chunk.n]))
		bits = bits[chunk.n:]
	}
	for _, add := range j.adds {
		if add.bits == nil {
			add.chain.Replay(add.layer, pairs[:add.n])
			pairs = pairs[add.n:]
			continue
		}
		if len(j.isNew) < add.n {
			j.isNew = make([]bool, add.n)
		}
		if grows, ok := add.bits.(*bloom.Scalable); ok {
			err = cmp.Or(err, bloom.Inside.Replay(grows, add.layer, hashes[:add.n]))
		} else {
			add.bits.AddHashes(hashes[:add.n], j.isNew[:add.n])
		}
		hashes = hashes[add.n:]
	}
	j.pairs, j.hashes, j.adds = j.pairs[:0], j.hashes[:0], j.adds[:0]
	j.bits, j.chunks = j.bits[:0], j.chunks[:0]
	return err
}

// job returns the job that is being filled.
func (w *workers) job() *job {
	if w.jobs == nil {
		w.start()
	}
	if w.now == nil {
		select {
		case w.now = <-w.spare:
		default:
			w.now = new(job)
		}
	}
	return w.now
}

// send hands the job that is being filled to a worker.
func (w *workers) send() {
	if w.now != nil {
		w.pending.Add(1)
		w.jobs <- w.now
		w.now = nil
	}
}

// pairs adds to a layer of a chain.
func (w *workers) pairs(c chain, layer int, b []byte) {
	j := w.job()
	for at := 0; at < len(b); at += 16 {
		j.pairs = append(j.pairs, redisbloom.Pair{order.Uint64(b[at:]), order.Uint64(b[at+8:])})
	}
	j.adds = append(j.adds, jobAdd{chain: c, layer: layer, n: len(b) / 16})
	if len(j.pairs)+len(j.hashes) >= jobKeys {
		w.send()
	}
}

// restore sets the bytes of a chain that end before the iterator.
func (w *workers) restore(c chain, iterator int64, bits []byte) {
	j := w.job()
	j.bits = append(j.bits, bits...)
	j.chunks = append(j.chunks, jobChunk{c, iterator, len(bits)})
	if len(j.bits) >= contentBytes {
		w.send()
	}
}

// hashes adds to a filter in our own layout. If atOnce, it does so before it returns.
func (w *workers) hashes(bits hashed, layer int, b []byte, atOnce bool) {
	if atOnce {
		hashes := make([]uint64, len(b)/8)
		for i := range hashes {
			hashes[i] = order.Uint64(b[8*i:])
		}
		bits.AddHashes(hashes, nil)
		return
	}
	j := w.job()
	for at := 0; at < len(b); at += 8 {
		j.hashes = append(j.hashes, order.Uint64(b[at:]))
	}
	j.adds = append(j.adds, jobAdd{bits: bits, layer: layer, n: len(b) / 8})
	if len(j.pairs)+len(j.hashes) >= jobKeys {
		w.send()
	}
}

// wait returns when all bits are set. It returns the first error.
func (w *workers) wait() error {
	w.send()
	w.pending.Wait()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.err
}

// stop ends the goroutines when they are done.
func (w *workers) stop() {
	if w.jobs != nil {
		w.wait()
		close(w.jobs)
		w.jobs = nil
	}
}
