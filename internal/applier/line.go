package applier

import (
	"context"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// idleLimit is how long a session may stand idle before another one is opened in
// its place: the server ends it after twice that (see setup). Its owner may have
// built an index meanwhile, or waited for work.
const idleLimit = 5 * time.Minute

// line is one session on the target, opened when it is needed.
type line struct {
	session *mysqlconn.Session
	used    time.Time // when it was asked for last
}

func (l *line) idle() bool { return l.session != nil && time.Since(l.used) > idleLimit }

// open returns a session that the server has not ended for being idle.
func (l *line) open(ctx context.Context, cfg Config) (*mysqlconn.Session, error) {
	if l.idle() {
		l.close()
	}
	if l.session == nil {
		s, err := cfg.OpenSession(ctx)
		if err != nil {
			return nil, err
		}
		l.session = s
	}
	l.used = time.Now()
	return l.session, nil
}

func (l *line) close() {
	if l.session != nil {
		l.session.Close()
		l.session = nil
	}
}
