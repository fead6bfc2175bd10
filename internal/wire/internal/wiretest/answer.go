package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Answer is an answer of any form.
type Answer struct {
	Text, Thought, Refusal string
	Calls                  []string // name and arguments
	End                    string   // stop, calls, limit or filter
	Stop                   string   // the stop sequence that ended the answer, if the form names the sequence
	Prompt, Completion     int64
	Error                  string // the message of an error
}

// chatAnswer is a whole answer of chat completions, with the members of the vendor's schema.
type chatAnswer struct {
	ID                *string
	Object            string
	Created           *int64
	Model             *string
	SystemFingerprint *string `json:"system_fingerprint"`
	ServiceTier       *string `json:"service_tier"`
	Choices           []struct {
		Index        *int
		Logprobs     json.RawMessage
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Role             string
			Content          *string
			Refusal          *string
			ReasoningContent string            `json:"reasoning_content"` // of other vendors
			ReasoningDetails []json.RawMessage `json:"reasoning_details"` // of OpenRouter
			Annotations      []json.RawMessage
			ToolCalls        []chatToolCall `json:"tool_calls"`
		}
	}
	Usage *struct {
		Prompt            *int64         `json:"prompt_tokens"`
		Completion        *int64         `json:"completion_tokens"`
		Total             *int64         `json:"total_tokens"`
		PromptDetails     map[string]int `json:"prompt_tokens_details"`
		CompletionDetails map[string]int `json:"completion_tokens_details"`
	}
}

type chatToolCall struct {
	Index        *int // of a delta
	ID, Type     string
	Function     *struct{ Name, Arguments string }
	ExtraContent json.RawMessage `json:"extra_content"` // of Google
}

// messagesAnswer is a whole answer of the messages form.
type messagesAnswer struct {
	ID, Type, Role string
	Model          *string
	Content        []messagesBlock
	StopReason     string          `json:"stop_reason"`
	StopSequence   *string         `json:"stop_sequence"`
	Container      json.RawMessage // of hosted tools
	Usage          *struct {
		Input         *int64          `json:"input_tokens"`
		Output        *int64          `json:"output_tokens"`
		CacheCreation *int64          `json:"cache_creation_input_tokens"`
		CacheRead     *int64          `json:"cache_read_input_tokens"`
		Details       json.RawMessage `json:"output_tokens_details"`
	}
}

type messagesBlock struct {
	Type                                string
	Text, Thinking, Signature, Data, ID *string
	Name                                *string
	Input                               json.RawMessage
	Citations                           []json.RawMessage
}

// geminiAnswer is a whole answer of the Gemini form, or an object of a stream.
type geminiAnswer struct {
	Candidates []struct {
		Index   int
		Content struct {
			Role  string
			Parts []struct {
				Text             *string
				Thought          bool
				ThoughtSignature string
				FunctionCall     *struct {
					ID, Name string
					Args     json.RawMessage
				}
			}
		}
		FinishReason  string
		FinishMessage string
	}
	UsageMetadata *struct {
		PromptTokenCount, CandidatesTokenCount, TotalTokenCount, CachedContentTokenCount, ThoughtsTokenCount int64
	}
	ModelVersion, ResponseID string
	CreateTime               string
	Error                    *struct{ Message string }
}

// ReadAnswer reads a whole answer of a form. If strict, it returns an error unless the answer has the
// members that the vendor's schema requires, and no others.
func ReadAnswer(form string, raw []byte, strict bool) (Answer, error) {
	switch form {
	case "messages":
		return readMessages(raw, strict)
	case "responses":
		return readResponses(raw, strict)
	case "gemini":
		return readGemini(raw, strict)
	}
	return readChat(raw, strict)
}

// decode decodes an answer. If strict, it returns an error for unknown members.
func decode(raw []byte, strict bool, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	return d.Decode(to)
}

// call returns the text of a call in Answer.Calls, or an error if the arguments are not a JSON object.
func call(name, arguments string) (string, error) {
	if !json.Valid([]byte(arguments)) || !strings.HasPrefix(strings.TrimSpace(arguments), "{") {
		return "", fmt.Errorf("the arguments of %s are no object: %s", name, arguments)
	}
	return name + " " + arguments, nil
}

// endOf returns Answer.End for a form's finish reason.
func endOf(word string, words map[string]string) (string, error) {
	end, ok := words[word]
	if !ok {
		return "", fmt.Errorf("unknown end %q", word)
	}
	return end, nil
}

