package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tollgate/internal/app"
)

// unit is the unit of a number.
type unit int

const (
	count unit = iota
	usDollars
	unixSeconds
	unixMillis
	millis
	ratio // 0 to 1
)

// unitOf returns the unit of the member called name.
func unitOf(name string) unit {
	switch name {
	case "created", "ended", "started", "at", "expires", "redeemed", "last_used", "cooling_until", "cause_at", "next_attempt_at",
		"link_expires", "since", "until", "sent":
		return unixSeconds
	case "success_rate":
		return ratio
	case "first_byte_ms", "duration_ms", "response_ms":
		return millis
	case "usd":
		return usDollars
	}
	switch {
	case strings.HasSuffix(name, "_usd"):
		return usDollars
	case strings.HasSuffix(name, "_ms"):
		return unixMillis
	}
	return count
}

// noValue is the text of a cell without a value.
const noValue = "-"

// cell formats a value for people: money with cents, times in this machine's time zone.
func cell(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return noValue
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case json.Number:
		return numberCell(name, v)
	case string:
		if v == "" {
			return noValue
		}
		return printable(v)
	case []any:
		return listCell(name, v)
	}
	return printable(toJSON(v))
}

func listCell(name string, list []any) string {
	if len(list) == 0 {
		return noValue
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
	switch unitOf(name) {
	case usDollars:
		return withCents(n.String())
	case unixSeconds, unixMillis:
		return timeCell(name, int64(f))
	case millis:
		return (time.Duration(f) * time.Millisecond).String()
	case ratio:
		return strconv.FormatFloat(f*100, 'f', 1, 64) + "%"
	}
	return n.String()
}

// timeCell formats a time in this machine's time zone. Zero means no time.
func timeCell(name string, n int64) string {
	switch {
	case n == 0:
		return noValue
	case unitOf(name) == unixSeconds:
		return time.Unix(n, 0).Format(time.DateTime + " MST")
	}
	return time.UnixMilli(n).Format(time.DateTime + ".000 MST")
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

// printable replaces control characters, so that untrusted text cannot move the cursor of
// a terminal or add a line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, text)
}

func toJSON(v any) string {
	switch v := v.(type) {
	case object:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = strconv.Quote(m.name) + ":" + toJSON(m.value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = toJSON(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return noValue // cannot happen: v is a string, a number, a bool or nil
	}
	return string(raw)
}

// csvCell formats a value for CSV: exact amounts, times in ISO 8601 and UTC, lists and
// objects as JSON. No spreadsheet evaluates the result as a formula.
func csvCell(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case string:
		return app.CSVCell(v)
	case json.Number:
		if sec, err := v.Int64(); err == nil && unitOf(name) == unixSeconds {
			return time.Unix(sec, 0).UTC().Format(time.RFC3339)
		}
		return v.String()
	case []any:
		if len(v) == 0 {
			return ""
		}
	}
	return strings.ReplaceAll(toJSON(v), ";", `\u003b`) // a semicolon (in JSON only in strings) ends a cell in some spreadsheets
}

// label returns the title of a member, without _ms because the cells show the unit.
func label(name string) string { return strings.ReplaceAll(strings.TrimSuffix(name, "_ms"), "_", " ") }
