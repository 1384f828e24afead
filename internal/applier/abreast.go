package applier

import (
	"context"
	"sync"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
)

// laneTries is how often a session's share is run again beside the others before
// it is left for the end.
const laneTries = 3

// abreast carries statements out over several sessions, in any order, each
// session's share in one transaction. What keeps meeting the locks of the others
// is done once they have ended. Then is the hold point behind it.
func (a *Applier) abreast(ctx context.Context, stmts []*statement, then string) error {
	all := &queue{stmts: stmts}
	var mu sync.Mutex
	var left []*statement
	g, gctx := group.WithContext(ctx)
	for i := range min(len(a.lanes), len(stmts)) {
		g.Go("applier of rows", func() error {
			took, err := a.share(gctx, &a.lanes[i], all)
			if mysqlconn.IsLockConflict(err) {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, took...)
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(left) > 0 {
		if _, err := a.share(ctx, &a.lanes[0], &queue{stmts: left}); err != nil {
			return err
		}
	}
	return hold.Point(ctx, then)
}

// share takes statements from the queue until it is empty and commits them
// together. Where that meets a deadlock, the same ones are run again. It returns
// what it took.
func (a *Applier) share(ctx context.Context, l *line, from *queue) (took []*statement, err error) {
	session, err := l.open(ctx, a.cfg)
	if err != nil {
		return nil, err
	}
	for range laneTries {
		err = a.cfg.inTransaction(ctx, session, func() error {
			for _, s := range took {
				if err := s.run(ctx, session); err != nil {
					return err
				}
			}
			for s := from.next(); s != nil; s = from.next() {
				took = append(took, s)
				if err := s.run(ctx, session); err != nil {
					return err
				}
			}
			return nil
		})
		if !mysqlconn.IsLockConflict(err) {
			break
		}
	}
	return took, err
}

// queue hands out statements, each once.
type queue struct {
	mu    sync.Mutex
	stmts []*statement
}

func (q *queue) next() *statement {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.stmts) == 0 {
		return nil
	}
	s := q.stmts[0]
	q.stmts = q.stmts[1:]
	return s
}
