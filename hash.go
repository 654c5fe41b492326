package bloom

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/scheme"
	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
	"github.com/zeebo/xxh3"
)

// HashAlgorithm is a function that turns a key into 64 bits. The numbers are stored in
// files and never change meaning.
type HashAlgorithm uint8

const (
	// XXH3 is XXH3-64 with a public 64-bit seed, the default: fast, and files
	// made with it can be exchanged. It is no defence against chosen keys: some
	// published pairs of keys collide for most seeds.
	XXH3 HashAlgorithm = 1

	// SipHash is SipHash-2-4 with a secret of 16 bytes, for keys chosen by
	// strangers: without the secret nobody can craft keys that are found without
	// having been added.
	SipHash HashAlgorithm = 2

	// XXH64 is XXH64 with a public 64-bit seed: Apache Parquet's hash, for
	// [SplitBlock].
	XXH64 HashAlgorithm = 3

	// Murmur64A is MurmurHash64A with a public 64-bit seed: RedisBloom's hash, for
	// [Cuckoo].
	Murmur64A HashAlgorithm = 4
)

func (a HashAlgorithm) String() string {
	switch a {
	case XXH3:
		return "xxh3"
	case SipHash:
		return "siphash-2-4"
	case XXH64:
		return "xxh64"
	case Murmur64A:
		return "murmur64a"
	}
	return fmt.Sprintf("hash %d", uint8(a))
}

// SecretBytes is the length of a SipHash secret.
const SecretBytes = 16

// HashIdentity says which hash function filled a filter. Two filters can be
// combined, and one hash of a key serves both, only when their identities are
// equal. It holds nothing secret.
type HashIdentity struct {
	Algorithm HashAlgorithm
	Key       uint64 // XXH3: the seed. SipHash: a fingerprint of the secret.
}

func (id HashIdentity) String() string {
	if id.Algorithm == SipHash {
		return fmt.Sprintf("%v, secret fingerprint %016x", id.Algorithm, id.Key)
	}
	return fmt.Sprintf("%v, seed %d", id.Algorithm, id.Key)
}

// Hasher hashes the keys of a filter. Every kind embeds one, so all filters have these
// methods. A filter from a file with a SipHash identity is locked until
// [Hasher.SetSecret]. Hashing a key with the zero Hasher panics.
type Hasher struct {
	id     HashIdentity
	locked bool
	k0, k1 uint64 // the secret
}

// NewHasher returns the hash of filters with this seed or, if it is not nil, this
// secret. The error wraps [ErrConfig].
func NewHasher(seed uint64, secret []byte) (Hasher, error) {
	if secret == nil {
		return Hasher{id: HashIdentity{XXH3, seed}}, nil
	}
	if len(secret) != SecretBytes {
		return Hasher{}, fmt.Errorf("%w: a secret has %d bytes, not %d", ErrConfig, SecretBytes, len(secret))
	}
	if seed != 0 {
		return Hasher{}, fmt.Errorf("%w: give Seed or Secret, not both: a secret takes the seed's place", ErrConfig)
	}
	h := Hasher{
		k0: binary.LittleEndian.Uint64(secret),
		k1: binary.LittleEndian.Uint64(secret[8:]),
	}
	h.id = HashIdentity{SipHash, siphash.Hash(h.k0, h.k1, []byte("bloomery: fingerprint of a secret"))}
	return h, nil
}

// Hasher returns the hash of that identity. For SipHash it is locked until
// [Hasher.SetSecret], as for a filter from a file.
func (id HashIdentity) Hasher() Hasher {
	return Hasher{id: id, locked: id.Algorithm == SipHash}
}

// stored is the identity as files have it, and hashIdentity the way back.
func (id HashIdentity) stored() filterfile.Hash {
	return filterfile.Hash{Algorithm: uint32(id.Algorithm), Key: id.Key}
}

func hashIdentity(h filterfile.Hash) HashIdentity {
	return HashIdentity{HashAlgorithm(h.Algorithm), h.Key} // below 256: filterfile knows it
}

// HashIdentity returns the filter's hash function. It is zero for a filter of package
// classic whose scheme has a hash of its own.
func (h *Hasher) HashIdentity() HashIdentity { return h.id }

// NeedsSecret reports whether the filter is keyed and comes from a file: hashing a key
// panics until SetSecret.
func (h *Hasher) NeedsSecret() bool { return h.locked }

// SetSecret gives a keyed filter from a file the secret that it was made with: files
// hold only its fingerprint. Until then adding, looking up and hashing keys panics;
// reports and set operations work. It must run before other goroutines use the filter.
// The error wraps [ErrSecret] if the secret is a different one, and then nothing has
// changed.
func (h *Hasher) SetSecret(secret []byte) error {
	if h.id.Algorithm != SipHash {
		return fmt.Errorf("%w: the filter was made without a secret", ErrSecret)
	}
	given, err := NewHasher(0, secret)
	if err != nil {
		return err
	}
	if given.id != h.id {
		return fmt.Errorf("%w: its fingerprint is %016x, the filter's %016x", ErrSecret, given.id.Key, h.id.Key)
	}
	*h = given
	return nil
}

