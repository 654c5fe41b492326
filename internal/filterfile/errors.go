package filterfile

import "errors"

// The errors of reading a file. Package bloom exports them under the same names.
var (
	// ErrFormat: the bytes are not a filter file, or a damaged one.
	ErrFormat = errors.New("bloom: not a filter file")

	// ErrVersion: a version, kind, scheme or hash that this release does not know.
	ErrVersion = errors.New("bloom: unknown version")

	// ErrChecksum: a stored checksum does not match the bytes.
	ErrChecksum = errors.New("bloom: checksum mismatch")

	// ErrUnclean: the file is being changed in place, or its writer was cut off, so
	// its checksums are old. It always comes with ErrChecksum.
	ErrUnclean = errors.New("bloom: the file is being changed or was not closed cleanly")

	// ErrLimit: the file, or its metadata, is larger than allowed.
	ErrLimit = errors.New("bloom: over limit")
)
