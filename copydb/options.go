package copydb

import (
	"log/slog"
	"time"

	"github.com/copydb/copydb/copydb/config"
)

// Start says from what a run begins.
type Start int

// The ways a run begins. StartFresh refuses an existing state file, StartResume
// a missing one; StartResumeIfPresent takes whichever is there; StartOver moves
// an existing state away and begins again.
const (
	StartFresh Start = iota
	StartResume
	StartResumeIfPresent
	StartOver
)

// Options are everything that one call of Run needs. Logger and Reporter must
// not be nil.
type Options struct {
	Config    config.Config
	Start     Start
	StatePath string // where the state is read and written
	DryRun    bool

	Logger           *slog.Logger
	Reporter         Reporter
	ProgressInterval time.Duration // between two ProgressRecords; 0 = 30 s
	ShowKeys         bool

	// Command is how the program was called, without start options and secrets,
	// for "the exact resume command"; empty: "copydb --config FILE".
	Command string
	// Version is the program's own version.
	Version string
	// Abort, when closed, ends the run at once (the second signal). May be nil.
	Abort <-chan struct{}
}
