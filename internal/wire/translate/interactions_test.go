package translate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/interactions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// interactionWriter returns the writer of a chat client's stream from a line of interactions.
func interactionWriter() wire.Writer {
	r := &completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: true}}}
	_, w := New(r, wire.FormInteractions, someAnswer()).Events()
	return w
}

// streamOf returns events as a stream.
func streamOf(events ...string) []byte {
	return []byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
}

// completed is the last event of an interaction.
const completed = `{"interaction":{"status":"completed","usage":` + interactionUsage + `},"event_type":"interaction.completed"}`

// TestInteractionStreams plays streams that the reference allows besides those of the matrix, and streams that
// leave open what they mean, which end as broken.
func TestInteractionStreams(t *testing.T) {
	t.Parallel()
	const (
		call = `{"index":0,"step":{"type":"function_call","id":"c","name":"f","arguments":{}},"event_type":"step.start"}`
		args = `{"index":0,"delta":{"type":"arguments_delta","arguments":"{\"a\":1}"},"event_type":"step.delta"}`
		text = `{"index":0,"step":{"type":"model_output","content":[{"type":"text","text":"Once"}]},"event_type":"step.start"}`
		more = `{"index":0,"delta":{"type":"text","text":" upon"},"event_type":"step.delta"}`
		stop = `{"index":0,"event_type":"step.stop"}`
	)
	at := func(index string, event string) string { return strings.Replace(event, `"index":0,`, index, 1) }
	start := func(step string) string { return `{"index":0,"step":` + step + `,"event_type":"step.start"}` }
	delta := func(delta string) string { return `{"index":0,"delta":` + delta + `,"event_type":"step.delta"}` }
	const one = `"index":1,`
	whole := strings.Replace(call, `{}`, `{"a": 1}`, 1)
	input := start(`{"type":"user_input","content":[{"type":"text","text":"q"}]}`)
	ended := `{"interaction":{"status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"x"}]}]},` +
		`"event_type":"interaction.completed"}`
	for name, c := range map[string]struct {
		events []string
		want   string // the text and the calls; empty if the stream is broken
	}{
		"a text begins in its start": {[]string{text, more, stop, completed}, "Once upon"},
		"no indexes":                 {[]string{at("", text), at("", more), completed}, "Once upon"},
		"an unknown delta":           {[]string{text, delta(`{"type":"text_annotation_delta"}`), completed}, "Once"},
		"an unknown step":            {[]string{start(`{"type":"new"}`), stop, text, completed}, "Once"},
		"an unknown event":           {[]string{`{"event_type":"interaction.thinking"}`, text, completed}, "Once"},
		"the steps at the end":       {[]string{ended}, "x"},
		"the input of the user":      {[]string{input, stop, text, completed}, "Once"},
		"steps at the same time":     {[]string{text, at(one, call), at(one, args), more, completed}, `Once upon f {"a":1}`},
		"a call without arguments":   {[]string{call, stop, completed}, `f {}`},
		"a call whole in its start":  {[]string{whole, stop, completed}, `f {"a":1}`},
		"arguments after whole ones": {[]string{whole, args, completed}, ""},
		"arguments without a call":   {[]string{args, completed}, ""},
		"arguments of a text":        {[]string{text, args, completed}, ""},
		"a text in a call":           {[]string{call, more, completed}, ""},
		"a text after its end":       {[]string{text, stop, more, completed}, ""},
		"two starts":                 {[]string{text, text, completed}, ""},
		"a call without a name":      {[]string{strings.Replace(call, `"f"`, `""`, 1), args, completed}, ""},
		"no index among several":     {[]string{text, at(one, call), at("", more), completed}, ""},
		"two signatures of a thought": {[]string{start(`{"type":"thought","signature":"YQ=="}`),
			delta(`{"type":"thought_signature","signature":"Yg=="}`), completed}, ""},
	} {
		meter := interactions.NewMeter()
		stream := pairtest.Flow(streamOf(c.events...), interactionWriter(), meter, wire.Usage{Prompt: 3, Completion: 4})
		got, err := wiretest.ReadStream("chat", stream, true)
		if err != nil {
			t.Errorf("%s: %v in %s", name, err, stream)
			continue
		}
		if broken := got.Error != ""; broken != (c.want == "") {
			t.Errorf("%s: broken %v, want %v: %s", name, broken, c.want == "", stream)
		}
		if all := strings.TrimSpace(got.Text + " " + strings.Join(got.Calls, " ")); c.want != "" && all != c.want {
			t.Errorf("%s: got %q, want %q", name, all, c.want)
		}
	}
}

