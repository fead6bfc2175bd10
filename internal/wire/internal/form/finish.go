package form

import (
	"math/bits"
	"slices"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// FinishKind classifies finish reasons.
type FinishKind int

const (
	FinishNone     FinishKind = iota // not finished
	FinishStop                       // an ordinary end
	FinishLimit                      // the token limit
	FinishFiltered                   // the content filter
	FinishFailed                     // a failure of the provider
)

// The words of finish reasons, in lower case. Vendors spell them in many ways, also joined, such as
// "content_filter: RECITATION".
var (
	brokenWords = [...]string{"malformed", "unexpected", "missing", "too_many"}
	filterWords = [...]string{"filter", "safety", "sensitive", "refus", "recitation", "prohibited", "block", "spii", "toxic",
		"guardrail", "armor", "moderat"}
	limitWords  = [...]string{"length", "max_tokens", "max_output", "token_limit", "context_window", "repetition"}
	failedWords = [...]string{"error", "fail", "abort", "cancel", "timeout", "timed_out", "time_limit", "insufficient", "overload",
		"invalid", "unavailable", "deadline", "language", "no_image"}
)

// FinishOf classifies a finish_reason of any vendor. An unknown reason is an ordinary end.
func FinishOf(reason string) FinishKind {
	switch reason {
	case "", "null":
		return FinishNone
	case "stop", "tool_calls", "end_turn", "tool_use", "STOP":
		return FinishStop
	}
	reason = strings.ToLower(reason)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(reason, word) })
	}
	switch {
	case has(brokenWords[:]):
		return FinishFailed
	case has(filterWords[:]):
		return FinishFiltered
	case has(failedWords[:]), reason == "other", reason == "image_other":
		return FinishFailed
	case has(limitWords[:]):
		return FinishLimit
	}
	return FinishStop
}

// IsError reports whether a frame or an answer is an error: `error` at the top level or at a
// vendor's own place, a vendor's status other than 0, a blocked prompt, or a code and a message
// without choices. choices is true if the data has choices.
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

// ChoiceSet is a set of choice indexes below MaxChoices.
type ChoiceSet [MaxChoices / 64]uint64

// Add adds an index. It ignores an index out of range.
func (s *ChoiceSet) Add(i int) {
	if i >= 0 && i < MaxChoices {
		s[i/64] |= 1 << (i % 64)
	}
}

// Size returns the number of indexes.
func (s *ChoiceSet) Size() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
