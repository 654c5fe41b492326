package bloom

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
)

// Exceptions is a [Filter] with a list of keys that it is known to find by mistake, and
// for which it answers no: an allow list for a block list. Each such key takes its
// length in memory, so this is for the few false positives that do harm, such as
// important senders in a mail filter, not a way to lower the rate.
//
// An exception is a key that was never added. [Exceptions.Except] cannot check that:
// excepting a key that was added makes it a FALSE NEGATIVE until it is added again.
// Adding an excepted key drops the exception, and reports the key as new, which it was.
//
// The list is searched only if the bits say yes, so lookups of keys that are not found
// cost the same as without it.
//
// Exceptions are keys, compared byte by byte. ContainsHash answers no for the hash of an
// excepted key; it cannot distinguish another key with the same hash, one in 2^64 unless
// somebody chooses the keys (see [XXH3]). Adding a key drops all exceptions with its
// hash, so no key that is added later is answered no, however it is added or looked up.
//
// The list is not encrypted, in memory or in a file, whatever the hash.
//
// Any number of goroutines may read an Exceptions at once; a method that changes it,
// such as Except, must run alone. The zero Exceptions is not usable: make one with
// [WithExceptions].
type Exceptions struct {
	*Hasher   // the filter's
	*Metadata // the filter's

	filter *Filter
	byHash map[uint64][]string // hardly ever more than one
	count  int
	bytes  int // of all keys
}

// Limits of the list, also of one in a file.
const (
	// MaxExceptions is the maximum number of keys on the list.
	MaxExceptions = filterfile.MaxListed

	// MaxExceptionBytes is the maximum total length of these keys.
	MaxExceptionBytes = filterfile.MaxListedBytes
)

// WithExceptions returns f with an empty list of exceptions. From then on change f only
// through the result: a key added to f directly would stay excepted. A filter opened
// read-only can have exceptions; Add panics on it, as always.
func WithExceptions(f *Filter) *Exceptions {
	return &Exceptions{Hasher: &f.Hasher, Metadata: &f.Metadata, filter: f, byHash: map[uint64][]string{}}
}

// Filter returns the filter itself, which ignores the exceptions. Do not add to it.
func (x *Exceptions) Filter() *Filter { return x.filter }

// Except puts a copy of key on the list: from now on it is answered no. The caller must
// know that it was never added. A key that is on the list already changes nothing.
//
// The error wraps [ErrNotContained] if the filter does not find key anyway, and
// [ErrLimit] if the list is full, by [MaxExceptions] or [MaxExceptionBytes].
func (x *Exceptions) Except(key []byte) error {
	h := x.Hash(key)
	switch {
	case x.excepts(h, key):
		return nil
	case !x.filter.ContainsHash(h):
		return fmt.Errorf("%w: no exception needed for %.100q", ErrNotContained, key)
	}
	if err := checkExceptions(x.count+1, x.bytes+len(key)); err != nil {
		return err
	}
	x.put(h, string(key))
	return nil
}

// ExceptString is Except for a string.
func (x *Exceptions) ExceptString(key string) error { return x.Except(memory.StringBytes(key)) }

// ExceptUint64 is Except of the eight little-endian bytes of key.
func (x *Exceptions) ExceptUint64(key uint64) error { return x.Except(uint64Bytes(key)) }

func checkExceptions(count, bytes int) error {
	if count > MaxExceptions || bytes > MaxExceptionBytes {
		return fmt.Errorf("%w: %d exceptions of %d bytes in all, at most %d of %d: make a filter with a lower rate instead",
			ErrLimit, count, bytes, MaxExceptions, MaxExceptionBytes)
	}
	return nil
}

// put adds a key that is not on the list.
func (x *Exceptions) put(h uint64, key string) {
	x.byHash[h] = append(x.byHash[h], key)
	x.count++
	x.bytes += len(key)
}

// excepts reports whether key, whose hash is h, is on the list.
func (x *Exceptions) excepts(h uint64, key []byte) bool {
	for _, excepted := range x.byHash[h] {
		if excepted == string(key) {
			return true
		}
	}
	return false
}

// drop removes all keys with this hash from the list, and reports whether there were
// any.
func (x *Exceptions) drop(h uint64) bool {
	keys := x.byHash[h]
	if keys == nil {
		return false
	}
	x.count -= len(keys)
	for _, key := range keys {
		x.bytes -= len(key)
	}
	delete(x.byHash, h)
	return true
}

// Excepted returns copies of the keys on the list, in ascending order of their bytes.
// The list must not change meanwhile.
func (x *Exceptions) Excepted() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, key := range x.sorted() {
			if !yield([]byte(key)) {
				return
			}
		}
	}
}

