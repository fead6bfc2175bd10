package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// FuzzChatFromMessages expects a well-formed chat stream for the client with at most one end,
// whatever a provider of the messages form sends.
func FuzzChatFromMessages(f *testing.F) {
	pairtest.Seeds(f, "testdata/chatmessages/chat-*.txtar", "stream")
	f.Fuzz(func(t *testing.T, stream []byte) {
		out := pairtest.Flow(stream, chatWriter(pairtest.Identity(), len(stream)%2 == 0), messages.NewMeter(), pairtest.Usage())
		if err := wiretest.CheckChat(out); err != nil {
			t.Fatalf("%v in\n%s\nof\n%s", err, out, stream)
		}
	})
}

// FuzzMessagesFromChat expects a well-formed messages stream for the client with at most one
// end, whatever a provider of the chat form sends.
func FuzzMessagesFromChat(f *testing.F) {
	pairtest.Seeds(f, "testdata/chatmessages/messages-*.txtar", "stream")
	f.Add([]byte(wiretest.Frames(
		wiretest.Delta(`{"tool_calls":[{"index":1,"id":"a"},{"function":{"name":"f"}},{"id":"a","function":{"arguments":"}{"}}]}`,
			"null"), wiretest.Delta(`{"function_call":{"name":1}}`, `"stop"`))))
	f.Fuzz(func(t *testing.T, stream []byte) {
		out := pairtest.Flow(stream, messagesWriter(pairtest.Identity()), completions.NewMeter(1), pairtest.Usage())
		if err := wiretest.CheckMessages(out); err != nil {
			t.Fatalf("%v in\n%s\nof\n%s", err, out, stream)
		}
	})
}

// FuzzWholeAnswers checks that the client's answer is JSON and can be translated back, whatever a
// provider sends.
func FuzzWholeAnswers(f *testing.F) {
	pairtest.Seeds(f, "testdata/chatmessages/chat-*.txtar", "answer")
	pairtest.Seeds(f, "testdata/chatmessages/messages-*.txtar", "answer")
	f.Fuzz(func(t *testing.T, answer []byte) {
		chat, err := chatWhole(answer, pairtest.Identity(), pairtest.Usage())
		if err == nil {
			if _, err := completions.ReadAnswer(chat); err != nil || !json.Valid(chat) {
				t.Fatalf("%s of %s", chat, answer)
			}
			if back, err := messagesWhole(chat, pairtest.Identity(), pairtest.Usage()); err != nil || !json.Valid(back) {
				t.Fatalf("%s of %s of %s", back, chat, answer)
			}
		}
		native, err := messagesWhole(answer, pairtest.Identity(), pairtest.Usage())
		if err == nil && !json.Valid(native) {
			t.Fatalf("%s of %s", native, answer)
		}
	})
}

// FuzzAsMessages checks that the line's request passes its checks, is always the same, and can be
// translated back, for any request accepted by the checks.
func FuzzAsMessages(f *testing.F) {
	pairtest.Seeds(f, "testdata/chatmessages/chat-*.txtar", "request")
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := completions.Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		for _, in := range []wire.Translation{translation("claude-opus-5-5", true), translation("claude-haiku-4-5", true),
			translation("vendor", false)} {
			out, err := pairtest.Body(newChatOnMessages(r, wire.Identity{}), in)
			if err != nil {
				wiretest.CodeOf(t, err)
				continue
			}
			if again, _ := pairtest.Body(newChatOnMessages(r, wire.Identity{}), in); !bytes.Equal(again, out) {
				t.Fatalf("%s and %s", out, again)
			}
			native, err := messages.Open(out)
			if err == nil {
				err = native.Check()
			}
			if err != nil || !json.Valid(out) {
				t.Fatalf("%v: %s of %s", err, out, body)
			}
			if err := checkTurns(out); err != "" {
				t.Fatalf("%s: %s of %s", err, out, body)
			}
			if back, err := pairtest.Body(newMessagesOnChat(native, wire.Identity{}), in); err != nil || !json.Valid(back) {
				t.Fatalf("%v: %s of %s", err, back, out)
			}
		}
	})
}

