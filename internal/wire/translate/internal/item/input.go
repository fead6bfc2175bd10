// Package item owns the code shared by the translations to responses lines: the items of a request
// and its tools, the seal of encrypted reasoning, and the reading of answers and streams as steps.
//
// Invariants: items are sent without ids; every call has a result, directly after the calls of its
// turn; equal requests give equal bytes, and a longer conversation begins like the shorter one;
// whatever a provider sends, steps come in an order that can be written, with bounded memory.
package item

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

const (
	// maxIDLength is the limit on the id of a call in bytes.
	maxIDLength = 64
	// maxTurnCalls is the limit on calls in one turn: more than any model makes, and few enough to
	// search for every result.
	maxTurnCalls = 256
	// continueText is the user's text after the assistant's, which no line accepts as the last.
	continueText = `"Continue."`
	// noResult is the result of a call without one.
	noResult = `"(no result)"`
	// jsonHint is the mention of JSON required by the form if JSON is requested.
	jsonHint = `"Answer with one valid JSON object and nothing else."`
)

// Input converts a conversation into items. Its texts and values are JSON as sent by the client.
// Use NewInput.
type Input struct {
	system string // the role of instructions
	phases bool   // mark the assistant's texts as commentary or final answer
	seal   string // of the line

	out         []byte // items, each with a comma before it
	pendingUser []byte // user items to add after the results of the open calls
	// reasoning are reasoning items, to be added before the next item of the assistant.
	reasoning  []byte
	open       []call // calls of the assistant's current turn
	hasResult  bool   // one of them has its result
	used       map[string]int
	calls      int
	lastIsText bool // the last item is a text of the assistant
}

// call is a call without a result yet.
type call struct {
	id, name string // the client's
	lineID   []byte // a JSON string
	custom   bool
	done     bool
}

// NewInput returns the input for a line. It opens seals of the identity's origin.
func NewInput(t wire.Translation, id wire.Identity) *Input {
	o := &Input{system: "system", phases: t.OpenAI, seal: sealPrefix(id), used: map[string]int{}}
	if t.OpenAI {
		o.system = "developer"
	}
	if t.NoEncrypted || t.NoSealed {
		o.seal = "" // opens nothing
	}
	return o
}

// System adds an instruction, a JSON string.
func (o *Input) System(text []byte) {
	if !piece.IsBlank(text) {
		o.addUser(message(o.system, text))
	}
}

// User adds the content of a user message: a string, or parts.
func (o *Input) User(content []byte) {
	if len(content) > 0 {
		o.addUser(message("user", content))
	}
}

func message(role string, content []byte) []byte {
	out := rawjson.Put(nil, `,{"type":"message","role":"`, role, `","content":`)
	return rawjson.Put(out, "", content, "}")
}

// addUser adds an item of the user, after the results of open calls.
func (o *Input) addUser(item []byte) {
	o.reasoning = nil
	if len(o.open) > 0 {
		o.pendingUser = append(o.pendingUser, item...)
		return
	}
	o.out, o.lastIsText = append(o.out, item...), false
}

// Reasoning adds the assistant's sealed reasoning, the contents of a JSON string. Reasoning sealed
// for another line is left out. summary is the contents of a JSON string.
func (o *Input) Reasoning(summary, sealed []byte) {
	encrypted, ok := unseal(o.seal, sealed)
	if !ok {
		return
	}
	o.startTurn()
	o.reasoning = append(o.reasoning, `,{"type":"reasoning","summary":[`...)
	if len(summary) > 0 {
		o.reasoning = rawjson.Put(o.reasoning, `{"type":"summary_text","text":"`, summary, `"}`)
	}
	o.reasoning = rawjson.Put(o.reasoning, `],"encrypted_content":"`, encrypted, `"}`)
}

// startTurn starts or continues a turn of the assistant.
func (o *Input) startTurn() {
	if o.hasResult || len(o.pendingUser) > 0 {
		o.closeTurn()
	}
}

// addAssistant adds an item of the assistant.
func (o *Input) addAssistant(isText bool, item []byte) {
	o.startTurn()
	o.out, o.reasoning = append(o.out, o.reasoning...), nil
	o.out, o.lastIsText = append(o.out, item...), isText
}

// Assistant adds a text of the assistant, a JSON string. calls is set if calls follow in the same
// turn.
func (o *Input) Assistant(text []byte, calls bool) {
	if piece.IsBlank(text) {
		return
	}
	item := message("assistant", text)
	if o.phases {
		phase := `,"phase":"final_answer"}`
		if calls {
			phase = `,"phase":"commentary"}`
		}
		item = append(item[:len(item)-1], phase...)
	}
	o.addAssistant(true, item)
}

