package forms

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// Tests of clients of the Gemini form, on lines of all forms.

// geminiModes are the ways of Google's clients to get an answer: the method with its query.
var geminiModes = map[string]string{
	"whole": "generateContent", "events": "streamGenerateContent?alt=sse", "array": "streamGenerateContent",
}

// geminiObject is an answer of the Gemini form, or an object of a stream.
type geminiObject struct {
	Candidates []struct {
		Index   int
		Content struct {
			Role  string
			Parts []struct {
				Text             *string
				Thought          bool
				ThoughtSignature string
				FunctionCall     *struct {
					ID, Name string
					Args     json.RawMessage
				}
			}
		}
		FinishReason string
	}
	UsageMetadata *struct{ PromptTokenCount, CandidatesTokenCount, ThoughtsTokenCount, CachedContentTokenCount, TotalTokenCount int64 }
	ModelVersion  string
	Error         *googleError
}

type googleError struct {
	Code            int
	Message, Status string
	Details         []struct {
		Type       string `json:"@type"`
		Reason     string
		Metadata   map[string]string
		RetryDelay string
	}
}

// code returns the gateway's code and the field in the details of an error.
func (e *googleError) code() (code, param string) {
	if e == nil || len(e.Details) == 0 {
		return "", ""
	}
	return e.Details[0].Metadata["code"], e.Details[0].Metadata["param"]
}

// readGemini parses an answer: one object, events or an array.
func readGemini(t *testing.T, a scene.FormAnswer, model string) (r reading, fault *googleError) {
	t.Helper()
	var objects []geminiObject
	parse := func(text string, to any) {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Errorf("%v in %s", err, text)
		}
	}
	kind := a.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		for _, f := range framesOf(t, a.Raw) {
			objects = append(objects, geminiObject{})
			parse(f.data, &objects[len(objects)-1])
		}
	case strings.HasPrefix(a.Raw, "["):
		parse(a.Raw, &objects)
	default:
		objects = append(objects, geminiObject{})
		parse(a.Raw, &objects[0])
	}
	for i, o := range objects {
		if o.Error != nil {
			if fault = o.Error; i < len(objects)-1 {
				t.Errorf("objects after an error: %s", a.Raw)
			}
			break
		}
		if o.ModelVersion != model || len(o.Candidates) != 1 || o.Candidates[0].Content.Role != "model" {
			t.Errorf("object %d of %s", i, a.Raw)
			continue
		}
		c := o.Candidates[0]
		for _, p := range c.Content.Parts {
			switch {
			case p.FunctionCall != nil:
				r.calls = append(r.calls, p.FunctionCall.Name+"("+string(p.FunctionCall.Args)+")")
			case p.Text != nil && p.Thought:
				r.hint += *p.Text
			case p.Text != nil:
				r.text += *p.Text
			}
		}
		if c.FinishReason != "" {
			if r.end, r.whole = c.FinishReason, true; i < len(objects)-1 {
				t.Errorf("objects after the end: %s", a.Raw)
			}
		}
		if u := o.UsageMetadata; u != nil {
			r.prompt, r.completion, r.cached = u.PromptTokenCount, u.CandidatesTokenCount+u.ThoughtsTokenCount, u.CachedContentTokenCount
			if r.whole && u.TotalTokenCount != r.prompt+r.completion {
				t.Errorf("a total of %d tokens in %s", u.TotalTokenCount, a.Raw)
			}
		}
	}
	return r, fault
}

// geminiPath returns the path of a method of a model.
func geminiPath(model, method string) string { return "/v1beta/models/" + model + ":" + method }

// geminiHi is a small request, with further members.
func geminiHi(more string) string {
	return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":500,` +
		`"responseModalities":["TEXT"]}` + more + `}`
}

const geminiTool = `,"tools":[{"functionDeclarations":[{"name":"weather","parameters":{"type":"OBJECT",` +
	`"properties":{"city":{"type":"STRING"}},"required":["city"]}}]}]`

