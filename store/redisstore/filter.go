package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

const blockBytes = kernel.BlockBytes

// countTime is how long a count may wait for the next batch of adds.
const countTime = 100 * time.Millisecond

// mostKeys is how many keys are asked for or added in one go.
const mostKeys = 8192

// filter is one filter. It belongs to an epoch, and follows it from name to name as long
// as this store gives the names.
type filter struct {
	*bloom.Hasher
	store  *Store
	epoch  epoch
	plan   bloom.Plan
	rate   float64 // asked for
	paired kernel.Paired
	shape  shape
	named  atomic.Pointer[string]
	gone   atomic.Bool // the name was dropped, or given to another filter

	adds, lookUps joiner

	// verified has a bit for each chunk whose head was read: a lookup reads only the
	// middle of a chunk, so the first one of each asks for the head, too.
	verified []atomic.Uint32

	loading *loading // nil when it is complete
	dump    outgoing

	// The adds that were new are counted with the metadata. A count is sent with the
	// next batch, or a moment later, so a process that crashes may leave one out.
	known    atomic.Uint64 // the count at the servers, when last heard of
	pending  atomic.Int64  // not sent yet
	counting atomic.Bool   // it will be sent

	// room is held for reading while keys are added for which there is room in any
	// case, reserved in left; for writing while it is found out how many there are.
	room sync.RWMutex
	left atomic.Int64
}

func newFilter(s *Store, name string, e epoch) *filter {
	f := &filter{store: s, epoch: e, shape: shape{log: leastChunk}}
	f.setName(name)
	return f
}

// setPlan sets what is known of a filter's bits.
func (f *filter) setPlan(plan bloom.Plan, hash bloom.Hasher, shape shape) {
	f.Hasher, f.plan, f.shape = &hash, plan, shape
	f.paired = kernel.Paired{Blocks: plan.Blocks, Rows: kernel.RowsFor(plan.Probes / 2)}
	f.verified = make([]atomic.Uint32, (shape.chunks()+31)/32)
}

func (f *filter) name() string        { return *f.named.Load() }
func (f *filter) setName(name string) { f.named.Store(&name) }

// makeChunks makes all chunks, with all bits clear.
func (f *filter) makeChunks(ctx context.Context) error {
	n := f.shape.chunks()
	for i := uint64(0); i < n; {
		var calls []call
		for ; i < n && len(calls) < pipelined; i++ {
			id := rueidis.BinaryString(f.shape.id(f.epoch, i))
			calls = append(calls, call{makeScript, []string{f.store.keys.chunk(f.epoch, i)}, []string{id, strconv.FormatUint(f.shape.bytesOf(i), 10)}})
		}
		replies, _ := f.store.do(ctx, calls)
		if err := firstError(replies); err != nil {
			return err
		}
	}
	return nil
}

// Add adds keys. In a filter that is nearly full it asks for each key that does not fit
// whether it is there already.
func (f *filter) Add(ctx context.Context, keys [][]byte, isNew []bool) (done int, err error) {
	for done < len(keys) && err == nil {
		part := keys[done:min(done+mostKeys, len(keys))]
		var n int
		n, err = f.addPart(ctx, part, isNew[done:][:len(part)])
		done += n
	}
	return done, err
}

func (f *filter) addPart(ctx context.Context, keys [][]byte, isNew []bool) (done int, err error) {
	if err := f.mayUse(); err != nil {
		return 0, err
	}
	spans := f.spans(keys)
	f.room.RLock()
	if f.left.Add(-int64(len(keys))) >= 0 {
		defer f.room.RUnlock()
		return f.adds.do(ctx, f.store.ctx, spans, isNew, f.addSpans)
	}
	f.room.RUnlock()
	f.room.Lock()
	defer f.room.Unlock()
	defer func() { f.left.Store(int64(f.fit())) }()
	for done < len(keys) && err == nil {
		fit := f.fit()
		if fit < uint64(len(keys)-done) { // others may have added, or what was counted was not new
			if err = f.count(ctx); err != nil {
				return done, err
			}
			fit = f.fit()
		}
		n := int(min(fit, uint64(len(keys)-done)))
		if n == 0 {
			rest := spans[done:]
			if _, err = f.lookUp(ctx, rest, isNew[done:]); err != nil {
				return done, err
			}
			seen := slices.Index(isNew[done:], false) // of those found
			if seen < 0 {
				seen = len(rest)
			}
			clear(isNew[done:])
			if done += seen; done < len(keys) {
				err = fmt.Errorf("%w: it holds the %d keys it was made for: make one that is larger", store.ErrFull, f.plan.Keys)
			}
			continue
		}
		n, err = f.addSpans(ctx, spans[done:][:n], isNew[done:][:n])
		done += n
	}
	return done, err
}

