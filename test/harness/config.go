package harness

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// The account that copydb logs in with on both servers.
const (
	User     = "copydb"
	Password = "s3cret-of-the-tests"
)

// Config says what a migration's configuration file has.
type Config struct {
	// Include and Exclude are the selection.
	Include, Exclude []string
	// SourceAddr and TargetAddr, "host:port", stand in for the servers' own
	// addresses, for a proxy.
	SourceAddr, TargetAddr string
	// User and Password stand in for the account of the harness, which then
	// makes none.
	User, Password string
	// SourceExtra and TargetExtra are further keys of the two servers, as in
	// "network_timeout: 2s".
	SourceExtra, TargetExtra []string
	// Extra are further keys at top level, as in "stop_timeout: 2s" or
	// "snapshot: {threads: 2}".
	Extra []string
	// Env is for all processes of the migration.
	Env []string
	// Build is the binary; Release without it.
	Build Build
}

// yaml writes the configuration.
func (c Config) yaml(source, target string) string {
	var b strings.Builder
	for _, side := range []struct {
		name, addr string
		extra      []string
	}{{"source", source, c.SourceExtra}, {"target", target, c.TargetExtra}} {
		host, port, _ := net.SplitHostPort(side.addr)
		fmt.Fprintf(&b, "%s:\n  host: %s\n  port: %s\n  user: %s\n  password: %s\n", side.name, host, port, quoted(c.User), quoted(c.Password))
		for _, line := range side.extra {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	fmt.Fprintf(&b, "tables:\n  include: %s\n", list(c.Include))
	if len(c.Exclude) > 0 {
		fmt.Fprintf(&b, "  exclude: %s\n", list(c.Exclude))
	}
	for _, line := range c.Extra {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// quoted writes text as a JSON string, which YAML reads, too.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("text as JSON: %v", err)) // cannot be: it is a string
	}
	return string(raw)
}

func list(items []string) string {
	var all []string
	for _, i := range items {
		all = append(all, quoted(i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Literal returns a pattern that selects exactly one database's tables,
// whatever its name has in it.
func Literal(database string) string {
	return "`" + strings.ReplaceAll(database, "`", "``") + "`.*"
}
