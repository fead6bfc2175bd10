package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// codeOf returns the code and field of a client-visible error.
func codeOf(t *testing.T, err error) (fault.Code, string) {
	t.Helper()
	if err == nil {
		return "", ""
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("error %v (%T) is no *fault.Error", err, err)
	}
	if f.Message() == "" {
		t.Errorf("%s has no message", f.Code)
	}
	return f.Code, f.Param
}

func TestGate(t *testing.T) {
	t.Parallel()
	many := "{"
	for i := range maxMembers + 1 {
		many += fmt.Sprintf(`"k%d":1,`, i)
	}
	many += `"z":0}`
	for name, test := range map[string]struct {
		body string
		want fault.Code
	}{
		"object":                       {`{}`, ""},
		"object with space around":     {" \r\n\t{ \"a\" : 1 } \n", ""},
		"empty":                        {``, fault.InvalidJSON},
		"only space":                   {"  \n", fault.InvalidJSON},
		"array":                        {`[]`, fault.InvalidRequest},
		"string":                       {`"x"`, fault.InvalidRequest},
		"null":                         {`null`, fault.InvalidRequest},
		"invalid before not an object": {`[1,]`, fault.InvalidJSON},
		"cut":                          {`{"a":1`, fault.InvalidJSON},
		"trailing comma":               {`{"a":1,}`, fault.InvalidJSON},
		"trailing bytes":               {`{} x`, fault.InvalidJSON},
		"two values":                   {`{}{}`, fault.InvalidJSON},
		"comment":                      {`{/**/}`, fault.InvalidJSON},
		"byte order mark":              {"\xef\xbb\xbf{}", fault.InvalidJSON},
		"bad escape":                   {`{"a":"\x"}`, fault.InvalidJSON},
		"short unicode escape":         {`{"a":"\u12"}`, fault.InvalidJSON},
		"line break in a string":       {"{\"a\":\"x\ny\"}", fault.InvalidJSON},
		"number with leading zero":     {`{"a":01}`, fault.InvalidJSON},
		"number with plus":             {`{"a":+1}`, fault.InvalidJSON},
		"number without digits":        {`{"a":1.}`, fault.InvalidJSON},
		"not a number":                 {`{"a":NaN}`, fault.InvalidJSON},
		"bare key":                     {`{a:1}`, fault.InvalidJSON},
		"gzip":                         {"\x1f\x8b\x08\x00", fault.InvalidEncoding},
		"latin 1":                      {"{\"a\":\"\xe9\"}", fault.InvalidEncoding},
		"surrogate in UTF-8":           {"{\"a\":\"\xed\xa0\x80\"}", fault.InvalidEncoding},
		"deepest":                      {`{"a":` + nested(maxRequestDepth-1) + `}`, ""},
		"too deep":                     {`{"a":` + nested(maxRequestDepth) + `}`, fault.InvalidJSON},
		"repeated":                     {`{"model":"a","model":"b"}`, fault.InvalidJSON},
		"repeated after unescaping":    {`{"model":"a","m\u006fdel":"b"}`, fault.InvalidJSON},
		"repeated unknown":             {`{"x":1,"y":2,"x":1}`, fault.InvalidJSON},
		"repeated empty":               {`{"":1,"":2}`, fault.InvalidJSON},
		"repeated in stream_options":   {`{"stream_options":{"a":1,"a":1}}`, fault.InvalidJSON},
		"repeated in a message":        {`{"messages":[{"role":"user"},{"role":"user","content":"","role":"system"}]}`, fault.InvalidJSON},
		"same key in two messages":     {`{"messages":[{"role":"user"},{"role":"user"}]}`, ""},
		"same key at two levels":       {`{"role":1,"messages":[{"role":"user"}]}`, ""},
		"repeated in a part":           {`{"messages":[{"content":[{"a":1,"a":1}]}]}`, fault.InvalidJSON},
		"repeated in a schema":         {`{"tools":[{"function":{"parameters":{"properties":{"a":{},"a":{}}}}}]}`, fault.InvalidJSON},
		"repeated after an object":     {`{"x":{"a":{"b":1},"b":2,"\u0061":3}}`, fault.InvalidJSON},
		"repeated in an array of them": {`{"x":[[],[{"a":1},{"b":1,"b":1}]]}`, fault.InvalidJSON},
		"same key in neighbours":       {`{"x":[{"a":1},{"a":1}],"y":{"a":{"a":{"a":1}}}}`, ""},
		"arguments are a string":       {`{"messages":[{"tool_calls":[{"function":{"arguments":"{\"a\":1,\"a\":2}"}}]}]}`, ""},
		"cut after a repeated key":     {`{"x":{"a":1,"a":2}`, fault.InvalidJSON},
		"odd messages":                 {`{"messages":{"a":1},"stream_options":[1,"x"]}`, ""},
		"too many keys":                {many, fault.InvalidRequest},
		"cut inside a message":         {`{"messages":[{"role"`, fault.InvalidJSON},
		"cut inside the array":         {`{"messages":[`, fault.InvalidJSON},
		"message without comma":        {`{"messages":[{} {}]}`, fault.InvalidJSON},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open([]byte(test.body))
			if code, _ := codeOf(t, err); code != test.want {
				t.Errorf("code %q, want %q (%v)", code, test.want, err)
			}
		})
	}
}

