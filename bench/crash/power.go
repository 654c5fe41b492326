package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A powerTally holds the results of the power cuts, or of the faults, at one level.
type powerTally struct {
	mu       sync.Mutex
	runs     int
	adds     int
	removals int
	lost     losses
	syncs    int
	torn     int
	exits    []time.Duration // from the fault until the process exits
	failure  error
}

// faults are the disk faults to test.
var faults = []struct {
	name  string
	fault fault
}{
	{"a write answers EIO", fault{call: "write", err: syscall.EIO}},
	{"a write finds no space", fault{call: "write", err: syscall.ENOSPC}},
	{"a part of a write finds no space", fault{call: "write", err: syscall.ENOSPC, part: true}},
	{"fsync of the log answers EIO", fault{call: "fsync", err: syscall.EIO}},
	{"fsync of the directory answers EIO", fault{call: "fsyncdir", err: syscall.EIO}},
}

// loadTime is how long the load runs before a cut. At everysec that is often longer
// than the second that may be lost.
func loadTime(level string, rng *rand.Rand) time.Duration {
	if level == "everysec" {
		return between(rng, 100*time.Millisecond, 2500*time.Millisecond)
	}
	return between(rng, 20*time.Millisecond, 400*time.Millisecond)
}

// everysecBound limits the loss at everysec: the last second, plus the time of a
// sync and of whatever else the machine is doing.
const everysecBound = 2 * time.Second

func (o options) power() error {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("this needs root and Linux with /dev/fuse; nothing was tested: %w", err)
	}
	fmt.Println("| durability | power cuts | fsyncs before them | sectors dropped | adds acknowledged | lost | deletes acknowledged | lost | oldest lost, before the cut |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, level := range o.level("always,everysec") {
		t := o.each(level, o.cuts, func(t *powerTally, m *machine, n int) error { return t.cut(m, n == o.cuts-1) })
		if t.failure != nil {
			return t.failure
		}
		oldest := "–"
		if t.lost.adds+t.lost.removals > 0 {
			oldest = fmt.Sprintf("%.2f s", t.lost.oldest.Seconds())
		}
		fmt.Printf("| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", level, t.runs, thousands(t.syncs), thousands(t.torn), thousands(t.adds), thousands(t.lost.adds), thousands(t.removals), thousands(t.lost.removals), oldest)
	}
	fmt.Println()
	fmt.Println("| the disk's fault | durability | times | ended with an error | acknowledged adds lost after it | deletes lost | from the fault to the end, most |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|")
	for _, f := range faults {
		for _, level := range o.level("always,everysec") {
			t := o.each(level, o.faults, func(t *powerTally, m *machine, n int) error { return t.fault(m, f.fault, n%2 == 0) })
			if t.failure != nil {
				return fmt.Errorf("%s: %w", f.name, t.failure)
			}
			fmt.Printf("| %s | %s | %d | %d | %s | %s | %.0f ms |\n", f.name, level, t.runs, len(t.exits), thousands(t.lost.adds), thousands(t.lost.removals), percentile(t.exits, 1))
		}
	}
	return nil
}

// A machine is a mounted disk with a plant on it.
type machine struct {
	*plant
	disk    *disk
	unmount func() error
}

// each calls do runs times, on several machines in parallel.
func (o options) each(level string, runs int, do func(*powerTally, *machine, int) error) *powerTally {
	t := &powerTally{}
	var left sync.WaitGroup
	for i := range o.parallel {
		left.Go(func() {
			at := filepath.Join(o.dir, fmt.Sprintf("%s-%d", level, i))
			m, err := o.machine(level, at, rand.New(rand.NewPCG(o.seed, uint64(i))))
			if m != nil {
				defer m.end()
			}
			for n := i; n < runs && err == nil && !t.failed(); n += o.parallel {
				if err = do(t, m, n); err != nil {
					err = fmt.Errorf("%w\nthe server said:\n%s", err, m.process.printed())
				}
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			if m != nil {
				t.adds += m.adds()
				t.removals += m.removals()
			}
			if err != nil && t.failure == nil {
				t.failure = fmt.Errorf("%s, seed %d: %w", level, o.seed, err)
			}
		})
	}
	left.Wait()
	return t
}

func (t *powerTally) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure != nil
}

