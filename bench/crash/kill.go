package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A tally holds the results of the cycles at one level.
type tally struct {
	mu       sync.Mutex
	kills    int // under load
	starting int // while the server started
	stops    int // orderly stops
	restored int // from a backup
	adds     int
	removals int
	commands int
	allowed  int // lost adds that were acknowledged, as the level allows
	restarts []time.Duration
	failure  error
}

// The number of cycles with one directory, and how often all its keys are checked.
const (
	cyclesPerDirectory = 50
	fullCheckEvery     = 10
	stopEvery          = 20

	// Every backupEvery-th cycle takes backups under load. In some cycles the backup
	// then replaces the server's directory.
	backupEvery  = 2
	restoreEvery = 5
)

// killAgain kills servers of a level o.cycles times, several servers in parallel.
func killAgain(o options, level string) *tally {
	t := &tally{}
	var left sync.WaitGroup
	share := (o.cycles + o.parallel - 1) / o.parallel
	for i := range o.parallel {
		left.Go(func() {
			rng := rand.New(rand.NewPCG(o.seed, uint64(i)))
			for done := 0; done < share && !t.failed(); done += cyclesPerDirectory {
				dir := filepath.Join(o.dir, fmt.Sprintf("%s-%d-%d", level, i, done))
				err := t.directory(o.plant(dir, level, rng), min(cyclesPerDirectory, share-done))
				if err != nil {
					t.fail(fmt.Errorf("%s, seed %d, directory %s: %w", level, o.seed, dir, err))
					return
				}
				os.RemoveAll(dir)
				os.RemoveAll(dir + "-backup")
			}
		})
	}
	left.Wait()
	return t
}

func (t *tally) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure != nil
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure == nil {
		t.failure = err
	}
}

// directory repeatedly kills the server of one directory.
func (t *tally) directory(p *plant, cycles int) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer func() { p.process.kill() }()
	for n := 1; n <= cycles; n++ {
		if err := t.cycle(p, n == cycles || n%fullCheckEvery == 0, n%stopEvery == stopEvery-1); err != nil {
			return fmt.Errorf("cycle %d: %w\nthe server said:\n%s", n, err, p.process.printed())
		}
	}
	t.mu.Lock()
	t.adds += p.adds()
	t.removals += p.removals()
	t.commands += p.commandsDone()
	t.mu.Unlock()
	return nil
}

// cycle kills the server under load, perhaps again while it starts, and checks that
// everything is there. If stop is set, the server is first stopped in an orderly way,
// after which everything must be there at any level.
func (t *tally) cycle(p *plant, all, stop bool) error {
	if stop {
		if err := t.stop(p); err != nil {
			return fmt.Errorf("after an orderly stop: %w", err)
		}
	}
	p.load()
	ended, backups := make(chan struct{}), make(chan error, 1)
	if p.rng.IntN(backupEvery) == 0 {
		rng := rand.New(rand.NewPCG(p.rng.Uint64(), 2))
		go func() { backups <- p.backUpBeside(rng, ended) }()
	} else {
		backups <- nil
	}
	time.Sleep(between(p.rng, 2*time.Millisecond, 40*time.Millisecond))
	p.process.kill()
	p.running.Wait()
	close(ended)
	if err := <-backups; err != nil {
		return err
	}
	restored := p.rng.IntN(restoreEvery) == 0
	if restored {
		if err := p.restore(); err != nil {
			return err
		}
	}
	starting := 0
	for p.rng.IntN(4) == 0 {
		process, _, err := launch(p.binary, p.dir, p.level)
		if err != nil {
			return err
		}
		time.Sleep(between(p.rng, 5*time.Millisecond, 60*time.Millisecond))
		process.kill()
		starting++
	}
	if err := p.restart(); err != nil {
		return err
	}
	lost, err := p.check(p.process.address, promise{level: p.judged}, all)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kills++
	t.starting += starting
	if restored {
		t.restored++
	}
	t.allowed += lost.adds
	t.restarts = append(t.restarts, p.process.took)
	return err
}

// stop stops the server by SIGTERM under load.
func (t *tally) stop(p *plant) error {
	p.load()
	time.Sleep(between(p.rng, 2*time.Millisecond, 40*time.Millisecond))
	p.process.cmd.Process.Signal(syscall.SIGTERM)
	p.running.Wait()
	if <-p.process.ended; p.process.err != nil {
		return p.process.err
	}
	if err := p.restart(); err != nil {
		return err
	}
	_, err := p.check(p.process.address, promise{level: "stopped"}, false)
	t.mu.Lock()
	t.stops++
	t.mu.Unlock()
	return err
}

// percentile returns a percentile of the durations, in milliseconds.
func percentile(all []time.Duration, share float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[min(int(share*float64(len(all))), len(all)-1)].Microseconds()) / 1000
}
