package memory

// This file encapsulates what only Linux has: huge pages, and touching memory
// by a system call. The twin without them is mmap_portable.go.

import "golang.org/x/sys/unix"

const hugePage = 2 << 20

// wantHugePages asks for pages of 2 MiB: with 4 KiB pages each random look
// misses the TLB as well as the cache, which costs 1.5 to 3 times the time at
// gigabytes. Where the system has none to give, nothing changes.
func wantHugePages(b []byte) { unix.Madvise(b, unix.MADV_HUGEPAGE) }

// populate makes the system provide all pages of b. It is false where the
// system cannot (before Linux 5.14).
func populate(b []byte) bool { return unix.Madvise(b, unix.MADV_POPULATE_WRITE) == nil }
