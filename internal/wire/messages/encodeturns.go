package messages

import (
	"slices"
	"strings"
	"unicode"

	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// block is a content block or a tool.
type block struct {
	json []byte // without the closing brace
	mark conversation.CacheTime
}

// breakpoints writes blocks with their breakpoints. If there are too many, it keeps the last ones, because
// they cover the longest prefixes. The form rejects a lifetime longer than an earlier one, so breakpoints
// shortens it.
type breakpoints struct {
	skip  int  // number of breakpoints left to skip
	short bool // a breakpoint of the short lifetime was written
}

// append appends blocks as a list.
func (b *breakpoints) append(out []byte, lists ...[]block) []byte {
	sep := byte('[')
	for _, list := range lists {
		for _, block := range list {
			out = append(append(out, sep), block.json...)
			out = append(b.appendMark(out, block.mark), '}')
			sep = ','
		}
	}
	if sep == '[' {
		out = append(out, sep)
	}
	return append(out, ']')
}

func (b *breakpoints) appendMark(out []byte, mark conversation.CacheTime) []byte {
	switch {
	case mark == conversation.NoCache:
		return out
	case b.skip > 0:
		b.skip--
		return out
	case mark == conversation.Hour && !b.short:
		return append(out, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`...)
	}
	b.short = true
	return append(out, `,"cache_control":{"type":"ephemeral"}`...)
}

func countMarks(list []block) (n int) {
	for _, b := range list {
		if b.mark != conversation.NoCache {
			n++
		}
	}
	return n
}

// turn is one turn of the user or the assistant. The form requires results first in a user's turn; in an
// assistant's turn, calls come last.
type turn struct {
	user        bool
	first, then []block
}

// addTurns adds a repaired history. Roles alternate, and the user begins.
func (e *encoder) addTurns(turns []conversation.Turn) error {
	ids := conversation.CallIDs{Clean: func(id string, _ int) string { return conversation.ToolID(id) }}
	for i := range turns {
		t := &turns[i]
		for k := range t.Parts {
			p := &t.Parts[k]
			b, err := e.block(t, p)
			if err != nil {
				return err
			}
			switch {
			case p.Kind == conversation.ToolCall:
				to := e.turnOf(false)
				to.then = append(to.then, e.callBlock(p, ids.Of(p.Call)))
			case p.Kind == conversation.ToolResult:
				b, err := e.resultBlock(p, ids.Of(p.Call))
				if err != nil {
					return err
				}
				to := e.turnOf(true)
				to.first = append(to.first, b)
			case b.json == nil:
			case t.Role == conversation.System && len(e.turns) == 0:
				e.system = append(e.system, b)
			case t.Role == conversation.Assistant:
				to := e.turnOf(false)
				to.first = append(to.first, b)
			default: // a later system text is accepted only in the user's turn
				to := e.turnOf(true)
				to.then = append(to.then, b)
			}
		}
	}
	return nil
}

// turnOf returns the current turn of a side, starting it if necessary.
func (e *encoder) turnOf(user bool) *turn {
	if n := len(e.turns); n > 0 && e.turns[n-1].user == user {
		return &e.turns[n-1]
	}
	if !user && len(e.turns) == 0 {
		e.endTurns(false)
	}
	e.turns = append(e.turns, turn{user: user})
	return &e.turns[len(e.turns)-1]
}

// endTurns ends the history with the user's turn, unless the model continues a text of the client.
func (e *encoder) endTurns(prefill bool) {
	n := len(e.turns)
	if n == 0 || !e.turns[n-1].user && (!prefill || !e.turns[n-1].trim()) {
		t := turn{user: true, then: []block{textBlock([]byte(conversation.Continue))}}
		e.turns = append(e.turns, t)
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
	if trimmed := strings.TrimRightFunc(whole, unicode.IsSpace); trimmed != whole {
		last.json = textBlock(rawjson.Contents(rawjson.Quote(trimmed))).json
	}
	return true
}

// block returns the block of a part other than a call or a result. It is empty for a part that the
// form does not have or that is only valid for another model.
func (e *encoder) block(t *conversation.Turn, p *conversation.Part) (b block, err error) {
	switch p.Kind {
	case conversation.Text, conversation.Refusal:
		b = textBlock(p.Text)
	case conversation.Image, conversation.File:
		switch {
		case p.Media.Generated:
			return block{}, nil
		case t.Role == conversation.Assistant:
			return block{}, conversation.Unsupported(p.At+".type", "`{param}`: this model takes images and files from the user only.")
		}
		b, err = mediaBlock(p)
	}
	b.mark = p.Mark.Time
	return b, err
}

// textBlock returns the block for the contents of a JSON string.
func textBlock(text []byte) block {
	return block{json: rawjson.Put(nil, `{"type":"text","text":"`, text, `"`)}
}

func (e *encoder) callBlock(p *conversation.Part, lineID string) block {
	name := e.NameOnLine(p.Call.Name, p.Call.Namespace)
	if !slices.Contains(e.names, name) && len(e.names) < maxHistoryTools {
		e.names = append(e.names, name)
	}
	json := rawjson.AppendMember([]byte(`{"type":"tool_use"`), "id", rawjson.Quote(lineID))
	json = rawjson.AppendMember(json, "name", rawjson.Quote(name))
	arguments := p.Call.Arguments
	if p.Call.Custom {
		arguments = p.Call.FunctionText()
	}
	return block{json: conversation.AppendObject(append(json, `,"input":`...), arguments), mark: p.Mark.Time}
}

// resultBlock returns the result of a call. A breakpoint inside the result becomes the result's own.
func (e *encoder) resultBlock(p *conversation.Part, lineID string) (block, error) {
	out := block{json: rawjson.AppendMember([]byte(`{"type":"tool_result"`), "tool_use_id", rawjson.Quote(lineID)), mark: p.Mark.Time}
	var list []block
	for i := range p.Result.Parts {
		inner := &p.Result.Parts[i]
		b, err := e.block(&conversation.Turn{Role: conversation.Results}, inner)
		if err != nil {
			return block{}, err
		}
		if b.mark != conversation.NoCache && p.Mark.Time == conversation.NoCache {
			out.mark = b.mark
		}
		if b.mark = conversation.NoCache; b.json != nil && (inner.Kind != conversation.Text || !conversation.IsBlank(inner.Text)) {
			list = append(list, b)
		}
	}
	if len(list) > 0 {
		out.json = (&breakpoints{}).append(append(out.json, `,"content":`...), list)
	}
	if p.Result.Missing || p.Result.Error {
		out.json = append(out.json, `,"is_error":true`...)
	}
	return out, nil
}

// mediaBlock returns the block of an image or a PDF.
func mediaBlock(p *conversation.Part) (block, error) {
	m := p.Media
	kind, data, inline := conversation.SplitData(m.Address)
	switch {
	case p.Kind == conversation.File:
		if !inline || kind != "application/pdf" {
			return block{}, conversation.Unsupported(m.At, "`{param}` must be a PDF as a data address: `data:application/pdf;base64,…`.")
		}
		b := sourceBlock("document", kind, data)
		if m.Name != nil && !conversation.IsBlank(rawjson.Contents(m.Name)) {
			b.json = rawjson.AppendMember(b.json, "title", m.Name)
		}
		return b, nil
	case inline:
		switch kind {
		case "image/jpeg", "image/png", "image/gif", "image/webp":
			return sourceBlock("image", kind, data), nil
		}
		return block{}, conversation.Unsupported(m.At, "`{param}`: this model takes images of type JPEG, PNG, GIF and WebP, in base64.")
	case conversation.HasScheme(m.Address):
		return block{json: rawjson.Put(nil, `{"type":"image","source":{"type":"url","url":`, m.Address, "}")}, nil
	}
	return block{}, conversation.Unsupported(m.At, "`{param}` must be an https or a data address.")
}

// sourceBlock returns an image or a document, given base64 data, the contents of a JSON string.
func sourceBlock(kind, media string, data []byte) block {
	out := make([]byte, 0, len(data)+128)
	out = rawjson.Put(out, `{"type":"`, kind, `","source":{"type":"base64","media_type":"`)
	out = rawjson.Put(out, "", media, `","data":"`)
	return block{json: rawjson.Put(out, "", data, `"}`)}
}
