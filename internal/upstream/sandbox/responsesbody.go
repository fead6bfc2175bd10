package sandbox

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// The bodies of the responses form.
type (
	responseBody struct {
		ID                string             `json:"id"`
		Object            string             `json:"object"`
		CreatedAt         int64              `json:"created_at"`
		Status            string             `json:"status"`
		Background        bool               `json:"background"`
		CompletedAt       *int64             `json:"completed_at"`
		Error             *responseError     `json:"error"`
		FrequencyPenalty  json.RawMessage    `json:"frequency_penalty"`
		IncompleteDetails *incompleteDetails `json:"incomplete_details"`
		Instructions      json.RawMessage    `json:"instructions"`
		MaxOutputTokens   json.RawMessage    `json:"max_output_tokens"`
		MaxToolCalls      json.RawMessage    `json:"max_tool_calls"`
		Model             string             `json:"model"`
		Output            []any              `json:"output"`
		ParallelToolCalls json.RawMessage    `json:"parallel_tool_calls"`
		PresencePenalty   json.RawMessage    `json:"presence_penalty"`
		PreviousResponse  json.RawMessage    `json:"previous_response_id"`
		PromptCacheKey    json.RawMessage    `json:"prompt_cache_key"`
		Reasoning         reasoningEcho      `json:"reasoning"`
		SafetyIdentifier  json.RawMessage    `json:"safety_identifier"`
		ServiceTier       string             `json:"service_tier"`
		Store             json.RawMessage    `json:"store"`
		Temperature       json.RawMessage    `json:"temperature"`
		Text              textEcho           `json:"text"`
		ToolChoice        json.RawMessage    `json:"tool_choice"`
		Tools             json.RawMessage    `json:"tools"`
		TopLogprobs       json.RawMessage    `json:"top_logprobs"`
		TopP              json.RawMessage    `json:"top_p"`
		Truncation        json.RawMessage    `json:"truncation"`
		Usage             *responsesUsage    `json:"usage"`
		User              json.RawMessage    `json:"user"`
		Metadata          json.RawMessage    `json:"metadata"`
	}
	reasoningEcho struct {
		Effort  json.RawMessage `json:"effort"`
		Summary json.RawMessage `json:"summary"`
	}
	textEcho struct {
		Format    json.RawMessage `json:"format"`
		Verbosity json.RawMessage `json:"verbosity"`
	}
	responseError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	incompleteDetails struct {
		Reason string `json:"reason"`
	}
	responsesUsage struct {
		InputTokens  int `json:"input_tokens"`
		InputDetails struct {
			CachedTokens     int `json:"cached_tokens"`
			CacheWriteTokens int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputTokens  int `json:"output_tokens"`
		OutputDetails struct {
			ReasoningTokens int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
		TotalTokens int `json:"total_tokens"`
	}
	reasoningItem struct {
		ID        string        `json:"id"`
		Type      itemKind      `json:"type"`
		Encrypted string        `json:"encrypted_content,omitempty"`
		Summary   []summaryPart `json:"summary"`
	}
	summaryPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	messageItem struct {
		ID      string     `json:"id"`
		Type    itemKind   `json:"type"`
		Status  string     `json:"status"`
		Content []textPart `json:"content"`
		Role    string     `json:"role"`
	}
	textPart struct {
		Type        string `json:"type"`
		Annotations []any  `json:"annotations"`
		Logprobs    []any  `json:"logprobs"`
		Text        string `json:"text"`
	}
	callItem struct {
		ID        string   `json:"id"`
		Type      itemKind `json:"type"`
		Status    string   `json:"status"`
		Arguments string   `json:"arguments"`
		CallID    string   `json:"call_id"`
		Name      string   `json:"name"`
	}
)

// newTextPart returns a text part of a message.
func newTextPart(text string) textPart {
	return textPart{"output_text", []any{}, []any{}, text}
}

// requestEcho holds the fields of a request that its response repeats.
type requestEcho struct {
	body      responseBody // with the repeated fields only
	encrypted bool         // the response includes encrypted reasoning
}

// newEcho reads the repeated fields, with the provider's defaults for missing ones.
func newEcho(r request) requestEcho {
	field := func(path, missing string) json.RawMessage {
		if v := r.body.Get(path); !absent(v) {
			return json.RawMessage(v.Raw)
		}
		return json.RawMessage(missing)
	}
	tier := r.serviceTier
	if tier == "" || tier == "auto" {
		tier = "default"
	}
	return requestEcho{encrypted: r.encrypted, body: responseBody{
		Object:            "response",
		FrequencyPenalty:  field("frequency_penalty", "0"),
		Instructions:      field("instructions", "null"),
		MaxOutputTokens:   field("max_output_tokens", "null"),
		MaxToolCalls:      field("max_tool_calls", "null"),
		Output:            []any{},
		ParallelToolCalls: field("parallel_tool_calls", "true"),
		PresencePenalty:   field("presence_penalty", "0"),
		PreviousResponse:  field("previous_response_id", "null"),
		PromptCacheKey:    field("prompt_cache_key", "null"),
		Reasoning:         reasoningEcho{field("reasoning.effort", "null"), field("reasoning.summary", "null")},
		SafetyIdentifier:  field("safety_identifier", "null"),
		ServiceTier:       tier,
		Store:             field("store", "true"),
		Temperature:       field("temperature", "1"),
		Text:              textEcho{field("text.format", `{"type":"text"}`), field("text.verbosity", `"medium"`)},
		ToolChoice:        field("tool_choice", `"auto"`),
		Tools:             echoTools(r.body.Get("tools")),
		TopLogprobs:       field("top_logprobs", "0"),
		TopP:              field("top_p", "1"),
		Truncation:        field("truncation", `"disabled"`),
		User:              field("user", "null"),
		Metadata:          field("metadata", "{}"),
	}}
}

// echoTools returns the tools of a request for its response. Missing fields of a function become
// null or get their default.
func echoTools(tools gjson.Result) json.RawMessage {
	out := []byte{'['}
	for _, tool := range tools.Array() {
		if !tool.IsObject() {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		raw := strings.TrimSpace(tool.Raw)
		out = append(out, raw[:len(raw)-1]...)
		if tool.Get("type").Str == "function" {
			for _, member := range []struct{ name, missing string }{{"description", "null"}, {"parameters", "null"}, {"strict", "true"}} {
				if !tool.Get(member.name).Exists() {
					out = append(out, `,"`+member.name+`":`+member.missing...)
				}
			}
		}
		out = append(out, '}')
	}
	return append(out, ']')
}

// inProgressBody renders the response at the beginning of a stream.
func (a responsesScript) inProgressBody() responseBody {
	b := a.echo.body
	b.ID, b.CreatedAt, b.Model, b.Status = "resp_"+a.id, a.created, a.model, "in_progress"
	return b
}

// failedBody renders the response for the failure error_inside.
func (a responsesScript) failedBody() responseBody {
	b := a.inProgressBody()
	b.Status, b.Error = "failed", &responseError{a.inside.kind, a.inside.message}
	return b
}

// finalBody renders the complete or incomplete response.
func (a responsesScript) finalBody() responseBody {
	b := a.inProgressBody()
	b.Status, b.IncompleteDetails = "completed", a.incomplete()
	if b.IncompleteDetails != nil {
		b.Status = "incomplete"
	} else {
		b.CompletedAt = &a.ended
	}
	for _, item := range a.items {
		b.Output = append(b.Output, a.render(item, true))
	}
	if a.showUsage {
		b.Usage = a.usageBody()
	}
	return b
}

// incomplete returns the reason if the answer is incomplete, else nil.
func (a responsesScript) incomplete() *incompleteDetails {
	switch a.choices[0].finish {
	case finishLimit:
		return &incompleteDetails{"max_output_tokens"}
	case finishFilter:
		return &incompleteDetails{"content_filter"}
	default:
		return nil
	}
}

func (a responsesScript) usageBody() *responsesUsage {
	u := &responsesUsage{
		InputTokens:  a.usage.prompt,
		OutputTokens: a.usage.completion,
		TotalTokens:  a.usage.prompt + a.usage.completion,
	}
	u.InputDetails.CachedTokens = a.usage.cached
	u.OutputDetails.ReasoningTokens = a.usage.reasoning
	return u
}

// render renders an item: complete if done, else as at its beginning.
func (a responsesScript) render(t outputItem, done bool) any {
	text, status := "", "in_progress"
	if done {
		text, status = strings.Join(t.tokens, ""), "completed"
		if !t.complete {
			status = "incomplete"
		}
	}
	switch t.kind {
	case itemReasoning:
		item := reasoningItem{ID: t.id, Type: t.kind, Summary: []summaryPart{}}
		if a.echo.encrypted {
			item.Encrypted = signature(t.tokens)
		}
		if done && !t.silent {
			item.Summary = append(item.Summary, summaryPart{"summary_text", text})
		}
		return item
	case itemMessage:
		item := messageItem{ID: t.id, Type: t.kind, Status: status, Content: []textPart{}, Role: "assistant"}
		if done {
			item.Content = append(item.Content, newTextPart(text))
		}
		return item
	default:
		return callItem{t.id, t.kind, status, text, a.callID(0), a.choices[0].tool}
	}
}
