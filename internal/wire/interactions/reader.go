package interactions

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// reader reads an answer as events. It fails if a piece of a stream does not fit the step it names, because a
// guess could change a call.
type reader struct {
	*conversation.Emitter
	open    []*openStep
	thought int // number of thoughts
	calls   int
	images  int
	used    []string // ids of the provider in use
	steps   bool     // a step has started
	finish  form.FinishKind
}

// openStep is a step of a stream that has not stopped.
type openStep struct {
	index int64
	kind  string
	// output is the text, the thought or the call of the step. It is nil before the first text.
	output *conversation.Output
	// signature is of a thought: the contents of a JSON string.
	signature []byte
	// hasArguments is set after the first arguments of a call, isWhole if they came with its start.
	hasArguments, isWhole bool
}

// maxOpen bounds the steps of a stream that are open at the same time, maxIDs the provider's ids in use,
// and maxIDLength the length of each. Calls beyond these limits get a derived id.
const (
	maxOpen     = 64
	maxIDs      = 256
	maxIDLength = 128
)

// errMisplaced reports a piece of an answer that does not fit its step.
var errMisplaced = errors.New("a piece of the answer does not fit its step")

// NewReader returns the reader of a line's answer.
func NewReader(m *conversation.Emitter) conversation.Reader { return &reader{Emitter: m} }

// Read implements conversation.Reader.
func (r *reader) Read(name string, object []byte) {
	if !utf8.Valid(object) {
		object = bytes.ToValidUTF8(object, []byte("\uFFFD"))
	}
	switch e := readEvent(name, object); e.kind {
	case "step.start":
		r.start(e.index, e.step)
	case "step.delta":
		r.delta(r.find(e.index), e.delta)
	case "step.stop":
		if s := r.find(e.index); s != nil {
			r.stop(s)
		}
	case completedEvent:
		r.end(e.interaction)
	case "error":
		end := ending{}
		end.fail(rawjson.Field(object, "error"))
		r.finish = end.kind
	}
}

// Whole implements conversation.Reader.
func (r *reader) Whole(object []byte) {
	if !utf8.Valid(object) {
		object = bytes.ToValidUTF8(object, []byte("\uFFFD"))
	}
	r.end(object)
}

// end reads the end of an interaction, and its steps unless they came before.
func (r *reader) end(interaction []byte) {
	if !r.steps {
		for i, step := range rawjson.Elements(rawjson.Field(interaction, "steps")) {
			r.start(int64(i), step)
			if s := r.find(int64(i)); s != nil {
				r.stop(s)
			}
		}
	}
	r.finish = endOf(interaction).kind
}

// End implements conversation.Reader.
func (r *reader) End() {
	for len(r.open) > 0 {
		r.stop(r.open[0])
	}
	if r.finish != form.FinishNone {
		r.Finish(0, r.finish)
	}
}

// find returns an open step. Without one, it fails the answer and returns nil. In a stream without
// indexes, only one step is open at a time.
func (r *reader) find(index int64) *openStep {
	for _, s := range r.open {
		if s.index == index || index < 0 && len(r.open) == 1 {
			return s
		}
	}
	r.Fail(errMisplaced)
	return nil
}

// start reads the start of a step, which may have its contents.
func (r *reader) start(index int64, step []byte) {
	r.steps = true
	s := &openStep{index: index, kind: typeOf(step)}
	for _, other := range r.open {
		if other.index == index || len(r.open) >= maxOpen {
			r.Fail(errMisplaced)
			return
		}
	}
	r.open = append(r.open, s)
	switch s.kind {
	case "model_output":
		for _, content := range rawjson.Elements(rawjson.Field(step, "content")) {
			r.content(s, content)
		}
	case "thought":
		r.sign(s, rawjson.Field(step, "signature"))
		for _, content := range rawjson.Elements(rawjson.Field(step, "summary")) {
			r.summary(s, content)
		}
	case "function_call":
		r.call(s, step)
	}
}

// delta reads a piece of a step. Pieces of unknown kinds are left out.
func (r *reader) delta(s *openStep, delta []byte) {
	if s == nil {
		return
	}
	kind, owner := typeOf(delta), ""
	switch kind {
	case "text", "image":
		owner = "model_output"
	case "thought_summary", "thought_signature":
		owner = "thought"
	case "arguments_delta":
		owner = "function_call"
	default:
		return
	}
	if s.kind != owner {
		r.Fail(errMisplaced)
		return
	}
	switch kind {
	case "thought_summary":
		r.summary(s, rawjson.Field(delta, "content"))
	case "thought_signature":
		r.sign(s, rawjson.Field(delta, "signature"))
	case "arguments_delta":
		r.arguments(s, rawjson.Field(delta, "arguments"))
	default:
		r.content(s, delta)
	}
}

