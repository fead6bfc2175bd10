package forms

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// responsesParts returns the events of a stream of the responses form with a status and a usage.
func responsesParts(status, usage string, output ...string) []string {
	output = append(output, fakeprovider.ResponsesMessage("hi"))
	return fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText("hi"),
		fakeprovider.ResponsesEnd(status, usage, output...))...).Raw
}

// geminiWhole returns an answer of the Gemini form with a usage.
func geminiWhole(usage string) string {
	return `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":` +
		usage + `}`
}

// interactionRaw returns the events of a stream of interactions with a text and a usage.
func interactionRaw(usage, text string) (raw []string) {
	step := fakeprovider.InteractionStep(0, `{"type":"model_output"}`, fakeprovider.InteractionDelta(text))
	for _, event := range fakeprovider.InteractionEvents("completed", usage, step...).Events {
		raw = append(raw, "data: "+event+"\n\n")
	}
	return raw
}

// bills returns the receipts for the prices of scene.PriceList. checkBill also checks their holds and
// the usage in the client's answer.
func bills() []receipt {
	const (
		split = `{"input_tokens":100,"cache_creation_input_tokens":30,"cache_read_input_tokens":50,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},` +
			`"output_tokens":%d,"output_tokens_details":{"thinking_tokens":3}}`
		unsplit  = `{"input_tokens":100,"cache_creation_input_tokens":30,"cache_read_input_tokens":50,"output_tokens":7}`
		long     = `{"input_tokens":500,"cache_creation_input_tokens":0,"cache_read_input_tokens":501,"output_tokens":7}`
		limit    = `{"input_tokens":500,"cache_creation_input_tokens":0,"cache_read_input_tokens":500,"output_tokens":7}`
		searched = `{"input_tokens":100,"output_tokens":7,"server_tool_use":{"web_search_requests":2}}`
		zero     = `{"input_tokens":0,"output_tokens":0}`
		cached   = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":20},` +
			`"output_tokens":9,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":109}`
		zeroTotal = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,` +
			`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`
		chat = `{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":40},` +
			`"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":5},"total_tokens":109}`
		chatLong = `{"prompt_tokens":1001,"completion_tokens":9,"total_tokens":1010}`
		chatZero = `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`
		google   = `{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":4,"thoughtsTokenCount":5,"totalTokenCount":109}`
		steps    = `{"total_input_tokens":90,"total_tool_use_tokens":10,"total_cached_tokens":40,"total_output_tokens":4,` +
			`"total_thought_tokens":5,"total_tokens":109}`
		noOutput = `{"total_input_tokens":100,"total_thought_tokens":5,"total_tokens":109}`
		search   = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`
	)
	nativeTool := []any{map[string]any{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}}
	responsesTool := []any{map[string]any{"type": "web_search"}}
	final := fmt.Sprintf(split, 7)
	rows := []receipt{
		{name: "cache, both kinds of writes", line: "messages", usage: final,
			events: fakeprovider.NativeBillStream(fmt.Sprintf(split, 1), `{"output_tokens":7}`), prompt: 180, cached: 50, output: 7, cost: 227_500},
		{name: "cache, writes of one kind", line: "messages", usage: unsplit, prompt: 180, cached: 50, output: 7, cost: 212_500},
		{name: "counted again at the end", line: "messages", events: fakeprovider.NativeBillStream(`{"input_tokens":3,"output_tokens":1}`,
			`{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":7}`), prompt: 150, cached: 50, output: 7, cost: 175_000},
		{name: "a long prompt", line: "messages", usage: long, prompt: 1001, cached: 501, output: 7, cost: 1_240_200},
		{name: "a prompt at the threshold", line: "messages", usage: limit, prompt: 1000, cached: 500, output: 7, cost: 620_000},
		{name: "searched", line: "messages", usage: searched, ask: inForm(scene.Messages, "tools", nativeTool),
			events: fakeprovider.NativeBillStream(`{"input_tokens":100,"output_tokens":1}`, searched), prompt: 100, output: 7, cost: 20_170_000},
		{name: "usage of 0", line: "messages", usage: zero},
		{name: "cache and reasoning", line: "responses", usage: cached, ask: unchanged(scene.Responses),
			prompt: 100, cached: 40, output: 9, cost: 159_000},
		{name: "incomplete", line: "responses", ask: unchanged(scene.Responses),
			whole:  fakeprovider.ResponsesObject("incomplete", cached, fakeprovider.ResponsesMessage("hi")),
			events: responsesParts("incomplete", cached), prompt: 100, cached: 40, output: 9, cost: 159_000},
		{name: "searched", line: "responses", ask: inForm(scene.Responses, "tools", responsesTool),
			whole:  fakeprovider.ResponsesObject("completed", cached, search, search, fakeprovider.ResponsesMessage("hi")),
			events: responsesParts("completed", cached, search, search), prompt: 100, cached: 40, output: 9, cost: 20_159_000},
		{name: "usage of 0", line: "responses", usage: zeroTotal, ask: unchanged(scene.Responses)},
		{name: "cache and reasoning", line: "chat", usage: chat, prompt: 100, cached: 40, output: 9, cost: 154_000},
		{name: "a long prompt", line: "chat", usage: chatLong, prompt: 1001, output: 9, cost: 2_182_000},
		{name: "usage of 0", line: "chat", usage: chatZero},
		{name: "cache and thoughts", line: "gemini", usage: google, prompt: 100, cached: 40, output: 9, cost: 154_000},
		{name: "cache and thoughts", line: "interactions", usage: steps, prompt: 100, cached: 40, output: 9, cost: 154_000},
		{name: "output by the total", line: "interactions", usage: noOutput, prompt: 100, output: 9, cost: 190_000},
	}
	for i := range rows {
		rows[i].prices = scene.PriceList()
	}
	return rows
}

// checkBill checks the hold and the client's usage for a bill.
func checkBill(t *testing.T, b receipt, form scene.Form, stream bool, body string, a scene.FormAnswer, m scene.Receipt, r reading) {
	t.Helper()
	// want is the maximum cost for the largest possible prompt and the limit.
	prompt, calls := int64(len(body))+1000, money.Amount(0)
	if len(b.ask[form]) > 0 { // a tool
		prompt, calls = 100000, 10
		if form == scene.Messages {
			calls = 3
		}
	}
	if want := money.Amount(prompt*4000+500*20000) + calls*money.USD/100; m.Held != want {
		t.Errorf("%s on hold for %d bytes; want %s", m.Held, len(body), want)
	}
	if stream && form == scene.Chat && strings.Contains(a.Raw, `"usage":{`) {
		t.Errorf("unrequested usage: %s", a.Raw)
	}
	if !(stream && (form == scene.Chat || form == scene.Messages && b.line == "messages")) &&
		(r.prompt != b.prompt || r.cached != b.cached || r.completion != b.output) {
		t.Errorf("the client got the usage %d, %d and %d: %s", r.prompt, r.cached, r.completion, a.Raw)
	}
}

// moneyScenes play all bills, and answers without usage.
func moneyScenes(t testing.TB) []scene.Scenario {
	return append(receiptScenes(t, bills()), uncountedScenes(t)...)
}

// uncountedScenes play answers without usage. The gateway must count the tokens.
func uncountedScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range scene.ClientForms() {
		for _, line := range lineForms() {
			for _, stream := range []bool{false, true} {
				model := fmt.Sprintf("uncounted-%s-%s-%v", form, line, stream)
				text := strings.Repeat("one two three four ", 5)
				p := fakeprovider.New(t, uncounted(line, stream, text))
				scenes = append(scenes, single{name: fmt.Sprintf("%s on %s, no usage, stream %v", form, line, stream),
					in: form, line: line, model: model, provider: p, modelMore: scene.PriceList(),
				}.plays(func(t *testing.T, s scene.FormClient) {
					a := s.Answer(scene.Request(form, model, stream, nil))
					if r := read(t, form, a, model); r.text != text {
						t.Errorf("the client got %s", a.Raw)
					}
					m := s.Gateway.Receipt(t, s.Account, a.ID())
					s.CheckCharge(a, money.Amount(m.Prompt*1000+m.Completion*10000))
					if m.Prompt < 1 || m.Prompt > 50 || m.Completion < 15 || m.Completion > 30 || m.Cached != 0 {
						t.Errorf("receipt %+v", m)
					}
				}))
			}
		}
	}
	return scenes
}

// uncounted returns an answer with text and without usage.
func uncounted(line string, stream bool, text string) fakeprovider.Reply {
	var whole string
	var raw []string
	switch line {
	case "responses":
		whole, raw = fakeprovider.ResponsesObject("completed", "null", fakeprovider.ResponsesMessage(text)),
			fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText(text),
				fakeprovider.ResponsesEnd("completed", "null", fakeprovider.ResponsesMessage(text)))...).Raw
	case "messages":
		whole, raw = strings.Replace(fakeprovider.NativeBill("{}"), `"hi"`, fmt.Sprintf("%q", text), 1), fakeprovider.NativeBillStream("{}", "{}")
		raw[2] = fakeprovider.NativeText(text)
	case "interactions":
		whole = fakeprovider.Interaction("completed", "{}", fakeprovider.InteractionText(text))
		raw = interactionRaw("{}", text)
	case "gemini":
		whole = strings.Replace(geminiWhole("{}"), `"hi"`, fmt.Sprintf("%q", text), 1)
		raw = []string{"data: " + whole + "\n\n"}
	default:
		whole = strings.Replace(fakeprovider.ChatBill("null"), `"hi"`, fmt.Sprintf("%q", text), 1)
		raw = []string{"data: " + fakeprovider.Text(text) + "\n\n", "data: " + fakeprovider.Frame(`{}`, "stop") + "\n\n", "data: [DONE]\n\n"}
	}
	if stream {
		return fakeprovider.Reply{ContentType: "text/event-stream", Raw: raw}
	}
	return fakeprovider.JSON(200, whole)
}
