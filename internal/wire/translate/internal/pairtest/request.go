// Package pairtest owns the code shared by the tests of all pairs: checked requests, a line's
// stream passed through a pair, and scenarios in files. It is for tests only.
//
// Invariant: it imports no pair.
package pairtest

import (
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
)

// mustCheck returns a valid request.
func mustCheck[R interface{ Check() error }](t testing.TB, body string, r R, err error) R {
	t.Helper()
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// Chat opens and checks a valid request of chat completions.
func Chat(t testing.TB, body string) *completions.Request {
	t.Helper()
	r, err := completions.Open([]byte(body))
	return mustCheck(t, body, r, err)
}

// Messages is like Chat for the messages form.
func Messages(t testing.TB, body string) *messages.Request {
	t.Helper()
	r, err := messages.Open([]byte(body))
	return mustCheck(t, body, r, err)
}

// Responses is like Chat for the responses form.
func Responses(t testing.TB, body string) *responses.Request {
	t.Helper()
	r, err := responses.Open([]byte(body))
	return mustCheck(t, body, r, err)
}

// Members returns the named members of a request's body, one per line.
func Members(doc *rawjson.RequestBody, names ...string) string {
	var values []string
	for _, name := range names {
		values = append(values, string(doc.Raw(name)))
	}
	return strings.Join(values, "\n")
}

// Identity returns the identity of the answers in tests.
func Identity() wire.Identity {
	return wire.Identity{Request: "req_7", Model: "swift-1", Created: 1700000000}
}

// Usage returns a usage with all its parts.
func Usage() wire.Usage {
	return wire.Usage{Prompt: 100, Cached: 60, CacheWrite: 20, CacheWrite1h: 5, Completion: 30, Reasoning: 10}
}

// Body returns the pair's body for the line.
func Body(pair wire.Pair, t wire.Translation) ([]byte, error) {
	text, err := pair.Body(t)
	return text.Bytes(), err
}
