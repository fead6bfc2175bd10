package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
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
		"model":              {Edits{Model: "v/\"1\"<"}, ` { "z" : 1.50 , "model" : "m" , ` + list + `, "seed":null } `, ` { "z" : 1.50 , "model" : "v/\"1\"<" , ` + list + `, "seed":null } `},
		"same model":         {Edits{Model: "v"}, `{"model":"v",` + list + `}`, `{"model":"v",` + list + `}`},
		"default limit":      {limit, `{"model":"m",` + list + ` }`, `{"model":"v",` + list + `,"max_tokens":99 }`},
		"own limit":          {limit, `{"max_completion_tokens":5,"model":"m",` + list + `}`, `{"max_completion_tokens":5,"model":"v",` + list + `}`},
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
		if twice := again.Body(edits); !bytes.Equal(twice, edited) {
			t.Fatalf("editing twice gives %s, once %s", twice, edited)
		}
		if before, after := rest(t, body), rest(t, edited); !reflect.DeepEqual(before, after) {
			t.Fatalf("other fields changed: %s to %s", before, after)
		}
	})
}

// rest returns the members of a body that the gateway does not own, as they
// stand.
func rest(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for name, value := range all {
		switch name {
		case "model", "max_tokens", "store", "stream_options":
		default:
			out[name] = string(value)
		}
	}
	return out
}
