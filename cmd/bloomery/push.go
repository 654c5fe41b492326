package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/interop"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
)

// pushCommand is `bloomery push`.
type pushCommand struct {
	force  bool
	asJSON bool
	remoteFlags
	formatFlags
}

func newPush() *cobra.Command {
	c := &pushCommand{}
	cmd := &cobra.Command{
		Use:   "push F redis://[USER:PASSWORD@]HOST[:PORT]/NAME",
		Short: "Put a filter file on a server",
		Long: `Push puts the filter in the file F on a server, under NAME. Filters of
RedisBloom's kind go to any server with RedisBloom; a filter, a scalable and a
window of ours to 'bloomery serve'.

The filter comes up under another name first, and gets its own in one step when
it is whole: nobody ever asks half of it. If there is something of that name the
command is refused, unless told --force; then it is replaced, and has no expiry.

The port is 6379 if none is given. A password that should not be seen in a list
of processes goes into the variable ` + passwordVariable + `. With rediss:// the way there is
TLS.`,
		Example: `  bloomery push seen.bloom redis://localhost:6380/seen
  bloomery push --force seen.redisbloom rediss://:secret@redis.example.com/seen`,
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().BoolVar(&c.force, "force", false, "replace the filter if there is one of that name")
	c.remoteFlags.add(cmd)
	addFormat(cmd, &c.formatFlags)
	cmd.Flags().MarkHidden("funnel") // no key is read
	addJSON(cmd, &c.asJSON, "print what was done as one JSON object on standard output")
	return cmd
}

// moved is what push and pull report.
type moved struct {
	File  string `json:"file"`
	URL   string `json:"url"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
}

func (c *pushCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) != 2 || isRemote(args[0]) {
		return usagef("name a filter file and where to put it: bloomery push seen.bloom redis://HOST:PORT/NAME")
	}
	from, err := c.open(args[0], toRead)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := from.verify(); err != nil {
		return err
	}
	dump, err := dumpOf(from)
	if err != nil {
		return err
	}
	to, err := c.connect(args[1])
	if err != nil {
		return err
	}
	defer to.Close()
	ctx, stop := untilInterrupted(cmd)
	defer stop()
	if err := to.mayTake(ctx, c.force); err != nil {
		return err
	}
	tell := newTeller(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, []*source{{regular: true, bytes: dump.bytes}})
	err = to.upload(ctx, dump, c.force, tell.read)
	tell.finish()
	if ctx.Err() != nil {
		return exitStatus(exitInterrupted)
	}
	if err != nil {
		return err
	}
	done := moved{File: args[0], URL: to.url, Name: to.name, Kind: dump.kind, Bytes: dump.bytes}
	if c.asJSON {
		return printJSON(cmd.OutOrStdout(), done)
	}
	tell.say("%s: %s, %s", to.url, dump.kind, state(from.Report()))
	return nil
}

// A dump is a filter in the chunks that BF.LOADCHUNK takes.
type dump struct {
	kind   string
	bytes  int64 // of all chunks, if they are known
	chunks iter.Seq2[chunk, error]
}

// chunk is a part of a dump and the iterator that it is loaded with.
type chunk struct {
	iterator int64
	data     []byte
}

// largestChunk is what RedisBloom's own dumps are cut into.
const largestChunk = 16 << 20

// dumpOf is the dump of a filter that servers have.
func dumpOf(f *filterFile) (*dump, error) {
	if chain, ok, err := chainIn(f); ok || err != nil {
		return dumpOfChain(chain), err
	}
	switch f.Filter.(type) {
	case *bloom.Filter, *bloom.Scalable, *bloom.Window:
		return dumpOfOurs(f), nil
	}
	const servers = "servers have filters of RedisBloom's kind, and of ours a filter, a scalable and a window"
	if _, ok := f.Filter.(countingFilter); ok {
		return nil, fmt.Errorf("%s: is a counting filter, and %s: make a filter of it with 'bloomery convert --to bloomery'", f.path, servers)
	}
	return nil, fmt.Errorf("%s: is a %s, and %s: build one from its keys", f.path, f.kind, servers)
}

// chainIn is the filter as RedisBloom has it, if its bits are of that kind.
func chainIn(f *filterFile) (chain *interop.Chain, ok bool, err error) {
	switch filter := f.Filter.(type) {
	case *chainFilter:
		return filter.Chain, true, nil
	case *bloom.Classic:
		if filter.Scheme() == bloom.SchemeRedisBloom {
			chain, err = interop.ChainOf(filter)
			return chain, true, err
		}
	}
	return nil, false, nil
}

func dumpOfChain(chain *interop.Chain) *dump {
	if chain == nil {
		return nil
	}
	d := &dump{kind: "redisbloom", bytes: int64(len(chain.Header()))}
	for _, l := range chain.Layers() {
		d.bytes += int64(l.Bytes)
	}
	d.chunks = func(yield func(chunk, error) bool) {
		for next, data := chain.ScanDump(0); next != 0 && yield(chunk{next, data}, nil); {
			next, data = chain.ScanDump(next)
		}
	}
	return d
}

// headBytesOfOurs are the pages before the body of a file of ours. They are the
// first chunk of its dump; the iterators of the others count from there.
const headBytesOfOurs = 3 * 4096

// dumpOfOurs cuts the file that the filter would be saved as.
func dumpOfOurs(f *filterFile) *dump {
	return &dump{kind: f.kind, bytes: f.info.Size(), chunks: func(yield func(chunk, error) bool) {
		r, w := io.Pipe()
		defer r.Close() // ends the writer if the chunks are not all wanted
		go func() { w.CloseWithError(f.writeTo(w)) }()
		size, sent := headBytesOfOurs, int64(1)
		for {
			data := make([]byte, size)
			n, err := io.ReadFull(r, data)
			if n == 0 && err == io.EOF {
				return
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				yield(chunk{}, fmt.Errorf("%s: %w", f.path, err))
				return
			}
			if size == largestChunk {
				sent += int64(n)
			}
			if !yield(chunk{sent, data[:n]}, nil) {
				return
			}
			size = largestChunk
		}
	}}
}

// mayTake refuses a name that has a filter already, unless it is to be replaced,
// and one that has something else.
func (f *remoteFilter) mayTake(ctx context.Context, force bool) error {
	kind, err := f.do(ctx, "TYPE", f.name).ToString()
	switch {
	case err != nil:
		return f.explain(err)
	case kind == "none":
		return nil
	case !force:
		return f.taken()
	}
	if err := f.do(ctx, "BF.INFO", f.name).Error(); err != nil {
		return f.explain(err) // a string, say, which is not for push to replace
	}
	return nil
}

func (f *remoteFilter) taken() error {
	return fmt.Errorf("%s: there is something of that name already: give another name, or --force to replace it", f.url)
}

// halfLife is how long a part of a filter stays on a server that has heard no
// more of it: it is renewed with each chunk.
const halfLife = time.Hour

// upload loads the dump under a name beside the filter's, and renames it.
func (f *remoteFilter) upload(ctx context.Context, d *dump, force bool, sent func(int)) (err error) {
	name := f.beside()
	defer func() {
		if err != nil { // also when ctx has ended
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
			defer cancel()
			f.do(cleanup, "DEL", name)
		}
	}()
	seconds := strconv.Itoa(int(halfLife.Seconds()))
	for part, err := range d.chunks {
		if err != nil {
			return err
		}
		for _, reply := range f.client.DoMulti(ctx,
			f.command("BF.LOADCHUNK", name, strconv.FormatInt(part.iterator, 10), rueidis.BinaryString(part.data)),
			f.command("EXPIRE", name, seconds)) {
			if err := reply.Error(); err != nil {
				return f.explainLoad(err, d)
			}
		}
		sent(len(part.data))
	}
	if err := f.do(ctx, "PERSIST", name).Error(); err != nil {
		return f.explain(err)
	}
	if force {
		return f.explain(f.do(ctx, "RENAME", name, f.name).Error())
	}
	took, err := f.do(ctx, "RENAMENX", name, f.name).AsInt64()
	if err != nil {
		return f.explain(err)
	}
	if took == 0 {
		return f.taken()
	}
	return nil
}

// explainLoad is explain for a chunk that was refused.
func (f *remoteFilter) explainLoad(err error, d *dump) error {
	if answer, ok := rueidis.IsRedisErr(err); ok && d.kind != "redisbloom" && answer.Error() == "received bad data" {
		return fmt.Errorf("%s: %w: RedisBloom has no %s filters: push it to 'bloomery serve', or build one with --format redisbloom", f.url, err, d.kind)
	}
	return f.explain(err)
}
