package lines

import (
	"bytes"
	"io"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"time"
)

// A Pipeline decides something about every line of a stream, on all CPUs at once,
// and yields the lines in their order:
//
//	read ──▶ work ──▶ sequence ──▶ add ──▶ write
//	         (any     (in order)   (each   (in order)
//	         CPU)                  owner
//	                               in order)
//
// A job is a block of whole lines. Any CPU may work on it, that is, look up its lines,
// or hash them for adding. Then the keys are distributed to owners: each owns a range of
// the filter's blocks and adds its keys in input order. A key's answer depends only on
// its block, so it is the same as if one CPU had processed the lines one by one.
type Pipeline struct {
	work      func(*Job)
	to        Seen // nil if nothing is added
	separator byte
	owners    int
	careful   bool          // a line is added only once it is written
	syncEvery time.Duration // zero means never

	free    chan *Job // to read into
	raw     chan *Job
	read    chan *Job // the same jobs, in order
	add     []chan *Job
	out     chan *Job // the same jobs, in order
	flying  sync.WaitGroup
	working sync.RWMutex // held while working on a job

	written chan struct{} // if careful: signals that the last job was written
	fresh   hashSet       // of the current job

	held bytesHeld // by jobs that were read

	stop     chan struct{} // closed to stop reading and finish what was read
	stopOnce sync.Once
	quit     chan struct{} // closed when the output is finished or has failed
	done     chan struct{} // closed when adding has ended

	err   error    // what ended the adding
	left  int64    // at least this many new keys fit
	first []uint64 // the least hash of each owner except the first
}

// Seen remembers lines: it is a filter, used by hashes. Only Hash may be called at any
// time; the others are never called concurrently, except for AddHashes if Blocks is
// not zero.
type Seen interface {
	Hash(key []byte) uint64
	AddHashes(hashes []uint64, isNew []bool) int
	ContainsHashes(hashes []uint64, found []bool) int

	// Blocks is the number of blocks. Goroutines may add at the same time if all
	// hashes with the same hi64(hash * Blocks()) belong to one of them. Zero means
	// that only one goroutine may add.
	Blocks() uint64

	// Room returns how many new keys may be added before Room must be called again,
	// because the blocks may then change. It is called while no goroutine adds. An error
	// ends the run. Grows reports whether AddHashes itself makes room for more keys.
	Room() (int64, error)
	Grows() bool

	// Sync makes everything added so far durable.
	Sync() error
}

const (
	maxOwners  = 16 // what a sequencer can keep busy
	spareJobs  = 6  // in addition to one for each owner and hasher
	keepForJob = 1 << 20
)

// NewAdding makes a pipeline that adds all lines and decides which are new.
func NewAdding(to Seen, separator byte) *Pipeline {
	p := &Pipeline{to: to, separator: separator, owners: runtime.GOMAXPROCS(0)}
	p.work = p.hash
	if to.Blocks() == 0 {
		p.owners = 1
	}
	return p.start()
}

// NewCareful makes a pipeline that adds a line only once it is written: if the run is
// interrupted, no line is lost, and the next run may write the last ones again. If
// syncEvery is not zero, the added lines are made durable at that interval.
func NewCareful(to Seen, separator byte, syncEvery time.Duration) *Pipeline {
	p := &Pipeline{to: to, separator: separator, owners: 1, careful: true, syncEvery: syncEvery, written: make(chan struct{}, 1)}
	p.work = p.hash
	return p.start()
}

// NewLooking makes a pipeline in which work decides about the lines of a job. work runs
// on several CPUs at once.
func NewLooking(work func(*Job), separator byte) *Pipeline {
	return (&Pipeline{work: work, separator: separator, owners: 1}).start()
}

func (p *Pipeline) start() *Pipeline {
	cpus := min(runtime.GOMAXPROCS(0), maxOwners)
	p.owners = min(p.owners, cpus)
	jobs := 2*cpus + spareJobs
	p.free, p.raw, p.read = make(chan *Job, jobs), make(chan *Job, jobs), make(chan *Job, jobs)
	p.out = make(chan *Job, jobs+2) // 2 for jobs without lines
	p.held.freed.L = &p.held
	p.stop, p.quit, p.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	for range jobs {
		p.free <- &Job{parts: make([]part, p.owners), worked: make(chan struct{}, 1), added: make(chan struct{}, 1)}
	}
	for range cpus {
		go p.workOn()
	}
	for i := range p.owners {
		add := make(chan *Job, jobs)
		p.add = append(p.add, add)
		go p.addJobs(i, add)
	}
	go p.sequence()
	return p
}

