package completions

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
)

func TestBodyEditsOwnedFieldsOnly(t *testing.T) {
	t.Parallel()
	limit := wire.Edits{Model: "v", Limit: 99, LimitField: "max_tokens"}
	usage := wire.Edits{Model: "v", AskUsage: true}
	const list = `"messages":[{"role":"user","content":"model"}]`
	for name, test := range map[string]struct {
		edits    wire.Edits
		in, want string
	}{
		"model": {wire.Edits{Model: "v/\"1\"<"}, ` { "z" : 1.50 , "model" : "m" , ` + list + `, "seed":null } `,
			` { "z" : 1.50 , "model" : "v/\"1\"<" , ` + list + `, "seed":null } `},
		"same model":      {wire.Edits{Model: "v"}, `{"model":"v",` + list + `}`, `{"model":"v",` + list + `}`},
		"default limit":   {limit, `{"model":"m",` + list + ` }`, `{"model":"v",` + list + `,"max_tokens":99 }`},
		"own limit":       {limit, `{"max_tokens":5,"model":"m",` + list + `}`, `{"max_tokens":5,"model":"v",` + list + `}`},
		"limit elsewhere": {limit, `{"max_completion_tokens":5,"model":"m",` + list + `}`, `{"model":"v",` + list + `,"max_tokens":5}`},
		"limit as sent": {wire.Edits{Model: "v"}, `{"max_completion_tokens":5,"model":"m",` + list + `}`,
			`{"max_completion_tokens":5,"model":"v",` + list + `}`},
		"default as sent": {wire.Edits{Model: "v", Limit: 99}, `{"model":"v",` + list + `}`, `{"model":"v",` + list + `,"max_tokens":99}`},
		"two limits": {limit, `{"max_completion_tokens":1,"model":"v",` + list + `,"max_tokens":1000}`,
			`{"model":"v",` + list + `,"max_tokens":1}`},
		"two limits, as sent": {wire.Edits{Model: "v"}, `{"max_tokens":1,"model":"v",` + list + `,"max_completion_tokens":1000}`,
			`{"model":"v",` + list + `,"max_completion_tokens":1}`},
		"two limits at the end": {wire.Edits{Model: "v", LimitField: "max_completion_tokens"},
			`{"model":"v",` + list + ` , "max_tokens" : 7 , "max_output_tokens":9 }`,
			`{"model":"v",` + list + `,"max_completion_tokens":7 }`},
		"a null beside it": {limit, `{"model":"v","max_tokens":3,"max_completion_tokens":null,` + list + `}`,
			`{"model":"v","max_tokens":3,` + list + `}`},
		"a limit of others": {limit, `{"n_predict":4000,"max_new_tokens":30,"max_tokens":100,"model":"v",` + list + `}`,
			`{"max_tokens":30,"model":"v",` + list + `}`},
		"limit that's null": {limit, `{"max_tokens":null,"model":"m",` + list + `}`, `{"max_tokens":99,"model":"v",` + list + `}`},
		"developer": {wire.Edits{Model: "v", SystemOnly: true},
			`{"model":"m","messages":[ {"role" : "develope\u0072","content":"developer"},{"role":"user","content":[]},` +
				` {"content":"d","role":"developer"} ]}`,
			`{"model":"v","messages":[ {"role" : "system","content":"developer"},{"role":"user","content":[]}, {"content":"d",` +
				`"role":"system"} ]}`},
		"a developer who is known": {wire.Edits{Model: "v"}, `{"model":"v","messages":[{"role":"developer","content":"d"}]}`,
			`{"model":"v","messages":[{"role":"developer","content":"d"}]}`},
		"store":     {wire.Edits{Model: "v"}, `{"store":true,"model":"v",` + list + `}`, `{"store":false,"model":"v",` + list + `}`},
		"odd store": {wire.Edits{Model: "v"}, `{"store":"yes","model":"v",` + list + `}`, `{"store":false,"model":"v",` + list + `}`},
		"no store":  {wire.Edits{Model: "v"}, `{"store":null,"model":"v",` + list + `}`, `{"store":null,"model":"v",` + list + `}`},
		"usage": {usage, `{"model":"m","stream":true,` + list + "\n}",
			`{"model":"v","stream":true,` + list + `,"stream_options":{"include_usage":true}` + "\n}"},
		"usage not streamed": {usage, `{"model":"m",` + list + `}`, `{"model":"v",` + list + `}`},
		"usage asked": {usage,
			`{"model":"v","stream":true,"stream_options":{ "include_usage" : true },` + list + `}`,
			`{"model":"v","stream":true,"stream_options":{ "include_usage" : true },` + list + `}`},
		"usage not asked": {usage,
			`{"model":"v","stream":true,"stream_options":{ "include_usage" : false },` + list + `}`,
			`{"model":"v","stream":true,"stream_options":{ "include_usage" : true },` + list + `}`},
		"other options": {usage, `{"model":"v","stream":true,"stream_options":{ "x":[1] },` + list + `}`,
			`{"model":"v","stream":true,"stream_options":{ "x":[1],"include_usage":true },` + list + `}`},
		"empty options": {usage, `{"model":"v","stream":true,"stream_options":{ },` + list + `}`,
			`{"model":"v","stream":true,"stream_options":{"include_usage":true },` + list + `}`},
		"null options": {usage, `{"model":"v","stream":true,"stream_options":null,` + list + `}`,
			`{"model":"v","stream":true,"stream_options":{"include_usage":true},` + list + `}`},
		"several at the end": {wire.Edits{Model: "v", AskUsage: true, Limit: 7, LimitField: "max_completion_tokens"},
			`{"stream":true,` + list + `,"model":"m"}`,
			`{"stream":true,` + list + `,"model":"v","max_completion_tokens":7,"stream_options":{"include_usage":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := []byte(test.in)
			r, err := Open(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			if got := string(r.Body(test.edits).Bytes()); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if string(in) != test.in {
				t.Error("the client's body was written to")
			}
		})
	}
}

// FuzzBody checks that an edited body is valid JSON, passes the gate again, and differs in the
// gateway's fields only.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		wiretest.ChatBody(`"stream":true,"stream_options":{"a":{}}`), wiretest.ChatBody(`"store":true,"max_tokens":null`),
		wiretest.ChatBody(`"max_tokens":9,"max_completion_tokens":3`), `{"n_predict":3,` + wiretest.ChatBody(`"a":1`)[1:],
		wiretest.ChatParts(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}`),
		wiretest.ChatBody(`"tools":[{"type":"web_search"}],"n":2`),
		` { "stream" : true , "stream_options" : { } , "messages" : [ { "role" : "user" } ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		if r.Bound.TextBytes < 0 || r.Bound.TextBytes > int64(len(body)) || r.Bound.Images < 0 || r.N < 1 || r.Limit < 0 {
			t.Fatalf("bad figures %+v", r)
		}
		edits := wire.Edits{Model: "vendor \"1\"", Limit: 5, LimitField: "max_tokens", AskUsage: true}
		edited := r.Body(edits).Bytes()
		again, err := Open(edited)
		if err != nil {
			t.Fatalf("edited body %s: %v", edited, err)
		}
		if err := again.Check(); err != nil {
			t.Fatalf("edited body %s: %v", edited, err)
		}
		if model, _ := again.Model(); model != edits.Model || again.IncludeUsage != r.Stream || again.Limit == 0 {
			t.Fatalf("edits are missing in %s", edited)
		}
		if want := cmp.Or(r.Limit,
			edits.Limit); again.Limit != want || again.LimitParam != edits.LimitField || len(wiretest.LimitsIn(edited)) != 1 {
			t.Fatalf("not one limit of %d in %s", want, edited)
		}
		if twice := again.Body(edits).Bytes(); !bytes.Equal(twice, edited) {
			t.Fatalf("editing twice gives %s, once %s", twice, edited)
		}
		if before, after := wiretest.OtherMembers(t, body), wiretest.OtherMembers(t, edited); !reflect.DeepEqual(before, after) {
			t.Fatalf("other fields changed: %s to %s", before, after)
		}
	})
}

// TestLimitsAreChecked checks that a limit by any name must be a positive integer.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for _, name := range wire.LimitFields() {
		for _, value := range []string{"0", "-1", "1.5", `"9"`, "true", "[1]"} {
			chat, err := Open([]byte(wiretest.ChatBody(`"` + name + `":` + value)))
			if err != nil {
				t.Fatal(err)
			}
			if code, param := wiretest.CodeOf(t, chat.Check()); code != fault.InvalidMaxTokens || param != name {
				t.Errorf("%s: %s: %s, %s", name, value, code, param)
			}
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

func BenchmarkOpenChat200K(b *testing.B) {
	body := prompt200K()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenCheckEdit200K(b *testing.B) {
	body := prompt200K()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(body)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Check(); err != nil {
			b.Fatal(err)
		}
		r.Body(wire.Edits{Model: "vendor", AskUsage: true})
	}
}
