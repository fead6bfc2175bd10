package sandbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tollgate/internal/wire"
)

// parsedAnswer is the content of an answer in any form.
type parsedAnswer struct {
	reasoning, content, tool, arguments string
	finish                              string // stop, length, call or filter
	prompt, cached, written             int64  // tokens of the prompt; of these, read from and written to the cache
	completion, thinking                int64
}

// parseBody parses a plain answer and checks its format.
func parseBody(t *testing.T, form wire.Form, body string) parsedAnswer {
	t.Helper()
	if !json.Valid([]byte(body)) {
		t.Fatalf("invalid JSON: %s", body)
	}
	a := gjson.Parse(body)
	switch form {
	case wire.FormResponses:
		return response(t, a)
	case wire.FormMessages:
		return message(t, a)
	}
	u := a.Get("usage")
	m := a.Get("choices.0.message")
	return parsedAnswer{
		reasoning: m.Get("reasoning_content").Str, content: m.Get("content").Str,
		tool: m.Get("tool_calls.0.function.name").Str, arguments: m.Get("tool_calls.0.function.arguments").Str,
		finish: finishReasons[a.Get("choices.0.finish_reason").Str],
		prompt: u.Get("prompt_tokens").Int(), cached: u.Get("prompt_tokens_details.cached_tokens").Int(),
		completion: u.Get("completion_tokens").Int(), thinking: u.Get("completion_tokens_details.reasoning_tokens").Int(),
	}
}

// parseStream parses a stream and checks its format.
func parseStream(t *testing.T, form wire.Form, stream string) parsedAnswer {
	t.Helper()
	switch form {
	case wire.FormResponses:
		return responsesStream(t, stream)
	case wire.FormMessages:
		return messagesStream(t, stream)
	}
	choices, u := join(t, frames(t, stream))
	c := choices[0]
	return parsedAnswer{
		reasoning: c.reasoning, content: c.content, tool: c.tool, arguments: c.arguments, finish: finishReasons[c.finish],
		prompt: u.Get("prompt_tokens").Int(), cached: u.Get("prompt_tokens_details.cached_tokens").Int(),
		completion: u.Get("completion_tokens").Int(), thinking: u.Get("completion_tokens_details.reasoning_tokens").Int(),
	}
}

// finishReasons maps the finish reasons of all forms to those of parsedAnswer.
var finishReasons = map[string]string{
	"stop": "stop", "length": "length", "tool_calls": "call", "content_filter": "filter",
	"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "call", "refusal": "filter",
	"max_output_tokens": "length",
}

// event is a named event of a stream.
type event struct {
	name string
	data gjson.Result
}

// events splits a stream of named events.
func events(t *testing.T, stream string) []event {
	t.Helper()
	var out []event
	for _, raw := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		lines := strings.Split(raw, "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "event: ") || !strings.HasPrefix(lines[1], "data: ") {
			t.Fatalf("event %q", raw)
		}
		name, data := lines[0][len("event: "):], lines[1][len("data: "):]
		if !json.Valid([]byte(data)) || gjson.Get(data, "type").Str != name {
			t.Fatalf("event %q", raw)
		}
		out = append(out, event{name, gjson.Parse(data)})
	}
	return out
}

// message reads a complete message.
func message(t *testing.T, m gjson.Result) parsedAnswer {
	t.Helper()
	var s parsedAnswer
	if !strings.HasPrefix(m.Get("id").Str, "msg_") || m.Get("type").Str != "message" || m.Get("role").Str != "assistant" ||
		!m.Get("content").IsArray() {
		t.Fatalf("message %s", m.Raw)
	}
	for _, b := range m.Get("content").Array() {
		switch kind := b.Get("type").Str; {
		case kind == "thinking" && b.Get("signature").Str != "":
			s.reasoning += b.Get("thinking").Str
		case kind == "text" && b.Get("text").Str != "":
			s.content += b.Get("text").Str
		case kind == "tool_use" && strings.HasPrefix(b.Get("id").Str, "toolu_") && b.Get("input").IsObject():
			s.tool, s.arguments = b.Get("name").Str, b.Get("input").Raw
		default:
			t.Fatalf("block %s", b.Raw)
		}
	}
	if stopped := m.Get("stop_sequence").Type == gjson.String; stopped != (m.Get("stop_reason").Str == "stop_sequence") {
		t.Errorf("stop_reason and stop_sequence differ: %s", m.Raw)
	}
	s.finish = finishReasons[m.Get("stop_reason").Str]
	s.messagesUsage(m.Get("usage"))
	return s
}

