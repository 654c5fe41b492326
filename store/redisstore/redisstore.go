// Package redisstore keeps filters in Redis or Valkey: in a Cluster, a master with
// replicas, or a single server. The servers need no module. They store, replicate and
// move the bits; this package hashes keys, finds the place of their bits, and asks for
// these alone. So a filter may be larger than the memory of any one node, and programs
// on many machines share it:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"10.0.0.1:6379"}})
//	...
//	seen, err := redisstore.Open(ctx, client, "seen")
//	isNew, err := seen.Add(ctx, url)
//
// [Store] is the [store.Store] of 'bloomery serve --store', whose filters these are.
package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

// DefaultPrefix begins the names of all keys that a store uses.
const DefaultPrefix = "bloomery:"

var (
	// ErrDamaged: a part of a filter is missing, or is not what was stored there. Some
	// of the filter's keys are lost, so it cannot say that a key is new.
	ErrDamaged = errors.New("redisstore: damaged")

	// ErrUnreachable: the servers did not answer, or cannot at the moment. Whether an
	// add was done is unknown. Adding again does no harm, but the answer may be "seen".
	ErrUnreachable = errors.New("redisstore: no answer")

	// ErrSettings: the servers' settings would lose filters.
	ErrSettings = errors.New("redisstore: unsafe settings")
)

// Config says where a store is.
type Config struct {
	Prefix string // of all keys; empty: DefaultPrefix

	// Trusted: do not refuse servers whose settings lose data, or cannot be read.
	Trusted bool

	Durability Durability // of adds

	// Timeout is how long to wait for answers, while servers are down or replaced, before
	// it is an error; zero: ten seconds. Only questions are asked again meanwhile. An add
	// fails when its server does, as it may have been done.
	Timeout time.Duration

	// CheckFirst: look keys up before adding them, and add those that are new. This is
	// faster for a stream in which most keys repeat, and slower for others.
	CheckFirst bool
}

// Store keeps filters in Redis or Valkey. Its filters are of kind [store.Paired] and of
// fixed size: the bits of RedisBloom's kind would be spread over as many nodes as a key
// has bits. Several stores, in any number of processes, may use the same servers and
// prefix. All methods are safe for concurrent use.
//
// What it cannot do returns errors that wrap [errors.ErrUnsupported]: growth, windows,
// plain values, names that expire, and folds.
type Store struct {
	client rueidis.Client
	keys   keys
	config Config
	id     string // see idField
	secret []byte

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // deletes chunks

	routes routes
	replay *replayer // nil: nothing is sent again

	naming sync.RWMutex // held while names change their filters, see filter.isNamed
	mu     sync.Mutex
	opened map[string]*filter // by name; what another process has changed is found out when it is used
}

var _ interface {
	store.Store
	store.Remote
} = (*Store)(nil)

