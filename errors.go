package bloom

import (
	"errors"

	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/sizing"
)

// Errors of sizing, returned by [Config.Plan] and every constructor.
var (
	// ErrConfig: a Config does not determine a filter, or contradicts itself.
	ErrConfig = sizing.ErrConfig

	// ErrRate: the layout or the 64-bit hash cannot keep the false-positive rate
	// for that many keys.
	ErrRate = sizing.ErrRate

	// ErrBudget: the filter would need more memory than it may have. The message
	// says how much.
	ErrBudget = memory.ErrBudget

	// ErrFull: a key was not added, because there is no room for it. Either a [Cuckoo]
	// is full and does not grow; or a store limits a [Window], and its newest generation
	// has as many keys as it may have, see [Inside].
	ErrFull = errors.New("bloom: the filter is full")

	// ErrLayers: a [Cuckoo] has [MaxCuckooLayers] layers, and takes no more keys until
	// removals have made one of them superfluous.
	ErrLayers = errors.New("bloom: the filter has as many layers as it may have")
)

// Errors of operations on two filters.
var (
	// ErrUnlike: the two filters differ in hash, seed, secret, k or size, so
	// their bits mean different things.
	ErrUnlike = errors.New("bloom: unlike filters")
)

// ErrNotContained is the error of [Exceptions.Except] for a key that the filter does
// not contain, so that there is nothing to except.
var ErrNotContained = errors.New("bloom: key not contained")

// Errors of reading a file.
var (
	// ErrFormat: the bytes are not a filter file, or a damaged one: bad magic,
	// an impossible field, or a length that contradicts the header.
	ErrFormat = filterfile.ErrFormat

	// ErrVersion: this release does not know the file's version, kind, scheme or
	// hash.
	ErrVersion = filterfile.ErrVersion

	// ErrChecksum: a stored checksum does not match the bytes: the file was damaged
	// after it was written.
	ErrChecksum = filterfile.ErrChecksum

	// ErrUnclean: the file is being changed in place, or its writer was cut off, so
	// its checksums are old; such an error wraps ErrChecksum, too. Opening it for
	// update repairs it; see [OpenUpdate].
	ErrUnclean = filterfile.ErrUnclean

	// ErrLimit: the file is larger than the limit that the caller gave.
	ErrLimit = filterfile.ErrLimit

	// ErrLocked: another process, or another filter of this one, has the file
	// open for update.
	ErrLocked = memory.ErrLocked

	// ErrSecret: the secret is not the one that the filter was made with.
	ErrSecret = errors.New("bloom: wrong secret")
)
