package main

import (
	"testing"
	"time"
)

// TestCellFormats checks the formats of values for people and in CSV.
func TestCellFormats(t *testing.T) {
	t.Parallel()
	t0 := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name, value string
		text, csv   string
	}{
		{"balance_usd", `12.5`, "12.50", "12.5"},
		{"usd", `-5`, "-5.00", "-5"},
		{"cost_usd", `0.000000001`, "0.000000001", "0.000000001"},
		{"line_cost_usd", `null`, "-", ""},
		{"created", `1700000000`, t0.Format(time.DateTime + " MST"), "2023-11-14T22:13:20Z"},
		{"at_ms", `1700000000005`, t0.Format(time.DateTime) + ".005" + t0.Format(" MST"), "1700000000005"},
		{"last_used", `null`, "-", ""},
		{"duration_ms", `1500`, "1.5s", "1500"},
		{"success_rate", `0.25`, "25.0%", "0.25"},
		{"status", `200`, "200", "200"},
		{"disabled", `false`, "no", "false"},
		{"name", `""`, "-", ""},
		{"name", `"=HYPERLINK(1)"`, "=HYPERLINK(1)", "'=HYPERLINK(1)"},
		{"name", `"a\u001b[2Jb\nc"`, "a·[2Jb·c", "a\x1b[2Jb\nc"},
		{"name", `"x;=1+1;y"`, "x;=1+1;y", "x;'=1+1;y"},
		{"name", `"-5"`, "-5", "-5"},
		{"allowed_models", `["a;=1+1"]`, "a;=1+1", `["a\u003b=1+1"]`},
		{"prices", `{"a;@x":0.5}`, `{"a;@x":0.5}`, `{"a\u003b@x":0.5}`},
		{"allowed_models", `["a","b"]`, "a, b", `["a","b"]`},
		{"allowed_models", `[]`, "-", ""},
		{"attempts", `[{"line":"a"},{"line":"b"}]`, "2", `[{"line":"a"},{"line":"b"}]`},
		{"price", `{"input":0.25,"above":[{"x":null}]}`, `{"input":0.25,"above":[{"x":null}]}`, `{"input":0.25,"above":[{"x":null}]}`},
	} {
		v, err := parseJSON([]byte(c.value))
		if err != nil {
			t.Fatal(err)
		}
		if got := cell(c.name, v); got != c.text {
			t.Errorf("cell(%s, %s) = %q, want %q", c.name, c.value, got, c.text)
		}
		if got := csvCell(c.name, v); got != c.csv {
			t.Errorf("csvCell(%s, %s) = %q, want %q", c.name, c.value, got, c.csv)
		}
	}
	for _, invalid := range []string{``, `{`, `{"a"`, `[1`, `{"a":1]`} {
		if v, err := parseJSON([]byte(invalid)); err == nil {
			t.Errorf("parseJSON(%q) = %v, want an error", invalid, v)
		}
	}
}

// TestViewColumns checks that the CSV columns of a view have no duplicates and include every column
// of its table.
func TestViewColumns(t *testing.T) {
	t.Parallel()
	for _, v := range []view{accountsView(), entriesView(), keysView(), usersView(),
		deliveriesView(), mailsView(), requestsView(), jobsView(), linesView()} {
		csvColumns := map[string]bool{}
		for _, name := range v.csvColumns {
			if csvColumns[name] {
				t.Errorf("column %s is twice in the CSV columns %v", name, v.csvColumns)
			}
			csvColumns[name] = true
		}
		for _, name := range v.tableColumns {
			if !csvColumns[name] {
				t.Errorf("table column %s is not in the CSV columns %v", name, v.csvColumns)
			}
		}
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string][2]string{
		"24h":                       {"2026-05-30T12:00:00Z", "2026-06-01T12:00:00Z"},
		"2026-05-01":                {"2026-05-01", "2026-05-01T00:00:00Z"},
		"2026-05-01T02:00:00+02:00": {"2026-05-01T02:00:00+02:00", "2026-05-01T00:00:00Z"},
	} {
		var m moment
		if err := m.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if param, resolved := m.param(now), m.resolve(now).UTC().Format(time.RFC3339); param != want[0] || resolved != want[1] {
			t.Errorf("the moment %s has the parameter %s and resolves to %s, want %q", text, param, resolved, want)
		}
	}
	for _, text := range []string{"", "-1h", "0s", "yesterday", "2026-13-01"} {
		if err := new(moment).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText accepts %q, want an error", text)
		}
	}
	if got := (*moment)(nil).param(now); got != "" {
		t.Errorf("the parameter of a nil moment is %q, want it empty", got)
	}
}
