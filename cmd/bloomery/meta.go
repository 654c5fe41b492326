package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/spf13/cobra"
)

// metaCommand is `bloomery meta`.
type metaCommand struct {
	asJSON bool
}

func newMeta() *cobra.Command {
	c := &metaCommand{}
	cmd := &cobra.Command{
		Use:   "meta F [KEY... | KEY=VALUE...]",
		Short: "Show or edit file metadata",
		Long: `Meta prints the metadata of the filter file F, either all of it or the values of
the given keys. KEY=VALUE sets a value, and KEY= removes it. The change goes through
a temporary file, so that F is never half written. Source, date and licence are
worth recording; "normalize" is set by build. Other programs' formats have no room
for metadata.`,
		Example: `  bloomery meta list.bloom
  bloomery meta list.bloom source=hashlookup date=2026-11-01
  bloomery meta list.bloom licence`,
		Args:                  someFilters("bloomery meta seen.bloom"),
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	addJSON(cmd, &c.asJSON, "print the metadata as one JSON object")
	return cmd
}

func (c *metaCommand) run(cmd *cobra.Command, args []string) error {
	get, set, err := parseNotes(args[1:])
	if err != nil {
		return err
	}
	open := (&anyfile.Options{}).Open
	if len(set) > 0 {
		open = (&anyfile.Options{}).OpenToSave
	}
	f, err := open(args[0], anyfile.ToRead)
	if err != nil {
		return err
	}
	defer f.Close()
	n, ok := f.Filter.(anyfile.Noted)
	if !ok || f.Foreign != nil {
		return fmt.Errorf("%s: a %s in the format %s has no room for metadata: our own format has", f.Path, f.Kind(), f.Format())
	}
	meta := n.Meta()
	if meta == nil {
		meta = make(map[string]string)
	}
	if len(set) == 0 {
		return c.print(cmd.OutOrStdout(), meta, get)
	}
	for key, value := range set {
		if value == "" {
			delete(meta, key)
		} else {
			meta[key] = value
		}
	}
	if err := n.SetMeta(meta); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if err := save(f); err != nil {
		return err
	}
	if c.asJSON {
		return printJSON(cmd.OutOrStdout(), meta)
	}
	return nil
}

// parseNotes separates keys to print from values to set. Other programs expect a word
// before them, "get" or "set", so it is understood.
func parseNotes(args []string) (get []string, set map[string]string, err error) {
	const example = `like "bloomery meta F source" and "bloomery meta F source=elsewhere"`
	verb := ""
	if len(args) > 1 && (args[0] == "get" || args[0] == "set") {
		verb, args = args[0], args[1:]
	}
	set = make(map[string]string)
	for _, arg := range args {
		key, value, isSet := strings.Cut(arg, "=")
		switch {
		case key == "":
			return nil, nil, usagef("meta wants KEY or KEY=VALUE, not %q: %s", arg, example)
		case !isSet:
			get = append(get, key)
		case key == anyfile.NormalizeMeta:
			return nil, nil, usagef("%s says how the keys in the filter were made, and cannot be changed later: build the filter again with --normalize", key)
		default:
			set[key] = value
		}
	}
	if len(get) > 0 && (len(set) > 0 || verb == "set") || len(set) > 0 && verb == "get" {
		return nil, nil, usagef("give either KEYs to print or KEY=VALUEs to set, %s", example)
	}
	return get, set, nil
}

// print prints all metadata, or the values of some keys. The exit status is 1 if one
// of them is missing.
func (c *metaCommand) print(w io.Writer, meta map[string]string, get []string) error {
	missing := false
	for _, key := range get {
		if _, ok := meta[key]; !ok {
			missing = true
		}
	}
	if len(get) > 0 {
		maps.DeleteFunc(meta, func(key, _ string) bool { return !slices.Contains(get, key) })
	}
	if c.asJSON {
		if err := printJSON(w, meta); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if c.asJSON {
			break
		}
		line := meta[key]
		if len(get) != 1 {
			line = key + "=" + line
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if missing {
		return exitStatus(exitNothing)
	}
	return nil
}