// mayUse returns an error if the filter was dropped, or is being loaded. Then it is read
// again when it is opened again.
func (f *filter) mayUse() error {
	if f.gone.Load() {
		return store.ErrNotFound
	}
	if f.loading != nil {
		f.store.forget(f)
		return f.errLoading()
	}
	return nil
}

func (f *filter) spans(keys [][]byte) []span {
	spans := make([]span, len(keys))
	for i, key := range keys {
		spans[i] = f.shape.span(&f.paired, f.Hash(key))
	}
	return spans
}

// addSpans adds keys for which there is room.
func (f *filter) addSpans(ctx context.Context, spans []span, isNew []bool) (done int, err error) {
	if !f.store.config.CheckFirst {
		return f.addMany(ctx, spans, nil, isNew)
	}
	if _, err := f.lookUp(ctx, spans, isNew); err != nil {
		return 0, err
	}
	misses := make([]int, 0, len(spans))
	for i, found := range isNew {
		if !found {
			misses = append(misses, i)
		}
		isNew[i] = false
	}
	if len(misses) == 0 {
		return len(spans), nil
	}
	return f.addMany(ctx, spans, misses, isNew)
}

// addMany adds the spans that which lists, or all. Each chunk gets one call, with its
// keys in order, so of equal keys the first is new.
func (f *filter) addMany(ctx context.Context, spans []span, which []int, isNew []bool) (done int, err error) {
	if which == nil {
		which = make([]int, len(spans))
		for i := range which {
			which[i] = i
		}
	}
	calls, ends := f.addCalls(spans, which)
	pending, name := f.pending.Swap(0), f.name()
	replies, count := f.store.add(ctx, calls, f.countCall(name, pending))
	f.counted(pending, count)
	err = f.isNamed(ctx, name, count.Error())
	unnamed := err != nil                   // all may be there, but not in the filter that has the name now
	failed, from, added := len(spans), 0, 0 // failed: the first key that was not added
	for i, end := range ends {
		answers, wrong := replies[i].ToString()
		if wrong == nil && len(answers) != end-from {
			wrong = fmt.Errorf("%d answers for %d keys", len(answers), end-from)
		}
		for at, key := range which[from:end] {
			isNew[key] = wrong == nil && answers[at] == '1'
			if isNew[key] {
				added++
			}
			if wrong != nil && key < failed {
				failed = key
				if err == nil {
					err = explain(wrong)
				}
			}
		}
		if wrong == nil {
			f.store.replay.note(f, spans, which[from:end])
		}
		from = end
	}
	if errors.Is(err, ErrUnreachable) && ctx.Err() == nil {
		f.store.replay.suspect()
	}
	if f.pending.Add(int64(added)); added > 0 && !f.counting.Swap(true) {
		time.AfterFunc(countTime, func() {
			f.counting.Store(false)
			if f.pending.Load() > 0 {
				f.count(f.store.ctx)
			}
		})
	}
	if unnamed {
		failed = 0
	}
	return failed, err
}

