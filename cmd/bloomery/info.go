package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/spf13/cobra"
)

// infoCommand is `bloomery info`.
type infoCommand struct {
	verify bool
	asJSON bool
	anyfile.Options
}

func newInfo() *cobra.Command {
	c := &infoCommand{}
	cmd := &cobra.Command{
		Use:   "info F...",
		Short: "Show the plan and the state of a filter file",
		Long: `Info prints how a filter was planned and how full it is: its current
false-positive rate and the number of keys it holds, both computed from its bits,
whatever its file claims. Above 64 MiB only a sample of the bits is read. F may be
a filter of any kind, or one that another program wrote.`,
		Example: `  bloomery info seen.bloom
  bloomery info --verify *.bloom
  bloomery info --json seen.bloom | jq .rate_now
  bloomery info hashlookup-full.bloom            # DCSO's format is detected`,
		Args: someFilters("bloomery info seen.bloom"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().BoolVar(&c.verify, "verify", false, "check the whole file against its checksums first")
	addFormat(cmd, &c.Options)
	addJSON(cmd, &c.asJSON, "print one JSON object for each file, on a line of its own")
	return cmd
}

// someFilters wants at least one filter file.
func someFilters(example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("name the filter file: %s", example)
		}
		return nil
	}
}

func (c *infoCommand) run(stdout, stderr io.Writer, paths []string) error {
	var files []*anyfile.File
	defer func() { anyfile.CloseAll(files) }()
	failed := false
	for _, path := range paths { // an unreadable file does not stop the others
		f, err := c.Open(path, anyfile.ToRead)
		if err == nil && c.verify {
			err = f.Verify()
		}
		if err != nil && len(paths) == 1 {
			return err
		}
		if err != nil {
			complain(stderr, err)
			failed = true
			continue
		}
		files = append(files, f)
	}
	if len(files) > 0 {
		if err := c.RefuseIdle(files...); err != nil {
			return err
		}
	}
	for i, f := range files {
		v := describe(f, c.verify)
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
	if failed {
		return exitStatus(exitError)
	}
	return nil
}

// infoJSON is everything that is known of a filter file.
type infoJSON struct {
	File      string            `json:"file"`
	FileBytes int64             `json:"file_bytes"`
	Format    string            `json:"format"`
	Packed    bool              `json:"packed,omitempty"` // with gzip
	Kind      string            `json:"kind"`
	Scheme    string            `json:"scheme,omitempty"`
	Hash      string            `json:"hash,omitempty"`
	Seed      *uint64           `json:"seed,omitempty"`
	Secret    string            `json:"secret_fingerprint,omitempty"`
	Verified  bool              `json:"verified"`
	Meta      map[string]string `json:"meta,omitempty"`
	human.FilterJSON

	RateBound      *float64           `json:"rate_bound,omitempty"`  // of a scalable filter, however much it grows
	Layers         []human.FilterJSON `json:"layers,omitempty"`      // of a scalable filter, oldest first
	Generations    []human.FilterJSON `json:"generations,omitempty"` // of a window, oldest first
	SpanSeconds    float64            `json:"span_seconds,omitempty"`
	ChainLayers    []layerJSON        `json:"chain_layers,omitempty"` // of RedisBloom's, oldest first
	CuckooLayers   int                `json:"cuckoo_layers,omitempty"`
	Saturated      *uint64            `json:"saturated_counters,omitempty"`
	Removed        *uint64            `json:"removed,omitempty"` // of a scalable counting filter, whose adds are less these
	Exceptions     *int               `json:"exceptions,omitempty"`
	ExceptionBytes *int               `json:"exception_bytes,omitempty"`
	DataBytes      int                `json:"data_bytes,omitempty"` // free data after the filter
	Details        map[string]string  `json:"details,omitempty"`    // in the terms of the file's program

	report    bloom.Report
	unplanned bool
	about     string
	parts     []bloom.Report
	details   [][2]string
}

// layerJSON is a layer of a RedisBloom chain.
type layerJSON struct {
	Keys   uint64  `json:"keys"` // planned
	Rate   float64 `json:"rate"` // planned
	Bits   uint64  `json:"bits"`
	Probes int     `json:"probes"`
	Bytes  uint64  `json:"bytes"`
	Added  uint64  `json:"added"`
}

// abouts describes the kinds.
var abouts = map[string]string{
	"filter":     "paired lines",
	"splitblock": "split blocks, as in Parquet",
	"classic":    "any bits, as in the textbooks",
	"counting":   "paired lines of counters, from which keys can be removed",
	"scalable":   "a chain of filters that grows",
	"window":     "a ring of filters that forgets",
	"exceptions": "paired lines, and a list of known false positives",
	"chain":      "a chain of filters that grows",
	"cuckoo":     "fingerprints in buckets, from which keys can be removed",

	"scalablecounting": "a chain of counting filters that grows",
}

func describe(f *anyfile.File, verified bool) infoJSON {
	r := f.Condition()
	v := infoJSON{
		File:       f.Path,
		FileBytes:  f.Info.Size(),
		Format:     f.Format(),
		Packed:     f.Packed,
		Kind:       f.Kind(),
		Verified:   verified,
		Meta:       f.Meta(),
		FilterJSON: human.Describe(r),
		report:     r.Report,
		unplanned:  r.Unplanned,
		about:      abouts[f.Kind()],
	}
	if hashed, ok := f.Filter.(interface{ HashIdentity() bloom.HashIdentity }); ok {
		v.describeHash(hashed.HashIdentity())
	}
	switch k := f.Filter.(type) {
	case *classic.Filter:
		v.Scheme = k.Scheme().Name()
	case *bloom.Counting:
		saturated := k.Saturated()
		v.Saturated, v.Bytes = &saturated, k.Bytes()
	case *bloom.ScalableCounting:
		v.describeCounting(k)
	case *bloom.Cuckoo:
		v.CuckooLayers = k.LayerCount()
	case *bloom.Exceptions:
		n, bytes := k.Len(), k.Bytes()
		v.Exceptions, v.ExceptionBytes = &n, &bytes
	case *bloom.Window:
		v.SpanSeconds = k.Span().Seconds()
		v.parts = k.Generations()
		v.Generations = describeParts(v.parts)
	case *anyfile.Chain:
		for _, l := range k.Layers() {
			v.ChainLayers = append(v.ChainLayers, layerJSON{l.Capacity, l.Rate, l.Bits, l.Probes, l.Bytes, l.Items})
		}
	case *bloom.Scalable:
		bound := k.Config().Rate
		v.RateBound = &bound
		v.parts = k.Layers()
		v.Layers = describeParts(v.parts)
	}
	if f.Foreign != nil {
		v.about = f.Foreign.Format.About
		v.DataBytes = len(f.Foreign.Data)
		v.details = f.Foreign.Details
		for _, d := range v.details {
			if v.Details == nil {
				v.Details = make(map[string]string)
			}
			v.Details[d[0]] = d[1]
		}
	}
	return v
}

func (v *infoJSON) describeCounting(f *bloom.ScalableCounting) {
	bound, saturated, removed := f.Config().Rate, f.Saturated(), f.Removed()
	v.RateBound, v.Saturated, v.Removed, v.Bytes = &bound, &saturated, &removed, f.Bytes()
	v.parts = f.Layers()
	v.Layers = describeParts(v.parts)
	for i := range v.Layers {
		v.Layers[i].Bytes *= v.perBit()
	}
}

// perBit is how many bits a bit of the plan takes.
func (v *infoJSON) perBit() uint64 { return v.Bytes / v.report.Plan.Bytes() }

func (v *infoJSON) describeHash(id bloom.HashIdentity) {
	if id.Algorithm == 0 { // the scheme's own
		return
	}
	v.Hash = id.Algorithm.String()
	if id.Algorithm == bloom.SipHash {
		v.Secret = fmt.Sprintf("%016x", id.Key)
	} else {
		v.Seed = &id.Key
	}
}

func describeParts(reports []bloom.Report) (parts []human.FilterJSON) {
	for _, r := range reports {
		parts = append(parts, human.Describe(human.Condition{Report: r}))
	}
	return parts
}

func (v infoJSON) print(w io.Writer) error {
	r := v.report
	t := &human.Table{To: w}
	packed := ""
	if v.Packed {
		packed = ", packed with gzip"
	}
	t.Row("file", "%s (%s bytes%s)", v.File, human.Commas(uint64(v.FileBytes)), packed)
	if v.Verified {
		t.Row("checksums", "%s", v.checked())
	}
	if v.Format != anyfile.OurFormat {
		t.Row("format", "%s: %s", v.Format, v.about)
		t.Row("kind", "%s: %s", v.Kind, abouts[v.Kind])
	} else {
		t.Row("kind", "%s: %s", v.Kind, v.about)
	}
	if v.Scheme != "" {
		t.Row("scheme", "%s", v.Scheme)
	}
	if v.Seed != nil {
		t.Row("hash", "%s, seed %d", v.Hash, *v.Seed)
	} else if v.Secret != "" {
		t.Row("hash", "%s, secret with fingerprint %s", v.Hash, v.Secret)
	}
	if v.unplanned {
		t.Row("n and p", "not known: half full, it holds about %s at %s", human.Count(r.Plan.Keys, "key"), human.OneIn(r.Plan.Rate))
	} else if v.RateBound != nil {
		t.Row("planned rate", "%s (p), however much it grows", human.OneIn(*v.RateBound))
		t.Row("planned keys", "%s in the layers so far, at %s", human.Commas(r.Plan.Keys), human.OneIn(r.Plan.Rate))
	} else {
		t.Row("planned keys", "%s (n)", human.Commas(r.Plan.Keys))
		t.Row("planned rate", "%s (p = %.4g)", human.OneIn(r.Plan.Rate), r.Plan.Rate)
	}
	if v.CuckooLayers > 0 {
		t.Row("buckets", "%s of %s, in %s", human.Commas(r.Plan.Blocks), human.Count(uint64(v.Probes), "slot"), human.Count(uint64(v.CuckooLayers), "layer"))
	} else {
		t.Row("bits", "%s (m), %d set per key (k)", human.Commas(v.Bits), v.Probes)
	}
	t.Row("memory", "%s", human.BytesOf(v.Bytes))
	t.Row("rate now", "%s%s", human.OneIn(r.Rate), rateError(r))
	if v.CuckooLayers > 0 {
		t.Row("keys", "%s", human.Commas(r.Added))
	} else {
		t.Row("keys, estimated", "%s", estimate(r))
	}
	if !v.unplanned {
		t.Row("full", "%s%s", human.Full(r), warning(r))
		t.Row("remaining", "%s", human.Count(r.Remaining, "key"))
	}
	if v.CuckooLayers > 0 {
		t.Row("slots in use", "%s", human.Percent(v.Fill))
	} else {
		t.Row("bits set", "%s", human.Percent(v.Fill))
	}
	if v.Removed != nil {
		t.Row("keys", "%s were added and not removed, %s were removed", human.Commas(v.Added), human.Commas(*v.Removed))
	} else if v.CuckooLayers == 0 && v.Format == anyfile.OurFormat { // others keep no such count, or report it as a detail
		if v.Added > 0 || v.Fill == 0 { // otherwise it came from a file without a count
			t.Row("added", "%s keys were new when they were added", human.Commas(v.Added))
		}
	}
	v.printParts(t)
	for _, d := range v.details {
		t.Row(d[0], "%s", d[1])
	}
	if v.DataBytes > 0 {
		t.Row("data", "%s after the filter", human.Count(uint64(v.DataBytes), "byte"))
	}
	for _, key := range slices.Sorted(maps.Keys(v.Meta)) {
		t.Row("meta", "%s=%s", key, v.Meta[key])
	}
	return t.Err
}

// checked is what --verify reports of a file without a fault.
func (v infoJSON) checked() string {
	if v.Format != anyfile.OurFormat {
		return "none: the format has no checksums; its structure is sound"
	}
	return "all good"
}

// printParts prints what only some kinds have.
func (v infoJSON) printParts(t *human.Table) {
	if v.Saturated != nil {
		t.Row("counters", "%s at %d, where they stay", human.Commas(*v.Saturated), bloom.MaxCount)
	}
	if v.Exceptions != nil {
		t.Row("exceptions", "%s answered no (%s bytes)", human.Count(uint64(*v.Exceptions), "key"), human.Commas(uint64(*v.ExceptionBytes)))
	}
	name := "layer"
	if v.SpanSeconds > 0 {
		name = "generation"
		t.Row("span", "%v: keys are found for at least this long", time.Duration(v.SpanSeconds*float64(time.Second)))
		if whole := len(v.parts) - 2; whole >= 0 { // the last one is not over yet
			r := v.parts[whole]
			t.Row("pace", "%s keys in the last whole generation, %s of what is planned", human.Round(r.Keys), human.Percent(r.Full()))
		}
	}
	for i, r := range v.parts {
		t.Row(fmt.Sprintf("%s %d", name, i+1), "%s of %s keys, %s full%s, %s, rate now %s",
			estimate(r), human.Commas(r.Plan.Keys), human.Full(r), warning(r), human.BinarySize(r.Plan.Bytes()*v.perBit()), human.OneIn(r.Rate))
	}
	for i, l := range v.ChainLayers {
		t.Row(fmt.Sprintf("layer %d", i+1), "%s of %s keys, %s, planned for a rate of %s", human.Commas(l.Added), human.Commas(l.Keys), human.BinarySize(l.Bytes), human.OneIn(l.Rate))
	}
}

func rateError(r bloom.Report) string {
	if r.RateError == 0 {
		return fmt.Sprintf(" (%.4g)", r.Rate+0) // which makes 0 of -0
	}
	return fmt.Sprintf(" (%.4g, +- %.1f%%, from a sample)", r.Rate, 100*r.RateError/r.Rate)
}

func estimate(r bloom.Report) string {
	if human.Finite(r.Keys) == nil {
		return "unknown: every bit is set"
	}
	return fmt.Sprintf("%s +- %s", human.Round(r.Keys), human.Round(r.KeysError))
}

func warning(r bloom.Report) string {
	if r.Overfull() {
		return ": over-full, the rate is above the planned one"
	}
	return ""
}
