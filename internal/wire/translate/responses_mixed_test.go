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
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// responsesPieces are valid and invalid events of the responses form.
func responsesPieces() []string {
	pieces := []string{
		`{"type":"response.created","response":{}}`, `{"type":"response.in_progress"}`, `{"type":"keepalive"}`, `{"type":"unheard_of"}`,
		`{"type":"response.output_text.delta"}`, `{"type":"response.output_item.added"}`, `{"type":"response.output_item.done","item":5}`,
		`{"type":"response.output_text.delta","item_id":"m","delta":"by id"}`,
		`{"type":"response.function_call_arguments.done","name":"f","output_index":3,"arguments":{"o":1}}`,
	}
	for index := range 4 {
		add := func(kind, members string) {
			pieces = append(pieces, fmt.Sprintf(`{"type":"response.%s","output_index":%d,%s}`, kind, index, members))
		}
		for _, item := range []string{
			`{"type":"message","id":"m","role":"assistant","content":[]}`,
			`{"type":"message","content":[{"type":"output_text","text":"xy"},{"type":"refusal","refusal":"no"}]}`,
			`{"type":"reasoning","summary":[]}`,
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"E"}`,
			`{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":""}`,
			`{"type":"function_call","call_id":"a","name":"f","arguments":""}`,
			`{"type":"function_call","call_id":"b.1","name":"g","arguments":"{\"a\":1}"}`,
			`{"type":"custom_tool_call","call_id":"c","name":"p","input":"x"}`,
			`{"type":"function_call"}`, `{"type":"web_search_call"}`, `null`,
		} {
			add("output_item.added", `"item":`+item)
			add("output_item.done", `"item":`+item)
		}
		for _, part := range []string{`"content_index":0,`, `"content_index":1,`, ``} {
			add("output_text.delta", part+`"delta":"x"`)
			add("output_text.done", part+`"text":"xy"`)
			add("refusal.delta", part+`"delta":"n"`)
			add("content_part.done", part+`"part":{"type":"output_text","text":"xyz"}`)
		}
		add("reasoning_summary_text.delta", `"summary_index":0,"delta":"h"`)
		add("reasoning_summary_text.delta", `"summary_index":1,"delta":"s"`)
		add("reasoning_summary_text.done", `"summary_index":0,"text":"hm"`)
		add("reasoning_text.delta", `"content_index":0,"delta":"h"`)
		add("function_call_arguments.delta", `"delta":"{\"a\":"`)
		add("function_call_arguments.delta", `"delta":""`)
		add("function_call_arguments.done", `"arguments":"{\"a\":1}"`)
		add("custom_tool_call_input.delta", `"delta":"x"`)
		add("custom_tool_call_input.done", `"input":"xy"`)
	}
	return pieces
}

// responsesEnds are ends of such streams.
func responsesEnds() []string {
	return []string{
		`{"type":"response.completed","response":{"status":"completed","output":[]}}`,
		`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"xyz"}]},` +
			`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"reasoning","summary":[],"encrypted_content":"E"}]}}`,
		`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`,
		`{"type":"response.failed","response":{"error":{"code":"server_error"}}}`, `{"type":"error","code":"x","message":"y"}`, `{}`,
	}
}

func TestMixedResponsesStreamsAreWellFormed(t *testing.T) {
	t.Parallel()
	pieces, ends := responsesPieces(), responsesEnds()
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		list := append(pairtest.RandomPieces(r, pieces, 24), ends[r.IntN(len(ends))])
		for _, chat := range []bool{true, false} {
			m, w := answersOfResponses(chat).Events()
			out := pairtest.Flow([]byte(wiretest.Frames(list...)), w, m, pairtest.Usage())
			if err := streamCheck(chat)(out); err != nil {
				t.Errorf("chat %v: %v in\n%s\nof\n%s", chat, err, out, strings.Join(list, "\n"))
			}
			end := "data: [DONE]"
			if !chat {
				end = `data: {"type":"message_stop"}`
			}
			if ended := strings.HasSuffix(strings.TrimSpace(string(out)), end); ended != m.Complete() {
				t.Errorf("chat %v: ended %v in\n%s\nof\n%s", chat, ended, out, strings.Join(list, "\n"))
			}
		}
	})
}

