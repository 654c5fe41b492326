package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// infoCommand is `bloomery info`.
type infoCommand struct {
	verify bool
	asJSON bool
}

func newInfo() *cobra.Command {
	c := &infoCommand{}
	cmd := &cobra.Command{
		Use:   "info F...",
		Short: "Print what a filter file knows about itself",
		Long: `Info prints how a filter was planned and how full it is: the false-positive rate
it has now and the number of keys it holds, both worked out from its bits. Of a
filter above 64 MiB a sample is read.`,
		Example: `  bloomery info seen.bloom
  bloomery info --verify *.bloom
  bloomery info --json seen.bloom | jq .rate_now`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("name the filter file: bloomery info seen.bloom")
			}
			return nil
		},
		RunE:                  func(cmd *cobra.Command, args []string) error { return c.run(cmd.OutOrStdout(), args) },
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().BoolVar(&c.verify, "verify", false, "check the whole file against its checksums first")
	addJSON(cmd, &c.asJSON, "print one JSON object for each file, on a line of its own")
	return cmd
}

func (c *infoCommand) run(stdout io.Writer, paths []string) error {
	var filters []*bloom.Filter
	for _, path := range paths {
		f, err := openFilter(path, "")
		if err != nil {
			return err
		}
		defer f.Close()
		filters = append(filters, f)
	}
	for i, f := range filters {
		if c.verify {
			if err := f.Verify(); err != nil {
				return withAdvice(fmt.Errorf("%s: %w", paths[i], err))
			}
		}
		v := c.describe(paths[i], f)
		if c.asJSON {
			if err := printJSON(stdout, v); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := v.print(stdout); err != nil {
			return err
		}
	}
	return nil
}

// infoJSON is everything that a filter file knows.
type infoJSON struct {
	File      string            `json:"file"`
	FileBytes int64             `json:"file_bytes"`
	Kind      string            `json:"kind"`
	Hash      string            `json:"hash"`
	Seed      *uint64           `json:"seed,omitempty"`
	Secret    string            `json:"secret_fingerprint,omitempty"`
	Verified  bool              `json:"verified"`
	Meta      map[string]string `json:"meta,omitempty"`
	filterJSON
	report bloom.Report
}

func (c *infoCommand) describe(path string, f *bloom.Filter) infoJSON {
	r := f.Report()
	v := infoJSON{
		File:       path,
		FileBytes:  f.FileBytes(),
		Kind:       "filter",
		Verified:   c.verify,
		Meta:       f.Meta(),
		filterJSON: describeFilter(r),
		report:     r,
	}
	id := f.HashIdentity()
	v.Hash = id.Algorithm.String()
	if id.Algorithm == bloom.SipHash {
		v.Secret = fmt.Sprintf("%016x", id.Key)
	} else {
		v.Seed = &id.Key
	}
	return v
}

func (v infoJSON) print(w io.Writer) error {
	r := v.report
	t := &table{to: w}
	t.row("file", "%s (%s bytes)", v.File, commas(uint64(v.FileBytes)))
	if v.Verified {
		t.row("checksums", "all good")
	}
	t.row("kind", "%s: paired lines", v.Kind)
	if v.Seed != nil {
		t.row("hash", "%s, seed %d", v.Hash, *v.Seed)
	} else {
		t.row("hash", "%s, secret with fingerprint %s", v.Hash, v.Secret)
	}
	t.row("planned keys", "%s (n)", commas(v.Keys))
	t.row("planned rate", "%s (p = %.4g)", oneIn(v.Rate), v.Rate)
	t.row("bits", "%s (m), %d set per key (k)", commas(v.Bits), v.Probes)
	t.row("memory", "%s bytes (%s)", commas(v.Bytes), binarySize(v.Bytes))
	t.row("rate now", "%s%s", oneIn(r.Rate), rateError(r))
	t.row("keys, estimated", "%s", estimate(r))
	t.row("full", "%s%s", percent(r.Full()), warning(r))
	t.row("remaining", "%s keys", commas(v.Remaining))
	t.row("bits set", "%s", percent(v.Fill))
	t.row("added", "%s keys were new when they were added", commas(v.Added))
	for _, key := range slices.Sorted(maps.Keys(v.Meta)) {
		t.row("meta", "%s=%s", key, v.Meta[key])
	}
	return t.err
}

func rateError(r bloom.Report) string {
	if r.RateError == 0 {
		return fmt.Sprintf(" (%.4g)", r.Rate)
	}
	return fmt.Sprintf(" (%.4g, +- %.1f%%, from a sample)", r.Rate, 100*r.RateError/r.Rate)
}

func estimate(r bloom.Report) string {
	if finite(r.Keys) == nil {
		return "unknown: every bit is set"
	}
	return fmt.Sprintf("%s +- %s", round(r.Keys), round(r.KeysError))
}

func warning(r bloom.Report) string {
	if r.Overfull() {
		return ": over-full, the rate is past what was planned"
	}
	return ""
}
