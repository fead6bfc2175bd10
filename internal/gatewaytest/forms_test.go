package gatewaytest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// These tests speak every form with the real process, on lines of every form:
// what a client of each form gets, byte by byte where it is passed on, and what
// it is charged.

// spoken is a form that clients speak.
type spoken string

// The forms of clients, by their names in the catalog.
const (
	inChat      spoken = "chat"
	inResponses spoken = "responses"
	inMessages  spoken = "messages"
)

// path is the form's endpoint.
func (s spoken) path() string {
	switch s {
	case inResponses:
		return "/v1/responses"
	case inMessages:
		return "/native/v1/messages"
	}
	return "/v1/chat/completions"
}

// clientForms are all forms of clients, lineForms all forms of lines.
func clientForms() []spoken { return []spoken{inChat, inResponses, inMessages} }
func lineForms() []string   { return []string{"chat", "responses", "messages", "gemini"} }

// formModel is a model that is called in the given forms.
func formModel(id string, more map[string]any, forms ...spoken) map[string]any {
	m := chatModel(id, more)
	var names []string
	for _, in := range forms {
		names = append(names, string(in))
	}
	m["forms"] = names
	return m
}

// formLine is a line that speaks one form.
func formLine(id, form, url string, more map[string]any, models ...string) map[string]any {
	l := chatLine(id, url, map[string]any{"forms": []string{form}}, models...)
	switch form {
	case "messages":
		l["provider"] = "anthropic"
	case "gemini":
		l["provider"] = "gemini"
	}
	for k, v := range more {
		l[k] = v
	}
	return l
}

// playForms plays scenes on both databases, each in a process with the given
// settings.
func playForms(t *testing.T, binary string, settings map[string]string, build func(t testing.TB) []scene) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		all := map[string]string{"database": database, "FAILING_LINE_KEY": credential}
		for k, v := range settings {
			all[k] = v
		}
		f := &fixture{process: gatewaytest.Start(t, binary, all), client: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, Timeout: time.Minute}}
		f.lines = &lineStates{process: f.process}
		t.Cleanup(f.client.CloseIdleConnections)
		scenes := build(t)
		var models, lines []map[string]any
		for _, s := range scenes {
			models, lines = append(models, s.models...), append(lines, s.lines...)
		}
		f.process.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
		queue := make(chan scene)
		var group sync.WaitGroup
		for range 12 {
			group.Go(func() {
				for s := range queue {
					t.Run(s.name, func(t *testing.T) { s.play(t, f) })
				}
			})
		}
		for _, s := range scenes {
			queue <- s
		}
		close(queue)
		group.Wait()
		f.audit(t)
	})
}

// speaker is an account with a key that speaks one form.
type speaker struct {
	t            *testing.T
	f            *fixture
	in           spoken
	account, key string
}

// tenUSD is what a speaker's account begins with.
const tenUSD = 10 * money.USD

// speaker opens an account with 10 USD.
func (s spoken) speaker(t *testing.T, f *fixture) speaker {
	t.Helper()
	account, key := f.process.Account(10, nil)
	return speaker{t, f, s, account, key}
}

// heard is an answer as a client got it.
type heard struct {
	status int
	header http.Header
	raw    string
	cut    bool // the body broke off
}

func (h heard) id() string { return h.header.Get("x-request-id") }

// post sends a body; headers come as pairs. A gateway that says it is
// overloaded, which a busy machine is soon, is asked again: it has done nothing
// then.
func (s speaker) post(path, body string, headers ...string) heard {
	s.t.Helper()
	var h heard
	eventually(s.t, "the gateway takes a request", func() bool {
		h = callFor(s.t, s.f, "POST", path, body, append([]string{"x-api-key", s.key, "Authorization", "Bearer " + s.key}, headers...)...)
		return h.status != 503 || !strings.Contains(h.raw, "temporary problem")
	})
	return h
}

// ask sends a request to the form's endpoint.
func (s speaker) ask(body string) heard {
	s.t.Helper()
	return s.post(s.in.path(), body)
}

// callFor makes a request of the process and reads its answer to the end.
func callFor(t testing.TB, f *fixture, method, path, body string, headers ...string) heard {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.process.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	h := heard{answer.StatusCode, answer.Header, string(raw), err != nil}
	if id := h.id(); !strings.HasPrefix(id, "req_") || h.header.Get("request-id") != id {
		t.Errorf("%s %s: request ids %q and %q", method, path, id, h.header.Get("request-id"))
	}
	return h
}

// watch is ask for a stream: then is called once, when a text has come.
func (s speaker) watch(body, text string, then func()) heard {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.f.process.URL+s.in.path(), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := s.f.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	h := heard{status: answer.StatusCode, header: answer.Header}
	in := bufio.NewReader(answer.Body)
	for err == nil {
		var line string
		line, err = in.ReadString('\n')
		if h.raw += line; then != nil && strings.Contains(line, text) {
			then()
			then = nil
		}
	}
	h.cut = !errors.Is(err, io.EOF)
	return h
}

// charged checks what the receipt of an answer says, and that nothing else was
// charged and nothing is held. It returns the receipt.
func (s speaker) charged(h heard, cost money.Amount) receipt {
	s.t.Helper()
	r := s.f.receipt(s.t, s.account, h.id())
	if r.Cost != cost || r.Status != h.status {
		s.t.Errorf("receipt %+v; want %s and status %d", r, cost, h.status)
	}
	s.f.checkMoney(s.t, s.account, tenUSD, answer{id: h.id(), status: h.status})
	return r
}

