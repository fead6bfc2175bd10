// Package conformance owns what holds for every provider: the cases that each
// adapter runs in a test of its own, over its own fake. What is particular to a
// provider (its fields, its codes, its sizes) stays in the adapter's tests.
//
// It is for tests alone. Invariants:
//   - Adapters are opened as the gateway opens them, by package adapters.
//   - A case holds for every provider: none is left out but for one that speaks
//     no HTTP, which plays the troubles itself, by its options.
//   - The credential is in every error that a provider says, and in none that
//     an adapter returns.
package conformance

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
)

// Secret is the credential of every line that the suite opens.
const Secret = "line-credential-0123456789"

// Trouble is what a provider does to the next call.
type Trouble int

// The troubles. Those after Page meet jobs alone.
const (
	Well         Trouble = iota
	Stalls               // nothing is answered until the caller leaves
	Resets               // the connection is reset before an answer
	Breaks               // it is reset in the middle of a stream
	Busy                 // 429
	Unauthorized         // 401, for our credential
	Missing              // 404, for the model
	Broken               // 500
	Page                 // 502, with a web page
	LosesAnswer          // accepts the submission, and the connection is reset
	BreaksPolls          // the first poll is answered with 503
	Forgets              // the accepted task is unknown at the first poll
	RefusesLink          // the first download of a result is refused
	CutsLink             // the first download breaks off
)

// open opens a line of a provider at a base address, with a pool of connections
// of its own.
func open(t testing.TB, provider, base string, options map[string]any) chatcall.Adapter {
	t.Helper()
	transport := exchange.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	return openBy(t, transport, provider, base, options)
}

// openBy opens a line whose calls go one way.
func openBy(t testing.TB, transport http.RoundTripper, provider, base string, options map[string]any) chatcall.Adapter {
	t.Helper()
	a, err := adapters.New(adapters.Options{Transport: transport, Strangers: transport}).Open(
		upstream.Target{Line: "main", Provider: provider, BaseURL: base, Key: Secret, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// saying starts a provider that answers everything in the same way, and counts
// the calls.
func saying(t testing.TB, answer http.HandlerFunc) (base string) {
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// document answers with a status and a body of JSON.
func document(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the caller may be gone
	}
}

// endless answers with the beginning of a document that has no end. It stops
// when the caller leaves, which it tells.
func endless(status int, left chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		block := []byte(strings.Repeat(" ", 1<<16))
		for _, err := w.Write([]byte(`{"a":`)); err == nil; {
			_, err = w.Write(block)
		}
		left <- struct{}{}
	}
}

// nested is a document that is too deep to be read, long one with too many
// values.
func nested() string { return strings.Repeat(`{"error":[`, 20_000) }
func long() string   { return `{"error":[` + strings.Repeat("1,", 200_000) + `1]}` }

// malformed are bodies that no provider should send. The credential is in some:
// a provider may repeat it anywhere.
func malformed() map[string]string {
	return map[string]string{
		"nothing": ``, "an empty object": `{}`, "a list": `[]`, "null": `null`, "a number": `7`, "a page": `<html>` + Secret,
		"half an object": `{"id":`, "half a name": `{"i`, "no UTF-8": "{\"id\":\"\xff\xfe\"}", "too deep": nested(), "too many values": long(),
		"an error": `{"error":{"message":"bad key ` + Secret + `","type":"` + Secret + `",` +
			`"code":"` + Secret + `","param":"` + Secret + `"}}`,
		"an error, escaped":  `{"error":{"message":"bad key \u006c` + Secret[1:] + `","code":null}}`,
		"an error as a text": `{"error":"bad key ` + Secret + `"}`,
		"an error, bare":     `{"code":"` + Secret + `","message":"bad key ` + Secret + `"}`,
		"a detail":           `{"detail":"bad key ` + Secret + `","title":"` + Secret + `","status":422}`,
		"details":            `{"detail":[{"msg":"bad key ` + Secret + `","type":"` + Secret + `"}]}`,
		"a failed task": `{"id":"t1","name":"models/x/operations/t1","status":"failed","done":true,` +
			`"error":{"code":"X","message":"bad key ` + Secret + `"}}`,
		"a failed output": `{"output":{"task_id":"t1","task_status":"FAILED","code":"X","message":"bad key ` + Secret + `"}}`,
		"a failed picture": `{"data":[{"error":{"code":"X","message":"bad key ` + Secret + `"}}],` +
			`"results":[{"code":"X","message":"bad key ` + Secret + `"}]}`,
		"wrong types": `{"id":[1],"name":{},"request_id":7,"status":{"a":1},"data":"x",` +
			`"output":7,"candidates":7,"error":null,"usage":"x"}`,
		"another's good word": `{"ok":true,"result":{"answer":42}}`,
	}
}

// sees fails the test if the credential is in what is told of a failure.
func sees(t testing.TB, what string, told ...string) {
	t.Helper()
	for _, text := range told {
		if strings.Contains(text, Secret) {
			t.Errorf("%s: the credential is told: %.300s", what, text)
		}
	}
}

// failed returns the failure that an adapter's error has to be, whose text has
// to be short and without the credential.
func failed(t testing.TB, what string, err error) *upstream.Failure {
	t.Helper()
	var f *upstream.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%s: error %v (%T), want a *upstream.Failure", what, err, err)
	}
	answer := f.Fault()
	sees(t, what, f.Error(), answer.Error(), string(answer.Body()), string(answer.NativeBody()))
	if len(f.Error()) > maxTold {
		t.Errorf("%s: the failure says %d bytes", what, len(f.Error()))
	}
	if f.Code == "" || f.Cause == nil {
		t.Errorf("%s: no code or no cause: %+v", what, f)
	}
	return f
}

// maxTold is how long the text of a failure may be.
const maxTold = 1000

// want is what a failure has to say.
type want struct {
	code   fault.Code
	health upstream.Health
}

// judged fails the test if a failure says something else.
func judged(t testing.TB, what string, f *upstream.Failure, w want) {
	t.Helper()
	if f.Code != w.code || f.Health != w.health {
		t.Errorf("%s: code %s, health %s; want %s, %s (%v)", what, f.Code, f.Health, w.code, w.health, f)
	}
}

// infoOf is what the catalog knows of a provider.
func infoOf(t testing.TB, provider string) upstream.Info {
	t.Helper()
	info, ok := adapters.Providers()[provider]
	if !ok {
		t.Fatalf("%s is no provider", provider)
	}
	return info
}
