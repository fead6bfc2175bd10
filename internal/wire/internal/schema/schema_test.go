package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestSchemasAreAdapted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		target *Subset
		in     string
		want   string // empty means unchanged
	}{
		"a supported schema is unchanged": {Messages(), `{ "type":"object", "properties":{"a":{"type":"string","enum":["x"],` +
			`"description":"d"},` +
			`"b":{"type":"array","minItems":1,"items":{"type":["string","null"],"format":"date"}}},"required":["a"],` +
			`"additionalProperties":false}`, ""},
		"additionalProperties is added as false": {Messages(), `{"type":"object","properties":{"a":{"type":"object","properties":{}},` +
			`"b":{"properties":{"c":true}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":false},` +
				`"b":{"properties":{"c":true},"additionalProperties":false}},"additionalProperties":false}`},
		"additionalProperties is replaced by false": {Messages(), `{"additionalProperties":true,"type":["object","null"]}`,
			`{"additionalProperties":false,` +
				`"type":["object","null"]}`},
		"bounds go into the description": {Messages(),
			`{"type":"integer","minimum":3,"maximum":1.50}`, `{"type":"integer","description":"minimum: 3, maximum: 1.50"}`},
		"bounds follow an existing description": {Messages(),
			`{"description":"A \"name\"","type":"string","maxLength":10,"pattern":"^\\w+$"}`,
			`{"description":"A \"name\" (maxLength: 10, pattern: \"^\\\\w+$\")","type":"string"}`},
		"bounds of arrays": {Messages(), `{"type":"array","minItems":2,"maxItems":9,"uniqueItems":true,` +
			`"items":{"type":"string","format":"color"}}`,
			`{"type":"array","items":{"type":"string","description":"format: \"color\""},"description":"minItems: 2,` +
				` maxItems: 9, uniqueItems: true"}`},
		"a property may be named like a keyword": {Messages(),
			`{"type":"object","properties":{"minimum":{"type":"string"},"pattern":{"type":"string"}},` +
				`"additionalProperties":false}`, ""},
		"annotations are dropped": {Messages(), `{"$schema":"s","$id":"i","title":"T","type":"string","default":"x","examples":["y"]}`,
			`{"title":"T","type":"string","default":"x"}`},
		"oneOf and a single allOf become anyOf": {Messages(), `{"oneOf":[{"type":"string"},{"allOf":[{"$ref":"#/definitions/a"}]}],` +
			`"definitions":{"a":{"type":"null"}}}`,
			`{"anyOf":[{"type":"string"},{"anyOf":[{"$ref":"#/$defs/a"}]}],"$defs":{"a":{"type":"null"}}}`},
		"definitions of both kinds stay": {Messages(), `{"$defs":{"a":{"type":"null"}},` +
			`"definitions":{"b":{"$ref":"#/definitions/c"},"c":{}}}`, ""},
		"bounds beside a reference are dropped": {Messages(), `{"$ref":"#/$defs/a","description":"d","minimum":1,` +
			`"$defs":{"a":{"type":"number","minimum":1}}}`,
			`{"$ref":"#/$defs/a","$defs":{"a":{"type":"number","description":"minimum: 1"}}}`},
		"strict": {Strict(), `{"type":"object","properties":{"a":{"type":"string","minLength":1,"pattern":"x","default":"y"}},` +
			`"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"x","description":"minLength: 1, default: \"y\""}},` +
				`"required":["a"],"additionalProperties":false}`},
		"a strict schema may be recursive": {Strict(), `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"],` +
			`"additionalProperties":false}`, ""},
		"Gemini": {Gemini(), `{"type":"object","properties":{"a":{"type":"integer","minimum":1,"exclusiveMaximum":9},` +
			`"b":{"const":"x"},` +
			`"c":{"const":null},"d":{"allOf":[{"type":"string"},{"minLength":1}]}},"additionalProperties":{"type":"string"}}`,
			`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"description":"exclusiveMaximum: 9"},` +
				`"b":{"enum":["x"]},` +
				`"c":{"description":"const: null"},"d":{"description":"allOf: [{\"type\":\"string\"},{\"minLength\":1}]"}},` +
				`"additionalProperties":{"type":"string"}}`},
		"Gemini supports most keywords": {Gemini(), `{"type":["object","null"],"properties":{"a":{"$ref":"#/$defs/a"}},"oneOf":[{}],` +
			`"$defs":{"a":{"type":"string","format":"x"}}}`, ""},
		"no schema": {Gemini(), `true`, ""},
	} {
		got, err := tt.target.For([]byte(tt.in), "s")
		if tt.want == "" {
			tt.want = tt.in
		}
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, got, tt.want)
		}
		if again, err := tt.target.For(got, "s"); err != nil || string(again) != string(got) {
			t.Errorf("%s: the second adaptation changes the schema: %v %s", name, err, again)
		}
	}
}

func TestUnsupportedSchemas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		target *Subset
		path   string
	}{
		`{"type":"object",` +
			`"additionalProperties":{"type":"string"}}`: {Messages(),
			".additionalProperties"},
		`{"type":"array","items":{"type":"object",` +
			`"patternProperties":{"x":{}}}}`: {Messages(), ".items.patternProperties"},
		`{"anyOf":[{},{"allOf":[{},` +
			`{}]}]}`: {Messages(), ".anyOf[1].allOf"},
		`{"properties":{"a":{"enum":["x",` +
			`{"y":1}]}}}`: {Messages(), ".properties.a.enum"},
		`{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`: {
			Messages(), ".properties.a.$ref"},
		`{"properties":{"a":{"$ref":"#"}}}`: {Messages(), ""},
		`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/b/items"}},"b":{"items":{"$ref":"#/$defs/a"}}}}`: {Messages(), ""},
		`{"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`:                                                             {Messages(), ""},
		`{"type":"object","properties":{"a":{},"b":{}},` +
			`"required":["b"]}`: {Strict(), ".required"},
		`{"items":` + strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat("}", 201): {Gemini(),
			strings.Repeat(".items", 101)},
	} {
		_, err := want.target.For([]byte(in), "s")
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.InvalidRequest || f.Param != "s"+want.path || !strings.HasPrefix(f.Message(),
			"`"+f.Param+"` ") {
			t.Errorf("%.200s: error %v, want param s%s", in, err, want.path)
		}
	}
}

// FuzzSchema checks that an adapted schema is valid JSON.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{`{}`, `{"type":"object","properties":{"a":{"minimum":1}}}`, `[{"allOf":[{}]}]`, `{"const":-1,` +
		`"enum":1,"anyOf":[]}`,
		`{"$ref":"#/definitions/a","definitions":{"a":{"description":"\u00e9","maxLength":1}}}`, `{"description":7,"x":1,` +
			`"definitions":1,"$defs":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) {
			return
		}
		in = []byte(strings.TrimSpace(string(in)))
		for _, target := range []*Subset{Messages(), Strict(), Gemini()} {
			out, err := target.For(in, "s")
			if err != nil {
				continue
			}
			if !json.Valid(out) {
				t.Fatalf("%s was adapted to invalid JSON: %s", in, out)
			}
		}
	})
}
