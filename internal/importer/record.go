package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"tollgate/internal/account"
	"tollgate/internal/store"
)

// record is a row of a source by column. A NULL is absent.
type record map[string]string

// flag reads a boolean in the form of any of the databases.
func (r record) flag(column string) bool {
	switch strings.ToLower(r[column]) {
	case "1", "true", "t":
		return true
	}
	return false
}

// list splits a column at any of the separators and drops spaces and empty entries.
func (r record) list(column, separators string) (out []string) {
	for _, one := range strings.FieldsFunc(r[column], func(c rune) bool { return strings.ContainsRune(separators, c) }) {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// texts reads a JSON list of strings. It returns nil for anything else.
func (r record) texts(column string) (out []string) {
	_ = json.Unmarshal([]byte(r[column]), &out) // other versions have other forms
	return out
}

// tables holds the rows of a source by table.
type tables map[string][]record

// maxRows is the maximum number of rows of a table.
const maxRows = 1_000_000

// readTables reads the required and the optional tables of a source.
func readTables(ctx context.Context, source string, required, optional []string) (tables, error) {
	found := tables{}
	if strings.EqualFold(filepath.Ext(source), ".sql") {
		return nil, errors.New("dumps are not read: load it into a database, and name this database")
	}
	if err := found.readDatabase(ctx, source, slices.Concat(required, optional)); err != nil {
		return nil, err
	}
	for _, table := range required {
		if _, ok := found[table]; !ok {
			return nil, fmt.Errorf("%s has no table %s: is it the right one?", nameOf(source), table)
		}
	}
	return found, nil
}

// readDatabase reads a database in one snapshot.
func (t tables) readDatabase(ctx context.Context, source string, names []string) (err error) {
	db, err := store.OpenForeign(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, table := range names {
		rows := []record{}
		err := db.Each(ctx, table, func(row map[string]string) error {
			rows = append(rows, row)
			if len(rows) > maxRows {
				return fmt.Errorf("the table %s has more than %d rows", table, maxRows)
			}
			return nil
		})
		switch {
		case errors.Is(err, store.ErrNoTable):
			continue
		case err != nil:
			return err
		}
		t[table] = rows
	}
	return nil
}

// nameOf returns the name of a source for an error, without a password.
func nameOf(source string) string {
	if strings.ContainsAny(source, "@:") {
		return "the database"
	}
	return filepath.Base(source)
}

// oneLine joins the lines of text and removes invisible characters.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.Join(strings.Fields(account.RemoveInvisible(clean)), " ")
}
