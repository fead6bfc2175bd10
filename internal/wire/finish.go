package wire

import (
	"math/bits"

	"tollgate/internal/wire/rawjson"
)

// finishKind says what a finish_reason means.
type finishKind int

const (
	finishNone     finishKind = iota // no end
	finishEnded                      // an end like another
	finishLimit                      // the limit of tokens was reached
	finishFiltered                   // the content filter ended it
	finishFailed                     // the provider failed
)

func kindOfFinish(reason string) finishKind {
	switch reason {
	case "", "null":
		return finishNone
	case "length", "max_tokens", "model_length", "model_context_window_exceeded":
		return finishLimit
	case "content_filter", "sensitive", "refusal",
		"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return finishFiltered
	case "error", "network_error", "insufficient_system_resource",
		"OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return finishFailed
	}
	return finishEnded
}

// isError tells whether a frame or an answer reports an error: `error` at the
// top level or where single vendors put it, a status of theirs that is not 0,
// a prompt that was blocked, or a code and a message instead of choices.
func isError(data []byte, choices bool) bool {
	var code, message bool
	for name, value := range rawjson.Members(data) {
		if rawjson.IsNull(value) {
			continue
		}
		switch string(name) {
		case "error":
			if string(value) != `""` && string(value) != "{}" && string(value) != "false" {
				return true
			}
		case "x_groq":
			if rawjson.Field(value, "error") != nil {
				return true
			}
		case "base_resp":
			if status := rawjson.Field(value, "status_code"); status != nil && string(status) != "0" {
				return true
			}
		case "promptFeedback":
			if rawjson.IsText(rawjson.Field(value, "blockReason")) {
				return true
			}
		case "choices":
			for _, choice := range rawjson.Elements(value) {
				if rawjson.Field(choice, "error") != nil {
					return true
				}
			}
		case "code":
			code = true
		case "msg", "message":
			message = true
		}
	}
	return code && message && !choices
}

// maxChoices is the largest `n`.
const maxChoices = 128

// choiceSet is a set of choice indexes below maxChoices.
type choiceSet [maxChoices / 64]uint64

func (s *choiceSet) add(i int) {
	if i >= 0 && i < maxChoices {
		s[i/64] |= 1 << (i % 64)
	}
}

func (s *choiceSet) size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
