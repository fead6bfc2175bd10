package gatewaytest_test

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/money"
)

// formPrice is the price of all models here; a token at a dollar a million
// costs 1000 nano-dollars.
func formPrice() map[string]any {
	return map[string]any{"price": map[string]any{
		"input": 1, "output": 10, "cached_input": 0.1, "cache_write": 1.25, "cache_write_1h": 2,
		"above": []any{map[string]any{"prompt_tokens": 1000, "input": 2, "output": 20, "cached_input": 0.2, "cache_write": 2.5, "cache_write_1h": 4}},
		"tools": map[string]any{"web_search": 0.01},
	}}
}

// bill is what an answer's usage must come to.
type bill struct {
	name                       string
	line                       string
	whole                      string   // the answer
	events                     []string // the stream, just as it goes out
	only                       spoken   // the only form of client to try; empty: all that can be put
	more                       map[string]any
	prompt, cached, completion int64
	cost                       money.Amount
}

// nativeWhole is an answer of the messages form with a usage, as JSON.
func nativeWhole(usage string) string {
	return `{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":` + usage + `}`
}

// nativeParts is a stream of the messages form with the usage of its first
// event and of its last but one.
func nativeParts(start, end string) []string {
	return []string{
		fakeprovider.NativeEvent("message_start", `"message":{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[],"stop_reason":null,"stop_sequence":null,"usage":`+start+`}`),
		fakeprovider.NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`), fakeprovider.NativeText("hi"),
		fakeprovider.NativeEvent("content_block_stop", `"index":0`),
		fakeprovider.NativeEvent("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":`+end), fakeprovider.NativeStop(),
	}
}

// responsesParts is a stream of the responses form that ends with a status and
// a usage.
func responsesParts(status, usage string, output ...string) []string {
	output = append(output, fakeprovider.ResponsesMessage("hi"))
	return fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText("hi"), fakeprovider.ResponsesEnd(status, usage, output...))...).Raw
}

// chatWhole and chatParts are the same of the chat form.
func chatWhole(usage string) string {
	return `{"id":"chatcmpl-fake","object":"chat.completion","created":1,"model":"vendor-model","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":` + usage + `}`
}

func chatParts(usage string) []string {
	return []string{
		"data: " + fakeprovider.Text("hi") + "\n\n", "data: " + fakeprovider.Frame(`{}`, "stop") + "\n\n",
		`data: {"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1,"model":"vendor-model","choices":[],"usage":` + usage + "}\n\n", "data: [DONE]\n\n",
	}
}

// geminiWhole is an answer of the Gemini form with a usage.
func geminiWhole(usage string) string {
	return `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":` + usage + `}`
}

