package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/copydb/copydb/copydb"
)

// Profiles are answered as long as the run goes on, and a request that takes
// longer does not hold up its end.
func TestProfiles(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var client http.Client
	defer client.CloseIdleConnections()
	var url string
	stderr := &syncBuffer{}
	run := func(context.Context, copydb.Options) error {
		m := regexp.MustCompile(`profiles are at (http://127\.0\.0\.1:\d+/debug/pprof/)`).FindStringSubmatch(stderr.String())
		if m == nil {
			return fmt.Errorf("no address in %q", stderr.String())
		}
		url = m[1]
		for path, want := range map[string]string{"": "goroutine", "goroutine?debug=1": "goroutine profile: total", "cmdline": "", "symbol": "num_symbols"} {
			if got := get(t, &client, url+path); !strings.Contains(got, want) {
				t.Errorf("%s: %.200q", path, got)
			}
		}
		go func() {
			if res, err := client.Get(url + "trace?seconds=30"); err == nil {
				res.Body.Close()
			}
		}()
		for !strings.Contains(get(t, &client, url+"goroutine?debug=2"), "pprof.Trace(") {
			if t.Context().Err() != nil {
				return errors.New("the request does not come")
			}
		}
		return nil
	}
	began := time.Now()
	p := &program{stdin: strings.NewReader(""), console: newConsole(io.Discard, stderr), started: began,
		notify: noSignals, work: work{run: run}}
	if code := p.execute(t.Context(), small("--pprof", "127.0.0.1:0", "--state", t.TempDir()+"/s")); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
	if res, err := client.Get(url); err == nil {
		res.Body.Close()
		t.Error("profiles are answered behind the end of the run")
	}
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v", url, res.Status, err)
	}
	return string(text)
}

// An address that is taken is a usage error, before anything is contacted.
func TestProfilesAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := caller{}.call(t, small("--pprof", l.Addr().String())...)
	if got.code != copydb.ExitUsage || got.opt != nil || !strings.Contains(got.stderr, "--pprof: cannot listen: ") || !strings.Contains(got.stderr, "address already in use") {
		t.Errorf("exit %d, stderr %q", got.code, got.stderr)
	}
}
