package translate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// scenario is a row of the matrix: a request with features of testdata/features.txt, the line's answer and
// what the client gets.
type scenario struct {
	name     string
	features []string
	// sent is in the request to the line.
	sent    string
	thinks  bool
	output  modelOutput
	finish  map[wire.Form]string // the line's word for the end
	want    wiretest.Answer
	refused bool // the answer is a refusal, in the client's way
	failed  bool // the answer is an error
	broken  bool // the stream breaks off
	// translated is set for a row about translation only, for the clients that have the features.
	translated bool
}

// scenarios returns the rows.
func scenarios() []scenario {
	oneCall, twoCalls := []string{`f {"a":12345678901234567890}`}, []string{`f {"a":1}`, `f {"a":2}`}
	return []scenario{
		{name: "text", output: modelOutput{text: "It \"is\" größe\n"}, want: wiretest.Answer{Text: "It \"is\" größe\n", End: "stop"}},
		{name: "image", features: []string{"an inline image"}, sent: "iVBORw0KGgo=",
			output: modelOutput{text: "A dot."}, want: wiretest.Answer{Text: "A dot.", End: "stop"}},
		{name: "document", features: []string{"an inline PDF"}, sent: "JVBERi0=",
			output: modelOutput{text: "A page."}, want: wiretest.Answer{Text: "A page.", End: "stop"}},
		{name: "parallel tools", features: []string{"a function"}, sent: `"f"`,
			output: modelOutput{text: "Two.", tool: "f", arguments: []string{`{"a":1}`, `{"a":2}`}},
			want:   wiretest.Answer{Text: "Two.", Calls: twoCalls, End: "calls"}},
		{name: "tool without arguments", features: []string{"a function"}, sent: `"f"`,
			output: modelOutput{tool: "f", arguments: []string{`{}`}}, want: wiretest.Answer{Calls: []string{`f {}`}, End: "calls"}},
		{name: "forced tool", features: []string{"this tool"}, sent: `"f"`,
			output: modelOutput{tool: "f", arguments: []string{`{"a":12345678901234567890}`}}, want: wiretest.Answer{Calls: oneCall, End: "calls"}},
		{name: "structured output", features: []string{"a JSON schema"}, sent: `"required":["a"]`,
			output: modelOutput{text: `{"a":"x"}`}, want: wiretest.Answer{Text: `{"a":"x"}`, End: "stop"}},
		{name: "thinking", features: []string{"thinking is shown"}, thinks: true,
			output: modelOutput{thought: "Hm.", text: "Yes."}, want: wiretest.Answer{Text: "Yes.", Thought: "Hm.", End: "stop"}},
		{name: "refusal", output: modelOutput{refusal: "I cannot."}, refused: true,
			finish: map[wire.Form]string{wire.FormMessages: "refusal", wire.FormGemini: "SAFETY", wire.FormInteractions: "safety"}},
		{name: "withheld", output: modelOutput{text: "Ha"}, refused: true,
			finish: map[wire.Form]string{wire.FormChat: "content_filter", wire.FormMessages: "refusal", wire.FormResponses: "content_filter",
				wire.FormGemini: "SAFETY", wire.FormInteractions: "content_blocked"}},
		{name: "cut off at the limit", features: []string{"output limit"}, output: modelOutput{text: "Ha"},
			finish: map[wire.Form]string{wire.FormChat: "length", wire.FormMessages: "max_tokens", wire.FormResponses: "incomplete",
				wire.FormGemini: "MAX_TOKENS", wire.FormInteractions: "incomplete"},
			want: wiretest.Answer{Text: "Ha", End: "limit"}},
		{name: "stop sequence that no line takes", features: []string{"six stop sequences, the last of white space"}, translated: true,
			output: modelOutput{text: "Ha\n\nno", tool: "f", arguments: []string{`{}`}},
			want:   wiretest.Answer{Text: "Ha", End: "stop", Stop: "\n\n"}},
		{name: "broken off", output: modelOutput{text: "Ha"}, broken: true, failed: true},
		{name: "failed end", output: modelOutput{text: "Ha"}, failed: true,
			finish: map[wire.Form]string{wire.FormChat: "error", wire.FormMessages: "error", wire.FormResponses: "failed",
				wire.FormGemini: "MALFORMED_FUNCTION_CALL", wire.FormInteractions: "malformed_function_call"}},
	}
}

