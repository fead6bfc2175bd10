package interactions

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/rawjson"
)

// maxCallID is the limit on the id of a call in bytes.
const maxCallID = 64

// firstText replaces a missing first text of the user, because Google's models require one.
const firstText = "."

// stepWriter writes the history as steps, each with a comma before it.
type stepWriter struct {
	*encoder
	system []byte // all system texts, as the contents of a JSON string
	out    []byte
	turn   modelTurn

	ids conversation.CallIDs
}

// modelTurn is a turn of the model: its steps since the last one of the user.
type modelTurn struct {
	steps     []byte
	content   []byte // of the last step, a model_output that is open
	signature []byte // of the last thought
	begins    bool   // the first step is a thought
	signs     bool   // the turn has a thought, a call or an image
}

// turns writes a repaired history.
func (w *stepWriter) turns(turns []conversation.Turn) error {
	w.ids.Clean = func(id string, room int) string { return conversation.ShortID(conversation.ToolID(id), maxCallID-room) }
	for i := range turns {
		var err error
		switch t := &turns[i]; t.Role {
		case conversation.System:
			for k := range t.Parts {
				if w.system != nil {
					w.system = append(w.system, `\n\n`...)
				}
				w.system = append(w.system, t.Parts[k].Text...)
			}
		case conversation.Assistant:
			err = w.assistant(t)
		case conversation.Results:
			err = w.results(t)
		default:
			err = w.user(t.Parts)
		}
		if err != nil {
			return err
		}
	}
	if w.endTurn() { // the model does not answer its own turn
		w.addText(conversation.Continue)
	}
	if w.out == nil {
		w.addText(firstText)
	}
	return nil
}

// addText adds a step of the user with a text.
func (w *stepWriter) addText(text string) {
	w.out = rawjson.Put(w.out, `,{"type":"user_input","content":[{"type":"text","text":"`, text, `"}]}`)
}

// user adds a step of the user.
func (w *stepWriter) user(parts []conversation.Part) error {
	w.endTurn()
	content, err := w.content(parts)
	if content != nil {
		w.out = rawjson.Put(w.out, `,{"type":"user_input","content":`, conversation.List(content), "}")
	}
	return err
}

// content returns parts as contents, each with a comma before it.
func (w *stepWriter) content(parts []conversation.Part) (content []byte, err error) {
	for i := range parts {
		p := &parts[i]
		if p.Media == nil {
			content = appendText(content, p.Text)
			continue
		}
		one, err := w.media(p)
		if err != nil {
			return nil, err
		}
		content = rawjson.Put(content, ",", one, "")
	}
	return content, nil
}

// appendText appends a text, the contents of a JSON string, as a content.
func appendText(dst, text []byte) []byte {
	return rawjson.Put(dst, `,{"type":"text","text":"`, text, `"}`)
}

// assistant adds the steps of the model. Successive messages of the assistant are one turn.
func (w *stepWriter) assistant(t *conversation.Turn) error {
	turn := &w.turn
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case conversation.Thinking:
			turn.addThought(w.signatureOf(p), p.Text)
		case conversation.ToolCall:
			turn.addThought(w.signatureOf(p), nil)
			turn.addCall(w.call(p.Call))
		case conversation.Image, conversation.File:
			one, err := w.media(p)
			if err != nil {
				return err
			}
			turn.content = rawjson.Put(turn.content, ",", one, "")
			turn.signs = turn.signs || p.Media.Generated
		default:
			turn.content = appendText(turn.content, p.Text)
		}
	}
	return nil
}

// signatureOf returns the signature of a part if this line can read it, or nil.
func (w *stepWriter) signatureOf(p *conversation.Part) []byte {
	if w.target.NoSealed {
		return nil
	}
	return p.Signature.Open(w.id, wire.FormInteractions)
}

// call returns the step of a call.
func (w *stepWriter) call(c *conversation.CallPart) []byte {
	arguments := c.Arguments
	if c.Custom {
		arguments = c.FunctionText()
	}
	var out conversation.ObjectWriter
	out.Add("type", `"function_call"`)
	out.Add("id", string(rawjson.Quote(w.ids.Of(c))))
	out.Add("name", string(rawjson.Quote(w.NameOnLine(c.Name, c.Namespace))))
	out.Add("arguments", string(conversation.AppendObject(nil, arguments)))
	return out.Object()
}

// addThought adds a thought. It skips a thought without a signature, because Google rejects it, and a
// signature equal to the last one, because some clients repeat a thought's signature on the call after it.
func (t *modelTurn) addThought(signature, text []byte) {
	if signature == nil || bytes.Equal(signature, t.signature) {
		return
	}
	t.flush()
	t.begins = t.begins || t.steps == nil
	t.signature, t.signs = signature, true
	t.steps = rawjson.Put(t.steps, `,{"type":"thought","signature":"`, signature, `"`)
	if len(text) > 0 {
		t.steps = rawjson.Put(t.steps, `,"summary":[{"type":"text","text":"`, text, `"}]`)
	}
	t.steps = append(t.steps, '}')
}

func (t *modelTurn) addCall(step []byte) {
	t.flush()
	t.steps, t.signs = rawjson.Put(t.steps, ",", step, ""), true
}

// flush ends the open model_output.
func (t *modelTurn) flush() {
	if t.content != nil {
		t.steps = rawjson.Put(t.steps, `,{"type":"model_output","content":`, conversation.List(t.content), "}")
		t.content = nil
	}
}

// endTurn ends the model's turn and reports whether there was one. Models from Gemini 3 on reject a call
// unless a thought begins its turn. A missing thought is replaced by gemini.SignatureBypass.
func (w *stepWriter) endTurn() bool {
	t := w.turn
	t.flush()
	w.turn = modelTurn{}
	if t.steps == nil {
		return false
	}
	if w.out == nil {
		w.addText(firstText)
	}
	if t.signs && !t.begins && gemini.RequiresSignature(w.target.Model) {
		w.out = rawjson.Put(w.out, `,{"type":"thought","signature":"`, gemini.SignatureBypass, `"}`)
	}
	w.out = append(w.out, t.steps...)
	return true
}

// results adds the results of calls. Their documents follow in a step of the user, because a result has
// texts and images only.
func (w *stepWriter) results(t *conversation.Turn) error {
	w.endTurn()
	var attachments []conversation.Part
	for i := range t.Parts {
		p := &t.Parts[i]
		var inside []conversation.Part
		labelled := false
		for _, part := range p.Result.Parts {
			if part.Kind != conversation.File {
				inside = append(inside, part)
				continue
			}
			if !labelled {
				label := rawjson.Put(nil, "From the result of the tool call ", w.ids.Of(p.Call), ":")
				attachments = append(attachments, conversation.Part{Text: label})
				labelled = true
			}
			attachments = append(attachments, part)
		}
		content, err := w.content(inside)
		if err != nil {
			return err
		}
		if content == nil {
			content = appendText(nil, nil)
		}
		var out conversation.ObjectWriter
		out.Add("type", `"function_result"`)
		out.Add("call_id", string(rawjson.Quote(w.ids.Of(p.Call))))
		out.Add("name", string(rawjson.Quote(w.NameOnLine(p.Call.Name, p.Call.Namespace))))
		out.Add("result", string(conversation.List(content)))
		if p.Result.Error {
			out.Add("is_error", "true")
		}
		w.out = rawjson.Put(w.out, ",", out.Object(), "")
	}
	if attachments != nil {
		return w.user(attachments)
	}
	return nil
}
