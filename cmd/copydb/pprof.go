package main

import (
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/copydb/copydb/internal/group"
)

// profiler answers the profiles of this process over HTTP, while a run goes on.
type profiler struct {
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

// checkLoopback refuses all but addresses of this very machine: nobody is asked
// for a password.
func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("--pprof must be an address as 127.0.0.1:6060")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--pprof takes only loopback addresses, as 127.0.0.1:6060: there is no password")
	}
	return nil
}

func startProfiler(addr string) (*profiler, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("--pprof: cannot listen: %v", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	p := &profiler{l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = group.Call("the profiler", func() error { return p.server.Serve(l) }) // ends with close
	}()
	return p, nil
}

// url is where a browser or go tool pprof finds it.
func (p *profiler) url() string { return "http://" + p.listener.Addr().String() + "/debug/pprof/" }

// close ends the listener and all requests, also those that are being answered.
func (p *profiler) close() {
	_ = p.server.Close() // of what was only read
	<-p.ended
}
