// Package gemini owns Google's generateContent form: requests, their check and edits, answers, and the
// meter and the editor of streams.
//
// Invariants: every event is read as a whole answer with new content; thoughts are not content; reading
// an event costs no allocation; a member of a request that no check reads is rejected.
package gemini

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// The types below are the contents of a GenerateContentResponse, for the meter and the translators.
// A whole answer is one such object, and so is every event of a stream, with new content of the
// candidates and the usage so far.

// Object returns the object of an answer or an event. Some errors come as an array of one object.
func Object(data []byte) []byte {
	for _, first := range rawjson.Elements(data) {
		return first
	}
	return data
}

// AnswerCandidate is one candidate in an object.
type AnswerCandidate struct {
	Index    int    // the index of the choice
	Parts    []byte // an array, or nil
	Kind     form.FinishKind
	reason   []byte // the finishReason, a JSON string
	Logprobs []byte // the logprobsResult
	// Grounding is the groundingMetadata, URLs the urlContextMetadata: what hosted tools found.
	Grounding, URLs []byte
}

// ReadCandidate reads a candidate. Its index defaults to its position, and is limited to
// MaxChoices.
func ReadCandidate(raw []byte, position int) AnswerCandidate {
	c := AnswerCandidate{Index: min(position, form.MaxChoices-1)}
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				c.Index = int(min(n, form.MaxChoices-1))
			}
		case "content":
			c.Parts = rawjson.Field(value, "parts")
		case "finishReason":
			c.Kind, c.reason = finishOf(value), value
		case "logprobsResult":
			c.Logprobs = value
		case "groundingMetadata":
			c.Grounding = value
		case "urlContextMetadata":
			c.URLs = value
		}
	}
	return c
}

// Part is one part of a candidate's content. Its fields are raw values, or nil.
type Part struct {
	Text    []byte // a string, not empty
	Call    []byte // functionCall, an object
	Inline  []byte // inlineData, an object
	Code    []byte // executableCode, an object: a call of the hosted tool
	Thought bool   // the part belongs to the thoughts, not to the answer
	// Signature is a string the model expects back with the part.
	Signature []byte
}

// ReadPart reads one part of a candidate.
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
		case "executableCode":
			if value[0] == '{' {
				p.Code = value
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

// ReadImage returns the contents of the JSON strings of an image's media type and base64 data. ok
// is false if inline is not an image.
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

// finishOf classifies a finishReason, a JSON string.
func finishOf(reason []byte) form.FinishKind {
	if !rawjson.IsText(reason) {
		return form.FinishNone
	}
	switch string(reason[1 : len(reason)-1]) {
	case "", "FINISH_REASON_UNSPECIFIED":
		return form.FinishNone
	case "CONTINUATION":
		return form.FinishLimit
	}
	return form.FinishOf(rawjson.Unquote(reason))
}

// isBlock reports whether a promptFeedback says that the prompt was rejected.
func isBlock(feedback []byte) bool {
	reason := rawjson.Field(feedback, "blockReason")
	return rawjson.IsText(reason) && len(reason) > 2 && string(reason) != `"BLOCK_REASON_UNSPECIFIED"`
}

// readUsage reads a usageMetadata. Cached tokens are part of the prompt; thoughts are not part of
// the candidates. If the usageMetadata has no count of candidates, which is common before the last
// event, complete is false and the completion has only the thoughts.
func readUsage(raw []byte) (u form.UsageReport, complete bool) {
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
			candidates, complete = rawjson.Count(value)
		case "thoughtsTokenCount":
			u.Reasoning, _ = rawjson.Count(value)
		case "totalTokenCount":
			total, _ = rawjson.Count(value)
		case "promptTokensDetails", "toolUsePromptTokensDetails":
			image, audio := modalities(value)
			u.PromptImage, u.PromptAudio = u.PromptImage+image, u.PromptAudio+audio
		case "cacheTokensDetails": // these tokens have the price of cached tokens
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
	if rest := total - u.Prompt - u.Reasoning; !complete && u.CountedPrompt && rest > 0 {
		candidates, complete = rest, true
	}
	u.Completion = min(candidates+u.Reasoning, rawjson.MaxCount)
	u.CountedCompletion = complete || u.Reasoning > 0
	u.Cached = min(u.Cached, u.Prompt)
	return u, complete
}

// modalities returns the tokens of images and audio in a list of counts by modality.
func modalities(details []byte) (image, audio int64) {
	for _, detail := range rawjson.Elements(details) {
		n, _ := rawjson.Count(rawjson.Field(detail, "tokenCount"))
		switch string(rawjson.Field(detail, "modality")) {
		case `"IMAGE"`:
			image = min(image+n, rawjson.MaxCount)
		case `"AUDIO"`:
			audio = min(audio+n, rawjson.MaxCount)
		}
	}
	return image, audio
}

// tierOf returns a tier under its name in the other forms, or "" for the ordinary tier.
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

// ReportedUsage returns the usage at the top level of an object, in the format of Gemini or of chat
// completions, because some hosts mix the two formats.
func ReportedUsage(object []byte) wire.Usage {
	var r form.Reports
	for name, value := range rawjson.Members(Object(object)) {
		switch string(name) {
		case "usage":
			r.Add(form.ReadUsage(value), true)
		case "usageMetadata":
			u, _ := readUsage(value)
			r.Add(u, true)
		}
	}
	return r.Usage
}
