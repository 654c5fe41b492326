package bloom

import (
	"errors"

	"github.com/bloomery/bloom/internal/memory"
	"github.com/bloomery/bloom/internal/sizing"
)

// Errors of sizing, returned by [Config.Plan] and every constructor.
var (
	// ErrConfig: a Config that does not determine a filter, or contradicts
	// itself.
	ErrConfig = sizing.ErrConfig

	// ErrRate: a false-positive rate that the layout or the 64-bit hash cannot
	// keep for so many keys.
	ErrRate = sizing.ErrRate

	// ErrBudget: the filter would need more bytes than it was allowed. The
	// message names the bytes.
	ErrBudget = sizing.ErrBudget

	// ErrFull: [Window.TryAddHashes] was given more keys than [Window.SetLimits]
	// allows in a generation.
	ErrFull = errors.New("bloom: the window is full")
)

// Errors of operations on two filters.
var (
	// ErrUnlike: the two filters differ in hash, seed, secret, k or size, so
	// their bits mean different things.
	ErrUnlike = errors.New("bloom: unlike filters")
)

// ErrNotContained is [Exceptions.Except]'s: the filter does not contain the key
// that is to be excepted, so there is nothing to except.
var ErrNotContained = errors.New("bloom: key not contained")

// Errors of reading a file.
var (
	// ErrFormat: the bytes are not a filter file, or a damaged one: bad magic,
	// an impossible field, a length that does not agree with the header.
	ErrFormat = errors.New("bloom: not a filter file")

	// ErrVersion: a filter file of a version, kind, scheme or hash this release
	// does not know.
	ErrVersion = errors.New("bloom: unknown version")

	// ErrChecksum: a stored checksum does not fit the bytes: the file was
	// damaged after it was written.
	ErrChecksum = errors.New("bloom: checksum mismatch")

	// ErrUnclean: the file is being changed in place, or who did was cut off, so
	// that its checksums are old; such an error wraps ErrChecksum, too. Opening it
	// for update mends it; see [OpenUpdate].
	ErrUnclean = errors.New("bloom: the file is being changed or was not closed cleanly")

	// ErrLimit: the file is larger than the limit that the caller gave.
	ErrLimit = errors.New("bloom: over limit")

	// ErrLocked: another process, or another filter of this one, has the file
	// open for update.
	ErrLocked = memory.ErrLocked

	// ErrSecret: the secret given is not the one the filter was made with.
	ErrSecret = errors.New("bloom: wrong secret")
)
