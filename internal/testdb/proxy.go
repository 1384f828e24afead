package testdb

import (
	"net"
	"sync"
	"testing"
)

// Relay is a TCP proxy that breaks on purpose.
type Relay struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu     sync.Mutex
	target string
	closed bool
	gate   chan struct{} // closed while bytes may pass
	conns  map[net.Conn]bool
}

// Proxy starts a proxy on a free port of 127.0.0.1 to an address "host:port".
// It ends with the test.
func Proxy(t testing.TB, addr string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	r := &Relay{target: addr, listener: listener, gate: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(r.gate)
	r.wait.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// Addr returns where the proxy listens, as "127.0.0.1:port".
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Port returns the proxy's port.
func (r *Relay) Port() int { return r.listener.Addr().(*net.TCPAddr).Port }

// Pause lets no more byte pass in either direction. Connections stay open, new
// ones are accepted and hear nothing.
func (r *Relay) Pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isClosed(r.gate) {
		r.gate = make(chan struct{})
	}
}

// Resume lets bytes pass again, those that were held back first.
func (r *Relay) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isClosed(r.gate) {
		close(r.gate)
	}
}

// Redirect sends connections that are made from now on to another address.
// Those that are there stay.
func (r *Relay) Redirect(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = addr
}

func (r *Relay) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.target
}

// CutAll closes all connections on both sides, without what is held back. New
// ones are accepted.
func (r *Relay) CutAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close() // the error is wanted
	}
}

// Connections returns how many clients are connected.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns) / 2
}

func (r *Relay) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	_ = r.listener.Close()
	r.CutAll()
	r.Resume()
	r.wait.Wait()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wait.Go(func() { r.serve(client) })
	}
}

func (r *Relay) serve(client net.Conn) {
	server, err := net.Dial("tcp", r.address())
	if err != nil {
		_ = client.Close()
		return
	}
	if !r.add(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.pass(client, server) })
	both.Go(func() { r.pass(server, client) })
	both.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, client)
	delete(r.conns, server)
}

// add registers the two ends, or closes them if the proxy is closed.
func (r *Relay) add(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ends {
		if r.closed {
			_ = c.Close()
		} else {
			r.conns[c] = true
		}
	}
	return !r.closed
}

// pass copies one direction until either end is gone, and then closes both.
func (r *Relay) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			<-r.current()
			if _, err := to.Write(buf[:n]); err != nil {
				<-r.current()
				return
			}
		}
		if err != nil {
			<-r.current() // a close, or a reset, is held back like the bytes before it
			return
		}
	}
}

func (r *Relay) current() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gate
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
