package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Throttle says when to slow down.
type Throttle struct {
	MaxBytesPerSecond       int64 // 0 = no limit
	SourceMaxThreadsRunning int   // 0 = no limit
	TargetReplicas          []string
	TargetReplicaMaxLag     time.Duration
}

// defaultPort is where servers listen.
const defaultPort = 3306

// Replicas are the replicas of the target that are watched. They are reached as
// the target is, but for the address.
func (c *Config) Replicas() ([]Server, error) {
	var out []Server
	for _, text := range c.Throttle.TargetReplicas {
		host, port, err := splitAddress(text)
		if err != nil {
			return nil, err
		}
		s := c.Target.Server
		s.Host, s.Port, s.Socket = host, port, ""
		out = append(out, s)
	}
	return out, nil
}

// splitAddress takes host, host:port, and an IPv6 address with or without
// brackets.
func splitAddress(text string) (string, int, error) {
	if net.ParseIP(text) != nil || text != "" && !strings.ContainsAny(text, ":/@ []") {
		return text, defaultPort, nil
	}
	host, port, err := net.SplitHostPort(text)
	n, nerr := strconv.ParseUint(port, 10, 16)
	if err != nil || nerr != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ") {
		return "", 0, fmt.Errorf("an element must be a host or host:port; user and password are those of the target")
	}
	return host, int(n), nil
}

func (t *Throttle) check(c *Config, at place, bad *problems) {
	const key = "throttle.target_replicas"
	if _, err := c.Replicas(); err != nil {
		bad.add(at.of(key), "%s: %v", key, err)
	}
}
