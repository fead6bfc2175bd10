package conversation

import "tollgate/internal/wire/rawjson"

// NoResult is the text of a result that is missing.
const NoResult = "(no result)"

// Continue is the user's text where a line requires one and the client sent none.
const Continue = "Continue."

// Repair returns the turns of a history that every line accepts. The results of a turn's calls follow
// it in one turn, in the order of arrival: words between a call and its result follow the result, a
// missing result is NoResult, a second result of a call is added to the first, and a result without
// a call becomes words of the user. Empty texts are left out, with their marks moved to the part
// before, and so are turns without parts. It returns an error for more than MaxTurnCalls calls in a
// turn.
func (r *Request) Repair() ([]Turn, error) {
	h := history{turns: make([]Turn, 0, len(r.Turns)+2)}
	current := r.currentFrom()
	for i := range r.Turns {
		if err := h.add(&r.Turns[i], i >= current); err != nil {
			return nil, err
		}
	}
	h.close()
	return h.turns, nil
}

// currentFrom returns the index after the last turn with words of the user.
func (r *Request) currentFrom() int {
	for i := len(r.Turns) - 1; i >= 0; i-- {
		if r.Turns[i].Role == User {
			for k := range r.Turns[i].Parts {
				if r.Turns[i].Parts[k].Kind != ToolResult {
					return i + 1
				}
			}
		}
	}
	return 0
}

// history collects the turns.
type history struct {
	turns []Turn

	calls   []openCall // of the last turns of the assistant
	results []Part     // of the calls, in the order of arrival
	later   []Turn     // words of others since the calls
}

// openCall is a call, and the index of its result in results, or -1.
type openCall struct {
	*CallPart
	result int
}

func (h *history) add(t *Turn, current bool) error {
	parts := t.Parts
	if t.Role == Assistant {
		if h.hasAnswer() {
			h.close()
		}
		parts = withoutBlanks(parts)
		if len(parts) == 0 {
			return nil
		}
		return h.addAssistant(Turn{Role: Assistant, Parts: parts, Current: current, At: t.At})
	}
	var words []Part
	for i := range parts {
		switch p := parts[i]; {
		case p.Kind != ToolResult:
			words = append(words, p)
		case !h.addResult(p):
			text, others := p.ResultText()
			words = append(append(words, Part{Kind: Text, Text: text, Mark: p.Mark, At: p.At}), others...)
		}
	}
	if words = withoutBlanks(words); len(words) == 0 {
		return nil
	}
	role := t.Role
	if role == Results {
		role = User
	}
	turn := Turn{Role: role, Parts: words, Current: current, At: t.At}
	if len(h.calls) > 0 {
		h.later = append(h.later, turn)
	} else {
		h.turns = append(h.turns, turn)
	}
	return nil
}

// hasAnswer reports whether the calls have a result or words of others after them.
func (h *history) hasAnswer() bool { return len(h.results) > 0 || len(h.later) > 0 }

// addAssistant adds a turn of the assistant. If no result or words have followed the calls before it, it
// joins their turn.
func (h *history) addAssistant(t Turn) error {
	if n := len(h.turns); len(h.calls) > 0 && n > 0 {
		h.turns[n-1].Parts = append(h.turns[n-1].Parts[:len(h.turns[n-1].Parts):len(h.turns[n-1].Parts)], t.Parts...)
	} else {
		h.turns = append(h.turns, t)
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		if p.Call == nil {
			continue
		}
		if len(h.calls) >= MaxTurnCalls {
			return Unsupported(p.At, "`{param}`: one turn may hold %d calls at most.", MaxTurnCalls)
		}
		h.calls = append(h.calls, openCall{p.Call, -1})
	}
	return nil
}

// addResult adds the result of a call. A further result of the call is appended to the first one. addResult
// reports whether the call was found.
func (h *history) addResult(p Part) bool {
	earlier := -1
	for i := range h.calls {
		c := &h.calls[i]
		if p.Result.ID != "" && c.ID != p.Result.ID || p.Result.ID == "" && p.Result.Name != "" && c.Name != p.Result.Name {
			continue
		}
		if c.result >= 0 {
			earlier = c.result
			continue
		}
		c.result = len(h.results)
		p.Call = c.CallPart
		h.results = append(h.results, p)
		return true
	}
	if earlier >= 0 {
		first := *h.results[earlier].Result
		first.Parts = append(first.Parts[:len(first.Parts):len(first.Parts)], p.Result.Parts...)
		h.results[earlier].Result = &first
	}
	return earlier >= 0
}

// close ends the calls. A call without a result gets NoResult. The words after the calls follow the results.
func (h *history) close() {
	for _, c := range h.calls {
		if c.result < 0 {
			text := Part{Kind: Text, Text: []byte(NoResult)}
			result := &ResultPart{ID: c.ID, Parts: []Part{text}, Missing: true}
			h.results = append(h.results, Part{Kind: ToolResult, Call: c.CallPart, Result: result})
		}
	}
	if len(h.results) > 0 {
		h.turns = append(h.turns, Turn{Role: Results, Parts: h.results})
	}
	h.turns = append(h.turns, h.later...)
	h.calls, h.results, h.later = nil, nil, nil
}

// withoutBlanks returns parts without empty texts.
func withoutBlanks(parts []Part) []Part {
	blank := func(p *Part) bool { return p.Media == nil && (p.Kind == Text || p.Kind == Refusal) && IsBlank(p.Text) }
	for i := range parts {
		if !blank(&parts[i]) {
			continue
		}
		out := append([]Part(nil), parts[:i]...)
		for k := i; k < len(parts); k++ {
			switch {
			case !blank(&parts[k]):
				out = append(out, parts[k])
			case len(out) > 0 && parts[k].Mark.Time > out[len(out)-1].Mark.Time:
				out[len(out)-1].Mark = parts[k].Mark
			}
		}
		return out
	}
	return parts
}

// TextOf returns the texts of parts, a line for each.
func TextOf(parts []Part) []byte {
	var text []byte
	for i := range parts {
		if parts[i].Kind != Text {
			continue
		}
		if text != nil {
			text = append(text, `\n`...)
		}
		text = append(text, parts[i].Text...)
	}
	return text
}

// ResultText returns the text of a result, and its other parts.
func (p *Part) ResultText() (text []byte, others []Part) {
	text = TextOf(p.Result.Parts)
	for i := range p.Result.Parts {
		if p.Result.Parts[i].Kind != Text {
			others = append(others, p.Result.Parts[i])
		}
	}
	return text, others
}

// TextPart returns the part for a JSON string.
func TextPart(raw []byte, at string) Part {
	return Part{Kind: Text, Text: rawjson.Contents(raw), At: at}
}
