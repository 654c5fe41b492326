//go:build linux

// Tenbillion builds a filter of ten billion keys that look like URLs, saves it, maps
// the file and checks it: every member of a sample must be found, and keys that were
// never added ("strangers") no more often than the filter reports. It prints one
// Markdown table.
//
//	go run ./tenbillion
//	go run ./tenbillion -n 1e9 -file /tmp/billion.bloom
//
// Keys are generated on the fly: key i contains a bijective mix of i in hexadecimal,
// so that all keys differ and none needs to be stored.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom"
	"golang.org/x/sys/unix"
)

const (
	template  = "https://www.example.com/catalogue/items/0123456789abcdef"
	digitsAt  = len(template) - 16
	batchKeys = 1024
	stripe    = 1 << 20 // keys that a worker takes at a time
)

func main() {
	count := flag.Float64("n", 1e10, "number of keys")
	rate := flag.Float64("p", 0.01, "the false-positive rate")
	members := flag.Float64("members", 1e7, "number of members to look up")
	strangers := flag.Float64("strangers", 1e8, "number of absent keys to look up")
	path := flag.String("file", filepath.Join(os.TempDir(), "ten-billion.bloom"), "where to save the filter; removed at the end")
	feedBytes := flag.Uint64("feed", 1<<30, "bytes of keys that each worker may buffer")
	flag.Parse()
	t := &trial{n: uint64(*count), p: *rate, members: uint64(*members), strangers: uint64(*strangers), path: *path, feedBytes: *feedBytes}
	if err := t.run(); err != nil {
		fmt.Fprintln(os.Stderr, "tenbillion:", err)
		os.Exit(1)
	}
}

type trial struct {
	n, members, strangers, feedBytes uint64

	p     float64
	path  string
	lines strings.Builder
	start time.Time
}

// step adds a row to the table when a step is done.
func (t *trial) step(what, format string, args ...any) {
	took := time.Since(t.start)
	fmt.Fprintf(os.Stderr, "%-30s %8.1f s  %s\n", what, took.Seconds(), fmt.Sprintf(format, args...))
	fmt.Fprintf(&t.lines, "| %s | %.2f s | %s |\n", what, took.Seconds(), fmt.Sprintf(format, args...))
	t.start = time.Now()
}

func (t *trial) run() error {
	t.start = time.Now()
	f, err := bloom.Config{Keys: t.n, Rate: t.p}.New()
	if err != nil {
		return err
	}
	plan := f.Plan()
	t.step("plan", "m %d bits (%.3f per key, %.2f GB), k %d", plan.Bits, float64(plan.Bits)/float64(t.n), float64(plan.Bytes())/1e9, plan.Probes)
	f.Prefault()
	t.step("memory from the system", "%.1f GB/s", float64(plan.Bytes())/1e9/seconds(t))
	if err := t.build(f); err != nil {
		return err
	}
	report := f.Report()
	t.step("report, from a sample of the bits", "%.4f%% of the bits set; rate now %.5g +- %.2g; keys %.6g +- %.2g", 100*report.Fill, report.Rate, report.RateError, report.Keys, report.KeysError)
	defer os.Remove(t.path)
	if err := f.Save(t.path); err != nil {
		return err
	}
	info, err := os.Stat(t.path)
	if err != nil {
		return err
	}
	t.step("save, with checksums and fsync", "%d bytes, %.2f GB/s", info.Size(), float64(info.Size())/1e9/seconds(t))
	if err := f.Close(); err != nil {
		return err
	}
	t.start = time.Now()
	g, err := bloom.Open(t.path)
	if err != nil {
		return err
	}
	opened := time.Since(t.start)
	t.step("open by mmap", "%v", opened.Round(time.Microsecond))
	if err := g.Verify(); err != nil {
		return err
	}
	t.step("verify all checksums", "%.2f GB/s", float64(info.Size())/1e9/seconds(t))
	if err := t.check(g, report); err != nil {
		return err
	}
	t.print(plan)
	return g.Close()
}

func seconds(t *trial) float64 { return time.Since(t.start).Seconds() }

