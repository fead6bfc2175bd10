package chatmessages

import (
	"fmt"
	"strings"
	"unicode"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// history collects the turns of a messages request: roles alternate, the user begins, and the
// result of every tool call is in the turn after it.
type history struct {
	system []block
	turns  []turn

	open  []openCall     // calls of the last assistant turn, at most maxTurnCalls
	used  map[string]int // ids of calls, which must be unique
	calls int
	names []string // of the functions called, without repetition
}

// turn is one turn of a side. The form requires results first in a user's turn; in an assistant's
// turn, calls come last.
type turn struct {
	user        bool
	first, then []block
}

// maxTurnCalls is the limit on calls in one turn: more than any model makes, and few enough to
// search for every result.
const maxTurnCalls = 256

// openCall is a tool call without a result yet.
type openCall struct {
	id     string // in the client's history
	name   string
	lineID string
	done   bool
}

// add adds the message at index of the client's history.
func (h *history) add(message []byte, index int) error {
	at := fmt.Sprintf("messages[%d]", index)
	role := rawjson.Unquote(rawjson.Field(message, "role"))
	textOnly := role == "system" || role == "developer" || role == "assistant"
	list, err := blocksOf(rawjson.Field(message, "content"), textOnly, at+".content")
	if err != nil {
		return err
	}
	list = addBlock(list, block{mark: markOf(message)})
	switch role {
	case "system", "developer":
		if len(h.turns) == 0 {
			h.system = append(h.system, list...)
			return nil
		}
		h.addUser(list) // the form accepts it only in the user's turn
	case "assistant":
		return h.addAssistant(message, list, at)
	case "tool":
		h.addResult(rawjson.Unquote(rawjson.Field(message, "tool_call_id")), "", list)
	case "function":
		h.addResult("", rawjson.Unquote(rawjson.Field(message, "name")), list)
	default:
		h.addUser(list)
	}
	return nil
}

// turnOf returns the current turn of a side, starting it if necessary.
func (h *history) turnOf(user bool) *turn {
	if n := len(h.turns); n > 0 && h.turns[n-1].user == user {
		return &h.turns[n-1]
	}
	if !user {
		h.closeCalls()
		if len(h.turns) == 0 { // the user must begin
			h.turns = append(h.turns, turn{user: true, then: []block{textBlock(rawjson.Quote(continueText))}})
		}
		h.open = h.open[:0]
	}
	h.turns = append(h.turns, turn{user: user})
	return &h.turns[len(h.turns)-1]
}

// addUser adds to the user's turn.
func (h *history) addUser(list []block) {
	if len(list) > 0 {
		t := h.turnOf(true)
		t.then = append(t.then, list...)
	}
}

// addAssistant adds an assistant's message: its text, then its calls.
func (h *history) addAssistant(message []byte, list []block, at string) error {
	list = addBlock(list, textBlock(rawjson.Field(message, "refusal")))
	calls := rawjson.Field(message, "tool_calls")
	if len(list) > 0 {
		t := h.turnOf(false)
		t.first = append(t.first, list...)
	}
	for i, call := range rawjson.Elements(calls) {
		at := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		function := rawjson.Field(call, "function")
		if function == nil {
			return unsupported(at+".type", "`%s`: this model knows calls of type function only.", at)
		}
		if err := h.addCall(rawjson.Unquote(rawjson.Field(call, "id")), function, at+".function", markOf(call)); err != nil {
			return err
		}
	}
	if call := rawjson.Field(message, "function_call"); call != nil {
		return h.addCall("", call, at+".function_call", noBreakpoint)
	}
	return nil
}

// addCall adds a tool call.
func (h *history) addCall(id string, function []byte, at string, mark breakpoint) error {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return unsupported(at+".name", "`{param}` must be a string: the name of the function.")
	}
	t := h.turnOf(false)
	if len(h.open) >= maxTurnCalls {
		return unsupported(at, "`{param}`: one turn may hold %d calls at most.", maxTurnCalls)
	}
	h.calls++
	c := openCall{id: id, name: rawjson.Unquote(name), lineID: h.unique(id)}
	if !h.isKnown(c.name) {
		h.names = append(h.names, c.name)
	}
	json := rawjson.AppendMember([]byte(`{"type":"tool_use"`), "id", rawjson.Quote(c.lineID))
	json = rawjson.AppendMember(json, "name", name)
	json = piece.AppendObject(append(json, `,"input":`...), rawjson.Field(function, "arguments"))
	t.then = append(t.then, block{json: json, mark: mark})
	h.open = append(h.open, c)
	return nil
}

