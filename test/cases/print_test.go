package cases

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/copydb/copydb/test/servers"
)

// printed runs statements as the server's own client does in batch mode and
// returns the same: a line for a row, values between tabs, special characters
// escaped. It costs a hundredth of the client's processor time; scripts that
// need the client's own commands still get it.
func printed(ctx context.Context, srv *servers.Server, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	if strings.Contains(text, "DELIMITER") {
		out, err := srv.Client(ctx, strings.NewReader(text), "--batch", "--skip-column-names")
		return strings.TrimSuffix(out, "\n"), err
	}
	db := srv.Open() // what the statements set ends with the connection
	defer db.Close()
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var lines []string
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			return "", err
		}
		for rows.Next() {
			line, err := printedRow(rows, len(columns))
			if err != nil {
				return "", err
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n"), errors.Join(rows.Err(), rows.Close())
}

var escapes = strings.NewReplacer("\x00", `\0`, "\t", `\t`, "\n", `\n`, `\`, `\\`)

func printedRow(rows *sql.Rows, n int) (string, error) {
	values, into := make([]sql.NullString, n), make([]any, n)
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return "", err
	}
	fields := make([]string, n)
	for i, v := range values {
		fields[i] = "NULL"
		if v.Valid {
			fields[i] = escapes.Replace(v.String)
		}
	}
	return strings.Join(fields, "\t"), nil
}