// allForms are the forms of clients.
var allForms = []wire.Form{wire.FormChat, wire.FormMessages, wire.FormResponses, wire.FormGemini}

// TestMatrix plays each scenario for each form of clients on each form of lines, whole and streamed. The
// answers are checked against the schemas of the vendors.
func TestMatrix(t *testing.T) {
	t.Parallel()
	features := map[string]*feature{}
	for _, f := range readFeatures(t) {
		features[f.name] = f
	}
	for _, s := range scenarios() {
		for _, client := range allForms {
			place := map[string]string{}
			for _, name := range s.features {
				for at, text := range features[name].in[client] {
					place[at] = text
				}
			}
			for _, line := range lineForms {
				if s.translated && (client == line || len(place) == 0) {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s on %s", s.name, client, line), func(t *testing.T) {
					t.Parallel()
					r, err := probe(client, false, place)
					if err != nil {
						t.Fatal(err)
					}
					s.play(t, r, client, line)
				})
			}
		}
	}
}

func (s *scenario) play(t *testing.T, r wire.Request, client, line wire.Form) {
	t.Helper()
	pair := New(r, line, pairtest.Identity())
	model := map[wire.Form]string{wire.FormMessages: "claude-sonnet-4-6", wire.FormGemini: "gemini-3-pro",
		wire.FormInteractions: "gemini-3-pro"}[line]
	body, err := pairtest.Body(pair, wire.Translation{Edits: wire.Edits{Model: model}, MaxOutput: 99, Reasoning: s.thinks})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), s.sent) {
		t.Errorf("the line got %s, want %s in it", body, s.sent)
	}
	contentOf(t, line, string(body))
	o := s.output
	o.finish = s.finish[line]
	usage := wire.Usage{Prompt: 3, Completion: 4}
	raw := []byte(o.whole(line))
	read, err := pair.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case s.broken:
	case s.failed:
		if read.Summary().Err == nil {
			t.Errorf("the whole answer %s is no error", raw)
		}
	default:
		pieces, err := pair.Render(read, raw, usage)
		if err != nil {
			t.Fatal(err)
		}
		s.check(t, "whole", client, line, bytes.Join(pieces[:], nil), wiretest.ReadAnswer)
	}
	o.open = s.broken
	stream := o.stream(line)
	meter, writer := pair.Events()
	streamed := pairtest.Flow([]byte(stream), writer, meter, usage)
	if s.broken {
		if meter.Complete() {
			t.Fatalf("the stream %s is complete", stream)
		}
		streamed = writer.Fail(streamed, fault.New(fault.UpstreamConnectionError, "The connection broke."))
	}
	s.check(t, "streamed", client, line, streamed, wiretest.ReadStream)
}

// check compares an answer with the scenario.
func (s *scenario) check(t *testing.T, how string, client, line wire.Form, raw []byte,
	read func(form string, raw []byte, strict bool) (wiretest.Answer, error)) {
	t.Helper()
	got, err := read(string(client), raw, client != line)
	if err != nil {
		t.Errorf("%s: %v in %s", how, err, raw)
		return
	}
	switch {
	case s.failed:
		if got.Error == "" || got.End != "" {
			t.Errorf("%s: got %+v, want an error, in %s", how, got, raw)
		}
		return
	case s.refused:
		if want := s.output.text + s.output.refusal; got.Text+got.Refusal != want || got.Refusal == "" && got.End != "filter" {
			t.Errorf("%s: got %+v, want the refusal %q, in %s", how, got, want, raw)
		}
		return
	}
	want := s.want
	if client != wire.FormMessages {
		want.Stop = "" // only messages name it
	}
	if how == "streamed" && client == wire.FormChat { // sent only if the client asks for it
		got.Prompt, got.Completion = 3, 4
	}
	if want.Prompt, want.Completion = 3, 4; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %+v, want %+v, in %s", how, got, want, raw)
	}
}

