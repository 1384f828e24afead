package state

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLockNamesHolder(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	host, _ := os.Hostname()
	_, err := Open(path)
	fe := asFileError(t, err, ErrHeld)
	if want := (Holder{Host: host, PID: os.Getpid(), StartedAt: testTime}); fe.Holder == nil || *fe.Holder != want {
		t.Errorf("holder is %+v, want %+v", fe.Holder, want)
	}
	for _, want := range []string{host, strconv.Itoa(os.Getpid()), "2026-03-04T05:06:07Z"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	st := withRows(1)
	mustSave(t, s, st)
	_, err = Open(path)
	if fe := asFileError(t, err, ErrHeld); fe.Holder.RunID != st.RunID || !strings.Contains(err.Error(), st.RunID) {
		t.Errorf("run %q is not in %q", st.RunID, err)
	}
}

func TestLockFileStaysAndIsRewritten(t *testing.T) {
	path := newPath(t)
	mustWrite(t, path+".lock", `{"host":"elsewhere","pid":1,"run_id":"`+strings.Repeat("f", 500)+`"}`)
	s := openStore(t, path)
	var h Holder
	if err := json.Unmarshal([]byte(mustRead(t, path+".lock")), &h); err != nil || h.PID != os.Getpid() {
		t.Errorf("lock file names %+v, %v", h, err)
	}
	before, _ := os.Stat(path + ".lock")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path + ".lock"); err != nil || !os.SameFile(before, after) {
		t.Errorf("lock file did not stay: %v", err)
	}
}

func TestLockWhoseHolderIsSilent(t *testing.T) {
	path := newPath(t)
	openStore(t, path)
	mustWrite(t, path+".lock", "")
	_, err := Open(path)
	if fe := asFileError(t, err, ErrHeld); fe.Holder != nil {
		t.Errorf("holder is %+v", fe.Holder)
	}
}

func TestLockIsNoSymlink(t *testing.T) {
	path := newPath(t)
	mustWrite(t, path+".precious", "precious")
	if err := os.Symlink(path+".precious", path+".lock"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	asFileError(t, err, ErrNotWritable)
	if got := mustRead(t, path+".precious"); got != "precious" {
		t.Errorf("the file behind the link reads %q", got)
	}
}

func TestLockOfAnotherProcess(t *testing.T) {
	path := newPath(t)
	child := startHelper(t, "hold", path)
	child.line(t)
	refused := func(when string) {
		t.Helper()
		_, err := Open(path)
		if fe := asFileError(t, err, ErrHeld); fe.Holder == nil || fe.Holder.PID != child.Process.Pid {
			t.Errorf("%s: holder is %+v, want process %d", when, fe.Holder, child.Process.Pid)
		} else if age := time.Since(fe.Holder.StartedAt); age < 0 || age > time.Minute {
			t.Errorf("%s: held since %s", when, fe.Holder.StartedAt)
		}
	}
	refused("running")

	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("wait for the stop: %v, status %v", err, status)
	}
	refused("stopped")

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	openStore(t, path)
}
