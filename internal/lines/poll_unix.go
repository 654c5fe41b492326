//go:build unix

package lines

import (
	"os"

	"golang.org/x/sys/unix"
)

// readable reports whether a read from a pipe, terminal or socket returns at once,
// because bytes have arrived or the stream has ended. If poll does not know, the answer
// is no, which costs an early flush.
func readable(file *os.File) bool {
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	var fds [1]unix.PollFd
	err = conn.Control(func(fd uintptr) {
		fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		unix.Poll(fds[:], 0)
	})
	return err == nil && fds[0].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR) != 0
}
