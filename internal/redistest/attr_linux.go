package redistest

import "syscall"

// dieWithUs ends the servers also if the tests are killed.
var dieWithUs = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
