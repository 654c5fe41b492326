package main

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/machine"
	"github.com/bloomery/bloom/internal/memory"
)

// The memory of a server. --memory is the ceiling for filters and values. What the
// process takes beyond that is bounded as well, so that the system does not kill it:
//
//	resident <= 1.25 x ceiling + 100 MB
//
// A quarter is for garbage on Go's heap, which holds small filters, values and names:
// with less the collector would run all the time. The 100 MB are for the program
// itself, connections and buffers. Large filters lie outside Go's heap, so the
// collector's limit is what they leave of the bound.
const (
	ceilingShare  = 0.65     // of the usable memory, for the ceiling that serve chooses
	aboveCeiling  = 1.25     // what is resident, in ceilings
	besideCeiling = 100e6    // and these bytes
	programBytes  = 36 << 20 // of these, for what Go's limit does not count: the program's own pages

	leastHeap = 64 << 20 // Go's limit is never lower, whatever lies outside
)

// defaultCeiling is the ceiling on a machine with the given bytes of memory: a share
// that leaves room for what the process takes beyond it, and for the page cache. In
// small control groups the share is lower, but never zero.
func defaultCeiling(total uint64) uint64 {
	share := ceilingShare * float64(total)
	if room := (float64(total) - besideCeiling) / aboveCeiling; room < share {
		share = max(room, float64(total)/8)
	}
	return uint64(share)
}

// mayTake is the bound on resident memory under a ceiling.
func mayTake(ceiling uint64) float64 { return aboveCeiling*float64(ceiling) + besideCeiling }

// heapLimit is the limit on Go's memory under a ceiling, with the given bytes mapped
// outside.
func heapLimit(ceiling, mapped uint64) int64 {
	return int64(min(max(mayTake(ceiling)-programBytes-float64(mapped), leastHeap), 1<<62))
}

// setCeiling chooses the ceiling if none was given, and logs it. It warns of one that
// does not fit into the usable memory, which may be intended, as on a machine with
// swap.
func (o *serveOptions) setCeiling(log *slog.Logger) {
	total, from := machine.Usable()
	switch {
	case o.memory == 0 && total == 0: // unknown
		log.Warn("no memory ceiling: it is unknown how much memory this machine has; set one with --memory")
	case o.memory == 0:
		// Without a ceiling a filter of any size would be accepted, and the system would
		// kill the server when its keys arrive.
		o.memory = human.SizeFlag(defaultCeiling(total))
		log.Info("memory ceiling", "bytes", uint64(o.memory), "of", total, "source", from)
	case total != 0 && mayTake(uint64(o.memory)) > float64(total):
		log.Warn("the memory ceiling is too high: the system may kill the server before it is reached; lower --memory",
			"bytes", uint64(o.memory), "of", total, "source", from, "fits", defaultCeiling(total))
	default:
		log.Info("memory ceiling", "bytes", uint64(o.memory), "of", total, "source", from)
	}
}

// boundHeap keeps Go's collector to the limit that goes with the ceiling, until done
// is called. A lower one from the environment (GOMEMLIMIT) stays.
func boundHeap(ceiling uint64) (done func()) {
	if ceiling == 0 {
		return func() {}
	}
	before := debug.SetMemoryLimit(-1)
	memory.SetCeiling(ceiling) // dropped filters are freed before others are made
	memory.OnChange(func(mapped uint64) { debug.SetMemoryLimit(min(before, heapLimit(ceiling, mapped))) })
	return func() {
		memory.SetCeiling(0)
		memory.OnChange(nil)
		debug.SetMemoryLimit(before)
	}
}

// ceilingHelp is the help text of --memory.
var ceilingHelp = fmt.Sprintf("the most memory for all filters, like 8GiB; default: %.0f%% of the memory of this machine or its control group", 100*ceilingShare)
