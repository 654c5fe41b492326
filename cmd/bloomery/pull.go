package main

import (
	"bufio"
	"bytes"
	"context"
	little "encoding/binary"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/spf13/cobra"
)

// pullCommand is `bloomery pull`.
type pullCommand struct {
	output string
	force  bool
	asJSON bool
	remoteFlags
}

func newPull() *cobra.Command {
	c := &pullCommand{}
	cmd := &cobra.Command{
		Use:   "pull redis://[USER:PASSWORD@]HOST[:PORT]/NAME -o F",
		Short: "Take a filter from a server into a file",
		Long: `Pull writes the filter NAME of a server to the file F: a filter of RedisBloom's
kind in the format redisbloom, others of 'bloomery serve' in ours. All commands
read both; 'bloomery convert' makes others of them.

Keys that are added meanwhile may be in the file or not. All that were there when
the command began are.

The port is 6379 if none is given. A password that should not be seen in a list
of processes goes into the variable ` + passwordVariable + `. With rediss:// the way there is
TLS.`,
		Example: `  bloomery pull redis://localhost:6380/seen -o seen.bloom
  bloomery pull rediss://:secret@redis.example.com/seen -o seen.redisbloom`,
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	addOutput(cmd, &c.output, &c.force)
	c.remoteFlags.add(cmd)
	addJSON(cmd, &c.asJSON, "print what was done as one JSON object on standard output")
	return cmd
}

func (c *pullCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name the filter to take: bloomery pull redis://HOST:PORT/NAME -o FILE")
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
	if ctx == nil {
		ctx = context.Background()
	}
	header, err := from.header(ctx)
	if err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, []*source{{regular: true, bytes: header.total()}})
	written := int64(0)
	err = replaceFile(c.output, nil, func(w io.Writer) error {
		if written, err = from.download(ctx, header, w, tell.read); err != nil {
			return err
		}
		return header.verify(w)
	})
	tell.finish()
	if err != nil {
		return err
	}
	made, err := (&formatFlags{}).open(c.output, toRead)
	if err != nil {
		return err
	}
	defer made.Close()
	if c.asJSON {
		return printJSON(cmd.OutOrStdout(), moved{File: c.output, URL: from.url, Name: from.name, Kind: made.kind, Bytes: written})
	}
	tell.say("%s: %s, %s", c.output, made.kind, state(made.Report()))
	return nil
}

// dumpHeader is the first chunk of a dump.
type dumpHeader []byte

// header asks for the first chunk.
func (f *remoteFilter) header(ctx context.Context) (dumpHeader, error) {
	next, chunk, err := f.scanDump(ctx, 0)
	if err != nil {
		return nil, err
	}
	h := dumpHeader(chunk)
	if next != 1 || !h.ours() && !h.redisBloom() {
		return nil, fmt.Errorf("%s: the dump begins as none of RedisBloom's and none of ours: what wrote it is newer than this bloomery, or no RedisBloom", f.url)
	}
	return h, nil
}

func (h dumpHeader) ours() bool {
	return bytes.HasPrefix(h, []byte("bloomery")) && len(h) >= headBytesOfOurs
}

// The header of RedisBloom's dump is 20 bytes and 53 for each layer; see package
// interop.
const (
	chainHeadBytes  = 20
	chainLayerBytes = 53
)

func (h dumpHeader) redisBloom() bool {
	return len(h) >= chainHeadBytes+chainLayerBytes &&
		uint64(len(h)) == chainHeadBytes+chainLayerBytes*uint64(little.LittleEndian.Uint32(h[8:]))
}

// total is how many bytes the whole dump has, by what its header says, and -1
// where that says nothing.
func (h dumpHeader) total() int64 {
	if h.ours() {
		// Of the two pages of state the one with the higher generation is in force.
		// The length of the file lies behind the offset of its checksums.
		first, second := h[4096:], h[8192:]
		if little.LittleEndian.Uint64(second) > little.LittleEndian.Uint64(first) {
			first = second
		}
		return int64(little.LittleEndian.Uint64(first[32:]))
	}
	sum := uint64(len(h))
	for layer := h[chainHeadBytes:]; len(layer) > 0; layer = layer[chainLayerBytes:] {
		sum += little.LittleEndian.Uint64(layer)
	}
	return int64(sum)
}

// like reports whether another header is of the same filter, which may have got
// keys and layers since.
func (h dumpHeader) like(later dumpHeader) bool {
	if h.ours() || later.ours() {
		return h.ours() && later.ours() // checksums tell the rest
	}
	if len(later) < len(h) || !bytes.Equal(h[12:chainHeadBytes], later[12:chainHeadBytes]) {
		return false
	}
	for at := chainHeadBytes; at < len(h); at += chainLayerBytes {
		a, b := h[at:at+chainLayerBytes], later[at:at+chainLayerBytes]
		if !bytes.Equal(a[:16], b[:16]) || !bytes.Equal(a[24:], b[24:]) { // all but the items
			return false
		}
	}
	return true
}

// download writes the dump that begins with the header, one chunk behind the
// other.
func (f *remoteFilter) download(ctx context.Context, h dumpHeader, w io.Writer, received func(int)) (written int64, err error) {
	total := h.total()
	n, err := w.Write(h)
	written = int64(n)
	received(n)
	for next := int64(1); err == nil && written < total; {
		var chunk []byte
		if next, chunk, err = f.scanDump(ctx, next); err != nil {
			return written, err
		}
		if len(chunk) == 0 || next <= 0 {
			return written, fmt.Errorf("%s: the dump ends after %d bytes of %d: the filter was deleted or replaced meanwhile: run the command again", f.url, written, total)
		}
		if int64(len(chunk)) > total-written {
			return written, fmt.Errorf("%s: the dump goes on behind its end, at %d bytes: the filter was replaced meanwhile: run the command again", f.url, total)
		}
		n, err = w.Write(chunk)
		written += int64(n)
		received(n)
	}
	if err != nil {
		return written, err
	}
	later, err := f.header(ctx)
	if err != nil || !h.like(later) {
		return written, fmt.Errorf("%s: the filter was deleted or replaced meanwhile: run the command again", f.url)
	}
	return written, nil
}

// verify checks the file that replaceFile is writing, before it gets its name.
// RedisBloom's dumps have nothing in them to be checked by.
func (h dumpHeader) verify(w io.Writer) error {
	if !h.ours() {
		return nil
	}
	if err := w.(*bufio.Writer).Flush(); err != nil {
		return err
	}
	beside.Lock()
	path := beside.path
	beside.Unlock()
	kind, err := bloom.KindOf(path)
	if err != nil {
		return err
	}
	filter, err := loadKind(path, kind, toRead)
	if err != nil {
		return err
	}
	defer filter.Close()
	return (&filterFile{Filter: filter, path: path}).verify()
}
