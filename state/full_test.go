package state

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// checkFailedSave saves a state too large for the disk, with a structure before
// it, and checks what is left. The state of save 2 must be there, with 1 behind
// it.
func checkFailedSave(s *Store, path string, cause error) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, putErr := s.PutStructure([]byte(`"` + strings.Repeat("x", 300_000) + `"`))
	large := sample(2000)
	for what, err := range map[string]error{"Save": s.Save(large), "PutStructure": putErr} {
		var se *SaveError
		if !errors.Is(err, cause) || !errors.As(err, &se) || !strings.Contains(err.Error(), "the state saved before is intact") {
			return fmt.Errorf("error of %s is %w", what, err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		return fmt.Errorf("the state file has changed: %w", err)
	}
	if _, err := Load(path); err != nil {
		return err
	}
	if _, err := Load(path + ".bak"); err != nil {
		return err
	}
	left, _ := filepath.Glob(path + "*.tmp")
	if len(left) > 0 {
		return fmt.Errorf("Save left %v", left)
	}
	return nil
}

// helperFull runs into a limit of 64 KiB for a file.
func helperFull(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	for rows := range int64(2) {
		if err := s.Save(withRows(rows)); err != nil {
			return err
		}
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 1 << 30}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := checkFailedSave(s, path, syscall.EFBIG); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := s.Save(sample(2000)); err != nil {
		return err
	}
	fmt.Println("ok")
	return nil
}

func TestFileSizeLimitWhileSaving(t *testing.T) {
	if got := startHelper(t, "full", newPath(t)).line(t); got != "ok" {
		t.Error(got)
	}
}
