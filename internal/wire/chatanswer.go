package wire

import (
	"tollgate/internal/wire/rawjson"
)

// ChatAnswer is a chat completion that was not streamed.
type ChatAnswer struct {
	Outcome

	body []byte
	made produced
	tier string

	reports reports
}

// ReadChatAnswer reads a provider's answer; ErrMalformed when it is no JSON
// object. It keeps body.
func ReadChatAnswer(body []byte) (Answer, error) {
	from := rawjson.SkipSpace(body, 0)
	if from >= len(body) || body[from] != '{' || !rawjson.IsValid(body) {
		return nil, ErrMalformed
	}
	a := &ChatAnswer{body: body}
	object := body[from:]
	choices := 0
	failed := ""
	for name, value := range rawjson.Members(object) {
		if rawjson.IsNull(value) {
			continue
		}
		switch string(name) {
		case "usage":
			a.setUsage(value)
		case "x_groq":
			a.setUsage(rawjson.Field(value, "usage"))
		case "service_tier":
			a.tier = rawjson.Unquote(value)
		case "web_search", "citations", "search_results":
			if len(value) > 2 { // results of a hosted search that one vendor shows here
				a.made.searched()
			}
		case "output_sensitive":
			a.Filtered = a.Filtered || string(value) == "true"
		case "choices":
			for _, choice := range rawjson.Elements(value) {
				choices++
				if reason := a.readChoice(choice); reason != "" {
					failed = reason
				}
			}
		}
	}
	a.Content, a.Reasoning = a.made.content, a.made.reasoning
	switch {
	case isError(object, choices > 0):
		a.Err = &ProviderError{Body: body}
	case failed != "" && !a.Content: // what there is of an answer is passed on
		a.Err = &ProviderError{Reason: failed}
	}
	return a, nil
}

// readChoice reads one choice and returns its finish_reason when that means
// that the provider failed.
func (a *ChatAnswer) readChoice(choice []byte) (failed string) {
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "message", "delta":
			a.made.note(value)
		case "usage":
			a.setUsage(value)
		case "finish_reason":
			switch reason := rawjson.Unquote(value); kindOfFinish(reason) {
			case finishLimit:
				a.Limited = true
			case finishFiltered:
				a.Filtered = true
			case finishFailed:
				failed = reason
			}
		}
	}
	return failed
}

func (a *ChatAnswer) setUsage(raw []byte) {
	a.reports.take(readUsage(raw), true)
}

// Usage returns what the provider reported, with the tier and the hosted tools
// that the answer shows; false when it did not count both prompt and completion.
func (a *ChatAnswer) Usage() (Usage, bool) {
	return a.reports.with(a.tier, a.made.tools.ToolCalls), a.reports.known()
}

// Text returns what was produced (text, reasoning, tool calls), as far as it
// is kept.
func (a *ChatAnswer) Text() []byte { return a.made.text }

// Completion returns our own count of the tokens produced.
func (a *ChatAnswer) Completion(c *Counter) int64 { return c.Count(a.made.text, a.made.bytes) }

// pieces returns the answer's bytes with the model that the client asked for, in
// pieces to be written one after the other, so that a long answer is not
// copied.
func (a *ChatAnswer) pieces(model string) [3][]byte {
	return rawjson.Around(a.body, "model", rawjson.Quote(model))
}
