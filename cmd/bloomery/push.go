package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
)

// pushCommand is `bloomery push`.
type pushCommand struct {
	force  bool
	resume bool
	asJSON bool
	remoteFlags
	anyfile.Options
}

func newPush() *cobra.Command {
	c := &pushCommand{}
	cmd := &cobra.Command{
		Use:   "push F redis://[USER:PASSWORD@]HOST[:PORT]/NAME",
		Short: "Upload a filter file to a server",
		Long: `Push uploads the filter in the file F to a server, under NAME. RedisBloom's
filters go to any server with RedisBloom, cuckoo filters too; our kinds filter,
scalable, window and counting go to 'bloomery serve'.

The filter is uploaded under a temporary name and renamed when it is complete, so
that no client ever sees half of it. If NAME exists the command fails, unless
--force is given: then NAME is replaced, and no longer expires.

With --resume, what was uploaded stays on the server if the command fails or is
interrupted, and the same command continues from there: within an hour, or at any
time if the server keeps its filters elsewhere (serve --store).

The port is 6379 if none is given. Filters are in database 0, the only one that
'bloomery serve' has. A password in the environment variable ` + passwordVariable + ` does
not show in the list of processes. rediss:// uses TLS, and unix:///PATH/NAME a Unix
socket.`,
		Example: `  bloomery push seen.bloom redis://localhost:6380/seen
  bloomery push --force seen.redisbloom rediss://:secret@redis.example.com/seen`,
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().BoolVar(&c.force, "force", false, "replace NAME if it exists")
	cmd.Flags().BoolVar(&c.resume, "resume", false, "continue an upload that was interrupted, and let this one be continued")
	c.remoteFlags.add(cmd)
	addFormat(cmd, &c.Options)
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
		return usagef("name a filter file and its place on a server: bloomery push seen.bloom redis://HOST:PORT/NAME")
	}
	from, err := c.Open(args[0], anyfile.ToRead)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := c.RefuseIdle(from); err != nil {
		return err
	}
	if err := from.Verify(); err != nil {
		return err
	}
	dump, err := dumpOf(from)
	if err != nil {
		return err
	}
	defer dump.close()
	to, err := c.connect(args[1])
	if err != nil {
		return err
	}
	defer to.Close()
	to.cuckoo = dump.cuckoo
	ctx, stop := untilInterrupted(cmd)
	defer stop()
	if err := to.mayTake(ctx, c.force); err != nil {
		return err
	}
	if c.resume {
		if err := to.resume(ctx, dump); err != nil {
			return err
		}
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, []*lines.Source{{Regular: true, Bytes: dump.bytes}})
	err = to.upload(ctx, dump, c.force, c.resume, tell.Read)
	tell.Finish()
	if err != nil && c.resume {
		tell.Say("%s: what was uploaded stays there: run the command again to continue", to.url)
	}
	if err != nil && ctx.Err() != nil {
		return exitStatus(exitInterrupted)
	}
	if err != nil {
		return err
	}
	done := moved{File: args[0], URL: to.url, Name: to.name, Kind: dump.kind, Bytes: dump.bytes}
	if c.asJSON {
		return printJSON(cmd.OutOrStdout(), done)
	}
	tell.Say("%s: %s, %s", to.url, dump.kind, human.Fullness(from.Condition()))
	return nil
}

// mayTake refuses a name that already holds a filter, unless it is to be replaced,
// and one that holds anything else.
func (f *remoteFilter) mayTake(ctx context.Context, force bool) error {
	kind, err := f.typeOf(ctx)
	switch {
	case err != nil:
		return err
	case kind == "none":
		return nil
	case !force:
		return f.taken()
	}
	if kind == cuckooType {
		return nil
	}
	if err := f.do(ctx, "BF.INFO", f.name).Error(); err != nil {
		return f.explain(err) // such as a string, which push must not replace
	}
	return nil
}

func (f *remoteFilter) taken() error {
	return fmt.Errorf("%s: already exists: choose another name, or use --force to replace it", f.url)
}

// halfLife is how long an incomplete filter stays on a server after its last chunk:
// each chunk renews it.
const halfLife = time.Hour

// resume finds out how much of a dump an earlier push has loaded.
func (f *remoteFilter) resume(ctx context.Context, d *dump) error {
	if d.identity == "" {
		return usagef("--resume is for our own kinds: of RedisBloom's, a server does not say how much was loaded")
	}
	reply, err := f.do(ctx, "BF.INFO", f.beside(d.identity), "LOADED").AsMap()
	answer, _ := rueidis.IsRedisErr(err)
	switch {
	case answer != nil && strings.HasSuffix(answer.Error(), "not found"):
		return nil
	case err != nil:
		return f.explain(err)
	}
	d.begun, d.loaded = true, d.bytes
	if loaded := reply["Loaded"]; !loaded.IsNil() { // otherwise all of it was loaded
		d.loaded, err = loaded.AsInt64()
	}
	return f.explain(err)
}

// upload loads the dump under a temporary name, and renames it. A dump that can be
// resumed stays there if that fails.
func (f *remoteFilter) upload(ctx context.Context, d *dump, force, resume bool, sent func(int)) (err error) {
	name := f.beside("")
	if resume {
		name = f.beside(d.identity)
	}
	defer func() {
		if err != nil && !resume { // also when ctx has ended
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
		if d.begun && part.iterator-1 <= d.loaded {
			sent(len(part.data))
			continue
		}
		var replies []rueidis.RedisResult
		for failing := (time.Time{}); ; time.Sleep(retryTime) {
			replies = f.client.DoMulti(ctx,
				f.command(f.family()+".LOADCHUNK", name, strconv.FormatInt(part.iterator, 10), rueidis.BinaryString(part.data)),
				f.command("EXPIRE", name, seconds))
			err := replies[0].Error()
			if err == nil {
				break
			}
			if failing.IsZero() {
				failing = time.Now()
			}
			if !mayPass(err) || part.iterator == 1 || time.Since(failing) > patientTime || ctx.Err() != nil {
				return f.explainLoad(err, d)
			}
		}
		// With --store, names do not expire.
		if err := replies[1].Error(); err != nil && !strings.Contains(err.Error(), "unsupported operation") {
			return f.explain(err)
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

// A server that is replaced while a filter is pushed may keep what has come, as one with
// --store does: it is in other servers. The next chunk then succeeds after a while.
const (
	patientTime = 30 * time.Second
	retryTime   = 300 * time.Millisecond
)

// mayPass reports whether an error is that of a server that does not answer now.
func mayPass(err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	return !ok || strings.Contains(answer.Error(), "no answer")
}

// explainLoad is explain for a chunk that was refused.
func (f *remoteFilter) explainLoad(err error, d *dump) error {
	if answer, ok := rueidis.IsRedisErr(err); ok && d.kind != "redisbloom" && answer.Error() == "received bad data" {
		return fmt.Errorf("%s: %w: RedisBloom takes only its own filters, and this is our kind %s: push it to 'bloomery serve', or build one with --format redisbloom", f.url, err, d.kind)
	}
	return f.explain(err)
}