func (o options) machine(level, at string, rng *rand.Rand) (*machine, error) {
	m := &machine{plant: o.plant(at, level, rng), disk: newDisk(rand.New(rand.NewPCG(rng.Uint64(), 2)))}
	if level == "everysec" { // snapshots sync, so take few: there must be something to lose
		m.saves = 0.001
	}
	var err error
	if m.unmount, err = m.disk.mount(at); err != nil {
		return nil, err
	}
	return m, m.begin()
}

func (m *machine) end() {
	if m.process != nil {
		m.process.kill()
	}
	if m.unmount != nil {
		if err := m.unmount(); err != nil {
			fmt.Fprintln(os.Stderr, "crash:", err)
		}
	}
}

// off cuts the power: the disk stops, the process is killed, and data that was not
// synced may be lost. Then it mounts what is left.
func (m *machine) off() (time.Time, error) {
	at := m.disk.cut()
	m.process.kill()
	m.running.Wait()
	if err := m.unmount(); err != nil {
		return at, err
	}
	m.disk = m.disk.restored()
	var err error
	m.unmount, err = m.disk.mount(m.dir)
	return at, err
}

// cut cuts the power under load, and sometimes again while the server starts.
func (t *powerTally) cut(m *machine, last bool) error {
	m.load()
	time.Sleep(loadTime(m.level, m.rng))
	syncs := m.disk.syncs
	old := m.disk
	at, err := m.off()
	if err != nil {
		return err
	}
	torn := old.torn
	for m.rng.IntN(4) == 0 {
		m.process, _, err = launch(m.binary, m.dir, m.level)
		if err != nil {
			return err
		}
		time.Sleep(between(m.rng, 5*time.Millisecond, 80*time.Millisecond))
		if _, err := m.off(); err != nil {
			return err
		}
	}
	if err := m.restart(); err != nil {
		return err
	}
	lost, err := m.check(m.process.address, promise{level: m.judged, cut: at}, true)
	if err == nil && lost.oldest > everysecBound {
		err = fmt.Errorf("LOST: an add or a delete that was acknowledged %v before the cut", lost.oldest)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.syncs += syncs
	t.torn += torn
	t.lost.join(lost)
	return err
}

// fault makes a call to the disk fail under load. The server must exit with an error,
// and what it acknowledged must be there after a restart, even if the power is cut
// after the fault.
func (t *powerTally) fault(m *machine, f fault, powerGoes bool) error {
	m.saves = 1 // snapshots sync the directory
	m.load()
	time.Sleep(between(m.rng, 20*time.Millisecond, 200*time.Millisecond))
	m.disk.mu.Lock()
	f.skip = m.rng.IntN(4)
	m.disk.fault, m.disk.faulted = &f, time.Time{}
	m.disk.mu.Unlock()
	select {
	case <-m.process.ended:
	case <-time.After(30 * time.Second):
		m.process.cmd.Process.Signal(syscall.SIGQUIT) // prints its goroutines
		<-m.process.ended
		m.running.Wait()
		err := fmt.Errorf("the server still runs after a disk fault at %v", m.disk.faulted)
		for _, w := range m.workers {
			err = errors.Join(err, w.failure)
		}
		return err
	}
	m.running.Wait()
	m.disk.mu.Lock()
	took, fault := time.Since(m.disk.faulted), m.disk.faulted
	m.disk.fault = nil
	m.disk.mu.Unlock()
	if m.process.err == nil {
		return errors.New("the server exited without an error after a disk fault")
	}
	if fault.IsZero() {
		return fmt.Errorf("the server exited before the fault: %w", m.process.err)
	}
	made := promise{level: m.judged}
	if powerGoes {
		if _, err := m.off(); err != nil {
			return err
		}
		made.cut = fault
	}
	if err := m.restart(); err != nil {
		return err
	}
	lost, err := m.check(m.process.address, made, true)
	if err == nil && lost.oldest > everysecBound {
		err = fmt.Errorf("LOST: an add or a delete that was acknowledged %v before the fault", lost.oldest)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.exits = append(t.exits, took)
	t.lost.join(lost)
	return err
}
