package lines

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen enlarges a pipe's buffer to a whole block. With the default of 64 KiB, reader
// and writer wake each other four times as often: reading 780 MB from cat took 0.54 s
// without widen and 0.41 s with it; a MiB was slower again. If the system refuses,
// nothing changes.
func widen(file *os.File) {
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, BlockBytes) })
}
