package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/wire/sse"
)

// sentItem is an item as put together by a client of a stream.
type sentItem struct {
	id, kind string
	done     bool
	part     map[string]any // the open part, or nil
	parts    []any          // the closed parts
	Text     string         // the deltas of the open part, or of the call
	ended    bool           // the whole text was repeated
}

// sentStream is a stream as seen by a client.
type sentStream struct {
	kinds    []string // of the events, in order
	Items    []*sentItem
	finished []any // complete items by index
	Terminal string
	response map[string]any // of the terminal event
}

// CheckResponses checks that a stream of the responses form is well formed: numbers from 0, events
// in order, items and parts that open and close, deltas equal to the repeated text, and one
// terminal event, the last.
func CheckResponses(stream []byte) (*sentStream, error) {
	s := &sentStream{}
	r := sse.NewReader(strings.NewReader(string(stream)), 64<<20)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, err
		}
		if e.Data == nil {
			continue
		}
		var event map[string]any
		if err := json.Unmarshal(e.Data, &event); err != nil {
			return s, fmt.Errorf("%s: %w", e.Data, err)
		}
		if err := s.event(e.Name, event); err != nil {
			return s, fmt.Errorf("%s: %w", e.Data, err)
		}
	}
	if s.Terminal == "" {
		return s, fmt.Errorf("no terminal event")
	}
	return s, nil
}

func (s *sentStream) event(name string, event map[string]any) error {
	kind, _ := event["type"].(string)
	number, ok := event["sequence_number"].(float64)
	switch {
	case kind == "" || kind != name:
		return fmt.Errorf("event %q has the type %q", name, kind)
	case !ok || int(number) != len(s.kinds):
		return fmt.Errorf("number %v, want %d", event["sequence_number"], len(s.kinds))
	case s.Terminal != "":
		return fmt.Errorf("an event after %s", s.Terminal)
	case len(s.kinds) == 0 && kind != "response.created", len(s.kinds) == 1 && kind != "response.in_progress":
		return fmt.Errorf("event %d is %s", len(s.kinds), kind)
	}
	s.kinds = append(s.kinds, kind)
	if response, ok := event["response"].(map[string]any); ok {
		return s.lifecycle(kind, response)
	}
	index, ok := event["output_index"].(float64)
	if !ok {
		return fmt.Errorf("no output_index")
	}
	if kind == "response.output_item.added" {
		return s.added(int(index), event["item"])
	}
	if int(index) >= len(s.Items) || s.Items[int(index)].done {
		return fmt.Errorf("item %v is not open", index)
	}
	item := s.Items[int(index)]
	if kind == "response.output_item.done" {
		return s.done(item, int(index), event["item"])
	}
	if event["item_id"] != item.id {
		return fmt.Errorf("item_id %v, want %s", event["item_id"], item.id)
	}
	return item.event(kind, event)
}

// everyMember are the members of a response required by Open Responses.
var everyMember = strings.Fields(`id object created_at completed_at status incomplete_details model previous_response_id
	instructions output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty
	frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background
	service_tier metadata safety_identifier prompt_cache_key`)

func (s *sentStream) lifecycle(kind string, response map[string]any) error {
	for _, name := range everyMember {
		if _, ok := response[name]; !ok {
			return fmt.Errorf("the response has no member %s", name)
		}
	}
	status, output := response["status"], response["output"].([]any)
	if response["store"] != false {
		return fmt.Errorf("store is %v", response["store"])
	}
	switch kind {
	case "response.created", "response.in_progress":
		if len(s.kinds) > 2 || status != "in_progress" || len(output) > 0 || response["usage"] != nil {
			return fmt.Errorf("not a beginning")
		}
		return nil
	case "response.failed":
		if failure, ok := response["error"].(map[string]any); !ok || failure["code"] == "" || failure["message"] == "" || len(output) > 0 {
			return fmt.Errorf("not a failure")
		}
	case "response.completed", "response.incomplete":
		for i, item := range s.Items {
			if !item.done {
				return fmt.Errorf("item %d is open", i)
			}
		}
		if len(output) != len(s.finished) || len(output) > 0 && !reflect.DeepEqual(output, s.finished) {
			return fmt.Errorf("the output is not what the items were: %v", s.finished)
		}
		if _, ok := response["usage"].(map[string]any); !ok || (kind == "response.incomplete") != (response["incomplete_details"] != nil) {
			return fmt.Errorf("not an end")
		}
	default:
		return fmt.Errorf("unknown event")
	}
	if "response."+status.(string) != kind {
		return fmt.Errorf("status %s", status)
	}
	s.Terminal, s.response = kind, response
	return nil
}

