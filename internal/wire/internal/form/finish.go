package form

import (
	"math/bits"

	"tollgate/internal/wire/rawjson"
)

// FinishKind says what a finish_reason means.
type FinishKind int

const (
	FinishNone     FinishKind = iota // no end
	FinishEnded                      // an end like another
	FinishLimit                      // the limit of tokens was reached
	FinishFiltered                   // the content filter ended it
	FinishFailed                     // the provider failed
)

// KindOfFinish says what a finish_reason means, in every vendor's words.
func KindOfFinish(reason string) FinishKind {
	switch reason {
	case "", "null":
		return FinishNone
	case "length", "max_tokens", "model_length", "model_context_window_exceeded":
		return FinishLimit
	case "content_filter", "sensitive", "refusal",
		"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return FinishFiltered
	case "error", "network_error", "insufficient_system_resource",
		"OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return FinishFailed
	}
	return FinishEnded
}

// IsError tells whether a frame or an answer reports an error: `error` at the
// top level or where single vendors put it, a status of theirs that is not 0,
// a prompt that was blocked, or a code and a message instead of choices.
func IsError(data []byte, choices bool) bool {
	var code, message bool
	for name, value := range rawjson.Members(data) {
		if rawjson.NonNull(value) == nil {
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

// MaxChoices is the largest `n`.
const MaxChoices = 128

// ChoiceSet is a set of choice indexes below maxChoices.
type ChoiceSet [MaxChoices / 64]uint64

// Add adds an index; those beyond MaxChoices are left out.
func (s *ChoiceSet) Add(i int) {
	if i >= 0 && i < MaxChoices {
		s[i/64] |= 1 << (i % 64)
	}
}

// Size returns how many there are.
func (s *ChoiceSet) Size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