// Add is [Filter.Add]. An excepted key is new, and no longer an exception.
func (x *Exceptions) Add(key []byte) bool {
	h := x.Hash(key)
	isNew := x.filter.AddHash(h)
	if isNew || x.count == 0 {
		return isNew
	}
	return x.reclaim(h, x.excepts(h, key))
}

// reclaim updates the list for an added key whose bits were all set: it drops the
// exceptions with its hash, and counts the key as new if wasExcepted.
func (x *Exceptions) reclaim(h uint64, wasExcepted bool) bool {
	x.drop(h)
	if wasExcepted {
		x.filter.added++
	}
	return wasExcepted
}

// AddString is Add for a string.
func (x *Exceptions) AddString(key string) bool { return x.Add(memory.StringBytes(key)) }

// AddUint64 is Add of the eight little-endian bytes of key.
func (x *Exceptions) AddUint64(key uint64) bool { return x.Add(uint64Bytes(key)) }

// AddHash is [Filter.AddHash]. The hash of an excepted key is new.
func (x *Exceptions) AddHash(h uint64) bool {
	x.mustBeUnlocked()
	isNew := x.filter.AddHash(h)
	if isNew || x.count == 0 {
		return isNew
	}
	return x.reclaim(h, x.byHash[h] != nil)
}

// Contains reports whether key is probably in the filter and not excepted.
func (x *Exceptions) Contains(key []byte) bool {
	h := x.Hash(key)
	return x.filter.ContainsHash(h) && (x.count == 0 || !x.excepts(h, key))
}

// ContainsString is Contains for a string.
func (x *Exceptions) ContainsString(key string) bool { return x.Contains(memory.StringBytes(key)) }

// ContainsUint64 is Contains of the eight little-endian bytes of key.
func (x *Exceptions) ContainsUint64(key uint64) bool { return x.Contains(uint64Bytes(key)) }

// ContainsHash is [Filter.ContainsHash], but false for an excepted key's hash.
func (x *Exceptions) ContainsHash(h uint64) bool {
	x.mustBeUnlocked()
	return x.filter.ContainsHash(h) && (x.count == 0 || x.byHash[h] == nil)
}

// AddMany adds the keys in order; see [Filter.AddMany].
func (x *Exceptions) AddMany(keys [][]byte, isNew []bool) int {
	if x.count == 0 {
		return x.filter.AddMany(keys, isNew)
	}
	at := 0
	return x.hashMany(keys, isNew, func(hashes []uint64, isNew []bool) int {
		n := x.filter.AddHashes(hashes, isNew)
		for i, h := range hashes {
			if !isNew[i] && x.byHash[h] != nil && x.reclaim(h, x.excepts(h, keys[at+i])) {
				isNew[i] = true
				n++
			}
		}
		at += len(hashes)
		return n
	})
}

// AddStrings is AddMany for strings.
func (x *Exceptions) AddStrings(keys []string, isNew []bool) int {
	if x.count == 0 {
		return x.filter.AddStrings(keys, isNew)
	}
	at := 0
	return x.hashStrings(keys, isNew, func(hashes []uint64, isNew []bool) int {
		n := x.filter.AddHashes(hashes, isNew)
		for i, h := range hashes {
			if !isNew[i] && x.byHash[h] != nil && x.reclaim(h, x.excepts(h, memory.StringBytes(keys[at+i]))) {
				isNew[i] = true
				n++
			}
		}
		at += len(hashes)
		return n
	})
}

// ContainsMany is Contains for many keys; see [Filter.ContainsMany].
func (x *Exceptions) ContainsMany(keys [][]byte, found []bool) int {
	if x.count == 0 {
		return x.filter.ContainsMany(keys, found)
	}
	at := 0
	var recent kernel.Recent
	return x.hashMany(keys, found, func(hashes []uint64, found []bool) int {
		n := x.filter.containsBatch(hashes, found, &recent)
		for i, h := range hashes {
			if found[i] && x.excepts(h, keys[at+i]) {
				found[i] = false
				n--
			}
		}
		at += len(hashes)
		return n
	})
}

// ContainsStrings is ContainsMany for strings.
func (x *Exceptions) ContainsStrings(keys []string, found []bool) int {
	if x.count == 0 {
		return x.filter.ContainsStrings(keys, found)
	}
	at := 0
	var recent kernel.Recent
	return x.hashStrings(keys, found, func(hashes []uint64, found []bool) int {
		n := x.filter.containsBatch(hashes, found, &recent)
		for i, h := range hashes {
			if found[i] && x.excepts(h, memory.StringBytes(keys[at+i])) {
				found[i] = false
				n--
			}
		}
		at += len(hashes)
		return n
	})
}

