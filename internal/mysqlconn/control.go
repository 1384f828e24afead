package mysqlconn

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// Control is one go-sql-driver connection: for statements about the server,
// never for rows in bulk. It is safe for concurrent use: one statement at a time
// is on the wire. A scan function must not use the Control that calls it.
type Control struct {
	mu     sync.Mutex // held from a statement to the end of its result
	server *Server
	conn   *sql.Conn
	id     uint64
	number int
	once   sync.Once
	err    error
}

// Open connects and takes the next named lock of the run. The caller closes the
// Control.
func (s *Server) Open(ctx context.Context) (*Control, error) {
	dial, cancel := context.WithTimeout(ctx, s.connectLimit())
	defer cancel()
	conn, err := s.db.Conn(dial)
	if err != nil {
		return nil, s.connectError(err)
	}
	c := &Control{server: s, conn: conn}
	if err := c.mark(dial); err != nil {
		c.Close()
		return nil, s.connectError(err)
	}
	return c, nil
}

func (c *Control) mark(ctx context.Context) error {
	n, lock := c.server.reserve()
	c.number = n
	got := 1
	query, args := "SELECT CONNECTION_ID(), 1", []any{}
	if lock != "" {
		query, args = "SELECT CONNECTION_ID(), GET_LOCK(?, 10)", []any{lock}
	}
	if err := c.conn.QueryRowContext(ctx, query, args...).Scan(&c.id, &got); err != nil {
		return err
	}
	if got != 1 {
		return fmt.Errorf("named lock %s is held by another session", lock)
	}
	c.server.register(n, lock, c.id, c)
	return nil
}

// ID is the server's id of the connection.
func (c *Control) ID() uint64 { return c.id }

// one runs fn alone, and no longer than the server's patience.
func (c *Control) one(ctx context.Context, fn func(context.Context) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.guard(ctx, c.id, nil, fn)
}

// Exec runs a statement and returns how many rows it affected.
func (c *Control) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	var n int64
	err := c.one(ctx, func(ctx context.Context) error {
		res, err := c.conn.ExecContext(ctx, query, args...)
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	return n, err
}

// Query runs a query and calls scan for every row.
func (c *Control) Query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return c.one(ctx, func(ctx context.Context) error {
		rows, err := c.conn.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// QueryRow scans the first row of a query into dest; sql.ErrNoRows where there
// is none.
func (c *Control) QueryRow(ctx context.Context, dest []any, query string, args ...any) error {
	return c.one(ctx, func(ctx context.Context) error {
		return c.conn.QueryRowContext(ctx, query, args...).Scan(dest...)
	})
}

// QueryMaps returns the rows of a query as maps from column name to text, for
// statements like SHOW whose columns differ between servers. NULL is left out.
func (c *Control) QueryMaps(ctx context.Context, query string, args ...any) ([]map[string]string, error) {
	var out []map[string]string
	err := c.Query(ctx, func(rows *sql.Rows) error {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		vals := make([]sql.NullString, len(names))
		ptrs := make([]any, len(names))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		m := make(map[string]string, len(names))
		for i, v := range vals {
			if v.Valid {
				m[names[i]] = v.String
			}
		}
		out = append(out, m)
		return nil
	}, query, args...)
	return out, err
}

// Variable returns a system variable's value, and false where the server does
// not know it. scope is "GLOBAL" or "SESSION".
func (c *Control) Variable(ctx context.Context, scope, name string) (string, bool, error) {
	var v sql.NullString
	err := c.QueryRow(ctx, []any{&v}, "SELECT @@"+scope+"."+name)
	switch {
	case ErrorNumber(err) == 1193 || ErrorNumber(err) == 1238:
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("read %s variable %s of %s: %w", scope, name, c.server.cfg.Name, err)
	}
	return v.String, v.Valid, nil
}

// Close ends the connection. It can be called twice.
func (c *Control) Close() error {
	c.once.Do(func() {
		c.err = c.conn.Close()
		c.server.release(c.number)
	})
	return c.err
}
