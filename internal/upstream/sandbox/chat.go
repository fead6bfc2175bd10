package sandbox

import (
	"strings"

	"tollgate/internal/wire"
)

// The bodies of the chat form, with the fields of the sandbox.
type (
	// chatBody is a completion or a chunk of it.
	chatBody[Choice finalChoice | chunkChoice] struct {
		ID          string     `json:"id"`
		Object      string     `json:"object"`
		Created     int64      `json:"created"`
		Model       string     `json:"model"`
		Choices     []Choice   `json:"choices"`
		Usage       *usageBody `json:"usage,omitempty"`
		ServiceTier string     `json:"service_tier,omitempty"`
		Fingerprint string     `json:"system_fingerprint"`
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

// chatScript is an answer in the chat form.
type chatScript struct {
	answer
	includeUsage bool
}

// newChatBody returns a body without choices.
func newChatBody[Choice finalChoice | chunkChoice](a chatScript, object string) chatBody[Choice] {
	return chatBody[Choice]{ID: "chatcmpl-" + a.id, Object: object, Created: a.created, Model: a.model, Choices: []Choice{},
		ServiceTier: a.serviceTier, Fingerprint: fingerprint}
}

// whole implements script.
func (a chatScript) whole() []byte {
	if a.inside != nil {
		return a.inside.errorBody(wire.FormChat, a.id)
	}
	c := newChatBody[finalChoice](a, "chat.completion")
	c.Usage = a.usageBody()
	for i, from := range a.choices {
		m := message{Role: "assistant", ReasoningContent: strings.Join(from.reasoning, "")}
		if from.tool != "" {
			m.ToolCalls = []toolCall{{ID: a.callID(i), Type: "function",
				Function: function{Name: from.tool, Arguments: strings.Join(from.arguments, "")}}}
		} else {
			content := strings.Join(from.content, "")
			m.Content = &content
		}
		c.Choices = append(c.Choices, finalChoice{Index: i, Message: m, FinishReason: string(from.finish)})
	}
	return encode(c)
}

// usageBody renders the usage, nil when the answer shows none.
func (a chatScript) usageBody() *usageBody {
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

// The steps of the chat form.
const (
	chatRole      = "role"
	chatReasoning = "reasoning"
	chatContent   = "content"
	chatCall      = "call" // the head of a tool call: its id and name
	chatArguments = "arguments"
	chatFinish    = "finish"
	chatUsage     = "usage"
	chatDone      = "done"
)

// steps implements script. The tokens of the choices alternate.
func (a chatScript) steps() []step {
	lanes := make([][]step, len(a.choices))
	longest := 0
	for i, c := range a.choices {
		lanes[i] = chatLane(i, c)
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
	if a.includeUsage && a.showUsage {
		out = append(out, step{event: chatUsage})
	}
	return append(out, step{event: chatDone})
}

// chatLane lists the steps of one choice.
func chatLane(i int, c choice) []step {
	lane := []step{{chatRole, paceOpening, i, ""}}
	for _, t := range c.reasoning {
		lane = append(lane, step{chatReasoning, paceToken, i, t})
	}
	for _, t := range c.content {
		lane = append(lane, step{chatContent, paceToken, i, t})
	}
	if c.tool != "" {
		lane = append(lane, step{chatCall, paceToken, i, c.tool})
		for _, t := range c.arguments {
			lane = append(lane, step{chatArguments, paceToken, i, t})
		}
	}
	return append(lane, step{chatFinish, paceBegins, i, string(c.finish)})
}

// frame implements script.
func (a chatScript) frame(s step, _ int) []byte {
	switch s.event {
	case chatDone:
		return []byte("data: [DONE]\n\n")
	case stepError:
		return unnamed(a.inside.errorBody(wire.FormChat, a.id))
	}
	c := newChatBody[chunkChoice](a, "chat.completion.chunk")
	if s.event == chatUsage {
		c.Usage = a.usageBody()
	} else {
		c.Choices = append(c.Choices, a.part(s))
	}
	return unnamed(encode(c))
}

// part renders the choice of a frame.
func (a chatScript) part(s step) chunkChoice {
	c := chunkChoice{Index: s.at}
	first := 0
	switch s.event {
	case chatRole:
		empty := ""
		c.Delta = delta{Role: "assistant", Content: &empty}
	case chatReasoning:
		c.Delta.ReasoningContent = s.text
	case chatContent:
		c.Delta.Content = &s.text
	case chatCall:
		c.Delta.ToolCalls = []toolCall{{Index: &first, ID: a.callID(s.at), Type: "function", Function: function{Name: s.text}}}
	case chatArguments:
		c.Delta.ToolCalls = []toolCall{{Index: &first, Function: function{Arguments: s.text}}}
	case chatFinish:
		c.FinishReason = &s.text
	}
	return c
}

// unnamed wraps data as a server-sent event without a name.
func unnamed(data []byte) []byte {
	out := make([]byte, 0, len(data)+8)
	out = append(out, "data: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}