// build adds all keys, on all CPUs.
func (t *trial) build(f *bloom.Filter) error {
	bulk, err := f.Bulk(t.feedBytes)
	if err != nil {
		return err
	}
	workers := runtime.GOMAXPROCS(0)
	var next atomic.Uint64
	var wait sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		feed, err := bulk.Feed()
		if err != nil {
			return err
		}
		wait.Go(func() {
			keys := newKeys()
			for {
				from := next.Add(stripe) - stripe
				if from >= t.n {
					break
				}
				keys.each(from, min(from+stripe, t.n), feed.AddMany)
			}
			errs[i] = feed.Close()
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	took := seconds(t)
	t.step(fmt.Sprintf("add %d keys", t.n), "%.2f ns a key, %.1f million keys a second, %d workers; %d were new", 1e9*took/float64(t.n), float64(t.n)/took/1e6, workers, bulk.Added())
	return nil
}

// check looks up members, spread over all that were added, and absent keys.
func (t *trial) check(f *bloom.Filter, report bloom.Report) error {
	found := t.look(f, t.members, func(i uint64) uint64 { high, _ := bits.Mul64(i*0x9e3779b97f4a7c15, t.n); return high })
	t.step("look up members", "%d of %d found; %.1f ns a key", found, t.members, 1e9*seconds(t)/float64(t.members))
	if found != t.members {
		return fmt.Errorf("%d members are lost", t.members-found)
	}
	found = t.look(f, t.strangers, func(i uint64) uint64 { return t.n + i })
	measured := float64(found) / float64(t.strangers)
	sigma := math.Sqrt(measured * (1 - measured) / float64(t.strangers))
	t.step("look up strangers", "%d of %d found: rate %.5g +- %.2g, asked for %g; %.1f ns a key", found, t.strangers, measured, sigma, t.p, 1e9*seconds(t)/float64(t.strangers))
	if math.Abs(measured-report.Rate) > 4*math.Hypot(sigma, report.RateError) {
		return fmt.Errorf("the rate is %g, but the filter reports %g +- %g", measured, report.Rate, report.RateError)
	}
	if measured > t.p+4*sigma {
		return fmt.Errorf("the rate is %g, above %g", measured, t.p)
	}
	return nil
}

// look counts how many of the keys with ids which(0), which(1), ... are found.
func (t *trial) look(f *bloom.Filter, count uint64, which func(uint64) uint64) uint64 {
	var next, found atomic.Uint64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			keys := newKeys()
			for {
				from := next.Add(stripe) - stripe
				if from >= count {
					return
				}
				for at := from; at < min(from+stripe, count); at += batchKeys {
					n := int(min(batchKeys, count-at))
					for i := range n {
						keys.set(i, which(at+uint64(i)))
					}
					found.Add(uint64(f.ContainsMany(keys.keys[:n], nil)))
				}
			}
		})
	}
	wait.Wait()
	return found.Load()
}

func (t *trial) print(plan bloom.Plan) {
	var usage unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &usage)
	fmt.Printf("%d keys of %d bytes, p = %g; %s, %d CPUs, %s; %s\n\n", t.n, len(template), t.p, model(), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format("2006-01-02"))
	fmt.Printf("| step | time | |\n|---|---|---|\n%s", t.lines.String())
	fmt.Printf("| peak memory | | %.2f GB: the filter's %.2f GB, and what waits to be added |\n", float64(usage.Maxrss)*1024/1e9, float64(plan.Bytes())/1e9)
}

func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// keys is memory for a batch of keys.
type keys struct {
	text []byte
	keys [][]byte
}

func newKeys() *keys {
	k := &keys{text: []byte(strings.Repeat(template, batchKeys))}
	for i := range batchKeys {
		k.keys = append(k.keys, k.text[i*len(template):][:len(template)])
	}
	return k
}

// each passes the keys from, from+1, ... to-1 to do, a batch at a time.
func (k *keys) each(from, to uint64, do func([][]byte)) {
	for from < to {
		n := int(min(batchKeys, to-from))
		for i := range n {
			k.set(i, from+uint64(i))
		}
		do(k.keys[:n])
		from += uint64(n)
	}
}

// set makes key i the id-th of all.
func (k *keys) set(i int, id uint64) {
	id = (id ^ id>>32) * 0x9fb21c651e98df25 // multiplying by odd numbers and xorshifts are invertible
	id ^= id >> 29
	at := i*len(template) + digitsAt
	for d := range 8 {
		pair := hexPairs[byte(id>>(8*d))]
		k.text[at+2*d], k.text[at+2*d+1] = pair[0], pair[1]
	}
}

var hexPairs = func() (pairs [256][2]byte) {
	const digits = "0123456789abcdef"
	for i := range pairs {
		pairs[i] = [2]byte{digits[i>>4], digits[i&15]}
	}
	return pairs
}()