// Hash returns the hash of key for AddHash, ContainsHash and the like. It serves every
// filter of the same [HashIdentity].
func (h *Hasher) Hash(key []byte) uint64 {
	switch {
	case h.isShort(key):
		return kernel.XXH3Of9to16(key, h.id.Key)
	case h.id.Algorithm == XXH3:
		return xxh3.HashSeed(key, h.id.Key)
	}
	return h.slowBytes(key)
}

// isShort reports whether to hash key by kernel.XXH3Of9to16. The single-key methods of Filter
// check it themselves: that saves them a call, an eighth of their time.
func (h *Hasher) isShort(key []byte) bool {
	return h.id.Algorithm == XXH3 && len(key) >= 9 && len(key) <= 16
}

// inKernel reports whether the kernel hashes key and probes in one call.
func (h *Hasher) inKernel(key []byte) bool {
	return h.id.Algorithm == XXH3 && len(key) <= kernel.MaxXXH3
}

// slowBytes is Hash for every hash but the default.
func (h *Hasher) slowBytes(key []byte) uint64 {
	switch {
	case h.id == (HashIdentity{XXH64, 0}):
		return xxhash.Sum64(key)
	case h.id.Algorithm == XXH64:
		var d xxhash.Digest
		d.ResetWithSeed(h.id.Key)
		d.Write(key)
		return d.Sum64()
	case h.id.Algorithm == Murmur64A:
		return scheme.Murmur64A(key, h.id.Key)
	case h.id.Algorithm != SipHash:
		panic("bloom: no hash of a key by a zero Hasher: make the filter with New, Load or the like")
	case h.locked:
		panic("bloom: the filter is keyed: call SetSecret before hashing keys")
	}
	return siphash.Hash(h.k0, h.k1, key)
}

// HashString is Hash for a string: the same bytes have the same hash.
func (h *Hasher) HashString(key string) uint64 { return h.Hash(memory.StringBytes(key)) }

// integer hashes the eight little-endian bytes of key.
func (h *Hasher) integer(key uint64) uint64 {
	if h.id.Algorithm == XXH3 {
		return xxh3Of8(key, h.id.Key)
	}
	return h.slowBytes(uint64Bytes(key))
}

// uint64Bytes is what Hasher.integer hashes. It is small enough to be inlined, so the
// bytes stay on the caller's stack.
func uint64Bytes(key uint64) []byte { return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), key) }

// xxh3Of8 is XXH3-64 of the eight little-endian bytes of key, as specified, without a
// call.
func xxh3Of8(key, seed uint64) uint64 {
	const (
		secret8x16 = 0xc73ab174c5ecd5a2 // bytes 8 to 15 of XXH3's secret, exclusive or 16 to 23
		prime      = 0x9fb21c651e98df25
	)
	seed ^= uint64(bits.ReverseBytes32(uint32(seed))) << 32
	h := bits.RotateLeft64(key, 32) ^ (secret8x16 - seed)
	h = (h ^ bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)) * prime
	h = (h ^ (h>>35 + 8)) * prime
	return h ^ h>>28
}

// fillBytes sets hashes[i] to the hash of keys[i].
func (h *Hasher) fillBytes(hashes []uint64, keys [][]byte) {
	seed := h.id.Key
	switch {
	case h.id.Algorithm == XXH3:
		if kernel.XXH3Bytes(hashes, keys, seed) == 0 {
			return
		}
		for i, key := range keys {
			if len(key) > kernel.MaxXXH3 {
				hashes[i] = xxh3.HashSeed(key, seed)
			}
		}
	case h.id.Algorithm == XXH64 && seed == 0:
		for i, key := range keys {
			hashes[i] = xxhash.Sum64(key)
		}
	case h.id.Algorithm == SipHash && !h.locked:
		kernel.SipHashBytes(hashes, keys, h.k0, h.k1)
	default:
		for i, key := range keys {
			hashes[i] = h.slowBytes(key)
		}
	}
}

// fillStrings is fillBytes for strings.
func (h *Hasher) fillStrings(hashes []uint64, keys []string) {
	switch {
	case h.id.Algorithm == SipHash && !h.locked:
		kernel.SipHashStrings(hashes, keys, h.k0, h.k1)
		return
	case h.id.Algorithm != XXH3:
		for i, key := range keys {
			hashes[i] = h.slowBytes(memory.StringBytes(key))
		}
		return
	}
	if kernel.XXH3Strings(hashes, keys, h.id.Key) == 0 {
		return
	}
	for i, key := range keys {
		if len(key) > kernel.MaxXXH3 {
			hashes[i] = xxh3.HashStringSeed(key, h.id.Key)
		}
	}
}