func TestMixedHistoriesAreMendedForResponses(t *testing.T) {
	t.Parallel()
	chat := []string{
		`{"role":"system","content":"s"}`, `{"role":"developer","content":[{"type":"text","text":" "},{"type":"text","text":"d"}]}`,
		`{"role":"user","content":"u"}`, `{"role":"user","content":""}`,
		`{"role":"user","content":[{"type":"text","text":" "},{"type":"image_url","image_url":{"url":"https://e.com"}}]}`,
		`{"role":"assistant","content":"a "}`, `{"role":"assistant","content":null}`,
		`{"role":"assistant","content":[{"type":"refusal","refusal":"r"}]}`,
		`{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"` + seal("E") + `"}]}`,
		`{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],` +
			`"reasoning_details":[{"type":"reasoning.encrypted","data":"` + seal("E") + `"}]}`,
		`{"role":"assistant","tool_calls":[{"id":"2","function":{"name":"f"}},{"id":"1.x","function":{"name":"g","arguments":"["}},` +
			`{"function":{"name":"h"}},{"id":"3","type":"custom","custom":{"name":"p","input":"x"}}]}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`,
		`{"role":"tool","tool_call_id":"1","content":"r"}`, `{"role":"tool","tool_call_id":"2","content":""}`,
		`{"role":"tool","tool_call_id":"3","content":[{"type":"text","text":"r"}]}`, `{"role":"tool","content":"r"}`,
	}
	native := []string{
		`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, `{"role":"user","content":[]}`,
		`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":[{"type":"text","text":" "}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"` + seal("E") + `"},{"type":"text","text":"a"},` +
			`{"type":"tool_use","id":"1","name":"f","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"redacted_thinking","data":"` + seal("E") + `"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"2","name":"f","input":{}},{"type":"tool_use","id":"3","name":"f"},` +
			`{"type":"text","text":"b"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"u"}]}`,
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"image",` +
			`"source":{"type":"url","url":"https://e.com"}}]}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"3","is_error":true},` +
			`{"type":"tool_result","tool_use_id":"2","content":[]}]}`,
	}
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		in := toResponses([]string{"", "reasoning", "reasoning openai"}[r.IntN(3)])
		for isChat, pieces := range map[bool][]string{true: chat, false: native} {
			list := pairtest.RandomPieces(r, pieces, 12)
			itemsOf := func(list []string) string {
				body := `{"model":"m","max_tokens":9,"messages":[` + strings.Join(list, ",") + `]}`
				out, err := pairtest.Body(onResponses(t, body, isChat), in)
				if err != nil {
					t.Fatal(err)
				}
				if wrong := checkInput(out); wrong != "" {
					t.Errorf("%s in\n%s\nof\n%s", wrong, out, body)
				}
				return strings.TrimSuffix(string(rawjson.Field(out, "input")), "]")
			}
			if len(list) > 0 {
				itemsOf(list)
			}
			list = append(list, `{"role":"user","content":"x"}`)
			before := itemsOf(list)
			after := itemsOf(append(list, `{"role":"assistant","content":"y"}`, `{"role":"user","content":"z"}`))
			if !strings.HasPrefix(after, before) {
				t.Errorf("a longer conversation begins\n%s\nand not\n%s", after, before)
			}
		}
	})
}

// seal returns encrypted reasoning as received by the clients of these tests.
func seal(encrypted string) string { return "tg1.35fe4d9b." + encrypted }

// FuzzFromResponses expects a well-formed stream for the client with at most one end, whatever a
// provider of the responses form sends.
func FuzzFromResponses(f *testing.F) {
	pairtest.Seeds(f, "testdata/responses/chat-*.txtar", "stream")
	pairtest.Seeds(f, "testdata/responses/messages-*.txtar", "stream")
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, chat := range []bool{true, false} {
			m, w := answersOfResponses(chat).Events()
			out := pairtest.Flow(stream, w, m, pairtest.Usage())
			if err := streamCheck(chat)(out); err != nil {
				t.Fatalf("chat %v: %v in\n%s\nof\n%s", chat, err, out, stream)
			}
		}
	})
}

// FuzzWholeFromResponses checks that the client's answer can be read by its form's reader, whatever
// a provider sends.
func FuzzWholeFromResponses(f *testing.F) {
	pairtest.Seeds(f, "testdata/responses/chat-*.txtar", "answer")
	pairtest.Seeds(f, "testdata/responses/messages-*.txtar", "answer")
	f.Fuzz(func(t *testing.T, answer []byte) {
		for chat, read := range map[bool]func([]byte) (wire.Answer, error){true: completions.ReadAnswer, false: messages.ReadAnswer} {
			pieces, err := answersOfResponses(chat).Render(nil, answer, pairtest.Usage())
			if err != nil {
				continue
			}
			if _, err := read(pieces[0]); err != nil || !rawjson.IsValid(pieces[0]) {
				t.Fatalf("chat %v: %v: %s of %s", chat, err, pieces[0], answer)
			}
		}
	})
}

// FuzzToResponses checks that the line's request is well formed, and always the same, for any
// request accepted by the checks.
func FuzzToResponses(f *testing.F) {
	pairtest.Seeds(f, "testdata/responses/chat-*.txtar", "request")
	pairtest.Seeds(f, "testdata/responses/messages-*.txtar", "request")
	pairtest.Seeds(f, "testdata/chatmessages/chat-*.txtar", "request")
	pairtest.Seeds(f, "testdata/chatmessages/messages-*.txtar", "request")
	f.Fuzz(func(t *testing.T, body []byte) {
		var requests []wire.Request
		if r, err := completions.Open(body); err == nil && r.Check() == nil {
			requests = append(requests, r)
		}
		if r, err := messages.Open(body); err == nil && r.Check() == nil {
			requests = append(requests, r)
		}
		for _, r := range requests {
			for _, words := range []string{"", "reasoning openai"} {
				pair := New(r, wire.FormResponses, fromResponses())
				out, err := pairtest.Body(pair, toResponses(words))
				if err != nil {
					wiretest.CodeOf(t, err)
					continue
				}
				if again, _ := pairtest.Body(pair, toResponses(words)); string(again) != string(out) {
					t.Fatalf("%s and %s", out, again)
				}
				if _, err := responses.Open(out); err != nil {
					t.Fatalf("%v: %s of %s", err, out, body)
				}
			}
		}
	})
}