// AddHashes is AddMany for hashed keys; see [Exceptions.AddHash].
func (x *Exceptions) AddHashes(hashes []uint64, isNew []bool) int {
	x.mustBeUnlocked()
	if x.count == 0 {
		return x.filter.AddHashes(hashes, isNew)
	}
	return inParts(hashes, isNew, func(hashes []uint64, isNew []bool) int {
		n := x.filter.AddHashes(hashes, isNew)
		for i, h := range hashes {
			if !isNew[i] && x.byHash[h] != nil && x.reclaim(h, true) {
				isNew[i] = true
				n++
			}
		}
		return n
	})
}

// ContainsHashes is ContainsMany for hashed keys; see [Exceptions.ContainsHash].
func (x *Exceptions) ContainsHashes(hashes []uint64, found []bool) int {
	x.mustBeUnlocked()
	if x.count == 0 {
		return x.filter.ContainsHashes(hashes, found)
	}
	var recent kernel.Recent
	return inParts(hashes, found, func(hashes []uint64, found []bool) int {
		n := x.filter.containsBatch(hashes, found, &recent)
		for i, h := range hashes {
			if found[i] && x.byHash[h] != nil {
				found[i] = false
				n--
			}
		}
		return n
	})
}

// Plan returns the sizing in force: n, p, m and k.
func (x *Exceptions) Plan() Plan { return x.filter.plan }

// Report is the filter's; Rate is that of keys that are not on the list.
func (x *Exceptions) Report() Report { return x.filter.Report() }

// Len is the number of keys on the list.
func (x *Exceptions) Len() int { return x.count }

// Bytes is the total length of the keys on the list.
func (x *Exceptions) Bytes() int { return x.bytes }

// Union adds everything in y to x. An exception of either stays only if the other does
// not contain the key, by its bits or because it is an exception there, too. So no key
// of x or y is answered no.
//
// y's filter may be larger, and the error is as for [Filter.Union], or wraps [ErrLimit]
// if the lists together are too long. Then nothing has changed.
func (x *Exceptions) Union(y *Exceptions) error {
	x.mustBeUnlocked()
	y.mustBeUnlocked()
	both := WithExceptions(x.filter)
	both.keep(x, y)
	both.keep(y, x)
	if err := checkExceptions(both.count, both.bytes); err != nil {
		return err
	}
	if err := x.filter.Union(y.filter); err != nil {
		return err
	}
	*x = *both
	return nil
}

// keep puts the keys of one's list that other does not contain on x's list.
func (x *Exceptions) keep(one, other *Exceptions) {
	for h, keys := range one.byHash {
		for _, key := range keys {
			bytes := memory.StringBytes(key)
			if contained := other.filter.ContainsHash(h) && !other.excepts(h, bytes); !contained && !x.excepts(h, bytes) {
				x.put(h, key)
			}
		}
	}
}

// Replan plans the filter for another rate; see [Filter.Replan].
func (x *Exceptions) Replan(p float64) error { return x.filter.Replan(p) }

// Fold returns a folded filter with the same exceptions; see [Filter.Fold].
func (x *Exceptions) Fold(by uint64) (*Exceptions, error) {
	filter, err := x.filter.Fold(by)
	if err != nil {
		return nil, err
	}
	return x.over(filter), nil
}

// Clone returns a copy of filter and list; see [Filter.Clone].
func (x *Exceptions) Clone() *Exceptions { return x.over(x.filter.Clone()) }

// over puts a copy of the list over another filter.
func (x *Exceptions) over(filter *Filter) *Exceptions {
	y := WithExceptions(filter)
	y.byHash, y.count, y.bytes = maps.Clone(x.byHash), x.count, x.bytes
	for h, keys := range y.byHash {
		y.byHash[h] = slices.Clone(keys)
	}
	return y
}

// Equal reports whether x and y have equal filters and the same exceptions.
func (x *Exceptions) Equal(y *Exceptions) bool {
	if x.count != y.count || x.bytes != y.bytes || !x.filter.Equal(y.filter) {
		return false
	}
	for h, keys := range x.byHash {
		for _, key := range keys {
			if !y.excepts(h, memory.StringBytes(key)) {
				return false
			}
		}
	}
	return true
}

// Clear empties the filter and the list.
func (x *Exceptions) Clear() {
	x.filter.Clear()
	clear(x.byHash)
	x.count, x.bytes = 0, 0
}

// Close closes the filter; see [Filter.Close].
func (x *Exceptions) Close() error { return x.filter.Close() }

func (x *Exceptions) String() string {
	return fmt.Sprintf("%v; %d exceptions", x.filter, x.count)
}

// SetSecret is [Hasher.SetSecret]. Until then exceptions are not found.
func (x *Exceptions) SetSecret(secret []byte) error {
	if err := x.filter.SetSecret(secret); err != nil {
		return err
	}
	x.rehash()
	return nil
}