func (s *sentStream) added(index int, raw any) error {
	item, _ := raw.(map[string]any)
	id, _ := item["id"].(string)
	kind, _ := item["type"].(string)
	for _, other := range s.Items {
		if other.id == id {
			return fmt.Errorf("the id %q was there already", id)
		}
		if !other.done && other.kind != "function_call" && other.kind != "custom_tool_call" {
			return fmt.Errorf("the %s before it is open", other.kind)
		}
	}
	if id == "" || kind == "" || index != len(s.Items) {
		return fmt.Errorf("item %d of type %q has the id %q", index, kind, id)
	}
	s.Items, s.finished = append(s.Items, &sentItem{id: id, kind: kind}), append(s.finished, nil)
	for _, name := range []string{"content", "summary"} {
		if parts, ok := item[name].([]any); ok && len(parts) > 0 {
			return fmt.Errorf("it begins with %s", name)
		}
	}
	if text := item["arguments"]; text != nil && text != "" {
		return fmt.Errorf("it begins with arguments")
	}
	return nil
}

func (s *sentStream) done(item *sentItem, index int, raw any) error {
	ended, _ := raw.(map[string]any)
	var parts any = item.parts
	if item.parts == nil {
		parts = []any{}
	}
	ok := item.part == nil && ended["id"] == item.id && ended["type"] == item.kind
	switch item.kind {
	case "message":
		ok = ok && reflect.DeepEqual(ended["content"], parts) && len(item.parts) > 0
	case "reasoning":
		ok = ok && reflect.DeepEqual(ended["summary"], parts) && len(item.parts) > 0
	case "function_call":
		ok = ok && item.ended && ended["arguments"] == item.Text && ended["call_id"] != "" && ended["name"] != nil
	case "custom_tool_call":
		ok = ok && item.ended && ended["input"] == item.Text && ended["call_id"] != ""
	}
	if status := ended["status"]; item.kind != "reasoning" && status != "completed" && status != "incomplete" {
		ok = false
	}
	if !ok {
		return fmt.Errorf("the item is not what its events were: %+v", item)
	}
	item.done, s.finished[index] = true, raw
	return nil
}

// deltasOf maps each event with text to the kind of its item or part, and to the member with the whole text
// (empty for a delta).
var deltasOf = map[string]struct{ kind, text string }{
	"response.output_text.delta":             {"output_text", ""},
	"response.output_text.done":              {"output_text", "text"},
	"response.refusal.delta":                 {"refusal", ""},
	"response.refusal.done":                  {"refusal", "refusal"},
	"response.reasoning_summary_text.delta":  {"summary_text", ""},
	"response.reasoning_summary_text.done":   {"summary_text", "text"},
	"response.function_call_arguments.delta": {"function_call", ""},
	"response.function_call_arguments.done":  {"function_call", "arguments"},
	"response.custom_tool_call_input.delta":  {"custom_tool_call", ""},
	"response.custom_tool_call_input.done":   {"custom_tool_call", "input"},
}

// event adds an event of an open item.
func (i *sentItem) event(kind string, event map[string]any) error {
	number, partKind := event["content_index"], i.kind
	if i.kind == "reasoning" {
		number = event["summary_index"]
	}
	if i.part != nil {
		partKind, _ = i.part["type"].(string)
	}
	if i.kind == "message" || i.kind == "reasoning" {
		if number != float64(len(i.parts)) {
			return fmt.Errorf("part %v, want %d", number, len(i.parts))
		}
	}
	switch kind {
	case "response.content_part.added", "response.reasoning_summary_part.added":
		part, _ := event["part"].(map[string]any)
		if i.part != nil || part == nil || part["text"] != nil && part["text"] != "" {
			return fmt.Errorf("a part cannot begin so, or here")
		}
		i.part, i.Text, i.ended = part, "", false
		return nil
	case "response.content_part.done", "response.reasoning_summary_part.done":
		part, _ := event["part"].(map[string]any)
		name := "text"
		if partKind == "refusal" {
			name = partKind
		}
		if i.part == nil || !i.ended || part["type"] != partKind || part[name] != i.Text {
			return fmt.Errorf("a part cannot end so, or here: its deltas were %q", i.Text)
		}
		i.part, i.parts = nil, append(i.parts, part)
		return nil
	}
	rule, ok := deltasOf[kind]
	switch {
	case !ok:
		return fmt.Errorf("unknown event")
	case rule.kind != partKind || i.ended:
		return fmt.Errorf("it cannot stand in %s", partKind)
	case rule.text == "":
		text, ok := event["delta"].(string)
		if !ok || text == "" {
			return fmt.Errorf("no delta")
		}
		i.Text += text
	case event[rule.text] != i.Text:
		return fmt.Errorf("the whole is not %q", i.Text)
	default:
		i.ended = true
	}
	return nil
}

// MustCheckResponses is CheckResponses for a test.
func MustCheckResponses(t *testing.T, stream []byte) *sentStream {
	t.Helper()
	s, err := CheckResponses(stream)
	if err != nil {
		t.Fatalf("%v\nin the stream\n%s", err, stream)
	}
	return s
}
