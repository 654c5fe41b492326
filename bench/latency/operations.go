//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Names of the filters. The probes use the first two.
const (
	big    = "big"
	small  = "small"
	copied = "copy"
	merged = "merged"
)

// filters measures all operations on filters of one kind.
func (b *bench) filters(k kind) error {
	if err := b.make(small, "BF.RESERVE", small, "0.01", "10000000", "NONSCALING"); err != nil {
		return err
	}
	capacity, err := b.capacity(k, *gib*(1<<30))
	if err != nil {
		return err
	}
	if err := b.reserve(k, big, capacity); err != nil {
		return err
	}
	size, err := b.size(big)
	if err != nil {
		return err
	}
	b.filter = fmt.Sprintf("%s, %.2f GiB", k.text, size/(1<<30))
	// Enough keys to touch nearly every page.
	if err := b.fill(big, int(4*size/4096)); err != nil {
		return err
	}
	for _, step := range []struct {
		beside string
		do     func() error
	}{
		{"nothing", func() error { time.Sleep(*idle); return nil }},
		{"new memory, another process", func() error { return newMemory(uint64(size)) }},
		{"BGSAVE", b.backgroundSave},
		{"SAVE", b.plain("SAVE")},
		{"BF.SCANDUMP, all", func() error { return b.scanDump(big, "") }},
		{"BF.SCANDUMP and BF.LOADCHUNK, all", func() error { return b.scanDump(big, copied) }},
		{"DEL", b.plain("DEL", copied)},
		{"BF.MERGE into a new name", b.plain("BF.MERGE", merged, big)},
		{"BF.MERGE into a filter", b.plain("BF.MERGE", merged, big)},
		{"BF.MERGE of small ones during BGSAVE", b.mergeDuringSave},
		{"BF.FOLD", b.plain("BF.FOLD", merged, "2")},
		{"RENAME over", b.plain("RENAME", merged, big)},
		{"FLUSHALL", b.plain("FLUSHALL")},
	} {
		if err := b.row(step.beside, step.do); err != nil {
			return err
		}
	}
	if !k.fixed {
		if err := b.growth(k, capacity); err != nil {
			return err
		}
	}
	if k.dumps {
		return b.dumpAndRestore(k)
	}
	return nil
}

// plain returns a function that sends one command.
func (b *bench) plain(words ...string) func() error {
	return func() error {
		_, err := b.client.do(words...)
		return err
	}
}

func (b *bench) reserve(k kind, name string, capacity uint64) error {
	return b.make(name, append([]string{"BF.RESERVE", name, k.rate, strconv.FormatUint(capacity, 10)}, k.words...)...)
}

// make creates a filter. It replaces one that the probes, which add all the time, may
// have created.
func (b *bench) make(name string, words ...string) (err error) {
	for range 100 {
		b.client.do("DEL", name)
		if _, err = b.client.do(words...); err == nil || !strings.Contains(err.Error(), "item exists") {
			return err
		}
	}
	return err
}

// size returns a filter's size in bytes.
func (b *bench) size(name string) (float64, error) {
	r, err := b.client.do("BF.INFO", name, "SIZE")
	if err == nil && len(r.Items) != 1 {
		err = fmt.Errorf("BF.INFO %s SIZE: %d items", name, len(r.Items))
	}
	if err != nil {
		return 0, err
	}
	return float64(r.Items[0].Integer), nil
}

// capacity returns the capacity of a filter of the given size in bytes.
func (b *bench) capacity(k kind, bytes float64) (uint64, error) {
	const try = 1_000_000
	if err := b.reserve(k, "try", try); err != nil {
		return 0, err
	}
	size, err := b.size("try")
	b.client.do("DEL", "try")
	return uint64(try * bytes / size), err
}

// fill adds random keys.
func (b *bench) fill(name string, keys int) error {
	const each, ahead = 1000, 32
	words := make([]string, each+2)
	words[0], words[1] = "BF.MADD", name
	for keys > 0 {
		sent := 0
		for ; sent < ahead && keys > 0; sent++ {
			for i := range words[2:] {
				words[2+i] = string(binary.LittleEndian.AppendUint64(nil, b.random.Uint64()))
			}
			b.client.collect(words...)
			keys -= each
		}
		if err := b.client.flush(); err != nil {
			return err
		}
		for range sent {
			if _, err := b.client.reply(); err != nil {
				return err
			}
		}
	}
	return nil
}

