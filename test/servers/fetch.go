package servers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// fetch returns the private root of a release, which it downloads and unpacks
// first if it isn't there. A package that the mirror lacks is an error.
func fetch(ctx context.Context, r release) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, r.name)
	err = makeOnce(ctx, dir, func(tmp string) error { return download(ctx, r, tmp) })
	if err != nil {
		return "", fmt.Errorf("fetch %s from Debian %s: %w", strings.Join(r.packages, " "), r.suite, err)
	}
	return filepath.Join(dir, "root"), nil
}

func download(ctx context.Context, r release, dir string) error {
	mirror, err := debianMirror(ctx)
	if err != nil {
		return err
	}
	for _, d := range []string{"lists/partial", "archives/partial", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	list := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", debianKeyring, mirror, r.suite)
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(list), 0o644); err != nil {
		return err
	}
	if err := aptGet(ctx, dir, "update"); err != nil {
		return err
	}
	if err := aptGet(ctx, dir, append([]string{"install", "--download-only"}, r.packages...)...); err != nil {
		return err
	}
	if err := unpack(ctx, dir); err != nil {
		return err
	}
	for _, d := range []string{"lists", "archives", "sources.list", "pkgcache.bin", "srcpkgcache.bin",
		"root/usr/share/doc", "root/usr/share/man", "root/usr/share/locale"} {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	return nil
}

// aptGet runs apt-get on nothing but the folder's own sources and state.
func aptGet(ctx context.Context, dir string, args ...string) error {
	options := []string{
		"Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"),
		"Dir::Etc::sourceparts=/dev/null",
		"Dir::Etc::preferences=/dev/null",
		"Dir::Etc::preferencesparts=/dev/null",
		"Dir::State::Lists=" + filepath.Join(dir, "lists"),
		"Dir::Cache=" + dir,
		"Dir::Cache::archives=" + filepath.Join(dir, "archives"),
		"Dir::State::status=/dev/null",
		"APT::Install-Recommends=false",
		"APT::Default-Release=",
		"Acquire::Languages=none",
		"Acquire::Retries=3",
	}
	if os.Geteuid() == 0 {
		// apt's own user cannot write below a home folder
		options = append(options, "APT::Sandbox::User=root")
	}
	argv := []string{"-qq", "-y"}
	for _, o := range options {
		argv = append(argv, "-o", o)
	}
	_, err := output(ctx, "apt-get", append(argv, args...)...)
	return err
}

func unpack(ctx context.Context, dir string) error {
	debs, err := filepath.Glob(filepath.Join(dir, "archives", "*.deb"))
	if err != nil {
		return err
	}
	if len(debs) == 0 {
		return fmt.Errorf("apt-get has downloaded no package")
	}
	for _, deb := range debs {
		if _, err := output(ctx, "dpkg-deb", "-x", deb, filepath.Join(dir, "root")); err != nil {
			return err
		}
	}
	return nil
}

// debianMirror asks the machine's apt for the address of its Debian mirror.
// The security archive has the same shape but lacks most packages.
func debianMirror(ctx context.Context) (string, error) {
	out, err := output(ctx, "apt-get", "indextargets", "--format", "$(CREATED_BY)|$(COMPONENT)|$(LABEL)|$(REPO_URI)")
	if err != nil {
		return "", fmt.Errorf("find the Debian mirror of this machine: %w", err)
	}
	return chooseMirror(out)
}

// chooseMirror reads lines "created by|component|label|address". Where the
// lists were never fetched the label is empty and the address must tell.
func chooseMirror(targets string) (string, error) {
	fallback := ""
	for line := range strings.Lines(targets) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 4)
		if len(f) < 4 || f[0] != "Packages" || f[1] != "main" {
			continue
		}
		if f[2] == "Debian" {
			return f[3], nil
		}
		if fallback == "" && path.Base(strings.TrimRight(f[3], "/")) == "debian" {
			fallback = f[3]
		}
	}
	if fallback == "" {
		return "", fmt.Errorf("apt on this machine has no Debian archive with component main")
	}
	return fallback, nil
}

// output runs a command and returns its stdout; an error carries the end of
// what it said.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("run %s: %w\n%s", filepath.Base(name), err, tail(stderr.String(), 2000))
	}
	return stdout.String(), nil
}

// tail returns at most the last n bytes of s, whole lines of them.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}
