package wire

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
	if f.Message == "" {
		t.Errorf("%s has no message", f.Code)
	}
	return f.Code, f.Param
}

func TestOpenChatGate(t *testing.T) {
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
		"deepest":                      {`{"a":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`, ""},
		"too deep":                     {`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, fault.InvalidJSON},
		"repeated":                     {`{"model":"a","model":"b"}`, fault.InvalidJSON},
		"repeated after unescaping":    {`{"model":"a","m\u006fdel":"b"}`, fault.InvalidJSON},
		"repeated unknown":             {`{"x":1,"y":2,"x":1}`, fault.InvalidJSON},
		"repeated empty":               {`{"":1,"":2}`, fault.InvalidJSON},
		"repeated in stream_options":   {`{"stream_options":{"a":1,"a":1}}`, fault.InvalidJSON},
		"repeated in a message":        {`{"messages":[{"role":"user"},{"role":"user","content":"","role":"system"}]}`, fault.InvalidJSON},
		"same key in two messages":     {`{"messages":[{"role":"user"},{"role":"user"}]}`, ""},
		"same key at two levels":       {`{"role":1,"messages":[{"role":"user"}]}`, ""},
		"repeated deeper":              {`{"messages":[{"content":[{"a":1,"a":1}]}],"x":{"a":1,"a":2}}`, ""},
		"odd messages":                 {`{"messages":{"a":1},"stream_options":[1,"x"]}`, ""},
		"too many keys":                {many, fault.InvalidRequest},
		"cut inside a message":         {`{"messages":[{"role"`, fault.InvalidJSON},
		"cut inside the array":         {`{"messages":[`, fault.InvalidJSON},
		"message without comma":        {`{"messages":[{} {}]}`, fault.InvalidJSON},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := OpenChat([]byte(test.body))
			if code, _ := codeOf(t, err); code != test.want {
				t.Errorf("code %q, want %q (%v)", code, test.want, err)
			}
		})
	}
}

func TestGateFindsRepeatedKeysInLongObjects(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 23, 24, 25, 26, 1000} {
		var body bytes.Buffer
		body.WriteString("{")
		for i := range size {
			fmt.Fprintf(&body, `"k%d":%d,`, i, i)
		}
		if _, err := OpenChat(append(body.Bytes(), `"last":0}`...)); err != nil {
			t.Errorf("%d keys: %v", size, err)
		}
		repeated := append(body.Bytes(), fmt.Sprintf(`"k%d":0}`, size-1)...)
		if code, _ := codeOf(t, errOf(OpenChat(repeated))); code != fault.InvalidJSON {
			t.Errorf("%d keys and one repeated: code %q", size, code)
		}
	}
}

func errOf(_ *ChatRequest, err error) error { return err }

func TestGateRecordsMembers(t *testing.T) {
	t.Parallel()
	body := []byte(` { "a" : "x\"y" , "b\u0063":[1,{"z":2}],"n":null, "messages" : [ ] } `)
	doc, err := open(body, "messages")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": `"x\"y"`, "bc": `[1,{"z":2}]`, "n": "", "messages": "[ ]", "none": ""} {
		if got := string(doc.raw(name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if doc.find("n") == nil || doc.find("none") != nil {
		t.Error("find must tell null from absent")
	}
}

// FuzzGate holds the gate against encoding/json, which has the same idea of
// JSON but takes any encoding and repeated keys.
func FuzzGate(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"a":[1,-0.5e+3,true,false,null,"\u00e9\n"]}`,
		`[`, `{"a":{"b":[[]]}}`, `{"stream_options":{"include_usage":true},"messages":[{},[],1]}`, "\"\x7f\"", `-`, `0e`, `"\ud800"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := open(body, "messages", "stream_options")
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
			if !strings.Contains(err.Error(), "more than once") {
				t.Fatalf("refused a valid object: %v", err)
			}
		default:
			var want map[string]json.RawMessage
			if err := json.Unmarshal(body, &want); err != nil {
				t.Fatal(err)
			}
			if len(want) != len(doc.members) {
				t.Fatalf("%d members, want %d", len(doc.members), len(want))
			}
			for _, m := range doc.members {
				if got := body[m.from:m.to]; !bytes.Equal(got, want[string(m.name)]) && utf8.ValidString(string(m.name)) {
					t.Fatalf("member %q is %s, want %s", m.name, got, want[string(m.name)])
				}
				if skipValue(body, m.from) != m.to {
					t.Fatalf("walker and gate differ on %q", m.name)
				}
			}
		}
	})
}

// prompt200K is a request body of about 200 KB of prose, code and escapes.
func prompt200K() []byte {
	line := "The quick brown fox jumps over the lazy dog; func main() {\\n\\tfmt.Println(\\\"hi\\\")\\n} — naïve café. "
	content := strings.Repeat(line, 195_000/len(line))
	return []byte(`{"model":"swift-1","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` +
		content + `"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"temperature":0.2}`)
}

func BenchmarkOpenChat200K(b *testing.B) {
	body := prompt200K()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := OpenChat(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenCheckEdit200K(b *testing.B) {
	body := prompt200K()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := OpenChat(body)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Check(); err != nil {
			b.Fatal(err)
		}
		r.Body(Edits{Model: "vendor", AskUsage: true})
	}
}

// BenchmarkJSONValid200K is what the standard library needs for the check
// alone, for comparison.
func BenchmarkJSONValid200K(b *testing.B) {
	body := prompt200K()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		json.Valid(body)
	}
}
