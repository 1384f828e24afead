package main

import (
	"os"
	"os/signal"
	"syscall"
)

// ignoreBrokenPipes makes writing to a closed pipe an error instead of the end
// of the process.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// notifySignals begins to catch the signals that a run answers. A SIGHUP that
// the process was started to ignore (nohup, setsid) stays ignored.
func notifySignals() (<-chan os.Signal, func()) {
	caught := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1}
	if !signal.Ignored(syscall.SIGHUP) {
		caught = append(caught, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, caught...)
	return signals, func() { signal.Stop(signals) }
}

// signalCode returns the name of a signal and the exit code that it stands for.
func signalCode(sig os.Signal) (name string, code int) {
	switch sig {
	case syscall.SIGINT:
		return "SIGINT", 128 + int(syscall.SIGINT)
	case syscall.SIGHUP:
		return "SIGHUP", 128 + int(syscall.SIGTERM)
	}
	return "SIGTERM", 128 + int(syscall.SIGTERM)
}