// TestGeminiClients plays clients of the Gemini form.
func TestGeminiClients(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	t.Run("matrix", func(t *testing.T) { playForms(t, binary, nil, geminiMatrix) })
	t.Run("broken", func(t *testing.T) { playForms(t, binary, nil, geminiBroken) })
	t.Run("requests", func(t *testing.T) { playForms(t, binary, nil, geminiRequests) })
	t.Run("turns", func(t *testing.T) { playForms(t, binary, nil, geminiTurns) })
	t.Run("others", func(t *testing.T) {
		playForms(t, binary, nil, func(t testing.TB) []scene.Scenario {
			return []scene.Scenario{geminiRefusals(t), geminiHosted(t), geminiCounts(t), geminiLists(),
				geminiAccounts(t, "whole"), geminiAccounts(t, "events"), geminiAccounts(t, "array")}
		})
	})
}

// geminiScene is a scene with one model on one line.
func geminiScene(name, model, line string, p *fakeprovider.Server, modelMore map[string]any, play func(t *testing.T,
	s scene.FormClient)) scene.Scenario {
	return single{name: name, in: scene.Gemini, line: line, model: model, provider: p, modelMore: modelMore}.plays(play)
}

// geminiMatrix combines every form of lines with every way to get an answer, for a text and for calls.
func geminiMatrix(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, line := range lineForms() {
		for mode, method := range geminiModes {
			for _, tools := range []bool{false, true} {
				model := fmt.Sprintf("g-%s-%s-%v", line, mode, tools)
				p := fakeprovider.New(t)
				stream := mode != "whole"
				p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
					if q.IsStream() != stream {
						t.Errorf("%s: the provider got %s %s", model, q.URI, q.Body)
					}
					if tools {
						return answerParts{text: "Let me look.", cities: []string{"Oslo", "Rome"}}.reply(line, stream)
					}
					return fakeprovider.Good(line, stream)
				})
				scenes = append(scenes, geminiScene(model, model, line, p, nil, func(t *testing.T, s scene.FormClient) {
					body, want := geminiHi(""), reading{text: goodText}
					if tools {
						body, want = geminiHi(geminiTool), reading{text: "Let me look.", calls: []string{goodCall,
							`weather({"city":"Rome"})`}}
					}
					a := s.Post(geminiPath(model, method), body)
					r, fault := readGemini(t, a, model)
					if a.Status != 200 || a.Cut || fault != nil || r.end != "STOP" || r.text != want.text ||
						fmt.Sprint(r.calls) != fmt.Sprint(want.calls) ||
						r.prompt != 1000 || r.completion != 500 {
						t.Errorf("%d, %+v in %s", a.Status, r, a.Raw)
					}
					if kind := a.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/event-stream") != (mode == "events") {
						t.Errorf("content type %s", kind)
					}
					if rc := s.CheckCharge(a, scene.AnswerCost); rc.Prompt != 1000 || rc.Completion != 500 || rc.Line != model {
						t.Errorf("receipt %+v", rc)
					}
				}))
			}
		}
	}
	return scenes
}

// geminiBroken plays streams that fail after a text: the last object is the error, and the text is charged.
func geminiBroken(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, line := range lineForms() {
		for _, mode := range []string{"events", "array"} {
			model := "g-broken-" + line + "-" + mode
			p := fakeprovider.New(t, fakeprovider.Reply{ContentType: "text/event-stream", Raw: append(brokenBegin(line),
				brokenFailure(line))})
			scenes = append(scenes, geminiScene(model, model, line, p, nil, func(t *testing.T, s scene.FormClient) {
				a := s.Post(geminiPath(model, geminiModes[mode]), geminiHi(""))
				r, fault := readGemini(t, a, model)
				if code, _ := fault.code(); a.Status != 200 || a.Cut || r.text != brokenText || r.whole || code != "upstream_busy" ||
					fault.Status != "UNAVAILABLE" {
					t.Errorf("%d, %+v, %+v in %s", a.Status, r, fault, a.Raw)
				}
				rc := s.Gateway.Receipt(t, s.Account, a.ID())
				s.CheckCharge(a, money.Amount(rc.Prompt*1000+rc.Completion*2000))
				if rc.Code != "upstream_busy" || rc.Completion == 0 {
					t.Errorf("receipt %+v", rc)
				}
			}))
		}
	}
	return scenes
}

