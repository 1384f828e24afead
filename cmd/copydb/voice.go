package main

import (
	"context"
	"log/slog"
	"strings"
)

// voice says things to a person on stderr: as plain text, or as log lines where
// the log is JSON, so that every line of stderr is.
type voice struct {
	console *console
	logger  *slog.Logger
	json    bool
	quiet   bool // nothing below a warning
}

func (p *program) newVoice() *voice {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level := levels[p.flags.logLevel]
	if p.flags.quiet {
		level = max(level, slog.LevelWarn)
	}
	opts := &slog.HandlerOptions{Level: level}
	v := &voice{console: p.console, json: p.flags.logFormat == "json", quiet: p.flags.quiet}
	if v.json {
		v.logger = slog.New(slog.NewJSONHandler(p.console, opts))
	} else {
		v.logger = slog.New(slog.NewTextHandler(p.console, opts))
	}
	return v
}

// say prints text, which may have several lines.
func (v *voice) say(level slog.Level, text string) {
	text = strings.TrimRight(text, "\n")
	switch {
	case v.quiet && level < slog.LevelWarn:
	case v.json:
		v.logger.Log(context.Background(), level, text)
	default:
		_, _ = v.console.Write([]byte(text + "\n"))
	}
}

func (v *voice) info(text string)    { v.say(slog.LevelInfo, text) }
func (v *voice) warning(text string) { v.say(slog.LevelWarn, v.prefix("warning: ")+text) }
func (v *voice) failure(text string) { v.say(slog.LevelError, v.prefix("error: ")+text) }

// prefix is for plain text alone; a log line has its level.
func (v *voice) prefix(s string) string {
	if v.json {
		return ""
	}
	return s
}

// failureHint says more about a failure.
func (v *voice) failureHint(text string) { v.say(slog.LevelError, text) }

// warningFree says what is no warning but must be heard by a quiet user, too.
func (v *voice) warningFree(text string) { v.say(slog.LevelWarn, text) }
