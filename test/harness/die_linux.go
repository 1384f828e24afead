package harness

import "syscall"

// dieWithParent lets the kernel kill the process when the thread that started
// it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
