package state

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// New returns the state of a migration that begins now, with a fresh migration
// id and run id. The caller fills in servers and selection before it saves it.
func New(version string, now time.Time) (*State, error) {
	migration, err := randomHex(16)
	if err != nil {
		return nil, err
	}
	run, err := NewRunID()
	if err != nil {
		return nil, err
	}
	s := State{
		FormatVersion: FormatVersion,
		CopydbVersion: version,
		MigrationID:   migration,
		RunID:         run,
		CreatedAt:     now.UTC(),
		UpdatedAt:     now.UTC(),
		Phase:         PhaseSchema,
	}
	s = s.withoutNil()
	return &s, nil
}

// NewRunID returns an id for one run: 16 lower-case hexadecimal digits, short
// because it is part of named locks, which have 64 characters at most.
func NewRunID() (string, error) { return randomHex(8) }

func randomHex(bytes int) (string, error) {
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	return hex.EncodeToString(b), nil
}
