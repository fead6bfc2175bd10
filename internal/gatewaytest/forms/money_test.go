package forms

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// bill is the usage of an answer and its cost.
type bill struct {
	name                       string
	line                       string
	whole                      string     // the answer
	events                     []string   // the stream, unchanged
	only                       scene.Form // the only form of client; if empty, all forms
	more                       map[string]any
	prompt, cached, completion int64
	cost                       money.Amount
}

// responsesParts returns a stream of the responses form with a status and a usage.
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

func bills() []bill {
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
		search   = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`
	)
	nativeTool := map[string]any{"tools": []any{map[string]any{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}}}
	responsesTool := map[string]any{"tools": []any{map[string]any{"type": "web_search"}}}
	final := fmt.Sprintf(split, 7)
	return []bill{
		{"cache, both kinds of writes", "messages", fakeprovider.NativeBill(final), fakeprovider.NativeBillStream(fmt.Sprintf(split, 1),
			`{"output_tokens":7}`), "", nil, 180, 50, 7, 227_500},
		{"cache, writes of one kind", "messages", fakeprovider.NativeBill(unsplit), fakeprovider.NativeBillStream(unsplit, `{"output_tokens":7}`),
			"", nil, 180, 50, 7, 212_500},
		{"counted again at the end", "messages", "", fakeprovider.NativeBillStream(`{"input_tokens":3,"output_tokens":1}`,
			`{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":7}`), "", nil, 150, 50, 7, 175_000},
		{"a long prompt", "messages", fakeprovider.NativeBill(long), fakeprovider.NativeBillStream(long, `{"output_tokens":7}`), "", nil, 1001,
			501, 7, 1_240_200},
		{"a prompt not longer than that", "messages", fakeprovider.NativeBill(limit), fakeprovider.NativeBillStream(limit, `{"output_tokens":7}`),
			"", nil, 1000, 500, 7, 620_000},
		{"searched", "messages", fakeprovider.NativeBill(searched), fakeprovider.NativeBillStream(`{"input_tokens":100,"output_tokens":1}`,
			searched), scene.Messages, nativeTool, 100, 0, 7, 20_170_000},
		{"usage of 0", "messages", fakeprovider.NativeBill(zero), fakeprovider.NativeBillStream(zero, `{"output_tokens":0}`), "", nil,
			0, 0, 0, 0},
		{"cache and reasoning", "responses", fakeprovider.ResponsesObject("completed", cached, fakeprovider.ResponsesMessage("hi")),
			responsesParts("completed", cached), scene.Responses, nil, 100, 40, 9, 159_000},
		{"incomplete", "responses", fakeprovider.ResponsesObject("incomplete", cached, fakeprovider.ResponsesMessage("hi")),
			responsesParts("incomplete", cached), scene.Responses, nil, 100, 40, 9, 159_000},
		{"searched", "responses", fakeprovider.ResponsesObject("completed", cached, search, search, fakeprovider.ResponsesMessage("hi")),
			responsesParts("completed", cached, search, search), scene.Responses, responsesTool, 100, 40, 9, 20_159_000},
		{"usage of 0", "responses", fakeprovider.ResponsesObject("completed", zeroTotal, fakeprovider.ResponsesMessage("hi")),
			responsesParts("completed", zeroTotal), scene.Responses, nil, 0, 0, 0, 0},
		{"cache and reasoning", "chat", fakeprovider.ChatBill(chat), fakeprovider.ChatBillStream(chat), "", nil, 100, 40, 9, 154_000},
		{"a long prompt", "chat", fakeprovider.ChatBill(chatLong), fakeprovider.ChatBillStream(chatLong), "", nil, 1001, 0, 9, 2_182_000},
		{"usage of 0", "chat", fakeprovider.ChatBill(chatZero), fakeprovider.ChatBillStream(chatZero), "", nil, 0, 0, 0, 0},
		{"cache and thoughts", "gemini", geminiWhole(google), []string{"data: " + geminiWhole(google) + "\n\n"}, "", nil, 100, 40, 9, 154_000},
	}
}