// addCalls returns the calls that add the spans that which lists, one for each chunk,
// and the end of each call's part of which, which is now sorted by chunk.
func (f *filter) addCalls(spans []span, which []int) (calls []call, ends []int) {
	slices.SortStableFunc(which, func(a, b int) int {
		return int(int64(spans[a].chunk) - int64(spans[b].chunk))
	})
	var bits []byte
	for from := 0; from < len(which); {
		chunk, end := spans[which[from]].chunk, from
		bits = bits[:0]
		for ; end < len(which) && spans[which[end]].chunk == chunk; end++ {
			bits = spans[which[end]].appendBits(bits)
		}
		calls = append(calls, call{addScript, []string{f.store.keys.chunk(f.epoch, chunk)},
			[]string{rueidis.BinaryString(f.shape.id(f.epoch, chunk)), string(bits)}})
		ends = append(ends, end)
		from = end
	}
	return calls, ends
}

// addAgain adds keys that were added before.
func (f *filter) addAgain(ctx context.Context, hashes []uint64) error {
	spans, which := make([]span, len(hashes)), make([]int, len(hashes))
	for i, h := range hashes {
		spans[i], which[i] = f.shape.span(&f.paired, h), i
	}
	calls, _ := f.addCalls(spans, which)
	replies, _ := f.store.do(ctx, calls)
	return firstError(replies)
}

// countCall is the call that counts keys and tells whether the name is still this
// filter's.
func (f *filter) countCall(name string, keys int64) call {
	return call{countScript, []string{f.store.keys.names, f.store.keys.meta(f.epoch)},
		[]string{f.store.id, field(name), f.epoch.String(), strconv.FormatInt(keys, 10)}}
}

// counted notes what was counted, or that it was not.
func (f *filter) counted(keys int64, reply rueidis.RedisResult) {
	total, err := reply.AsInt64()
	if err != nil {
		f.pending.Add(keys)
		return
	}
	for known := f.known.Load(); known < uint64(total) && !f.known.CompareAndSwap(known, uint64(total)); known = f.known.Load() {
	}
}

// count sends what is not counted yet.
func (f *filter) count(ctx context.Context) error {
	if f.gone.Load() {
		return store.ErrNotFound
	}
	keys, name := f.pending.Swap(0), f.name()
	reply := f.store.call(ctx, f.countCall(name, keys))
	f.counted(keys, reply)
	return f.isNamed(ctx, name, reply.Error())
}

// items is the number of adds that were new, as far as this process knows.
func (f *filter) items() uint64 { return uint64(int64(f.known.Load()) + f.pending.Load()) }

// fit is the number of keys that still fit, as far as this process knows.
func (f *filter) fit() uint64 { return f.plan.Keys - min(f.items(), f.plan.Keys) }

// isNamed returns an error unless the name was still this filter's when a server was
// asked. err is nil, or a null if it was not, or the server's. This store may have given
// the filter another name meanwhile.
func (f *filter) isNamed(ctx context.Context, name string, err error) error {
	for rueidis.IsRedisNil(err) {
		f.store.naming.RLock() // a change by this store is complete
		now := f.name()
		f.store.naming.RUnlock()
		if now == name || f.gone.Load() {
			f.gone.Store(true)
			f.store.forget(f)
			return store.ErrNotFound
		}
		name = now
		err = f.askName(ctx, name)
	}
	return explain(err)
}

// askName returns a null if the name is another filter's.
func (f *filter) askName(ctx context.Context, name string) error {
	return f.nameReply(f.store.ask(ctx, f.nameCommand(name)))
}

// nameCommand asks for what a name stands for, and for the directory's identity. It is
// the one command about names that is not a script, because it goes with every lookup.
func (f *filter) nameCommand(name string) rueidis.Completed {
	return f.store.client.B().Hmget().Key(f.store.keys.names).Field(field(name), idField).Build()
}

// nameReply returns a null if the name is another filter's.
func (f *filter) nameReply(reply rueidis.RedisResult) error {
	fields, err := reply.AsStrSlice()
	switch {
	case err != nil:
		return err
	case len(fields) != 2 || fields[1] != f.store.id:
		return errNamesLost
	case fields[0] != f.epoch.String():
		return rueidis.Nil
	}
	return nil
}

