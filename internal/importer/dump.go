package importer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readDump adds the rows that a dump of MySQL or MariaDB has of some tables: what its
// INSERT statements say, by the columns that they or CREATE TABLE name. Everything
// else is passed over. A dump of another database is an error.
func readDump(in io.Reader, into tables, names []string) error {
	d := dump{words: newWords(in), into: into, names: names, columns: map[string][]string{}}
	for {
		err := d.statement()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", d.words.line, err)
		}
	}
}

// dump is a dump that is being read.
type dump struct {
	words   *words
	into    tables
	names   []string
	columns map[string][]string // of the tables that are read, in the order of CREATE TABLE
}

// statement reads one statement. Error: io.EOF where there is none.
func (d *dump) statement() error {
	first, err := d.words.next()
	if err != nil {
		return err
	}
	switch {
	case first.isWord("INSERT"), first.isWord("REPLACE"):
		return d.inside(d.insert())
	case first.isWord("CREATE"):
		return d.inside(d.create())
	case first.isWord("PRAGMA"):
		return errors.New("this is a dump of SQLite: name the database file itself")
	case first.isWord("COPY"):
		return errors.New("this is a dump of PostgreSQL: name the database by its postgres:// URL")
	case first.is(";"):
		return nil
	}
	return d.skip()
}

// inside says that what ends within a statement is cut.
func (d *dump) inside(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the dump ends within a statement: it is not whole")
	}
	return err
}

// skip passes over the rest of a statement. A dump may end there.
func (d *dump) skip() error {
	for {
		w, err := d.words.pass()
		if err != nil || w.is(";") {
			return err
		}
	}
}

// expect reads a word that has to stand here.
func (d *dump) expect(text string) error {
	w, err := d.words.next()
	if err == nil && !w.is(text) && !w.isWord(text) {
		err = fmt.Errorf("%q stands where %q should", w.shown(), text)
	}
	return err
}

// table reads a table's name, which a database's may stand before, and the word
// behind it.
func (d *dump) table(w word) (string, word, error) {
	for {
		name := w.text
		if w.kind != aName && w.kind != aWord {
			return "", w, fmt.Errorf("%q stands where a table's name should", w.shown())
		}
		next, err := d.words.next()
		if err != nil || !next.is(".") {
			return name, next, err
		}
		if w, err = d.words.next(); err != nil {
			return "", w, err
		}
	}
}

// create reads CREATE TABLE, for its columns; other objects are passed over.
func (d *dump) create() error {
	w, err := d.words.next()
	if err != nil {
		return err
	}
	if !w.isWord("TABLE") {
		if w.is(";") {
			return nil
		}
		return d.skip()
	}
	for w, err = d.words.next(); err == nil && (w.isWord("IF") || w.isWord("NOT") || w.isWord("EXISTS")); {
		w, err = d.words.next()
	}
	if err != nil {
		return err
	}
	name, next, err := d.table(w)
	if err != nil {
		return err
	}
	if !slices.Contains(d.names, name) || !next.is("(") {
		if next.is(";") {
			return nil
		}
		return d.skip()
	}
	if d.columns[name], err = d.definitions(); err != nil {
		return err
	}
	if d.into[name] == nil {
		d.into[name] = []record{}
	}
	return d.skip()
}

// definitions reads what stands in the brackets of CREATE TABLE and returns the names
// of the columns.
func (d *dump) definitions() (columns []string, err error) {
	depth, begins := 1, true
	for depth > 0 {
		w, err := d.words.next()
		if err != nil {
			return nil, err
		}
		switch {
		case w.is("("):
			depth++
		case w.is(")"):
			depth--
		case begins && (w.kind == aName || w.kind == aWord && !isConstraint(w.text)):
			columns = append(columns, w.text)
		}
		begins = depth == 1 && w.is(",")
	}
	return columns, nil
}

// isConstraint tells whether an entry of CREATE TABLE is no column.
func isConstraint(word string) bool {
	return slices.Contains([]string{"PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PERIOD"},
		strings.ToUpper(word))
}

// insert reads INSERT INTO with all its rows.
func (d *dump) insert() error {
	w, err := d.words.next()
	for err == nil && w.kind == aWord && !w.isWord("INTO") {
		w, err = d.words.next()
	}
	if err != nil {
		return err
	}
	if w, err = d.words.next(); err != nil {
		return err
	}
	name, next, err := d.table(w)
	if err != nil {
		return err
	}
	if !slices.Contains(d.names, name) {
		if next.is(";") {
			return nil
		}
		return d.skip()
	}
	columns := d.columns[name]
	if next.is("(") {
		if columns, err = d.namesInBrackets(); err != nil {
			return err
		}
		if next, err = d.words.next(); err != nil {
			return err
		}
	}
	if !next.isWord("VALUES") && !next.isWord("VALUE") {
		return fmt.Errorf("%q stands where VALUES should", next.shown())
	}
	if len(columns) == 0 {
		return fmt.Errorf("nothing says which columns %s has: dump it with CREATE TABLE, or with --complete-insert", name)
	}
	return d.rows(name, columns)
}

// namesInBrackets reads the columns of an INSERT behind their bracket.
func (d *dump) namesInBrackets() (names []string, err error) {
	for {
		w, err := d.words.next()
		if err != nil {
			return nil, err
		}
		if w.kind != aName && w.kind != aWord {
			return nil, fmt.Errorf("%q stands where a column's name should", w.shown())
		}
		names = append(names, w.text)
		if w, err = d.words.next(); err != nil {
			return nil, err
		}
		if w.is(")") {
			return names, nil
		}
		if !w.is(",") {
			return nil, fmt.Errorf("%q stands in a list of columns", w.shown())
		}
	}
}

// rows reads the rows of an INSERT up to its end.
func (d *dump) rows(table string, columns []string) error {
	for {
		if err := d.expect("("); err != nil {
			return err
		}
		row, err := d.row(columns)
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
		if err := d.into.add(table, row); err != nil {
			return err
		}
		w, err := d.words.next()
		switch {
		case err != nil:
			return err
		case w.is(";"):
			return nil
		case w.isWord("ON"): // DUPLICATE KEY UPDATE
			return d.skip()
		case !w.is(","):
			return fmt.Errorf("%q stands between rows of %s", w.shown(), table)
		}
	}
}

// row reads the values of a row behind its bracket.
func (d *dump) row(columns []string) (record, error) {
	row := make(record, len(columns))
	for i := 0; ; i++ {
		w, err := d.words.next()
		if err != nil {
			return nil, err
		}
		if w.kind == aWord && strings.HasPrefix(w.text, "_") { // a character set
			if w, err = d.words.next(); err != nil {
				return nil, err
			}
		}
		if w.kind == aMark || w.kind == aName || i >= len(columns) {
			return nil, fmt.Errorf("%q stands where a value should", w.shown())
		}
		if !w.isWord("NULL") {
			row[columns[i]] = w.text
		}
		if w, err = d.words.next(); err != nil {
			return nil, err
		}
		switch {
		case w.is(")") && i == len(columns)-1:
			return row, nil
		case w.is(")"):
			return nil, fmt.Errorf("a row has %d values, its table %d columns", i+1, len(columns))
		case !w.is(","):
			return nil, fmt.Errorf("%q stands between values", w.shown())
		}
	}
}
