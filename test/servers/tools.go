package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

var mydumperRelease = release{"mydumper-bookworm", "bookworm", []string{"mydumper"}}

// MyDumper is the pair mydumper and myloader: the machine's own, or Debian's in
// a private root.
type MyDumper struct {
	Version string // as in "0.10.1"

	loader  []string
	bin     string
	plugins string // folder of the client library's plugins, empty for the machine's own
}

// LocateMyDumper fetches the programs where the machine has none of its own.
func LocateMyDumper(ctx context.Context) (*MyDumper, error) {
	m := &MyDumper{}
	if path, err := exec.LookPath("mydumper"); err == nil {
		m.bin = filepath.Dir(path)
	} else {
		root, err := fetch(ctx, mydumperRelease)
		if err != nil {
			return nil, err
		}
		if m.loader, err = rootLoader(root); err != nil {
			return nil, err
		}
		m.bin = filepath.Join(root, "usr", "bin")
		found, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu*", "libmariadb3", "plugin"))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("find the plugins of mydumper's client library: %d folders in %s", len(found), root)
		}
		m.plugins = found[0]
	}
	return m, m.identify(ctx)
}

var mydumperVersion = regexp.MustCompile(`^mydumper v?([0-9.]+[0-9])`)

func (m *MyDumper) identify(ctx context.Context) error {
	argv := append(append([]string{}, m.loader...), filepath.Join(m.bin, "mydumper"), "--version")
	out, err := output(ctx, argv[0], argv[1:]...)
	if err != nil {
		return err
	}
	found := mydumperVersion.FindStringSubmatch(out)
	if found == nil {
		return fmt.Errorf("read version of mydumper: %q names none", tail(out, 200))
	}
	m.Version = found[1]
	return nil
}

// Command prepares a call of mydumper or myloader that logs in to the server as
// the super user.
func (m *MyDumper) Command(ctx context.Context, program string, srv *Server, args ...string) *exec.Cmd {
	argv := append(append([]string{}, m.loader...), filepath.Join(m.bin, program),
		"--host="+srv.Host, fmt.Sprintf("--port=%d", srv.Port), "--user="+srv.RootUser)
	argv = append(argv, args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if m.plugins != "" {
		cmd.Env = append(os.Environ(), "MARIADB_PLUGIN_DIR="+m.plugins)
	}
	return cmd
}
