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

// format has the flags for the format of answers. The default is a table on a terminal, or
// else JSON.
type format struct {
	JSON bool `help:"Print the operator API's JSON (default if the output is not a terminal)." xor:"format"`
	CSV  bool `name:"csv" help:"Print comma-separated values: a header, then one line per entry." xor:"format"`
}

// AfterApply implements kong.AfterApply.
func (f *format) AfterApply(p *process) error {
	p.format = *f
	return nil
}

// view describes how an answer is printed. The zero value shows all members.
type view struct {
	tableColumns []string                                    // most important first; a narrow terminal drops the last columns
	csvColumns   []string                                    // first columns of CSV; other members follow
	emptyText    string                                      // text for an empty list; optional
	writeBelow   func(w io.Writer, rows []object, width int) // writes below the table; optional
}

// print writes an answer in the chosen format.
func (p *process) print(raw []byte, v view) error {
	width := terminalWidth(p.stdout)
	if p.format.JSON || !p.format.CSV && width == 0 {
		return printJSON(p.stdout, raw)
	}
	answer, err := parseJSON(raw)
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
		if more, _ := o.get("has_more").(bool); more {
			printError(p.stderr, "there are more entries: continue with --after "+printable(nextID(o)))
		}
		err = writeCSV(&out, o, v)
	case isTotal(o):
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

// warn prints the warnings of an answer on standard error and returns its other members.
func (p *process) warn(o object) object {
	const name = "warnings"
	warnings, _ := o.get(name).([]any)
	for _, w := range warnings {
		text, _ := w.(string)
		writeLine(p.stderr, "warning: "+printable(text))
	}
	return slices.DeleteFunc(o, func(m member) bool { return m.name == name })
}

func printJSON(w io.Writer, raw []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("the answer of the operator API is not JSON: %w", err)
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}

// isList reports whether an answer is a list, not an object with a list inside.
func isList(o object) bool {
	kind := o.get("object")
	return kind == "list" || kind == "usage.report"
}

// isTotal reports whether an answer is a usage report without groups.
func isTotal(o object) bool {
	groups, ok := o.get("group_by").([]any)
	return ok && len(groups) == 0
}

// writeCSV writes the entries of a list, or a single object.
func writeCSV(w io.Writer, o object, v view) error {
	rows := []object{o}
	if isList(o) {
		rows, _ = rowsOf(o.get("data"))
	}
	names := membersOf(rows, v.csvColumns)
	out := csv.NewWriter(w)
	if err := out.Write(names); err != nil {
		return err
	}
	for _, row := range rows {
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = csvCell(name, row.get(name))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// writeList writes a list as a table, with the total of the answer if it has one.
func writeList(w io.Writer, o object, v view, width int) {
	rows, _ := rowsOf(o.get("data"))
	if len(rows) == 0 {
		if next, _ := o.get("next").(string); next != "" {
			writeLine(w, "No matching entry in the part searched so far. Search further back with --after "+printable(next))
			return
		}
		writeLine(w, cmp.Or(v.emptyText, "No entries."))
		writeSandbox(w, o)
		return
	}
	names := v.tableColumns
	if groups, ok := o.get("group_by").([]any); ok {
		names = nil
		for _, group := range groups {
			name, _ := group.(string)
			if title := name + "_name"; rows[0].get(title) != nil {
				names = append(names, title)
			}
			names = append(names, name)
		}
		names = append(names, v.tableColumns...)
	}
	if len(names) == 0 {
		names = membersOf(rows, nil)
	}
	if total, ok := o.get("total").(object); ok && len(rows) > 1 {
		rows = append(rows, append(object{{names[0], "total"}}, total...))
	}
	if dropped := (table{names: names, width: width, maxCell: maxListCell}).write(w, rows); dropped > 0 {
		writeLine(w, fmt.Sprintf("\nColumns that do not fit on this terminal: %d. --json and --csv show all.", dropped))
	}
	if v.writeBelow != nil {
		v.writeBelow(w, rows, width)
	}
	writeSandbox(w, o)
	if more, _ := o.get("has_more").(bool); more {
		writeLine(w, "\nThere are more entries: continue with --after "+printable(nextID(o)))
	}
}

// writeSandbox writes the number of sandbox requests, which a usage report leaves out.
func writeSandbox(w io.Writer, report object) {
	excluded, _ := report.get("sandbox").(object)
	if requests, _ := excluded.get("requests").(json.Number); requests != "" && requests != "0" {
		writeLine(w, "\nNot counted: requests to the sandbox ("+requests.String()+"). --line shows those of one line.")
	}
}

// nextID returns the id for --after to continue a list.
func nextID(o object) string {
	next, ok := o.get("next").(string)
	if rows, _ := rowsOf(o.get("data")); !ok && len(rows) > 0 {
		next, _ = rows[len(rows)-1].get("id").(string)
	}
	return next
}

// writeDetails writes an object, one line per member, and its lists as tables.
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
		if dropped := (table{names: membersOf(rows, nil), width: width, indent: "  ", showCauses: true}).write(w, rows); dropped > 0 {
			writeLine(w, fmt.Sprintf("  columns that do not fit on this terminal: %d", dropped))
		}
	}
}

// maxListCell is the maximum width of a cell in a list.
const maxListCell = 60

// table is a layout for rows.
type table struct {
	names      []string // names of the columns
	width      int      // width of the terminal
	indent     string
	maxCell    int  // longest cell; zero means no limit
	showCauses bool // show causes below their rows, in full
}

// write writes the rows with a header and returns the number of columns that did not fit.
// It drops columns without a value, aligns numbers right, and money at the decimal point.
func (t table) write(w io.Writer, rows []object) (dropped int) {
	usedWidth := len(t.indent)
	columns := []column{}
	for _, name := range t.names {
		if t.showCauses && name == "cause" || name == "at" && slices.Contains(t.names, "at_ms") {
			continue
		}
		c := newColumn(name, rows, t.maxCell)
		if maxWidth := t.width - usedWidth; name == "cause" && maxWidth >= minCause && c.width > maxWidth {
			c = newColumn(name, rows, maxWidth)
		}
		switch {
		case c.isEmpty:
		case len(columns) > 0 && (dropped > 0 || usedWidth+c.width > t.width):
			dropped++
		default:
			usedWidth += c.width + len(gap)
			columns = append(columns, c)
		}
	}
	for line := range len(rows) + 1 {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.pad(line)
		}
		writeLine(w, strings.TrimRight(t.indent+strings.Join(cells, gap), " "))
		if line > 0 && t.showCauses {
			if cause, ok := rows[line-1].get("cause").(string); ok && cause != "" {
				writeLine(w, t.indent+gap+printable(cause))
			}
		}
	}
	return dropped
}

