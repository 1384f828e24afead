package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// frozen tells whether every thread of a process has stopped: kill(2) returns
// before that.
func frozen(pid int) bool {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		// the state follows the name, which stands in brackets and may hold any
		state := bytes.LastIndexByte(stat, ')') + 2
		if err != nil || state >= len(stat) || stat[state] != 'T' {
			return false
		}
	}
	return true
}