// Call adds a call of a client tool: of a function with its arguments, or of a custom tool with its
// input, each a JSON string. at is its path.
func (o *Input) Call(id string, name, text []byte, custom bool, at string) error {
	if !rawjson.IsText(name) || len(name) == 2 {
		return piece.Unsupported(at+".name", "`{param}` must be a string: the name of the tool.")
	}
	o.startTurn()
	if len(o.open) >= maxTurnCalls {
		return piece.Unsupported(at, "`{param}`: one turn may hold %d calls at most.", maxTurnCalls)
	}
	o.calls++
	c := call{id: id, name: rawjson.Unquote(name), lineID: o.unique(id), custom: custom}
	kind, member := "function_call", "arguments"
	if custom {
		kind, member = "custom_tool_call", "input"
	}
	item := rawjson.Put(nil, `,{"type":"`, kind, `","call_id":`)
	item = rawjson.Put(item, "", c.lineID, `,"name":`)
	item = append(item, LineName(name)...)
	o.addAssistant(false, append(rawjson.AppendMember(item, member, text), '}'))
	o.open = append(o.open, c)
	return nil
}

// unique returns the line's id of a call. It depends only on the calls before it.
func (o *Input) unique(id string) []byte {
	const ending = 6 // room for a number
	if id == "" {
		id = fmt.Sprintf("call_%d", o.calls)
	}
	short := piece.ShortID(rawjson.Quote(id), maxIDLength)
	for {
		id = rawjson.Unquote(short)
		o.used[id]++
		n := o.used[id]
		if n == 1 {
			return short
		}
		short = rawjson.Quote(rawjson.Unquote(piece.ShortID(short, maxIDLength-ending)) + fmt.Sprintf("_%d", n))
	}
}

// Result adds the result of a tool: of the call with this id, or, without an id, of the first with
// this name, or the first at all. output is a JSON string or parts. A result without a call becomes
// a user message.
func (o *Input) Result(id, name string, output []byte) {
	for i := range o.open {
		c := &o.open[i]
		if c.done || id != "" && c.id != id || id == "" && name != "" && c.name != name {
			continue
		}
		o.result(c, output)
		return
	}
	if !piece.IsBlank(output) || len(output) > 0 && output[0] == '[' {
		o.User(output)
	}
}

func (o *Input) result(c *call, output []byte) {
	c.done, o.hasResult = true, true
	kind := "function_call_output"
	if c.custom {
		kind = "custom_tool_call_output"
	}
	o.out = rawjson.Put(o.out, `,{"type":"`, kind, `","call_id":`)
	o.out = rawjson.Put(o.out, "", c.lineID, "")
	o.out, o.lastIsText = append(rawjson.AppendMember(o.out, "output", output), '}'), false
}

// closeTurn adds results for the open calls and ends the turn.
func (o *Input) closeTurn() {
	for i := range o.open {
		if c := &o.open[i]; !c.done {
			o.result(c, []byte(noResult))
		}
	}
	if len(o.pendingUser) > 0 {
		o.out, o.lastIsText = append(o.out, o.pendingUser...), false
	}
	o.open, o.pendingUser, o.hasResult = o.open[:0], nil, false
}

// End returns the items as a list. asJSON is set if JSON without a schema is requested; the form
// requires a mention of JSON then.
func (o *Input) End(asJSON bool) []byte {
	o.closeTurn()
	if o.lastIsText || len(o.out) == 0 {
		o.out = append(o.out, message("user", []byte(continueText))...)
	}
	list := o.out
	if asJSON && !bytes.Contains(bytes.ToLower(list), []byte("json")) {
		list = append(message(o.system, []byte(jsonHint)), list...)
	}
	list[0] = '[' // replaces the first comma
	return append(list, ']')
}

// AppendText appends a comma and a text part, given the contents of a JSON string.
func AppendText(dst, text []byte) []byte {
	return rawjson.Put(dst, `,{"type":"input_text","text":"`, text, `"}`)
}

// AppendPart appends a comma and a part of a user message or a result. It appends nothing for an
// empty part.
func AppendPart(dst []byte, p piece.Part) []byte {
	switch {
	case p.Image != nil:
		return AppendImage(dst, p.Image, []byte(`"auto"`))
	case p.File != nil:
		dst = rawjson.Put(dst, `,{"type":"input_file","filename":`, p.Name, `,"file_data":`)
		return rawjson.Put(dst, "", p.File, "}")
	case p.FileURL != nil:
		return rawjson.Put(dst, `,{"type":"input_file","file_url":`, p.FileURL, "}")
	case len(p.Text) > 0:
		return AppendText(dst, p.Text)
	}
	return dst
}

// AppendImage appends a comma and an image by its address, a JSON string.
func AppendImage(dst, address, detail []byte) []byte {
	dst = rawjson.Put(dst, `,{"type":"input_image","image_url":`, address, `,"detail":`)
	return rawjson.Put(dst, "", detail, "}")
}

// Parts returns a list of parts, each with a comma before it, or nil.
func Parts(parts []byte) []byte {
	if len(parts) == 0 {
		return nil
	}
	return rawjson.Put(nil, "[", parts[1:], "]")
}
