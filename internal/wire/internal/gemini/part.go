// Package gemini owns Google's generateContent form, which lines alone speak:
// what an answer says, the meter of streams and whole answers. Requests of the
// form are written by its translator.
//
// Invariants: every event is read as a whole answer that holds what is new; the
// thoughts are no content; an event costs no allocation.
package gemini

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// What a GenerateContentResponse says, for the meter and the translators. A
// whole answer is one such object, and so is every event of a stream; an event
// holds what is new of the candidates, and the usage so far.

// Object returns the object that an answer or an event holds. Some
// errors come as an array of one object.
func Object(data []byte) []byte {
	for _, first := range rawjson.Elements(data) {
		return first
	}
	return data
}

// Generated is what an object says about one candidate.
type Generated struct {
	Index int    // of the choice
	Parts []byte // an array; nil: none
	Kind  form.FinishKind
	why   []byte // the finishReason, a JSON string
	Odds  []byte // the logprobsResult
}

// ReadCandidate reads a candidate. Where it names no index, its position
// is one; indexes that nobody can ask for count as the last.
func ReadCandidate(raw []byte, position int) Generated {
	c := Generated{Index: min(position, form.MaxChoices-1)}
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				c.Index = int(min(n, form.MaxChoices-1))
			}
		case "content":
			c.Parts = rawjson.Field(value, "parts")
		case "finishReason":
			c.Kind, c.why = kindOfFinish(value), value
		case "logprobsResult":
			c.Odds = value
		}
	}
	return c
}

// Part is one part of a candidate's content. Its fields are nil or
// values as they stand.
type Part struct {
	Text    []byte // a string, not empty
	Call    []byte // functionCall, an object
	Inline  []byte // inlineData, an object
	Thought bool   // the part belongs to the thoughts, not to the answer
	// Signature is what the model wants to see again with the part, a string.
	Signature []byte
}

// ReadPart reads a part.
func ReadPart(raw []byte) (p Part) {
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "text":
			if rawjson.IsText(value) && len(value) > 2 {
				p.Text = value
			}
		case "functionCall":
			if value[0] == '{' {
				p.Call = value
			}
		case "inlineData":
			if value[0] == '{' {
				p.Inline = value
			}
		case "thoughtSignature":
			if rawjson.IsText(value) && len(value) > 2 {
				p.Signature = value
			}
		case "thought":
			p.Thought = string(value) == "true"
		}
	}
	return p
}

// ReadImage returns what stands between the quotes of an image's media
// type and of its base64 data; ok is false for anything but an image.
func ReadImage(inline []byte) (mime, data []byte, ok bool) {
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

// kindOfFinish says what a finishReason, a JSON string, means. Reasons
// that nobody knows are ends like another.
func kindOfFinish(reason []byte) form.FinishKind {
	if !rawjson.IsText(reason) {
		return form.FinishNone
	}
	switch string(reason[1 : len(reason)-1]) {
	case "", "FINISH_REASON_UNSPECIFIED":
		return form.FinishNone
	case "MAX_TOKENS", "CONTINUATION":
		return form.FinishLimit
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return form.FinishFiltered
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
		"TOO_MANY_TOOL_CALLS", "OTHER":
		return form.FinishFailed
	}
	return form.FinishEnded
}

// isBlock tells whether a promptFeedback says that the prompt was
// refused.
func isBlock(feedback []byte) bool {
	reason := rawjson.Field(feedback, "blockReason")
	return rawjson.IsText(reason) && len(reason) > 2 && string(reason) != `"BLOCK_REASON_UNSPECIFIED"`
}

// readUsage reads a usageMetadata. Cached tokens are part of the prompt,
// thoughts are not part of the candidates. counted is false when it does not
// count the candidates: events before the last often leave that out, and its
// completion is that of the thoughts then.
func readUsage(raw []byte) (u form.UsageReport, counted bool) {
	var candidates, toolUse, total int64
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "promptTokenCount":
			u.Prompt, u.CountedPrompt = rawjson.Count(value)
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
		case "promptTokensDetails", "toolUsePromptTokensDetails":
			image, audio := modalities(value)
			u.PromptImage, u.PromptAudio = u.PromptImage+image, u.PromptAudio+audio
		case "cacheTokensDetails": // those cost what cached tokens cost
			image, audio := modalities(value)
			u.PromptImage, u.PromptAudio = u.PromptImage-image, u.PromptAudio-audio
		case "candidatesTokensDetails":
			u.CompletionImage, u.CompletionAudio = modalities(value)
		case "serviceTier":
			u.ServiceTier = tierOf(value)
		}
	}
	u.PromptImage, u.PromptAudio = max(u.PromptImage, 0), max(u.PromptAudio, 0)
	if !u.CountedPrompt {
		toolUse = 0
	}
	u.Prompt = min(u.Prompt+toolUse, rawjson.MaxCount)
	if rest := total - u.Prompt - u.Reasoning; !counted && u.CountedPrompt && rest > 0 {
		candidates, counted = rest, true
	}
	u.Completion = min(candidates+u.Reasoning, rawjson.MaxCount)
	u.CountedCompletion = counted || u.Reasoning > 0
	u.Cached = min(u.Cached, u.Prompt)
	return u, counted
}

// modalities returns the tokens of images and of sound that a list of counts by
// modality names.
func modalities(details []byte) (image, audio int64) {
	for _, one := range rawjson.Elements(details) {
		n, _ := rawjson.Count(rawjson.Field(one, "tokenCount"))
		switch string(rawjson.Field(one, "modality")) {
		case `"IMAGE"`:
			image = min(image+n, rawjson.MaxCount)
		case `"AUDIO"`:
			audio = min(audio+n, rawjson.MaxCount)
		}
	}
	return image, audio
}

// tierOf returns a tier under the name that the other forms have for it.
// The ordinary one is empty.
func tierOf(raw []byte) string {
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

// ReportedUsage is the usage that an object shows at its top level, also where
// it is one of chat completions: hosts mix the two.
func ReportedUsage(object []byte) wire.Usage {
	var r form.Reports
	for name, value := range rawjson.Members(Object(object)) {
		switch string(name) {
		case "usage":
			r.Take(form.ReadUsage(value), true)
		case "usageMetadata":
			u, _ := readUsage(value)
			r.Take(u, true)
		}
	}
	return r.Usage
}