// moneyScenes play all bills for every form of client that translates to the line's, whole and
// streamed.
func moneyScenes(t testing.TB) []scene.Scenario {
	scenes := []scene.Scenario{}
	for i, b := range bills() {
		for _, in := range scene.ClientForms() {
			if b.only != "" && b.only != in {
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

func billScene(t testing.TB, model string, b bill, in scene.Form, stream bool) scene.Scenario {
	reply := fakeprovider.JSON(200, b.whole)
	if stream {
		reply = fakeprovider.Reply{ContentType: "text/event-stream", Raw: b.events}
	}
	p := fakeprovider.New(t, reply)
	return scene.Scenario{
		Name:   fmt.Sprintf("%s on %s, %s, stream %v", in, b.line, b.name, stream),
		Models: []map[string]any{scene.FormModel(model, scene.PriceList(), in)},
		Lines:  []map[string]any{scene.FormLine(model, b.line, p.URL(), nil, model)},
		Play: func(t *testing.T, f *scene.Gateway) {
			s := in.NewClient(t, f)
			body := scene.Request(in, model, stream, b.more)
			h := s.Ask(body)
			if h.Status != 200 {
				t.Fatalf("%d %s", h.Status, h.Raw)
			}
			s.Charged(h, b.cost)
			m := booked(s)
			if m.ID != h.ID() || m.Prompt != b.prompt || m.Cached != b.cached || m.Completion != b.completion {
				t.Errorf("receipt %+v; want %+v", m, b)
			}
			// the maximum cost for the bound of the prompt and the limit
			prompt, calls := int64(len(body))+1000, money.Amount(0)
			if b.more != nil {
				prompt, calls = 100000, 10
				if in == scene.Messages {
					calls = 3
				}
			}
			if want := money.Amount(prompt*4000+500*20000) + calls*money.USD/100; m.Held != want {
				t.Errorf("%s were held for %d bytes; want %s", m.Held, len(body), want)
			}
			// The client's usage matches the charge.
			r := read(t, in, h, model)
			if stream && in == scene.Chat && strings.Contains(h.Raw, `"usage":{`) {
				t.Errorf("unrequested usage: %s", h.Raw)
			}
			if !(stream && (in == scene.Chat || in == scene.Messages && b.line == "messages")) &&
				(r.prompt != b.prompt || r.cached != b.cached || r.completion != b.completion) {
				t.Errorf("the client got the usage %d, %d and %d: %s", r.prompt, r.cached, r.completion, h.Raw)
			}
		},
	}
}

// booking is the money of an entry of the request log.
type booking struct {
	ID         string       `json:"id"`
	Prompt     int64        `json:"prompt_tokens"`
	Cached     int64        `json:"cached_tokens"`
	Completion int64        `json:"completion_tokens"`
	Cost       money.Amount `json:"cost_usd"`
	Held       money.Amount `json:"held_usd"`
}

// booked returns the account's newest entry.
func booked(s scene.FormClient) booking {
	s.T.Helper()
	var page struct {
		Data []booking `json:"data"`
	}
	s.Gateway.Process.Admin("GET", "/requests?limit=1&account="+s.Account, nil, &page)
	if len(page.Data) != 1 {
		s.T.Fatal("the request is not in the log")
	}
	return page.Data[0]
}

// uncountedScenes play answers without usage. The gateway counts the tokens.
func uncountedScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, in := range scene.ClientForms() {
		for _, line := range lineForms() {
			for _, stream := range []bool{false, true} {
				model := fmt.Sprintf("uncounted-%s-%s-%v", in, line, stream)
				text := strings.Repeat("one two three four ", 5)
				p := fakeprovider.New(t, uncounted(line, stream, text))
				scenes = append(scenes, scene.Scenario{
					Name:   fmt.Sprintf("%s on %s, no usage, stream %v", in, line, stream),
					Models: []map[string]any{scene.FormModel(model, scene.PriceList(), in)},
					Lines:  []map[string]any{scene.FormLine(model, line, p.URL(), nil, model)},
					Play: func(t *testing.T, f *scene.Gateway) {
						s := in.NewClient(t, f)
						h := s.Ask(scene.Request(in, model, stream, nil))
						if h.Status != 200 {
							t.Fatalf("%d %s", h.Status, h.Raw)
						}
						if r := read(t, in, h, model); r.text != text {
							t.Errorf("the client got %s", h.Raw)
						}
						m := booked(s)
						s.Charged(h, money.Amount(m.Prompt*1000+m.Completion*10000))
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
