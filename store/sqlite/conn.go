package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	sqlite "modernc.org/sqlite"
)

// conn is the writer's connection: the driver's own, without database/sql, with every
// statement prepared once and kept. One goroutine uses it at a time.
type conn struct {
	c     driver.Conn
	stmts map[string]driver.StmtExecContext
	args  []driver.NamedValue // reused by every call
}

// val is what can be bound: int64, string, []byte, nil.
type val = driver.Value

// dsn names the file at path as a SQLite URI, whatever signs the path holds.
func dsn(path string, query string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query}
	return u.String()
}

// connect opens one connection and runs the pragmas in order.
func connect(ctx context.Context, path, query string, pragmas []string) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn(path, query))
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{c: dc, stmts: map[string]driver.StmtExecContext{}}
	if err := c.scripts(pragmas); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) scripts(list []string) error {
	for _, text := range list {
		if err := c.script(text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// close finalizes the statements and closes the connection; an open transaction is
// rolled back by the engine.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.(driver.Stmt).Close())
	}
	clear(c.stmts)
	return errors.Join(append(errs, c.c.Close())...)
}

// script runs SQL that is not kept: pragmas and migrations.
func (c *conn) script(text string) error {
	_, err := c.c.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

func (c *conn) prepared(text string) (driver.StmtExecContext, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	s, err := c.c.Prepare(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", firstLine(text), err)
	}
	e := s.(driver.StmtExecContext)
	c.stmts[text] = e
	return e, nil
}

func (c *conn) named(args []val) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a kept statement and returns how many rows it changed.
func (c *conn) exec(text string, args ...val) (int, error) {
	s, err := c.prepared(text)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), c.named(args))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", firstLine(text), err)
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// query runs a kept statement and calls each for every row. The values belong to the
// caller; nothing may be written before query returns.
func (c *conn) query(text string, each func(row []val) error, args ...val) (err error) {
	s, err := c.prepared(text)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.named(args))
	if err != nil {
		return fmt.Errorf("%s: %w", firstLine(text), err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]val, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", firstLine(text), err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// row reads the only row of a query; ok is false when there is none.
func (c *conn) row(text string, args ...val) (row []val, ok bool, err error) {
	err = c.query(text, func(r []val) error {
		if row == nil {
			row = append(row, r...)
		}
		return nil
	}, args...)
	return row, row != nil, err
}

// number reads one integer; 0 for no row or NULL.
func (c *conn) number(text string, args ...val) (int64, error) {
	row, ok, err := c.row(text, args...)
	if err != nil || !ok {
		return 0, err
	}
	n, _ := row[0].(int64)
	return n, nil
}

func firstLine(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, '\n'); i > 0 {
		return text[:i]
	}
	return text
}
