package chat

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
)

// refusedAnswer is a refusal of a line's form with a usage of 1000 tokens of
// prompt, whole or as the pieces of a stream.
func refusedAnswer(on wire.Form, stream bool, output int, text string) []string {
	switch {
	case on == wire.FormMessages && stream:
		events := []string{fakeprovider.NativeStart(1000), fakeprovider.NativeEvent("content_block_start",
			`"index":0,"content_block":{"type":"text","text":""}`)}
		if text != "" {
			events = append(events, fakeprovider.NativeText(text))
		}
		return append(events, fakeprovider.NativeEvent("content_block_stop", `"index":0`),
			fakeprovider.NativeEnd("refusal", output), fakeprovider.NativeStop())
	case on == wire.FormMessages:
		content := ""
		if text != "" {
			content = fmt.Sprintf(`{"type":"text","text":%q}`, text)
		}
		return []string{fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"vendor-model","content":[%s],`+
			`"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":null},`+
			`"usage":{"input_tokens":1000,"output_tokens":%d}}`, content, output)}
	}
	items := []string{}
	if text != "" {
		items = append(items, fakeprovider.ResponsesMessage(text))
	}
	object := fakeprovider.ResponsesObject("incomplete", fakeprovider.ResponsesUsage(1000, output), items...)
	object = strings.Replace(object, `"max_output_tokens"`, `"content_filter"`, 1)
	if !stream {
		return []string{object}
	}
	return fakeprovider.ResponsesEvents(
		fakeprovider.ResponsesEvent("response.created", `"response":`+fakeprovider.ResponsesObject("in_progress", "null")),
		fakeprovider.ResponsesEvent("response.incomplete", `"response":`+object)).Raw
}

// TestRefusalWithoutOutputIsFree checks that a refusal before any output is free, because the
// vendor does not bill it, and that a refusal after some output is charged.
func TestRefusalWithoutOutputIsFree(t *testing.T) {
	t.Parallel()
	for _, client := range []wire.Form{wire.FormMessages, wire.FormResponses} {
		for _, on := range []wire.Form{wire.FormMessages, wire.FormResponses} {
			for _, stream := range []bool{false, true} {
				for _, c := range []struct {
					name   string
					output int
					text   string
					cost   int64
				}{
					{"no output", 0, "", 0},
					{"a little hidden output", 3, "", 1000e3 + 30e3},
					{"hidden output", 200, "", 1000e3 + 2000e3},
					{"some output", 5, "Well, first", 1000e3 + 50e3},
				} {
					t.Run(fmt.Sprintf("%s on %s, stream %v, %s", client, on, stream, c.name), func(t *testing.T) {
						t.Parallel()
						tr := newTrial(t, reply{pieces: refusedAnswer(on, stream, c.output, c.text)})
						tr.mustSend(formCall(t, client, on, stream))
						end := tr.books.ends[0]
						if end.Outcome != ledger.Billed || int64(end.Cost) != c.cost {
							t.Errorf("outcome %d, charged %s, want %d nano-dollars; the client got %s", end.Outcome, end.Cost, c.cost, tr.client.body())
						}
					})
				}
			}
		}
	}
}
