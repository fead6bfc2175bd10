package completions

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// answer is a chat completion that was not streamed.
type answer struct {
	wire.Judgement

	body []byte
	made form.Output
	tier string

	reports form.Reports
}

// ReadAnswer reads a provider's answer; ErrMalformed when it is no JSON
// object. It keeps body.
func ReadAnswer(body []byte) (wire.Answer, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	a := &answer{body: body}
	choices := 0
	failed := ""
	for name, value := range rawjson.Members(object) {
		if rawjson.Present(value) == nil {
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
				a.made.Searched()
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
	a.Content, a.Reasoning = a.made.Content, a.made.Reasoning
	switch {
	case form.IsError(object, choices > 0):
		a.Err = &wire.ProviderError{Body: body}
	case failed != "" && !a.Content: // what there is of an answer is passed on
		a.Err = &wire.ProviderError{Reason: failed}
	}
	return a, nil
}

// readChoice reads one choice and returns its finish_reason when that means
// that the provider failed.
func (a *answer) readChoice(choice []byte) (failed string) {
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "message", "delta":
			a.made.Note(value)
		case "usage":
			a.setUsage(value)
		case "finish_reason":
			switch reason := rawjson.Unquote(value); form.KindOfFinish(reason) {
			case form.FinishLimit:
				a.Limited = true
			case form.FinishFiltered:
				a.Filtered = true
			case form.FinishFailed:
				failed = reason
			}
		}
	}
	return failed
}

func (a *answer) setUsage(raw []byte) {
	a.reports.Take(form.ReadUsage(raw), true)
}

// Usage returns what the provider reported, with the tier and the hosted tools
// that the answer shows; false when it did not count both prompt and completion.
func (a *answer) Usage() (wire.Usage, bool) {
	return a.reports.With(a.tier, a.made.Tools.ToolCalls), a.reports.Known()
}

// Text returns what was produced (text, reasoning, tool calls), as far as it
// is kept.
func (a *answer) Text() []byte { return a.made.Text }

// Completion returns our own count of the tokens produced.
func (a *answer) Completion(c *wire.Counter) int64 { return c.Count(a.made.Text, a.made.Bytes) }

// pieces returns the answer's bytes with the model that the client asked for, in
// pieces to be written one after the other, so that a long answer is not
// copied.
func (a *answer) pieces(model string) [3][]byte {
	return form.Around(a.body, "model", rawjson.Quote(model))
}
