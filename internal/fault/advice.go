package fault

import (
	"net/http"
	"slices"
	"strings"
)

// Scope is a set of endpoints that can return a code.
type Scope int

// The scopes. All up to Conversations include endpoints below /native.
const (
	Everywhere    Scope = iota
	ClientAPI           // the endpoints for the keys of accounts
	Models              // requests with a model in the body: calls, token counts, job submissions
	Admissions          // requests that reserve money: calls, job submissions, requeues
	Limits              // requests under a rate limit: all of Admissions, and token counts
	Calls               // requests answered at once: chat in every form, and other kinds of models
	Outputs             // requests with a limit of output tokens: chat in every form, and counts of its tokens
	Chat                // chat in every form
	Conversations       // the chat forms with messages
	Completions         // chat completions
	Images              // submissions of images
	Jobs                // submissions of images and videos
	JobPolls            // the job endpoints, and the operator API's
	Operators           // the operator API
)

// Scopes returns all scopes.
func Scopes() (all []Scope) {
	for p := Everywhere; p <= Operators; p++ {
		all = append(all, p)
	}
	return all
}

// String describes the scope for the documentation.
func (p Scope) String() string {
	return [...]string{
		"everywhere", "`/v1` and `/native`", "calls, counts of tokens, images and videos", "calls, images and videos, operators' requeues",
		"calls, counts of tokens, images and videos, operators' requeues", "calls", "chat and counts of its tokens", "chat",
		"chat with messages", "chat completions", "submissions of images", "submissions of images and videos", "jobs of images and videos",
		"operator API",
	}[p]
}

// Native reports whether the scope has endpoints below /native.
func (p Scope) Native() bool { return p <= Conversations }

// Operations returns the method and path of each operation in the contracts. It returns nil for
// Everywhere and ClientAPI, since ClientAPI covers all of /v1, /v2 and /native.
func (p Scope) Operations() []string {
	completions, responses, messages := "POST /v1/chat/completions", "POST /v1/responses", "POST /native/v1/messages"
	images, edits, videos := "POST /v1/images/generations", "POST /v1/images/edits", "POST /v1/videos/generations"
	requeues := "POST /admin/v1/jobs/{id}/requeue"
	switch p {
	case Models:
		return append(Calls.Operations(), "POST /native/v1/messages/count_tokens", "POST /v1/responses/input_tokens", images, edits, videos)
	case Admissions:
		return append(Calls.Operations(), images, edits, videos, requeues)
	case Limits:
		return append(Models.Operations(), requeues)
	case Calls:
		return []string{completions, responses, messages, "POST /v1/embeddings", "POST /v1/rerank", "POST /v2/rerank", "POST /v1/moderations",
			"POST /v1/audio/speech", "POST /v1/audio/transcriptions", "POST /v1/audio/translations"}
	case Outputs:
		return append(Chat.Operations(), "POST /v1/responses/input_tokens")
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

// Has reports whether the scope includes operation, a method and path. The Gemini form is in no scope
// except Everywhere; its errors have the codes of chat in their details.
func (p Scope) Has(operation string) bool {
	switch _, path, _ := strings.Cut(operation, " "); p {
	case Everywhere:
		return true
	case ClientAPI:
		return strings.HasPrefix(path, "/v1/") && !IsGoogle(path) || strings.HasPrefix(path, "/v2/") || strings.HasPrefix(path, "/native/")
	}
	return slices.Contains(p.Operations(), operation)
}

// Retry is the advice to a client about sending the same request again.
type Retry int

// Whether a client may send a request again.
const (
	RetryNever Retry = iota // the same request would be refused again
	RetryLater              // the same request may succeed later
	RetryRoom               // yes, when capacity is free; the response has Retry-After
	RetryOpen               // yes, when the model is open again; no response says when
)

// String returns the advice to a client, with the wait.
func (r Retry) String() string {
	return [...]string{
		"Not unchanged: the answer would most likely be the same.",
		"Yes, unchanged: after `Retry-After` where there is one, else after a second, then after twice as long each time.",
		"Yes, unchanged, when there is room: after `Retry-After` where there is one, else after the seconds that `message` tells; " +
			"not where `x-should-retry` is `false`.",
		"Yes, unchanged, once `GET /v1/models` says that the model is `open`; until then the answer is the same.",
	}[r]
}

// Explain returns the contract's text for code: when the code is returned and what to do. It
// returns "" for an unknown code.
func Explain(code string) string {
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