func TestPathOfARepeatedKeyIsShort(t *testing.T) {
	t.Parallel()
	body := strings.Repeat(`{"a":[`, 400) + `{"` + strings.Repeat("k", 1000) + `":1,"` + strings.Repeat("k",
		1000) + `":2}` + strings.Repeat(`]}`, 400)
	_, err := Open([]byte(body))
	if code, _ := codeOf(t, err); code != fault.InvalidJSON || len(err.Error()) > 300 || !strings.Contains(err.Error(), "…") {
		t.Errorf("%v", err)
	}
}

func TestGateFindsRepeatedKeysInLongObjects(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, fewKeys - 1, fewKeys, fewKeys + 1, 25, 1000, 100_000} {
		for _, inner := range []string{"", `{"k1":{"k1":1,"k2":2}}`, longObject(30), `{"k0":` + longObject(14) + `}`} {
			var body bytes.Buffer
			body.WriteString(`{"x":{`)
			for i := range size {
				fmt.Fprintf(&body, `"k%d":%d,`, i, i)
				if inner != "" && i == min(size-1, 20) {
					fmt.Fprintf(&body, `"inner":%s,`, inner)
				}
			}
			text := body.String()
			if _, err := Open([]byte(text + `"last":0}}`)); err != nil {
				t.Errorf("%d keys: %v", size, err)
			}
			for _, again := range []int{0, size / 2, size - 1} {
				if code, _ := codeOf(t, errOf(Open(fmt.Appendf(nil, `%s"k%d":0}}`, text, again)))); code != fault.InvalidJSON {
					t.Errorf("%d keys and k%d repeated: code %q", size, again, code)
				}
			}
		}
	}
}

// longObject returns an object of size members.
func longObject(size int) string {
	var text strings.Builder
	text.WriteByte('{')
	for i := range size {
		fmt.Fprintf(&text, `"k%d":%d,`, i, i)
	}
	return text.String()[:text.Len()-1] + "}"
}

func TestOpenKeysAreBounded(t *testing.T) {
	t.Parallel()
	if code, _ := codeOf(t, errOf(Open([]byte(`{"x":`+longObject(maxOpenKeys)+`}`)))); code != fault.InvalidRequest {
		t.Errorf("code %q", code)
	}
	if _, err := Open([]byte(`{"x":[` + strings.Repeat(longObject(1000)+",", maxOpenKeys/1000+1) + `1]}`)); err != nil {
		t.Error(err)
	}
}

func errOf(_ *RequestBody, err error) error { return err }