// checkTurns checks a history by the rules of the messages form: the user begins, roles alternate,
// no text is blank, and the results of all calls come first in the turn after them.
func checkTurns(body []byte) string {
	open := map[string]bool{}
	want, calls := "user", 0
	for _, message := range rawjson.Elements(rawjson.Field(body, "messages")) {
		role := rawjson.Unquote(rawjson.Field(message, "role"))
		if role != want {
			return "roles do not alternate"
		}
		want = map[string]string{"user": "assistant", "assistant": "user"}[role]
		first, blocks := true, 0
		for _, b := range rawjson.Elements(rawjson.Field(message, "content")) {
			blocks++
			switch rawjson.Unquote(rawjson.Field(b, "type")) {
			case "text":
				first = false
				if strings.TrimSpace(rawjson.Unquote(rawjson.Field(b, "text"))) == "" {
					return "a blank text"
				}
			case "tool_use":
				if open[rawjson.Unquote(rawjson.Field(b, "id"))] {
					return "an id twice"
				}
				open[rawjson.Unquote(rawjson.Field(b, "id"))] = true
				calls++
			case "tool_result":
				if !first || !open[rawjson.Unquote(rawjson.Field(b, "tool_use_id"))] {
					return "a result out of order"
				}
				open[rawjson.Unquote(rawjson.Field(b, "tool_use_id"))] = false
				calls--
			default:
				first = false
			}
		}
		if blocks == 0 || role == "user" && calls != 0 {
			return "a turn is empty, or leaves calls open"
		}
	}
	if want == "user" && calls != 0 {
		return "calls are open at the end"
	}
	return ""
}

// FuzzAsChat checks that the line's request passes its checks and is always the same, for any
// request accepted by the checks.
func FuzzAsChat(f *testing.F) {
	pairtest.Seeds(f, "testdata/chatmessages/messages-*.txtar", "request")
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := messages.Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		for _, in := range []wire.Translation{{Edits: wire.Edits{Model: "v", LimitField: "max_completion_tokens"},
			Reasoning: true}, {Edits: wire.Edits{Model: "v"}}} {
			out, err := pairtest.Body(newMessagesOnChat(r, wire.Identity{}), in)
			if err != nil {
				wiretest.CodeOf(t, err)
				continue
			}
			if again, _ := pairtest.Body(newMessagesOnChat(r, wire.Identity{}), in); !bytes.Equal(again, out) {
				t.Fatalf("%s and %s", out, again)
			}
			chat, err := completions.Open(out)
			if err == nil {
				err = chat.Check()
			}
			if err != nil || !json.Valid(out) {
				t.Fatalf("%v: %s of %s", err, out, body)
			}
		}
	})
}

// BenchmarkChatFromMessages and BenchmarkMessagesFromChat translate a stream of 64 words per
// operation.
func BenchmarkChatFromMessages(b *testing.B) {
	list := []string{`{"type":"message_start","message":{"id":"msg_x","usage":{"input_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`}
	for range 64 {
		list = append(list, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`)
	}
	stream := []byte(wiretest.Frames(append(list, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":64}}`, `{"type":"message_stop"}`)...))
	pair := chatPair(pairtest.Identity(), true)
	pair.Events() // the request is decoded for the line
	b.ReportAllocs()
	for b.Loop() {
		_, w := pair.Events()
		translateStream(b, stream, w)
	}
}

func BenchmarkMessagesFromChat(b *testing.B) {
	list := []string{wiretest.Delta(`{"role":"assistant","content":""}`, "null")}
	for range 64 {
		list = append(list, wiretest.Delta(`{"content":" word"}`, "null"))
	}
	stream := []byte(wiretest.Frames(append(list, wiretest.Delta(`{}`, `"stop"`), "[DONE]")...))
	pair := messagesPair(pairtest.Identity())
	pair.Events() // the request is decoded for the line
	b.ReportAllocs()
	for b.Loop() {
		_, w := pair.Events()
		translateStream(b, stream, w)
	}
}

// translateStream passes a whole stream through a writer, without a meter.
func translateStream(b *testing.B, stream []byte, w wire.Writer) {
	r := sse.NewReader(bytes.NewReader(stream), 1<<20)
	defer r.Close()
	var out []byte
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		out = w.Append(out[:0], e, wire.Frame{})
	}
	if out = w.End(out[:0], pairtest.Usage()); len(out) == 0 {
		b.Fatal("not finished")
	}
}

// TestTranslatorsHardlyAllocate tests ordinary deltas.
func TestTranslatorsHardlyAllocate(t *testing.T) {
	chat, native := messagesWriter(pairtest.Identity()), chatWriter(pairtest.Identity(), false)
	for name, test := range map[string]struct {
		w    wire.Writer
		data string
	}{
		"chat as messages":           {chat, wiretest.Delta(`{"content":" word"}`, "null")},
		"chat as messages, thinking": {chat, wiretest.Delta(`{"reasoning_content":" word"}`, "null")},
		"messages as chat":           {native, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`},
	} {
		e := sse.Event{Data: []byte(test.data)}
		out := test.w.Append(nil, e, wire.Frame{})
		if n := testing.AllocsPerRun(100, func() { out = test.w.Append(out[:0], e, wire.Frame{}) }); n > 0 {
			t.Errorf("%s: %v allocations an event", name, n)
		}
	}
}
