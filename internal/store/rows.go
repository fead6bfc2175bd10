package store

import (
	"strconv"
	"strings"
)

// Rows is a statement that writes any number of rows of one table. On PostgreSQL, where a statement
// costs more than its rows, one statement over arrays writes all rows. On SQLite, an insert writes
// sqliteRows rows with a statement, and an update or a deletion one row. Create a Rows once, with Insert,
// Update or Delete.
type Rows struct {
	columns    []string // columns with values, in order
	texts      []bool   // by column: text, otherwise bigint
	sqlite     string   // SQLite's statement for one row
	sqliteMany string   // SQLite's statement for sqliteRows rows; empty if unused
	array      string   // PostgreSQL's statement
}

// sqliteRows is the number of rows that SQLite inserts with one statement. The statement takes two thirds
// of the time of eight statements for one row. More rows per statement save no further time.
const sqliteRows = 8

// Insert returns a statement that inserts rows. columns is a list of names, each with its type,
// text or bigint, or with a literal for all rows, such as id text, amount_nano bigint, free 0.
// conflict is an ON CONFLICT clause or empty. With a clause, no two of the rows may conflict with
// each other.
func Insert(table, columns, conflict string) *Rows {
	var r Rows
	var names, marks, values []string
	for _, column := range strings.Split(columns, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		names = append(names, name)
		if !r.add(name, kind) {
			marks, values = append(marks, kind), append(values, kind)
			continue
		}
		marks, values = append(marks, "?"), append(values, "v."+name)
	}
	into := `INTO ` + table + ` (` + strings.Join(names, ", ") + `) `
	row := `(` + strings.Join(marks, ", ") + `)`
	// A failure rolls back the whole transaction, so SQLite need not save the former pages before
	// each statement.
	insert := `INSERT OR FAIL ` + into + `VALUES `
	r.sqlite = strings.TrimSpace(insert + row + ` ` + conflict)
	r.sqliteMany = strings.TrimSpace(insert + strings.Repeat(row+`, `, sqliteRows-1) + row + ` ` + conflict)
	r.array = strings.TrimSpace(`INSERT ` + into + `SELECT ` + strings.Join(values, ", ") + ` FROM ` + r.unnest() + ` ` + conflict)
	return &r
}

// Update returns a statement that changes rows. The last column is the key of a row. columns has the format
// of Insert. Missing rows are skipped.
func Update(table, columns string) *Rows {
	var r Rows
	var marks, values []string
	for column := range strings.SplitSeq(columns, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		if r.add(name, kind) {
			marks, values = append(marks, name+` = ?`), append(values, name+` = v.`+name)
		} else {
			marks, values = append(marks, name+` = `+kind), append(values, name+` = `+kind)
		}
	}
	last := len(marks) - 1
	key := r.columns[len(r.columns)-1]
	r.sqlite = `UPDATE ` + table + ` SET ` + strings.Join(marks[:last], ", ") + ` WHERE ` + key + ` = ?`
	r.array = `UPDATE ` + table + ` SET ` + strings.Join(values[:last], ", ") + ` FROM ` + r.unnest() +
		` WHERE ` + table + `.` + key + ` = v.` + key
	return &r
}

// Delete returns a statement that deletes the rows of a table that match given values. columns is a list
// of names, each with its type and a comparison, such as key text =, n bigint <=.
func Delete(table, columns string) *Rows {
	var r Rows
	var marks, values []string
	for column := range strings.SplitSeq(columns, ",") {
		word := strings.Fields(column)
		r.add(word[0], word[1])
		marks = append(marks, word[0]+` `+word[2]+` ?`)
		values = append(values, table+`.`+word[0]+` `+word[2]+` v.`+word[0])
	}
	r.sqlite = `DELETE FROM ` + table + ` WHERE ` + strings.Join(marks, " AND ")
	r.array = `DELETE FROM ` + table + ` USING ` + r.unnest() + ` WHERE ` + strings.Join(values, " AND ")
	return &r
}

// add adds a column with values and returns true. It returns false if the column has a literal.
func (r *Rows) add(name, kind string) bool {
	if kind != "text" && kind != "bigint" {
		return false
	}
	r.columns, r.texts = append(r.columns, name), append(r.texts, kind == "text")
	return true
}

// unnest returns the values of the rows as a table v. The arrays are not arguments of one unnest in FROM, because
// PostgreSQL would first copy each of them into a store of its own.
func (r *Rows) unnest() string {
	arrays := make([]string, len(r.columns))
	for i, name := range r.columns {
		kind := "bigint"
		if r.texts[i] {
			kind = "text"
		}
		arrays[i] = "unnest($" + strconv.Itoa(i+1) + "::" + kind + "[]) AS " + name
	}
	return `(SELECT ` + strings.Join(arrays, ", ") + `) AS v`
}

// Make returns an empty list of values with room for a number of rows.
func (r *Rows) Make(rows int) []any { return make([]any, 0, rows*len(r.columns)) }

// Rows adds statements for rows. values holds the rows one after the other, with a string or an int64
// for each column without a literal. If values is empty, Rows is a no-op.
func (b *Batch) Rows(r *Rows, values []any) {
	switch {
	case len(values) == 0:
	case b.db.dialect == PostgreSQL:
		b.items = append(b.items, batchItem{text: r.array, args: r.arrays(values)})
	default:
		row := len(r.columns)
		for many := row * sqliteRows; r.sqliteMany != "" && len(values) >= many; values = values[many:] {
			b.items = append(b.items, batchItem{text: r.sqliteMany, args: values[:many]})
		}
		for ; len(values) > 0; values = values[row:] {
			b.items = append(b.items, batchItem{text: r.sqlite, args: values[:row]})
		}
	}
}

// arrays turns rows into columns.
func (r *Rows) arrays(values []any) []any {
	out := make([]any, len(r.columns))
	for i, text := range r.texts {
		if text {
			out[i] = column[string](values[i:], len(r.columns))
			continue
		}
		out[i] = column[int64](values[i:], len(r.columns))
	}
	return out
}

// column returns the values at 0, row, 2*row and so on: one column of rows with row columns.
func column[T string | int64](values []any, row int) []T {
	out := make([]T, 0, len(values)/row+1)
	for i := 0; i < len(values); i += row {
		out = append(out, values[i].(T))
	}
	return out
}
