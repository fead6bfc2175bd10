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
func (g *callWriter) appendChoice(dst []byte, candidate gemini.AnswerCandidate, index int) []byte {
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
			calls = append(appendSignature(g.appendCall(append(calls, ",{"...), part.Call), part), '}')
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
	if odds := appendLogprobs(dst, candidate.Logprobs); odds != nil {
		dst = odds
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"finish_reason":"`...)
	return rawjson.Put(dst, "", piece.FinishReason(candidate.Kind, calls != nil), `"}`)
}

// appendImage appends the members of an image in the vendors' chat form: by a data address.
func appendImage(dst, mime, data []byte) []byte {
	dst = rawjson.Put(dst, `"type":"image_url","image_url":{"url":"data:`, mime, "")
	return rawjson.Put(dst, ";base64,", data, `"}`)
}

// appendSignature appends the signature of a part to the members of its call or image, as in
// Google's own chat form. The model expects it back.
func appendSignature(dst []byte, part gemini.Part) []byte {
	if part.Signature == nil {
		return dst
	}
	return rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":`, part.Signature, "}}")
}

// appendLogprobs appends a logprobsResult as the logprobs of a choice. It returns nil if it is
// empty.
func appendLogprobs(dst, odds []byte) []byte {
	if odds == nil {
		return nil
	}
	var steps [][]byte // the candidates of each
	for _, top := range rawjson.Elements(rawjson.Field(odds, "topCandidates")) {
		steps = append(steps, rawjson.Field(top, "candidates"))
	}
	empty := true
	dst = append(dst, `{"content":[`...)
	for i, chosen := range rawjson.Elements(rawjson.Field(odds, "chosenCandidates")) {
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(appendToken(append(dst, '{'), chosen), `,"top_logprobs":[`...)
		if i < len(steps) {
			for k, other := range rawjson.Elements(steps[i]) {
				if k > 0 {
					dst = append(dst, ',')
				}
				dst = append(appendToken(append(dst, '{'), other), '}')
			}
		}
		dst = append(dst, "]}"...)
	}
	if empty {
		return nil
	}
	return append(dst, `],"refusal":null}`...)
}

// appendToken appends the members of a token and its logprob. As in the chat form, a value other
// than a number is an impossible token.
func appendToken(dst, token []byte) []byte {
	text, odds := []byte(`""`), []byte("0")
	for name, value := range rawjson.Members(token) {
		switch {
		case string(name) == "token" && rawjson.IsText(value):
			text = value
		case string(name) == "logProbability" && (value[0] == '-' || '0' <= value[0] && value[0] <= '9'):
			odds = value
		case string(name) == "logProbability":
			odds = []byte("-9999.0")
		}
	}
	dst = rawjson.Put(dst, `"token":`, text, "")
	return rawjson.Put(dst, `,"logprob":`, odds, `,"bytes":null`)
}

// callWriter writes the calls of an answer with unique ids: the provider's, or derived from the
// request's.
type callWriter struct {
	identity wire.Identity
	count    int
	used     []string
}

// maxIDs is the number of the provider's ids compared, and maxIDLength their largest length. Other
// calls get a derived id.
const (
	maxIDs      = 256
	maxIDLength = 128
)

// appendCall appends the members of a tool call. Its arguments are the provider's bytes without
// white space, so that numbers are unchanged.
func (g *callWriter) appendCall(dst, call []byte) []byte {
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
	dst = rawjson.Put(dst, `"id":`, rawjson.Quote(g.id(rawjson.Unquote(id))), "")
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
func (g *callWriter) id(providerID string) string {
	if providerID != "" && len(providerID) <= maxIDLength && len(g.used) < maxIDs && !slices.Contains(g.used, providerID) {
		g.used = append(g.used, providerID)
		return providerID
	}
	g.count++
	return piece.NewCallID(g.identity, g.count)
}