// Contains looks keys up.
func (f *filter) Contains(ctx context.Context, keys [][]byte, found []bool) error {
	for len(keys) > 0 {
		n := min(mostKeys, len(keys))
		if err := f.mayUse(); err != nil {
			return err
		}
		if _, err := f.lookUps.do(ctx, f.store.ctx, f.spans(keys[:n]), found[:n], f.lookUp); err != nil {
			return err
		}
		keys, found = keys[n:], found[n:]
	}
	return nil
}

// lookUp asks for the part of a block that has a key's bits, for each key.
func (f *filter) lookUp(ctx context.Context, spans []span, found []bool) (int, error) {
	name, keys := f.name(), map[uint64]string{}
	var heads []uint64 // chunks whose heads are read
	commands := make([]rueidis.Completed, 0, len(spans)+1)
	get := func(key string, from uint64, length int) {
		commands = append(commands, f.store.client.B().Getrange().Key(key).Start(int64(from)).End(int64(from)+int64(length)-1).Build())
	}
	for _, s := range spans {
		key := keys[s.chunk]
		if key == "" {
			key = f.store.keys.chunk(f.epoch, s.chunk)
			keys[s.chunk] = key
			if f.verified[s.chunk/32].Load()>>(s.chunk%32)&1 == 0 {
				heads = append(heads, s.chunk)
			}
		}
		get(key, s.offset, s.length)
	}
	for _, chunk := range heads {
		get(keys[chunk], 0, idBytes)
	}
	_, replies := f.store.do(ctx, nil, append(commands, f.nameCommand(name))...)
	err := f.isNamed(ctx, name, f.nameReply(replies[len(commands)]))
	for i, chunk := range heads {
		if err == nil {
			err = f.verify(chunk, replies[len(spans)+i])
		}
	}
	for i := range spans {
		if err == nil {
			found[i], err = spans[i].answer(replies[i])
		}
	}
	if err == nil {
		return len(spans), nil
	}
	clear(found)
	if errors.Is(err, ErrUnreachable) && ctx.Err() == nil {
		for i := range f.verified { // servers may come back with other data
			f.verified[i].Store(0)
		}
		f.store.replay.suspect()
	}
	return 0, err
}

// verify checks the head of a chunk.
func (f *filter) verify(chunk uint64, reply rueidis.RedisResult) error {
	head, err := reply.ToString()
	if err != nil {
		return explain(err)
	}
	if head != string(f.shape.id(f.epoch, chunk)) {
		return errChunk(chunk)
	}
	f.verified[chunk/32].Or(1 << (chunk % 32))
	return nil
}

// answer reports whether the key is in the bytes of its span.
func (s *span) answer(reply rueidis.RedisResult) (found bool, err error) {
	bytes, err := reply.ToString()
	if err != nil {
		return false, explain(err)
	}
	if len(bytes) != s.length {
		return false, errChunk(s.chunk)
	}
	return s.isIn(bytes), nil
}

// Info asks a server for the number of keys.
func (f *filter) Info() store.Info {
	if errors.Is(f.count(f.store.ctx), store.ErrNotFound) {
		return store.Info{}
	}
	items := f.items()
	if l := f.loading; l != nil {
		f.store.forget(f)
		return store.Info{Spec: l.header.Spec, Bytes: l.header.Bytes, Items: items, Room: l.header.Spec.Capacity, Loaded: l.have, ToLoad: l.header.Bytes,
			Layers: []store.Layer{{Bytes: l.header.Bytes, Bits: 8 * l.header.Bytes, Capacity: l.header.Spec.Capacity, Items: items, Rate: l.header.Spec.Rate}}}
	}
	return store.Info{
		Spec:  f.spec(),
		Bytes: f.shape.takes(),
		Items: items,
		Room:  f.plan.Keys,
		Layers: []store.Layer{{
			Bytes: f.plan.Bytes(), Bits: f.plan.Bits, Probes: f.plan.Probes,
			Capacity: f.plan.Keys, Items: items, Rate: f.plan.Rate,
		}},
	}
}

