package fault

import (
	"net/http"
	"slices"
	"strings"
)

// Place is where a code can be answered.
type Place int

// The places. All up to Conversations are found below /native too.
const (
	Everywhere    Place = iota
	Keyed               // whatever wants a key of an account
	Models              // what names a model in its body: chat in every form, counts of tokens, submissions
	Admissions          // what asks for money: chat in every form, submissions, and requeues
	Limits              // what has a rate: all of Admissions, and counts of tokens
	Chat                // chat in every form
	Conversations       // the forms of chat that have messages
	Completions         // chat completions
	Images              // submissions of images
	Jobs                // submissions of images and videos
	JobPolls            // the job endpoints, and the operator API's
	Operators           // the operator API
)

// Places are all of them.
func Places() (all []Place) {
	for p := Everywhere; p <= Operators; p++ {
		all = append(all, p)
	}
	return all
}

// String says where that is, for a document.
func (p Place) String() string {
	return [...]string{
		"everywhere", "`/v1` and `/native`", "chat, counts of tokens, images and videos", "chat, images and videos, operators' requeues",
		"chat, counts of tokens, images and videos, operators' requeues", "chat",
		"chat with messages", "chat completions", "submissions of images", "submissions of images and videos", "jobs of images and videos",
		"operator API",
	}[p]
}

// Native tells whether it has endpoints below /native.
func (p Place) Native() bool { return p <= Conversations }

// Operations are those of the contracts, method and path; nil: Everywhere, and Keyed,
// which is all below /v1 and /native.
func (p Place) Operations() []string {
	completions, responses, messages := "POST /v1/chat/completions", "POST /v1/responses", "POST /native/v1/messages"
	images, edits, videos := "POST /v1/images/generations", "POST /v1/images/edits", "POST /v1/videos/generations"
	requeues := "POST /admin/v1/jobs/{id}/requeue"
	switch p {
	case Models:
		return []string{completions, responses, messages, "POST /native/v1/messages/count_tokens", images, edits, videos}
	case Admissions:
		return []string{completions, responses, messages, images, edits, videos, requeues}
	case Limits:
		return append(Models.Operations(), requeues)
	case Chat:
		return []string{completions, responses, messages}
	case Conversations:
		return []string{completions, messages}
	case Completions:
		return []string{completions}
	case Images:
		return []string{images, edits}
	case Jobs:
		return []string{images, edits, videos}
	case JobPolls:
		return []string{"GET /v1/images/jobs/{id}", "GET /v1/videos/jobs/{id}", "GET /admin/v1/jobs/{id}", "POST /admin/v1/jobs/{id}/cancel",
			requeues}
	case Operators:
		return []string{"PUT /admin/v1/catalog"}
	}
	return nil
}

// Has tells whether an operation, method and path, is in the place.
func (p Place) Has(operation string) bool {
	switch _, path, _ := strings.Cut(operation, " "); p {
	case Everywhere:
		return true
	case Keyed:
		return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/native/")
	}
	return slices.Contains(p.Operations(), operation)
}

// Retry says whether a client may send the same request once more.
type Retry int

// Whether a request may be sent once more.
const (
	RetryNever Retry = iota // the same request would be refused again
	RetryLater              // it may succeed by itself in a while
	RetryRoom               // it may when there is room, of which the answer tells when
	RetryOpen               // it will when the model is open again, of which no answer tells when
)

// String says it to a client, with the wait.
func (r Retry) String() string {
	return [...]string{
		"Not unchanged: the answer would most likely be the same.",
		"Yes, unchanged: after `Retry-After` where there is one, else after a second, then after twice as long each time.",
		"Yes, unchanged, when there is room: after `Retry-After` where there is one, else after the seconds that `message` tells; " +
			"not where `x-should-retry` is `false`.",
		"Yes, unchanged, once `GET /v1/models` says that the model is `open`; until then the answer is the same.",
	}[r]
}

// Told says when a code of the table is answered and what helps, as the contract
// shows it; empty: it stands in no table.
func Told(code string) string {
	row, known := Lookup(Code(code))
	if !known {
		return ""
	}
	return row.When + ". " + row.Do
}

// NativeStatus returns the HTTP status of the code below /native.
func (r TableRow) NativeStatus() int {
	if r.Native == "not_found_error" {
		return http.StatusNotFound
	}
	return r.Status
}
