package translate

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// chatCalls returns the stream of a chat line with deltas of calls.
func chatCalls(deltas ...string) string {
	var b strings.Builder
	for _, delta := range deltas {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[%s]}}]}\n\n", delta)
	}
	return b.String() + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
}

// TestPlaceholdersOfArguments expects the arguments of calls without the placeholder that some providers
// send first, and each piece with its own call, also if the calls have no numbers of their own.
func TestPlaceholdersOfArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stream, want string }{
		"a placeholder": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"function":{"arguments":"{\"x\":"}}`, `{"index":0,"function":{"arguments":"1}"}}`), `f{"x":1}`},
		"a placeholder in the same piece": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}{\"x\":1}"}}`), `f{"x":1}`},
		"null as placeholder": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"null"}}`,
			`{"index":0,"function":{"arguments":"{\"x\":"}}`, `{"index":0,"function":{"arguments":"1}"}}`), `f{"x":1}`},
		"null as arguments": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"null"}}`), `f{}`},
		"a placeholder with spaces": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":" {} "}}`,
			`{"index":0,"function":{"arguments":"{\"x\":1}"}}`), `f{"x":1}`},
		"one id for two calls of a message": {chatCalls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},` +
			`{"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}`), `f{"x":1} f{"x":2}`},
		"an object as placeholder": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":{}}}`,
			`{"index":0,"function":{"arguments":"{\"x\":1}"}}`), `f{"x":1}`},
		"no arguments": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `f{}`},
		"placeholders, all with index 0": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"function":{"arguments":"{\"x\":1}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"function":{"arguments":"{\"x\":2}"}}`), `f{"x":1} f{"x":2}`},
		"index 0, interleaved by id": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":""}}`, `{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`,
			`{"index":0,"id":"b","function":{"arguments":"{\"x\":2}"}}`), `f{"x":1} f{"x":2}`},
		"no index, together": {chatCalls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},`+
			`{"id":"b","function":{"name":"f","arguments":""}}`,
			`{"function":{"arguments":"{\"x\":2}"}}`), `f{"x":1} f{"x":2}`},
		"no index, placeholders": {chatCalls(`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"function":{"arguments":"{\"x\":1}"}}`,
			`{"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"function":{"arguments":"{\"x\":2}"}}`), `f{"x":1} f{"x":2}`},
		"placeholders, interleaved by index": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":"{\"x\":"}}`,
			`{"index":1,"function":{"arguments":"{\"x\":2}"}}`, `{"index":0,"function":{"arguments":"1}"}}`), `f{"x":1} f{"x":2}`},
		"placeholders, index 0, interleaved by id": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"a","function":{"arguments":"{\"x\":"}}`,
			`{"index":0,"id":"b","function":{"arguments":"{\"x\":2}"}}`, `{"index":0,"id":"a","function":{"arguments":"1}"}}`), `f{"x":1} f{"x":2}`},
		"placeholders, no index, interleaved by id": {chatCalls(`{"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"id":"a","function":{"arguments":"{\"x\":"}}`,
			`{"id":"b","function":{"arguments":"{\"x\":2}"}}`, `{"id":"a","function":{"arguments":"1}"}}`), `f{"x":1} f{"x":2}`},
		"placeholders, no index, interleaved by position": {chatCalls(`{"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"function":{"arguments":"{\"x\":"}}, {"function":{"arguments":"{\"x\":"}}`,
			`{"function":{"arguments":"1}"}},{"function":{"arguments":"2}"}}`), `f{"x":1} f{"x":2}`},
		"placeholders without arguments": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`), `f{} f{}`},
		"a placeholder, the next call has arguments": {chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":"{\"x\":2}"}}`), `f{} f{"x":2}`},
		"index 0, a call is whole before the next": {chatCalls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`,
			`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`), `f{"x":1} f{"x":2}`},
	} {
		for client, stream := range callStreams(t, c.stream) {
			if client == wire.FormMessages {
				if got := summed(t, stream); got != c.want+" tool_use" {
					t.Errorf("%s: got the calls %s, want %s: %s", name, got, c.want, stream)
				}
				continue
			}
			format := `"name":"f","arguments":%q`
			if client == wire.FormGemini {
				format = `"name":"f","args":%s`
			}
			for _, call := range strings.Fields(c.want) {
				if want := fmt.Sprintf(format, call[1:]); !strings.Contains(string(stream), want) {
					t.Errorf("%s, %s: got %s, want %s", client, name, stream, want)
				}
			}
		}
	}
}

// callStreams returns the stream of a chat line as clients of other forms get it.
func callStreams(t *testing.T, stream string) map[wire.Form][]byte {
	t.Helper()
	streams := map[wire.Form][]byte{}
	for _, client := range []wire.Form{wire.FormMessages, wire.FormResponses, wire.FormGemini} {
		var r wire.Request = geminiRequest(t, "", gemini.Method{Model: "m", Stream: true})
		if client != wire.FormGemini {
			r = request(t, client, toolRequest(client, "f"))
		}
		meter, writer := New(r, wire.FormChat, pairtest.Identity()).Events()
		streams[client] = pairtest.Flow([]byte(stream), writer, meter, wire.Usage{})
	}
	return streams
}

// TestAmbiguousArguments expects a stream to fail if a piece of arguments may belong to several calls.
func TestAmbiguousArguments(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"placeholders, index 0, no ids": chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":"{\"x\":1}"}}`,
			`{"index":0,"function":{"arguments":"{\"x\":2}"}}`),
		"placeholders, no index, no ids": chatCalls(
			`{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"{}"}}`,
			`{"function":{"arguments":"{\"x\":1}"}}`, `{"function":{"arguments":"{\"x\":2}"}}`),
		"two calls begun": chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":"}}`, `{"index":0,"function":{"arguments":"1}"}}`),
		"a call begun, an object": chatCalls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`,
			`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":"{\"x\":1}"}}`),
	} {
		for client, out := range callStreams(t, stream) {
			failed := map[wire.Form]string{wire.FormMessages: "event: error", wire.FormResponses: "event: response.failed",
				wire.FormGemini: `{"error":{`}
			if !strings.Contains(string(out), failed[client]) {
				t.Errorf("%s, %s: got %s, want an error at the end", client, name, out)
			}
		}
	}
}
