package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

var sides = []string{"source", "target"}

// passwordKeys returns those of the three keys for a password that are set.
func passwordKeys(values map[string]entry, side string) []string {
	var set []string
	for _, form := range []string{"", "_env", "_file"} {
		path := side + ".password" + form
		if _, ok := values[path]; ok {
			set = append(set, path)
		}
	}
	return set
}

// passwordTwice refuses more than one form of a password in one layer.
func passwordTwice(values map[string]entry, bad *problems) {
	for _, side := range sides {
		if set := passwordKeys(values, side); len(set) > 1 {
			bad.add(values[set[1]].where, "more than one password: %s", strings.Join(set, " and "))
		}
	}
}

// resolvePasswords fills in what password_env and password_file name.
func (l *Loaded) resolvePasswords(lookup func(string) (string, bool), values map[string]entry, decoded map[string]any, bad *problems) {
	for _, side := range sides {
		server, given := &l.Config.Source.Server, &l.SourcePassword
		if side == "target" {
			server, given = &l.Config.Target.Server, &l.TargetPassword
		}
		*given = len(passwordKeys(values, side)) > 0
		if name, ok := decoded[side+".password_env"].(string); ok {
			l.EnvNames = append(l.EnvNames, name)
			password, err := passwordFromEnv(name, lookup)
			l.setPassword(server, password, err, side+".password_env", values, bad)
		}
		if path, ok := decoded[side+".password_file"].(string); ok {
			password, err := l.passwordFromFile(path)
			l.setPassword(server, password, err, side+".password_file", values, bad)
		}
	}
}

func (l *Loaded) setPassword(server *Server, password string, err error, key string, values map[string]entry, bad *problems) {
	if err != nil {
		bad.add(values[key].where, "%s: %v", key, err)
		return
	}
	server.Password = Secret(password)
}

func passwordFromEnv(name string, lookup func(string) (string, bool)) (string, error) {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	password, ok := lookup(name)
	switch {
	case !ok:
		return "", fmt.Errorf("the environment variable%s is not set", shownEnv(name))
	case password == "":
		return "", fmt.Errorf("the environment variable%s is empty", shownEnv(name))
	}
	return password, nil
}

var usualEnvName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// shownEnv keeps to itself what does not look like the name of a variable: it
// may be the password, put behind the wrong key.
func shownEnv(name string) string {
	if usualEnvName.MatchString(name) {
		return " " + name
	}
	return ""
}

func (l *Loaded) passwordFromFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("password file %s can be read by others (mode %04o); chmod 600 it", path, info.Mode().Perm()))
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", fmt.Errorf("the first line of %s is empty", path)
	}
	return line, nil
}
