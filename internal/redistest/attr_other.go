//go:build !linux

package redistest

import "syscall"

var dieWithUs *syscall.SysProcAttr
