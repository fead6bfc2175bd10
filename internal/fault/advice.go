package fault

import "net/http"

// Place is where a code can be answered.
type Place int

// The places. Models are the endpoints that ask a model: Chat and Jobs. The first
// four are found below /native too.
const (
	Everywhere  Place = iota
	Models            // chat in every form, and submissions of images and videos
	Chat              // chat in every form
	Completions       // chat completions
	Jobs              // submissions of images and videos
	JobPolls          // the job endpoints, and the operator API's
	Operators         // the operator API
)

// String says where that is, for a document.
func (p Place) String() string {
	return [...]string{"everywhere", "chat, images and videos", "chat", "chat completions",
		"submissions of images and videos", "jobs of images and videos", "operator API"}[p]
}

// Native tells whether it has endpoints below /native.
func (p Place) Native() bool { return p <= Chat }

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
