package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

// The dump of a filter is that of a local store: a header, and the filter's file in
// chunks. So push and pull work, and files go from one to the other unchanged.
const mostDumped = 16 << 20 // bytes of a chunk of a dump

// outgoing is a dump that is being read.
type outgoing struct {
	sync.Mutex
	image *filterfile.Image
}

// Dump returns a chunk of the filter.
func (f *filter) Dump(iterator int64) (next int64, chunk []byte, err error) {
	ctx := f.store.ctx
	f.dump.Lock()
	defer f.dump.Unlock()
	if iterator == 0 {
		header, err := f.beginDump(ctx)
		return 1, header, err
	}
	if err := f.count(ctx); err != nil {
		return 0, nil, err
	}
	if f.dump.image == nil || iterator < 0 {
		return 0, nil, fmt.Errorf("%w: no dump is under way at %d: begin with 0", store.ErrChunk, iterator)
	}
	chunk, err = f.dump.image.Piece(uint64(iterator-1), mostDumped)
	switch {
	case errors.Is(err, bloom.ErrFormat):
		return 0, nil, fmt.Errorf("%w: %w", store.ErrChunk, err)
	case err != nil:
		return 0, nil, err
	case len(chunk) == 0:
		f.dump.image = nil
		return 0, chunk, nil
	}
	return iterator + int64(len(chunk)), chunk, nil
}

func (f *filter) beginDump(ctx context.Context) ([]byte, error) {
	if err := errors.Join(f.mayUse(), f.count(ctx)); err != nil {
		return nil, err
	}
	head, err := f.store.ask(ctx, f.store.client.B().Hget().Key(f.store.keys.meta(f.epoch)).Field("head").Build()).AsBytes()
	if err != nil {
		return nil, explain(err)
	}
	file, err := filterfile.DecodeHead(head)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	file.Added, file.Clean = f.items(), true
	image, err := file.ImageFrom(func(b []byte, at uint64) error { return f.readBody(ctx, b, at) })
	if err != nil {
		return nil, err
	}
	f.dump.image = image
	return f.dumpHeader(image.Size()).Encode(), nil
}

func (f *filter) dumpHeader(size uint64) store.DumpHeader {
	return store.DumpHeader{
		Spec:  f.spec(),
		Key:   f.HashIdentity().Key,
		Items: f.items(),
		Bytes: size,
	}
}

// parts calls do with each part of a file's body that lies in one chunk: bytes from at
// on, which are at an offset in the chunk.
func (f *filter) parts(b []byte, at uint64, do func(part []byte, chunk, offset uint64)) {
	whole := f.shape.perChunk() * blockBytes
	for from := at - filterfile.BodyOffset; len(b) > 0; {
		n := min(uint64(len(b)), whole-from%whole)
		do(b[:n], from/whole, chunkHead+from%whole)
		b, from = b[n:], from+n
	}
}

// readBody reads a part of the body of the filter's file.
func (f *filter) readBody(ctx context.Context, b []byte, at uint64) error {
	var commands []rueidis.Completed
	var parts [][]byte
	var chunks []uint64
	f.parts(b, at, func(part []byte, chunk, offset uint64) {
		parts, chunks = append(parts, part), append(chunks, chunk)
		commands = append(commands, f.store.client.B().Getrange().Key(f.store.keys.chunk(f.epoch, chunk)).Start(int64(offset)).End(int64(offset)+int64(len(part))-1).Build())
	})
	_, replies := f.store.do(ctx, nil, commands...)
	for i, part := range parts {
		text, err := replies[i].ToString()
		if err != nil {
			return explain(err)
		}
		if copy(part, text) != len(part) {
			return errChunk(chunks[i])
		}
	}
	return nil
}

// A filter that is being loaded has in its metadata the header of the dump, and how many
// bytes of the file have come; and the file's head, as soon as that has come. So any
// store can go on, and none finds a key absent meanwhile.

// Load begins a filter, as Filter.Dump(0) of any store has returned it.
func (s *Store) Load(ctx context.Context, name string, header []byte) (store.Filter, error) {
	if !store.IsDumpHeader(header) {
		return nil, fmt.Errorf("%w: %w: a store on many machines holds paired filters of fixed size: use LAYOUT PAIRED and NONSCALING", store.ErrChunk, errors.ErrUnsupported)
	}
	h, err := store.ParseDumpHeader(header)
	if err == nil {
		_, err = s.loaded(h)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrChunk, err)
	}
	f := newFilter(s, name, newEpoch())
	if err := f.setFields(ctx, "header", string(header), "have", "0", "items", strconv.FormatUint(h.Items, 10)); err != nil {
		return nil, err
	}
	if err := f.publish(ctx); err != nil {
		return nil, err
	}
	return s.find(ctx, name)
}

// loaded returns the empty filter that a dump's header describes.
func (s *Store) loaded(h store.DumpHeader) (hash bloom.Hasher, err error) {
	if h.Spec.Kind != store.Paired || h.Spec.Growth != 0 {
		return hash, fmt.Errorf("%w: a store on many machines holds paired filters of fixed size", errors.ErrUnsupported)
	}
	if h.Spec.Capacity == 0 || !(h.Spec.Rate > 0 && h.Spec.Rate < 1) || h.Bytes <= filterfile.BodyOffset {
		return hash, fmt.Errorf("%w: a dump of %d bytes, for %d keys at the rate %g", bloom.ErrFormat, h.Bytes, h.Spec.Capacity, h.Spec.Rate)
	}
	if h.Spec.Public {
		return bloom.NewHasher(h.Key, nil)
	}
	if hash, err = bloom.NewHasher(0, s.secret); err == nil && hash.HashIdentity().Key != h.Key {
		err = fmt.Errorf("%w: the filter was made with the secret of another store, of fingerprint %016x", bloom.ErrSecret, h.Key)
	}
	return hash, err
}