func readChat(raw []byte, strict bool) (a Answer, err error) {
	var c chatAnswer
	if err := decode(raw, strict, &c); err != nil {
		return a, err
	}
	switch {
	case len(c.Choices) != 1:
		return a, fmt.Errorf("%d choices", len(c.Choices))
	case !strict:
	case c.ID == nil || c.Object != "chat.completion" || c.Created == nil || c.Model == nil || c.Choices[0].Index == nil ||
		c.Choices[0].Message.Role != "assistant" || c.Usage == nil || c.Usage.Total == nil:
		return a, errors.New("a required member is missing")
	}
	m := c.Choices[0].Message
	for _, text := range []struct{ from, to *string }{{m.Content, &a.Text}, {m.Refusal, &a.Refusal}, {&m.ReasoningContent, &a.Thought}} {
		if text.from != nil {
			*text.to = *text.from
		}
	}
	for _, t := range m.ToolCalls {
		if t.Type != "function" || t.ID == "" || t.Function == nil {
			return a, fmt.Errorf("a call without type, id or function: %+v", t)
		}
		text, err := call(t.Function.Name, t.Function.Arguments)
		if err != nil {
			return a, err
		}
		a.Calls = append(a.Calls, text)
	}
	if c.Usage != nil {
		a.Prompt, a.Completion = *c.Usage.Prompt, *c.Usage.Completion
	}
	a.End, err = endOf(c.Choices[0].FinishReason,
		map[string]string{"stop": "stop", "tool_calls": "calls", "length": "limit", "content_filter": "filter"})
	return a, err
}

func readMessages(raw []byte, strict bool) (a Answer, err error) {
	var m messagesAnswer
	if err := decode(raw, strict, &m); err != nil {
		return a, err
	}
	if m.Type != "message" || m.Role != "assistant" || m.Usage == nil || strict && (m.ID == "" || m.Model == nil) {
		return a, errors.New("a required member is missing")
	}
	for _, b := range m.Content {
		switch {
		case b.Type == "text" && b.Text != nil && *b.Text != "":
			a.Text += *b.Text
		case b.Type == "thinking" && b.Thinking != nil && b.Signature != nil:
			a.Thought += *b.Thinking
		case b.Type == "redacted_thinking" && b.Data != nil:
		case b.Type == "tool_use" && b.ID != nil && b.Name != nil:
			text, err := call(*b.Name, string(b.Input))
			if err != nil {
				return a, err
			}
			a.Calls = append(a.Calls, text)
		default:
			return a, fmt.Errorf("an incomplete block of type %q", b.Type)
		}
	}
	a.Prompt, a.Completion = *m.Usage.Input, *m.Usage.Output
	a.End, err = endOf(m.StopReason,
		map[string]string{"end_turn": "stop", "stop_sequence": "stop", "tool_use": "calls", "max_tokens": "limit", "refusal": "filter"})
	if (m.StopReason == "stop_sequence") != (m.StopSequence != nil) {
		return a, fmt.Errorf("the stop_reason %s has the stop_sequence %v", m.StopReason, m.StopSequence)
	}
	if m.StopSequence != nil {
		a.Stop = *m.StopSequence
	}
	return a, err
}

func readResponses(raw []byte, strict bool) (a Answer, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return a, err
	}
	for _, name := range everyMember {
		if _, ok := all[name]; strict && !ok {
			return a, fmt.Errorf("the response has no member %s", name)
		}
	}
	var r struct {
		Status     string
		Incomplete *struct{ Reason string } `json:"incomplete_details"`
		Output     []struct {
			Type, ID, Status, Role, Name, Arguments string
			CallID                                  string `json:"call_id"`
			Content, Summary                        []struct{ Type, Text, Refusal string }
		}
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return a, err
	}
	for _, item := range r.Output {
		if strict && item.ID == "" {
			return a, fmt.Errorf("an item of type %s without id", item.Type)
		}
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				a.Text, a.Refusal = a.Text+part.Text, a.Refusal+part.Refusal
			}
		case "reasoning":
			for _, part := range item.Summary {
				a.Thought += part.Text
			}
		case "function_call":
			text, err := call(item.Name, item.Arguments)
			if err != nil || item.CallID == "" {
				return a, fmt.Errorf("the call %+v: %w", item, err)
			}
			a.Calls = append(a.Calls, text)
		default:
			return a, fmt.Errorf("unknown item %s", item.Type)
		}
	}
	a.Prompt, a.Completion = r.Usage.Input, r.Usage.Output
	word := r.Status
	if r.Incomplete != nil {
		word += " " + r.Incomplete.Reason
	}
	a.End, err = endOf(word, map[string]string{"completed": "stop", "incomplete max_output_tokens": "limit",
		"incomplete content_filter": "filter", "incomplete": "limit"})
	if a.End == "stop" && a.Calls != nil {
		a.End = "calls"
	}
	return a, err
}

