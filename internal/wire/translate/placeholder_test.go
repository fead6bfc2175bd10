package translate

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
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
	} {
		for _, client := range []wire.Form{wire.FormMessages, wire.FormResponses} {
			pair := New(request(t, client, toolRequest(client, "f")), wire.FormChat, pairtest.Identity())
			meter, writer := pair.Events()
			stream := pairtest.Flow([]byte(c.stream), writer, meter, wire.Usage{})
			if client == wire.FormMessages {
				if got := summed(t, stream); got != c.want+" tool_use" {
					t.Errorf("%s: got the calls %s, want %s: %s", name, got, c.want, stream)
				}
				continue
			}
			for _, call := range strings.Fields(c.want) {
				if want := fmt.Sprintf(`"name":"f","arguments":%q`, call[1:]); !strings.Contains(string(stream), want) {
					t.Errorf("%s: got %s, want %s", name, stream, want)
				}
			}
		}
	}
}
