package clients

import (
	"fmt"
	"strings"
)

// turn is the answer of a provider's model: a text or tool calls.
type turn struct {
	text    string
	calls   []call
	thought string // precedes the text or calls; may be empty
}

// call is a tool call.
type call struct {
	tool  string
	input string // arguments, a JSON object
}

// encodedTurn encodes a turn. The ids contain the number of the request, so they are unique among
// turns.
type encodedTurn struct {
	turn
	number int
}

// sealed is the prefix of encrypted thoughts. Clients return the encrypted thoughts with the calls.
const sealed = "c2VhbA"

func (s encodedTurn) seal() string { return fmt.Sprintf("%s%d", sealed, s.number) }

func (s encodedTurn) callID(i int) string { return fmt.Sprintf("call_%d_%d", s.number, i) }

// halves splits a text in two, for streams.
func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

// chat encodes the turn in the chat form.
func (s encodedTurn) chat() (whole string, events []string) {
	head := fmt.Sprintf(`"id":"chatcmpl-%d","created":1700000000,"model":"vendor","object":"chat.completion`, s.number)
	const usage = `"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}`
	frame := func(rest string) { events = append(events, "data: {"+head+`.chunk",`+rest+"}") }
	delta := func(delta string) { frame(`"choices":[{"index":0,"delta":{` + delta + `},"finish_reason":null}]`) }
	delta(`"role":"assistant","content":null`)
	message := `"role":"assistant","content":null`
	if len(s.calls) == 0 {
		message = `"role":"assistant","content":` + quote(s.text)
	}
	if s.thought != "" {
		message += `,"reasoning_content":` + quote(s.thought)
		delta(`"reasoning_content":` + quote(s.thought))
	}
	finish, calls := "stop", []string{}
	for i, c := range s.calls {
		finish = "tool_calls"
		start := fmt.Sprintf(`"id":%s,"type":"function","function":{"name":%s,"arguments":`, quote(s.callID(i)), quote(c.tool))
		calls = append(calls, `{`+start+quote(c.input)+`}}`)
		delta(fmt.Sprintf(`"tool_calls":[{"index":%d,%s""}}]`, i, start))
		for _, half := range halves(c.input) {
			delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(half)))
		}
	}
	if len(calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	} else {
		for _, half := range halves(s.text) {
			delta(`"content":` + quote(half))
		}
	}
	frame(`"choices":[{"index":0,"delta":{},"finish_reason":` + quote(finish) + `}]`)
	frame(`"choices":[],` + usage)
	whole = fmt.Sprintf(`{%s","choices":[{"index":0,"message":{%s},"finish_reason":%s}],%s}`, head, message, quote(finish), usage)
	return whole, append(events, "data: [DONE]")
}

// messages encodes the turn in the messages form.
func (s encodedTurn) messages() (whole string, events []string) {
	event := func(name, rest string) {
		events = append(events, "event: "+name+"\ndata: "+`{"type":"`+name+`"`+rest+"}")
	}
	message := func(content, stop string, output int) string {
		return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"vendor","content":[%s],`+
			`"stop_reason":%s,"stop_sequence":null,`+
			`"usage":{"input_tokens":20,"output_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}`,
			s.number, content, stop, output)
	}
	var blocks []string
	block := func(whole, start string, deltas ...string) {
		at := fmt.Sprintf(`,"index":%d`, len(blocks))
		event("content_block_start", at+`,"content_block":`+start)
		for _, delta := range deltas {
			event("content_block_delta", at+`,"delta":`+delta)
		}
		event("content_block_stop", at)
		blocks = append(blocks, whole)
	}
	event("message_start", `,"message":`+message("", "null", 1))
	if s.thought != "" {
		block(`{"type":"thinking","thinking":`+quote(s.thought)+`,"signature":`+quote(s.seal())+`}`,
			`{"type":"thinking","thinking":"","signature":""}`,
			`{"type":"thinking_delta","thinking":`+quote(s.thought)+`}`, `{"type":"signature_delta","signature":`+quote(s.seal())+`}`)
	}
	stop := "end_turn"
	if len(s.calls) == 0 {
		texts := halves(s.text)
		block(`{"type":"text","text":`+quote(s.text)+`}`, `{"type":"text","text":""}`,
			`{"type":"text_delta","text":`+quote(texts[0])+`}`, `{"type":"text_delta","text":`+quote(texts[1])+`}`)
	}
	for i, c := range s.calls {
		stop = "tool_use"
		start := `{"type":"tool_use","id":` + quote("toolu_"+s.callID(i)) + `,"name":` + quote(c.tool) + `,"input":`
		inputs := halves(c.input)
		block(start+c.input+`}`, start+`{}}`,
			`{"type":"input_json_delta","partial_json":`+quote(inputs[0])+`}`, `{"type":"input_json_delta","partial_json":`+quote(inputs[1])+`}`)
	}
	event("message_delta", `,"delta":{"stop_reason":`+quote(stop)+`,"stop_sequence":null},"usage":{"output_tokens":10}`)
	event("message_stop", "")
	return message(strings.Join(blocks, ","), quote(stop), 10), events
}