// geminiRequests checks what lines of each form get for a request with most fields of the form.
func geminiRequests(t testing.TB) []scene.Scenario {
	const body = `{"system_instruction":{"parts":[{"text":"Be brief."}]},
		"contents":[{"role":"user","parts":[{"text":"What is it?"},{"inline_data":{"mime_type":"image/png","data":"iVBO-w_0"}}]}],
		"tools":[{"functionDeclarations":[{"name":"get.weather","description":"Weather.","parameters":{"type":"OBJECT","nullable":true,
			"properties":{"city":{"type":"STRING","minLength":"1"}},"required":["city"],"propertyOrdering":["city"]}},{"name":"other"}]}],
		"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["get.weather"]}},
		"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],
		"generationConfig":{"maxOutputTokens":500,"temperature":0.25,"topP":0.5,"topK":3,"stopSequences":["END"],"responseModalities":["TEXT"],
			"thinkingConfig":{"thinkingBudget":512,"includeThoughts":true}}}`
	var scenes []scene.Scenario
	for line, wants := range map[string][]string{
		"chat": {`{"role":"system","content":"Be brief."}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO+w/0"}}`,
			`"parameters":{"type":["object","null"],"properties":{"city":{"type":"string","minLength":1}},"required":["city"]}`,
			`"tool_choice":{"type":"function","function":{"name":"get_weather_`, `"temperature":0.25`, `"top_p":0.5`,
			`"stop":["END"]`, `"max_tokens":500`},
		"messages": {`"system":[{"type":"text","text":"Be brief."}]`, `"source":{"type":"base64","media_type":"image/png",` +
			`"data":"iVBO+w/0"}`,
			`"tool_choice":{"type":"tool","name":"get_weather_`, `"stop_sequences":["END"]`, `"max_tokens":500`},
		"gemini": {`"systemInstruction":{"parts":[{"text":"Be brief."}]}`, `{"inlineData":{"mimeType":"image/png","data":"iVBO-w_0"}}`,
			`"allowedFunctionNames":["get.weather"]`, `"topK":3`, `"thinkingConfig":{"thinkingBudget":512,"includeThoughts":true}`,
			`"propertyOrdering":["city"]`,
			`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]`},
	} {
		model := "g-request-" + line
		p := fakeprovider.New(t, fakeprovider.Good(line, false))
		scenes = append(scenes, geminiScene(model, model, line, p, nil, func(t *testing.T, s scene.FormClient) {
			a := s.Post(geminiPath(model, "generateContent"), body)
			if r, _ := readGemini(t, a, model); r.text != goodText {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			got := string(p.Requests()[0].Body)
			for _, want := range wants {
				if !strings.Contains(got, want) {
					t.Errorf("sent %s; want %s in it", got, want)
				}
			}
		}))
	}
	return scenes
}

// geminiTurns returns the calls of an answer to the line, with their results and without their ids.
func geminiTurns(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for line, wants := range map[string][]string{
		"chat": {`"reasoning_content":"Hm."`, `"tool_call_id":"call_1","content":"rain"`, `"tool_call_id":"call_2",` +
			`"content":"{\"sky\":1}"`},
		"responses": {`"encrypted_content":"c2VjcmV0"`, `"output":"rain"`, `"output":"{\"sky\":1}"`},
		"messages": {`"tool_use_id":"call_1","content":[{"type":"text","text":"rain"}]`,
			`"tool_use_id":"call_2","content":[{"type":"text","text":"{\"sky\":1}"}]`},
		"gemini": {`"thoughtSignature":"ZmFrZQ=="`, `"response":{"output":"rain"}`, `"response":{"sky":1}`},
	} {
		model := "g-turns-" + line
		p := fakeprovider.New(t, answerParts{thought: "Hm.", seal: "c2VjcmV0", cities: []string{"Oslo", "Rome"}}.reply(line, true),
			fakeprovider.Good(line, false))
		scenes = append(scenes, geminiScene(model, model, line, p, map[string]any{"reasoning": true}, func(t *testing.T,
			s scene.FormClient) {
			a := s.Post(geminiPath(model, geminiModes["array"]), geminiHi(geminiTool))
			var objects []struct {
				Candidates []struct {
					Content struct {
						Parts []map[string]json.RawMessage
					}
				}
			}
			if err := json.Unmarshal([]byte(a.Raw), &objects); err != nil {
				t.Fatalf("%v in %s", err, a.Raw)
			}
			var parts []string
			for _, o := range objects {
				for _, part := range o.Candidates[0].Content.Parts {
					if call := part["functionCall"]; call != nil {
						var named map[string]json.RawMessage
						_ = json.Unmarshal(call, &named) // read above
						delete(named, "id")
						part["functionCall"], _ = json.Marshal(named)
						text, _ := json.Marshal(part)
						parts = append(parts, string(text))
					}
				}
			}
			if len(parts) != 2 {
				t.Fatalf("%d calls in %s", len(parts), a.Raw)
			}
			history := `{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[` + strings.Join(parts, ",") + `]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":"rain"}}},` +
				`{"functionResponse":{"name":"weather","response":{"sky":1}}}]}`
			b := s.Post(geminiPath(model, "generateContent"), `{"contents":[`+history+`]`+geminiTool+`}`)
			if r, _ := readGemini(t, b, model); b.Status != 200 || r.text != goodText {
				t.Fatalf("%d %s", b.Status, b.Raw)
			}
			got := string(p.Requests()[1].Body)
			for _, want := range wants {
				if !strings.Contains(got, want) {
					t.Errorf("sent %s; want %s in it", got, want)
				}
			}
		}))
	}
	return scenes
}

// geminiRefusals checks errors before any line is asked: their status, Google's name of it, and the
// gateway's code and the field in the details.
func geminiRefusals(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t) // a request fails the test
	return geminiScene("refusals of the Gemini form", "g-refused", "responses", p, nil, func(t *testing.T, s scene.FormClient) {
		for _, c := range []struct {
			path, body  string
			status      int
			name        string
			code, param string
		}{
			{geminiPath("g-unknown", "generateContent"), geminiHi(""), 404, "NOT_FOUND", "not_found", "model"},
			{geminiPath("g-refused", "generateContent"), `{`, 400, "INVALID_ARGUMENT", "invalid_json", ""},
			{geminiPath("g-refused", "generateContent"), `{"contents":[]}`, 400, "INVALID_ARGUMENT", "invalid_messages", "contents"},
			{geminiPath("g-refused", "streamGenerateContent"), geminiHi(`,"cachedContent":"cachedContents/1"`), 400, "INVALID_ARGUMENT",
				"invalid_request", "cachedContent"},
			{geminiPath("g-refused", "generateContent"), geminiHi(`,"tools":[{"codeExecution":{}}]`), 400, "INVALID_ARGUMENT",
				"invalid_request", "tools[0].codeExecution"},
			{geminiPath("g-refused", "generateContent"), geminiHi(`,"tools":[{"google_search":{}}]`), 400, "INVALID_ARGUMENT",
				"invalid_request", "tools[0].googleSearch"},
			{geminiPath("g-refused", "generateContent"), geminiHi(`,"serviceTier":"priority"`), 400, "INVALID_ARGUMENT",
				"invalid_request", "serviceTier"},
			{geminiPath("g-refused", "generateContent"), `{"contents":[{"parts":[{"text":"hi"}]}],` +
				`"generationConfig":{"candidateCount":2}}`, 400, "INVALID_ARGUMENT",
				"invalid_request", "generationConfig.candidateCount"},
			{geminiPath("g-refused", "generateContent"), `{"contents":[{"parts":[{"text":"hi"}]}],` +
				`"generationConfig":{"responseMimeType":"text/x.enum"}}`, 400,
				"INVALID_ARGUMENT", "invalid_request", "generationConfig.responseMimeType"},
			{geminiPath("g-refused", "generateContent"), `{"contents":[{"parts":[{"inlineData":{"mimeType":"video/mp4","data":"AA=="}` +
				`}]}]}`, 400,
				"INVALID_ARGUMENT", "invalid_request", "contents[0].parts[0].inlineData.mimeType"},
			{geminiPath("g-refused", "embedContent"), `{}`, 404, "NOT_FOUND", "not_found", ""},
		} {
			a := s.Post(c.path, c.body)
			_, fault := readGemini(t, a, "")
			if fault == nil {
				t.Errorf("%s %s: %d %s", c.path, c.body, a.Status, a.Raw)
				continue
			}
			if code, param := fault.code(); a.Status != c.status || fault.Code != c.status || fault.Status != c.name || code != c.code ||
				param != c.param {
				t.Errorf("%s %s: %d %s", c.path, c.body, a.Status, a.Raw)
			}
		}
		path := geminiPath("g-refused", "generateContent")
		for _, headers := range [][]string{nil, {"x-goog-api-key", "sk-wrong"}, {"Authorization", "Bearer sk-wrong"}} {
			a := scene.Call(t, s.Gateway, "POST", path, geminiHi(""), headers...)
			if _, fault := readGemini(t, a, ""); a.Status != 401 || fault == nil || fault.Status != "UNAUTHENTICATED" {
				t.Errorf("%q: %d %s", headers, a.Status, a.Raw)
			}
		}
		_, poor := s.Gateway.Process.Account(0, nil)
		a := scene.Call(t, s.Gateway, "POST", path, geminiHi(""), "x-goog-api-key", poor)
		_, fault := readGemini(t, a, "")
		if code, _ := fault.code(); a.Status != 402 || code != "insufficient_quota" || fault.Status != "FAILED_PRECONDITION" {
			t.Errorf("without money: %d %s", a.Status, a.Raw)
		}
	})
}

