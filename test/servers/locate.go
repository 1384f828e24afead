package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Binaries is one installation of a server and its own client tools.
type Binaries struct {
	Family  Family
	Version string // as in "9.7.4" or "10.11.14"
	Fetched bool   // from a private root, not from the machine

	loader []string // dynamic loader with its library path, in front of any program; empty for the machine's own
	server string   // path of mysqld or mariadbd
	base   string   // what --basedir gets
}

// The variables that name a server of the tester's own.
var serverVariables = []string{"COPYDB_TEST_MYSQLD", "COPYDB_TEST_MARIADBD"}

// Locate returns the binaries for a kind: those named by COPYDB_TEST_MYSQLD or
// COPYDB_TEST_MARIADBD if they are of the kind's family, else those on PATH
// (for MariaDB only if major.minor is the kind's), else the fetched ones, for
// which the first call of a machine needs the network and some ten seconds.
func Locate(ctx context.Context, kind Kind) (*Binaries, error) {
	sp, ok := specs[kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind of server %q", kind)
	}
	b, err := named(ctx, sp)
	if b != nil || err != nil {
		return b, err
	}
	if b := onPath(ctx, sp); b != nil {
		return b, nil
	}
	root, err := fetch(ctx, sp.release)
	if err != nil {
		return nil, err
	}
	return fetched(ctx, root, sp)
}

// named returns the server that the environment names for the family, or nil.
// A variable that names something else than a server is an error.
func named(ctx context.Context, sp spec) (*Binaries, error) {
	for _, v := range serverVariables {
		path := os.Getenv(v)
		if path == "" {
			continue
		}
		b, err := identify(ctx, nil, path)
		if err != nil {
			return nil, fmt.Errorf("use server named by %s: %w", v, err)
		}
		if b.Family == sp.family {
			return b, nil
		}
	}
	return nil, nil
}

func onPath(ctx context.Context, sp spec) *Binaries {
	for _, name := range []string{"mariadbd", "mysqld"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		b, err := identify(ctx, nil, path)
		if err == nil && b.Family == sp.family && (sp.family == FamilyMySQL || b.majorMinor() == sp.version) {
			return b
		}
	}
	return nil
}

func fetched(ctx context.Context, root string, sp spec) (*Binaries, error) {
	loader, err := rootLoader(root)
	if err != nil {
		return nil, err
	}
	name := "mysqld"
	if sp.family == FamilyMariaDB {
		name = "mariadbd"
	}
	b, err := identify(ctx, loader, filepath.Join(root, "usr", "sbin", name))
	if err != nil {
		return nil, err
	}
	if b.Family != sp.family || b.majorMinor() != sp.version {
		return nil, fmt.Errorf("the Debian suite %s has %s %s now, want %s", sp.release.suite, b.Family, b.Version, sp.version)
	}
	b.Fetched = true
	return b, nil
}

// rootLoader returns how a program of a private root is run: by the root's own
// dynamic loader with the root's own libraries.
func rootLoader(root string) ([]string, error) {
	for _, lib := range []string{"usr/lib", "lib"} {
		found, err := filepath.Glob(filepath.Join(root, lib, "*-linux-gnu*", "ld-linux*.so.*"))
		if err != nil || len(found) == 0 {
			continue
		}
		triplet := filepath.Base(filepath.Dir(found[0]))
		path := filepath.Join(root, "lib", triplet) + ":" + filepath.Join(root, "usr", "lib", triplet)
		return []string{found[0], "--library-path", path}, nil
	}
	return nil, fmt.Errorf("no dynamic loader in %s", root)
}

var versionPattern = regexp.MustCompile(`\bVer ([0-9]+\.[0-9]+\.[0-9]+)(\S*)`)

// identify asks a server binary what it is. The name of the file says nothing:
// Debian's MariaDB package installs a mysqld, too.
func identify(ctx context.Context, loader []string, server string) (*Binaries, error) {
	argv := append(append([]string{}, loader...), server, "--no-defaults", "--version")
	out, err := output(ctx, argv[0], argv[1:]...)
	if err != nil {
		return nil, err
	}
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("read version of %s: %q names none", server, strings.TrimSpace(out))
	}
	b := &Binaries{Family: FamilyMySQL, Version: m[1], loader: loader, server: server,
		base: filepath.Dir(filepath.Dir(server))}
	if strings.Contains(m[2], "MariaDB") {
		b.Family = FamilyMariaDB
	}
	return b, nil
}

func (b *Binaries) majorMinor() string {
	return b.Version[:strings.LastIndexByte(b.Version, '.')]
}

// argv returns the server's command line with the options that only depend on
// where the binaries are.
func (b *Binaries) argv(args ...string) []string {
	argv := append(append([]string{}, b.loader...), b.server, "--no-defaults",
		"--basedir="+b.base, "--lc-messages-dir="+b.share())
	if dir := filepath.Join(b.base, "lib", "mysql", "plugin"); isDir(dir) {
		argv = append(argv, "--plugin-dir="+dir)
	}
	if os.Geteuid() == 0 {
		argv = append(argv, "--user=root")
	}
	return append(argv, args...)
}

// share returns the folder of messages and system tables.
func (b *Binaries) share() string {
	if dir := filepath.Join(b.base, "share", "mariadb"); b.Family == FamilyMariaDB && isDir(dir) {
		if sql, _ := filepath.Glob(filepath.Join(dir, "*_system_tables.sql")); len(sql) > 0 {
			return dir
		}
	}
	return filepath.Join(b.base, "share", "mysql")
}

// Tool returns how to run a client tool of the same installation: the argv
// prefix to which its arguments are appended. Names may be those of either
// family: mysql and mariadb, mysqldump and mariadb-dump, mysqlbinlog and
// mariadb-binlog.
func (b *Binaries) Tool(name string) []string {
	path := filepath.Join(b.base, "bin", b.toolName(name))
	if _, err := os.Stat(path); err != nil && len(b.loader) == 0 {
		if found, err := exec.LookPath(b.toolName(name)); err == nil {
			path = found
		}
	}
	return append(append([]string{}, b.loader...), path)
}

func (b *Binaries) toolName(name string) string {
	if b.Family == FamilyMySQL {
		if name == "mariadb" {
			return "mysql"
		}
		return strings.Replace(name, "mariadb-", "mysql", 1)
	}
	if name == "mysql" {
		return "mariadb"
	}
	if rest, ok := strings.CutPrefix(name, "mysql"); ok {
		return "mariadb-" + rest
	}
	return name
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
