// Package pairtest owns what the tests of all pairs stand on: requests that are
// opened and checked, a line's stream that is played through a pair, and scenarios
// in files. It is for tests alone.
//
// Invariant: it knows no pair, so that the tests of each can import it.
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

// checked is the request of a body, which has to be good.
func checked[R interface{ Check() error }](t testing.TB, body string, r R, err error) R {
	t.Helper()
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// Chat opens and checks a request of chat completions, which has to be good.
func Chat(t testing.TB, body string) *completions.Request {
	t.Helper()
	r, err := completions.Open([]byte(body))
	return checked(t, body, r, err)
}

// Messages is Chat for the messages form.
func Messages(t testing.TB, body string) *messages.Request {
	t.Helper()
	r, err := messages.Open([]byte(body))
	return checked(t, body, r, err)
}

// Responses is Chat for the responses form.
func Responses(t testing.TB, body string) *responses.Request {
	t.Helper()
	r, err := responses.Open([]byte(body))
	return checked(t, body, r, err)
}

// Members returns the members of these names of a request's body as they stand,
// one a line.
func Members(doc *rawjson.RequestBody, names ...string) string {
	var values []string
	for _, name := range names {
		values = append(values, string(doc.Raw(name)))
	}
	return strings.Join(values, "\n")
}

// Someone is the identity of the answers in tests.
func Someone() wire.Identity {
	return wire.Identity{Request: "req_7", Model: "swift-1", Created: 1700000000}
}

// Billed is a usage with all its parts.
func Billed() wire.Usage {
	return wire.Usage{Prompt: 100, Cached: 60, CacheWrite: 20, CacheWrite1h: 5, Completion: 30, Reasoning: 10}
}

// Body is the pair's body for the line in one piece.
func Body(pair wire.Pair, t wire.Translation) ([]byte, error) {
	text, err := pair.Body(t)
	return text.Bytes(), err
}
