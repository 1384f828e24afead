package copydb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
)

// dumpConfig is what all readers of the source's binary log have in common.
func (r *run) dumpConfig() streamer.Config {
	id := r.opt.Config.Source.ServerID
	if id == 0 {
		// High numbers: people number their replicas from below.
		id = 1<<31 + rand.Uint32N(1<<31-1)
	}
	source := r.facts.Source.Identity
	return streamer.Config{Source: r.source, Version: source.Version, Identity: source, ServerID: id,
		FoldNames: r.facts.FoldCase, Logger: r.log, NetworkTimeout: r.opt.Config.Source.NetworkTimeout}
}

// fingerprintOf is the newest fingerprint that the target knows: of the file
// that low-water lies in, else of the one that the copy began in.
func fingerprintOf(rec *progress.Record) string {
	return cmp.Or(rec.LogFingerprint, rec.Doc.Source.LogFingerprint)
}

// noteFingerprint keeps that of the file that the copy begins in, before a row is
// read: a source that loses its log while rows are copied is known by it. A start
// without a file (MySQL with GTIDs) has the file that was written to
// when the run began.
func (r *run) noteFingerprint(ctx context.Context) error {
	src := &r.st.Sources[0]
	if src.LogFingerprint != "" || src.SnapshotStart.IsZero() {
		return nil
	}
	file := cmp.Or(src.SnapshotStart.File, r.facts.End.File)
	fingerprint, err := streamer.Fingerprint(ctx, r.dumpConfig(), file)
	if err != nil {
		return r.asStreamError(err)
	}
	r.change(func(*state.State) { src.LogFingerprint = fingerprint })
	return nil
}

// sameLog makes sure that the file of src's fingerprint is still the one that
// was read. A file that the source has purged says nothing, nor does one of
// another server of the same history; whether the log reaches back far enough is
// judged elsewhere.
func (r *run) sameLog(ctx context.Context, src *state.Source) error {
	file, server := streamer.SplitFingerprint(src.LogFingerprint)
	if file == "" || server != r.facts.Source.Identity.UUID {
		return nil
	}
	now, err := streamer.Fingerprint(ctx, r.dumpConfig(), file)
	switch {
	case errors.Is(err, streamer.ErrLogGone):
		return r.fileGone(ctx, src, file)
	case err != nil:
		return r.asStreamError(err)
	case now != src.LogFingerprint:
		return r.asCheckError(&check.HistoryLostError{Position: src.LastResumable,
			Detail: "its file " + file + " is not the one that was read; the log was reset, or the server restored"})
	}
	return nil
}

// fileGone tells a file that was purged from one that the source never had.
func (r *run) fileGone(ctx context.Context, src *state.Source, file string) error {
	c, err := r.source.OpenProved(ctx, r.facts.Source.Identity)
	if err != nil {
		return err
	}
	defer c.Close()
	logs, err := c.QueryMaps(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return fmt.Errorf("list the source's binary logs: %w", err)
	}
	if len(logs) > 0 {
		older, ok := position.Compare(state.Position{File: file}, state.Position{File: logs[0]["Log_name"]})
		if ok && older < 0 {
			return nil
		}
	}
	return r.asCheckError(&check.HistoryLostError{Position: src.LastResumable, Detail: "it has no file " + file + ", which was read from it"})
}

// proveSource refuses another source than the preflight's where nothing of its
// log is known yet by which one could stand in for the other.
func (r *run) proveSource(ctx context.Context) error {
	if !r.st.Sources[0].LastResumable.IsZero() {
		return nil // judged with the positions
	}
	c, err := r.source.OpenProved(ctx, r.facts.Source.Identity)
	if err != nil {
		return r.asCheckError(err)
	}
	return c.Close()
}

// checkSource makes sure that the source can still give what is needed. Another
// server of the same history (MySQL with GTIDs, as after a failover) will do
// once the snapshot is complete: from then on only GTIDs count.
func (r *run) checkSource(ctx context.Context) error {
	src := &r.st.Sources[0]
	if src.LastResumable.IsZero() {
		return nil
	}
	id, err := check.Resumable(ctx, r.source, r.resumeInput())
	if err != nil {
		return r.asCheckError(err)
	}
	if id.UUID == src.ServerUUID {
		// A run before this one may have accepted the server, and ended before the
		// target's position was one of its log.
		if _, server := streamer.SplitFingerprint(src.LogFingerprint); server != "" && server != id.UUID {
			r.change(func(*state.State) { r.forgetPlaces() })
		}
		return nil
	}
	if phase := r.phase(); phase == state.PhaseSchema || phase == state.PhaseSnapshot {
		return r.asCheckError(&mysqlconn.OtherServerError{Recorded: src.ServerUUID, Found: id.UUID,
			Detail: "the snapshot is not complete, and it goes on only on the server it began on"})
	}
	r.log.Warn("the source is another server of the same history; going on by GTID", "was", src.ServerUUID, "is", id.UUID)
	r.facts.Source.Identity = id
	r.change(func(*state.State) {
		src.Server = serverState(id, r.opt.Config.Source.Host, r.opt.Config.Source.Port)
		src.ServerID = id.ServerID
		r.forgetPlaces()
	})
	return r.configure(ctx) // for sessions that prove to be on this server
}

// forgetPlaces leaves only the GTID sets of a source's positions: the files are
// another server's.
func (r *run) forgetPlaces() {
	src := &r.st.Sources[0]
	src.LogFingerprint = ""
	for _, p := range []*state.Position{&r.highWater, &src.LastStreamed, &src.LastResumable, src.ConsistentAt, src.StopPoint, src.TableListAt} {
		if p != nil {
			p.File, p.Pos = "", 0
		}
	}
}
