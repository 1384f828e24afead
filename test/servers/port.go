package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
)

const lowestPort = 10000

var reserved struct {
	sync.Mutex
	ports map[int]bool
}

// freePort returns a port of 127.0.0.1 that nobody listens on and that no
// other server of this process has. It lies below the range that the kernel
// takes the ports of outgoing connections from: else a client could sit on a
// server's port while the server restarts, or be connected to itself.
func freePort() (int, error) {
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.ports == nil {
		reserved.ports = map[int]bool{}
	}
	high := ephemeralStart()
	for range 200 {
		port := lowestPort + rand.IntN(high-lowestPort)
		if reserved.ports[port] || !canListen(port) {
			continue
		}
		reserved.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("find a free port between %d and %d: none in 200 tries", lowestPort, high)
}

func releasePort(port int) {
	reserved.Lock()
	defer reserved.Unlock()
	delete(reserved.ports, port)
}

func canListen(port int) bool {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return false
	}
	_ = l.Close() // it was only a question
	return true
}

func ephemeralStart() int {
	const usual = 32768
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	var low, high int
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil || low < lowestPort+1000 {
		return usual
	}
	return low
}
