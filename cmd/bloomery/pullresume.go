package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/internal/replace"
	"github.com/bloomery/bloom/store"
)

// A download that can be continued: the file is written under the name F.part, which
// stays if the download fails. The checksum of each span is written to its place at the
// file's end as soon as the span is there, so what is there with its checksum is whole.

// downloadOn downloads the file at path, as far as F.part does not have it, and renames it.
func (f *remoteFilter) downloadOn(ctx context.Context, h dumpHeader, path string, received func(int)) (written int64, err error) {
	if !store.IsDumpHeader(h) {
		return 0, usagef("--resume is for our own kinds: a dump of RedisBloom's has no checksums")
	}
	exitWhenInterrupted()
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return 0, lines.FileError(part, err)
	}
	defer file.Close()
	for _, locked := range []string{part, path} {
		unlock, err := anyfile.Lock(locked)
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	if err := f.complete(ctx, h, file, received); err != nil {
		return 0, fmt.Errorf("%w (what was downloaded is in %s: run the command again to continue)", err, part)
	}
	if err := verifyFile(part); err != nil {
		os.Remove(part)
		return 0, err
	}
	if err = os.Rename(part, path); err == nil {
		err = replace.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return 0, lines.FileError(path, err)
	}
	return h.fileBytes(), nil
}

// complete writes what a file lacks. The first chunk is always downloaded: it says
// whether the filter still has the shape of the file.
func (f *remoteFilter) complete(ctx context.Context, h dumpHeader, file *os.File, received func(int)) error {
	_, chunk, err := f.scanDump(ctx, 1)
	if err != nil {
		return err
	}
	if len(chunk) < filterfile.BodyOffset || int64(len(chunk)) > h.fileBytes() {
		return f.changed()
	}
	head, err := filterfile.DecodeHead(chunk[:filterfile.BodyOffset])
	if err != nil {
		return fmt.Errorf("%s: %w", f.url, err)
	}
	have, err := begun(file, head)
	if err != nil {
		return err
	}
	at, end, resumed := int64(0), int64(head.Checksums), false
	for {
		if err := writeChunk(file, head, chunk, at); err != nil {
			return err
		}
		at += int64(len(chunk))
		received(len(chunk))
		if at < have {
			received(int(have - at))
			at, resumed = have, true
		}
		if at == h.fileBytes() || resumed && at == end {
			break
		}
		if _, chunk, err = f.scanDump(ctx, 1+at); err != nil {
			return err
		}
		if len(chunk) == 0 || int64(len(chunk)) > h.fileBytes()-at {
			return f.changed()
		}
	}
	if resumed { // the server has checksums of what it has just sent, but not of the rest
		sums := make([]byte, h.fileBytes()-4-end)
		if _, err := file.ReadAt(sums, end); err != nil {
			return err
		}
		if _, err := file.WriteAt(filterfile.Seal(sums), end); err != nil {
			return err
		}
		received(len(sums) + 4)
	}
	if err := file.Truncate(h.fileBytes()); err != nil {
		return err
	}
	return file.Sync()
}

// writeChunk writes a part of the file, and the checksums of its spans.
func writeChunk(file *os.File, head *filterfile.File, chunk []byte, at int64) error {
	if _, err := file.WriteAt(chunk, at); err != nil {
		return err
	}
	body := chunk[:min(int64(len(chunk)), max(int64(head.Checksums)-at, 0))]
	if at == 0 {
		at, body = filterfile.BodyOffset, body[filterfile.BodyOffset:]
	}
	_, err := file.WriteAt(filterfile.Sums(body), sumAt(head, at))
	return err
}

// sumAt is where the checksum of the span that begins at a byte is.
func sumAt(head *filterfile.File, at int64) int64 {
	return int64(head.Checksums) + (at-filterfile.BodyOffset)/filterfile.SpanBytes*4
}

// begun returns how much of a file of the same shape is there, and whole.
func begun(file *os.File, head *filterfile.File) (have int64, err error) {
	first := make([]byte, filterfile.BodyOffset)
	if _, err := file.ReadAt(first, 0); errors.Is(err, io.EOF) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	old, err := filterfile.DecodeHead(first)
	if err != nil || old.Kind != head.Kind || old.Scheme != head.Scheme || old.Hash != head.Hash || old.Parameters != head.Parameters ||
		old.FileBytes != head.FileBytes || old.Keys != head.Keys || old.Rate != head.Rate ||
		!slices.EqualFunc(old.Sections, head.Sections, func(a, b filterfile.Section) bool {
			a.Added = b.Added
			return a == b
		}) {
		return 0, nil // another filter's, or of other layers
	}
	span, sum := make([]byte, filterfile.SpanBytes), make([]byte, 4)
	for at := int64(filterfile.BodyOffset); at < int64(head.Checksums); at += int64(len(span)) {
		span = span[:min(int64(len(span)), int64(head.Checksums)-at)]
		_, err := file.ReadAt(span, at)
		if err == nil {
			_, err = file.ReadAt(sum, sumAt(head, at))
		}
		if errors.Is(err, io.EOF) || err == nil && !bytes.Equal(sum, filterfile.Sums(span)) {
			return at, nil
		} else if err != nil {
			return 0, err
		}
	}
	return int64(head.Checksums), nil
}
