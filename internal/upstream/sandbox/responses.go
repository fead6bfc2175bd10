package sandbox

import (
	"encoding/json"
	"strings"
)

// The events of the responses form.
const (
	responseCreated    = "response.created"
	responseInProgress = "response.in_progress"
	responseCompleted  = "response.completed"
	responseIncomplete = "response.incomplete"
	responseFailed     = "response.failed"
	itemAdded          = "response.output_item.added"
	itemDone           = "response.output_item.done"
	partAdded          = "response.content_part.added"
	partDone           = "response.content_part.done"
	outputTextDelta    = "response.output_text.delta"
	outputTextDone     = "response.output_text.done"
	summaryPartAdded   = "response.reasoning_summary_part.added"
	summaryPartDone    = "response.reasoning_summary_part.done"
	summaryTextDelta   = "response.reasoning_summary_text.delta"
	summaryTextDone    = "response.reasoning_summary_text.done"
	argumentsDelta     = "response.function_call_arguments.delta"
	argumentsDone      = "response.function_call_arguments.done"
)

// responsesScript is an answer in the responses form. It has one choice.
type responsesScript struct {
	answer
	echo  requestEcho
	items []outputItem
}

// outputItem is one item of the output.
type outputItem struct {
	kind     itemKind
	id       string
	tokens   []string // its text
	silent   bool     // its text is not shown
	complete bool     // not cut off by the limit
}

// itemKind is the type of an item.
type itemKind string

const (
	itemReasoning itemKind = "reasoning"
	itemMessage   itemKind = "message"
	itemCall      itemKind = "function_call"
)

// newResponsesScript returns the answer to a request in the responses form.
func newResponsesScript(a answer, r request) responsesScript {
	s := responsesScript{answer: a, echo: newEcho(r)}
	c := a.choices[0]
	if len(c.reasoning) > 0 {
		s.items = append(s.items, outputItem{kind: itemReasoning, id: "rs_" + a.id, tokens: c.reasoning, silent: !r.summary})
	}
	if len(c.content) > 0 {
		s.items = append(s.items, outputItem{kind: itemMessage, id: "msg_" + a.id, tokens: c.content})
	}
	if c.tool != "" {
		s.items = append(s.items, outputItem{kind: itemCall, id: "fc_" + a.id, tokens: c.arguments})
	}
	for i := range s.items {
		s.items[i].complete = c.finish != finishLimit || i < len(s.items)-1
	}
	return s
}

// whole implements script.
func (a responsesScript) whole() []byte {
	if a.inside != nil {
		return encode(a.failedBody())
	}
	return encode(a.finalBody())
}

// steps implements script.
func (a responsesScript) steps() []step {
	out := []step{{responseCreated, paceOpening, 0, ""}, {responseInProgress, paceOpening, 0, ""}}
	for i, item := range a.items {
		out = append(out, item.steps(i)...)
	}
	return append(out, step{a.ending(), paceBegins, 0, ""})
}

// ending returns the last event of a stream without an error.
func (a responsesScript) ending() string {
	if a.incomplete() != nil {
		return responseIncomplete
	}
	return responseCompleted
}

// steps lists the events of the item at an index.
func (t outputItem) steps(i int) []step {
	var before, after []string
	var delta string
	opening := paceBegins
	switch {
	case t.silent:
	case t.kind == itemReasoning:
		before, delta, after = []string{summaryPartAdded}, summaryTextDelta, []string{summaryTextDone, summaryPartDone}
	case t.kind == itemMessage:
		before, delta, after = []string{partAdded}, outputTextDelta, []string{outputTextDone, partDone}
	default:
		delta, after, opening = argumentsDelta, []string{argumentsDone}, paceToken // it names the function
	}
	out := []step{{itemAdded, opening, i, ""}}
	for _, event := range before {
		out = append(out, step{event, paceNone, i, ""})
	}
	for _, token := range t.tokens {
		out = append(out, step{delta, paceToken, i, token})
	}
	for _, event := range append(after, itemDone) {
		out = append(out, step{event, paceNone, i, ""})
	}
	return out
}

// responseEvent is the body of an event, its members in the provider's order.
type responseEvent struct {
	Type         string          `json:"type"`
	Sequence     int             `json:"sequence_number"`
	Response     *responseBody   `json:"response,omitempty"`
	ItemID       string          `json:"item_id,omitempty"`
	OutputIndex  *int            `json:"output_index,omitempty"`
	ContentIndex *int            `json:"content_index,omitempty"`
	SummaryIndex *int            `json:"summary_index,omitempty"`
	Item         any             `json:"item,omitempty"`
	Part         any             `json:"part,omitempty"`
	Delta        *string         `json:"delta,omitempty"`
	Text         *string         `json:"text,omitempty"`
	Name         string          `json:"name,omitempty"`
	Arguments    *string         `json:"arguments,omitempty"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty"`
}

// frame implements script.
func (a responsesScript) frame(s step, n int) []byte {
	e := responseEvent{Type: s.event, Sequence: n}
	switch s.event {
	case "":
		return nil
	case responseCreated, responseInProgress:
		body := a.inProgressBody()
		e.Response = &body
	case responseCompleted, responseIncomplete:
		body := a.finalBody()
		e.Response = &body
	case stepError:
		body := a.failedBody()
		e.Type, e.Response = responseFailed, &body
	default:
		a.describe(&e, s)
	}
	return namedEvent(e.Type, e)
}

// describe fills in an event about an item.
func (a responsesScript) describe(e *responseEvent, s step) {
	item := a.items[s.at]
	text := strings.Join(item.tokens, "")
	zero := 0
	e.OutputIndex = &s.at
	switch s.event {
	case itemAdded:
		e.Item = a.render(item, false)
		return
	case itemDone:
		e.Item = a.render(item, true)
		return
	}
	e.ItemID = item.id
	switch item.kind {
	case itemMessage:
		e.ContentIndex = &zero
	case itemReasoning:
		e.SummaryIndex = &zero
	}
	switch s.event {
	case partAdded:
		e.Part = newTextPart("")
	case partDone:
		e.Part = newTextPart(text)
	case summaryPartAdded:
		e.Part = summaryPart{"summary_text", ""}
	case summaryPartDone:
		e.Part = summaryPart{"summary_text", text}
	case outputTextDelta:
		e.Delta, e.Logprobs = &s.text, json.RawMessage("[]")
	case outputTextDone:
		e.Text, e.Logprobs = &text, json.RawMessage("[]")
	case summaryTextDelta, argumentsDelta:
		e.Delta = &s.text
	case summaryTextDone:
		e.Text = &text
	case argumentsDone:
		e.Name, e.Arguments = a.choices[0].tool, &text
	}
}
