//go:build linux

// Restart measures how long a store takes to open: from a snapshot, compared with
// reading that file into fresh memory, and from a log. It prints two Markdown tables.
//
//	go run ./restart
//	go run ./restart -mib 64 -adds 1e6
//
// Each figure is measured in a new process, which has no memory yet. The processes of
// a row alternate, and the files come from the system's cache.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/store"
)

var (
	mib  = flag.Uint64("mib", 1024, "size of the snapshot's filters, in MiB")
	adds = flag.Float64("adds", 1e8, "number of adds in the log")
	runs = flag.Int("runs", 7, "measurements of each figure; the tables have medians")
	part = flag.String("part", "", "internal: the part that a new process runs, in the directory -dir")
	dir  = flag.String("dir", "", "internal: the directory of -part")
)

func main() {
	flag.Parse()
	if *part == "" {
		check(tables())
		return
	}
	verb, kind, _ := strings.Cut(*part, " ")
	check(map[string]func(kind string) error{"fill": fill, "read": read, "open": open, "log": log, "write": write}[verb](kind))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "restart:", err)
		os.Exit(1)
	}
}

var kinds = []struct{ name, text string }{
	{"redisbloom", "one of RedisBloom's kind"},
	{"paired", "one of our own kind"},
	{"small", "%d of RedisBloom's kind, of 16 KiB each"},
}

func tables() error {
	fmt.Printf("A store with %d MiB of filters, opened after an orderly stop:\n\n", *mib)
	fmt.Println("| filters | snapshot | reading it into fresh memory | start | of reading |")
	fmt.Println("|---|--:|--:|--:|--:|")
	for _, kind := range kinds {
		err := with(func(dir string) error {
			if _, err := run(dir, "fill "+kind.name); err != nil {
				return err
			}
			var reads, starts, ratios []float64
			for range *runs {
				r, err := run(dir, "read")
				if err != nil {
					return err
				}
				s, err := run(dir, "open")
				if err != nil {
					return err
				}
				reads, starts, ratios = append(reads, r[1]), append(starts, s[0]), append(ratios, s[0]/r[1])
				if len(reads) == *runs {
					text := kind.text
					if kind.name == "small" {
						text = fmt.Sprintf(text, smallFilters())
					}
					fmt.Printf("| %s | %.0f MiB | %.2f s | %.2f s | %.2f |\n", text, r[0]/(1<<20), median(reads), median(starts), median(ratios))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("\nA filter with %.0e keys, added in groups of %d and all in the log, opened after a kill; and the bytes that such adds write, snapshots included:\n\n", *adds, group)
	fmt.Println("| filter | log | adds recovered | start | bytes written for each add |")
	fmt.Println("|---|--:|--:|--:|--:|")
	for _, kind := range kinds[:2] {
		var opened, written []float64
		err := with(func(dir string) (err error) {
			if _, err = run(dir, "log "+kind.name); err == nil {
				opened, err = run(dir, "open")
			}
			return err
		})
		if err == nil {
			err = with(func(dir string) (err error) {
				written, err = run(dir, "write "+kind.name)
				return err
			})
		}
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.0f MiB | %.0f | %.1f s | %.1f |\n", kind.text, opened[1]/(1<<20), opened[2], opened[0], written[0])
	}
	fmt.Printf("\n<!-- measured by: make bench-restart -->\n```text\n%d cores; %s %s/%s; %s. Medians of %d starts; one start for each log.\n```\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly), *runs)
	return nil
}

// with calls do with a temporary directory, and then removes it.
func with(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "bloomery-restart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return do(dir)
}

// run runs a part in a new process and returns the numbers that it prints.
func run(dir, part string) (numbers []float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, "-part", part, "-dir", dir, "-mib", fmt.Sprint(*mib), "-adds", fmt.Sprint(*adds))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	for _, field := range strings.Fields(string(out)) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

const group = 1000 // keys added and committed at a time

// specOf returns the spec of a filter for the given number of keys.
func specOf(kind string, keys float64) store.Spec {
	spec := store.Spec{Kind: store.RedisBloom, Capacity: uint64(keys), Rate: 0.01}
	if kind == "paired" {
		spec.Kind = store.Paired
	}
	return spec
}

// put creates a filter and adds keys to it.
func put(s *store.Local, name string, spec store.Spec, keys int) error {
	ctx := context.Background()
	f, err := s.Create(ctx, name, spec)
	if err != nil {
		return err
	}
	var names [group][]byte
	var room [8 * group]byte
	var isNew [group]bool
	for from := 0; from < keys; from += group {
		for i := range names {
			names[i] = room[8*i:][:8]
			binary.LittleEndian.PutUint64(names[i], uint64(from+i)*0x9e3779b97f4a7c15)
		}
		if _, err := f.Add(ctx, names[:], isNew[:]); err != nil {
			return err
		}
		if err := s.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

func smallFilters() uint64 { return *mib << 20 / (16 << 10) }

// fill creates filters of -mib in total, and closes the store.
func fill(kind string) error {
	s, err := store.OpenLocal(store.LocalConfig{Dir: *dir})
	if err != nil {
		return err
	}
	filters := uint64(1)
	if kind == "small" {
		filters = smallFilters()
	}
	const bitsPerKey = 9.6
	keys := float64(*mib<<20/filters) * 8 / bitsPerKey
	for i := range filters {
		if err := put(s, fmt.Sprint("filter ", i), specOf(kind, keys), group); err != nil {
			return err
		}
	}
	return s.Close()
}

// read reads the snapshot into fresh memory. It prints the bytes and the seconds.
func read(string) error {
	found, err := filepath.Glob(filepath.Join(*dir, "snapshot-*"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("snapshots: %v, %v", found, err)
	}
	began := time.Now()
	file, err := os.Open(found[0])
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	bytes := make([]byte, info.Size())
	if _, err := io.ReadFull(file, bytes); err != nil {
		return err
	}
	fmt.Println(len(bytes), time.Since(began).Seconds())
	return nil
}

// open opens the store. It prints the seconds, the log's bytes and its adds.
func open(string) error {
	began := time.Now()
	s, err := store.OpenLocal(store.LocalConfig{Dir: *dir})
	if err != nil {
		return err
	}
	took, r := time.Since(began).Seconds(), s.Recovered()
	fmt.Println(took, r.LogBytes, r.Adds)
	return s.Close()
}

// log writes a log of -adds adds, and exits as if killed.
func log(kind string) error {
	s, err := store.OpenLocal(store.LocalConfig{Dir: *dir, CheckpointBytes: 1 << 50})
	if err != nil {
		return err
	}
	return put(s, "filter", specOf(kind, *adds), int(*adds))
}

// write adds keys as a server does. It prints the bytes written for each add.
func write(kind string) error {
	s, err := store.OpenLocal(store.LocalConfig{Dir: *dir})
	if err != nil {
		return err
	}
	if err := put(s, "filter", specOf(kind, *adds), int(*adds)); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "wchar: "); ok {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
			fmt.Println(bytes / *adds)
			return err
		}
	}
	return fmt.Errorf("/proc/self/io has no wchar")
}
