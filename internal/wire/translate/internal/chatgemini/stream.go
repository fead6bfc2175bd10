package chatgemini

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/gemini"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/piece"
)

// stream translates a Gemini stream to a stream of chat completions, with a chunk for each part. It
// ends the choices in End, because a provider may send more parts of a candidate after its
// finishReason. It is not safe for concurrent use.
type stream struct {
	head    []byte        // start of every chunk, up to the choices
	tail    string        // end of every chunk, after the choices
	usage   bool          // send a usage chunk
	choices []choiceState // by index
	calls   callWriter
}

// choiceState is what stream has written of a choice.
type choiceState struct {
	started       bool // the role was sent
	calls, images int
	finish        form.FinishKind
}

// newStream returns the writer of a stream, with the usage chunk if includeUsage is set.
func newStream(id wire.Identity, includeUsage bool) *stream {
	w := &stream{tail: "}\n\n", usage: includeUsage, calls: callWriter{identity: id}}
	if includeUsage {
		w.tail = ",\"usage\":null}\n\n"
	}
	w.head = piece.AppendChatHead([]byte("data: "), id, "chat.completion.chunk")
	return w
}

// Append implements wire.Writer. It copies comments as keep-alives.
func (w *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		if bytes.HasPrefix(e.Raw, []byte(":")) {
			dst = append(dst, sse.KeepAlive...)
		}
		return dst
	}
	if f.Err != nil {
		return dst
	}
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	for name, value := range rawjson.Members(gemini.Object(data)) {
		if string(name) == "candidates" {
			for i, candidate := range rawjson.Elements(value) {
				dst = w.appendCandidate(dst, gemini.ReadCandidate(candidate, i))
			}
		}
	}
	return dst
}

func (w *stream) appendCandidate(dst []byte, c gemini.AnswerCandidate) []byte {
	for len(w.choices) <= c.Index {
		w.choices = append(w.choices, choiceState{})
	}
	for _, part := range rawjson.Elements(c.Parts) {
		dst = w.appendPart(dst, gemini.ReadPart(part), c.Index)
	}
	if logprobs := appendLogprobs(nil, c.Logprobs); logprobs != nil {
		dst = rawjson.Put(w.begin(dst, c.Index), `"content":""},"logprobs":`, logprobs, "")
		dst = rawjson.Put(dst, `,"finish_reason":null}]`, w.tail, "")
	}
	if c.Kind != form.FinishNone {
		w.choices[c.Index].finish = c.Kind
	}
	return dst
}

// appendPart appends the chunks of one part.
func (w *stream) appendPart(dst []byte, part gemini.Part, index int) []byte {
	c := &w.choices[index]
	if part.Text != nil {
		name := `"content":`
		if part.Thought {
			name = `"reasoning_content":`
		}
		dst = append(w.begin(dst, index), name...)
		dst = append(dst, part.Text...)
		dst = w.end(dst)
	}
	if part.Call != nil {
		dst = append(w.begin(dst, index), `"tool_calls":[{"index":`...)
		dst = strconv.AppendInt(dst, int64(c.calls), 10)
		dst = append(appendSignature(w.calls.appendCall(append(dst, ','), part.Call), part), "}]"...)
		dst = w.end(dst)
		c.calls++
	}
	if part.Inline != nil && !part.Thought {
		if mime, data, ok := gemini.ReadImage(part.Inline); ok {
			dst = append(w.begin(dst, index), `"images":[{"index":`...)
			dst = strconv.AppendInt(dst, int64(c.images), 10)
			dst = append(appendSignature(appendImage(append(dst, ','), mime, data), part), "}]"...)
			dst = w.end(dst)
			c.images++
		}
	}
	return dst
}

// begin appends the start of a chunk, up to the members of its delta. The first chunk of a choice has
// the role.
func (w *stream) begin(dst []byte, index int) []byte {
	dst = rawjson.Put(dst, "", w.head, `[{"index":`)
	dst = append(strconv.AppendInt(dst, int64(index), 10), `,"delta":{`...)
	if !w.choices[index].started {
		w.choices[index].started = true
		dst = append(dst, `"role":"assistant",`...)
	}
	return dst
}

// end appends the end of a chunk.
func (w *stream) end(dst []byte) []byte {
	return rawjson.Put(dst, `},"finish_reason":null}]`, w.tail, "")
}

func (w *stream) End(dst []byte, u wire.Usage) []byte {
	for i := range w.choices {
		c := &w.choices[i]
		if c.finish == form.FinishNone {
			continue
		}
		dst = rawjson.Put(dst, "", w.head, `[{"index":`)
		dst = append(strconv.AppendInt(dst, int64(i), 10), `,"delta":{`...)
		if !c.started {
			dst = append(dst, `"role":"assistant","content":""`...)
		}
		dst = rawjson.Put(dst, `},"finish_reason":"`, piece.FinishReason(c.finish, c.calls > 0), "")
		dst = rawjson.Put(dst, `"}]`, w.tail, "")
	}
	if w.usage {
		dst = rawjson.Put(dst, "", w.head, `[],"usage":`)
		dst = append(completions.AppendUsage(dst, u), "}\n\n"...)
	}
	return append(dst, sse.Done...)
}

func (w *stream) Fail(dst []byte, err *fault.Error) []byte {
	return append(dst, completions.ErrorEvent(err.Object())...)
}