// gemini encodes the turn in the form of Google's API.
func (s encodedTurn) gemini() (whole string, events []string) {
	var parts []string
	if s.thought != "" {
		parts = append(parts, `{"text":`+quote(s.thought)+`,"thought":true}`)
	}
	signature := `,"thoughtSignature":` + quote(s.seal()) // only on the first call
	for _, c := range s.calls {
		parts = append(parts, `{"functionCall":{"name":`+quote(c.tool)+`,"args":`+c.input+`}`+signature+`}`)
		signature = ""
	}
	if len(s.calls) == 0 {
		parts = append(parts, `{"text":`+quote(s.text)+`}`)
	}
	whole = `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":10,"totalTokenCount":30},"modelVersion":"vendor","responseId":"r1"}`
	return whole, []string{"data: " + whole}
}

// responses encodes the turn in the responses form.
func (s encodedTurn) responses() (whole string, events []string) {
	event := func(name, rest string) {
		events = append(events, fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}", name, name, len(events), rest))
	}
	response := func(status, output, usage string) string {
		return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1700000000,"status":"%s","model":"vendor","output":[%s],`+
			`"error":null,`+
			`"incomplete_details":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"usage":%s}`, s.number, status, output, usage)
	}
	var items []string
	item := func(added, done string, between func(at string)) {
		at := fmt.Sprintf(`"output_index":%d`, len(items))
		event("response.output_item.added", at+`,"item":`+added)
		between(at)
		event("response.output_item.done", at+`,"item":`+done)
		items = append(items, done)
	}
	event("response.created", `"response":`+response("in_progress", "", "null"))
	if s.thought != "" {
		id := fmt.Sprintf(`"id":"rs_%d"`, s.number)
		summary := `{"type":"summary_text","text":` + quote(s.thought) + `}`
		item(`{"type":"reasoning",`+id+`,"summary":[]}`,
			`{"type":"reasoning",`+id+`,"summary":[`+summary+`],"encrypted_content":`+quote(s.seal())+`}`,
			func(at string) {
				at += `,"item_` + id[1:] + `,"summary_index":0`
				event("response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
				event("response.reasoning_summary_text.delta", at+`,"delta":`+quote(s.thought))
				event("response.reasoning_summary_text.done", at+`,"text":`+quote(s.thought))
				event("response.reasoning_summary_part.done", at+`,"part":`+summary)
			})
	}
	for i, c := range s.calls {
		id := fmt.Sprintf(`"id":"fc_%d_%d"`, s.number, i)
		call := func(status, input string) string {
			return fmt.Sprintf(`{"type":"function_call",%s,"call_id":%s,"name":%s,"arguments":%s,"status":"%s"}`, id, quote(s.callID(i)),
				quote(c.tool), quote(input), status)
		}
		item(call("in_progress", ""), call("completed", c.input), func(at string) {
			at += `,"item_` + id[1:]
			for _, half := range halves(c.input) {
				event("response.function_call_arguments.delta", at+`,"delta":`+quote(half))
			}
			event("response.function_call_arguments.done", at+`,"arguments":`+quote(c.input))
		})
	}
	if len(s.calls) == 0 {
		id := fmt.Sprintf(`"id":"msg_%d"`, s.number)
		text := func(text string) string { return `{"type":"output_text","text":` + quote(text) + `,"annotations":[]}` }
		message := func(status, content string) string {
			return `{"type":"message",` + id + `,"role":"assistant","status":"` + status + `","content":[` + content + `]}`
		}
		item(message("in_progress", ""), message("completed", text(s.text)), func(at string) {
			at += `,"item_` + id[1:] + `,"content_index":0`
			event("response.content_part.added", at+`,"part":`+text(""))
			for _, half := range halves(s.text) {
				event("response.output_text.delta", at+`,"delta":`+quote(half))
			}
			event("response.output_text.done", at+`,"text":`+quote(s.text))
			event("response.content_part.done", at+`,"part":`+text(s.text))
		})
	}
	whole = response("completed", strings.Join(items, ","),
		`{"input_tokens":20,"input_tokens_details":{"cached_tokens":0},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":0},`+
			`"total_tokens":30}`)
	event("response.completed", `"response":`+whole)
	return whole, events
}
