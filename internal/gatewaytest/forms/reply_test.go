package forms

import (
	"fmt"
	"strings"

	"tollgate/internal/gatewaytest/fakeprovider"
)

// answerParts are the parts of a provider's answer with 1000 prompt and 500 completion tokens.
type answerParts struct {
	thought string // the visible reasoning
	seal    string // the encrypted reasoning; only in the form responses
	text    string
	cities  []string // of calls of the weather tool
	usage   string   // if empty, the default usage; only in the form responses
}

// call returns the arguments of a call, complete and in pieces. The arguments of the first call
// have two pieces.
func (a answerParts) call(number int) (arguments string, pieces []string) {
	arguments = fmt.Sprintf(`{"city":%q}`, a.cities[number])
	if number > 0 {
		return arguments, []string{arguments}
	}
	before, after, _ := strings.Cut(arguments, ":")
	return arguments, []string{before + ":", after}
}

// reply returns the answer in a line's form.
func (a answerParts) reply(line string, stream bool) fakeprovider.Reply {
	switch line {
	case "responses":
		return a.responses(stream)
	case "messages":
		return a.messages(stream)
	case "gemini":
		return a.gemini(stream)
	case "interactions":
		return a.interactions(stream)
	}
	return a.chat(stream)
}

func (a answerParts) responses(stream bool) fakeprovider.Reply {
	var items []string
	events := fakeprovider.ResponsesBegin()[:2]
	add := func(begin, item string, between ...string) {
		event := func(name, item string) string {
			return fakeprovider.ResponsesEvent(name, fmt.Sprintf(`"output_index":%d,"item":%s`, len(items), item))
		}
		events = append(append(append(events, event("response.output_item.added", begin)), between...), event("response.output_item.done", item))
		items = append(items, item)
	}
	if a.thought != "" {
		seal := ""
		if a.seal != "" {
			seal = `,"encrypted_content":"` + a.seal + `"`
		}
		add(`{"id":"rs_1","type":"reasoning","summary":[]}`,
			`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"`+a.thought+`"}]`+seal+`}`,
			fakeprovider.ResponsesEvent("response.reasoning_summary_text.delta",
				`"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"`+a.thought+`"`))
	}
	if a.text != "" {
		add(`{"id":"msg_fake","type":"message","role":"assistant","status":"in_progress","content":[]}`, fakeprovider.ResponsesMessage(a.text),
			fakeprovider.ResponsesText(a.text))
	}
	for i := range a.cities {
		item := func(status, arguments string) string {
			return fmt.Sprintf(`{"id":"fc_%d","type":"function_call","call_id":"call_%d","name":"weather","status":%q,"arguments":%q}`,
				i+1, i+1, status, arguments)
		}
		event := func(name, member, text string) string {
			return fakeprovider.ResponsesEvent("response.function_call_arguments."+name,
				fmt.Sprintf(`"item_id":"fc_%d","output_index":%d,%q:%q`, i+1, len(items), member, text))
		}
		arguments, pieces := a.call(i)
		var between []string
		for _, piece := range pieces {
			between = append(between, event("delta", "delta", piece))
		}
		add(item("in_progress", ""), item("completed", arguments), append(between, event("done", "arguments", arguments))...)
	}
	usage := a.usage
	if usage == "" {
		usage = fakeprovider.ResponsesUsage(1000, 500)
	}
	if stream {
		return fakeprovider.ResponsesEvents(append(events, fakeprovider.ResponsesEnd("completed", usage, items...))...)
	}
	return fakeprovider.JSON(200, fakeprovider.ResponsesObject("completed", usage, items...))
}