// messagesUsage sets the usage of a message.
func (s *parsedAnswer) messagesUsage(u gjson.Result) {
	s.cached, s.written = u.Get("cache_read_input_tokens").Int(), u.Get("cache_creation_input_tokens").Int()
	s.prompt = u.Get("input_tokens").Int() + s.cached + s.written
	s.completion, s.thinking = u.Get("output_tokens").Int(), u.Get("output_tokens_details.thinking_tokens").Int()
}

// messagesStream puts the events of a stream together, as a client does. It checks the order of the
// events, and that each block ends before the next begins.
func messagesStream(t *testing.T, stream string) parsedAnswer {
	t.Helper()
	var s parsedAnswer
	var open gjson.Result // the open block; absent if no block is open
	var text, signature string
	blocks, ended, stopped := int64(0), false, false
	for i, e := range events(t, stream) {
		if (i == 0) != (e.name == "message_start") || stopped {
			t.Fatalf("event %d is %s: %s", i, e.name, stream)
		}
		if index := e.data.Get("index"); index.Exists() && index.Int() != blocks {
			t.Fatalf("block %d is not next: %s", index.Int(), stream)
		}
		switch e.name {
		case "message_start":
			m := e.data.Get("message")
			if m.Get("content").Raw != "[]" || m.Get("stop_reason").Type != gjson.Null || m.Get("usage.output_tokens").Int() > 1 {
				t.Fatalf("message %s", m.Raw)
			}
			s.messagesUsage(m.Get("usage"))
		case "ping":
		case "content_block_start":
			if open.Exists() || ended {
				t.Fatalf("a block opens in another: %s", stream)
			}
			open, text, signature = e.data.Get("content_block"), "", ""
		case "content_block_delta":
			kind := open.Get("type").Str + " " + e.data.Get("delta.type").Str
			value := e.data.Get("delta." + map[string]string{
				"thinking thinking_delta": "thinking", "thinking signature_delta": "signature",
				"text text_delta": "text", "tool_use input_json_delta": "partial_json",
			}[kind])
			switch {
			case value.Type != gjson.String || signature != "":
				t.Fatalf("delta %s of block %s", e.data.Raw, open.Raw)
			case strings.HasSuffix(kind, "signature_delta"):
				signature = value.Str
			default:
				text += value.Str
			}
		case "content_block_stop":
			switch open.Get("type").Str {
			case "thinking":
				if signature == "" {
					t.Fatalf("thinking without a signature: %s", stream)
				}
				s.reasoning += text
			case "text":
				s.content += text
			case "tool_use":
				s.tool, s.arguments = open.Get("name").Str, text
			default:
				t.Fatalf("no block is open: %s", stream)
			}
			open = gjson.Result{}
			blocks++
		case "message_delta":
			if open.Exists() || ended {
				t.Fatalf("message_delta inside a block, or a second time: %s", stream)
			}
			ended, s.finish = true, finishReasons[e.data.Get("delta.stop_reason").Str]
			before := s
			if s.messagesUsage(e.data.Get("usage")); before.prompt != s.prompt || before.cached != s.cached {
				t.Errorf("the usage of the prompt changes: %s", stream)
			}
		case "message_stop":
			stopped = ended
		default:
			t.Fatalf("event %s", e.name)
		}
	}
	if !stopped {
		t.Fatalf("the stream does not end: %s", stream)
	}
	return s
}

// responseMembers are the members that every response must have.
const responseMembers = `id object created_at completed_at status incomplete_details model previous_response_id instructions
	output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs
	temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key`

// response reads a complete response.
func response(t *testing.T, r gjson.Result) parsedAnswer {
	t.Helper()
	var s parsedAnswer
	for _, name := range strings.Fields(responseMembers) {
		if !r.Get(name).Exists() {
			t.Fatalf("no member %s: %s", name, r.Raw)
		}
	}
	complete := true
	for _, item := range r.Get("output").Array() {
		id, status := item.Get("id").Str, item.Get("status").Str
		switch kind := item.Get("type").Str; {
		case kind == "reasoning" && strings.HasPrefix(id, "rs_"):
			s.reasoning += item.Get("summary.0.text").Str
		case kind == "message" && strings.HasPrefix(id, "msg_") && item.Get("content.#").Int() == 1:
			s.content += item.Get("content.0.text").Str
		case kind == "function_call" && strings.HasPrefix(id, "fc_") && strings.HasPrefix(item.Get("call_id").Str, "call_"):
			s.tool, s.arguments = item.Get("name").Str, item.Get("arguments").Str
		default:
			t.Fatalf("item %s", item.Raw)
		}
		complete = complete && status != "incomplete"
	}
	switch reason := r.Get("incomplete_details.reason").Str; r.Get("status").Str {
	case "completed":
		s.finish = "stop"
		if s.tool != "" {
			s.finish = "call"
		}
		if !complete || reason != "" || r.Get("completed_at").Int() < r.Get("created_at").Int() {
			t.Errorf("response %s", r.Raw)
		}
	case "incomplete":
		s.finish = finishReasons[reason]
	default:
		t.Fatalf("response %s", r.Raw)
	}
	u := r.Get("usage")
	s.prompt, s.cached = u.Get("input_tokens").Int(), u.Get("input_tokens_details.cached_tokens").Int()
	s.completion, s.thinking = u.Get("output_tokens").Int(), u.Get("output_tokens_details.reasoning_tokens").Int()
	if u.IsObject() && u.Get("total_tokens").Int() != s.prompt+s.completion {
		t.Errorf("usage %s", u.Raw)
	}
	return s
}

