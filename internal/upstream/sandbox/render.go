package sandbox

import (
	"encoding/json"
	"strings"
)

// The bodies of the chat form, as far as the sandbox fills them.
type (
	completion struct {
		ID          string        `json:"id"`
		Object      string        `json:"object"`
		Created     int64         `json:"created"`
		Model       string        `json:"model"`
		Choices     []finalChoice `json:"choices"`
		Usage       *usageBody    `json:"usage,omitempty"`
		ServiceTier string        `json:"service_tier,omitempty"`
		Fingerprint string        `json:"system_fingerprint"`
	}
	finalChoice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		Logprobs     any     `json:"logprobs"`
		FinishReason string  `json:"finish_reason"`
	}
	message struct {
		Role             string     `json:"role"`
		Content          *string    `json:"content"`
		Refusal          *string    `json:"refusal"`
		ReasoningContent string     `json:"reasoning_content,omitempty"`
		ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	}
	chunk struct {
		ID          string        `json:"id"`
		Object      string        `json:"object"`
		Created     int64         `json:"created"`
		Model       string        `json:"model"`
		Choices     []chunkChoice `json:"choices"`
		Usage       *usageBody    `json:"usage,omitempty"`
		ServiceTier string        `json:"service_tier,omitempty"`
		Fingerprint string        `json:"system_fingerprint"`
	}
	chunkChoice struct {
		Index        int     `json:"index"`
		Delta        delta   `json:"delta"`
		Logprobs     any     `json:"logprobs"`
		FinishReason *string `json:"finish_reason"`
	}
	delta struct {
		Role             string     `json:"role,omitempty"`
		Content          *string    `json:"content,omitempty"`
		ReasoningContent string     `json:"reasoning_content,omitempty"`
		ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		Index    *int     `json:"index,omitempty"` // in streams
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	usageBody struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
		PromptDetails    struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			ReasoningTokens int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
)

// fingerprint names the sandbox in `system_fingerprint`.
const fingerprint = "fp_sandbox"

// whole renders the answer of a plain call.
func (a answer) whole() []byte {
	if a.inside != nil {
		return a.inside.body()
	}
	c := completion{
		ID: a.id, Object: "chat.completion", Created: a.created, Model: a.model,
		Usage: a.usageBody(), ServiceTier: a.serviceTier, Fingerprint: fingerprint,
	}
	for i, from := range a.choices {
		m := message{Role: "assistant", ReasoningContent: strings.Join(from.reasoning, "")}
		if from.tool != "" {
			m.ToolCalls = []toolCall{{ID: a.callID(i), Type: "function",
				Function: function{Name: from.tool, Arguments: strings.Join(from.arguments, "")}}}
		} else {
			content := strings.Join(from.content, "")
			m.Content = &content
		}
		c.Choices = append(c.Choices, finalChoice{Index: i, Message: m, FinishReason: from.finish})
	}
	out, _ := json.Marshal(c) // strings and numbers only: cannot fail
	return out
}

// usageBody renders the usage, nil when the answer shows none.
func (a answer) usageBody() *usageBody {
	if !a.showUsage {
		return nil
	}
	u := &usageBody{
		PromptTokens:     a.usage.prompt,
		CompletionTokens: a.usage.completion,
		TotalTokens:      a.usage.prompt + a.usage.completion,
	}
	u.PromptDetails.CachedTokens = a.usage.cached
	u.CompletionDetails.ReasoningTokens = a.usage.reasoning
	return u
}

// callID names the tool call of a choice.
func (a answer) callID(choice int) string {
	return "call_" + strings.TrimPrefix(a.id, "chatcmpl-") + string(rune('a'+choice%26))
}

// step is one frame of a stream.
type step struct {
	choice int
	kind   stepKind
	text   string
}

// stepKind says what a frame carries.
type stepKind int

const (
	stepRole stepKind = iota
	stepReasoning
	stepContent
	stepCall // the head of a tool call: its id and name
	stepArguments
	stepFinish
	stepUsage
	stepDone
	stepError
)

// token reports whether the frame carries something that the model produced.
func (s step) token() bool {
	switch s.kind {
	case stepReasoning, stepContent, stepCall, stepArguments:
		return true
	}
	return false
}

// steps lists the frames of the streamed answer, choices in turn.
func (a answer) steps(includeUsage bool) []step {
	lanes := make([][]step, len(a.choices))
	longest := 0
	for i, c := range a.choices {
		lane := []step{{i, stepRole, ""}}
		for _, t := range c.reasoning {
			lane = append(lane, step{i, stepReasoning, t})
		}
		for _, t := range c.content {
			lane = append(lane, step{i, stepContent, t})
		}
		if c.tool != "" {
			lane = append(lane, step{i, stepCall, c.tool})
			for _, t := range c.arguments {
				lane = append(lane, step{i, stepArguments, t})
			}
		}
		lanes[i] = append(lane, step{i, stepFinish, c.finish})
		longest = max(longest, len(lanes[i]))
	}
	var out []step
	for at := range longest {
		for _, lane := range lanes {
			if at < len(lane) {
				out = append(out, lane[at])
			}
		}
	}
	if includeUsage && a.showUsage {
		out = append(out, step{kind: stepUsage})
	}
	return append(out, step{kind: stepDone})
}

// frame renders one frame of the stream.
func (a answer) frame(s step) []byte {
	switch s.kind {
	case stepDone:
		return []byte("data: [DONE]\n\n")
	case stepError:
		return event(a.inside.body())
	}
	c := chunk{
		ID: a.id, Object: "chat.completion.chunk", Created: a.created, Model: a.model,
		ServiceTier: a.serviceTier, Fingerprint: fingerprint, Choices: []chunkChoice{},
	}
	if s.kind == stepUsage {
		c.Usage = a.usageBody()
	} else {
		c.Choices = append(c.Choices, a.part(s))
	}
	out, _ := json.Marshal(c) // strings and numbers only: cannot fail
	return event(out)
}

// part renders the choice of a frame.
func (a answer) part(s step) chunkChoice {
	c := chunkChoice{Index: s.choice}
	first := 0
	switch s.kind {
	case stepRole:
		empty := ""
		c.Delta = delta{Role: "assistant", Content: &empty}
	case stepReasoning:
		c.Delta.ReasoningContent = s.text
	case stepContent:
		c.Delta.Content = &s.text
	case stepCall:
		c.Delta.ToolCalls = []toolCall{{Index: &first, ID: a.callID(s.choice), Type: "function", Function: function{Name: s.text}}}
	case stepArguments:
		c.Delta.ToolCalls = []toolCall{{Index: &first, Function: function{Arguments: s.text}}}
	case stepFinish:
		c.FinishReason = &s.text
	}
	return c
}

// event wraps data as a server-sent event.
func event(data []byte) []byte {
	out := make([]byte, 0, len(data)+8)
	out = append(out, "data: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}