// geminiHosted charges a hosted tool with a price on a line of the form, and refuses it on other lines.
func geminiHosted(t testing.TB) scene.Scenario {
	google, chat := fakeprovider.New(t), fakeprovider.New(t)
	grounded := strings.Replace(fakeprovider.GeminiAnswer("rain", 100, 10).Body, `"index":0`,
		`"index":0,"groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://a.example"}}]}`, 1)
	google.Expect(fakeprovider.JSON(http.StatusOK, grounded))
	return scene.Scenario{
		Name: "hosted tools of the Gemini form",
		Models: []map[string]any{scene.FormModel("g-search", scene.PriceList(), scene.Gemini),
			scene.FormModel("g-search-chat", scene.PriceList(), scene.Gemini)},
		Lines: []map[string]any{scene.FormLine("g-search", "gemini", google.URL(), nil, "g-search"),
			scene.FormLine("g-search-chat", "chat", chat.URL(), nil, "g-search-chat")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Gemini.NewClient(t, g)
			body := geminiHi(`,"tools":[{"googleSearch":{}}]`)
			a := s.Post(geminiPath("g-search", "generateContent"), body)
			if a.Status != 200 || !strings.Contains(a.Raw, `"webSearchQueries":["a","b"]`) {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			s.CheckCharge(a, 100*1000+10*10_000+2*money.USD/100)
			if got := string(google.Requests()[0].Body); got != body {
				t.Errorf("sent %s, want %s", got, body)
			}
			b := s.Post(geminiPath("g-search-chat", "generateContent"), body)
			_, fault := readGemini(t, b, "")
			if code, param := fault.code(); b.Status != 400 || code != "invalid_request" || param != "tools[0].googleSearch" {
				t.Errorf("on a chat line: %d %s", b.Status, b.Raw)
			}
		},
	}
}

// geminiCounts counts tokens: by the provider on a line of the form, by the gateway on another.
func geminiCounts(t testing.TB) scene.Scenario {
	google := fakeprovider.New(t, fakeprovider.JSON(200, `{"totalTokens":31}`), fakeprovider.JSON(200, `{"totalTokens":32}`))
	chat := fakeprovider.New(t)
	return scene.Scenario{
		Name:   "countTokens",
		Models: []map[string]any{scene.FormModel("g-count", nil, scene.Gemini), scene.FormModel("g-count-chat", nil, scene.Gemini)},
		Lines: []map[string]any{scene.FormLine("g-count", "gemini", google.URL(), nil, "g-count"),
			scene.FormLine("g-count-chat", "chat", chat.URL(), nil, "g-count-chat")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Gemini.NewClient(t, g)
			content := `"contents":[{"parts":[{"text":"one two three"}]}]`
			for i, body := range []string{"{" + content + "}", `{"generateContentRequest":{"model":"models/g-count",` + content + `}}`} {
				if a := s.Post(geminiPath("g-count", "countTokens"), body); a.Status != 200 ||
					strings.TrimSpace(a.Raw) != fmt.Sprintf(`{"totalTokens":%d}`, 31+i) {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
				if got := string(google.Requests()[i].Body); !strings.HasPrefix(got,
					`{"generateContentRequest":{"model":"models/vendor-g-count",`) ||
					!strings.Contains(got, content) || strings.Count(got, `"model"`) != 1 {
					t.Errorf("sent %s", got)
				}
			}
			if a := s.Post(geminiPath("g-count-chat", "countTokens"), "{"+content+"}"); a.Status != 200 ||
				strings.TrimSpace(a.Raw) != `{"totalTokens":10}` {
				t.Errorf("by the gateway: %d %s", a.Status, a.Raw)
			}
		},
	}
}

// geminiLists lists models in Google's format, at Google's paths and for Google's clients.
func geminiLists() scene.Scenario {
	return scene.Scenario{
		Name: "models in Google's format",
		Models: []map[string]any{scene.FormModel("g-list/1", nil, scene.Gemini), scene.FormModel("g-list/2", map[string]any{
			"reasoning": true}, scene.Gemini),
			scene.FormModel("g-unlisted", nil, scene.Chat)},
		Lines: []map[string]any{scene.FormLine("g-list", "gemini", "http://127.0.0.1:1", nil, "g-list/1", "g-list/2", "g-unlisted")},
		Play: func(t *testing.T, g *scene.Gateway) {
			_, key := g.Process.Account(0, nil)
			get := func(path string) scene.FormAnswer { return scene.Call(t, g, "GET", path, "", "x-goog-api-key", key) }
			const first = `{"name":"models/g-list/1","displayName":"g-list/1","version":"g-list/1","inputTokenLimit":100000,` +
				`"outputTokenLimit":1000,` +
				`"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`
			for _, path := range []string{"/v1beta/models/g-list/1", "/v1/models/g-list/1"} {
				if a := get(path); a.Status != 200 || strings.TrimSpace(a.Raw) != first {
					t.Errorf("%s: %d %s", path, a.Status, a.Raw)
				}
			}
			for _, path := range []string{"/v1beta/models?pageSize=1000", "/v1/models?pageSize=1000"} {
				if a := get(path); a.Status != 200 || !strings.Contains(a.Raw, first) || strings.Contains(a.Raw, "g-unlisted") ||
					strings.Contains(a.Raw, "nextPageToken") ||
					!strings.Contains(a.Raw, `"thinking":true`) {
					t.Errorf("%s: %d %s", path, a.Status, a.Raw)
				}
			}
			var names []string
			for token := ""; ; {
				var page struct {
					Models []struct{ Name string }
					Next   string `json:"nextPageToken"`
				}
				a := get("/v1beta/models?pageSize=1&pageToken=" + token)
				if err := json.Unmarshal([]byte(a.Raw), &page); err != nil || len(page.Models) != 1 {
					t.Fatalf("%v: %s", err, a.Raw)
				}
				names = append(names, page.Models[0].Name)
				if token = page.Next; token == "" {
					break
				}
			}
			if all := strings.Join(names, " "); !strings.Contains(all, "models/g-list/1 models/g-list/2") || strings.Contains(all,
				"g-unlisted") {
				t.Errorf("pages %s", all)
			}
			for _, path := range []string{"/v1beta/models/g-unlisted", "/v1beta/models/g-nothing"} {
				if a := get(path); a.Status != 404 || !strings.Contains(a.Raw, `"status":"NOT_FOUND"`) {
					t.Errorf("%s: %d %s", path, a.Status, a.Raw)
				}
			}
			if a := scene.Call(t, g, "GET", "/v1beta/models?key="+key, ""); a.Status != 200 {
				t.Errorf("key in the query: %d %s", a.Status, a.Raw)
			}
			if a := scene.Call(t, g, "GET", "/v1/models", "", "Authorization", "Bearer "+key); !strings.Contains(a.Raw, `"object":"list"`) {
				t.Errorf("OpenAI's list: %d %s", a.Status, a.Raw)
			}
		},
	}
}

// geminiAccounts returns a signature to the account that made it, and to no other account.
func geminiAccounts(t testing.TB, mode string) scene.Scenario {
	const own = `"thoughtSignature":"ZmFrZQ=="` // of GeminiCall
	model, stream := "g-accounts-"+mode, mode != "whole"
	first := fakeprovider.New(t, answerParts{cities: []string{"Oslo"}}.reply("gemini", stream), fakeprovider.Good("gemini", stream),
		fakeprovider.Error(503, "server_error", "", "x"))
	second := fakeprovider.New(t, fakeprovider.Good("gemini", stream))
	lines := []map[string]any{scene.FormLine(model+"-a", "gemini", first.URL(), map[string]any{"priority": 1}, model),
		scene.FormLine(model+"-b", "gemini", second.URL(), map[string]any{"priority": 2}, model)}
	for _, line := range lines {
		line["models"] = map[string]string{model: "gemini-3.5-flash"}
	}
	return scene.Scenario{
		Name: "two accounts of Gemini, " + mode, Models: []map[string]any{scene.FormModel(model, nil, scene.Gemini)}, Lines: lines,
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Gemini.NewClient(t, g)
			path := geminiPath(model, geminiModes[mode])
			a := s.Post(path, geminiHi(geminiTool))
			signature := regexp.MustCompile(`"thoughtSignature":"([^"]+)"`).FindStringSubmatch(a.Raw)
			if r, _ := readGemini(t, a, model); len(r.calls) != 1 || signature == nil || strings.Contains(a.Raw, own) {
				t.Fatalf("%d %s; want a signature under a seal", a.Status, a.Raw)
			}
			again := `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"weather","args":{}},` +
				signature[0] + `}]},{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":"rain"}}}]}]` + geminiTool + `}`
			for range 2 {
				if a := s.Post(path, again); a.Status != 200 {
					t.Fatalf("%d %s", a.Status, a.Raw)
				}
			}
			if got := string(first.Requests()[1].Body); !strings.Contains(got, own) {
				t.Errorf("the first account got %s, want its signature", got)
			}
			if got := string(second.Requests()[0].Body); !strings.Contains(got, `"thoughtSignature":"skip_thought_signature_validator"`) {
				t.Errorf("the second account got %s, want another signature", got)
			}
		},
	}
}