func bills() []bill {
	const (
		split     = `{"input_tokens":100,"cache_creation_input_tokens":30,"cache_read_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":%d,"output_tokens_details":{"thinking_tokens":3}}`
		unsplit   = `{"input_tokens":100,"cache_creation_input_tokens":30,"cache_read_input_tokens":50,"output_tokens":7}`
		long      = `{"input_tokens":500,"cache_creation_input_tokens":0,"cache_read_input_tokens":501,"output_tokens":7}`
		limit     = `{"input_tokens":500,"cache_creation_input_tokens":0,"cache_read_input_tokens":500,"output_tokens":7}`
		searched  = `{"input_tokens":100,"output_tokens":7,"server_tool_use":{"web_search_requests":2}}`
		zero      = `{"input_tokens":0,"output_tokens":0}`
		cached    = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":20},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":109}`
		zeroTotal = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`
		chat      = `{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":5},"total_tokens":109}`
		chatLong  = `{"prompt_tokens":1001,"completion_tokens":9,"total_tokens":1010}`
		chatZero  = `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`
		google    = `{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":4,"thoughtsTokenCount":5,"totalTokenCount":109}`
		search    = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`
	)
	nativeTool := map[string]any{"tools": []any{map[string]any{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}}}
	responsesTool := map[string]any{"tools": []any{map[string]any{"type": "web_search"}}}
	final := fmt.Sprintf(split, 7)
	return []bill{
		{"cache, both kinds of writes", "messages", nativeWhole(final), nativeParts(fmt.Sprintf(split, 1), `{"output_tokens":7}`), "", nil, 180, 50, 7, 227_500},
		{"cache, writes of one kind", "messages", nativeWhole(unsplit), nativeParts(unsplit, `{"output_tokens":7}`), "", nil, 180, 50, 7, 212_500},
		{"counted again at the end", "messages", "", nativeParts(`{"input_tokens":3,"output_tokens":1}`, `{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":7}`), "", nil, 150, 50, 7, 175_000},
		{"a long prompt", "messages", nativeWhole(long), nativeParts(long, `{"output_tokens":7}`), "", nil, 1001, 501, 7, 1_240_200},
		{"a prompt not longer than that", "messages", nativeWhole(limit), nativeParts(limit, `{"output_tokens":7}`), "", nil, 1000, 500, 7, 620_000},
		{"searched", "messages", nativeWhole(searched), nativeParts(`{"input_tokens":100,"output_tokens":1}`, searched), inMessages, nativeTool, 100, 0, 7, 20_170_000},
		{"usage of 0", "messages", nativeWhole(zero), nativeParts(zero, `{"output_tokens":0}`), "", nil, 0, 0, 0, 0},
		{"cache and reasoning", "responses", fakeprovider.ResponsesObject("completed", cached, fakeprovider.ResponsesMessage("hi")), responsesParts("completed", cached), inResponses, nil, 100, 40, 9, 159_000},
		{"incomplete", "responses", fakeprovider.ResponsesObject("incomplete", cached, fakeprovider.ResponsesMessage("hi")), responsesParts("incomplete", cached), inResponses, nil, 100, 40, 9, 159_000},
		{"searched", "responses", fakeprovider.ResponsesObject("completed", cached, search, search, fakeprovider.ResponsesMessage("hi")),
			responsesParts("completed", cached, search, search), inResponses, responsesTool, 100, 40, 9, 20_159_000},
		{"usage of 0", "responses", fakeprovider.ResponsesObject("completed", zeroTotal, fakeprovider.ResponsesMessage("hi")), responsesParts("completed", zeroTotal), inResponses, nil, 0, 0, 0, 0},
		{"cache and reasoning", "chat", chatWhole(chat), chatParts(chat), "", nil, 100, 40, 9, 154_000},
		{"a long prompt", "chat", chatWhole(chatLong), chatParts(chatLong), "", nil, 1001, 0, 9, 2_182_000},
		{"usage of 0", "chat", chatWhole(chatZero), chatParts(chatZero), "", nil, 0, 0, 0, 0},
		{"cache and thoughts", "gemini", geminiWhole(google), []string{"data: " + geminiWhole(google) + "\n\n"}, "", nil, 100, 40, 9, 154_000},
	}
}

// moneyScenes are all bills with every form of client that can be put into the
// line's, whole and streamed.
func moneyScenes(t testing.TB) []scene {
	scenes := []scene{}
	for i, b := range bills() {
		for _, in := range clientForms() {
			if !canBePut(in, b.line) || b.only != "" && b.only != in {
				continue
			}
			for _, stream := range []bool{false, true} {
				if stream || b.whole != "" {
					scenes = append(scenes, billScene(t, fmt.Sprintf("bill-%d-%s-%v", i, in, stream), b, in, stream))
				}
			}
		}
	}
	return append(scenes, uncountedScenes(t)...)
}

func billScene(t testing.TB, model string, b bill, in spoken, stream bool) scene {
	reply := saying(200, b.whole)
	if stream {
		reply = fakeprovider.Reply{ContentType: "text/event-stream", Raw: b.events}
	}
	p := fakeprovider.New(t, reply)
	return scene{
		name:   fmt.Sprintf("%s on %s, %s, stream %v", in, b.line, b.name, stream),
		models: []map[string]any{formModel(model, formPrice(), in)},
		lines:  []map[string]any{formLine(model, b.line, p.URL(), nil, model)},
		play: func(t *testing.T, f *fixture) {
			s := in.speaker(t, f)
			body := askIn(in, model, stream, b.more)
			h := s.ask(body)
			if h.status != 200 {
				t.Fatalf("%d %s", h.status, h.raw)
			}
			s.charged(h, b.cost)
			m := s.booked()
			if m.ID != h.id() || m.Prompt != b.prompt || m.Cached != b.cached || m.Completion != b.completion {
				t.Errorf("receipt %+v; want %+v", m, b)
			}
			// The dearest bill that the bound of the prompt and the limit allow.
			prompt, calls := int64(len(body))+1000, money.Amount(0)
			if b.more != nil {
				prompt, calls = 100000, 10
				if in == inMessages {
					calls = 3
				}
			}
			if want := money.Amount(prompt*4000+500*20000) + calls*money.USD/100; m.Held != want {
				t.Errorf("%s were held for %d bytes; want %s", m.Held, len(body), want)
			}
			// What the client is told is what it was charged for.
			r := in.read(t, h, model)
			if stream && in == inChat && strings.Contains(h.raw, `"usage":{`) {
				t.Errorf("usage that nobody asked for: %s", h.raw)
			}
			if !(stream && (in == inChat || in == inMessages && b.line == "messages")) &&
				(r.prompt != b.prompt || r.cached != b.cached || r.completion != b.completion) {
				t.Errorf("the client was told of %d, %d and %d tokens: %s", r.prompt, r.cached, r.completion, h.raw)
			}
		},
	}
}

