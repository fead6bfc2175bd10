package rawjson

import (
	"encoding/json"
	"testing"
)

func TestOverride(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body string
		set  map[string]json.RawMessage
		omit []string
		want string
	}{
		{body: ` {"a" : 1, "b":{"a":2}} `, want: ` {"a" : 1, "b":{"a":2}} `},
		{body: ` {"a" : 1, "b":{"a":2}} `, set: map[string]json.RawMessage{"a": []byte(`"x"`)}, want: ` {"a" : "x", "b":{"a":2}} `},
		{body: `{"a":1}`, set: map[string]json.RawMessage{"z": []byte(`[1]`), "c": []byte(`true`)}, want: `{"a":1,"c":true,"z":[1]}`},
		{body: `{}`, set: map[string]json.RawMessage{"c": []byte(`true`)}, want: `{"c":true}`},
		{body: `{"a":1,"b":2,"c":3}`, omit: []string{"b"}, want: `{"a":1,"c":3}`},
		{body: `{"a":1}`, omit: []string{"a"}, want: `{}`},
		{body: `{"a":1,"b":2}`, omit: []string{"a"}, set: map[string]json.RawMessage{"c": []byte(`3`)}, want: `{"b":2,"c":3}`},
		{body: `{"a":1,"b":2}`, omit: []string{"b", "a"}, set: map[string]json.RawMessage{"c": []byte(`3`)}, want: `{"c":3}`},
		// Servers that fold case would use the last.
		{body: `{"A":1,"b":2}`, set: map[string]json.RawMessage{"a": []byte(`3`)}, want: `{"b":2,"a":3}`},
		{body: `{"a":1,"B":2}`, omit: []string{"b"}, want: `{"a":1}`},
		{body: `{"\u0061":1}`, set: map[string]json.RawMessage{"a": []byte(`3`)}, want: `{"\u0061":3}`},
		{body: `[1]`, omit: []string{"b"}, want: `[1]`},
		{body: ``, omit: []string{"b"}, want: ``},
	} {
		got := string(Override(Pieces{[]byte(test.body)}, test.set, test.omit).Bytes())
		if got != test.want || test.body != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s with %s without %s: %s; want %s", test.body, test.set, test.omit, got, test.want)
		}
	}
}
