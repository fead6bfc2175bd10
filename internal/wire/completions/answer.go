package completions

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// answer is a chat completion that was not streamed.
type answer struct {
	form.Answer
	tier string

	reports form.Reports
}

// ReadAnswer reads a provider's answer and retains body. It returns ErrMalformed if body is not a
// JSON object.
func ReadAnswer(body []byte) (wire.Answer, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	a := new(answer)
	choices := 0
	failed := ""
	for name, value := range rawjson.Members(object) {
		if rawjson.NonNull(value) == nil {
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
			if len(value) > 2 { // one vendor's results of a hosted search
				a.Output.AddSearch()
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
	a.Content, a.Reasoning = a.Output.Content, a.Output.Reasoning
	switch {
	case form.IsError(object, choices > 0):
		a.Err = &wire.ProviderError{Body: body}
	case failed != "":
		a.Err = &wire.ProviderError{Reason: failed}
	}
	return a, nil
}

// readChoice reads one choice. It returns the finish_reason if it means a failure of the provider.
func (a *answer) readChoice(choice []byte) (failed string) {
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "message", "delta":
			a.Output.AddMessage(value)
		case "usage":
			a.setUsage(value)
		case "finish_reason":
			reason := rawjson.Unquote(value)
			kind := form.FinishOf(reason)
			a.Finish(kind)
			if kind == form.FinishFailed {
				failed = reason
			}
		}
	}
	return failed
}

func (a *answer) setUsage(raw []byte) {
	a.reports.Add(form.ReadUsage(raw), true)
}

func (a *answer) Usage() (wire.Usage, bool) {
	return a.reports.Complete(a.tier, a.Output.Tools), a.reports.IsFinal()
}
