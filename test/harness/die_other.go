//go:build !linux

package harness

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
