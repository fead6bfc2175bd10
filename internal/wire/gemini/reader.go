package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// reader reads an answer as events. It ends the choices in End, because a provider may send more parts
// of a candidate after its finishReason.
type reader struct {
	*conversation.Emitter
	choices []readChoice  // by index
	first   [1]readChoice // memory of the usual single choice
	derived int           // number of ids made for calls
	used    []string      // ids of the provider in use
}

// readChoice is the state of a candidate in the provider's answer.
type readChoice struct {
	open          *conversation.Output // the open text or reasoning
	calls, images int
	finish        form.FinishKind
}

// maxIDs bounds the provider's ids in use, and maxIDLength the length of each. Calls beyond these
// limits get a derived id.
const (
	maxIDs      = 256
	maxIDLength = 128
)

// NewReader returns the reader of a line's answer.
func NewReader(m *conversation.Emitter) conversation.Reader {
	r := &reader{Emitter: m}
	r.choices = r.first[:0]
	return r
}

// Read implements conversation.Reader.
func (r *reader) Read(_ string, object []byte) {
	if !utf8.Valid(object) {
		object = bytes.ToValidUTF8(object, []byte("\uFFFD"))
	}
	for name, value := range rawjson.Members(object) {
		if string(name) != "candidates" {
			continue
		}
		for i, candidate := range rawjson.Elements(value) {
			r.candidate(ReadCandidate(candidate, i))
		}
	}
}

// Whole implements conversation.Reader.
func (r *reader) Whole(object []byte) {
	r.Read("", object)
	for i := range r.choices { // even without a reason, a whole answer has ended
		r.choices[i].finish = max(r.choices[i].finish, form.FinishStop)
	}
}

func (r *reader) candidate(c AnswerCandidate) {
	for len(r.choices) <= c.Index {
		r.choices = append(r.choices, readChoice{})
	}
	choice := &r.choices[c.Index]
	for _, part := range rawjson.Elements(c.Parts) {
		r.part(choice, ReadPart(part), c.Index)
	}
	if logprobs := appendLogprobs(nil, c.Logprobs); logprobs != nil {
		r.text(choice, conversation.Text, nil, logprobs, c.Index)
	}
	if c.Kind != form.FinishNone {
		choice.finish = c.Kind
	}
}

func (r *reader) part(choice *readChoice, part Part, index int) {
	if part.Text != nil {
		kind := conversation.Text
		if part.Thought {
			kind = conversation.Thinking
		}
		r.text(choice, kind, conversation.Contents(part.Text), nil, index)
	}
	if part.Call != nil {
		r.next(choice)
		o := &conversation.Output{Kind: conversation.ToolCall, Choice: index, Number: choice.calls, Signature: signatureOf(part)}
		choice.calls++
		r.call(o, part.Call)
	}
	if part.Inline != nil && !part.Thought {
		if mime, data, ok := ReadImage(part.Inline); ok {
			r.next(choice)
			o := &conversation.Output{Kind: conversation.Image, Choice: index, Number: choice.images, Signature: signatureOf(part),
				Media: slices.Clone(mime), Data: slices.Clone(data)}
			choice.images++
			r.Start(o, nil)
			r.Emitter.End(o)
		}
	}
}

// signatureOf returns the signature of a part.
func signatureOf(part Part) conversation.Signature {
	if part.Signature == nil {
		return conversation.Signature{}
	}
	return conversation.LineSignature(part.Signature, wire.FormGemini)
}

// text reads a text or reasoning.
func (r *reader) text(choice *readChoice, kind conversation.PartKind, text, logprobs []byte, index int) {
	if choice.open == nil || choice.open.Kind != kind {
		r.next(choice)
		choice.open = &conversation.Output{Kind: kind, Choice: index}
		r.Start(choice.open, nil)
	}
	r.Text(choice.open, text, logprobs)
}

// next ends the open text of a choice, before another part.
func (r *reader) next(choice *readChoice) {
	if choice.open != nil {
		r.Emitter.End(choice.open)
		choice.open = nil
	}
}

// call reads a call. Its arguments are the provider's bytes without white space, so that numbers are
// unchanged.
func (r *reader) call(o *conversation.Output, call []byte) {
	var id, args []byte
	for key, value := range rawjson.Members(call) {
		switch string(key) {
		case "id":
			id = value
		case "name":
			if rawjson.IsText(value) {
				o.Name = slices.Clone(conversation.Contents(value))
			}
		case "args":
			args = rawjson.NonNull(value)
		}
	}
	o.ID = rawjson.Contents(rawjson.Quote(r.id(rawjson.Unquote(id))))
	compact := bytes.NewBuffer(make([]byte, 0, len(args)+2))
	if args == nil || json.Compact(compact, args) != nil {
		compact.WriteString("{}")
	}
	r.Start(o, rawjson.Contents(rawjson.Quote(compact.String())))
	o.Complete = true
	r.Emitter.End(o)
}

// id returns a unique id for the next call: the provider's if it is usable, or else an id derived
// from the request's id.
func (r *reader) id(providerID string) string {
	if providerID != "" && len(providerID) <= maxIDLength && len(r.used) < maxIDs && !slices.Contains(r.used, providerID) {
		r.used = append(r.used, providerID)
		return providerID
	}
	r.derived++
	return conversation.NewCallID(r.ID, r.derived)
}

// End implements conversation.Reader.
func (r *reader) End() {
	for i := range r.choices {
		r.next(&r.choices[i])
		if kind := r.choices[i].finish; kind != form.FinishNone {
			r.Finish(i, kind)
		}
	}
}

// appendLogprobs appends a logprobsResult as a list of logprobs of chat completions. It returns nil if
// result has no tokens.
func appendLogprobs(dst, result []byte) []byte {
	if result == nil {
		return nil
	}
	var candidates [][]byte // the most likely tokens at each position
	for _, top := range rawjson.Elements(rawjson.Field(result, "topCandidates")) {
		candidates = append(candidates, rawjson.Field(top, "candidates"))
	}
	for i, chosen := range rawjson.Elements(rawjson.Field(result, "chosenCandidates")) {
		dst = append(appendToken(append(dst, ",{"...), chosen), `,"top_logprobs":[`...)
		if i < len(candidates) {
			for k, candidate := range rawjson.Elements(candidates[i]) {
				if k > 0 {
					dst = append(dst, ',')
				}
				dst = append(appendToken(append(dst, '{'), candidate), '}')
			}
		}
		dst = append(dst, "]}"...)
	}
	return conversation.List(dst)
}

// appendToken appends the members of a token and its logprob. A logProbability other than a number,
// such as "-Infinity", becomes -9999, which stands for an impossible token in chat completions.
func appendToken(dst, token []byte) []byte {
	text, logprob := []byte(`""`), []byte("0")
	for name, value := range rawjson.Members(token) {
		switch {
		case string(name) == "token" && rawjson.IsText(value):
			text = value
		case string(name) == "logProbability" && (value[0] == '-' || '0' <= value[0] && value[0] <= '9'):
			logprob = value
		case string(name) == "logProbability":
			logprob = []byte("-9999.0")
		}
	}
	dst = rawjson.Put(dst, `"token":`, text, "")
	return rawjson.Put(dst, `,"logprob":`, logprob, `,"bytes":null`)
}
