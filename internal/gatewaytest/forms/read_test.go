package forms

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
)

// reading is the content of an answer in any form.
type reading struct {
	text  string
	hint  string      // the visible reasoning
	calls []string    // as name(arguments)
	end   string      // finish_reason, stop_reason, or the response's status
	whole bool        // the answer is complete
	fault scene.Error // of the answer, or of a stream's last event; the messages form has no code and no param

	prompt, cached, completion int64 // tokens, if the answer has a usage

	frames []frameRead // of a stream
}

// frameRead is one event of a stream.
type frameRead struct {
	name string
	data string
}

// piece has the members of answers and events in all forms.
type piece struct {
	Type     string       `json:"type"`
	ID       string       `json:"id"`
	Object   string       `json:"object"`
	Model    string       `json:"model"`
	Role     string       `json:"role"`
	Number   *int64       `json:"sequence_number"`
	Status   string       `json:"status"`
	Error    *scene.Error `json:"error"`
	Response *piece       `json:"response"`
	Message  *piece       `json:"message"`

	Choices []struct {
		Message *chatPiece `json:"message"`
		Delta   *chatPiece `json:"delta"`
		Finish  string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *usagePiece `json:"usage"`

	Content    []blockPiece `json:"content"`
	StopReason *string      `json:"stop_reason"`
	Index      int          `json:"index"`
	Block      *blockPiece  `json:"content_block"`
	Delta      deltaPiece   `json:"delta"`

	Output      []itemPiece `json:"output"`
	OutputIndex int         `json:"output_index"`
	Item        *itemPiece  `json:"item"`
}

type chatPiece struct {
	Content *string `json:"content"`
	Hint    string  `json:"reasoning_content"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type usagePiece struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	Written    int64 `json:"cache_creation_input_tokens"`
	Read       int64 `json:"cache_read_input_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

type blockPiece struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Hint  string          `json:"thinking"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// deltaPiece is the delta of an event. It is an object in the messages form and a string in the
// responses form.
type deltaPiece struct {
	text string
	Type string  `json:"type"`
	Text string  `json:"text"`
	Hint string  `json:"thinking"`
	JSON string  `json:"partial_json"`
	Stop *string `json:"stop_reason"`
}

func (d *deltaPiece) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &d.text)
	}
	type plain deltaPiece
	return json.Unmarshal(raw, (*plain)(d))
}

type itemPiece struct {
	Type      string       `json:"type"`
	ID        string       `json:"id"`
	CallID    string       `json:"call_id"`
	Status    string       `json:"status"`
	Content   []blockPiece `json:"content"`
	Summary   []blockPiece `json:"summary"`
	Name      string       `json:"name"`
	Arguments string       `json:"arguments"`
}

// framesOf splits a stream into events, without comments.
func framesOf(t *testing.T, raw string) []frameRead {
	t.Helper()
	if !strings.HasSuffix(raw, "\n\n") {
		t.Errorf("the last event is incomplete: %q", raw)
	}
	var frames []frameRead
	for text := range strings.SplitSeq(strings.TrimSuffix(raw, "\n\n"), "\n\n") {
		var f frameRead
		for line := range strings.SplitSeq(text, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				f.name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				f.data += data
			} else if !strings.HasPrefix(line, ":") {
				t.Errorf("the line %q does not belong in a stream", line)
			}
		}
		if f.data != "" {
			frames = append(frames, f)
		}
	}
	return frames
}

// read parses an answer of a form. It fails the test if the answer is malformed.
func read(t *testing.T, s scene.Form, a scene.FormAnswer, model string) reading {
	t.Helper()
	var r reading
	kind := a.Header.Get("Content-Type")
	if !strings.HasPrefix(kind, "text/event-stream") {
		if !strings.HasPrefix(kind, "application/json") {
			t.Errorf("content type %q", kind)
		}
		r.take(t, s, a.Raw, model)
		return r
	}
	r.frames = framesOf(t, a.Raw)
	switch s {
	case scene.Messages:
		r.takeMessages(t, model)
	case scene.Responses:
		r.takeResponses(t, model)
	default:
		r.takeChat(t, model)
	}
	if t.Failed() {
		t.Logf("the client got %d %s", a.Status, a.Raw)
	}
	return r
}

func decode(t *testing.T, data string) piece {
	t.Helper()
	var p piece
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		t.Errorf("%v in %s", err, data)
	}
	return p
}

// take reads a complete answer that is not a stream.
func (r *reading) take(t *testing.T, s scene.Form, raw, model string) {
	t.Helper()
	p := decode(t, raw)
	if p.Error != nil && p.Status == "" {
		r.fault = *p.Error
		return
	}
	if p.Model != model || p.ID == "" {
		t.Errorf("model %q, id %q in %s", p.Model, p.ID, raw)
	}
	r.count(p.Usage)
	r.whole = true
	switch s {
	case scene.Messages:
		if p.Type != "message" || p.Role != "assistant" || p.StopReason == nil || p.Usage == nil {
			t.Errorf("not a message: %s", raw)
			return
		}
		r.end = *p.StopReason
		for _, b := range p.Content {
			r.block(b)
		}
	case scene.Responses:
		r.response(t, p)
	default:
		if p.Object != "chat.completion" || len(p.Choices) != 1 || p.Choices[0].Message == nil {
			t.Errorf("not a chat completion: %s", raw)
			return
		}
		r.end = p.Choices[0].Finish
		r.chat(p.Choices[0].Message)
	}
}

// count reads a usage object of any form.
func (r *reading) count(u *usagePiece) {
	if u != nil {
		r.prompt, r.completion = u.Prompt+u.Input+u.Written+u.Read, u.Completion+u.Output
		r.cached = u.Details.Cached + u.InputDetails.Cached + u.Read
	}
}

// block reads a complete block of a message.
func (r *reading) block(b blockPiece) {
	if r.hint += b.Hint; b.Type == "text" {
		r.text += b.Text
	} else if b.Type == "tool_use" {
		r.calls = append(r.calls, fmt.Sprintf("%s(%s)", b.Name, b.Input))
	}
}

// chat reads a message or a delta of the chat form.
func (r *reading) chat(m *chatPiece) {
	if r.hint += m.Hint; m.Content != nil {
		r.text += *m.Content
	}
	for _, c := range m.Calls {
		if c.Function.Name != "" {
			r.calls = append(r.calls, c.Function.Name+"()")
		}
		last := len(r.calls) - 1
		r.calls[last] = strings.TrimSuffix(r.calls[last], ")") + c.Function.Arguments + ")"
	}
}

// response reads a complete response.
func (r *reading) response(t *testing.T, p piece) {
	t.Helper()
	if p.Object != "response" || p.ID == "" || p.Status == "" {
		t.Errorf("not a response: %+v", p)
	}
	r.end = p.Status
	if p.Error != nil {
		r.fault = *p.Error
	}
	for _, item := range p.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				r.text += part.Text
			}
		case "reasoning":
			for _, part := range item.Summary {
				r.hint += part.Text
			}
		case "function_call":
			if item.CallID == "" || item.ID == "" {
				t.Errorf("a call without ids: %+v", item)
			}
			r.calls = append(r.calls, item.Name+"("+item.Arguments+")")
		}
	}
}

func (r *reading) takeChat(t *testing.T, model string) {
	t.Helper()
	for i, f := range r.frames {
		if f.name != "" || r.whole || r.fault.Message != "" {
			t.Errorf("event %d has the name %q, or follows the end", i, f.name)
		}
		if f.data == "[DONE]" {
			r.whole = true
			continue
		}
		p := decode(t, f.data)
		if p.Error != nil {
			r.fault = *p.Error
			continue
		}
		if p.Model != model || p.Object != "chat.completion.chunk" || p.ID == "" {
			t.Errorf("not a chunk: %s", f.data)
		}
		r.count(p.Usage)
		for _, c := range p.Choices {
			if c.Delta != nil {
				r.chat(c.Delta)
			}
			if c.Finish != "" {
				r.end = c.Finish
			}
		}
	}
	if r.whole && r.end == "" {
		t.Error("[DONE] without a finish_reason")
	}
}

func (r *reading) takeMessages(t *testing.T, model string) {
	t.Helper()
	next, open := 0, false
	var args string
	for i, f := range r.frames {
		p := decode(t, f.data)
		if p.Type != f.name || r.whole || r.fault.Message != "" || (i == 0) != (f.name == "message_start") {
			t.Errorf("event %d, %s %s, is out of order", i, f.name, f.data)
		}
		switch f.name {
		case "message_start":
			if m := p.Message; m == nil || m.Model != model || m.ID == "" || m.Type != "message" || m.Role != "assistant" || m.Usage == nil {
				t.Errorf("not a message: %s", f.data)
			}
		case "content_block_start":
			if open || p.Index != next || p.Block == nil {
				t.Errorf("event %d: block %d is not next: %s", i, p.Index, f.data)
				return
			}
			open, args = true, ""
			if p.Block.Type == "tool_use" {
				r.calls = append(r.calls, p.Block.Name)
			} else {
				r.block(*p.Block)
			}
		case "content_block_delta":
			if !open || p.Index != next {
				t.Errorf("event %d: block %d is not open", i, p.Index)
			}
			r.text, r.hint = r.text+p.Delta.Text, r.hint+p.Delta.Hint
			args += p.Delta.JSON
			if p.Delta.Type == "input_json_delta" && p.Delta.JSON != "" && len(r.calls) > 0 {
				last := len(r.calls) - 1
				name, _, _ := strings.Cut(r.calls[last], "(")
				r.calls[last] = name + "(" + args + ")"
			}
		case "content_block_stop":
			if !open || p.Index != next {
				t.Errorf("event %d: block %d is not open", i, p.Index)
			}
			open = false
			next++
		case "message_delta":
			if open || p.Delta.Stop == nil {
				t.Errorf("event %d: %s", i, f.data)
				return
			}
			r.end = *p.Delta.Stop
			r.count(p.Usage)
		case "message_stop":
			r.whole = true
		case "error":
			r.fault = *p.Error
		}
	}
	if r.whole && r.end == "" {
		t.Error("message_stop without a stop_reason")
	}
}

// takeResponses reads a stream of the responses form. The deltas must add up to the response in the
// last event.
func (r *reading) takeResponses(t *testing.T, model string) {
	t.Helper()
	var deltas, args string
	items := 0
	for i, f := range r.frames {
		p := decode(t, f.data)
		if p.Type != f.name || p.Number == nil || *p.Number != int64(i) || r.end != "" || (i == 0) != (f.name == "response.created") {
			t.Errorf("event %d, %s %s, is out of order", i, f.name, f.data)
		}
		if p.Response != nil && (p.Response.Model != model || p.Response.ID == "") {
			t.Errorf("event %d: model %q, id %q", i, p.Response.Model, p.Response.ID)
		}
		switch f.name {
		case "response.output_item.added":
			if p.OutputIndex != items {
				t.Errorf("event %d: item %d is not next", i, p.OutputIndex)
			}
			items++
		case "response.output_text.delta":
			deltas += p.Delta.text
		case "response.function_call_arguments.delta":
			args += p.Delta.text
		case "response.completed", "response.incomplete", "response.failed":
			if p.Response == nil {
				t.Errorf("event %d has no response", i)
				return
			}
			r.response(t, *p.Response)
			r.count(p.Response.Usage)
			r.whole = f.name != "response.failed"
		}
	}
	if !r.whole {
		r.text = deltas // a failed response does not repeat the text
		return
	}
	var whole string
	for _, call := range r.calls {
		_, arguments, _ := strings.Cut(call, "(")
		whole += strings.TrimSuffix(arguments, ")")
	}
	if r.text != deltas || whole != args {
		t.Errorf("deltas %q and %q, in the last event %q and %q", deltas, args, r.text, whole)
	}
}
