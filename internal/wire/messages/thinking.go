package messages

import (
	"strconv"
	"strings"

	"tollgate/internal/wire"
)

// Thinking budgets in tokens, for models without effort.
const (
	lowBudget    = 4 << 10
	mediumBudget = 8 << 10
	highBudget   = 16 << 10
	minBudget    = 1 << 10 // the form's minimum
)

// thinkingMode is the thinking of a request in the messages form, and its consequences: a model
// cannot be forced to call a tool while it thinks, and newer models then reject sampling fields and
// a started answer.
type thinkingMode struct {
	field    []byte // the field `thinking`, or nil
	effort   string
	on       bool // the model thinks
	sampling bool // the model accepts sampling fields
	prefill  bool // the model accepts a started answer
}

// thinking translates the effort. A model without reasoning gets only the effort, if its generation supports
// it, since the effort affects the answer too. inLoop is set if the history ends in results of tools: models
// with budgets then need their earlier thinking, which other forms lack. If a tool is forced, thinking is
// disabled if possible.
func (e *encoder) thinking(inLoop, forced bool) (thinkingMode, error) {
	t := e.target
	effort, err := e.EffortFor(t)
	if err != nil {
		return thinkingMode{}, err
	}
	var budget int64
	switch effort {
	case "minimal", "low":
		effort, budget = "low", lowBudget
	case "medium":
		budget = mediumBudget
	case "high", "xhigh", "max":
		budget = highBudget
	}
	g := generationOf(t.Model)
	shown := g.hidesThinking() && e.Effort.Show && (effort != "" || e.Client != wire.FormChat) // chat shows reasoning by default
	out := thinkingMode{sampling: g.number < 407, prefill: g.number < 406}
	switch {
	case !t.Reasoning && (effort == "none" || g.number > 0 && g.number < 406): // neither thinking nor effort
		out.on = g.always
	case !t.Reasoning:
		out.on, out.effort = g.always, effort
	case effort == "" && shown:
		out.on, out.field = true, []byte(adaptiveShown)
	case effort == "":
		out.on = g.thinksByDefault()
	case effort == "none" && g.always:
		out.on, out.effort = true, "low"
	case effort == "none" && g.number > 0 && g.number < 406: // these models do not think by default
	case effort == "none":
		out.field = []byte(`{"type":"disabled"}`)
	case g.number > 0 && g.number < 406:
		if budget = min(budget, e.limit/2); budget >= minBudget && !inLoop {
			out.on = true
			out.field = append(strconv.AppendInt([]byte(`{"type":"enabled","budget_tokens":`), budget, 10), '}')
		}
	default:
		out.on, out.effort = true, effort
		out.field = []byte(`{"type":"adaptive"}`)
		if shown {
			out.field = []byte(adaptiveShown)
		}
	}
	if forced && !g.always {
		out.disable(g, t.Reasoning)
	}
	if out.on {
		out.sampling, out.prefill = out.sampling && g.number == 0, false
	}
	return out, nil
}

// adaptiveShown asks for thinking with a summary of its text.
const adaptiveShown = `{"type":"adaptive","display":"summarized"}`

// disable disables thinking. The newer models then accept at most high effort.
func (o *thinkingMode) disable(g generation, reasoning bool) {
	enabled := o.field != nil
	o.on, o.field = false, nil
	switch {
	case g.number > 0 && g.number < 406: // these models do not think by default
	case enabled || g.thinksByDefault() && (reasoning || g.number > 0):
		o.field = []byte(`{"type":"disabled"}`)
		if g.number >= 500 && (o.effort == "xhigh" || o.effort == "max") {
			o.effort = "high"
		}
	}
}

// generation is the information in a model's id.
type generation struct {
	number int  // 100 times the major version plus the minor one, or 0 for another family
	always bool // thinking cannot be disabled
}

// thinksByDefault reports whether a reasoning model of the generation thinks by default.
func (g generation) thinksByDefault() bool { return g.number == 0 || g.number >= 500 }

// hidesThinking reports whether models of the generation hide the text of their thinking by default.
func (g generation) hidesThinking() bool { return g.number >= 407 }

// generationOf parses the provider's id of a model: a name, and one or two short numbers, in either
// order (`claude-sonnet-4-5-20250929`, `us.anthropic.claude-3-5-haiku-20241022-v1:0`).
func generationOf(model string) generation {
	const family = "claude"
	model = strings.ToLower(model)
	from := strings.LastIndex(model, family)
	if from < 0 {
		return generation{}
	}
	words := strings.FieldsFunc(model[from+len(family):], func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z')
	})
	number := func(i int) (int, bool) {
		if i >= len(words) || len(words[i]) > 2 {
			return 0, false
		}
		n, err := strconv.Atoi(words[i])
		return n, err == nil
	}
	var g generation
	for i := range words {
		major, ok := number(i)
		if !ok {
			continue
		}
		minor, _ := number(i + 1)
		g.number = 100*major + minor
		break
	}
	for _, word := range words {
		switch word {
		case "opus":
			g.always = g.number >= 505
		case "fable", "mythos":
			g.always = g.number >= 501
		}
	}
	return g
}
