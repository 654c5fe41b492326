package store

// This file encapsulates a Linux system call. Without it, snapshots are begun that do
// not fit, and fail in the end: see room_other.go.

import "golang.org/x/sys/unix"

// room returns the number of bytes that can still be written to the file system, if
// known.
func (d directory) room() (bytes uint64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(string(d), &s); err != nil || s.Bsize <= 0 || s.Blocks == 0 { // some file systems do not say
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