// Each reads the sources and passes every job to do, in order, once all its lines are
// decided. A job without lines asks do to make everything before it durable. An error of
// do stops the reading.
func (p *Pipeline) Each(sources []*Source, count func(int), do func(*Job) error) (err error) {
	go p.readJobs(sources, count)
	for j := range p.out {
		<-j.added
		if err = do(j); err == nil {
			err = j.Err
		}
		if err != nil {
			break
		}
		if j.Synced != nil {
			close(j.Synced)
			continue
		}
		if p.careful {
			p.written <- struct{}{}
		}
		p.recycle(j)
	}
	close(p.quit)
	p.held.free(math.MaxInt / 2)
	<-p.done
	p.working.Lock() // waits for the running workers; later ones see quit
	p.working.Unlock()
	return err
}

// Interrupt stops the reading. The lines already read are still decided.
func (p *Pipeline) Interrupt() { p.stopOnce.Do(func() { close(p.stop) }) }

func (p *Pipeline) recycle(j *Job) {
	if j.parted {
		return
	}
	if j.whole != nil {
		j = j.whole
	}
	p.held.free(cap(j.Text))
	if cap(j.Text) > keepForJob {
		j.Text = nil
	}
	p.free <- j // there is room for all jobs
}

// readJobs splits the sources into jobs.
func (p *Pipeline) readJobs(sources []*Source, count func(int)) {
	defer close(p.raw)
	defer close(p.read)
	for _, s := range sources {
		in, err := s.open(count)
		if err == nil {
			err = p.readSource(s, in)
			in.close()
		}
		if err == nil {
			continue
		}
		if j := p.take(); j != nil && err != ErrEnough {
			j.Text, j.Err = j.Text[:0], err
			p.pass(j)
		}
		return
	}
}

func (p *Pipeline) readSource(s *Source, in *stream) error {
	blocks := &blockReader{in: in, separator: p.separator, beforeWait: func() error { return nil }}
	for {
		j := p.take()
		if j == nil {
			return ErrEnough
		}
		if cap(j.Text) < BlockBytes {
			j.Text = make([]byte, 0, BlockBytes)
		}
		text, err := blocks.next(j.Text)
		if err != nil {
			p.free <- j
			if err == io.EOF {
				return nil
			}
			return FileError(s.Name(), err)
		}
		j.Text = text
		p.held.take(cap(text))
		if !p.pass(j) {
			return ErrEnough
		}
	}
}

// take returns a job to read into, or nil if the reading must stop.
func (p *Pipeline) take() *Job {
	select {
	case <-p.stop:
		return nil
	case <-p.quit:
		return nil
	case j := <-p.free:
		return j
	}
}

// pass sends a job on its way. It returns false if the pipeline has ended.
func (p *Pipeline) pass(j *Job) bool {
	select {
	case <-p.done:
		return false
	default:
		p.raw <- j // there is room for all jobs
		p.read <- j
		return true
	}
}

func (p *Pipeline) workOn() {
	for j := range p.raw {
		p.working.RLock()
		if !p.stopped() {
			p.work(j)
		}
		p.working.RUnlock()
		j.worked <- struct{}{}
	}
}

// hash splits a job into lines and hashes them.
func (p *Pipeline) hash(j *Job) {
	j.Ends, j.hashes = j.Ends[:0], j.hashes[:0]
	for at := 0; at < len(j.Text); {
		length := bytes.IndexByte(j.Text[at:], p.separator)
		j.hashes = append(j.hashes, p.to.Hash(j.Text[at:at+length]))
		at += length + 1
		j.Ends = append(j.Ends, at)
	}
	j.Answers = grown(j.Answers, len(j.hashes))
}