func TestGateRecordsMembers(t *testing.T) {
	t.Parallel()
	body := []byte(` { "a" : "x\"y" , "b\u0063":[1,{"z":2}],"n":null, "messages" : [ ] } `)
	doc, err := Open(body)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": `"x\"y"`, "bc": `[1,{"z":2}]`, "n": "", "messages": "[ ]", "none": ""} {
		if got := string(doc.Raw(name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if doc.Find("n") == nil || doc.Find("none") != nil {
		t.Error("find must tell null from absent")
	}
}

// FuzzGate compares the gate with encoding/json, which also accepts other encodings and repeated
// keys.
func FuzzGate(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"a":[1,-0.5e+3,true,false,null,"\u00e9\n"]}`,
		`[`, `{"a":{"b":[[]]}}`, `{"stream_options":{"include_usage":true},"messages":[{},[],1]}`, "\"\x7f\"", `-`, `0e`, `"\ud800"`,
		`{"a":[{"b":1,"c":{"b":2}},{"b":1,"\u0062":2}]}`, `{"x":` + longObject(40) + `}`, `{"x":{"k3":1,"y":` + longObject(20) + `,"k3":2}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := Open(body)
		code, _ := codeOf(t, err)
		valid := json.Valid(body)
		object := valid && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{"))
		switch {
		case !utf8.Valid(body):
			if code != fault.InvalidEncoding {
				t.Fatalf("not UTF-8: %q", code)
			}
		case !valid:
			if code != fault.InvalidJSON {
				t.Fatalf("not JSON: %q", code)
			}
		case !object:
			if code != fault.InvalidRequest {
				t.Fatalf("no object: %q", code)
			}
		case err != nil:
			if code != fault.InvalidJSON || !repeatsKey(t, body) {
				t.Fatalf("refused a valid object: %v", err)
			}
		case repeatsKey(t, body):
			t.Fatal("a repeated key was let pass")
		default:
			var want map[string]json.RawMessage
			if err := json.Unmarshal(body, &want); err != nil {
				t.Fatal(err)
			}
			if len(want) != len(doc.Members) {
				t.Fatalf("%d members, want %d", len(doc.Members), len(want))
			}
			for _, m := range doc.Members {
				if got := body[m.From:m.To]; !bytes.Equal(got, want[string(m.Name)]) && utf8.ValidString(string(m.Name)) {
					t.Fatalf("member %q is %s, want %s", m.Name, got, want[string(m.Name)])
				}
				if skipValue(body, m.From) != m.To {
					t.Fatalf("walker and gate differ on %q", m.Name)
				}
			}
		}
	})
}

// repeatsKey reports whether an object of a valid document has a key twice, according to
// encoding/json.
func repeatsKey(t *testing.T, body []byte) bool {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	type container struct {
		keys map[string]bool // nil for an array
		odd  bool            // a value is next, not a key
	}
	var open []container
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		last := len(open) - 1
		if key, ok := token.(string); ok && last >= 0 && open[last].keys != nil && !open[last].odd {
			if open[last].keys[key] {
				return true
			}
			open[last].keys[key], open[last].odd = true, true
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, container{keys: map[string]bool{}})
			continue
		case json.Delim('['):
			open = append(open, container{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:last]
			last--
		}
		if last >= 0 {
			open[last].odd = false
		}
	}
}

// prompt200K returns a request body of about 200 KB of prose, code and escapes.
func prompt200K() []byte {
	line := "The quick brown fox jumps over the lazy dog; func main() {\\n\\tfmt.Println(\\\"hi\\\")\\n} — naïve café. "
	content := strings.Repeat(line, 195_000/len(line))
	return []byte(`{"model":"swift-1","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` +
		content + `"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"temperature":0.2}`)
}

// agentBody returns the request of a coding agent: many tools with schemas and a long history of
// calls, hardly a long text.
func agentBody() []byte {
	var body bytes.Buffer
	body.WriteString(`{"model":"swift-1","stream":true,"tools":[`)
	for i := range 60 {
		fmt.Fprintf(&body,
			`{"type":"function","function":{"name":"tool_%d","description":"Does the thing number %d.",`+
				`"strict":true,"parameters":{"type":"object","additionalProperties":false,"properties":{`,
			i, i)
		for k := range 15 {
			fmt.Fprintf(&body, `"property_%d":{"type":"string","description":"What it is for.","enum":["a","b"]},`, k)
		}
		body.WriteString(`"last":{"type":"object","properties":{"x":{"type":"integer"}}}},"required":["last"]}}},`)
	}
	body.WriteString(`{"type":"function","function":{"name":"end"}}],"messages":[`)
	for i := range 300 {
		fmt.Fprintf(&body,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"tool_1",`+
				`"arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"call_%d","content":[{"type":"text","text":"Done, and well."}]},`,
			i, i)
	}
	body.WriteString(`{"role":"user","content":"go on"}]}`)
	return body.Bytes()
}

func BenchmarkGate(b *testing.B) {
	for name, body := range map[string][]byte{
		"prompt": prompt200K(), "agent": agentBody(), "100k keys": []byte(`{"x":` + longObject(100_000) + `}`),
		"short": []byte(`{"model":"swift-1","messages":[{"role":"user","content":"Say hello."}],"max_tokens":100}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkJSONValid200K measures the standard library's check for comparison.
func BenchmarkJSONValid200K(b *testing.B) {
	body := prompt200K()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		json.Valid(body)
	}
}
