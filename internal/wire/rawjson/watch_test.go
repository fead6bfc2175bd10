package rawjson

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// testRules reads `type` and `text`, notes `file_id`, and leaves `schema` and
// nested `input` to the client.
var testRules = KeyRules{
	Reads: func(name []byte) (string, bool) {
		for _, read := range []string{"type", "text", "kind"} {
			if bytes.EqualFold(name, []byte(read)) {
				return read, true
			}
		}
		return "", false
	},
	Notes: func(name []byte) bool { return string(name) == "file_id" },
	Free: func(name []byte, depth int) bool {
		return string(name) == "schema" || depth > 0 && string(name) == "input"
	},
}

// TestWatch: keys are reported wherever they stand but in free values.
func TestWatch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		alike string
		noted []string
	}{
		`{"type":1,"text":2}`:                             {},
		`{"Type":1}`:                                      {}, // the form's own list judges the top level
		`{"Type":1,"type":2}`:                             {alike: "type"},
		`{"type":1,"Type":2}`:                             {alike: "Type"},
		`{"Foo":1,"fOO":2}`:                               {alike: "fOO"},
		`{"a":{"Type":1}}`:                                {alike: "a.Type"},
		`{"a":[{"b":1},{"c":{"TEXT":1}}]}`:                {alike: "a[1].c.TEXT"},
		"{\"a\":{\"\u212aind\":1}}":                       {alike: "a.\u212aind"},
		`{"a":{"T\u0079pe":1}}`:                           {alike: "a.Type"},
		`{"a":{"Other":1},"b":{"oTHER":1}}`:               {},
		`{"a":{"Other":1,"x":{"other":1}}}`:               {},
		`{"a":{"x":{"other":1},"Other":1,"y":1}}`:         {},
		`{"a":{"x":{"Deep":1},"deep":1}}`:                 {},
		`{"a":{"Other":{"x":1},"other":1}}`:               {alike: "a.other"},
		`{"schema":{"Type":1,"type":2,"file_id":3}}`:      {},
		`{"a":{"schema":{"p":[{"Type":1,"file_id":1}]}}}`: {},
		`{"schema":{},"a":{"file_id":1}}`:                 {noted: []string{"a.file_id"}},
		`{"a":{"schema":{"x":{}},"file_id":1,"Type":1}}`:  {alike: "a.Type", noted: []string{"a.file_id"}},
		`{"input":[{"file_id":"x"}]}`:                     {noted: []string{"input[0].file_id"}},
		`{"a":{"input":{"file_id":"x","Type":1}}}`:        {},
		`{"file_id":"x","b":[{"file_id":null}]}`:          {noted: []string{"file_id"}},
		`{"a":{"file_id" : [1] },"b":{"file_id":"y"}}`:    {noted: []string{"a.file_id", "b.file_id"}},
	} {
		d, err := OpenWatching([]byte(body), testRules)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		alike := ""
		if a := d.Alike(); a != nil {
			alike = d.PathTo(a.At)
		}
		var noted []string
		for at := range d.Noted {
			noted = append(noted, d.PathTo(at))
		}
		if alike != want.alike || !slices.Equal(noted, want.noted) {
			t.Errorf("%s: alike %q, noted %q; want %q and %q", body, alike, noted, want.alike, want.noted)
		}
	}
}

// TestWatchIsBounded: what a client can make the gate remember and compare has
// limits, and depth does not multiply the work.
func TestWatchIsBounded(t *testing.T) {
	t.Parallel()
	var capitals, ids strings.Builder
	for i := range maxCapitals + 2 {
		fmt.Fprintf(&capitals, `"K%d":1,`, i)
	}
	for range maxNoted + 1 {
		ids.WriteString(`{"file_id":1},`)
	}
	for name, body := range map[string]string{
		"capitals": `{"a":{` + capitals.String() + `"z":1}}`,
		"noted":    `{"a":[` + ids.String() + `1]}`,
	} {
		if _, err := OpenWatching([]byte(body), testRules); err == nil {
			t.Errorf("%s: no limit", name)
		}
		free := strings.Replace(body, `{"a":`, `{"schema":`, 1)
		if _, err := OpenWatching([]byte(free), testRules); err != nil {
			t.Errorf("%s in a free value: %v", name, err)
		}
	}
}