// stored lays out the filter with the list after its bits: each key after its length, in
// ascending order, and zeros up to a whole word.
func (x *Exceptions) stored() *filterfile.File {
	s := x.filter.stored()
	var list []byte
	for _, key := range x.sorted() {
		list = binary.LittleEndian.AppendUint32(list, uint32(len(key)))
		list = append(list, key...)
	}
	list = append(list, make([]byte, -len(list)&7)...)
	words := make([]uint64, len(list)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(list[8*i:])
	}
	s.Kind = filterfile.KindExceptions
	sections := append(s.Sections, filterfile.Section{Kind: filterfile.SectionKeys, Blocks: uint64(x.count)})
	return filterfile.New(s.Header, s.Added, sections, append(s.Words, words))
}

func (x *Exceptions) sorted() []string {
	keys := make([]string, 0, x.count)
	for _, same := range x.byHash {
		keys = append(keys, same...)
	}
	slices.Sort(keys)
	return keys
}

func exceptionsFrom(s *filterfile.File) (*Exceptions, error) {
	if err := s.MustHold(filterfile.KindExceptions); err != nil {
		return nil, err
	}
	keys, err := decodeKeys(s.Words[1], s.Sections[1].Blocks)
	if err != nil {
		return nil, err
	}
	s.Kind = filterfile.KindFilter
	filter, err := filterFrom(s)
	if err != nil {
		return nil, err
	}
	x := WithExceptions(filter)
	x.byHash = make(map[uint64][]string, len(keys))
	for _, key := range keys {
		if err := checkExceptions(x.count+1, x.bytes+len(key)); err != nil {
			return nil, err
		}
		h := uint64(0) // until SetSecret, if it needs the secret
		if !filter.locked {
			if h = filter.HashString(key); !filter.ContainsHash(h) {
				return nil, fmt.Errorf("%w: the filter does not contain the exception %.100q", ErrFormat, key)
			}
		}
		x.put(h, key)
	}
	return x, nil
}

// decodeKeys parses the list.
func decodeKeys(words []uint64, count uint64) ([]string, error) {
	bad := fmt.Errorf("%w: the exceptions are not a list of %d keys in order", ErrFormat, count)
	bytes := make([]byte, 0, 8*len(words))
	for _, word := range words {
		bytes = binary.LittleEndian.AppendUint64(bytes, word)
	}
	text, list := string(bytes), bytes // keys share the one string
	keys := make([]string, 0, min(count, uint64(len(list)/4)))
	for range count {
		if len(list) < 4 {
			return nil, bad
		}
		n := uint64(binary.LittleEndian.Uint32(list))
		if list = list[4:]; uint64(len(list)) < n {
			return nil, bad
		}
		at := uint64(len(text) - len(list))
		key := text[at : at+n]
		list = list[n:]
		if len(keys) > 0 && keys[len(keys)-1] >= key {
			return nil, bad
		}
		keys = append(keys, key)
	}
	if len(list) > 7 || slices.ContainsFunc(list, func(b byte) bool { return b != 0 }) {
		return nil, bad
	}
	return keys, nil
}

// rehash stores every key by its hash. It drops keys that the bits do not contain, which
// could not be checked without the secret.
func (x *Exceptions) rehash() {
	keys := x.sorted()
	x.byHash, x.count, x.bytes = make(map[uint64][]string, len(keys)), 0, 0
	for _, key := range keys {
		if h := x.HashString(key); x.filter.ContainsHash(h) {
			x.put(h, key)
		}
	}
}

// mustBeUnlocked guards the methods that take hashes: without the secret those of the
// list are unknown.
func (x *Exceptions) mustBeUnlocked() {
	if x.locked && x.count > 0 {
		panic("bloom: the filter is keyed and has exceptions: call SetSecret first")
	}
}

// WriteTo writes filter and exceptions as a file; see [Filter.WriteTo].
func (x *Exceptions) WriteTo(w io.Writer) (int64, error) {
	defer x.filter.keepAlive()
	return x.stored().WriteTo(w)
}

// Save writes filter and exceptions to a file; see [Filter.Save].
func (x *Exceptions) Save(path string) error { return filterfile.Save(path, x.WriteTo) }

// ReadExceptions reads what [Exceptions.WriteTo] wrote; see [Read]. Exceptions take more
// memory than file, about a hundred bytes each; there are at most [MaxExceptions].
func ReadExceptions(r io.Reader, limitBytes int64) (*Exceptions, error) {
	return read(r, limitBytes, exceptionsFrom)
}

// LoadExceptions reads the file at path; see [Load].
func LoadExceptions(path string) (*Exceptions, error) { return load(path, exceptionsFrom) }
