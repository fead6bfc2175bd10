// Package item owns what the translations to lines of the responses form share,
// whatever the client's form is: the items of a request and its tools, the
// envelope of encrypted reasoning, and the reading of answers and streams by what
// they say.
//
// Invariants: no item that is sent has an id; every call is answered, directly
// behind the calls of its turn; equal requests give equal bytes, and a longer
// conversation begins like the shorter; whatever a provider sends, steps come in
// an order that can be written, and what is kept of them is bounded.
package item

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

const (
	// longestID is how long the id of a call may be, in bytes.
	longestID = 64
	// maxTurnCalls is how many calls one turn may hold: more than any model makes,
	// and few enough to look through for every result.
	maxTurnCalls = 256
	// goOn is what the user says where the assistant had the last word: no line
	// goes on with that.
	goOn = `"Continue."`
	// unanswered answers a call that the client left without an answer.
	unanswered = `"(no result)"`
	// asObject says what the form wants said where JSON is asked for.
	asObject = `"Answer with one valid JSON object and nothing else."`
)

// Input puts a conversation into items. Its texts and values are JSON as the
// client sent it. Use NewInput.
type Input struct {
	system string // the role of instructions
	phases bool   // what the assistant said is told apart: on the way, or at the end
	seal   string // of the line

	out   []byte // items, each with a comma before it
	later []byte // of the user, behind the results of the open calls
	// thought are reasoning items, which have to stand before what follows of
	// them.
	thought  []byte
	open     []call // of the present turn of the assistant
	answered bool   // one of them has its result
	used     map[string]int
	calls    int
	said     bool // the last item is what the assistant said
}

// call is a call that awaits its result.
type call struct {
	id, name string // the client's
	sent     []byte // the id that the line gets, a JSON string
	custom   bool
	done     bool
}

// NewInput makes the input for a line, whose encrypted reasoning has the seal of
// the identity's origin.
func NewInput(t wire.Translation, id wire.Identity) *Input {
	o := &Input{system: "system", phases: t.OpenAI, seal: sealOf(id), used: map[string]int{}}
	if t.OpenAI {
		o.system = "developer"
	}
	if t.NoEncrypted || t.NoSealed {
		o.seal = "" // opens nothing
	}
	return o
}

// System adds an instruction, a JSON string, where it stands.
func (o *Input) System(text []byte) {
	if !piece.IsBlank(text) {
		o.hear(message(o.system, text))
	}
}

// User adds what the user says, the content of a message: a string, or parts.
func (o *Input) User(content []byte) {
	if len(content) > 0 {
		o.hear(message("user", content))
	}
}

// message makes an item of a message.
func message(role string, content []byte) []byte {
	out := rawjson.Put(nil, `,{"type":"message","role":"`, role, `","content":`)
	return rawjson.Put(out, "", content, "}")
}

// hear adds an item of the user's side: behind the results of open calls.
func (o *Input) hear(item []byte) {
	o.thought = nil
	if len(o.open) > 0 {
		o.later = append(o.later, item...)
		return
	}
	o.out, o.said = append(o.out, item...), false
}

// Reasoning adds what the assistant thought, sealed as the client got it: the
// inside of a JSON string. What another line has sealed, or nobody, is left out.
// summary is the inside of a JSON string.
func (o *Input) Reasoning(summary, sealed []byte) {
	encrypted, ok := unseal(o.seal, sealed)
	if !ok {
		return
	}
	o.answer()
	o.thought = append(o.thought, `,{"type":"reasoning","summary":[`...)
	if len(summary) > 0 {
		o.thought = rawjson.Put(o.thought, `{"type":"summary_text","text":"`, summary, `"}`)
	}
	o.thought = rawjson.Put(o.thought, `],"encrypted_content":"`, encrypted, `"}`)
}

// answer begins or goes on with a turn of the assistant.
func (o *Input) answer() {
	if o.answered || len(o.later) > 0 {
		o.settle()
	}
}

// say adds an item of the assistant's.
func (o *Input) say(said bool, item []byte) {
	o.answer()
	o.out, o.thought = append(o.out, o.thought...), nil
	o.out, o.said = append(o.out, item...), said
}

// Said adds a text of the assistant's, a JSON string. calls tells that its turn
// goes on with calls.
func (o *Input) Said(text []byte, calls bool) {
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
	o.say(true, item)
}