func (f *filter) spec() store.Spec {
	return store.Spec{Kind: store.Paired, Capacity: f.plan.Keys, Rate: f.rate, Public: f.HashIdentity().Algorithm != bloom.SipHash}
}

// reportChunks is how many chunks a report reads: 8 MiB of a large filter.
const reportChunks = 8

// Report reads some of the chunks.
func (f *filter) Report() bloom.Report {
	r, err := f.report(f.store.ctx)
	if err != nil {
		return bloom.Report{}
	}
	return r
}

func (f *filter) report(ctx context.Context) (r bloom.Report, err error) {
	words, err := f.sample(ctx)
	if err == nil {
		r = bloom.Inside.ReportOf(f.plan, words)
		r.Added = f.items()
	}
	return r, err
}

// sample returns blocks of the filter, all if they are few.
func (f *filter) sample(ctx context.Context) (words []uint64, err error) {
	if err := errors.Join(f.mayUse(), f.count(ctx)); err != nil {
		return nil, err
	}
	n := f.shape.chunks()
	stride := (n + reportChunks - 1) / reportChunks
	for i := uint64(0); i < n; i += stride {
		bits, err := f.chunk(ctx, i)
		if err != nil {
			return nil, err
		}
		for at := 0; at < len(bits); at += 8 {
			words = append(words, binary.LittleEndian.Uint64(bits[at:]))
		}
	}
	return words, nil
}

// chunk returns the blocks of a chunk.
func (f *filter) chunk(ctx context.Context, i uint64) ([]byte, error) {
	text, err := f.store.ask(ctx, f.store.client.B().Get().Key(f.store.keys.chunk(f.epoch, i)).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, explain(err)
	}
	if id := string(f.shape.id(f.epoch, i)); uint64(len(text)) != f.shape.bytesOf(i) || text[:len(id)] != id {
		return nil, errChunk(i)
	}
	return []byte(text[chunkHead:]), nil
}

// Merge adds the keys of another filter of this store, chunk by chunk.
func (f *filter) Merge(ctx context.Context, from store.Filter) error {
	g, ok := from.(*filter)
	switch {
	case !ok || g.store != f.store:
		return fmt.Errorf("%w: a filter of another store", errors.ErrUnsupported)
	case f == g:
		return f.count(ctx)
	}
	if err := errors.Join(f.mayUse(), g.mayUse(), f.count(ctx), g.count(ctx)); err != nil {
		return err
	}
	if f.plan.Blocks != g.plan.Blocks || f.plan.Probes != g.plan.Probes || f.shape != g.shape || f.HashIdentity() != g.HashIdentity() {
		return fmt.Errorf("%w: of other sizes, or other hashes", bloom.ErrUnlike)
	}
	for i := range f.shape.chunks() {
		bits, err := g.chunk(ctx, i)
		if err == nil {
			err = f.orChunk(ctx, i, bits)
		}
		if errors.Is(err, ErrDamaged) { // or dropped just now
			err = errors.Join(f.count(ctx), g.count(ctx), err)
		}
		if err != nil {
			return err
		}
	}
	if r := f.Report(); r.Keys > float64(r.Added) {
		f.pending.Add(int64(min(r.Keys, float64(f.plan.Keys))) - int64(r.Added))
	}
	return f.count(ctx)
}

// orChunk sets bits in a chunk.
func (f *filter) orChunk(ctx context.Context, i uint64, bits []byte) error {
	key := f.store.keys.chunk(f.epoch, i)
	other := "{" + key + "}" // in the same slot
	put := f.store.client.B().Setrange().Key(other).Offset(chunkHead).Value(rueidis.BinaryString(bits)).Build()
	if err := f.store.ask(ctx, put).Error(); err != nil {
		return explain(err)
	}
	return explain(f.store.call(ctx, call{orScript, []string{key, other}, []string{rueidis.BinaryString(f.shape.id(f.epoch, i))}}).Error())
}

// Fold is not supported.
func (f *filter) Fold(ctx context.Context, _ uint64) error {
	if err := f.count(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: a filter on many machines is not folded", errors.ErrUnsupported)
}
