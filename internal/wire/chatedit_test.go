package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

func TestBodyEditsOwnedFieldsOnly(t *testing.T) {
	t.Parallel()
	limit := Edits{Model: "v", Limit: 99, LimitField: "max_tokens"}
	usage := Edits{Model: "v", AskUsage: true}
	const list = `"messages":[{"role":"user","content":"model"}]`
	for name, test := range map[string]struct {
		edits    Edits
		in, want string
	}{
		"model":           {Edits{Model: "v/\"1\"<"}, ` { "z" : 1.50 , "model" : "m" , ` + list + `, "seed":null } `, ` { "z" : 1.50 , "model" : "v/\"1\"<" , ` + list + `, "seed":null } `},
		"same model":      {Edits{Model: "v"}, `{"model":"v",` + list + `}`, `{"model":"v",` + list + `}`},
		"default limit":   {limit, `{"model":"m",` + list + ` }`, `{"model":"v",` + list + `,"max_tokens":99 }`},
		"own limit":       {limit, `{"max_tokens":5,"model":"m",` + list + `}`, `{"max_tokens":5,"model":"v",` + list + `}`},
		"limit elsewhere": {limit, `{"max_completion_tokens":5,"model":"m",` + list + `}`, `{"model":"v",` + list + `,"max_tokens":5}`},
		"limit as sent":   {Edits{Model: "v"}, `{"max_completion_tokens":5,"model":"m",` + list + `}`, `{"max_completion_tokens":5,"model":"v",` + list + `}`},
		"default as sent": {Edits{Model: "v", Limit: 99}, `{"model":"v",` + list + `}`, `{"model":"v",` + list + `,"max_tokens":99}`},
		"two limits":      {limit, `{"max_completion_tokens":1,"model":"v",` + list + `,"max_tokens":1000}`, `{"model":"v",` + list + `,"max_tokens":1}`},
		"two limits, as sent": {Edits{Model: "v"}, `{"max_tokens":1,"model":"v",` + list + `,"max_completion_tokens":1000}`,
			`{"model":"v",` + list + `,"max_completion_tokens":1}`},
		"two limits at the end": {Edits{Model: "v", LimitField: "max_completion_tokens"}, `{"model":"v",` + list + ` , "max_tokens" : 7 , "max_output_tokens":9 }`,
			`{"model":"v",` + list + `,"max_completion_tokens":7 }`},
		"a null beside it":   {limit, `{"model":"v","max_tokens":3,"max_completion_tokens":null,` + list + `}`, `{"model":"v","max_tokens":3,` + list + `}`},
		"a limit of others":  {limit, `{"n_predict":4000,"max_new_tokens":30,"max_tokens":100,"model":"v",` + list + `}`, `{"max_tokens":30,"model":"v",` + list + `}`},
		"limit that's null":  {limit, `{"max_tokens":null,"model":"m",` + list + `}`, `{"max_tokens":99,"model":"v",` + list + `}`},
		"store":              {Edits{Model: "v"}, `{"store":true,"model":"v",` + list + `}`, `{"store":false,"model":"v",` + list + `}`},
		"odd store":          {Edits{Model: "v"}, `{"store":"yes","model":"v",` + list + `}`, `{"store":false,"model":"v",` + list + `}`},
		"no store":           {Edits{Model: "v"}, `{"store":null,"model":"v",` + list + `}`, `{"store":null,"model":"v",` + list + `}`},
		"usage":              {usage, `{"model":"m","stream":true,` + list + "\n}", `{"model":"v","stream":true,` + list + `,"stream_options":{"include_usage":true}` + "\n}"},
		"usage not streamed": {usage, `{"model":"m",` + list + `}`, `{"model":"v",` + list + `}`},
		"usage asked":        {usage, `{"model":"v","stream":true,"stream_options":{ "include_usage" : true },` + list + `}`, `{"model":"v","stream":true,"stream_options":{ "include_usage" : true },` + list + `}`},
		"usage not asked":    {usage, `{"model":"v","stream":true,"stream_options":{ "include_usage" : false },` + list + `}`, `{"model":"v","stream":true,"stream_options":{ "include_usage" : true },` + list + `}`},
		"other options":      {usage, `{"model":"v","stream":true,"stream_options":{ "x":[1] },` + list + `}`, `{"model":"v","stream":true,"stream_options":{ "x":[1],"include_usage":true },` + list + `}`},
		"empty options":      {usage, `{"model":"v","stream":true,"stream_options":{ },` + list + `}`, `{"model":"v","stream":true,"stream_options":{"include_usage":true },` + list + `}`},
		"null options":       {usage, `{"model":"v","stream":true,"stream_options":null,` + list + `}`, `{"model":"v","stream":true,"stream_options":{"include_usage":true},` + list + `}`},
		"several at the end": {Edits{Model: "v", AskUsage: true, Limit: 7, LimitField: "max_completion_tokens"}, `{"stream":true,` + list + `,"model":"m"}`,
			`{"stream":true,` + list + `,"model":"v","max_completion_tokens":7,"stream_options":{"include_usage":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := []byte(test.in)
			r, err := OpenChat(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			if got := string(r.Body(test.edits)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if string(in) != test.in {
				t.Error("the client's body was written to")
			}
		})
	}
}

// FuzzBody: whatever passes the checks, the edited body is valid JSON, passes
// the gate again, and differs in the owned fields only.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		asking(`"stream":true,"stream_options":{"a":{}}`), asking(`"store":true,"max_tokens":null`),
		asking(`"max_tokens":9,"max_completion_tokens":3`), `{"n_predict":3,` + asking(`"a":1`)[1:],
		parts(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}`), asking(`"tools":[{"type":"web_search"}],"n":2`),
		` { "stream" : true , "stream_options" : { } , "messages" : [ { "role" : "user" } ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := OpenChat(body)
		if err != nil || r.Check() != nil {
			return
		}
		if r.Bound.TextBytes < 0 || r.Bound.TextBytes > int64(len(body)) || r.Bound.Images < 0 || r.N < 1 || r.Limit < 0 {
			t.Fatalf("bad figures %+v", r)
		}
		edits := Edits{Model: "vendor \"1\"", Limit: 5, LimitField: "max_tokens", AskUsage: true}
		edited := r.Body(edits)
		again, err := OpenChat(edited)
		if err != nil {
			t.Fatalf("edited body %s: %v", edited, err)
		}
		if err := again.Check(); err != nil {
			t.Fatalf("edited body %s: %v", edited, err)
		}
		if model, _ := again.Model(); model != edits.Model || again.IncludeUsage != r.Stream || again.Limit == 0 {
			t.Fatalf("edits are missing in %s", edited)
		}
		if want := cmp.Or(r.Limit, edits.Limit); again.Limit != want || again.LimitParam != edits.LimitField || len(limitsIn(edited)) != 1 {
			t.Fatalf("not one limit of %d in %s", want, edited)
		}
		if twice := again.Body(edits); !bytes.Equal(twice, edited) {
			t.Fatalf("editing twice gives %s, once %s", twice, edited)
		}
		if before, after := rest(t, body), rest(t, edited); !reflect.DeepEqual(before, after) {
			t.Fatalf("other fields changed: %s to %s", before, after)
		}
	})
}

// limitsIn returns the limits in a body, by their fields, as they stand.
func limitsIn(body []byte) map[string]string {
	limits := limitNames()
	found := map[string]string{}
	for name, value := range rawjson.Members(body[rawjson.SkipSpace(body, 0):]) {
		if slices.Contains(limits[:], string(name)) {
			found[string(name)] = string(value)
		}
	}
	return found
}

// TestOneLimitGoesToALine: whichever limits a client sends, in whichever form,
// a line of any form gets the smallest, in the one field that it reads.
func TestOneLimitGoesToALine(t *testing.T) {
	t.Parallel()
	const limits = `"n_predict":9000,"max_tokens":1000,"max_completion_tokens":40,"max_output_tokens":50`
	edits := Edits{Model: "v", Limit: 7, LimitField: "max_completion_tokens"}
	chat, err := OpenChat([]byte(`{"messages":[{"role":"user","content":"x"}],` + limits + `}`))
	if err = errors.Join(err, chat.Check()); err != nil {
		t.Fatal(err)
	}
	messages := openMessages(t, `{"messages":[{"role":"user","content":"x"}],`+limits+`}`)
	if err := messages.Check(); err != nil {
		t.Fatal(err)
	}
	responses := askResponses(t, `{"input":"x",`+limits+`}`)
	in := Translation{Edits: edits, MaxOutput: 8000}
	for name, of := range map[string]struct {
		body  func() ([]byte, error)
		field string
	}{
		"chat":                 {func() ([]byte, error) { return chat.Body(edits), nil }, "max_completion_tokens"},
		"messages":             {func() ([]byte, error) { return messages.Body(edits), nil }, "max_tokens"},
		"responses":            {func() ([]byte, error) { return responses.Body(edits), nil }, "max_output_tokens"},
		"chat to messages":     {func() ([]byte, error) { return ToMessages(chat, Identity{}).Body(in) }, "max_tokens"},
		"messages to chat":     {func() ([]byte, error) { return MessagesToChat(messages, Identity{}).Body(in) }, "max_completion_tokens"},
		"responses to chat":    {func() ([]byte, error) { return ResponsesToChat(responses, Identity{}).Body(in) }, "max_completion_tokens"},
		"a count has no limit": {func() ([]byte, error) { return messages.CountBody(edits), nil }, ""},
	} {
		sent, err := of.body()
		if err != nil {
			t.Fatal(name, err)
		}
		want := map[string]string{of.field: "40"}
		if of.field == "" {
			want = map[string]string{}
		}
		if got := limitsIn(sent); !maps.Equal(got, want) || !json.Valid(sent) {
			t.Errorf("%s: %s", name, sent)
		}
	}
	gemini, err := ToGemini(chat, Identity{}).Body(in)
	if err != nil || !strings.Contains(string(gemini), `"maxOutputTokens":40`) {
		t.Errorf("%s, %v", gemini, err)
	}
	if chat.Limit != 40 || messages.Limit != 40 || responses.Limit != 40 {
		t.Errorf("%d, %d and %d are held", chat.Limit, messages.Limit, responses.Limit)
	}
}

// TestLimitsAreChecked: a limit by any name is a positive integer.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for _, name := range limitNames() {
		for _, value := range []string{"0", "-1", "1.5", `"9"`, "true", "[1]"} {
			chat, err := OpenChat([]byte(asking(`"` + name + `":` + value)))
			if err != nil {
				t.Fatal(err)
			}
			if code, param := codeOf(t, chat.Check()); code != fault.InvalidMaxTokens || param != name {
				t.Errorf("%s: %s: %s, %s", name, value, code, param)
			}
		}
	}
}

// rest returns the members of a body that the gateway does not own, as they
// stand.
func rest(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	limits := limitNames()
	out := make(map[string]string)
	for name, value := range all {
		switch name {
		case "model", "store", "stream_options":
		default:
			if slices.Contains(limits[:], name) {
				continue
			}
			out[name] = string(value)
		}
	}
	return out
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
