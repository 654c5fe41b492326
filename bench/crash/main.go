// Command crash tests what `bloomery serve` promises about acknowledged adds and deletes:
// it kills the real program under load, or cuts its disk's power, restarts it, and
// checks that everything acknowledged is there, and nothing that was deleted. It prints a Markdown table, and fails
// if anything is missing. See docs/reliability.md.
//
//	crash -bloomery ../../bin/bloomery kill
//	crash -bloomery ../../bin/bloomery power
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	binary   string
	dir      string
	levels   string
	cycles   int
	cuts     int
	faults   int
	parallel int
	seed     uint64
	judge    string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "bloomery", "bloomery", "the `program` to test")
	flag.StringVar(&o.levels, "levels", "", "durability levels, separated by commas (default all)")
	flag.IntVar(&o.cycles, "cycles", 1000, "kills at each level")
	flag.IntVar(&o.cuts, "cuts", 60, "power cuts at each level")
	flag.IntVar(&o.faults, "faults", 10, "runs at each level with each disk fault")
	flag.IntVar(&o.parallel, "parallel", 3, "servers to run in parallel")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the load (timing still varies)")
	flag.StringVar(&o.judge, "judge", "", "check every level against this level's promises, to see the checks fail: use always with -levels none, or with -levels everysec power")
	flag.Parse()
	if err := o.run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

func (o options) run(what string) (err error) {
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "bloomery-crash-"); err != nil {
		return err
	}
	go o.cleanWhenStopped()
	switch what {
	case "kill":
		err = o.kill()
	case "power":
		err = o.power()
	default:
		err = errors.New("missing or unknown mode: want kill or power")
	}
	if err != nil {
		return fmt.Errorf("%w\nthe data directories are kept in %s", err, o.dir)
	}
	return os.RemoveAll(o.dir)
}

// cleanWhenStopped unmounts the disks if a signal stops this program.
func (o options) cleanWhenStopped() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	mounts, _ := filepath.Glob(filepath.Join(o.dir, "*"))
	for _, at := range mounts {
		syscall.Unmount(at, syscall.MNT_DETACH)
	}
	os.Exit(130)
}

// level returns the levels to test.
func (o options) level(standard string) []string {
	if o.levels != "" {
		standard = o.levels
	}
	return strings.Split(standard, ",")
}

func (o options) kill() error {
	fmt.Println("| durability | kill -9 under load | while starting | restored from a backup | adds acknowledged | deletes acknowledged | of both, lost | adds lost that were not promised | restart p50 | p99 |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, level := range o.level("always,everysec,none") {
		t := killAgain(o, level)
		if t.failure != nil {
			return t.failure
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s | 0 | %s | %.0f ms | %.0f ms |\n", level, thousands(t.kills), thousands(t.starting), thousands(t.restored), thousands(t.adds), thousands(t.removals), thousands(t.allowed), percentile(t.restarts, 0.5), percentile(t.restarts, 0.99))
	}
	return nil
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
