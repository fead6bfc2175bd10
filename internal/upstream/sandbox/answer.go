package sandbox

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// answer is a whole answer before it is rendered as a body or as a stream.
type answer struct {
	id          string // without a form's prefix
	created     int64  // Unix seconds
	ended       int64  // Unix seconds
	model       string
	serviceTier string
	choices     []choice
	usage       usage
	showUsage   bool
	inside      *problem // an error instead of the rest of the answer
}

// choice is one of the n answers. Its texts are split into tokens.
type choice struct {
	reasoning []string
	content   []string
	tool      string   // name of the called tool, or ""
	arguments []string // of the called tool
	finish    finish
	stopped   string // the stop sequence at the end, or ""
}

// finish is the finish reason of a choice in the chat form.
type finish string

const (
	finishStop   finish = "stop"
	finishLimit  finish = "length"
	finishCall   finish = "tool_calls"
	finishFilter finish = "content_filter"
)

// tokens returns the number of tokens in the choice.
func (c choice) tokens() int { return len(c.reasoning) + len(c.content) + len(c.arguments) }

// callID returns the id of the tool call of a choice.
func (a answer) callID(choice int) string {
	return "call_" + a.id + string(rune('a'+choice%26))
}

// usage holds token counts. cached and written are parts of prompt, and reasoning is a part of
// completion.
type usage struct {
	prompt, cached        int
	written5m, written1h  int // written to the provider's cache, by lifetime
	completion, reasoning int
}

// compose returns the answer to a request. It has no side effects.
func compose(r request, o options) answer {
	a := answer{model: r.model, serviceTier: r.serviceTier, showUsage: o.usage}
	a.usage.prompt, a.usage.cached = r.prompt, r.cached
	a.usage.written5m, a.usage.written1h = r.written5m, r.written1h
	if o.fail == failInside {
		a.inside = insideProblem(r.form)
	}
	for range r.n {
		c := composeChoice(r, o)
		a.choices = append(a.choices, c)
		a.usage.completion += c.tokens()
		a.usage.reasoning += len(c.reasoning)
	}
	return a
}

// composeChoice composes one choice and cuts it at the limit.
func composeChoice(r request, o options) choice {
	c := choice{finish: finishStop}
	switch o.fail {
	case failEmpty:
		return choice{finish: finishStop}
	case failFilter:
		return choice{finish: finishFilter}
	case failThinking:
		return choice{finish: finishLimit, reasoning: pieces(thought(r))}
	}
	if r.reasoning || o.reasoning {
		c.reasoning = pieces(thought(r))
	}
	switch {
	case r.tool != nil:
		c.tool, c.finish = r.tool.name, finishCall
		c.arguments = pieces(string(sample(r.tool.parameters)))
	default:
		text, stopped := untilStop(answerText(r, o), r.stop)
		c.content, c.stopped = pieces(text), stopped
		if o.tokens > 0 && !r.json {
			c.content = stretch(c.content, o.tokens)
		}
	}
	return cut(c, r.limit)
}

// answerText returns the text of the answer.
func answerText(r request, o options) string {
	switch {
	case o.fail == failSentence:
		return "service overloaded, please try again later"
	case r.json && r.schema.Exists():
		return string(sample(r.schema))
	case r.json:
		return string(encode(map[string]string{"answer": quoted(r.ask)}))
	case r.hasToolResult:
		return "The tool answered: " + quoted(r.toolResult)
	case r.ask == "":
		return "This is the sandbox model. Send it a message."
	default:
		return "This is the sandbox model, which needs no network. You said: " + quoted(r.ask)
	}
}

// thought returns the text of the reasoning.
func thought(r request) string {
	return "The user said: " + quoted(r.ask) + " A short answer will do."
}

// maxQuote is the maximum length of a repeated text, in bytes.
const maxQuote = 400

// quoted returns the beginning of a text, cut at a character.
func quoted(s string) string {
	if len(s) <= maxQuote {
		return s
	}
	end := maxQuote
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// untilStop returns the text before the first stop sequence, and the stop sequence, or "" without one.
func untilStop(s string, stop []string) (text, stopped string) {
	for _, word := range stop {
		if before, _, found := strings.Cut(s, word); found {
			s, stopped = before, word
		}
	}
	return s, stopped
}

// stretch repeats or cuts tokens until there are n.
func stretch(tokens []string, n int) []string {
	out := make([]string, 0, n)
	if len(tokens) == 0 {
		return out
	}
	for i := range n {
		t := tokens[i%len(tokens)]
		if i > 0 && i%len(tokens) == 0 {
			t = " " + t
		}
		out = append(out, t)
	}
	return out
}

// cut ends a choice at the limit, thinking first.
func cut(c choice, limit int) choice {
	if limit <= 0 || c.tokens() <= limit {
		return c
	}
	c.finish, c.stopped = finishLimit, ""
	c.reasoning = c.reasoning[:min(limit, len(c.reasoning))]
	limit -= len(c.reasoning)
	c.content = c.content[:min(limit, len(c.content))]
	c.arguments = c.arguments[:min(limit, len(c.arguments))]
	if len(c.arguments) == 0 {
		c.tool = "" // the reasoning used up the limit before the call
	}
	return c
}

// pieceBytes is the longest token.
const pieceBytes = 8

// pieces splits a text into tokens: words with the space before them, long words in
// parts. The joined tokens are the text again.
func pieces(s string) []string { return slices.Collect(split(s)) }

// countPieces returns the number of tokens of a text. It does not store the tokens, because a prompt may
// be long.
func countPieces(s string) (n int) {
	for range split(s) {
		n++
	}
	return n
}

func split(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i, r := range s {
			if i > start && (r == ' ' || r == '\n' || i-start+utf8.RuneLen(r) > pieceBytes) {
				if !yield(s[start:i]) {
					return
				}
				start = i
			}
		}
		if start < len(s) {
			yield(s[start:])
		}
	}
}