func (a answerParts) messages(stream bool) fakeprovider.Reply {
	var blocks []string
	events, reason := []string{fakeprovider.NativeStart(1000)}, "end_turn"
	add := func(begin, block string, deltas ...string) {
		event := func(name, more string) {
			events = append(events, fakeprovider.NativeEvent(name, fmt.Sprintf(`"index":%d%s`, len(blocks), more)))
		}
		event("content_block_start", `,"content_block":`+begin)
		for _, delta := range deltas {
			event("content_block_delta", `,"delta":`+delta)
		}
		event("content_block_stop", "")
		blocks = append(blocks, block)
	}
	if a.thought != "" {
		add(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking","thinking":"`+a.thought+`","signature":"c2ln"}`,
			`{"type":"thinking_delta","thinking":"`+a.thought+`"}`, `{"type":"signature_delta","signature":"c2ln"}`)
	}
	if a.text != "" {
		add(`{"type":"text","text":""}`, `{"type":"text","text":"`+a.text+`"}`, `{"type":"text_delta","text":"`+a.text+`"}`)
	}
	for i := range a.cities {
		block := func(input string) string {
			return fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"weather","input":%s}`, i+1, input)
		}
		arguments, pieces := a.call(i)
		if len(pieces) > 1 {
			pieces = append([]string{""}, pieces...) // Anthropic begins with an empty piece
		}
		var deltas []string
		for _, piece := range pieces {
			deltas = append(deltas, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, piece))
		}
		add(block("{}"), block(arguments), deltas...)
		reason = "tool_use"
	}
	if stream {
		return fakeprovider.NativeEvents(append(events, fakeprovider.NativeEnd(reason, 500), fakeprovider.NativeStop())...)
	}
	return fakeprovider.JSON(200,
		`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[`+strings.Join(blocks, ",")+
			`],"stop_reason":"`+reason+`","stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":500}}`)
}

func (a answerParts) gemini(stream bool) fakeprovider.Reply {
	var parts, events []string
	if a.thought != "" {
		parts = append(parts, fakeprovider.GeminiThought(a.thought))
	}
	if a.text != "" {
		parts = append(parts, fakeprovider.GeminiText(a.text))
	}
	for i := range a.cities {
		arguments, _ := a.call(i)
		parts = append(parts, fakeprovider.GeminiCall("weather", arguments))
	}
	last := len(parts) - 1
	for _, part := range parts[:last] {
		events = append(events, fakeprovider.GeminiEvent("", 1000, 0, part))
	}
	if stream {
		return fakeprovider.Reply{Events: append(events, fakeprovider.GeminiEvent("STOP", 1000, 500, parts[last]))}
	}
	return fakeprovider.JSON(200, fakeprovider.GeminiEvent("STOP", 1000, 500, parts...))
}

func (a answerParts) interactions(stream bool) fakeprovider.Reply {
	var steps, events []string
	add := func(step, start string, deltas ...string) {
		events = append(events, fakeprovider.InteractionStep(len(steps), start, deltas...)...)
		steps = append(steps, step)
	}
	if a.thought != "" {
		add(`{"type":"thought","signature":"c2ln","summary":[{"type":"text","text":"`+a.thought+`"}]}`, `{"type":"thought"}`,
			`{"type":"thought_summary","content":{"type":"text","text":"`+a.thought+`"}}`, `{"type":"thought_signature","signature":"c2ln"}`)
	}
	if a.text != "" {
		add(fakeprovider.InteractionText(a.text), `{"type":"model_output"}`, fakeprovider.InteractionDelta(a.text))
	}
	status := "completed"
	for i := range a.cities {
		step := func(arguments string) string {
			return fmt.Sprintf(`{"type":"function_call","id":"call_%d","name":"weather","arguments":%s}`, i+1, arguments)
		}
		arguments, pieces := a.call(i)
		var deltas []string
		for _, piece := range pieces {
			deltas = append(deltas, fmt.Sprintf(`{"type":"arguments_delta","arguments":%q}`, piece))
		}
		add(step(arguments), step("{}"), deltas...)
		status = "requires_action"
	}
	usage := fakeprovider.InteractionUsage(1000, 500)
	if stream {
		return fakeprovider.InteractionEvents(status, usage, events...)
	}
	return fakeprovider.JSON(200, fakeprovider.Interaction(status, usage, steps...))
}

func (a answerParts) chat(stream bool) fakeprovider.Reply {
	var calls []string
	frames := []string{fakeprovider.RawFrame(`{"role":"assistant","content":null}`, `null`)}
	if a.thought != "" {
		frames = append(frames, fakeprovider.RawFrame(`{"reasoning_content":"`+a.thought+`"}`, `null`))
	}
	if a.text != "" {
		frames = append(frames, fakeprovider.Text(a.text))
	}
	for i := range a.cities {
		call := func(arguments string) string {
			return fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":"weather","arguments":%q}}`, i, i+1, arguments)
		}
		frame := func(call string) { frames = append(frames, fakeprovider.RawFrame(`{"tool_calls":[`+call+`]}`, `null`)) }
		arguments, pieces := a.call(i)
		calls = append(calls, call(arguments))
		if len(pieces) == 1 {
			frame(call(arguments))
			continue
		}
		frame(call(""))
		for _, piece := range pieces {
			frame(fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, i, piece))
		}
	}
	if stream {
		return *fakeprovider.Events(append(frames, fakeprovider.RawFrame(`{}`, `"tool_calls"`), fakeprovider.UsageFrame(1000, 500), "[DONE]")...)
	}
	content, thought := "null", ""
	if a.text != "" {
		content = `"` + a.text + `"`
	}
	if a.thought != "" {
		thought = `"reasoning_content":"` + a.thought + `",`
	}
	return fakeprovider.JSON(200, `{"id":"chatcmpl-fake","object":"chat.completion","created":1,"model":"vendor-model","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":`+content+`,`+thought+`"tool_calls":[`+strings.Join(calls, ",")+`]},`+
		`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}}`)
}
