package translate

import (
	"fmt"
	"math/rand/v2"
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

// deltaPieces are valid and invalid deltas of the chat form.
func deltaPieces() []string {
	pieces := []string{
		`{"content":"x"}`, `{"content":""}`,
		`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]},{"type":"text","text":"y"}]}`,
		`{"reasoning_content":"h"}`, `{"reasoning":"h","reasoning_details":[{"text":"h"}]}`, `{"refusal":"no"}`,
		`{"role":"assistant"}`, `{}`, `null`,
		`{"content":5,"tool_calls":{}}`, `{"tool_calls":[1,null,{}]}`, `{"function_call":{"name":"old","arguments":"{}"}}`,
		`{"function_call":{"arguments":"}"}}`,
	}
	for _, index := range []string{`"index":0,`, `"index":1,`, `"index":2,`, ``} {
		for _, id := range []string{`"id":"a",`, `"id":"b.1",`, `"id":"",`, ``} {
			for _, function := range []string{`{"name":"f"}`, `{"name":"f","arguments":""}`, `{"name":"g","arguments":"{}"}`,
				`{"arguments":"{\"a\":"}`, `{"arguments":"[\"}\"]}"}`, `{"arguments":{"o":1}}`, `{"name":null,"arguments":"\\"}`} {
				pieces = append(pieces, fmt.Sprintf(`{"tool_calls":[{%s%s"function":%s}]}`, index, id, function))
			}
		}
	}
	return pieces
}

func TestMixedChatStreamsAreWellFormed(t *testing.T) {
	t.Parallel()
	pieces := deltaPieces()
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		var list []string
		for _, piece := range pairtest.RandomPieces(r, pieces, 14) {
			list = append(list, wiretest.Delta(piece, []string{"null", "null", "null", "null", "null", "null", `""`, `"null"`, `"stop"`}[r.IntN(9)]))
		}
		list = append(list, wiretest.Delta(`{}`, []string{`"stop"`, `"length"`, `"tool_calls"`, `"content_filter"`, "null"}[r.IntN(5)]), "[DONE]")
		m := completions.NewMeter(1)
		w := messagesWriter(pairtest.Identity())
		out := pairtest.Flow([]byte(wiretest.Frames(list...)), w, m, pairtest.Usage())
		if err := wiretest.CheckMessages(out); err != nil {
			t.Errorf("%v in\n%s\nof\n%s", err, out, strings.Join(list, "\n"))
		}
		if ended := strings.HasSuffix(string(out), sse.MessageStop); ended != (m.Complete() && w.Err() == nil) {
			t.Errorf("ended %v in\n%s\nof\n%s", ended, out, strings.Join(list, "\n"))
		}
		// The output can be translated back.
		back := pairtest.Flow(out, chatWriter(pairtest.Identity(), true), messages.NewMeter(), pairtest.Usage())
		if err := wiretest.CheckChat(back); err != nil {
			t.Errorf("%v in\n%s\nof\n%s", err, back, out)
		}
	})
}

func TestMixedMessagesStreamsAreWellFormed(t *testing.T) {
	t.Parallel()
	pieces := []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`, `{"type":"ping"}`, `{"type":"message_stop"}`,
		`{"type":"unheard_of","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`,
		`{"type":"message_delta","delta":{"stop_reason":null}}`,
	}
	for index := range 3 {
		for _, block := range []string{`{"type":"text","text":""}`, `{"type":"text","text":"x"}`,
			`{"type":"thinking","thinking":"h"}`, `{"type":"redacted_thinking","data":"D"}`,
			`{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","input":{"o":"\n"}}`,
			`{"type":"server_tool_use","id":"s"}`, `null`} {
			pieces = append(pieces, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block))
		}
		for _, delta := range []string{`{"type":"text_delta","text":"x"}`, `{"type":"thinking_delta","thinking":"h"}`,
			`{"type":"signature_delta","signature":"S"}`,
			`{"type":"input_json_delta","partial_json":"{\"a\":"}`, `{"type":"input_json_delta","partial_json":""}`,
			`{"type":"citations_delta","citation":{}}`, `5`} {
			pieces = append(pieces, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta))
		}
		pieces = append(pieces, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
	}
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		list := pairtest.RandomPieces(r, pieces, 20)
		m := messages.NewMeter()
		out := pairtest.Flow([]byte(wiretest.Frames(list...)), chatWriter(pairtest.Identity(), r.IntN(2) == 0), m, pairtest.Usage())
		if err := wiretest.CheckChat(out); err != nil {
			t.Errorf("%v in\n%s\nof\n%s", err, out, strings.Join(list, "\n"))
		}
		if ended := strings.HasSuffix(string(out), sse.Done); ended != m.Complete() {
			t.Errorf("ended %v in\n%s\nof\n%s", ended, out, strings.Join(list, "\n"))
		}
		back := pairtest.Flow(out, messagesWriter(pairtest.Identity()), completions.NewMeter(1), pairtest.Usage())
		if err := wiretest.CheckMessages(back); err != nil {
			t.Errorf("%v in\n%s\nof\n%s", err, back, out)
		}
	})
}