// TestThoughtsOfInteractions expects each thought with a signature back at its place, and the bypass before a
// call whose thought is missing.
func TestThoughtsOfInteractions(t *testing.T) {
	t.Parallel()
	id := pairtest.Identity()
	id.Origin = "account"
	own := string(wire.SealOf(originOf(id.Origin, wire.FormInteractions)))
	thought := func(signature string) string {
		return fmt.Sprintf(`{"type":"thought","signature":%q`, signature)
	}
	const bypass, use = "skip_thought_signature_validator", `{"type":"tool_use","id":"t","name":"f","input":{}}`
	for name, c := range map[string]struct {
		assistant string // the blocks of a messages client's turn
		model     string // if empty, gemini-3-pro
		sealed    bool   // the line rejected signatures before
		want      []string
		not       string
	}{
		"a thought with a text": {`{"type":"thinking","thinking":"Hm.","signature":"` + own + `YQ=="},{"type":"text","text":"a"}`, "", false,
			[]string{thought("YQ==") + `,"summary":[{"type":"text","text":"Hm."}]}`, `model_output`}, bypass},
		"before a call": {`{"type":"redacted_thinking","data":"` + own + `YQ=="},` + use, "", false,
			[]string{thought("YQ==") + "}", `function_call`}, bypass},
		"after a text": {`{"type":"text","text":"a"},{"type":"redacted_thinking","data":"` + own + `YQ=="},` +
			use, "", false,
			[]string{thought(bypass), `model_output`, thought("YQ=="), `function_call`}, ""},
		"missing":       {use, "", false, []string{thought(bypass), `function_call`}, ""},
		"not required":  {use, "gemini-2.5-pro", false, []string{`function_call`}, `"thought"`},
		"without calls": {`{"type":"text","text":"a"}`, "", false, []string{`model_output`}, `"thought"`},
		"unsigned": {`{"type":"thinking","thinking":"Hm.","signature":""},` + use, "", false,
			[]string{thought(bypass), `function_call`}, "Hm."},
		"rejected": {`{"type":"redacted_thinking","data":"` + own + `YQ=="},` + use, "", true,
			[]string{thought(bypass), `function_call`}, "YQ=="},
		"of the account's generateContent": {`{"type":"redacted_thinking","data":"` + string(wire.SealOf(id.Origin)) + `YQ=="},` +
			use, "", false, []string{thought(bypass), `function_call`}, "YQ=="},
	} {
		r := request(t, wire.FormMessages, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},`+
			`{"role":"assistant","content":[`+c.assistant+`]},{"role":"user","content":"go"}]}`)
		body, err := pairtest.Body(New(r, wire.FormInteractions, id), wire.Translation{
			Edits: wire.Edits{Model: cmp.Or(c.model, "gemini-3-pro"), NoSealed: c.sealed}})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, want := range c.want {
			i := bytes.Index(body[at:], []byte(want))
			if i < 0 {
				t.Errorf("%s: got %s, want %s in order", name, body, want)
				break
			}
			at += i
		}
		if c.not != "" && bytes.Contains(body, []byte(c.not)) {
			t.Errorf("%s: got %s, want no %s", name, body, c.not)
		}
	}
}

// TestImagesOfInteractions expects images by address from the gateway, each fetched once.
func TestImagesOfInteractions(t *testing.T) {
	t.Parallel()
	r := request(t, wire.FormChat, `{"model":"m","messages":[{"role":"user","content":[`+
		`{"type":"image_url","image_url":{"url":"https://example.com/a"}},{"type":"image_url","image_url":{"url":"https://example.com/a"}}]}]}`)
	fetched := 0
	in := wire.Translation{Edits: wire.Edits{Model: "gemini-3-pro"}, Images: func(addresses []string) []wire.FetchedImage {
		fetched += len(addresses)
		return []wire.FetchedImage{{MIME: "image/png", Data: []byte("picture")}}
	}}
	body, err := pairtest.Body(New(r, wire.FormInteractions, pairtest.Identity()), in)
	if n := bytes.Count(body, []byte(`{"type":"image","mime_type":"image/png","data":"cGljdHVyZQ=="}`)); err != nil || n != 2 || fetched != 1 {
		t.Errorf("%d images fetched, %v, the line got %s", fetched, err, body)
	}
}

// FuzzInteractionStream checks the end of meter and writer, and the form of the client's stream, whatever a
// provider sends.
func FuzzInteractionStream(f *testing.F) {
	for _, output := range []modelOutput{{thought: "Hm.", signature: "c2ln", text: "größe\n", tool: "f", arguments: []string{`{"a":1}`, `{}`}},
		{text: "a", finish: "incomplete"}, {text: "a", finish: "safety"}, {finish: "failed"}} {
		f.Add([]byte(strings.ReplaceAll(output.stream(wire.FormInteractions), "data: ", "")))
	}
	for _, seed := range []string{
		`{"event_type":"error","error":{"code":"safety"}}`, `{"event_type":"error"}`, `{"event_type":"step.delta","index":-1,"delta":[]}`,
		`{"event_type":"step.start","index":1e9,"step":{"type":"model_output","content":[{"type":"image","mime_type":"image/png","data":"AA"}]}}`,
		`{"event_type":"step.start","step":{"type":"function_call","id":3,"name":"` + "\xff" + `","arguments":"{"}}`,
		`{"event_type":"interaction.completed","interaction":{"status":"completed","usage":{"total_input_tokens":1e99,` +
			`"total_thought_tokens":-1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		meter, writer := interactions.NewMeter(), interactionWriter()
		var out []byte
		broken := false
		for data := range bytes.SplitSeq(stream, []byte("\n")) {
			e := sse.Event{Raw: data, Data: data}
			frame, err := meter.Read(e)
			if err != nil || frame.Err != nil {
				broken = true
				break
			}
			before := len(out)
			out = writer.Append(out, e, frame)
			if writer.Err() != nil {
				broken = true
				break
			}
			if frame.Token && len(out) == before {
				t.Fatalf("a token was lost: %s", data)
			}
			if meter.Complete() {
				break
			}
		}
		u, _ := meter.Usage()
		if u.Prompt < 0 || u.Completion < 0 || u.Cached > u.Prompt || u.Reasoning > u.Completion || u.Prompt > 1<<40 || u.Completion > 1<<40 {
			t.Fatalf("usage %+v", u)
		}
		complete := !broken && meter.Complete()
		if complete {
			out = writer.End(out, u)
		} else {
			out = writer.Fail(out, fault.New(fault.UpstreamConnectionError, "Broken."))
		}
		if ended := bytes.HasSuffix(out, []byte("[DONE]\n\n")); !utf8.Valid(out) || ended != complete {
			t.Fatalf("complete %v, not UTF-8 or with another end: %q", complete, out)
		}
		for e := range sse.Each(out) {
			if len(e.Data) > 0 && string(e.Data) != "[DONE]" && !json.Valid(e.Data) {
				t.Fatalf("not JSON: %s", e.Data)
			}
		}
	})
}

