package wire

import (
	"tollgate/internal/wire/rawjson"
)

// What a GenerateContentResponse says, for the meter and the translators. A
// whole answer is one such object, and so is every event of a stream; an event
// holds what is new of the candidates, and the usage so far.

// geminiObject returns the object that an answer or an event holds. Some
// errors come as an array of one object.
func geminiObject(data []byte) []byte {
	for _, first := range rawjson.Elements(data) {
		return first
	}
	return data
}

// geminiCandidate is what an object says about one candidate.
type geminiCandidate struct {
	index int    // of the choice
	parts []byte // an array; nil: none
	kind  finishKind
	why   []byte // the finishReason, a JSON string
	odds  []byte // the logprobsResult
}

// readGeminiCandidate reads a candidate. Where it names no index, its position
// is one; indexes that nobody can ask for count as the last.
func readGeminiCandidate(raw []byte, position int) geminiCandidate {
	c := geminiCandidate{index: min(position, maxChoices-1)}
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				c.index = int(min(n, maxChoices-1))
			}
		case "content":
			c.parts = rawjson.Field(value, "parts")
		case "finishReason":
			c.kind, c.why = kindOfGeminiFinish(value), value
		case "logprobsResult":
			c.odds = value
		}
	}
	return c
}

// geminiPart is one part of a candidate's content. Its fields are nil or
// values as they stand.
type geminiPart struct {
	text    []byte // a string, not empty
	call    []byte // functionCall, an object
	inline  []byte // inlineData, an object
	thought bool   // the part belongs to the thoughts, not to the answer
}

func readGeminiPart(raw []byte) (p geminiPart) {
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "text":
			if rawjson.IsText(value) && len(value) > 2 {
				p.text = value
			}
		case "functionCall":
			if value[0] == '{' {
				p.call = value
			}
		case "inlineData":
			if value[0] == '{' {
				p.inline = value
			}
		case "thought":
			p.thought = string(value) == "true"
		}
	}
	return p
}

// readGeminiImage returns what stands between the quotes of an image's media
// type and of its base64 data; ok is false for anything but an image.
func readGeminiImage(inline []byte) (mime, data []byte, ok bool) {
	const image = `"image/`
	for name, value := range rawjson.Members(inline) {
		switch {
		case !rawjson.IsText(value):
		case string(name) == "mimeType":
			if len(value) > len(image) && string(value[:len(image)]) == image {
				mime = value[1 : len(value)-1]
			}
		case string(name) == "data":
			data = value[1 : len(value)-1]
		}
	}
	return mime, data, mime != nil && len(data) > 0
}

// kindOfGeminiFinish says what a finishReason, a JSON string, means. Reasons
// that nobody knows are ends like another.
func kindOfGeminiFinish(reason []byte) finishKind {
	if !rawjson.IsText(reason) {
		return finishNone
	}
	switch string(reason[1 : len(reason)-1]) {
	case "", "FINISH_REASON_UNSPECIFIED":
		return finishNone
	case "MAX_TOKENS", "CONTINUATION":
		return finishLimit
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return finishFiltered
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
		"TOO_MANY_TOOL_CALLS", "OTHER":
		return finishFailed
	}
	return finishEnded
}

// isGeminiBlock tells whether a promptFeedback says that the prompt was
// refused.
func isGeminiBlock(feedback []byte) bool {
	reason := rawjson.Field(feedback, "blockReason")
	return rawjson.IsText(reason) && len(reason) > 2 && string(reason) != `"BLOCK_REASON_UNSPECIFIED"`
}

// readGeminiUsage reads a usageMetadata. Cached tokens are part of the prompt,
// thoughts are not part of the candidates. counted is false when it does not
// count the candidates: events before the last often leave that out, and its
// completion is that of the thoughts then.
func readGeminiUsage(raw []byte) (u report, counted bool) {
	var candidates, toolUse, total int64
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "promptTokenCount":
			u.Prompt, u.prompt = rawjson.Count(value)
		case "toolUsePromptTokenCount":
			toolUse, _ = rawjson.Count(value)
		case "cachedContentTokenCount":
			u.Cached, _ = rawjson.Count(value)
		case "candidatesTokenCount":
			candidates, counted = rawjson.Count(value)
		case "thoughtsTokenCount":
			u.Reasoning, _ = rawjson.Count(value)
		case "totalTokenCount":
			total, _ = rawjson.Count(value)
		case "serviceTier":
			u.ServiceTier = geminiTier(value)
		}
	}
	if !u.prompt {
		toolUse = 0
	}
	u.Prompt = min(u.Prompt+toolUse, rawjson.MaxCount)
	if rest := total - u.Prompt - u.Reasoning; !counted && u.prompt && rest > 0 {
		candidates, counted = rest, true
	}
	u.Completion = min(candidates+u.Reasoning, rawjson.MaxCount)
	u.completion = counted || u.Reasoning > 0
	u.Cached = min(u.Cached, u.Prompt)
	return u, counted
}

// geminiTier returns a tier under the name that the other forms have for it.
// The ordinary one is empty.
func geminiTier(raw []byte) string {
	switch rawjson.Unquote(raw) {
	case "flex", "FLEX":
		return "flex"
	case "priority", "PRIORITY":
		return "priority"
	case "standard", "STANDARD":
		return "standard"
	}
	return ""
}

// geminiReported is the usage that an object shows at its top level, also where
// it is one of chat completions: hosts mix the two.
func geminiReported(object []byte) Usage {
	var r reports
	for name, value := range rawjson.Members(geminiObject(object)) {
		switch string(name) {
		case "usage":
			r.take(readUsage(value), true)
		case "usageMetadata":
			u, _ := readGeminiUsage(value)
			r.take(u, true)
		}
	}
	return r.usage
}
