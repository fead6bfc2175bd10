package chat

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/wire"
)

// TestOverloadInAnAnswer checks in every form of lines that the next line answers if a
// provider reports an overload in an answer with status 200.
func TestOverloadInAnAnswer(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		`"type":"invalid_request_error","message":"Selected model is at capacity. Please try a different model."`,
		`"type":"invalid_request_error","code":null,"param":null,"message":"The model is currently over capacity."`,
		`"type":"overloaded_error","message":"Overloaded"`,
		`"code":503,"message":"The service is out of capacity."`,
		`"code":"429","message":"No capacity available for model x."`,
	} {
		for _, on := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini} {
			client := on
			if on == wire.FormGemini {
				client = wire.FormChat
			}
			for _, stream := range []bool{false, true} {
				bodies := map[string]string{"error": `{"error":{` + words + `}}`, "typed error": `{"type":"error","error":{` + words + `}}`}
				if on == wire.FormResponses {
					bodies["failed"] = strings.Replace(fakeprovider.ResponsesObject("failed", "null"),
						`"code":"server_error","message":"The model failed."`, words, 1)
				}
				for name, body := range bodies {
					t.Run(fmt.Sprintf("%s, stream %v, %s, %s", on, stream, name, words), func(t *testing.T) {
						t.Parallel()
						if stream {
							body = "data: " + body + "\n\n"
						}
						second := reply{pieces: []string{goodWhole(on)}}
						if stream {
							second.pieces, _ = goodStream(on)
						}
						tr := newTrial(t, reply{pieces: []string{body}}, second)
						c := formCall(t, client, on, stream)
						c.Snapshot = twoLines(t, on)
						c.Model, _ = c.Snapshot.Model("swift-1")
						out := tr.send(c)
						if out.err != nil || out.cut || len(tr.provider.calls) != 2 || tr.end().Cost <= 0 {
							t.Errorf("%+v, %d calls, end %+v; the client got %s", out, len(tr.provider.calls), tr.end(), tr.client.body())
						}
					})
				}
			}
		}
	}
}