// New returns the store that client's servers hold. The caller closes the client after
// the store. The error wraps [ErrSettings], [ErrUnreachable], or is the server's.
func New(ctx context.Context, client rueidis.Client, config Config) (*Store, error) {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	if config.Timeout == 0 {
		config.Timeout = 10 * time.Second
	}
	if strings.ContainsAny(config.Prefix, "{}") {
		return nil, fmt.Errorf("redisstore: the prefix %q has a brace: all keys with it might fall on one node", config.Prefix)
	}
	s := &Store{client: client, keys: keysOf(config.Prefix), config: config, opened: map[string]*filter{}}
	if !config.Trusted {
		if err := s.checkSettings(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.openDirectory(ctx); err != nil {
		return nil, err
	}
	if err := s.openSecret(ctx); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if config.Durability.Replay > 0 {
		s.replay = startReplay(s, config.Durability.Replay)
	}
	return s, nil
}

// Close ends the use of the servers. The filters stay.
func (s *Store) Close() error {
	s.mu.Lock()
	opened := s.opened
	s.opened = map[string]*filter{}
	s.mu.Unlock()
	var err error
	for _, f := range opened {
		if counting := f.count(s.ctx); counting != nil && !errors.Is(counting, store.ErrNotFound) {
			err = errors.Join(err, counting)
		}
	}
	if s.replay != nil {
		err = errors.Join(err, s.replay.close())
	}
	s.work.Wait()
	s.stop()
	return err
}

// explain wraps an error of the client or of a server.
func explain(err error) error {
	reply, ok := rueidis.IsRedisErr(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnconfirmed), errors.Is(err, ErrDamaged):
		return err
	case !ok:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case strings.HasPrefix(reply.Error(), chunkLost):
		return errLost("a chunk")
	case strings.HasPrefix(reply.Error(), namesLost):
		return errNamesLost
	case strings.HasPrefix(reply.Error(), "OOM"):
		return fmt.Errorf("%w: the servers have no memory left: %s", store.ErrMemory, reply)
	}
	for _, code := range []string{"CLUSTERDOWN", "MASTERDOWN", "LOADING", "TRYAGAIN", "READONLY", "MOVED", "ASK", "NOREPLICAS", "MISCONF", "BUSY"} {
		if strings.HasPrefix(reply.Error(), code) {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	return fmt.Errorf("redisstore: %w", err)
}

// firstError explains the first error of the replies.
func firstError(replies []rueidis.RedisResult) error {
	for _, reply := range replies {
		if err := reply.Error(); err != nil {
			return explain(err)
		}
	}
	return nil
}

// errLost is the error for a chunk that is not what it should be.
func errLost(chunk string) error {
	return fmt.Errorf("%w: %s of the filter is gone, or is another filter's: drop the filter and build it again, or push it from a file", ErrDamaged, chunk)
}

// errChunk is errLost if it is known which chunk.
func errChunk(i uint64) error { return errLost("chunk " + strconv.FormatUint(i, 10)) }

var errNamesLost = fmt.Errorf("%w: the directory of names is gone, as when a server has started without its data: bring that data back", ErrDamaged)

// Create makes a filter. All of its memory is taken at once.
func (s *Store) Create(ctx context.Context, name string, spec store.Spec) (store.Filter, error) {
	plan, hash, err := s.plan(spec)
	if err != nil {
		return nil, err
	}
	if err := s.call(ctx, s.named(findScript, field(name))).Error(); err == nil {
		return nil, store.ErrExists
	} else if !rueidis.IsRedisNil(err) {
		return nil, explain(err)
	}
	head, err := headOf(plan, hash.HashIdentity())
	if err != nil {
		return nil, err
	}
	f := newFilter(s, name, newEpoch())
	f.setPlan(plan, hash, shapeOf(plan.Blocks))
	f.rate = spec.Rate
	if err = f.makeChunks(ctx); err == nil {
		err = f.setFields(ctx, "head", string(head), "rate", formatRate(spec.Rate), "j", strconv.Itoa(f.shape.log), "items", "0")
	}
	if err != nil {
		s.free(f.epoch, f.shape)
		return nil, err
	}
	if err := f.publish(ctx); err != nil {
		return nil, err
	}
	s.remember(f)
	return f, nil
}

// formatRate formats a rate so that it is read as the same number.
func formatRate(rate float64) string { return strconv.FormatFloat(rate, 'g', -1, 64) }

// publish gives a filter that is complete its name. If another has it, the filter is
// freed.
func (f *filter) publish(ctx context.Context) error {
	s := f.store
	first, err := s.call(ctx, s.named(publishScript, field(f.name()), f.epoch.String())).AsBool()
	switch {
	case err != nil:
		err = explain(err) // perhaps it was done: then the name has a filter without chunks, which is an error, too
	case !first:
		err = store.ErrExists
	default:
		return nil
	}
	s.free(f.epoch, f.shape)
	return err
}

// plan sizes a filter.
func (s *Store) plan(spec store.Spec) (plan bloom.Plan, hash bloom.Hasher, err error) {
	refuse := func(what string) error { return fmt.Errorf("%w: %s", errors.ErrUnsupported, what) }
	switch {
	case spec.Kind == store.RedisBloom:
		err = refuse("the bits of a key would lie on many nodes: use the layout PAIRED")
	case spec.Kind != store.Paired:
		err = refuse("a store of many machines holds paired filters of fixed size, not a " + spec.Kind.String())
	case spec.Growth != 0:
		err = refuse("a filter on many machines does not grow: reserve a larger one with NONSCALING, fill it, and exchange the names with BF.SWAP")
	case !spec.Expires.IsZero():
		err = refuse("names on many machines do not expire")
	case spec.Level != store.StoreLevel:
		err = refuse("how durable an add is, is a setting of the servers")
	}
	if err != nil {
		return plan, hash, err
	}
	config := bloom.Config{Keys: spec.Capacity, Rate: spec.Rate}
	if !spec.Public {
		config.Secret = s.secret
	}
	if plan, err = config.Plan(); err == nil {
		hash, err = bloom.NewHasher(0, config.Secret)
	}
	return plan, hash, err
}

func newEpoch() epoch {
	var b [8]byte
	rand.Read(b[:])
	return epoch(binary.LittleEndian.Uint64(b[:]))
}

// Open returns the filter with that name. It asks a server only for a name that it does
// not know.
func (s *Store) Open(name []byte) (store.Filter, error) {
	s.mu.Lock()
	f := s.opened[string(name)]
	s.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := s.find(s.ctx, string(name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// find reads what a name stands for, while this store does not change that.
func (s *Store) find(ctx context.Context, name string) (*filter, error) {
	s.naming.RLock()
	defer s.naming.RUnlock()
	text, err := s.call(ctx, s.named(findScript, field(name))).ToString()
	if rueidis.IsRedisNil(err) {
		return nil, store.ErrNotFound
	} else if err != nil {
		return nil, explain(err)
	}
	e, err := parseEpoch(text)
	if err != nil {
		return nil, err
	}
	f, err := s.read(ctx, name, e)
	if err != nil {
		return nil, err
	}
	s.remember(f)
	return f, nil
}

// read reads a filter's metadata.
func (s *Store) read(ctx context.Context, name string, e epoch) (*filter, error) {
	fields, err := s.ask(ctx, s.client.B().Hmget().Key(s.keys.meta(e)).Field("head", "rate", "j", "items", "header", "have", "sums").Build()).AsStrSlice()
	if err != nil {
		return nil, explain(err)
	}
	damaged := func(what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, s.keys.meta(e), what) }
	if len(fields) != 7 || fields[0] == "" && fields[4] == "" {
		return nil, damaged("the filter's metadata are gone: drop it and build it again, or push it from a file")
	}
	f := newFilter(s, name, e)
	items, err := strconv.ParseUint(fields[3], 10, 63)
	f.known.Store(items)
	if header := fields[4]; err == nil && header != "" {
		f.loading = &loading{sums: []byte(fields[6])}
		if f.loading.header, err = store.ParseDumpHeader([]byte(header)); err == nil {
			f.loading.have, err = strconv.ParseUint(fields[5], 10, 63)
		}
	}
	if err != nil {
		return nil, damaged("its fields cannot be read")
	}
	if fields[0] == "" {
		return f, nil
	}
	if len(fields[0]) != filterfile.BodyOffset {
		return nil, damaged(fmt.Sprintf("a head of %d bytes", len(fields[0])))
	}
	file, err := filterfile.DecodeHead([]byte(fields[0]))
	if err == nil {
		err = file.MustHold(filterfile.KindFilter)
	}
	if err != nil {
		return nil, damaged(err.Error())
	}
	rate, err := strconv.ParseFloat(fields[1], 64)
	log, err2 := strconv.Atoi(fields[2])
	if err := errors.Join(err, err2); err != nil || !(rate > 0 && rate < 1) || log < leastChunk || log > mostChunk {
		return nil, damaged("its fields cannot be read")
	}
	f.rate = rate
	if err := f.setFile(file, shape{file.Sections[0].Blocks, log}); err != nil {
		return nil, err
	}
	if f.loading != nil {
		f.loading.file = file
	}
	return f, nil
}

// setFile makes it the filter of a file's head.
func (f *filter) setFile(file *filterfile.File, shape shape) error {
	section := file.Sections[0]
	hash := bloom.HashIdentity{Algorithm: bloom.HashAlgorithm(file.Hash.Algorithm), Key: file.Hash.Key}.Hasher()
	if hash.NeedsSecret() {
		if err := hash.SetSecret(f.store.secret); err != nil {
			return err
		}
	}
	f.setPlan(bloom.Plan{
		Keys: file.Keys, Rate: file.Rate,
		Bits: section.Blocks * 8 * blockBytes, Probes: int(section.Probes), Blocks: section.Blocks,
		Layout: bloom.PairedLines,
	}, hash, shape)
	return nil
}

func (s *Store) remember(f *filter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[f.name()] = f
}

// forget is remember's opposite, unless the name has another filter by now.
func (s *Store) forget(f *filter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := f.name(); s.opened[name] == f {
		delete(s.opened, name)
	}
}

// Usage returns zeros: the memory is that of the servers.
func (s *Store) Usage() (bytes, limit uint64) { return 0, 0 }

// Commit returns at once: an add is acknowledged when it is as durable as Config says.
func (s *Store) Commit(context.Context) error { return nil }

// Remote makes it a [store.Remote].
func (s *Store) Remote() {}

// OnEnd does nothing: no name expires.
func (s *Store) OnEnd(func(name string)) {}

// Set, Get and Expire are not supported.
func (s *Store) Set(context.Context, string, []byte) error {
	return fmt.Errorf("%w: only filters are kept on many machines", errors.ErrUnsupported)
}

func (s *Store) Get(name []byte) ([]byte, error) {
	kind, _, err := s.Kind(name)
	switch {
	case err != nil:
		return nil, err
	case kind == store.None:
		return nil, store.ErrNotFound
	}
	return nil, store.ErrWrongKind
}

func (s *Store) Expire(ctx context.Context, name string, at time.Time) error {
	kind, _, err := s.Kind([]byte(name))
	switch {
	case err != nil:
		return err
	case kind == store.None:
		return store.ErrNotFound
	case at.IsZero():
		return nil
	}
	return fmt.Errorf("%w: names on many machines do not expire", errors.ErrUnsupported)
}
