package main

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
	"github.com/spf13/cobra"
)

// benchCommand is `bloomery bench`.
type benchCommand struct {
	keys   human.CountFlag
	rate   human.RateFlag
	secret string
	asJSON bool
	anyfile.Options
}

func newBench() *cobra.Command {
	b := &benchCommand{keys: 1_000_000, rate: 0.01}
	cmd := &cobra.Command{
		Use:   "bench [F]",
		Short: "Measure the time per key on this machine",
		Long: `Bench measures in about two seconds how long adding and looking up a key takes on
one CPU of this machine: in a copy of the filter F, or in a new one for -n keys at
the rate -p. Keys are 16 random bytes. The figures vary with the load of the
machine: run it twice.`,
		Example: `  bloomery bench
  bloomery bench -n 1e8 -p 0.1%
  bloomery bench --json seen.bloom`,
		RunE:                  b.run,
		DisableFlagsInUseLine: true,
	}
	flags := cmd.Flags()
	flags.VarP(&b.keys, "keys", "n", "without F: the number of keys to plan for")
	flags.VarP(&b.rate, "rate", "p", "without F: the false-positive rate")
	addSecret(cmd, &b.secret)
	addFormat(cmd, &b.Options)
	addJSON(cmd, &b.asJSON, "print one JSON object")
	return cmd
}

const (
	benchTime     = 300 * time.Millisecond // of each measurement
	benchKeyBytes = 16
	benchMostKeys = 1 << 20 // used in turn
)

// benchJSON is what bench measured.
type benchJSON struct {
	Kind   string       `json:"kind"`
	Bytes  uint64       `json:"bytes"`
	Fill   float64      `json:"fill"`
	CPUs   int          `json:"cpus"`
	System string       `json:"system"`
	Costs  []*benchCost `json:"costs"`
}

// benchCost is a measured cost.
type benchCost struct {
	What   string  `json:"what"` // "add", "hit" or "miss"
	Single float64 `json:"ns_per_key"`
	Batch  float64 `json:"ns_per_key_in_batches"`
}

func (b *benchCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("name one filter, or none: bloomery bench seen.bloom")
	}
	err := idle(cmd, "F has its own", "keys", "rate")
	if len(args) == 0 {
		err = idle(cmd, "it is for a filter file F", "format", "scheme", "bits", "probes")
	}
	if err != nil {
		return err
	}
	f, err := b.filter(args)
	if err != nil {
		return err
	}
	defer f.Close()
	result := benchFilter(f)
	if b.asJSON {
		return printJSON(cmd.OutOrStdout(), result)
	}
	t := &human.Table{To: cmd.OutOrStdout()}
	t.Row("filter", "%s, %s, %s of the bits set", result.Kind, human.BinarySize(result.Bytes), human.Percent(result.Fill))
	t.Row("machine", "%s, %d CPUs, one of them used", result.System, result.CPUs)
	t.Row("ns per key", "%10s %10s", "one by one", "in batches")
	for _, c := range result.Costs {
		t.Row("  "+c.What, "%10.1f %10.1f", c.Single, c.Batch)
	}
	return t.Err
}

// filter returns a copy of the file's filter that may be changed, or a new filter
// that is half full.
func (b *benchCommand) filter(args []string) (*anyfile.File, error) {
	if len(args) == 1 {
		f, err := b.Open(args[0], anyfile.ToChange)
		if err != nil {
			return nil, err
		}
		if err := b.RefuseIdle(f); err != nil {
			return f, err
		}
		return f, anyfile.Unlock(b.secret, f)
	}
	secret, err := anyfile.ReadSecret(b.secret)
	if err != nil {
		return nil, err
	}
	made, err := newFilter(bloom.Config{Keys: uint64(b.keys), Rate: float64(b.rate), Secret: secret}, 0)
	if err != nil {
		return nil, err
	}
	f := &anyfile.File{Filter: made}
	made.Prefault()
	hashes := make([]uint64, lines.BatchKeys)
	random := rand.New(rand.NewPCG(1, 1))
	for left := uint64(b.keys) / 2; left > 0; {
		n := min(left, uint64(len(hashes)))
		for i := range hashes[:n] {
			hashes[i] = random.Uint64()
		}
		made.AddHashes(hashes[:n], nil)
		left -= n
	}
	return f, nil
}

// benchFilter measures lookups of keys that were never added, then adds, and then
// lookups of the added keys.
func benchFilter(f *anyfile.File) benchJSON {
	r := f.Report()
	result := benchJSON{Kind: f.Kind(), Bytes: r.Plan.Bytes(), Fill: r.Fill, CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH}
	strangers := benchKeys(2, benchMostKeys)
	// So few that the filter stays about as full as it was.
	members := benchKeys(3, min(max(int(r.Plan.Keys/20), lines.BatchKeys), benchMostKeys))
	miss := benchCost{"miss",
		perKey(strangers, 1, func(keys [][]byte) { f.Contains(keys[0]) }),
		perKey(strangers, lines.BatchKeys, func(keys [][]byte) { f.ContainsMany(keys, nil) })}
	half := len(members) / 2
	add := benchCost{"add", addCost(f, members[:half], 1), addCost(f, members[half:], lines.BatchKeys)}
	hit := benchCost{"hit",
		perKey(members, 1, func(keys [][]byte) { f.Contains(keys[0]) }),
		perKey(members, lines.BatchKeys, func(keys [][]byte) { f.ContainsMany(keys, nil) })}
	result.Costs = []*benchCost{&add, &hit, &miss}
	return result
}

func benchKeys(seed uint64, n int) (keys [][]byte) {
	text := make([]byte, n*benchKeyBytes)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	random.Read(text)
	for i := 0; i < len(text); i += benchKeyBytes {
		keys = append(keys, text[i:i+benchKeyBytes])
	}
	return keys
}

// perKey returns the time that do takes for each key, in nanoseconds, with that many keys a
// call and all keys in turn.
func perKey(keys [][]byte, call int, do func([][]byte)) float64 {
	call = min(call, len(keys))
	done, start := 0, time.Now()
	for {
		for range max(lines.BatchKeys/call, 1) { // look at the clock now and then
			at := done % (len(keys) - call + 1)
			do(keys[at : at+call])
			done += call
		}
		if taken := time.Since(start); taken >= benchTime {
			return float64(taken.Nanoseconds()) / float64(done)
		}
	}
}

// addCost measures, once, how long adding new keys takes.
func addCost(f interop.Filter, keys [][]byte, call int) float64 {
	start := time.Now()
	for rest := keys; len(rest) > 0; {
		n := min(call, len(rest))
		if n == 1 {
			f.Add(rest[0])
		} else {
			f.AddMany(rest[:n], nil)
		}
		rest = rest[n:]
	}
	return float64(time.Since(start).Nanoseconds()) / float64(len(keys))
}