// FuzzInteractionAnswer expects a chat completion or an error of every answer.
func FuzzInteractionAnswer(f *testing.F) {
	for _, output := range []modelOutput{{thought: "Hm.", signature: "c2ln", text: "a", tool: "f", arguments: []string{`{"a":[1, 2]}`}},
		{text: "a", finish: "safety"}, {finish: "cancelled"}} {
		f.Add([]byte(output.whole(wire.FormInteractions)))
	}
	f.Add([]byte(`{"status":"completed","steps":[{"type":"function_call","name":"f","arguments":"x"},{"type":"model_output","content":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := interactions.ReadAnswer(body)
		if err != nil || a.Summary().Err != nil {
			return
		}
		pieces, err := New(&completions.Request{}, wire.FormInteractions, someAnswer()).Render(nil, body, wire.Usage{Prompt: 1, Completion: 1})
		if err != nil {
			return // a call without a name
		}
		out := pieces[0]
		again, err := completions.ReadAnswer(out)
		if err != nil || !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%v: %q", err, out)
		}
		if again.Summary().Err != nil || again.Summary().Content != a.Summary().Content || again.Summary().Reasoning != a.Summary().Reasoning {
			t.Fatalf("%+v became %+v: %s", *a.Summary(), *again.Summary(), out)
		}
	})
}

// FuzzAsInteraction checks that a request accepted by the checks is rejected with a field, or becomes valid.
func FuzzAsInteraction(f *testing.F) {
	for _, messages := range []string{
		hi, calls + "," + forB + "," + hi, textTurn + "," + calls + "," + forA + "," + calls,
		`{"role":"system","content":[{"text":"a"},{"text":"b"}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image\/png;x=\u0041;base64,AA\u0042"}},` +
			`{"type":"file","file":{"file_data":"DATA:text/plain;base64,QQ=="}}]}`,
	} {
		f.Add([]byte(`{"model":"m","messages":[` + messages + `],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],` +
			`"tool_choice":{"type":"function","function":{"name":"f"}},"stop":["",null,"a"],"seed":1e3,"reasoning_effort":"high"}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := completions.Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		in := wire.Translation{Edits: wire.Edits{Model: "gemini-3-pro", Limit: 7}, Reasoning: true}
		out, err := pairtest.Body(New(r, wire.FormInteractions, wire.Identity{}), in)
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != fault.InvalidRequest || e.Param == "" || e.Message() == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%s became %s", body, out)
		}
		var sent struct {
			Store *bool
			Input []struct{ Type string }
		}
		if err := json.Unmarshal(out, &sent); err != nil || sent.Store == nil || *sent.Store || len(sent.Input) == 0 ||
			sent.Input[0].Type != "user_input" {
			t.Fatalf("%s became %s: %v", body, out, err)
		}
	})
}

// TestInteractionsDoNotAllocatePerEvent checks the pieces of texts, thoughts and arguments.
func TestInteractionsDoNotAllocatePerEvent(t *testing.T) {
	for kind, delta := range map[string]string{"model_output": `{"type":"text","text":" word"}`,
		"thought": `{"type":"thought_summary","content":{"type":"text","text":" word"}}`} {
		meter, writer := interactions.NewMeter(), interactionWriter()
		var out []byte
		play := func(data string) func() {
			e := sse.Event{Data: []byte(data)}
			return func() {
				f, err := meter.Read(e)
				if err != nil {
					t.Fatal(err)
				}
				out = writer.Append(out[:0], e, f)
			}
		}
		play(`{"index":0,"step":{"type":"` + kind + `"},"event_type":"step.start"}`)()
		piece := play(`{"index":0,"delta":` + delta + `,"event_type":"step.delta"}`)
		for range 20_000 { // the retained text is limited
			piece()
		}
		if n := testing.AllocsPerRun(100, piece); n != 0 {
			t.Errorf("%s: %v allocations an event, want 0", kind, n)
		}
	}
}
