package chatgemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/gemini"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// wholeAnswer returns a Gemini answer as a chat completion with the usage u. It returns
// ErrMalformed if body is not a JSON object.
func wholeAnswer(body []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || !rawjson.IsValid(body) || gemini.Object(body)[0] != '{' {
		return nil, wire.ErrMalformed
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	out := append(piece.AppendChatHead(make([]byte, 0, len(body)+512), id, "chat.completion"), '[')
	calls := callWriter{identity: id}
	for name, value := range rawjson.Members(gemini.Object(body)) {
		if string(name) != "candidates" {
			continue
		}
		for i, candidate := range rawjson.Elements(value) {
			if i > 0 {
				out = append(out, ',')
			}
			out = calls.appendChoice(out, gemini.ReadCandidate(candidate, i), i)
		}
		break
	}
	out = completions.AppendUsage(append(out, `],"usage":`...), u)
	return append(out, '}'), nil
}

// appendChoice appends a candidate as a choice.
func (w *callWriter) appendChoice(dst []byte, candidate gemini.AnswerCandidate, index int) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	dst = append(dst, `,"message":{"role":"assistant",`...)
	var content, thoughts, calls, images []byte // the contents of strings and arrays
	for _, raw := range rawjson.Elements(candidate.Parts) {
		part := gemini.ReadPart(raw)
		if part.Text != nil {
			to := &content
			if part.Thought {
				to = &thoughts
			}
			*to = append(*to, part.Text[1:len(part.Text)-1]...)
		}
		if part.Call != nil {
			calls = append(appendSignature(w.appendCall(append(calls, ",{"...), part.Call), part), '}')
		}
		if part.Inline != nil && !part.Thought {
			if mime, data, ok := gemini.ReadImage(part.Inline); ok {
				images = append(appendSignature(appendImage(append(images, ",{"...), mime, data), part), '}')
			}
		}
	}
	if content == nil && calls != nil {
		dst = append(dst, `"content":null,"refusal":null`...)
	} else {
		dst = rawjson.Put(dst, `"content":"`, content, `","refusal":null`)
	}
	if thoughts != nil {
		dst = rawjson.Put(dst, `,"reasoning_content":"`, thoughts, `"`)
	}
	if calls != nil {
		dst = rawjson.Put(dst, `,"tool_calls":[`, calls[1:], "]")
	}
	if images != nil {
		dst = rawjson.Put(dst, `,"images":[`, images[1:], "]")
	}
	dst = append(dst, `},"logprobs":`...)
	if extended := appendLogprobs(dst, candidate.Logprobs); extended != nil {
		dst = extended
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"finish_reason":"`...)
	return rawjson.Put(dst, "", piece.FinishReason(candidate.Kind, calls != nil), `"}`)
}

// appendImage appends the members of an image as a data URL, as other vendors do in chat
// completions.
func appendImage(dst, mime, data []byte) []byte {
	dst = rawjson.Put(dst, `"type":"image_url","image_url":{"url":"data:`, mime, "")
	return rawjson.Put(dst, ";base64,", data, `"}`)
}

// appendSignature appends the signature of a part to the members of its call or image, as in
// Google's own chat completions. The model expects the signature back.
func appendSignature(dst []byte, part gemini.Part) []byte {
	if part.Signature == nil {
		return dst
	}
	return rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":`, part.Signature, "}}")
}

// appendLogprobs appends a logprobsResult as the logprobs of a choice. It returns nil if result has
// no tokens.
func appendLogprobs(dst, result []byte) []byte {
	if result == nil {
		return nil
	}
	var candidates [][]byte // the most likely tokens at each position
	for _, top := range rawjson.Elements(rawjson.Field(result, "topCandidates")) {
		candidates = append(candidates, rawjson.Field(top, "candidates"))
	}
	empty := true
	dst = append(dst, `{"content":[`...)
	for i, chosen := range rawjson.Elements(rawjson.Field(result, "chosenCandidates")) {
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(appendToken(append(dst, '{'), chosen), `,"top_logprobs":[`...)
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
	if empty {
		return nil
	}
	return append(dst, `],"refusal":null}`...)
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

// callWriter writes the calls of an answer with unique ids: the provider's id if it is usable, or
// else an id derived from the request id.
type callWriter struct {
	identity wire.Identity
	count    int
	used     []string
}

// maxIDs bounds the provider's ids in use, and maxIDLength the length of each. Calls beyond these
// limits get a derived id.
const (
	maxIDs      = 256
	maxIDLength = 128
)

// appendCall appends the members of a tool call. Its arguments are the provider's bytes without
// white space, so that numbers are unchanged.
func (w *callWriter) appendCall(dst, call []byte) []byte {
	var id, name, args []byte
	for key, value := range rawjson.Members(call) {
		switch string(key) {
		case "id":
			id = value
		case "name":
			name = value
		case "args":
			args = rawjson.NonNull(value)
		}
	}
	dst = rawjson.Put(dst, `"id":`, rawjson.Quote(w.id(rawjson.Unquote(id))), "")
	dst = append(dst, `,"type":"function","function":{"name":`...)
	if rawjson.IsText(name) {
		dst = append(dst, name...)
	} else {
		dst = append(dst, `""`...)
	}
	dst = append(dst, `,"arguments":`...)
	compact := bytes.NewBuffer(make([]byte, 0, len(args)+2))
	if args == nil || json.Compact(compact, args) != nil {
		compact.WriteString("{}")
	}
	return rawjson.Put(dst, "", rawjson.Quote(compact.String()), "}")
}

// id returns the id of the next call.
func (w *callWriter) id(providerID string) string {
	if providerID != "" && len(providerID) <= maxIDLength && len(w.used) < maxIDs && !slices.Contains(w.used, providerID) {
		w.used = append(w.used, providerID)
		return providerID
	}
	w.count++
	return piece.NewCallID(w.identity, w.count)
}