// sequence distributes the jobs, in order. It alone decides when the filter may grow:
// between jobs, while no goroutine adds.
func (p *Pipeline) sequence() {
	defer p.finish()
	var tick <-chan time.Time
	if p.syncEvery > 0 {
		ticker := time.NewTicker(p.syncEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	added := false // since the last sync
	for {
		select {
		case j, more := <-p.read:
			if !more {
				return
			}
			p.deal(j)
			if p.err != nil {
				return
			}
			added = true
		case <-p.quit:
			return
		case <-p.stop:
			p.drain()
			return
		case <-tick:
			if added {
				p.sync()
				added = false
			}
		}
	}
}

// finish ends the stages that follow.
func (p *Pipeline) finish() {
	for _, add := range p.add {
		close(add)
	}
	p.flying.Wait()
	if p.to != nil && (p.err != nil || !p.look()) {
		j := &Job{Err: p.err, added: make(chan struct{}, 1)}
		j.added <- struct{}{}
		p.out <- j
	}
	close(p.done)
	close(p.out)
}

// drain distributes the jobs that were read before the interrupt.
func (p *Pipeline) drain() {
	for {
		select {
		case j, more := <-p.read:
			if !more {
				return
			}
			p.deal(j)
		default:
			return
		}
	}
}

// sync waits until all lines so far are added and written, and then makes them durable.
// If it did not wait, a line could be remembered that was never written.
func (p *Pipeline) sync() {
	p.flying.Wait()
	j := &Job{added: make(chan struct{}, 1), Synced: make(chan struct{})}
	j.added <- struct{}{}
	p.out <- j
	select {
	case <-p.quit:
	case <-j.Synced:
	}
}

// deal hands the keys of a job to their owners.
func (p *Pipeline) deal(j *Job) {
	<-j.worked
	if p.to == nil {
		j.added <- struct{}{}
		p.out <- j
		return
	}
	if p.stopped() {
		return
	}
	lines := len(j.hashes)
	if int64(lines) <= p.left {
		p.dealOut(j)
		return
	}
	if !p.look() {
		return
	}
	if int64(lines) <= p.left || p.to.Grows() {
		p.dealOut(j)
		return
	}
	for at := 0; at < lines; { // stop at the line where the filter is full
		if p.left <= 0 && !p.look() {
			return
		}
		n := int(min(max(p.left, fewestLines), int64(lines-at)))
		p.dealOut(j.part(at, at+n))
		at += n
	}
}

// fewestLines is the least number of lines between two checks of how full the filter is.
const fewestLines = 16

// dealOut hands the keys of a job to the goroutines that add them.
func (p *Pipeline) dealOut(j *Job) {
	j.Count.Store(0)
	p.left -= int64(len(j.hashes))
	switch {
	case p.careful:
		p.addCarefully(j)
	case p.left < 0: // the filter may grow: one line at a time
		p.flying.Wait()
		j.Count.Store(int64(p.to.AddHashes(j.hashes, j.Answers)))
		j.added <- struct{}{}
		p.out <- j
	default:
		if p.owners > 1 {
			p.split(j)
		}
		j.left.Store(int32(p.owners))
		p.flying.Add(p.owners)
		for _, add := range p.add {
			add <- j
		}
		p.out <- j
	}
}

// addCarefully decides, waits until the lines are written, and then adds them.
func (p *Pipeline) addCarefully(j *Job) {
	p.to.ContainsHashes(j.hashes, j.Answers)
	p.fresh.reset(len(j.hashes))
	for i, found := range j.Answers {
		j.Answers[i] = !found && p.fresh.add(j.hashes[i])
	}
	j.Count.Store(int64(len(p.fresh.hashes)))
	j.added <- struct{}{}
	p.out <- j
	select {
	case <-p.quit:
	case <-p.written:
		p.to.AddHashes(p.fresh.hashes, make([]bool, len(p.fresh.hashes)))
	}
}

// stopped reports whether the output is finished or has failed.
func (p *Pipeline) stopped() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

// look waits until no goroutine adds and asks how much room is left. It returns false
// if the run must end.
func (p *Pipeline) look() bool {
	p.flying.Wait()
	p.left, p.err = p.to.Room()
	p.own()
	return p.err == nil
}

// own assigns each owner a range of the current blocks.
func (p *Pipeline) own() {
	p.first = p.first[:0]
	blocks := p.to.Blocks()
	for i := 1; i < p.owners; i++ {
		block := uint64(i) * blocks / uint64(p.owners)
		least, _ := bits.Div64(block, blocks-1, blocks) // the least h with hi64(h * blocks) = block
		p.first = append(p.first, least)
	}
}

// owner returns the owner of the hash.
func (p *Pipeline) owner(h uint64) (i uint64) {
	for _, least := range p.first {
		_, below := bits.Sub64(h, least, 0)
		i += 1 - below
	}
	return i
}

// split sorts a job's keys by owner.
func (p *Pipeline) split(j *Job) {
	for i := range j.parts {
		part := &j.parts[i]
		part.hashes, part.lines = part.hashes[:0], part.lines[:0]
	}
	for i, h := range j.hashes {
		part := &j.parts[p.owner(h)]
		part.hashes = append(part.hashes, h)
		part.lines = append(part.lines, int32(i))
	}
}

// addJobs adds the keys of the i-th owner.
func (p *Pipeline) addJobs(i int, jobs <-chan *Job) {
	for j := range jobs {
		if p.owners == 1 {
			j.Count.Add(int64(p.to.AddHashes(j.hashes, j.Answers)))
		} else {
			j.Count.Add(int64(j.parts[i].addTo(p.to, j.Answers)))
		}
		if j.left.Add(-1) == 0 {
			j.added <- struct{}{}
		}
		p.flying.Done()
	}
}
