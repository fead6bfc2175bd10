package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// turn is what a provider's model says: a text, or the call of a tool.
type turn struct {
	text  string
	tool  string // its name; empty: no call
	input string // the call's arguments, JSON
}

// received is a request as it reached the provider.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// provider is a provider of the test's own, for the lines of a catalog: its
// model decides by rule what to say, and it says so in the form that it was
// asked in, whole or streamed.
type provider struct {
	url   string // of the server, without a path
	model func(received) turn

	mu       sync.Mutex
	requests []received
}

// newProvider starts a provider that ends with the test.
func newProvider(t *testing.T, model func(received) turn) *provider {
	p := &provider{model: model}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// seen returns the requests so far.
func (p *provider) seen() []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]received(nil), p.requests...)
}

// ServeHTTP answers a request.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the caller left
	}
	request := received{path: r.URL.Path, header: r.Header.Clone(), body: body}
	p.mu.Lock()
	p.requests = append(p.requests, request)
	p.mu.Unlock()
	var asked struct {
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	say := p.model(request)
	var whole string
	var events []string
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		whole, events = say.chat()
	case strings.HasSuffix(r.URL.Path, "/responses"):
		whole, events = say.responses()
	case strings.HasSuffix(r.URL.Path, "/messages"):
		whole, events = say.messages()
	case strings.HasSuffix(r.URL.Path, ":generateContent"), strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		whole, events = say.gemini()
		asked.Stream = strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
	default:
		http.NotFound(w, r)
		return
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole) // the caller may be gone
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		if _, err := io.WriteString(w, event+"\n\n"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// chat words the turn in the chat form.
func (s turn) chat() (whole string, events []string) {
	const head = `"id":"chatcmpl-1","created":1700000000,"model":"vendor","object":"chat.completion`
	const usage = `"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}`
	content, calls, finish := quote(s.text), "", "stop"
	delta := `{"role":"assistant","content":` + content + `}`
	if s.tool != "" {
		call := fmt.Sprintf(`"id":"call_1","type":"function","function":{"name":%s,"arguments":%s}`, quote(s.tool), quote(s.input))
		content, calls, finish = "null", `,"tool_calls":[{`+call+`}]`, "tool_calls"
		delta = `{"role":"assistant","content":null,"tool_calls":[{"index":0,` + call + `}]}`
	}
	whole = fmt.Sprintf(`{%s","choices":[{"index":0,"message":{"role":"assistant","content":%s%s},"finish_reason":%s}],%s}`,
		head, content, calls, quote(finish), usage)
	frame := func(rest string) string { return "data: {" + head + `.chunk",` + rest + "}" }
	return whole, []string{
		frame(`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]`),
		frame(`"choices":[{"index":0,"delta":{},"finish_reason":` + quote(finish) + `}]`),
		frame(`"choices":[],` + usage),
		"data: [DONE]",
	}
}

// messages words the turn in the messages form.
func (s turn) messages() (whole string, events []string) {
	block, opened, delta, stop := `{"type":"text","text":`+quote(s.text)+`}`, `{"type":"text","text":""}`,
		`{"type":"text_delta","text":`+quote(s.text)+`}`, "end_turn"
	if s.tool != "" {
		call := `{"type":"tool_use","id":"toolu_1","name":` + quote(s.tool) + `,"input":`
		block, opened, delta, stop = call+s.input+`}`, call+`{}}`,
			`{"type":"input_json_delta","partial_json":`+quote(s.input)+`}`, "tool_use"
	}
	message := func(content, stop string, output int) string {
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"vendor","content":[%s],`+
			`"stop_reason":%s,"stop_sequence":null,`+
			`"usage":{"input_tokens":20,"output_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}`, content, stop, output)
	}
	event := func(name, rest string) string {
		return "event: " + name + "\ndata: " + `{"type":"` + name + `"` + rest + "}"
	}
	return message(block, quote(stop), 10), []string{
		event("message_start", `,"message":`+message("", "null", 1)),
		event("content_block_start", `,"index":0,"content_block":`+opened),
		event("content_block_delta", `,"index":0,"delta":`+delta),
		event("content_block_stop", `,"index":0`),
		event("message_delta", `,"delta":{"stop_reason":`+quote(stop)+`,"stop_sequence":null},"usage":{"output_tokens":10}`),
		event("message_stop", ""),
	}
}

// gemini words the turn as Google's API does.
func (s turn) gemini() (whole string, events []string) {
	part := `{"text":` + quote(s.text) + `}`
	if s.tool != "" {
		part = `{"functionCall":{"name":` + quote(s.tool) + `,"args":` + s.input + `}}`
	}
	whole = `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":10,"totalTokenCount":30},"modelVersion":"vendor","responseId":"r1"}`
	return whole, []string{"data: " + whole}
}

// responses words the turn in the responses form.
func (s turn) responses() (whole string, events []string) {
	text := func(text string) string { return `{"type":"output_text","text":` + quote(text) + `,"annotations":[]}` }
	message := func(status, content string) string {
		return `{"type":"message","id":"msg_1","role":"assistant","status":"` + status + `","content":[` + content + `]}`
	}
	call := func(status, input string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_1","call_id":"call_1","name":%s,"arguments":%s,"status":"%s"}`, quote(s.tool),
			quote(input), status)
	}
	response := func(status, output, usage string) string {
		return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1700000000,"status":"%s","model":"vendor","output":[%s],`+
			`"error":null,`+
			`"incomplete_details":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"usage":%s}`, status, output, usage)
	}
	event := func(name, rest string) {
		events = append(events, fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}", name, name, len(events), rest))
	}
	item := message("completed", text(s.text))
	event("response.created", `"response":`+response("in_progress", "", "null"))
	if s.tool != "" {
		item = call("completed", s.input)
		event("response.output_item.added", `"output_index":0,"item":`+call("in_progress", ""))
		event("response.function_call_arguments.delta", `"output_index":0,"item_id":"fc_1","delta":`+quote(s.input))
		event("response.function_call_arguments.done", `"output_index":0,"item_id":"fc_1","arguments":`+quote(s.input))
	} else {
		at := `"output_index":0,"item_id":"msg_1","content_index":0,`
		event("response.output_item.added", `"output_index":0,"item":`+message("in_progress", ""))
		event("response.content_part.added", at+`"part":`+text(""))
		event("response.output_text.delta", at+`"delta":`+quote(s.text))
		event("response.output_text.done", at+`"text":`+quote(s.text))
		event("response.content_part.done", at+`"part":`+text(s.text))
	}
	event("response.output_item.done", `"output_index":0,"item":`+item)
	whole = response("completed", item,
		`{"input_tokens":20,"input_tokens_details":{"cached_tokens":0},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":0},`+
			`"total_tokens":30}`)
	event("response.completed", `"response":`+whole)
	return whole, events
}

// onlyLine is a catalog with the model `worker`, which answers in all forms, on
// a line of one form.
func (p *provider) onlyLine(form string) string {
	adapter, path := "openai", "/v1"
	switch form {
	case "messages":
		adapter, path = "anthropic", ""
	case "gemini":
		adapter, path = "gemini", "/v1beta"
	}
	return fmt.Sprintf(`
models:
  - {id: worker, kind: chat, state: open, forms: [chat, responses, messages],`+
		` context_window: 200000, max_output_tokens: 64000, price: {input: 1, output: 1}}
lines:
  - {id: only, provider: %s, base_url: "%s%s", api_key: "${FAKE_KEY}", forms: [%s], models: {worker: vendor}}
`, adapter, p.url, path, form)
}

// quote writes a JSON string.
func quote(s string) string {
	out, _ := json.Marshal(s) // strings only: cannot fail
	return string(out)
}