// backgroundSave starts a snapshot and waits until it is written.
func (b *bench) backgroundSave() error {
	if _, err := b.client.do("BGSAVE"); err != nil {
		return err
	}
	return b.saved()
}

func (b *bench) saved() error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r, err := b.client.do("INFO", "persistence")
		if err != nil || strings.Contains(r.Text, "rdb_bgsave_in_progress:0") {
			return err
		}
	}
	return fmt.Errorf("the snapshot was not written within %v", patience)
}

// mergeDuringSave merges two filters of a few thousand keys while a snapshot is
// written.
func (b *bench) mergeDuringSave() error {
	for _, name := range []string{"one", "two"} {
		if _, err := b.client.do("BF.RESERVE", name, "0.01", "1000", "NONSCALING"); err != nil {
			return err
		}
	}
	if _, err := b.client.do("BGSAVE"); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	_, err := b.client.do("BF.MERGE", "one", "two")
	if err != nil {
		return err
	}
	return b.saved()
}

// scanDump reads a dump, and loads it under the second name if that is not empty.
func (b *bench) scanDump(name, to string) error {
	for next := int64(0); ; {
		after, chunk, err := b.client.pair("BF.SCANDUMP", name, strconv.FormatInt(next, 10))
		if err != nil || after == 0 {
			return err
		}
		next = after
		if to == "" {
			continue
		}
		if _, err := b.client.do("BF.LOADCHUNK", to, strconv.FormatInt(next, 10), chunk); err != nil {
			return err
		}
	}
}

// growth fills a filter until it appends a layer of the measured size.
func (b *bench) growth(k kind, capacity uint64) error {
	first := capacity / 16 // as EXPANSION says
	if err := b.reserve(k, big, first); err != nil {
		return err
	}
	before, err := b.size(big)
	if err != nil {
		return err
	}
	if err := b.fill(big, int(first)*99/100); err != nil {
		return err
	}
	b.filter = k.text
	err = b.row("growth by a layer", func() error {
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if size, err := b.size(big); err != nil || size > 2*before {
				b.filter = fmt.Sprintf("%s, %.2f GiB", k.text, size/(1<<30))
				return err
			}
			if err := b.fill(big, 1000); err != nil {
				return err
			}
		}
		return fmt.Errorf("the filter did not grow within %v", patience)
	})
	if err == nil {
		_, err = b.client.do("FLUSHALL")
	}
	return err
}

// dumpAndRestore measures DUMP and RESTORE, on a filter that fits into one reply.
func (b *bench) dumpAndRestore(k kind) error {
	capacity, err := b.capacity(k, *dump*(1<<20))
	if err != nil {
		return err
	}
	if err := b.reserve(k, big, capacity); err != nil {
		return err
	}
	if err := b.fill(big, 100_000); err != nil {
		return err
	}
	b.filter = fmt.Sprintf("%s, %.0f MiB", k.text, *dump)
	var payload string
	if err := b.row("DUMP", func() error {
		r, err := b.client.do("DUMP", big)
		payload = r.Text
		return err
	}); err != nil {
		return err
	}
	return b.row("RESTORE", b.plain("RESTORE", copied, "0", payload, "REPLACE"))
}

// manyNames lists and clears very many names.
func (b *bench) manyNames() error {
	b.filter = fmt.Sprintf("%d names", *names)
	const each = 1000
	words := []string{"MSET"}
	for made := 0; made < *names; made += each {
		words = words[:1]
		for i := range each {
			words = append(words, fmt.Sprint("name", made+i), "x")
		}
		if _, err := b.client.do(words...); err != nil {
			return err
		}
	}
	if err := b.row("nothing", func() error { time.Sleep(*idle); return nil }); err != nil {
		return err
	}
	for _, words := range [][]string{{"KEYS", "*"}, {"RANDOMKEY"}, {"SCAN", "0", "COUNT", "1000000"}, {"DBSIZE"}, {"FLUSHALL"}} {
		if err := b.row(strings.Join(words, " "), b.plain(words...)); err != nil {
			return err
		}
	}
	return nil
}
