package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// format are the flags of every command that prints what the operator API answers.
// Without one a terminal gets tables, and everything else JSON.
type format struct {
	JSON bool `help:"Print the operator API's JSON; the default where this is no terminal." xor:"format"`
	CSV  bool `name:"csv" help:"Print comma-separated values: a line of names, then a line an entry." xor:"format"`
}

// AfterApply notes the format for whatever is printed.
func (f *format) AfterApply(p *process) error {
	p.format = *f
	return nil
}

// view is how an answer is shown. The zero value shows what there is.
type view struct {
	short []string // of a table, what matters most first: the others go where a terminal is narrow
	long  []string // of CSV; whatever else there is follows
	none  string   // what an empty list means; empty: it needs no word
	// below, if not nil, writes what follows the table of a list.
	below func(w io.Writer, rows []object, width int)
}

// print writes an answer in the format that was asked for.
func (p *process) print(raw []byte, v view) error {
	width := terminalWidth(p.stdout)
	if p.format.JSON || !p.format.CSV && width == 0 {
		return printJSON(p.stdout, raw)
	}
	answer, err := readAnswer(raw)
	if err != nil {
		return err
	}
	o, ok := answer.(object)
	if !ok {
		return printJSON(p.stdout, raw)
	}
	o = p.warn(o)
	var out bytes.Buffer
	switch {
	case p.format.CSV:
		if more, _ := o.get("has_more").(bool); more { // which no line of the table can say
			tell(p.stderr, "this is not all of it. The rest: --after "+harmless(goesOn(o)))
		}
		err = writeCSV(&out, o, v)
	case isSum(o):
		total, _ := o.get("total").(object)
		writeDetails(&out, append(object{{"since", o.get("since")}, {"until", o.get("until")}}, total...), width)
	case isList(o):
		writeList(&out, o, v, width)
	default:
		writeDetails(&out, o, width)
	}
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(out.Bytes())
	return err
}

// warn tells on standard error what an answer warns of, as apply does, and returns the
// rest of it.
func (p *process) warn(o object) object {
	const name = "warnings"
	warnings, _ := o.get(name).([]any)
	for _, w := range warnings {
		text, _ := w.(string)
		writeLine(p.stderr, "warning: "+harmless(text))
	}
	return slices.DeleteFunc(o, func(m member) bool { return m.name == name })
}

func printJSON(w io.Writer, raw []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("the operator API answered no JSON: %w", err)
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}

// isList tells whether an answer is a list of things, and not one of them, which may
// have a list in it.
func isList(o object) bool {
	is := o.get("object")
	return is == "list" || is == "usage.report"
}

// isSum tells whether an answer is a report of sums that are not grouped.
func isSum(o object) bool {
	parts, grouped := o.get("group_by").([]any)
	return grouped && len(parts) == 0
}