// booking is what the request log says of a request's money.
type booking struct {
	ID         string       `json:"id"`
	Prompt     int64        `json:"prompt_tokens"`
	Cached     int64        `json:"cached_tokens"`
	Completion int64        `json:"completion_tokens"`
	Cost       money.Amount `json:"cost_usd"`
	Held       money.Amount `json:"held_usd"`
}

// booked is the newest entry of the account in the request log.
func (s speaker) booked() booking {
	s.t.Helper()
	var page struct {
		Data []booking `json:"data"`
	}
	s.f.process.Admin("GET", "/requests?limit=1&account="+s.account, nil, &page)
	if len(page.Data) != 1 {
		s.t.Fatal("the request is not in the log")
	}
	return page.Data[0]
}

// uncountedScenes: where the provider does not say how much there was, the
// gateway counts.
func uncountedScenes(t testing.TB) []scene {
	var scenes []scene
	for _, in := range clientForms() {
		for _, line := range lineForms() {
			if !canBePut(in, line) {
				continue
			}
			for _, stream := range []bool{false, true} {
				model := fmt.Sprintf("uncounted-%s-%s-%v", in, line, stream)
				text := strings.Repeat("one two three four ", 5)
				p := fakeprovider.New(t, uncounted(line, stream, text))
				scenes = append(scenes, scene{
					name:   fmt.Sprintf("%s on %s, no usage, stream %v", in, line, stream),
					models: []map[string]any{formModel(model, formPrice(), in)},
					lines:  []map[string]any{formLine(model, line, p.URL(), nil, model)},
					play: func(t *testing.T, f *fixture) {
						s := in.speaker(t, f)
						h := s.ask(askIn(in, model, stream, nil))
						if h.status != 200 {
							t.Fatalf("%d %s", h.status, h.raw)
						}
						if r := in.read(t, h, model); r.text != text {
							t.Errorf("the client got %s", h.raw)
						}
						m := s.booked()
						s.charged(h, money.Amount(m.Prompt*1000+m.Completion*10000))
						if m.Prompt < 1 || m.Prompt > 50 || m.Completion < 15 || m.Completion > 30 || m.Cached != 0 {
							t.Errorf("receipt %+v", m)
						}
					},
				})
			}
		}
	}
	return scenes
}

// uncounted is a good answer with a text and without usage.
func uncounted(line string, stream bool, text string) fakeprovider.Reply {
	var whole string
	var raw []string
	switch line {
	case "responses":
		whole, raw = fakeprovider.ResponsesObject("completed", "null", fakeprovider.ResponsesMessage(text)),
			fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText(text), fakeprovider.ResponsesEnd("completed", "null", fakeprovider.ResponsesMessage(text)))...).Raw
	case "messages":
		whole, raw = strings.Replace(nativeWhole("{}"), `"hi"`, fmt.Sprintf("%q", text), 1), nativeParts("{}", "{}")
		raw[2] = fakeprovider.NativeText(text)
	case "gemini":
		whole = strings.Replace(geminiWhole("{}"), `"hi"`, fmt.Sprintf("%q", text), 1)
		raw = []string{"data: " + whole + "\n\n"}
	default:
		whole = strings.Replace(chatWhole("null"), `"hi"`, fmt.Sprintf("%q", text), 1)
		raw = []string{"data: " + fakeprovider.Text(text) + "\n\n", "data: " + fakeprovider.Frame(`{}`, "stop") + "\n\n", "data: [DONE]\n\n"}
	}
	if stream {
		return fakeprovider.Reply{ContentType: "text/event-stream", Raw: raw}
	}
	return saying(200, whole)
}
