package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/term"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/group"
)

// askPasswords asks on the terminal for the password of each server that was
// given by URL without one. Without a terminal the password is empty.
func (p *program) askPasswords(loaded *config.Loaded) error {
	tty, ok := p.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(tty.Fd())) || p.flags.config == "-" {
		return nil
	}
	for _, side := range []struct {
		name   string
		server *config.Server
		given  bool
	}{
		{"source", &loaded.Config.Source.Server, loaded.SourcePassword},
		{"target", &loaded.Config.Target.Server, loaded.TargetPassword},
	} {
		if _, url := p.origin[side.name]; !url || side.given {
			continue
		}
		at := side.server.Host
		if at == "" {
			at = side.server.Socket
		}
		fmt.Fprintf(p.console, "Password of %s on the %s (%s); Enter for none: ", side.server.User, side.name, at)
		password, err := p.readPassword(tty)
		fmt.Fprintln(p.console)
		if err != nil {
			return err
		}
		side.server.Password = config.Secret(password)
	}
	return nil
}

// readPassword reads a line that is not shown. A signal meanwhile leaves the
// terminal as it was.
func (p *program) readPassword(tty *os.File) (string, error) {
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		return "", usagef("cannot ask for a password: %v", err)
	}
	signals, release := p.notify()
	defer release()
	type answer struct {
		password []byte
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		a.err = group.Call("the prompt", func() (err error) {
			a.password, err = term.ReadPassword(int(tty.Fd()))
			return err
		})
		answers <- a
	}()
	for {
		select {
		case a := <-answers:
			if a.err != nil {
				return "", usagef("cannot read a password: %v", a.err)
			}
			return string(a.password), nil
		case sig := <-signals:
			if sig == syscall.SIGUSR1 {
				continue
			}
			_ = term.Restore(int(tty.Fd()), before)
			name, code := signalCode(sig)
			return "", &copydb.StopError{Reason: name, Code: code}
		}
	}
}
