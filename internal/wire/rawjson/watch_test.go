package rawjson

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// testRules reads `type` and `text`, matches `file_id`, and leaves `schema` and nested `input` to
// the client.
var testRules = KeyRules{
	Spelling: func(name []byte) (string, bool) {
		for _, read := range []string{"type", "text", "kind"} {
			if bytes.EqualFold(name, []byte(read)) {
				return read, true
			}
		}
		return "", false
	},
	Match: func(name []byte) bool { return string(name) == "file_id" },
	Free: func(name []byte, depth int) bool {
		return string(name) == "schema" || depth > 0 && string(name) == "input"
	},
}

// TestWatch checks that keys are found everywhere except in free values.
func TestWatch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		conflict string
		matches  []string
	}{
		`{"type":1,"text":2}`:                             {},
		`{"Type":1}`:                                      {}, // the form's own list checks the top level
		`{"Type":1,"type":2}`:                             {conflict: "type"},
		`{"type":1,"Type":2}`:                             {conflict: "Type"},
		`{"Foo":1,"fOO":2}`:                               {conflict: "fOO"},
		`{"a":{"Type":1}}`:                                {conflict: "a.Type"},
		`{"a":[{"b":1},{"c":{"TEXT":1}}]}`:                {conflict: "a[1].c.TEXT"},
		"{\"a\":{\"\u212aind\":1}}":                       {conflict: "a.\u212aind"},
		`{"a":{"T\u0079pe":1}}`:                           {conflict: "a.Type"},
		`{"a":{"Other":1},"b":{"oTHER":1}}`:               {},
		`{"a":{"Other":1,"x":{"other":1}}}`:               {},
		`{"a":{"x":{"other":1},"Other":1,"y":1}}`:         {},
		`{"a":{"x":{"Deep":1},"deep":1}}`:                 {},
		`{"a":{"Other":{"x":1},"other":1}}`:               {conflict: "a.other"},
		`{"schema":{"Type":1,"type":2,"file_id":3}}`:      {},
		`{"a":{"schema":{"p":[{"Type":1,"file_id":1}]}}}`: {},
		`{"schema":{},"a":{"file_id":1}}`:                 {matches: []string{"a.file_id"}},
		`{"a":{"schema":{"x":{}},"file_id":1,"Type":1}}`:  {conflict: "a.Type", matches: []string{"a.file_id"}},
		`{"input":[{"file_id":"x"}]}`:                     {matches: []string{"input[0].file_id"}},
		`{"a":{"input":{"file_id":"x","Type":1}}}`:        {},
		`{"file_id":"x","b":[{"file_id":null}]}`:          {matches: []string{"file_id"}},
		`{"a":{"file_id" : [1] },"b":{"file_id":"y"}}`:    {matches: []string{"a.file_id", "b.file_id"}},
	} {
		d, err := OpenWatching([]byte(body), testRules)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		conflict := ""
		if a := d.SimilarKey(); a != nil {
			conflict = d.PathTo(a.At)
		}
		var matches []string
		for at := range d.Matches {
			matches = append(matches, d.PathTo(at))
		}
		if conflict != want.conflict || !slices.Equal(matches, want.matches) {
			t.Errorf("%s: conflict %q, matches %q; want %q and %q", body, conflict, matches, want.conflict, want.matches)
		}
	}
}

// TestWatchIsBounded checks the limits on memory and comparisons, also in deep nesting.
func TestWatchIsBounded(t *testing.T) {
	t.Parallel()
	var capitals, ids strings.Builder
	for i := range maxCapitals + 2 {
		fmt.Fprintf(&capitals, `"K%d":1,`, i)
	}
	for range maxMatches + 1 {
		ids.WriteString(`{"file_id":1},`)
	}
	for name, body := range map[string]string{
		"capitals": `{"a":{` + capitals.String() + `"z":1}}`,
		"matches":  `{"a":[` + ids.String() + `1]}`,
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

func TestPrefixOfStrings(t *testing.T) {
	rules := testRules
	rules.Prefix = "tg1."
	for body, want := range map[string]bool{
		`{"a":"tg1.x"}`:              true,
		`{"a":[1,{"b":["tg1."]}]}`:   true,
		`{"a":"tg1"}`:                false,
		`{"a":"x tg1."}`:             false,
		`{"tg1.":{"tg1.":"\"tg1."}}`: false,
		`{"a":"tg1.x","b":"other"}`:  true,
	} {
		d, err := OpenWatching([]byte(body), rules)
		if err != nil || d.HasPrefix() != want {
			t.Errorf("%s: %v, %v; want %v", body, d.HasPrefix(), err, want)
		}
	}
}