// content reads a text or an image.
func (r *reader) content(s *openStep, content []byte) {
	if text := textOf(content); text != nil {
		if s.output == nil {
			s.output = &conversation.Output{Kind: conversation.Text}
			r.Start(s.output, nil)
		}
		r.Text(s.output, conversation.Contents(text), nil)
		return
	}
	media, data, ok := imageOf(content)
	if !ok {
		return
	}
	if s.output != nil {
		r.Emitter.End(s.output)
		s.output = nil
	}
	o := &conversation.Output{Kind: conversation.Image, Number: r.images, Media: slices.Clone(media), Data: slices.Clone(data)}
	r.images++
	r.Start(o, nil)
	r.Emitter.End(o)
}

// imageOf returns the contents of the JSON strings of an image's media type and base64 data.
func imageOf(content []byte) (media, data []byte, ok bool) {
	const image = "image/"
	if typeOf(content) != "image" {
		return nil, nil, false
	}
	media, data = rawjson.Contents(rawjson.Field(content, "mime_type")), rawjson.Contents(rawjson.Field(content, "data"))
	return media, data, bytes.HasPrefix(media, []byte(image)) && len(media) > len(image) && len(data) > 0
}

// summary reads a text of a thought.
func (r *reader) summary(s *openStep, content []byte) {
	if text := textOf(content); text != nil {
		r.startThought(s)
		r.Text(s.output, conversation.Contents(text), nil)
	}
}

func (r *reader) startThought(s *openStep) {
	if s.output == nil {
		s.output = &conversation.Output{Kind: conversation.Thinking, Message: r.thought}
		r.thought++
		r.Start(s.output, nil)
	}
}

// sign reads the signature of a thought. A second signature that differs is an error, not a continuation.
func (r *reader) sign(s *openStep, signature []byte) {
	data := conversation.Contents(signature)
	switch {
	case !rawjson.IsText(signature) || len(data) == 0:
	case s.signature == nil:
		s.signature = slices.Clone(data)
	case !bytes.Equal(s.signature, data):
		r.Fail(errMisplaced)
	}
}

// call reads the start of a call. Its arguments may be complete, or follow an empty object.
func (r *reader) call(s *openStep, step []byte) {
	name := rawjson.Field(step, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		r.Fail(errMisplaced)
		return
	}
	s.output = &conversation.Output{Kind: conversation.ToolCall, Number: r.calls, Name: slices.Clone(conversation.Contents(name)),
		ID: rawjson.Contents(rawjson.Quote(r.id(rawjson.Unquote(rawjson.Field(step, "id")))))}
	r.calls++
	r.Start(s.output, nil)
	arguments := rawjson.NonNull(rawjson.Field(step, "arguments"))
	if !isEmpty(arguments) {
		compact := bytes.NewBuffer(make([]byte, 0, len(arguments)))
		if json.Compact(compact, arguments) != nil {
			return // impossible: the answer is valid JSON
		}
		s.hasArguments, s.isWhole = true, true
		r.Text(s.output, rawjson.Contents(rawjson.Quote(compact.String())), nil)
	}
}

// isEmpty reports whether arguments are absent or an empty object.
func isEmpty(arguments []byte) bool {
	if len(arguments) == 0 || arguments[0] != '{' {
		return len(arguments) == 0
	}
	for range rawjson.Members(arguments) {
		return false
	}
	return true
}

// arguments reads a piece of the arguments of a call.
func (r *reader) arguments(s *openStep, piece []byte) {
	switch {
	case s.isWhole || s.output == nil:
		r.Fail(errMisplaced)
	case rawjson.IsText(piece) && len(piece) > 2:
		s.hasArguments = true
		r.Text(s.output, conversation.Contents(piece), nil)
	}
}

// stop reads the end of a step.
func (r *reader) stop(s *openStep) {
	r.open = slices.DeleteFunc(r.open, func(other *openStep) bool { return other == s })
	switch {
	case s.kind == "thought" && s.signature != nil:
		r.startThought(s)
		s.output.Signature = conversation.Signature{Data: s.signature, Vendor: wire.FormInteractions}
	case s.kind == "function_call" && s.output != nil:
		if !s.hasArguments {
			r.Text(s.output, []byte("{}"), nil)
		}
		s.output.Complete = true
	}
	if s.output != nil {
		r.Emitter.End(s.output)
	}
}

// id returns a unique id for the next call: the provider's if it is usable, or else an id derived from
// the request's id.
func (r *reader) id(provided string) string {
	if provided != "" && len(provided) <= maxIDLength && len(r.used) < maxIDs && !slices.Contains(r.used, provided) {
		r.used = append(r.used, provided)
		return provided
	}
	return conversation.NewCallID(r.ID, r.calls+1)
}
