package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// clientForms are the forms of clients, lineForms those of lines.
var (
	clientForms = []wire.Form{wire.FormChat, wire.FormMessages, wire.FormResponses}
	lineForms   = []wire.Form{wire.FormChat, wire.FormMessages, wire.FormResponses, wire.FormGemini, wire.FormInteractions}
)

// modelOutput is an answer of a model to be written in the form of a line.
type modelOutput struct {
	thought, text string
	signature     string   // of the thought, or of the first call on a Gemini line
	tool          string   // the name of the tool called
	arguments     []string // of the calls, JSON objects
	refusal       string   // instead of the text
	finish        string   // the line's word for the end; if empty, the usual one
	id            string   // of the first call; if empty, t0
	open          bool     // the stream has no end
}

// whole returns the answer of a line.
func (o modelOutput) whole(line wire.Form) string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	finish := func(usual string) string {
		if o.finish != "" {
			return o.finish
		}
		return usual
	}
	if line == wire.FormMessages || line == wire.FormGemini || line == wire.FormInteractions { // a refusal is a text there
		o.text += o.refusal
	}
	switch line {
	case wire.FormMessages:
		if o.thought != "" {
			add(`{"type":"thinking","thinking":%q,"signature":%q}`, o.thought, o.signature)
		}
		if o.text != "" {
			add(`{"type":"text","text":%q}`, o.text)
		}
		for i, arguments := range o.arguments {
			add(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, o.callID(i), o.tool, arguments)
		}
		usual := "end_turn"
		if o.arguments != nil {
			usual = "tool_use"
		}
		return fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","model":"v",`+
			`"content":[%s],"stop_reason":%q,"usage":{"input_tokens":3,"output_tokens":4}}`,
			strings.Join(list, ","), finish(usual))
	case wire.FormResponses:
		if o.thought != "" || o.signature != "" {
			add(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":%q}],"encrypted_content":%q}`, o.thought, o.signature)
		}
		if o.text != "" {
			add(`{"type":"message","id":"m_1","role":"assistant","content":[{"type":"output_text","text":%q}]}`, o.text)
		}
		if o.refusal != "" {
			add(`{"type":"message","id":"m_1","role":"assistant","content":[{"type":"refusal","refusal":%q}]}`, o.refusal)
		}
		for i, arguments := range o.arguments {
			add(`{"type":"function_call","id":"fc_%d","call_id":%q,"name":%q,"arguments":%q}`, i, o.callID(i), o.tool, arguments)
		}
		status, details := finish("completed"), ""
		if status == "content_filter" {
			status, details = "incomplete", `"incomplete_details":{"reason":"content_filter"},`
		}
		return fmt.Sprintf(`{"id":"r","status":%q,%s"output":[%s],"usage":{"input_tokens":3,"output_tokens":4}}`,
			status, details, strings.Join(list, ","))
	case wire.FormGemini:
		if o.thought != "" {
			add(`{"text":%q,"thought":true}`, o.thought)
		}
		if o.text != "" {
			add(`{"text":%q}`, o.text)
		}
		for i, arguments := range o.arguments {
			signature := ""
			if i == 0 && o.signature != "" {
				signature = fmt.Sprintf(`,"thoughtSignature":%q`, o.signature)
			}
			add(`{"functionCall":{"id":%q,"name":%q,"args":%s}%s}`, o.callID(i), o.tool, arguments, signature)
		}
		reason := fmt.Sprintf(`,"finishReason":%q`, finish("STOP"))
		if o.open {
			reason = ""
		}
		return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]}%s}],`+
			`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`, strings.Join(list, ","), reason)
	case wire.FormInteractions:
		return fmt.Sprintf(`{"id":"v1_x","object":"interaction","model":"v","steps":[%s],%s,"usage":%s}`,
			strings.Join(o.steps(), ","), o.interactionStatus(), interactionUsage)
	}
	return `{"choices":[{"index":0,"message":` + o.chatMessage() + `,"finish_reason":"` + finish(o.chatFinish()) + `"}],` +
		`"usage":{"prompt_tokens":3,"completion_tokens":4}}`
}

// interactionUsage is the usage of an interaction.
const interactionUsage = `{"total_tokens":7,"total_input_tokens":3,"total_output_tokens":4,"total_thought_tokens":0}`

// steps returns the steps of an interaction.
func (o modelOutput) steps() (list []string) {
	if o.thought != "" || o.signature != "" {
		list = append(list, fmt.Sprintf(`{"type":"thought","signature":%q,"summary":[{"type":"text","text":%q}]}`, o.signature, o.thought))
	}
	if o.text != "" {
		list = append(list, fmt.Sprintf(`{"type":"model_output","content":[{"type":"text","text":%q}]}`, o.text))
	}
	for i, arguments := range o.arguments {
		list = append(list, fmt.Sprintf(`{"type":"function_call","id":%q,"name":%q,"arguments":%s}`, o.callID(i), o.tool, arguments))
	}
	return list
}

// interactionStatus returns the members of an interaction for its end: a status, or an error's code.
func (o modelOutput) interactionStatus() string {
	switch o.finish {
	case "":
		if o.arguments != nil {
			return `"status":"requires_action"`
		}
		return `"status":"completed"`
	case "incomplete", "failed", "cancelled", "in_progress":
		return fmt.Sprintf(`"status":%q`, o.finish)
	}
	return fmt.Sprintf(`"status":"failed","errors":[{"code":%q,"message":"x"}]`, o.finish)
}

// callID returns the id of a call.
func (o modelOutput) callID(i int) string {
	if i == 0 && o.id != "" {
		return o.id
	}
	return fmt.Sprintf("t%d", i)
}

func (o modelOutput) chatFinish() string {
	if o.arguments != nil {
		return "tool_calls"
	}
	return "stop"
}

// chatMessage returns the message of a chat line, which also is a delta.
func (o modelOutput) chatMessage() string {
	message := map[string]any{"role": "assistant"}
	if o.thought != "" {
		message["reasoning_content"] = o.thought
	}
	if o.text != "" {
		message["content"] = o.text
	}
	if o.refusal != "" {
		message["refusal"] = o.refusal
	}
	var calls []any
	for i, arguments := range o.arguments {
		calls = append(calls, map[string]any{"index": i, "id": o.callID(i), "type": "function",
			"function": map[string]any{"name": o.tool, "arguments": arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	out, _ := json.Marshal(message) // of strings only
	return string(out)
}

// stream returns the answer of a line as a stream.
func (o modelOutput) stream(line wire.Form) string {
	whole := o.whole(line)
	var events []string
	add := func(format string, args ...any) { events = append(events, fmt.Sprintf(format, args...)) }
	switch line {
	case wire.FormMessages:
		var answer struct {
			Content []struct{ Type, Text, Thinking, Signature, ID, Name string }
			Stop    string `json:"stop_reason"`
		}
		_ = json.Unmarshal([]byte(whole), &answer) // made above
		add(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"v",` +
			`"content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`)
		add(`{"type":"ping"}`)
		calls := 0
		for i, b := range answer.Content {
			switch b.Type {
			case "text":
				add(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, i)
				for piece := range strings.SplitAfterSeq(b.Text, "ö") {
					add(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, i, piece)
				}
			case "thinking":
				add(`{"type":"content_block_start","index":%d,"content_block":{"type":"thinking","thinking":"","signature":""}}`, i)
				add(`{"type":"content_block_delta","index":%d,"delta":{"type":"thinking_delta","thinking":%q}}`, i, b.Thinking)
				add(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%q}}`, i, b.Signature)
			default:
				add(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i, b.ID, b.Name)
				add(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, o.arguments[calls])
				calls++
			}
			add(`{"type":"content_block_stop","index":%d}`, i)
		}
		if !o.open {
			add(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":4}}`, answer.Stop)
			add(`{"type":"message_stop"}`)
		}
	case wire.FormResponses:
		var answer struct {
			Output []json.RawMessage
			Status string
		}
		_ = json.Unmarshal([]byte(whole), &answer) // made above
		for i, item := range answer.Output {
			add(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)
		}
		if !o.open {
			add(`{"type":"response.%s","response":%s}`, answer.Status, whole)
		}
	case wire.FormGemini:
		add("%s", whole)
	case wire.FormInteractions:
		o.text += o.refusal
		add(`{"interaction":{"id":"v1_x","status":"in_progress","object":"interaction","model":"v"},"event_type":"interaction.created"}`)
		add(`{"interaction_id":"v1_x","status":"in_progress","event_type":"interaction.status_update"}`)
		for i, step := range o.steps() {
			for _, event := range stepEvents(i, step) {
				add("%s", event)
			}
		}
		if !o.open {
			add(`{"interaction":{"id":"v1_x","object":"interaction",%s,"usage":%s},"event_type":"interaction.completed"}`,
				o.interactionStatus(), interactionUsage)
			add(`[DONE]`)
		}
	default:
		finish := o.finish
		if finish == "" {
			finish = o.chatFinish()
		}
		add(`{"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, o.chatMessage())
		if !o.open {
			add(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish)
			add(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
			add(`[DONE]`)
		}
	}
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

// stepEvents returns the events of a step of an interaction. The arguments of a call come in two pieces.
func stepEvents(index int, step string) []string {
	var s struct {
		Type, Signature, ID, Name string
		Summary, Content          []struct{ Text string }
		Arguments                 json.RawMessage
	}
	_ = json.Unmarshal([]byte(step), &s) // made above
	event := func(kind, format string, args ...any) string {
		return fmt.Sprintf(`{"index":%d,%s"event_type":%q}`, index, fmt.Sprintf(format, args...), kind)
	}
	var events []string
	switch s.Type {
	case "thought":
		events = []string{event("step.start", `"step":{"type":"thought"},`),
			event("step.delta", `"delta":{"type":"thought_summary","content":{"type":"text","text":%q}},`, s.Summary[0].Text),
			event("step.delta", `"delta":{"type":"thought_signature","signature":%q},`, s.Signature)}
	case "model_output":
		events = []string{event("step.start", `"step":{"type":"model_output"},`),
			event("step.delta", `"delta":{"type":"text","text":%q},`, s.Content[0].Text)}
	default:
		half := len(s.Arguments) / 2
		events = []string{event("step.start", `"step":{"type":"function_call","id":%q,"name":%q,"arguments":{}},`, s.ID, s.Name),
			event("step.delta", `"delta":{"type":"arguments_delta","arguments":%q},`, s.Arguments[:half]),
			event("step.delta", `"delta":{"type":"arguments_delta","arguments":%q},`, s.Arguments[half:])}
	}
	return append(events, event("step.stop", ""))
}

// answers returns a client's whole answer and stream for the answer of a line.
func answers(t *testing.T, pair wire.Pair, line wire.Form, o modelOutput) (whole, stream string) {
	t.Helper()
	raw := []byte(o.whole(line))
	read, err := pair.Read(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	pieces, err := pair.Render(read, raw, wire.Usage{Prompt: 3, Completion: 4})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	meter, writer := pair.Events()
	streamed := pairtest.Flow([]byte(o.stream(line)), writer, meter, wire.Usage{Prompt: 3, Completion: 4})
	return string(bytes.Join(pieces[:], nil)), string(streamed)
}

// request opens a request of a client's form.
func request(t *testing.T, client wire.Form, body string) wire.Request {
	t.Helper()
	r, err := opened(client, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// opened opens and checks a request of a client's form.
func opened(client wire.Form, body []byte) (wire.Request, error) {
	var r interface {
		wire.Request
		Check() error
	}
	var err error
	switch client {
	case wire.FormMessages:
		r, err = messages.Open(body)
	case wire.FormResponses:
		r, err = responses.Open(body)
	case wire.FormGemini:
		r, err = gemini.Open(body, gemini.Method{Model: "m"})
	default:
		r, err = completions.Open(body)
	}
	if err != nil {
		return nil, err
	}
	return r, r.Check()
}