// isKnown reports whether a function was called before.
func (h *history) isKnown(name string) bool {
	const limit = 128 // the limit on tools of a request
	for _, known := range h.names {
		if known == name {
			return true
		}
	}
	return len(h.names) >= limit
}

// unique returns the line's id of a call. It depends only on the calls before it, so that a longer
// history begins like the shorter one.
func (h *history) unique(id string) string {
	if id == "" {
		id = fmt.Sprintf("call_%d", h.calls)
	}
	id = piece.ToolID(id)
	for {
		h.used[id]++
		n := h.used[id]
		if n == 1 {
			return id
		}
		id = fmt.Sprintf("%s_%d", id, n)
	}
}

// addResult adds the result of a tool: of the call with this id, or, without an id, of the first
// with this name, or the first at all. A result without a call becomes a user message.
func (h *history) addResult(id, name string, list []block) {
	for i := range h.open {
		c := &h.open[i]
		if c.done || id != "" && c.id != id || id == "" && name != "" && c.name != name {
			continue
		}
		c.done = true
		t := h.turnOf(true)
		t.first = append(t.first, resultBlock(c.lineID, list))
		return
	}
	h.addUser(list)
}

// resultBlock returns the result of a call. A breakpoint inside it becomes its own.
func resultBlock(id string, list []block) block {
	json := rawjson.AppendMember([]byte(`{"type":"tool_result"`), "tool_use_id", rawjson.Quote(id))
	var mark breakpoint
	if len(list) > 0 {
		for i := range list {
			if list[i].mark != noBreakpoint {
				mark = list[i].mark
				list[i].mark = noBreakpoint
			}
		}
		json = (&breakpoints{}).append(append(json, `,"content":`...), list)
	}
	return block{json: json, mark: mark}
}

// closeCalls adds results for the calls without one, because the form requires them.
func (h *history) closeCalls() {
	for i := range h.open {
		c := &h.open[i]
		if c.done {
			continue
		}
		c.done = true
		t := h.turnOf(true)
		b := resultBlock(c.lineID, []block{textBlock(rawjson.Quote(noResult))})
		b.json = append(b.json, `,"is_error":true`...)
		t.first = append(t.first, b)
	}
}

// inLoop reports whether the history ends in tool calls or their results.
func (h *history) inLoop() bool {
	if len(h.turns) == 0 {
		return false
	}
	last := h.turns[len(h.turns)-1]
	return last.user && len(last.first) > 0 || !last.user && len(last.then) > 0
}

// finish ends the history. prefill is set if the model continues a turn started by the client.
func (h *history) finish(prefills bool) {
	h.closeCalls()
	n := len(h.turns)
	if n == 0 || !h.turns[n-1].user && (!prefills || !h.turns[n-1].trim()) {
		h.addUser([]block{textBlock(rawjson.Quote(continueText))})
	}
}

// trim removes the white space at the end of the turn, rejected by the form. It returns false if
// the turn does not end with text.
func (t *turn) trim() bool {
	if len(t.then) > 0 || len(t.first) == 0 {
		return false
	}
	last := &t.first[len(t.first)-1]
	text := rawjson.Field(append(last.json, '}'), "text")
	if text == nil {
		return false
	}
	whole := rawjson.Unquote(text)
	if cut := strings.TrimRightFunc(whole, unicode.IsSpace); cut != whole {
		last.json = textBlock(rawjson.Quote(cut)).json
	}
	return true
}

func (h *history) marks() int {
	n := countMarks(h.system)
	for _, t := range h.turns {
		n += countMarks(t.first) + countMarks(t.then)
	}
	return n
}

func (h *history) append(out []byte, marks *breakpoints) []byte {
	if len(h.system) > 0 {
		out = marks.append(append(out, `,"system":`...), h.system)
	}
	out = append(out, `,"messages":`...)
	sep := byte('[')
	for _, t := range h.turns {
		role := `{"role":"assistant","content":`
		if t.user {
			role = `{"role":"user","content":`
		}
		out = append(append(out, sep), role...)
		out = append(marks.append(out, t.first, t.then), '}')
		sep = ','
	}
	return append(out, ']')
}
