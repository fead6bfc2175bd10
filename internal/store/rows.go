package store

import (
	"slices"
	"strconv"
	"strings"
)

// Rows is a statement that writes any number of rows of one table: on PostgreSQL,
// where each statement costs more than its rows, a single one over arrays; on
// SQLite prepared ones, of an insert for several rows at a time, of an update for
// one. Make it once, with Insert or Update.
type Rows struct {
	columns  []string // those that have values, in their order; the key first
	texts    []bool   // of each: text, else bigint
	key      bool     // SQLite's text has the key last
	lite     string   // SQLite's for one row
	liteMany string   // and for liteRows of them; empty: there is none
	array    string   // PostgreSQL's
}

// liteRows is how many rows SQLite inserts with one statement. It takes two thirds
// of the time of as many statements, and more rows at once take no less.
const liteRows = 8

// Insert returns a statement that inserts rows. Columns are a list of names,
// each with its type, text or bigint, or else with the literal that all rows
// have: `id text, amount_nano bigint, line ”`. What follows, if anything, is the
// clause ON CONFLICT: no two of the rows may then be in conflict with each other.
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
	// What fails is rolled back as a whole, so SQLite need not keep what pages were
	// before each statement.
	lite := `INSERT OR FAIL ` + into + `VALUES `
	r.lite = strings.TrimSpace(lite + row + ` ` + conflict)
	r.liteMany = strings.TrimSpace(lite + strings.Repeat(row+`, `, liteRows-1) + row + ` ` + conflict)
	r.array = strings.TrimSpace(`INSERT ` + into + `SELECT ` + strings.Join(values, ", ") + ` FROM ` + r.unnest() + ` ` + conflict)
	return &r
}

// Update returns a statement that changes rows, each found by the first column.
// The columns are as for Insert. Rows that are not there are left out.
func Update(table, columns string) *Rows {
	var r Rows
	var marks, values []string
	for i, column := range strings.Split(columns, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		switch {
		case !r.add(name, kind):
			marks, values = append(marks, name+` = `+kind), append(values, name+` = `+kind)
		case i > 0:
			marks, values = append(marks, name+` = ?`), append(values, name+` = v.`+name)
		}
	}
	r.key = true
	r.lite = `UPDATE ` + table + ` SET ` + strings.Join(marks, ", ") + ` WHERE ` + r.columns[0] + ` = ?`
	r.array = `UPDATE ` + table + ` SET ` + strings.Join(values, ", ") + ` FROM ` + r.unnest() +
		` WHERE ` + table + `.` + r.columns[0] + ` = v.` + r.columns[0]
	return &r
}

// add notes a column that has values; false: it has a literal.
func (r *Rows) add(name, kind string) bool {
	if kind != "text" && kind != "bigint" {
		return false
	}
	r.columns, r.texts = append(r.columns, name), append(r.texts, kind == "text")
	return true
}

// unnest is the table v of the rows' values.
func (r *Rows) unnest() string {
	var arrays strings.Builder
	for i, text := range r.texts {
		if i > 0 {
			arrays.WriteString(", ")
		}
		kind := "::bigint[]"
		if text {
			kind = "::text[]"
		}
		arrays.WriteString("$" + strconv.Itoa(i+1) + kind)
	}
	return `unnest(` + arrays.String() + `) AS v (` + strings.Join(r.columns, ", ") + `)`
}

// Rows adds a statement for rows, each of which has a string or an int64 for
// each of its columns. Without rows it adds nothing.
func (b *Batch) Rows(r *Rows, rows [][]any) {
	switch {
	case len(rows) == 0:
	case b.db.dialect == PostgreSQL:
		b.items = append(b.items, batchItem{text: r.array, args: r.arrays(rows)})
	default:
		for ; r.liteMany != "" && len(rows) >= liteRows; rows = rows[liteRows:] {
			b.items = append(b.items, batchItem{text: r.liteMany, args: slices.Concat(rows[:liteRows]...)})
		}
		for _, row := range rows {
			if r.key {
				row = append(row[1:len(row):len(row)], row[0])
			}
			b.items = append(b.items, batchItem{text: r.lite, args: row})
		}
	}
}

// arrays turns rows into columns.
func (r *Rows) arrays(rows [][]any) []any {
	out := make([]any, len(r.columns))
	for i, text := range r.texts {
		if text {
			out[i] = column[string](rows, i)
			continue
		}
		out[i] = column[int64](rows, i)
	}
	return out
}

func column[T string | int64](rows [][]any, i int) []T {
	values := make([]T, len(rows))
	for n, row := range rows {
		values[n] = row[i].(T)
	}
	return values
}