// errLoading is the error for a filter of which a part has not come yet.
func (f *filter) errLoading() error {
	return fmt.Errorf("%w: the filter is being loaded, and %d of %d bytes have come: load the others, or drop it", store.ErrChunk, f.loading.have, f.loading.header.Bytes)
}

// loading is what is known of a filter that is being loaded.
type loading struct {
	header store.DumpHeader
	have   uint64
	file   *filterfile.File // nil until its head has come
	sums   []byte           // the end of the file, as far as it has come
}

// Load loads a chunk of a dump, in order. The first has the head of the file.
func (f *filter) Load(ctx context.Context, iterator int64, chunk []byte) error {
	if err := f.count(ctx); err != nil {
		return err
	}
	g, err := f.store.read(ctx, f.name(), f.epoch) // how much has come
	if err != nil {
		return err
	}
	if g.loading == nil {
		return fmt.Errorf("%w: the filter is complete: drop it before you load another", store.ErrChunk)
	}
	err = g.load(ctx, iterator, chunk)
	f.store.forget(f) // it is read again
	return err
}

func (f *filter) load(ctx context.Context, iterator int64, chunk []byte) error {
	l := f.loading
	at := iterator - 1 - int64(len(chunk))
	if skip := int64(l.have) - at; at >= 0 && skip > 0 && skip < int64(len(chunk)) { // the rest of one that came in part
		chunk, at = chunk[skip:], int64(l.have)
	}
	switch {
	case at >= 0 && iterator-1 <= int64(l.have): // all of it has come, and its sender has not heard
		return nil
	case at != int64(l.have) || uint64(len(chunk)) > l.header.Bytes-l.have || len(chunk) > mostDumped:
		return fmt.Errorf("%w: %d bytes that end at %d, but %d have come of %d: load the chunks in their order", store.ErrChunk, len(chunk), iterator, l.have, l.header.Bytes)
	case l.have == 0 && len(chunk) < filterfile.BodyOffset:
		return fmt.Errorf("%w: the first chunk has %d bytes, but begins with a head of %d", store.ErrChunk, len(chunk), filterfile.BodyOffset)
	case l.have == 0:
		if err := f.loadHead(ctx, chunk[:filterfile.BodyOffset]); err != nil {
			return err
		}
		l.have, chunk = filterfile.BodyOffset, chunk[filterfile.BodyOffset:]
	}
	body := chunk[:min(uint64(len(chunk)), f.loading.file.Checksums-min(l.have, f.loading.file.Checksums))]
	var calls []call
	f.parts(body, l.have, func(part []byte, i, offset uint64) {
		calls = append(calls, call{putScript, []string{f.store.keys.chunk(f.epoch, i)},
			[]string{rueidis.BinaryString(f.shape.id(f.epoch, i)), strconv.FormatUint(offset, 10), rueidis.BinaryString(part)}})
	})
	replies, _ := f.store.do(ctx, calls)
	if err := firstError(replies); err != nil {
		return err
	}
	sums := chunk[len(body):]
	l.have += uint64(len(chunk))
	if l.have == l.header.Bytes {
		return f.finish(ctx, append(f.loading.sums, sums...))
	}
	return f.setFields(ctx, "have", strconv.FormatUint(l.have, 10), "sums", string(append(f.loading.sums, sums...)))
}

// loadHead reads the head of the file and makes the chunks.
func (f *filter) loadHead(ctx context.Context, head []byte) error {
	file, err := filterfile.DecodeHead(head)
	if err == nil {
		err = file.MustHold(filterfile.KindFilter)
	}
	hash, _ := f.store.loaded(f.loading.header)
	switch {
	case err != nil:
	case file.FileBytes != f.loading.header.Bytes:
		err = fmt.Errorf("%w: a file of %d bytes, in a dump of %d", bloom.ErrFormat, file.FileBytes, f.loading.header.Bytes)
	case uint32(hash.HashIdentity().Algorithm) != file.Hash.Algorithm || hash.HashIdentity().Key != file.Hash.Key:
		err = fmt.Errorf("%w: the hash is not the one that the header says", bloom.ErrFormat)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrChunk, err)
	}
	f.loading.file = file
	f.setFile(file, shapeOf(file.Sections[0].Blocks))
	if err := f.makeChunks(ctx); err != nil {
		return err
	}
	return f.setFields(ctx, "head", string(head), "rate", formatRate(f.loading.header.Spec.Rate), "j", strconv.Itoa(f.shape.log),
		"have", strconv.Itoa(filterfile.BodyOffset))
}

// finish compares all that has come with the checksums, and ends loading.
func (f *filter) finish(ctx context.Context, sums []byte) error {
	image, err := f.loading.file.ImageFrom(func(b []byte, at uint64) error { return f.readBody(ctx, b, at) })
	if err == nil {
		err = image.Verify(sums)
	}
	if errors.Is(err, bloom.ErrChecksum) || errors.Is(err, bloom.ErrFormat) {
		return fmt.Errorf("%w: %w: drop the filter and load it again", store.ErrChunk, err)
	} else if err != nil {
		return err
	}
	return explain(f.store.ask(ctx, f.store.client.B().Hdel().Key(f.store.keys.meta(f.epoch)).Field("header", "have", "sums").Build()).Error())
}

// setFields sets fields of the metadata: names and values.
func (f *filter) setFields(ctx context.Context, fields ...string) error {
	return explain(f.store.ask(ctx, f.store.client.B().Arbitrary("HSET").Keys(f.store.keys.meta(f.epoch)).Args(fields...).Build()).Error())
}
