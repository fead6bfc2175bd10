package sandbox

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"tollgate/internal/wire"
)

// The bodies of the messages form, with the fields of the sandbox.
type (
	messageBody struct {
		ID           string         `json:"id"`
		Type         string         `json:"type"`
		Role         string         `json:"role"`
		Model        string         `json:"model"`
		Content      []any          `json:"content"`
		StopReason   *string        `json:"stop_reason"`
		StopSequence *string        `json:"stop_sequence"`
		StopDetails  *stopDetails   `json:"stop_details"`
		Usage        *messagesUsage `json:"usage,omitempty"`
		Container    any            `json:"container"`
	}
	messageEnd struct {
		StopReason   *string      `json:"stop_reason"`
		StopSequence *string      `json:"stop_sequence"`
		StopDetails  *stopDetails `json:"stop_details"`
		Container    any          `json:"container"`
	}
	stopDetails struct {
		Type        string  `json:"type"`
		Category    *string `json:"category"`
		Explanation *string `json:"explanation"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	toolUseBlock struct {
		Type   string          `json:"type"`
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		Caller caller          `json:"caller"`
	}
	caller struct {
		Type string `json:"type"`
	}
	blockAddition struct {
		Type        string  `json:"type"`
		Thinking    *string `json:"thinking,omitempty"`
		Signature   string  `json:"signature,omitempty"`
		Text        *string `json:"text,omitempty"`
		PartialJSON *string `json:"partial_json,omitempty"`
	}
	messagesUsage struct {
		InputTokens         int              `json:"input_tokens"`
		CacheCreationTokens int              `json:"cache_creation_input_tokens"`
		CacheReadTokens     int              `json:"cache_read_input_tokens"`
		CacheCreation       *cacheCreation   `json:"cache_creation,omitempty"` // not at a stream's end
		OutputTokens        int              `json:"output_tokens"`
		OutputDetails       *thinkingDetails `json:"output_tokens_details,omitempty"` // once it is known
		ServiceTier         string           `json:"service_tier,omitempty"`          // not at a stream's end
	}
	cacheCreation struct {
		FiveMinutes int `json:"ephemeral_5m_input_tokens"`
		OneHour     int `json:"ephemeral_1h_input_tokens"`
	}
	thinkingDetails struct {
		ThinkingTokens int `json:"thinking_tokens"`
	}
)

// The events of the messages form.
const (
	messageStart      = "message_start"
	messagePing       = "ping"
	blockStart        = "content_block_start"
	blockDelta        = "content_block_delta"
	blockStop         = "content_block_stop"
	messageDelta      = "message_delta"
	messageStop       = "message_stop"
	thinkingStart     = blockStart + " thinking"
	thinkingDelta     = blockDelta + " thinking"
	thinkingSignature = blockDelta + " signature"
	textStart         = blockStart + " text"
	textDelta         = blockDelta + " text"
	toolStart         = blockStart + " tool_use"
	toolDelta         = blockDelta + " input_json"
)

// messagesScript is an answer in the messages form. It has one choice.
type messagesScript struct {
	answer
	hideThinking bool
}

// whole implements script.
func (a messagesScript) whole() []byte {
	if a.inside != nil {
		return a.inside.errorBody(wire.FormMessages, a.id)
	}
	c := a.choices[0]
	m := a.message()
	if len(c.reasoning) > 0 {
		m.Content = append(m.Content, thinkingBlock{"thinking", a.thinking(), signature(c.reasoning)})
	}
	if len(c.content) > 0 {
		m.Content = append(m.Content, textBlock{"text", strings.Join(c.content, "")})
	}
	if c.tool != "" {
		input := json.RawMessage(strings.Join(c.arguments, ""))
		if !json.Valid(input) {
			input = json.RawMessage("{}") // cut off by the limit
		}
		m.Content = append(m.Content, a.toolUse(input))
	}
	end := a.end()
	m.StopReason, m.StopSequence, m.StopDetails = end.StopReason, end.StopSequence, end.StopDetails
	if m.Usage != nil {
		m.Usage.OutputTokens = a.usage.completion
		m.Usage.OutputDetails = &thinkingDetails{a.usage.reasoning}
	}
	return encode(m)
}

// message renders the message as a stream begins it.
func (a messagesScript) message() messageBody {
	m := messageBody{ID: "msg_" + a.id, Type: "message", Role: "assistant", Model: a.model, Content: []any{}}
	if a.showUsage {
		u := a.promptUsage()
		u.OutputTokens = min(1, a.usage.completion) // the head of an answer counts its first token
		u.CacheCreation = &cacheCreation{a.usage.written5m, a.usage.written1h}
		u.ServiceTier = "standard"
		m.Usage = &u
	}
	return m
}

// promptUsage renders the usage of the prompt. Input tokens do not include tokens
// written to or read from the cache.
func (a messagesScript) promptUsage() messagesUsage {
	written := a.usage.written5m + a.usage.written1h
	return messagesUsage{
		InputTokens:         a.usage.prompt - a.usage.cached - written,
		CacheCreationTokens: written,
		CacheReadTokens:     a.usage.cached,
	}
}

// end renders the stop reason.
func (a messagesScript) end() messageEnd {
	c := a.choices[0]
	var reason string
	var e messageEnd
	switch c.finish {
	case finishStop:
		reason = "end_turn"
		if c.stopped != "" {
			reason, e.StopSequence = "stop_sequence", &c.stopped
		}
	case finishLimit:
		reason = "max_tokens"
	case finishCall:
		reason = "tool_use"
	case finishFilter:
		reason, e.StopDetails = "refusal", &stopDetails{Type: "refusal"}
	}
	e.StopReason = &reason
	return e
}

// thinking is the text of the thinking as the client sees it.
func (a messagesScript) thinking() string {
	if a.hideThinking {
		return ""
	}
	return strings.Join(a.choices[0].reasoning, "")
}

// toolUse renders the block of the tool call.
func (a messagesScript) toolUse(input json.RawMessage) toolUseBlock {
	return toolUseBlock{"tool_use", "toolu_" + a.id, a.choices[0].tool, input, caller{"direct"}}
}

// signature authenticates thinking returned by a client.
func signature(thinking []string) string {
	sum := sha256.Sum256([]byte("sandbox " + strings.Join(thinking, "")))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// steps implements script.
func (a messagesScript) steps() []step {
	out := []step{{messageStart, paceOpening, 0, ""}, {messagePing, paceOpening, 0, ""}}
	c := a.choices[0]
	block := 0
	if len(c.reasoning) > 0 {
		out = append(out, step{thinkingStart, paceBegins, block, ""})
		for _, t := range c.reasoning {
			s := step{thinkingDelta, paceToken, block, t}
			if a.hideThinking {
				s.event = ""
			}
			out = append(out, s)
		}
		out = append(out, step{thinkingSignature, paceNone, block, ""}, step{blockStop, paceNone, block, ""})
		block++
	}
	if len(c.content) > 0 {
		out = append(out, step{textStart, paceBegins, block, ""})
		for _, t := range c.content {
			out = append(out, step{textDelta, paceToken, block, t})
		}
		out = append(out, step{blockStop, paceNone, block, ""})
		block++
	}
	if c.tool != "" {
		out = append(out, step{toolStart, paceToken, block, ""}, step{toolDelta, paceNone, block, ""})
		for _, t := range c.arguments {
			out = append(out, step{toolDelta, paceToken, block, t})
		}
		out = append(out, step{blockStop, paceNone, block, ""})
	}
	return append(out, step{messageDelta, paceBegins, 0, ""}, step{messageStop, paceNone, 0, ""})
}

// frame implements script.
func (a messagesScript) frame(s step, _ int) []byte {
	if s.event == "" {
		return nil
	}
	name, _, _ := strings.Cut(s.event, " ")
	switch s.event {
	case stepError:
		return namedEvent(name, json.RawMessage(a.inside.errorBody(wire.FormMessages, a.id)))
	case messageStart:
		return namedEvent(name, struct {
			Type    string      `json:"type"`
			Message messageBody `json:"message"`
		}{name, a.message()})
	case messageDelta:
		return namedEvent(name, a.delta())
	case blockStop:
		return namedEvent(name, struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
		}{name, s.at})
	case thinkingStart:
		return a.startEvent(s.at, thinkingBlock{Type: "thinking"})
	case textStart:
		return a.startEvent(s.at, textBlock{Type: "text"})
	case toolStart:
		return a.startEvent(s.at, a.toolUse(json.RawMessage("{}")))
	case thinkingDelta:
		return a.deltaEvent(s.at, blockAddition{Type: "thinking_delta", Thinking: &s.text})
	case thinkingSignature:
		return a.deltaEvent(s.at, blockAddition{Type: "signature_delta", Signature: signature(a.choices[0].reasoning)})
	case textDelta:
		return a.deltaEvent(s.at, blockAddition{Type: "text_delta", Text: &s.text})
	case toolDelta:
		return a.deltaEvent(s.at, blockAddition{Type: "input_json_delta", PartialJSON: &s.text})
	default: // ping and message_stop
		return namedEvent(name, map[string]string{"type": name})
	}
}

// startEvent renders the event at the start of a block.
func (a messagesScript) startEvent(index int, block any) []byte {
	return namedEvent(blockStart, struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}{blockStart, index, block})
}

// deltaEvent renders an event with more content of a block.
func (a messagesScript) deltaEvent(index int, delta blockAddition) []byte {
	return namedEvent(blockDelta, struct {
		Type  string        `json:"type"`
		Index int           `json:"index"`
		Delta blockAddition `json:"delta"`
	}{blockDelta, index, delta})
}

// delta renders the last event of the message: the stop reason and the usage.
func (a messagesScript) delta() any {
	body := struct {
		Type  string         `json:"type"`
		Delta messageEnd     `json:"delta"`
		Usage *messagesUsage `json:"usage,omitempty"`
	}{Type: messageDelta, Delta: a.end()}
	if a.showUsage {
		u := a.promptUsage()
		u.OutputTokens, u.OutputDetails = a.usage.completion, &thinkingDetails{a.usage.reasoning}
		body.Usage = &u
	}
	return body
}