func TestMixedChatHistoriesAreMended(t *testing.T) {
	t.Parallel()
	pieces := []string{
		`{"role":"system","content":"s"}`, `{"role":"developer","content":[{"type":"text","text":"d","cache_control":{"type":"ephemeral"}}]}`,
		`{"role":"user","content":"u"}`, `{"role":"user","content":""}`,
		`{"role":"user","content":[{"type":"text","text":" "},{"type":"image_url","image_url":{"url":"https://e.com"}}]}`,
		`{"role":"assistant","content":"a "}`, `{"role":"assistant","content":null}`,
		`{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"2","function":{"name":"f"}},{"id":"1.x","function":{"name":"g","arguments":"["}},` +
			`{"function":{"name":"h"}}]}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`,
		`{"role":"tool","tool_call_id":"1","content":"r"}`, `{"role":"tool","tool_call_id":"2","content":""}`,
		`{"role":"tool","tool_call_id":"1.x","content":[{"type":"text","text":"r"}]}`, `{"role":"tool","content":"r"}`,
	}
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		body := wiretest.ChatMessages(`[` + strings.Join(append(pairtest.RandomPieces(r, pieces, 12), pieces[r.IntN(len(pieces))]), ",") + `]`)
		out, err := pairtest.Body(newChatOnMessages(pairtest.Chat(t, body),
			wire.Identity{}), translation([]string{"claude-opus-5-5", "vendor"}[r.IntN(2)], r.IntN(2) == 0))
		if err != nil {
			t.Fatal(err)
		}
		if wrong := checkTurns(out); wrong != "" {
			t.Errorf("%s in\n%s\nof\n%s", wrong, out, body)
		}
		back, err := pairtest.Body(newMessagesOnChat(pairtest.Messages(t, string(out)), wire.Identity{}), wire.Translation{})
		if err != nil {
			t.Fatal(err)
		}
		if wrong := checkDialogue(back); wrong != "" {
			t.Errorf("%s in\n%s\nof\n%s", wrong, back, out)
		}
	})
}

func TestMixedMessagesHistoriesAreMended(t *testing.T) {
	t.Parallel()
	pieces := []string{
		`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, `{"role":"user","content":[]}`,
		`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":[{"type":"text","text":" "}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":""},{"type":"text","text":"a"},` +
			`{"type":"tool_use","id":"1","name":"f","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"2","name":"f","input":{}},{"type":"tool_use","id":"3","name":"f"},` +
			`{"type":"text","text":"b"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"u"}]}`,
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"image",` +
			`"source":{"type":"url","url":"https://e.com"}}]}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"3","is_error":true},` +
			`{"type":"tool_result","tool_use_id":"2","content":[]}]}`,
	}
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		body := nativeAsk(`[`+strings.Join(append(pairtest.RandomPieces(r, pieces, 12), pieces[r.IntN(len(pieces))]), ",")+`]`, ``)
		out, err := pairtest.Body(newMessagesOnChat(pairtest.Messages(t, body), wire.Identity{}), wire.Translation{Reasoning: r.IntN(2) == 0})
		if err != nil {
			t.Fatal(err)
		}
		if wrong := checkDialogue(out); wrong != "" {
			t.Errorf("%s in\n%s\nof\n%s", wrong, out, body)
		}
	})
}

// checkDialogue checks a history by the rules of providers of the chat form: turns of users and
// assistants alternate, none is empty, the result of every call follows it directly, and the
// assistant does not come last.
func checkDialogue(body []byte) string {
	open := map[string]int{}
	waiting, last := 0, ""
	for _, message := range rawjson.Elements(rawjson.Field(body, "messages")) {
		role := rawjson.Unquote(rawjson.Field(message, "role"))
		content, calls := rawjson.Field(message, "content"), rawjson.Field(message, "tool_calls")
		switch {
		case role == "tool":
			id := rawjson.Unquote(rawjson.Field(message, "tool_call_id"))
			if open[id] == 0 {
				return "a result of nothing"
			}
			open[id]--
			waiting--
		case waiting > 0:
			return "calls are open"
		case role == last && role != "system":
			return "two turns of one role"
		case content == nil && calls == nil || rawjson.IsText(content) && strings.TrimSpace(rawjson.Unquote(content)) == "":
			return "an empty turn"
		}
		for _, call := range rawjson.Elements(calls) {
			open[rawjson.Unquote(rawjson.Field(call, "id"))]++
			waiting++
		}
		last = role
	}
	if waiting > 0 || last == "assistant" || last == "" {
		return "no good end"
	}
	return ""
}
