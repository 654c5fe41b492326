package lines

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen makes room in a pipe for a whole block. With a pipe's default of 64 KiB,
// reader and writer wake each other four times as often: reading 780 MB from cat took
// 0.54 s, and 0.41 s with this; a MiB was slower again. A refusal does no harm.
func widen(file *os.File) {
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, BlockBytes) })
}
