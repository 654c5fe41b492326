package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

// Checked is what Check has seen.
type Checked struct {
	Filters  int
	Chunks   uint64 // that are there and whole
	Bytes    uint64 // of them
	Problems map[Problem]int
}

// All is the number of all problems.
func (c *Checked) All() (n int) {
	for _, of := range c.Problems {
		n += of
	}
	return n
}

// Problem is a kind of problem that Check finds.
type Problem string

const (
	ChunkGone    Problem = "gone"     // a chunk is not there
	ChunkLength  Problem = "length"   // it has not the length that it should have
	ChunkHead    Problem = "head"     // it has another head than its own
	ChunkCleared Problem = "cleared"  // it has fewer bits set than before: adds were lost
	Metadata     Problem = "metadata" // a filter's metadata are gone, or cannot be read
	Loading      Problem = "loading"  // a part of the filter has not been loaded
	Orphan       Problem = "orphan"   // keys that belong to no name
)

// Problems are all kinds.
var Problems = []Problem{ChunkGone, ChunkLength, ChunkHead, ChunkCleared, Metadata, Loading, Orphan}

// Check looks at every chunk of every filter, and calls problem with what is wrong. Bits
// set are compared with those that Check last saw; an [Orphan] was left by a process that
// was killed while it made or dropped a filter. It changes nothing but its own notes, and
// may run while the filters are used. An Orphan may then be a filter that is just being
// made.
func (s *Store) Check(ctx context.Context, problem func(text string)) (c Checked, err error) {
	c.Problems = map[Problem]int{}
	tell := func(kind Problem, format string, args ...any) {
		c.Problems[kind]++
		problem(fmt.Sprintf(format, args...))
	}
	known := map[epoch]bool{}
	for cursor := uint64(0); ; {
		names, next, err := s.List(cursor, 1000)
		if err != nil {
			return c, err
		}
		for _, name := range names {
			f, err := s.find(ctx, name)
			if errors.Is(err, store.ErrNotFound) { // dropped just now
				continue
			}
			c.Filters++
			if err != nil {
				tell(Metadata, "%q: %v", name, err)
				continue
			}
			known[f.epoch] = true
			if f.loading != nil {
				tell(Loading, "%q: %v", name, f.errLoading())
				continue
			}
			if err := f.check(ctx, &c, tell); err != nil {
				return c, err
			}
		}
		if cursor = next; next == 0 {
			break
		}
	}
	return c, s.checkOrphans(ctx, known, tell)
}

// noteOf is the key of what Check notes of a filter: how many bits of each chunk were set.
func (k keys) noteOf(e epoch) string { return k.prefix + "checked:" + e.String() }

// check looks at the chunks of a filter.
func (f *filter) check(ctx context.Context, c *Checked, tell func(Problem, string, ...any)) error {
	s, b := f.store, f.store.client.B
	note := s.keys.noteOf(f.epoch)
	before, err := s.ask(ctx, b().Hgetall().Key(note).Build()).AsStrMap()
	if err != nil {
		return explain(err)
	}
	n := f.shape.chunks()
	for from := uint64(0); from < n; from += pipelined {
		to := min(from+pipelined, n)
		var commands []rueidis.Completed
		for i := from; i < to; i++ {
			key := s.keys.chunk(f.epoch, i)
			commands = append(commands,
				b().Strlen().Key(key).Build(),
				b().Getrange().Key(key).Start(0).End(idBytes-1).Build(),
				b().Bitcount().Key(key).Build())
		}
		_, replies := s.do(ctx, nil, commands...)
		notes := []string{}
		for i := from; i < to; i++ {
			at := 3 * (i - from)
			length, err := replies[at].AsInt64()
			head, err2 := replies[at+1].ToString()
			set, err3 := replies[at+2].AsInt64()
			for _, err := range []error{err, err2, err3} {
				if err != nil {
					return explain(err)
				}
			}
			field := strconv.FormatUint(i, 10)
			had, _ := strconv.ParseInt(before[field], 10, 64)
			switch {
			case length == 0:
				tell(ChunkGone, "%q: chunk %d is gone", f.name(), i)
			case uint64(length) != f.shape.bytesOf(i):
				tell(ChunkLength, "%q: chunk %d has %d bytes, not %d", f.name(), i, length, f.shape.bytesOf(i))
			case head != string(f.shape.id(f.epoch, i)):
				tell(ChunkHead, "%q: chunk %d has the head of another", f.name(), i)
			case set < had:
				tell(ChunkCleared, "%q: chunk %d has %d bits set, not the %d bits of before: adds were lost", f.name(), i, set, had)
			default:
				c.Chunks++
				c.Bytes += uint64(length)
			}
			notes = append(notes, field, strconv.FormatInt(max(set, had), 10))
		}
		if err := s.ask(ctx, b().Arbitrary("HSET").Keys(note).Args(notes...).Build()).Error(); err != nil {
			return explain(err)
		}
	}
	return nil
}

// checkOrphans looks for what belongs to no name.
func (s *Store) checkOrphans(ctx context.Context, known map[epoch]bool, tell func(Problem, string, ...any)) error {
	orphans := map[string]int{} // keys, by epoch
	nodes := s.client.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[address]
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if err != nil {
			return fmt.Errorf("%s: %w", address, explain(err))
		}
		if name, _ := role[0].ToString(); name != "master" {
			continue
		}
		for cursor := uint64(0); ; {
			entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(globbed(s.keys.prefix)+"*").Count(1000).Build()).AsScanEntry()
			if err != nil {
				return fmt.Errorf("%s: %w", address, explain(err))
			}
			for _, key := range entry.Elements {
				if e, ok := s.keys.epochOf(key); ok && !known[e] {
					orphans[e.String()]++
				}
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	for _, e := range slices.Sorted(maps.Keys(orphans)) {
		tell(Orphan, "%d keys of the epoch %s, which no name stands for: a filter that was being made or dropped by a process that was killed; delete them if none is at it now", orphans[e], e)
	}
	return nil
}

// epochOf returns the epoch in the name of a chunk or of metadata.
func (k keys) epochOf(key string) (epoch, bool) {
	rest, ok := strings.CutPrefix(key, k.prefix+"b:")
	if ok {
		rest, _, _ = strings.Cut(rest, ":")
	} else if rest, ok = strings.CutPrefix(key, k.names+":"); !ok {
		return 0, false
	}
	e, err := parseEpoch(rest)
	return e, err == nil
}

// globbed escapes what has a meaning in a pattern.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