// Call adds a call of a tool of the client's: of a function with its arguments,
// or of a custom tool with its input, each the text of a JSON string. at is its
// path.
func (o *Input) Call(id string, name, text []byte, custom bool, at string) error {
	if !rawjson.IsText(name) || len(name) == 2 {
		return piece.Cannot(at+".name", "`{param}` must be a string: the name of the tool.")
	}
	o.answer()
	if len(o.open) >= maxTurnCalls {
		return piece.Cannot(at, "`{param}`: one turn may hold %d calls at most.", maxTurnCalls)
	}
	o.calls++
	c := call{id: id, name: rawjson.Unquote(name), sent: o.unique(id), custom: custom}
	kind, member := "function_call", "arguments"
	if custom {
		kind, member = "custom_tool_call", "input"
	}
	item := rawjson.Put(nil, `,{"type":"`, kind, `","call_id":`)
	item = rawjson.Put(item, "", c.sent, `,"name":`)
	item = append(item, LineName(name)...)
	o.say(false, append(rawjson.AppendMember(item, member, text), '}'))
	o.open = append(o.open, c)
	return nil
}

// unique returns the id under which the line gets a call. It depends on what
// stands before it alone.
func (o *Input) unique(id string) []byte {
	const ending = 6 // room for a number behind it
	if id == "" {
		id = fmt.Sprintf("call_%d", o.calls)
	}
	short := piece.ShortID(rawjson.Quote(id), longestID)
	for {
		id = rawjson.Unquote(short)
		o.used[id]++
		n := o.used[id]
		if n == 1 {
			return short
		}
		short = rawjson.Quote(rawjson.Unquote(piece.ShortID(short, longestID-ending)) + fmt.Sprintf("_%d", n))
	}
}

// Summary adds what a tool answered: to the call of that id, or, without one, to
// the first of that name, or the first at all. output is a JSON string or parts.
// A result that answers nothing is something that the user says.
func (o *Input) Summary(id, name string, output []byte) {
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
	c.done, o.answered = true, true
	kind := "function_call_output"
	if c.custom {
		kind = "custom_tool_call_output"
	}
	o.out = rawjson.Put(o.out, `,{"type":"`, kind, `","call_id":`)
	o.out = rawjson.Put(o.out, "", c.sent, "")
	o.out, o.said = append(rawjson.AppendMember(o.out, "output", output), '}'), false
}

// settle answers the calls that the client left open, and ends the turn.
func (o *Input) settle() {
	for i := range o.open {
		if c := &o.open[i]; !c.done {
			o.result(c, []byte(unanswered))
		}
	}
	if len(o.later) > 0 {
		o.out, o.said = append(o.out, o.later...), false
	}
	o.open, o.later, o.answered = o.open[:0], nil, false
}

// End ends the conversation and returns its items as a list. asJSON tells that
// JSON without a schema is asked for, which the form wants mentioned.
func (o *Input) End(asJSON bool) []byte {
	o.settle()
	if o.said || len(o.out) == 0 {
		o.out = append(o.out, message("user", []byte(goOn))...)
	}
	list := o.out
	if asJSON && !bytes.Contains(bytes.ToLower(list), []byte("json")) {
		list = append(message(o.system, []byte(asObject)), list...)
	}
	list[0] = '[' // in the place of the first comma
	return append(list, ']')
}

// AppendText appends a part that is a text, the inside of a JSON string, behind a
// comma.
func AppendText(dst, text []byte) []byte {
	return rawjson.Put(dst, `,{"type":"input_text","text":"`, text, `"}`)
}

// AppendPart appends a part of a message of the user's, or of a result, behind a
// comma. Nothing is appended of a part that says nothing.
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

// AppendImage appends an image by its address, a JSON string, behind a comma.
func AppendImage(dst, address, detail []byte) []byte {
	dst = rawjson.Put(dst, `,{"type":"input_image","image_url":`, address, `,"detail":`)
	return rawjson.Put(dst, "", detail, "}")
}

// Parts makes a list of parts, each of which has a comma before it; nil when
// there are none.
func Parts(parts []byte) []byte {
	if len(parts) == 0 {
		return nil
	}
	return rawjson.Put(nil, "[", parts[1:], "]")
}
