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
)

// wholeAnswer writes a whole Gemini answer as a chat completion with the
// usage that was charged; ErrMalformed when body is no JSON object.
func wholeAnswer(body []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || !rawjson.IsValid(body) || gemini.Object(body)[0] != '{' {
		return nil, wire.ErrMalformed
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	out := append(appendGeminiHead(make([]byte, 0, len(body)+512), id, "chat.completion"), '[')
	calls := geminiCalls{request: geminiSuffix(id.Request)}
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

// appendChoice writes a candidate as a choice.
func (g *geminiCalls) appendChoice(dst []byte, candidate gemini.Generated, index int) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	dst = append(dst, `,"message":{"role":"assistant",`...)
	var content, thoughts, calls, images []byte // the insides of strings and arrays
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
				images = append(appendSignature(appendGeminiImage(append(images, ",{"...), mime, data), part), '}')
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
	if odds := appendGeminiOdds(dst, candidate.Odds); odds != nil {
		dst = odds
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"finish_reason":"`...)
	return rawjson.Put(dst, "", chatFinishOfGemini(candidate.Kind, calls != nil), `"}`)
}

// appendGeminiImage writes the members of an image, as its vendors' chat forms
// have it: by a data address.
func appendGeminiImage(dst, mime, data []byte) []byte {
	dst = rawjson.Put(dst, `"type":"image_url","image_url":{"url":"data:`, mime, "")
	return rawjson.Put(dst, ";base64,", data, `"}`)
}

// appendSignature writes the signature of a part behind the members of its call
// or its image, where Google's own chat form has it: the model wants it back.
func appendSignature(dst []byte, part gemini.Part) []byte {
	if part.Signature == nil {
		return dst
	}
	return rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":`, part.Signature, "}}")
}

// appendGeminiOdds writes a logprobsResult as the logprobs of a choice; nil
// when it is empty.
func appendGeminiOdds(dst, odds []byte) []byte {
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
		dst = append(appendGeminiToken(append(dst, '{'), chosen), `,"top_logprobs":[`...)
		if i < len(steps) {
			for k, other := range rawjson.Elements(steps[i]) {
				if k > 0 {
					dst = append(dst, ',')
				}
				dst = append(appendGeminiToken(append(dst, '{'), other), '}')
			}
		}
		dst = append(dst, "]}"...)
	}
	if empty {
		return nil
	}
	return append(dst, `],"refusal":null}`...)
}

// appendGeminiToken writes the members of a token and its logarithm. One that
// is no number stands for an impossible token, as the form has it.
func appendGeminiToken(dst, token []byte) []byte {
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

// geminiCalls gives the calls of an answer their ids: the provider's where it
// gave one that is no other call's, else one made of our request's id.
type geminiCalls struct {
	request string
	made    int
	known   []string
}

// maxGeminiIDs is how many ids are told apart, and their longest length. What
// is beyond gets one of ours.
const (
	maxGeminiIDs    = 256
	longestGeminiID = 128
)

// appendCall writes the members of a tool call. Its arguments are the bytes of
// the provider's, without their white space, so that numbers stay what they
// are.
func (g *geminiCalls) appendCall(dst, call []byte) []byte {
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
func (g *geminiCalls) id(given string) string {
	if given != "" && len(given) <= longestGeminiID && len(g.known) < maxGeminiIDs && !slices.Contains(g.known, given) {
		g.known = append(g.known, given)
		return given
	}
	g.made++
	return "call_" + g.request + "_" + strconv.Itoa(g.made)
}