// askIn is a request of a form, with further members; nil ones leave theirs
// out.
func askIn(in spoken, model string, stream bool, more map[string]any) string {
	members := map[string]any{"model": model, "stream": stream}
	switch in {
	case inResponses:
		members["input"], members["max_output_tokens"] = "hi", 500
	default:
		members["messages"], members["max_tokens"] = []any{map[string]any{"role": "user", "content": "hi"}}, 500
	}
	for k, v := range more {
		if members[k] = v; v == nil {
			delete(members, k)
		}
	}
	out, _ := json.Marshal(members) // plain values: cannot fail
	return string(out)
}

// weatherTool is the tools of a request that has a function.
func weatherTool(in spoken) map[string]any {
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}
	var tool map[string]any
	switch in {
	case inResponses:
		tool = map[string]any{"type": "function", "name": "weather", "parameters": schema}
	case inMessages:
		tool = map[string]any{"name": "weather", "input_schema": schema}
	default:
		tool = map[string]any{"type": "function", "function": map[string]any{"name": "weather", "parameters": schema}}
	}
	return map[string]any{"tools": []any{tool}}
}

// What the healthy lines of all forms say, for 1000 and 500 tokens.
const (
	goodText = "all is well"
	goodCall = `weather({"city":"Oslo"})`
)

// goodReply is a line's good answer: goodText, or goodCall.
func goodReply(form string, stream, tools bool) fakeprovider.Reply {
	if tools {
		return callReply(form, stream)
	}
	pieces := []string{"all ", "is well"}
	switch form {
	case "responses":
		if stream {
			return fakeprovider.ResponsesStream(1000, 500, pieces...)
		}
		return fakeprovider.ResponsesAnswer(goodText, 1000, 500)
	case "messages":
		if stream {
			return fakeprovider.NativeStream(1000, 500, pieces...)
		}
		return fakeprovider.NativeAnswer(goodText, 1000, 500)
	case "gemini":
		if stream {
			return fakeprovider.GeminiStream(1000, 500, pieces...)
		}
		return fakeprovider.GeminiAnswer(goodText, 1000, 500)
	}
	if stream {
		return fakeprovider.Stream(1000, 500, pieces...)
	}
	return fakeprovider.Answer(goodText, 1000, 500)
}

// callReply is goodReply with goodCall.
func callReply(form string, stream bool) fakeprovider.Reply {
	switch form {
	case "responses":
		item := func(status, arguments string) string {
			return fmt.Sprintf(`{"id":"fc_fake","type":"function_call","call_id":"call_1","name":"weather","status":%q,"arguments":%q}`, status, arguments)
		}
		done := item("completed", `{"city":"Oslo"}`)
		if !stream {
			return fakeprovider.Reply{Body: fakeprovider.ResponsesObject("completed", fakeprovider.ResponsesUsage(1000, 500), done)}
		}
		piece := func(text string) string {
			return fakeprovider.ResponsesEvent("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_fake","output_index":0,"delta":%q`, text))
		}
		return fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin()[:2],
			fakeprovider.ResponsesEvent("response.output_item.added", `"output_index":0,"item":`+item("in_progress", "")),
			piece(`{"city":`), piece(`"Oslo"}`),
			fakeprovider.ResponsesEvent("response.function_call_arguments.done", `"item_id":"fc_fake","output_index":0,"arguments":"{\"city\":\"Oslo\"}"`),
			fakeprovider.ResponsesEvent("response.output_item.done", `"output_index":0,"item":`+done),
			fakeprovider.ResponsesEnd("completed", fakeprovider.ResponsesUsage(1000, 500), done))...)
	case "messages":
		if !stream {
			return fakeprovider.Reply{Body: `{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model",` +
				`"content":[{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo"}}],"stop_reason":"tool_use","stop_sequence":null,` +
				`"usage":{"input_tokens":1000,"output_tokens":500}}`}
		}
		piece := func(text string) string {
			return fakeprovider.NativeEvent("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"input_json_delta","partial_json":%q}`, text))
		}
		return fakeprovider.NativeEvents(fakeprovider.NativeStart(1000),
			fakeprovider.NativeEvent("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}`),
			piece(""), piece(`{"city":`), piece(`"Oslo"}`), fakeprovider.NativeEvent("content_block_stop", `"index":0`),
			fakeprovider.NativeEnd("tool_use", 500), fakeprovider.NativeStop())
	case "gemini":
		call := fakeprovider.GeminiEvent("STOP", 1000, 500, fakeprovider.GeminiCall("weather", `{"city":"Oslo"}`))
		if stream {
			return fakeprovider.Reply{Events: []string{call}}
		}
		return fakeprovider.Reply{Body: call}
	}
	if !stream {
		return saying(200, `{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"vendor-model","choices":[{"index":0,"message":`+
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},`+
			`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}}`)
	}
	return *events(frame(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]}`, `null`),
		frame(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}`, `null`),
		frame(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}`, `null`),
		frame(`{}`, `"tool_calls"`), fakeprovider.UsageFrame(1000, 500), "[DONE]")
}

// isStreamed tells whether a request that reached a provider asks for a stream.
func isStreamed(q fakeprovider.Request) bool {
	return bytes.Contains(q.Body, []byte(`"stream":true`)) || strings.Contains(q.URI, ":streamGenerateContent")
}