func readGemini(raw []byte, strict bool) (a Answer, err error) {
	var g geminiAnswer
	if err := decode(raw, strict, &g); err != nil {
		return a, err
	}
	if err := a.addGemini(&g); err != nil {
		return a, err
	}
	if a.End == "" || strict && (g.ModelVersion == "" || g.ResponseID == "") {
		return a, errors.New("a required member is missing")
	}
	return a, nil
}

// addGemini adds an object of a stream.
func (a *Answer) addGemini(g *geminiAnswer) (err error) {
	if g.Error != nil {
		a.Error = g.Error.Message
		return nil
	}
	for _, c := range g.Candidates {
		if c.Index != 0 || c.Content.Parts != nil && c.Content.Role != "model" {
			return errors.New("another candidate or role")
		}
		for _, p := range c.Content.Parts {
			switch {
			case p.FunctionCall != nil:
				text, err := call(p.FunctionCall.Name, string(p.FunctionCall.Args))
				if err != nil {
					return err
				}
				a.Calls = append(a.Calls, text)
			case p.Text == nil:
				return errors.New("an empty part")
			case p.Thought:
				a.Thought += *p.Text
			default:
				a.Text += *p.Text
			}
		}
		if c.FinishReason != "" {
			a.End, err = endOf(c.FinishReason, map[string]string{"STOP": "stop", "MAX_TOKENS": "limit", "SAFETY": "filter"})
		}
	}
	if a.End == "stop" && a.Calls != nil {
		a.End = "calls"
	}
	if u := g.UsageMetadata; u != nil {
		a.Prompt, a.Completion = u.PromptTokenCount, u.CandidatesTokenCount+u.ThoughtsTokenCount
	}
	return err
}

// ReadStream reads a stream of a form, also one that ends in an error. If strict, it returns an error
// unless the events are well formed and in order.
func ReadStream(form string, stream []byte, strict bool) (a Answer, err error) {
	if strict {
		switch form {
		case "messages":
			err = CheckMessages(stream)
		case "responses":
			_, err = CheckResponses(stream)
		case "chat":
			err = CheckChat(stream)
		}
		if err != nil {
			return a, err
		}
	}
	if form == "gemini" {
		err = EachEvent(stream, func(_ string, data []byte) error {
			var g geminiAnswer
			if err := decode(data, strict && !bytes.Contains(data, []byte(`"error"`)), &g); err != nil {
				return err
			}
			return a.addGemini(&g)
		})
		return a, err
	}
	err = EachEvent(stream, func(_ string, data []byte) error {
		var e struct {
			Error    *struct{ Message string }
			Response struct {
				Error *struct{ Message string }
			}
		}
		if json.Unmarshal(data, &e) == nil && (e.Error != nil || e.Response.Error != nil) {
			a.Error = "an error event"
		}
		return nil
	})
	if err != nil || a.Error != "" {
		return a, err
	}
	whole, err := WholeOf(form, stream)
	if err != nil {
		return a, err
	}
	return ReadAnswer(form, whole, false)
}

