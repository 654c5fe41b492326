package web_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/webtest"
)

const root = ".."

// node runs a script of testdata in Node.js and returns what it prints. The test fails
// if the script does, or takes too long.
func node(t *testing.T, script string, args ...string) string {
	t.Helper()
	printed, err := run(t.Context(), script, args...)
	if err != nil {
		t.Fatal(err)
	}
	return printed
}

// run is node for any goroutine.
func run(ctx context.Context, script string, args ...string) (string, error) {
	program, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("there is no node: make test installs Debian's nodejs")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"--max-old-space-size=512", filepath.Join("testdata", script)}, args...)...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	printed, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("node %s %q hangs", script, args)
	}
	if err != nil {
		return "", fmt.Errorf("node %s %q: %w\n%s", script, args, err, &problems)
	}
	return string(printed), nil
}

// inJSON writes a value to a new file and returns its path.
func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, "plan.json", text)
}

func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

type planned struct {
	File   string `json:"file"`
	Secret string `json:"secret"`
	Now    int64  `json:"now"`
	Out    string `json:"out"`
}

// compare has Node.js read the files of the cases and look the keys up, and compares
// its answers with the library's. The cases are dealt to two processes.
func compare(t *testing.T, cases []webtest.Case, keys [][]byte) {
	t.Helper()
	packed := written(t, "keys", webtest.Pack(keys))
	outs := t.TempDir()
	out := func(c webtest.Case) string { return filepath.Join(outs, c.Name) }
	const processes = 2
	var running sync.WaitGroup
	for process := range processes {
		var dealt []planned
		for i := process; i < len(cases); i += processes {
			c := cases[i]
			dealt = append(dealt, planned{c.Path, hex.EncodeToString([]byte(c.Secret)), c.Now.UnixMilli(), out(c)})
		}
		plan := inJSON(t, map[string]any{"keys": packed, "cases": dealt})
		running.Go(func() {
			if _, err := run(t.Context(), "check.mjs", plan); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if t.Failed() {
		return
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { webtest.Compare(t, c, keys, webtest.ReadFile(t, out(c))) })
	}
}

// TestGolden: JavaScript answers as the library does, for every golden file.
func TestGolden(t *testing.T) {
	t.Parallel()
	compare(t, webtest.Golden(t, root), webtest.Keys(100_000))
}

// TestLarger: the same for files with more keys, blocks, layers and generations.
func TestLarger(t *testing.T) {
	t.Parallel()
	compare(t, larger(t), webtest.Keys(100_000))
}

// saver is what the kinds have in common here.
type saver interface {
	bloom.Any
	Save(path string) error
	SetMeta(map[string]string) error
}

// larger makes files of every kind that has more to it than its golden file.
func larger(t *testing.T) (cases []webtest.Case) {
	t.Helper()
	dir := t.TempDir()
	now := time.Unix(1_800_000_000, 0)
	keep := func(name, secret string, keys int, f saver, err error) saver {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			f.Add([]byte(webtest.StoredKey(i)))
		}
		c := webtest.Case{Name: name, Path: filepath.Join(dir, name+".bloom"), Secret: secret, Now: now}
		if err := f.Save(c.Path); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
		return f
	}
	const million = 1_000_000
	for _, secret := range []string{"", "sixteen bytes .."} {
		name := func(kind string) string {
			if secret != "" {
				return kind + " keyed"
			}
			return kind
		}
		config := bloom.Config{Keys: million, Rate: 0.01, Seed: 1<<63 | 5}
		scalable := bloom.ScalableConfig{First: 500, Rate: 0.001, Growth: 3, Seed: 9}
		if secret != "" {
			config.Seed, scalable.Seed = 0, 0
			config.Secret, scalable.Secret = []byte(secret), []byte(secret)
		}
		filter, err := config.New()
		keep(name("filter"), secret, million, filter, err)
		split := config
		split.Seed = 0
		split.Keys = 200_000
		splitBlock, err := split.NewSplitBlock()
		keep(name("splitblock"), secret, 20_000, splitBlock, err)
		growing, err := scalable.New()
		keep(name("scalable"), secret, 20_000, growing, err)
		if layers := len(growing.Layers()); layers < 4 {
			t.Fatalf("the scalable filter has %d layers", layers)
		}
		scalable.First = 2_000
		overlapping, err := scalable.NewCounting()
		keep(name("scalablecounting"), secret, 10_000, overlapping, err)
		for i := range 3_000 {
			overlapping.Remove([]byte(webtest.StoredKey(i)))
		}
		keep(name("scalablecounting, keys removed"), secret, 0, overlapping, nil)
		config.Keys = 50_000
		counting, err := config.NewCounting()
		for i := range 10_000 {
			counting.Add([]byte(fmt.Sprintf("before key %d", i)))
		}
		keep(name("counting"), secret, 12_000, counting, err)
		for i := range 5_000 {
			counting.Remove([]byte(fmt.Sprintf("before key %d", i)))
		}
		keep(name("counting, keys removed"), secret, 0, counting, nil)
		keep(name("exceptions"), secret, 0, excepting(t, config), nil)
		cuckoo, err := bloom.CuckooConfig{Keys: 100, BucketSize: 3, Growth: 2, Seed: config.Seed, Secret: config.Secret}.New()
		for i := range 2_000 {
			cuckoo.Add([]byte(fmt.Sprintf("before key %d", i)))
		}
		for i := range 1_000 {
			cuckoo.Remove([]byte(fmt.Sprintf("before key %d", i)))
		}
		keep(name("cuckoo"), secret, 10_000, cuckoo, err)
	}
	for size, c := range map[string]bloom.CuckooConfig{
		"one":  {Keys: 1000, BucketSize: 1, Growth: 8, Iterations: 500},
		"nine": {Keys: 20_000, BucketSize: 9, NonScaling: true, Budget: 1 << 20},
	} {
		cuckoo, err := c.New()
		keep("cuckoo, buckets of "+size, "", 10_000, cuckoo, err)
	}
	for rate, k := range map[float64]string{0.3: "few", 1e-9: "many"} {
		filter, err := bloom.Config{Keys: 20_000, Rate: rate}.New()
		keep("probes: "+k, "", 10_000, filter, err)
	}
	return append(cases, windows(t, dir, now)...)
}

// excepting returns a filter with exceptions among its false positives.
func excepting(t *testing.T, config bloom.Config) *bloom.Exceptions {
	t.Helper()
	config.Rate = 0.05
	filter, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	f := bloom.WithExceptions(filter)
	for i := range 40_000 {
		f.AddString(webtest.StoredKey(i))
	}
	for i := range 25_000 {
		if key := fmt.Sprintf("before key %d", i); i%2 == 0 && f.ContainsString(key) {
			if err := f.ExceptString(key); err != nil {
				t.Fatal(err)
			}
		}
	}
	if f.Len() < 50 {
		t.Fatalf("only %d exceptions", f.Len())
	}
	return f
}

// windows returns a window at several times: while it was filled, and when one
// generation, some and all of them are forgotten.
func windows(t *testing.T, dir string, now time.Time) (cases []webtest.Case) {
	t.Helper()
	clock := now.Add(-50 * time.Minute)
	config := bloom.WindowConfig{Keys: 8_000, Rate: 0.001, Span: time.Hour, Generations: 6, Now: func() time.Time { return clock }}
	f, err := config.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		if i%1000 == 0 {
			clock = clock.Add(5 * time.Minute)
		}
		f.AddString(webtest.StoredKey(i))
	}
	path := filepath.Join(dir, "window.bloom")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	for _, later := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 59*time.Minute + 59999*time.Millisecond, time.Hour, 69 * time.Minute, 3 * time.Hour} {
		cases = append(cases, webtest.Case{Name: "window, later by " + later.String(), Path: path, Now: now.Add(later)})
	}
	return cases
}