// writeCSV writes a list's entries, or the one thing that was answered.
func writeCSV(w io.Writer, o object, v view) error {
	rows := []object{o}
	if isList(o) {
		rows, _ = rowsOf(o.get("data"))
	}
	names := membersOf(rows, v.long)
	out := csv.NewWriter(w)
	if err := out.Write(names); err != nil {
		return err
	}
	for _, row := range rows {
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = field(name, row.get(name))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// writeList writes a table, and the sums of it where the answer has any.
func writeList(w io.Writer, o object, v view, width int) {
	rows, _ := rowsOf(o.get("data"))
	if len(rows) == 0 {
		if next, _ := o.get("next").(string); next != "" {
			writeLine(w, "There are none in as much as was looked through. Look further back: --after "+harmless(next))
			return
		}
		writeLine(w, cmp.Or(v.none, "There are none."))
		return
	}
	names := v.short
	if parts, grouped := o.get("group_by").([]any); grouped {
		names = nil
		for _, part := range parts {
			name, _ := part.(string)
			names = append(names, name)
			if named := name + "_name"; len(rows) > 0 && rows[0].get(named) != nil {
				names = slices.Insert(names, len(names)-1, named) // which people look for
			}
		}
		names = append(names, v.short...)
	}
	if len(names) == 0 {
		names = membersOf(rows, nil)
	}
	if total, ok := o.get("total").(object); ok && len(rows) > 1 {
		rows = append(rows, append(object{{names[0], "total"}}, total...))
	}
	if left := (table{names: names, width: width, widest: widest}).write(w, rows); left > 0 {
		writeLine(w, fmt.Sprintf("\nNot shown for want of space: columns, %d. --json and --csv have all.", left))
	}
	if v.below != nil {
		v.below(w, rows, width)
	}
	if more, _ := o.get("has_more").(bool); more {
		writeLine(w, "\nThere are more: --after "+harmless(goesOn(o)))
	}
}

// goesOn is the id that a list which has more goes on after.
func goesOn(o object) string {
	next, known := o.get("next").(string)
	if rows, _ := rowsOf(o.get("data")); !known && len(rows) > 0 {
		next, _ = rows[len(rows)-1].get("id").(string)
	}
	return next
}

// writeDetails writes one thing, a line a member, and the lists in it as tables.
func writeDetails(w io.Writer, o object, width int) {
	indent := 0
	for _, m := range o {
		indent = max(indent, len(label(m.name)))
	}
	var lists []member
	for _, m := range o {
		if _, objects := rowsOf(m.value); objects {
			lists = append(lists, m)
			continue
		}
		writeLine(w, fmt.Sprintf("%-*s  %s", indent, label(m.name), cell(m.name, m.value)))
	}
	for _, m := range lists {
		rows, _ := rowsOf(m.value)
		writeLine(w, "\n"+label(m.name)+":")
		if left := (table{names: membersOf(rows, nil), width: width, indent: "  ", causes: true}).write(w, rows); left > 0 {
			writeLine(w, fmt.Sprintf("  not shown for want of space: columns, %d", left))
		}
	}
}

// widest is how long a cell of a list may be.
const widest = 60

// table is how rows are shown.
type table struct {
	names  []string // of the columns
	width  int      // of the terminal
	indent string
	widest int  // of cells; 0: as they are
	causes bool // causes stand below their rows, as long as they are
}

// write writes rows below their names in columns, numbers to the right and money by its
// point, and returns how many columns did not fit. Columns that are empty in all rows
// are left out.
func (t table) write(w io.Writer, rows []object) (left int) {
	used := len(t.indent)
	columns := []column{}
	for _, name := range t.names {
		if t.causes && name == "cause" || name == "at" && slices.Contains(t.names, "at_ms") {
			continue
		}
		c := newColumn(name, rows, t.widest)
		if room := t.width - used; name == "cause" && room >= narrowest && c.width > room {
			c = newColumn(name, rows, room)
		}
		switch {
		case c.empty:
		case len(columns) > 0 && (left > 0 || used+c.width > t.width):
			left++
		default:
			used += c.width + len(gap)
			columns = append(columns, c)
		}
	}
	for line := range len(rows) + 1 {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.padded(line)
		}
		writeLine(w, strings.TrimRight(t.indent+strings.Join(cells, gap), " "))
		if line > 0 && t.causes {
			if cause, ok := rows[line-1].get("cause").(string); ok && cause != "" {
				writeLine(w, t.indent+gap+harmless(cause))
			}
		}
	}
	return left
}

// narrowest is how much room a cause needs at least, to be worth its beginning.
const narrowest = 20

// gap stands between columns.
const gap = "  "

// column is a column of a table: its title and the cells below.
type column struct {
	cells []string
	width int
	right bool
	empty bool
}

func newColumn(name string, rows []object, widest int) column {
	c := column{cells: []string{strings.ToUpper(label(name))}, empty: true}
	decimals := 0
	for _, row := range rows {
		v := row.get(name)
		if _, number := v.(json.Number); number && kindOf(name) != timeOf && kindOf(name) != timeMSOf {
			c.right = true
		}
		text := cut(cell(name, v), widest)
		c.empty = c.empty && text == nothing
		c.cells = append(c.cells, text)
		decimals = max(decimals, decimalsOf(text))
	}
	for i, text := range c.cells {
		if i > 0 && c.right && kindOf(name) == moneyOf {
			c.cells[i] += strings.Repeat(" ", decimals-decimalsOf(text))
		}
		c.width = max(c.width, utf8.RuneCountInString(c.cells[i]))
	}
	return c
}

// decimalsOf counts what stands behind a number's point.
func decimalsOf(text string) int {
	_, decimals, _ := strings.Cut(text, ".")
	return len(decimals)
}

// padded is a cell as wide as its column.
func (c column) padded(line int) string {
	text := c.cells[line]
	space := strings.Repeat(" ", c.width-utf8.RuneCountInString(text))
	if c.right {
		return space + text
	}
	return text + space
}

// cut shortens a text that is too long for a cell; 0: no text is.
func cut(text string, widest int) string {
	if runes := []rune(text); widest > 0 && len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return text
}

// writeLine writes a line of text, into memory or for people who can be told nowhere else.
func writeLine(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\n") }