// WholeOf returns the whole answer for a complete stream.
func WholeOf(form string, stream []byte) ([]byte, error) {
	var out map[string]any
	err := EachEvent(stream, func(_ string, data []byte) error {
		if string(data) == "[DONE]" {
			return nil
		}
		var e map[string]any
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		switch form {
		case "messages":
			out = addMessages(out, e)
		case "responses":
			if r, ok := e["response"].(map[string]any); ok {
				out = r
			}
		case "gemini":
			out = addGeminiParts(out, e)
		default:
			out = addChunk(out, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// object and list return value as an object or a list, or nil if it has another type.
func object(value any) map[string]any { m, _ := value.(map[string]any); return m }
func list(value any) []any            { l, _ := value.([]any); return l }

// join adds a delta to an object: it appends texts, except id, type and role, and replaces other members.
func join(to, delta map[string]any) {
	for name, value := range delta {
		text, isText := value.(string)
		before, had := to[name].(string)
		if isText && had && name != "id" && name != "type" && name != "role" {
			value = before + text
		}
		if value != nil {
			to[name] = value
		}
	}
}

func addChunk(out, chunk map[string]any) map[string]any {
	if out == nil {
		out = map[string]any{"choices": []any{map[string]any{"message": map[string]any{}}}}
	}
	if usage := chunk["usage"]; usage != nil {
		out["usage"] = usage
	}
	choice := object(list(out["choices"])[0])
	message := object(choice["message"])
	for _, c := range list(chunk["choices"]) {
		if reason := object(c)["finish_reason"]; reason != nil {
			choice["finish_reason"] = reason
		}
		delta := object(object(c)["delta"])
		calls := list(delta["tool_calls"])
		delete(delta, "tool_calls")
		details := append(list(message["reasoning_details"]), list(delta["reasoning_details"])...)
		join(message, delta)
		if len(details) > 0 {
			message["reasoning_details"] = details
		}
		for _, d := range calls {
			all := list(message["tool_calls"])
			i := int(object(d)["index"].(float64))
			if i == len(all) {
				message["tool_calls"] = append(all, d)
				continue
			}
			join(object(object(all[i])["function"]), object(object(d)["function"]))
		}
	}
	return out
}

func addMessages(out, e map[string]any) map[string]any {
	if start := object(e["message"]); start != nil {
		return start
	}
	content := list(out["content"])
	last := func() map[string]any { return object(content[len(content)-1]) }
	switch e["type"] {
	case "content_block_start":
		out["content"] = append(content, e["content_block"])
	case "content_block_delta":
		delta := object(e["delta"])
		delete(delta, "type")
		join(last(), delta)
	case "content_block_stop":
		if text, ok := last()["partial_json"].(string); ok {
			delete(last(), "partial_json")
			last()["input"] = json.RawMessage(text)
		}
	case "message_delta":
		join(out, object(e["delta"]))
		join(object(out["usage"]), object(e["usage"]))
	}
	return out
}

func addGeminiParts(out, e map[string]any) map[string]any {
	if out == nil {
		return e
	}
	for _, c := range list(e["candidates"]) {
		first := object(list(out["candidates"])[0])
		parts := append(list(object(first["content"])["parts"]), list(object(object(c)["content"])["parts"])...)
		first["content"] = map[string]any{"role": "model", "parts": parts}
		if reason := object(c)["finishReason"]; reason != nil {
			first["finishReason"] = reason
		}
	}
	return out
}

// History is the conversation of a client. The client sends back each answer unchanged.
type History struct {
	form     string
	elements []json.RawMessage
}

// NewHistory returns the history of a client of a form with a question.
func NewHistory(form, question string) *History {
	member := "content"
	text := fmt.Sprintf(`%q`, question)
	if form == "gemini" {
		member, text = "parts", fmt.Sprintf(`[{"text":%q}]`, question)
	}
	return &History{form: form, elements: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"role":"user",%q:%s}`, member, text))}}
}

// Elements returns the messages, items or contents, as an array.
func (h *History) Elements() string {
	raw, _ := json.Marshal(h.elements) // of valid JSON
	return string(raw)
}

// Add adds a whole answer, with a result for each of its calls.
func (h *History) Add(answer []byte, result string) error {
	var a struct {
		Choices    []struct{ Message json.RawMessage }
		Content    json.RawMessage
		Output     []json.RawMessage
		Candidates []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return err
	}
	add := func(format string, args ...any) {
		h.elements = append(h.elements, json.RawMessage(fmt.Sprintf(format, args...)))
	}
	type element struct {
		ID, Type, Name string
		CallID         string                     `json:"call_id"`
		Call           *struct{ ID, Name string } `json:"functionCall"`
	}
	var calls []element
	switch h.form {
	case "messages":
		add(`{"role":"assistant","content":%s}`, a.Content)
		if err := json.Unmarshal(a.Content, &calls); err != nil {
			return err
		}
		for _, c := range calls {
			if c.Type == "tool_use" {
				add(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, c.ID, result)
			}
		}
	case "responses":
		h.elements = append(h.elements, slices.Clone(a.Output)...)
		for _, item := range a.Output {
			var c element
			if err := json.Unmarshal(item, &c); err != nil {
				return err
			}
			if c.Type == "function_call" {
				add(`{"type":"function_call_output","call_id":%q,"output":%q}`, c.CallID, result)
			}
		}
	case "gemini":
		h.elements = append(h.elements, a.Candidates[0].Content)
		var content struct{ Parts []element }
		if err := json.Unmarshal(a.Candidates[0].Content, &content); err != nil {
			return err
		}
		for _, c := range content.Parts {
			if c.Call != nil {
				add(`{"role":"user","parts":[{"functionResponse":{"id":%q,"name":%q,"response":{"result":%q}}}]}`, c.Call.ID, c.Call.Name, result)
			}
		}
	default:
		h.elements = append(h.elements, a.Choices[0].Message)
		var message struct {
			Calls []element `json:"tool_calls"`
		}
		if err := json.Unmarshal(a.Choices[0].Message, &message); err != nil {
			return err
		}
		for _, c := range message.Calls {
			add(`{"role":"tool","tool_call_id":%q,"content":%q}`, c.ID, result)
		}
	}
	return nil
}