// responsesStream puts the events of a stream together, as a client does. It checks the numbers and
// the order of the events, that items and their parts begin and end in order, and that a repeated
// text equals its deltas.
func responsesStream(t *testing.T, stream string) parsedAnswer {
	t.Helper()
	var (
		items []string // the ended items
		open  *openItem
		final gjson.Result
	)
	for i, e := range events(t, stream) {
		fail := func(why string) { t.Helper(); t.Fatalf("event %d, %s: %s\n%s", i, e.name, why, stream) }
		if e.data.Get("sequence_number").Raw != fmt.Sprint(i) || final.Exists() {
			fail("wrong number, or an event after the end")
		}
		if (i == 0) != (e.name == "response.created") || (i == 1) != (e.name == "response.in_progress") {
			fail("wrong order")
		}
		if r := e.data.Get("response"); r.Exists() {
			if i > 1 {
				final = r
			} else if r.Get("status").Str != "in_progress" || r.Get("output").Raw != "[]" || r.Get("usage").Type != gjson.Null {
				fail("the response is not empty at the beginning")
			}
			continue
		}
		if e.data.Get("output_index").Raw != fmt.Sprint(len(items)) {
			fail("wrong output_index")
		}
		switch item := e.data.Get("item"); {
		case e.name == "response.output_item.added":
			if open != nil {
				fail("an item opens in another")
			}
			open = &openItem{item: item}
		case open == nil:
			fail("no item is open")
		case e.name == "response.output_item.done":
			if item.Get("id").Str != open.item.Get("id").Str || open.partOpen || !open.matches(item) {
				fail("another item is open")
			}
			items, open = append(items, item.Raw), nil
		case e.data.Get("item_id").Str != open.item.Get("id").Str:
			fail("another item is open")
		default:
			if why := open.grow(e); why != "" {
				fail(why)
			}
		}
	}
	if open != nil || !final.Exists() {
		t.Fatalf("the stream does not end: %s", stream)
	}
	if out := final.Get("output").Raw; out != "["+strings.Join(items, ",")+"]" {
		t.Fatalf("the output is %s, the items were %s", out, items)
	}
	return response(t, final)
}

// openItem is an unfinished item of a stream.
type openItem struct {
	item     gjson.Result // from the event that added the item
	partOpen bool         // a part of the item is open
	text     string       // of the deltas
	textDone bool         // the event with the complete text has come
}

// grow adds an event to the item. It returns the fault of the event, or "".
func (o *openItem) grow(e event) string {
	kind := o.item.Get("type").Str
	prefix := map[string]string{
		"message": "response.output_text.", "reasoning": "response.reasoning_summary_text.", "function_call": "response.function_call_arguments.",
	}[kind]
	part := map[string]string{"message": "response.content_part.", "reasoning": "response.reasoning_summary_part."}[kind]
	switch e.name {
	case part + "added":
		if o.partOpen || o.textDone || e.data.Get("part.text").Str != "" {
			return "a part opens in another"
		}
		o.partOpen = true
	case prefix + "delta":
		if o.partOpen != (part != "") || o.textDone || e.data.Get("delta").Str == "" {
			return "a delta outside a part"
		}
		o.text += e.data.Get("delta").Str
	case prefix + "done":
		if o.textDone || e.data.Get("text").Str+e.data.Get("arguments").Str != o.text {
			return "the text differs from the deltas"
		}
		o.textDone = true
	case part + "done":
		if !o.partOpen || !o.textDone || e.data.Get("part.text").Str != o.text {
			return "the part differs from its events"
		}
		o.partOpen = false
	default:
		return "not an event of this item"
	}
	return ""
}

// matches reports whether the ended item agrees with its events.
func (o *openItem) matches(done gjson.Result) bool {
	switch done.Get("type").Str {
	case "message":
		return o.textDone && o.item.Get("status").Str == "in_progress" && done.Get("content.0.text").Str == o.text
	case "function_call":
		return o.textDone && o.item.Get("arguments").Str == "" && done.Get("arguments").Str == o.text
	default:
		return done.Get("summary.0.text").Str == o.text
	}
}
