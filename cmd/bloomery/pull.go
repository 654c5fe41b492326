package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
	"github.com/spf13/cobra"
)

// pullCommand is `bloomery pull`.
type pullCommand struct {
	output string
	force  bool
	resume bool
	asJSON bool
	remoteFlags
}

func newPull() *cobra.Command {
	c := &pullCommand{}
	cmd := &cobra.Command{
		Use:   "pull redis://[USER:PASSWORD@]HOST[:PORT]/NAME -o F",
		Short: "Download a filter from a server",
		Long: `Pull writes the filter NAME of a server to the file F: RedisBloom's filters in the
format redisbloom or redisbloom-cuckoo, those of other kinds from 'bloomery serve'
in our own. All commands read them; 'bloomery convert' converts them.

The file has all keys that were in the filter when the command began. Keys added in
the meantime may or may not be in it, nor keys removed in the meantime. A cuckoo
filter must not change while it is downloaded: it moves keys.

With --resume, the file is F.part until it is complete. If the command fails or is
interrupted, the same command continues from there, and the file has all keys that
were in the filter when the first of them began.

The port is 6379 if none is given. Filters are in database 0, the only one that
'bloomery serve' has. A password in the environment variable ` + passwordVariable + ` does
not show in the list of processes. rediss:// uses TLS, and unix:///PATH/NAME a Unix
socket.`,
		Example: `  bloomery pull redis://localhost:6380/seen -o seen.bloom
  bloomery pull rediss://:secret@redis.example.com/seen -o seen.redisbloom`,
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	addOutput(cmd, &c.output, &c.force)
	cmd.Flags().BoolVar(&c.resume, "resume", false, "continue a download that was interrupted, and let this one be continued")
	c.remoteFlags.add(cmd)
	addJSON(cmd, &c.asJSON, "print what was done as one JSON object on standard output")
	return cmd
}

func (c *pullCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name the filter to download: bloomery pull redis://HOST:PORT/NAME -o FILE")
	}
	if err := mayWrite(c.output, c.force); err != nil {
		return err
	}
	from, err := c.connect(args[0])
	if err != nil {
		return err
	}
	defer from.Close()
	ctx := cmd.Context()
	kind, err := from.typeOf(ctx)
	if err != nil {
		return err
	}
	from.cuckoo = kind == cuckooType
	header, err := from.header(ctx)
	if err != nil {
		return err
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, []*lines.Source{{Regular: true, Bytes: header.fileBytes()}})
	written := int64(0)
	if c.resume {
		written, err = from.downloadOn(ctx, header, c.output, tell.Read)
	} else {
		err = replaceFile(c.output, nil, func(w io.Writer) error {
			if written, err = from.download(ctx, header, w, tell.Read); err != nil {
				return err
			}
			return header.verify(w)
		})
	}
	tell.Finish()
	if err != nil {
		return err
	}
	made, err := (&anyfile.Options{}).Open(c.output, anyfile.ToRead)
	if err != nil {
		return err
	}
	defer made.Close()
	if c.asJSON {
		return printJSON(cmd.OutOrStdout(), moved{File: c.output, URL: from.url, Name: from.name, Kind: made.Kind(), Bytes: written})
	}
	tell.Say("%s: %s, %s", c.output, made.Kind(), human.Fullness(made.Condition()))
	if made.NeedsSecret() {
		tell.Say("%s: is hashed with the server's secret: to look keys up, give --secret the file 'secrets' of its data directory", c.output)
	}
	return nil
}

// header requests the first chunk.
func (f *remoteFilter) header(ctx context.Context) (dumpHeader, error) {
	next, chunk, err := f.scanDump(ctx, 0)
	if f.cuckoo && err == nil && next == 0 && chunk == nil {
		next, chunk, err = f.emptyCuckoo(ctx)
	}
	if err != nil {
		return nil, err
	}
	h := dumpHeader(chunk)
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("%s: the dump is neither RedisBloom's nor ours: the server is newer than this bloomery, or does not run RedisBloom: %w", f.url, err)
	}
	if next != 1 {
		return nil, fmt.Errorf("%s: the dump continues at %d instead of 1: does the server run RedisBloom?", f.url, next)
	}
	return h, nil
}

// emptyCuckoo is the answer of CF.SCANDUMP for a filter without keys, for which servers have
// none.
func (f *remoteFilter) emptyCuckoo(ctx context.Context) (next int64, header []byte, err error) {
	info, err := f.do(ctx, "CF.INFO", f.name).AsIntMap()
	if err != nil {
		return 0, nil, f.explain(err)
	}
	growth := int(info["Expansion rate"])
	header, err = redisbloom.CuckooHeader(bloom.CuckooConfig{
		Keys: uint64(info["Number of buckets"] * info["Bucket size"]), BucketSize: int(info["Bucket size"]),
		Iterations: int(info["Max iterations"]), Growth: growth, NonScaling: growth == 0,
	})
	if err != nil {
		return 0, nil, fmt.Errorf("%s: the answer to CF.INFO makes no sense: %w", f.url, err)
	}
	return 1, header, nil
}

// download writes the file that follows the header, one chunk after the other.
func (f *remoteFilter) download(ctx context.Context, h dumpHeader, w io.Writer, received func(int)) (written int64, err error) {
	total, next := h.fileBytes(), int64(1)
	put := func(b []byte) error {
		n, err := w.Write(b)
		written += int64(n)
		received(n)
		return err
	}
	if h.redisBloom() { // whose header is in the file
		err = put(h)
	}
	for err == nil && written < total {
		var chunk []byte
		if next, chunk, err = f.scanDump(ctx, next); err != nil {
			return written, err
		}
		if len(chunk) == 0 && h.cuckoo() && binary.LittleEndian.Uint64(h) == 0 { // it has no keys
			chunk, next = make([]byte, min(total-written, largestChunk)), 1
		}
		if len(chunk) == 0 || next <= 0 || int64(len(chunk)) > total-written {
			return written, f.changed()
		}
		err = put(chunk)
	}
	if err != nil {
		return written, err
	}
	if store.IsDumpHeader(h) { // of one moment, and with checksums; this request tells the server that we have it
		_, _, err = f.scanDump(ctx, next)
		return written, err
	}
	later, err := f.header(ctx)
	switch {
	case err == nil && h.cuckoo() && !h.grewTo(later):
		err = fmt.Errorf("%s: the filter was changed meanwhile, so the file may lack keys that were there all the time: run the command again when nobody adds or removes keys", f.url)
	case err == nil && !h.grewTo(later):
		err = f.changed()
	}
	return written, err
}

func (f *remoteFilter) changed() error {
	return fmt.Errorf("%s: the filter was deleted or replaced meanwhile: run the command again", f.url)
}

// verify checks the file that replaceFile is writing, before it is renamed.
// RedisBloom's dumps hold no checksums.
func (h dumpHeader) verify(w io.Writer) error {
	if !store.IsDumpHeader(h) {
		return nil
	}
	if err := w.(*bufio.Writer).Flush(); err != nil {
		return err
	}
	beside.Lock()
	path := beside.path
	beside.Unlock()
	return verifyFile(path)
}

func verifyFile(path string) error {
	filter, err := anyfile.Open(path)
	if err != nil {
		return err
	}
	defer filter.Close()
	return (&anyfile.File{Filter: filter, Path: path}).Verify()
}
