// Package conformance owns the tests common to all providers. Each adapter runs the cases in a test
// of its own, with its own fake. Details of a provider (its fields, codes and sizes) belong in the
// adapter's tests.
//
// It is for tests only. Invariants:
//   - Adapters are opened like in the gateway, through package adapters.
//   - A case runs for every provider, except for a provider without HTTP, which simulates the
//     behaviours itself through its options.
//   - The credential is in every error from a provider, and never in an error from an adapter.
package conformance

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/http1"
)

// Secret is the credential of every line in the suite.
const Secret = "line-credential-0123456789"

// Behaviour is how a provider behaves at the next call.
type Behaviour int

// The behaviours. Those after Page are only for jobs.
const (
	Succeeds     Behaviour = iota
	Stalls                 // no response until the caller disconnects
	Resets                 // the connection is reset before a response
	Breaks                 // the connection is reset in the middle of a stream
	Busy                   // 429
	Unauthorized           // 401, for the gateway's credential
	Missing                // 404, for the model
	Broken                 // 500
	Page                   // 502, with a web page
	LosesAnswer            // accepts the submission, and the connection is reset
	BreaksPolls            // the response to the first poll is 503
	Forgets                // the accepted task is unknown at the first poll
	RefusesLink            // the first download of a result gets an error status
	CutsLink               // the first download is cut off
)

// open opens a line of a provider at a base address, with a new pool of connections.
func open(t testing.TB, provider, base string, options map[string]any) chatcall.Adapter {
	t.Helper()
	return openWith(t, Transport(t), provider, base, options)
}

// Transport returns a pool of connections for one test. Each function in adjust may change the dialer
// and the TLS settings.
func Transport(t testing.TB, adjust ...func(*http.Transport)) *http1.Transport {
	standard := exchange.NewStandardTransport()
	for _, f := range adjust {
		f(standard)
	}
	transport := http1.New(standard)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Ask makes a chat call and reads the whole response.
func Ask(t testing.TB, a chatcall.Adapter, c chatcall.Call) error {
	t.Helper()
	answer, err := a.Chat(t.Context(), c)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

// openWith opens a line with all calls through transport.
func openWith(t testing.TB, transport http.RoundTripper, provider, base string, options map[string]any) chatcall.Adapter {
	t.Helper()
	a, err := adapters.New(adapters.Options{Transport: transport, PublicTransport: transport}).Open(
		upstream.Target{Line: "main", Provider: provider, BaseURL: base, Key: Secret, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a server with answer as its handler.
func serve(t testing.TB, answer http.HandlerFunc) (base string) {
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// document returns a handler for responses with a status and a JSON body.
func document(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the caller may have disconnected
	}
}

// endless returns a handler that writes an endless document. When the caller disconnects, the handler
// sends on disconnected.
func endless(status int, disconnected chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		block := []byte(strings.Repeat(" ", 1<<16))
		for _, err := w.Write([]byte(`{"a":`)); err == nil; {
			_, err = w.Write(block)
		}
		disconnected <- struct{}{}
	}
}

// tooDeep returns a document with too many levels.
func tooDeep() string { return strings.Repeat(`{"error":[`, 20_000) }

// tooManyValues returns a document with too many values.
func tooManyValues() string { return `{"error":[` + strings.Repeat("1,", 200_000) + `1]}` }

// malformed returns invalid response bodies by name. Some bodies contain the credential, because a
// provider may repeat the credential anywhere.
func malformed() map[string]string {
	return map[string]string{
		"an empty body": ``, "an empty object": `{}`, "a list": `[]`, "null": `null`, "a number": `7`, "a page": `<html>` + Secret,
		"half an object": `{"id":`, "half a name": `{"i`, "no UTF-8": "{\"id\":\"\xff\xfe\"}",
		"too deep": tooDeep(), "too many values": tooManyValues(),
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
		"an unrelated document": `{"ok":true,"result":{"answer":42}}`,
	}
}

// checkSecret fails the test if a text about a failure contains the credential.
func checkSecret(t testing.TB, what string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(text, Secret) {
			t.Errorf("%s: the text contains the credential: %.300s", what, text)
		}
	}
}

// asFailure returns an adapter's error as a failure. The test fails if the error is not a failure, is
// too long or contains the credential.
func asFailure(t testing.TB, what string, err error) *upstream.Failure {
	t.Helper()
	var f *upstream.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%s: error %v (%T), want a *upstream.Failure", what, err, err)
	}
	answer := f.Fault()
	checkSecret(t, what, f.Error(), answer.Error(), string(answer.Body()), string(answer.NativeBody()))
	if len(f.Error()) > maxFailureText {
		t.Errorf("%s: the failure's text has %d bytes, want at most %d", what, len(f.Error()), maxFailureText)
	}
	if f.Code == "" || f.Cause == nil {
		t.Errorf("%s: failure %+v, want a code and a cause", what, f)
	}
	return f
}

// maxFailureText is the maximum length of a failure's text, in bytes.
const maxFailureText = 1000

// wantFailure is an expected failure.
type wantFailure struct {
	code   fault.Code
	health upstream.Health
}

// checkFailure fails the test if f has another code or health than w.
func checkFailure(t testing.TB, what string, f *upstream.Failure, w wantFailure) {
	t.Helper()
	if f.Code != w.code || f.Health != w.health {
		t.Errorf("%s: code %s, health %s; want %s, %s (%v)", what, f.Code, f.Health, w.code, w.health, f)
	}
}

// providerInfo returns the catalog's facts about a provider.
func providerInfo(t testing.TB, provider string) upstream.Info {
	t.Helper()
	info, ok := adapters.Providers()[provider]
	if !ok {
		t.Fatalf("%s is not a provider", provider)
	}
	return info
}
