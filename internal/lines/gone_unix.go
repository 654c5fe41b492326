//go:build unix

package lines

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often we check that our output has a reader, while there is nothing
// to write.
const lookEvery = 500 * time.Millisecond

// WatchReader calls gone when stdout no longer has a reader, and returns a function that
// ends the watch. A write would fail then; but `yes | bloomery dedupe | head -1` writes
// nothing after the first line, and would never end.
func WatchReader(stdout io.Writer, gone func()) (stop func()) {
	file, ok := stdout.(*os.File)
	if !ok {
		return func() {}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return func() {}
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			var fds [1]unix.PollFd // requests no events: errors are always reported
			err := conn.Control(func(fd uintptr) {
				fds[0].Fd = int32(fd)
				unix.Poll(fds[:], 0)
			})
			if err != nil || fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				gone()
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
