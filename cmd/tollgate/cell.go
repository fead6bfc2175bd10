package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tollgate/internal/app"
)

// kind is how a member's value is read; its name tells.
type kind int

const (
	figure     kind = iota
	moneyOf         // US dollars
	timeOf          // Unix seconds
	timeMSOf        // Unix milliseconds
	durationOf      // milliseconds
	shareOf         // 0 to 1
)

// kindOf tells what a number called name is.
func kindOf(name string) kind {
	switch name {
	case "created", "ended", "started", "at", "expires", "redeemed", "last_used", "cooling_until", "cause_at", "next_attempt_at",
		"link_expires", "since", "until":
		return timeOf
	case "success_rate":
		return shareOf
	case "first_byte_ms", "duration_ms", "response_ms":
		return durationOf
	case "usd":
		return moneyOf
	}
	switch {
	case strings.HasSuffix(name, "_usd"):
		return moneyOf
	case strings.HasSuffix(name, "_ms"):
		return timeMSOf
	}
	return figure
}

// nothing stands in a cell without a value.
const nothing = "-"

// cell is a value as people read it: money with its cents, times of the clock on
// this machine's wall.
func cell(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return nothing
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case json.Number:
		return numberCell(name, v)
	case string:
		if v == "" {
			return nothing
		}
		return harmless(v)
	case []any:
		return listCell(name, v)
	}
	return harmless(compact(v))
}

func listCell(name string, list []any) string {
	if len(list) == 0 {
		return nothing
	}
	if _, objects := rowsOf(list); objects {
		return strconv.Itoa(len(list))
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = cell(name, v)
	}
	return strings.Join(texts, ", ")
}

func numberCell(name string, n json.Number) string {
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	switch kindOf(name) {
	case moneyOf:
		return withCents(n.String())
	case timeOf, timeMSOf:
		return timeCell(name, int64(f))
	case durationOf:
		return (time.Duration(f) * time.Millisecond).String()
	case shareOf:
		return strconv.FormatFloat(f*100, 'f', 1, 64) + "%"
	}
	return n.String()
}

// timeCell is a time by the clock of this machine's wall; 0 is none.
func timeCell(name string, n int64) string {
	switch {
	case n == 0:
		return nothing
	case kindOf(name) == timeOf:
		return time.Unix(n, 0).Format(time.DateTime)
	}
	return time.UnixMilli(n).Format(time.DateTime + ".000")
}

// withCents gives a decimal number at least two decimals.
func withCents(number string) string {
	_, decimals, _ := strings.Cut(number, ".")
	switch {
	case strings.ContainsAny(number, "eE"):
		return number
	case decimals == "":
		return number + ".00"
	case len(decimals) == 1:
		return number + "0"
	}
	return number
}

// harmless is a text of strangers that cannot move a terminal's cursor, or pass
// for a line of ours.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, text)
}

// compact is a value as JSON.
func compact(v any) string {
	switch v := v.(type) {
	case object:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = strconv.Quote(m.name) + ":" + compact(m.value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = compact(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nothing // texts, numbers and words of JSON: cannot be
	}
	return string(raw)
}

// field is a value as CSV has it: amounts exact, times in ISO 8601 and UTC, lists
// and objects as JSON. No text of theirs is computed in a spreadsheet.
func field(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case string:
		return app.CSVCell(v)
	case json.Number:
		if at, err := v.Int64(); err == nil && kindOf(name) == timeOf {
			return time.Unix(at, 0).UTC().Format(time.RFC3339)
		}
		return v.String()
	case []any:
		if len(v) == 0 {
			return ""
		}
	}
	return strings.ReplaceAll(compact(v), ";", `\u003b`) // JSON has them in texts alone, and they would begin a cell (CSVCell)
}

// label is what a member is called before people; cells say their unit, where it is no
// money.
func label(name string) string { return strings.ReplaceAll(strings.TrimSuffix(name, "_ms"), "_", " ") }