// TestThreeTurns plays a question, two calls one after the other with reasoning before each, and the answer.
// The line of the last request gets all calls with their results, in order, and the reasoning that it needs.
func TestThreeTurns(t *testing.T) {
	t.Parallel()
	needs := map[wire.Form]string{wire.FormChat: `"reasoning_content":"Hm 1."`, wire.FormResponses: `"encrypted_content":"c2ln1"`,
		wire.FormGemini: `"thoughtSignature":"c2ln1"`, wire.FormInteractions: `"signature":"c2ln1"`}
	for _, client := range allForms {
		for _, line := range lineForms {
			for _, streams := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s on %s, streamed %v", client, line, streams), func(t *testing.T) {
					t.Parallel()
					id := pairtest.Identity()
					id.Origin, id.Seals = "account", true
					history := wiretest.NewHistory(string(client), "What?")
					for turn := range 2 {
						o := modelOutput{thought: fmt.Sprintf("Hm %d.", turn+1), text: fmt.Sprintf("Step %d.", turn+1), tool: "f",
							arguments: []string{fmt.Sprintf(`{"a":%d}`, turn+1)}, id: fmt.Sprintf("call_%d", turn+1)}
						if line != wire.FormChat {
							o.signature = fmt.Sprintf("c2ln%d", turn+1)
						}
						pair := New(historyRequest(t, client, history), line, id)
						whole, stream := answers(t, pair, line, o)
						answer := []byte(whole)
						if streams {
							var err error
							if answer, err = wiretest.WholeOf(string(client), []byte(stream)); err != nil {
								t.Fatalf("%v in %s", err, stream)
							}
						}
						if err := history.Add(answer, fmt.Sprintf("result %d", turn+1)); err != nil {
							t.Fatalf("%v in %s", err, answer)
						}
					}
					body, err := pairtest.Body(New(historyRequest(t, client, history), line, id),
						wire.Translation{Edits: wire.Edits{Model: "gemini-3-pro", Origin: id.Origin}, MaxOutput: 999, Reasoning: true})
					if err != nil {
						t.Fatal(err)
					}
					sent := string(body)
					at := 0
					for _, word := range []string{"What?", "Step 1.", "result 1", "Step 2.", "result 2"} {
						if i := strings.Index(sent[at:], word); i < 0 {
							t.Errorf("the line got %s, want %q in order", sent, word)
						} else {
							at += i
						}
					}
					if strings.Contains(sent, "tg1") || strings.Count(sent, needs[line]) < 1 {
						t.Errorf("the line got %s, want %s", sent, needs[line])
					}
					content := contentOf(t, line, sent)
					if n := strings.Count(strings.Join(content, "\n"), "call_1 "); !slices.ContainsFunc(content, func(s string) bool {
						return strings.HasPrefix(s, "call call_2 f map[a:2]")
					}) || n < 2 {
						t.Errorf("the line got the content %q", content)
					}
				})
			}
		}
	}
}

// historyRequest returns a request with a history, a tool and thinking.
func historyRequest(t *testing.T, client wire.Form, h *wiretest.History) wire.Request {
	t.Helper()
	return request(t, client, fmt.Sprintf(map[wire.Form]string{
		wire.FormChat: `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages":%s}`,
		wire.FormMessages: `{"model":"m","max_tokens":999,"thinking":{"type":"adaptive"},` +
			`"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":%s}`,
		wire.FormResponses: `{"model":"m","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"input":%s}`,
		wire.FormGemini: `{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}],` +
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"contents":%s}`,
	}[client], h.Elements()))
}