// minCause is the minimum width of a column for shortened causes.
const minCause = 20

// gap separates columns.
const gap = "  "

type column struct {
	cells      []string // the title first
	width      int
	alignRight bool
	isEmpty    bool
}

func newColumn(name string, rows []object, maxCell int) column {
	c := column{cells: []string{strings.ToUpper(label(name))}, isEmpty: true}
	decimals := 0
	for _, row := range rows {
		v := row.get(name)
		if _, number := v.(json.Number); number && unitOf(name) != unixSeconds && unitOf(name) != unixMillis {
			c.alignRight = true
		}
		text := truncate(cell(name, v), maxCell)
		c.isEmpty = c.isEmpty && text == noValue
		c.cells = append(c.cells, text)
		decimals = max(decimals, decimalsOf(text))
	}
	if unitOf(name) == unixSeconds || unitOf(name) == unixMillis {
		c.moveZoneToTitle()
	}
	for i, text := range c.cells {
		if i > 0 && c.alignRight && unitOf(name) == usDollars {
			c.cells[i] += strings.Repeat(" ", decimals-decimalsOf(text))
		}
		c.width = max(c.width, utf8.RuneCountInString(c.cells[i]))
	}
	return c
}

// moveZoneToTitle moves the time zone from the cells of a column into its title, unless the cells have
// different zones.
func (c column) moveZoneToTitle() {
	zone := ""
	for _, text := range c.cells[1:] {
		if text == noValue {
			continue
		}
		cellZone := text[strings.LastIndex(text, " ")+1:]
		if zone != "" && cellZone != zone {
			return
		}
		zone = cellZone
	}
	if zone == "" {
		return
	}
	c.cells[0] += " (" + zone + ")"
	for i, text := range c.cells[1:] {
		c.cells[i+1] = strings.TrimSuffix(text, " "+zone)
	}
}

// decimalsOf returns the number of decimals of a formatted number.
func decimalsOf(text string) int {
	_, decimals, _ := strings.Cut(text, ".")
	return len(decimals)
}

// pad returns a cell with the width of the column.
func (c column) pad(line int) string {
	text := c.cells[line]
	space := strings.Repeat(" ", c.width-utf8.RuneCountInString(text))
	if c.alignRight {
		return space + text
	}
	return text + space
}

// truncate shortens a text to max characters. Zero means no limit.
func truncate(text string, max int) string {
	if runes := []rune(text); max > 0 && len(runes) > max {
		return string(runes[:max-1]) + "…"
	}
	return text
}

// writeLine writes a line. It ignores errors, because w is a buffer or standard error.
func writeLine(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\n") }
