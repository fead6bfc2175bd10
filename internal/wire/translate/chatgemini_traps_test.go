package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// sentRequest is a request of the Gemini form as read by a strict server.
type sentRequest struct {
	System *struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"systemInstruction"`
	Contents []struct {
		Role  string           `json:"role"`
		Parts []map[string]any `json:"parts"`
	} `json:"contents"`
	Tools            []map[string]json.RawMessage `json:"tools"`
	GenerationConfig map[string]json.RawMessage   `json:"generationConfig"`
}

// shape returns the roles and kinds of parts: `user:text model:call,call`.
func (s sentRequest) shape() string {
	var turns []string
	for _, turn := range s.Contents {
		var kinds []string
		for _, part := range turn.Parts {
			for kind := range part {
				if kind != "thoughtSignature" {
					kinds = append(kinds, strings.TrimPrefix(kind, "function"))
				}
			}
		}
		turns = append(turns, turn.Role+":"+strings.Join(kinds, ","))
	}
	return strings.Join(turns, " ")
}

func toGemini(t testing.TB, body string, translation wire.Translation) ([]byte, error) {
	t.Helper()
	r, err := completions.Open([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := r.Check(); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return pairtest.Body(New(r, wire.FormGemini, wire.Identity{}), translation)
}

// sendGemini translates messages, and further members with a comma before them.
func sendGemini(t *testing.T, messages, further string) (sentRequest, string) {
	t.Helper()
	body, err := toGemini(t, `{"model":"m","messages":[`+messages+`]`+further+`}`, wire.Translation{Edits: wire.Edits{Model: "gemini-3-pro"}})
	if err != nil {
		t.Fatal(err)
	}
	var sent sentRequest
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return sent, string(body)
}

const (
	hi    = `{"role":"user","content":"hi"}`
	calls = `{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},` +
		`{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`
	forA     = `{"role":"tool","tool_call_id":"a","content":"A"}`
	forB     = `{"role":"tool","tool_call_id":"b","content":"B"}`
	textTurn = `{"role":"assistant","content":"so"}`
)

// TestGeminiTrapResultsMatchCalls checks that one turn with as many results follows every turn of
// calls.
func TestGeminiTrapResultsMatchCalls(t *testing.T) {
	t.Parallel()
	for messages, want := range map[string]struct {
		shape   string
		missing int
	}{
		calls + "," + forB + "," + forA: {"model:Call,Call user:Response,Response", 0},
		calls + "," + forB + "," + hi:   {"model:Call,Call user:Response,Response user:text", 1},
		calls + "," + hi:                {"model:Call,Call user:Response,Response user:text", 2},
		calls:                           {"model:Call,Call user:Response,Response", 2},
		calls + "," + forA + "," + forB + "," + textTurn: {"model:Call,Call user:Response,Response model:text", 0},
		calls + "," + forA + "," + calls + "," + forA + "," + forB: {
			"model:Call,Call user:Response,Response model:Call,Call user:Response,Response",
			1},
		calls + `,{"role":"system","content":"s"},` + forB + "," + textTurn: {"model:Call,Call user:Response,Response model:text", 1},
	} {
		sent, body := sendGemini(t, hi+","+messages, "")
		if got := sent.shape(); got != "user:text "+want.shape {
			t.Errorf("%s\ngot  %s\nwant user:text %s", messages, got, want.shape)
		}
		if got := strings.Count(body, `{"result":"(no result)"}`); got != want.missing {
			t.Errorf("%s\n%d results stand for none, want %d: %s", messages, got, want.missing, body)
		}
		if first := strings.Index(body, `"functionResponse":{"id":"a","name":"f"`); first < 0 || first > strings.Index(body,
			`"functionResponse":{"id":"b","name":"g"`) {
			t.Errorf("results are not in the order of the calls: %s", body)
		}
	}
}

// TestGeminiTrapConsecutiveRoles checks that successive turns of the model become one, and that the
// first turn is the user's.
func TestGeminiTrapConsecutiveRoles(t *testing.T) {
	t.Parallel()
	for messages, want := range map[string]string{
		hi + "," + textTurn + "," + textTurn:           "user:text model:text,text",
		hi + "," + textTurn + "," + calls + "," + forA: "user:text model:text,Call,Call user:Response,Response",
		hi + "," + hi:       "user:text user:text",
		textTurn + "," + hi: "user:text model:text user:text",
		calls:               "user:text model:Call,Call user:Response,Response",
		hi + "," + calls + "," + textTurn + "," + forA + "," + forB: "user:text model:Call,Call,text user:Response,Response",
	} {
		if sent, body := sendGemini(t, messages, ""); sent.shape() != want {
			t.Errorf("%s\ngot  %s\nwant %s\n%s", messages, sent.shape(), want, body)
		}
	}
}

// TestGeminiTrapEmptyContent expects no empty parts and turns, because the form rejects them.
func TestGeminiTrapEmptyContent(t *testing.T) {
	t.Parallel()
	const empty = `{"role":"user","content":""},{"role":"assistant","content":null},{"role":"user","content":[]},` +
		`{"role":"user","content":[{"type":"text","text":""}]},{"role":"system","content":""}`
	if sent, body := sendGemini(t, empty+","+hi, ""); sent.shape() != "user:text" || sent.System != nil || !strings.Contains(body, `"hi"`) {
		t.Errorf("%s", body)
	}
	if sent, body := sendGemini(t, empty, ""); sent.shape() != "user:text" {
		t.Errorf("%s", body)
	}
}

// TestGeminiTrapSchemaDialect expects unchanged schemas, except for ignored keywords of an
// answer's schema.
func TestGeminiTrapSchemaDialect(t *testing.T) {
	t.Parallel()
	const schema = `{"$schema":"x","type":"object","properties":{"a":{"type":["string","null"],"const":"b"},"n":{"$ref":"#/$defs/n"}},` +
		`"oneOf":[{}],"additionalProperties":false, "$defs":{"n":{"exclusiveMinimum":1.0}}}`
	_, body := sendGemini(t, hi,
		`,"tools":[{"type":"function","function":{"name":"f","parameters":`+schema+
			`}}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":`+schema+`}}`)
	const adapted = `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["b"]},"n":{"$ref":"#/$defs/n"}},` +
		`"oneOf":[{}],"additionalProperties":false,"$defs":{"n":{"description":"exclusiveMinimum: 1.0"}}}`
	for _, want := range []string{`"parametersJsonSchema":` + schema, `"responseJsonSchema":` + adapted,
		`"responseMimeType":"application/json"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
}

// TestGeminiTrapSignatures checks that the first call of a turn has the replacement for a missing
// signature.
func TestGeminiTrapSignatures(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int{
		"gemini-3-pro": 2, "gemini-3.1-flash": 2, "gemini-flash-latest": 2, "gemini-10-pro": 2, "models/gemini-4": 2,
		"gemini-2.5-pro": 0, "models/gemini-2.0-flash": 0, "gemini-1.5-pro": 0, "gemini-2": 0,
	} {
		body, err := toGemini(t, `{"model":"m","messages":[`+hi+","+calls+","+forA+","+forB+","+calls+`]}`,
			wire.Translation{Edits: wire.Edits{Model: model}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(body), `"thoughtSignature":"skip_thought_signature_validator"`); got != want {
			t.Errorf("%s: %d stand-ins, want %d: %s", model, got, want, body)
		}
	}
}

// TestGeminiTrapParallelCalls checks that calls without ids, or with the same id, get ids of their
// own in order, the same every time.
func TestGeminiTrapParallelCalls(t *testing.T) {
	t.Parallel()
	body := []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":1}}},` +
		`{"functionCall":{"id":"x","name":"f","args":{"n":2}}},{"functionCall":{"id":"x","name":"f","args":{"n":3}}},` +
		`{"functionCall":{"id":"","name":"g"}}]},"finishReason":"STOP"}]}`)
	var first []byte
	for range 2 {
		out, err := wholeOfGemini(body, wire.Usage{})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out
		} else if string(out) != string(first) {
			t.Errorf("not the same bytes: %s, %s", first, out)
		}
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Calls []struct {
					ID       string
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal(first, &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range answer.Choices[0].Message.Calls {
		got = append(got, c.ID+c.Function.Arguments)
	}
	if want := []string{`call_0001_1{"n":1}`, `x{"n":2}`, `call_0001_2{"n":3}`, `call_0001_3{}`}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGeminiTrapStableBytes checks that a continued conversation begins with the same bytes, for
// the provider's cache.
func TestGeminiTrapStableBytes(t *testing.T) {
	t.Parallel()
	rest := func(messages string) string {
		_, body := sendGemini(t, `{"role":"system","content":"s\u00e9"},`+messages, "")
		return strings.TrimSuffix(body, `],"generationConfig":{"responseModalities":["TEXT"]}}`)
	}
	shorter := rest(hi + "," + calls + "," + forB + "," + forA)
	if longer := rest(hi + "," + calls + "," + forB + "," + forA + "," + textTurn + "," + hi); !strings.HasPrefix(longer, shorter) {
		t.Errorf("%s\ndoes not begin with\n%s", longer, shorter)
	}
}

// TestGeminiTrapLimitInsideThoughts checks the finish reason of an answer with only thoughts.
// Limits include the thoughts.
func TestGeminiTrapLimitInsideThoughts(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"MAX_TOKENS", "CONTINUATION"} {
		a, err := gemini.ReadAnswer(
			[]byte(`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]},"finishReason":"` + reason + `"}]}`))
		if err != nil || a.Summary().Content || !a.Summary().Reasoning || !a.Summary().Limited || a.Summary().Err != nil {
			t.Errorf("%s: %+v, %v", reason, a, err)
		}
	}
}

// TestGeminiTrapNumbers expects numbers to keep their digits in both directions.
func TestGeminiTrapNumbers(t *testing.T) {
	t.Parallel()
	const numbers = `{"a":12345678901234567890,"b":1.0,"c":1.5e+30,"d":-0}`
	quoted, _ := json.Marshal(numbers)
	_, body := sendGemini(t,
		hi+`,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":`+string(quoted)+
			`}}]},{"role":"tool","tool_call_id":"a","content":`+string(quoted)+`}`,
		"")
	if !strings.Contains(body, `"args":`+numbers) || !strings.Contains(body, `"response":`+numbers) {
		t.Errorf("sent %s", body)
	}
	out, err := wholeOfGemini([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":`+numbers+`}}]}}]}`),
		wire.Usage{})
	if err != nil || !strings.Contains(string(out), `"arguments":`+string(quoted)) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestGeminiTrapUsage checks that thoughts are not included in the candidates, that cached tokens
// are included in the prompt, and that missing counts stay zero.
func TestGeminiTrapUsage(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]wire.Usage{
		`"promptTokenCount":10,"cachedContentTokenCount":4,"toolUsePromptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":20,` +
			`"totalTokenCount":38`: {Prompt: 15,
			Cached: 4, Completion: 23, Reasoning: 20},
		`"promptTokenCount":10,"thoughtsTokenCount":20,"totalTokenCount":30`: {Prompt: 10,
			Completion: 20, Reasoning: 20},
		`"promptTokenCount":10,"totalTokenCount":13`: {Prompt: 10,
			Completion: 3},
		`"promptTokenCount":20,"cachedContentTokenCount":4,"candidatesTokenCount":9,` +
			`"promptTokensDetails":[{"modality":"TEXT","tokenCount":5},{"modality":"IMAGE","tokenCount":6},{"modality":"AUDIO","tokenCount":7}],` +
			`"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":3},{"modality":"IMAGE","tokenCount":1}],` +
			`"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":4},{"modality":"AUDIO","tokenCount":2},` +
			`{"modality":"NEW","tokenCount":1}]`: {
			Prompt: 20, Cached: 4, PromptImage: 5, PromptAudio: 4, Completion: 9, CompletionImage: 4, CompletionAudio: 2},
		`"promptTokenCount":10,"candidatesTokenCount":0,"totalTokenCount":10`: {Prompt: 10},
		`"promptTokenCount":10,"candidatesTokenCount":3,"cachedContentTokenCount":99`: {Prompt: 10,
			Cached: 10, Completion: 3},
		`"promptTokenCount":10,"candidatesTokenCount":3,"totalTokenCount":99`: {Prompt: 10,
			Completion: 3},
		`"promptTokenCount":1e30,"candidatesTokenCount":1e30,"thoughtsTokenCount":1e30`: {Prompt: 1 << 40,
			Completion: 1 << 40, Reasoning: 1 << 40},
		`"promptTokenCount":10,"cachedContentTokenCount":-4,"toolUsePromptTokenCount":-5,"candidatesTokenCount":3,"thoughtsTokenCount":-20`: {
			Prompt:     10,
			Completion: 3},
		`"promptTokenCount":10,"candidatesTokenCount":-3,"totalTokenCount":13`: {Prompt: 10,
			Completion: 3},
	} {
		a, err := gemini.ReadAnswer([]byte(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{` + raw + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, known := a.Usage(); !known || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %t; want %+v", raw, got, known, want)
		}
	}
	for raw, want := range map[string]wire.Usage{
		``: {}, `"totalTokenCount":13`: {}, `"candidatesTokenCount":3`: {Completion: 3},
		`"promptTokenCount":"10","candidatesTokenCount":3`: {Completion: 3},
		`"promptTokenCount":-1,"toolUsePromptTokenCount":5,"candidatesTokenCount":3,"totalTokenCount":9,"serviceTier":"PRIORITY"`: {Completion: 3,
			ServiceTier: "priority"},
		`"promptTokenCount":10,"candidatesTokenCount":-3`: {Prompt: 10},
		`"promptTokenCount":10,"cachedContentTokenCount":4`: {Prompt: 10,
			Cached: 4},
		`"promptTokenCount":10,"totalTokenCount":10`: {Prompt: 10},
	} {
		a, err := gemini.ReadAnswer([]byte(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{` + raw + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, known := a.Usage(); known || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %t; want %+v", raw, got, known, want)
		}
	}
}

// TestGeminiTrapUsageOfABrokenStream expects a charge for the output of an incomplete stream,
// although most events before the last count only the prompt and the thoughts.
func TestGeminiTrapUsageOfABrokenStream(t *testing.T) {
	t.Parallel()
	m := gemini.NewMeter(1)
	for i, step := range []struct {
		event string
		want  wire.Usage
		known bool
	}{
		{`{"candidates":[{"content":{"parts":[{"text":"Hm, hm, hm.","thought":true}]}}],"usageMetadata":{"promptTokenCount":9}}`,
			wire.Usage{Prompt: 9}, false},
		{`{"candidates":[{"content":{"parts":[{"text":"12345"}]}}],"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":70,` +
			`"totalTokenCount":79}}`,
			wire.Usage{Prompt: 9, Completion: 72, Reasoning: 70}, false},
		{`{"candidates":[{"content":{"parts":[{"text":"678"}]}}],"usageMetadata":{"promptTokenCount":9}}`,
			wire.Usage{Prompt: 9, Completion: 72, Reasoning: 70}, false},
		{`{"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":70,"candidatesTokenCount":4}}`, wire.Usage{Prompt: 9,
			Completion: 74, Reasoning: 70}, false},
		{`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":90}}`,
			wire.Usage{Prompt: 9, Completion: 74, Reasoning: 70}, false},
		{`{"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":90,"candidatesTokenCount":5}}`, wire.Usage{Prompt: 9,
			Completion: 95, Reasoning: 90}, true},
		{`{"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}}`, wire.Usage{Prompt: 9,
			Completion: 95, Reasoning: 90}, true},
	} {
		if _, err := m.Read(sse.Event{Data: []byte(step.event)}); err != nil {
			t.Fatal(err)
		}
		if got, known := m.Usage(); known != step.known || !reflect.DeepEqual(got, step.want) {
			t.Errorf("event %d: %+v, %t; want %+v", i, got, known, step.want)
		}
	}
}

// TestGeminiTrapRefusals tests fields without a counterpart and with an effect on the answer,
// including addresses of images for models that fetch none.
func TestGeminiTrapRefusals(t *testing.T) {
	t.Parallel()
	user := func(part string) string { return `"messages":[{"role":"user","content":[` + part + `]}]` }
	for body, param := range map[string]string{
		user(`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`):                   "messages[0].content[0].image_url.url",
		user(`{"type":"text","text":"x"},{"type":"image_url","image_url":"http://example.com/a.png"}`): "messages[0].content[1].image_url",
		user(`{"type":"image_url","image_url":{"url":"data:image/png,abc"}}`):                          "messages[0].content[0].image_url.url",
		user(`{"type":"image_url","image_url":{"url":"data:;base64,abc"}}`):                            "messages[0].content[0].image_url.url",
		user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}`):                      "messages[0].content[0].image_url.url",
		user(`{"type":"image_url"}`):                                       "messages[0].content[0].image_url",
		user(`{"type":"file","file":{"filename":"a.pdf"}}`):                "messages[0].content[0].file.file_data",
		user(`{"type":"video_url","video_url":{"url":"https://e.com/x"}}`): "messages[0].content[0].type",
		user(`"text"`): "messages[0].content[0].type",
		`"messages":[{"role":"system","content":[{"type":"image_url","image_url":"data:image/png;base64,AA"}]}]`: "messages[0].content[0]",
		`"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function",` +
			`"function":{}}]}]`: "messages[0].tool_calls[0].function.name",
		`"messages":[` + hi + `],"tools":[{"type":"nobody_knows"}]`: "tools[0].type",
		`"messages":[` + hi + `],"tools":[{"type":"function"}]`:     "tools[0].function.name",
		`"messages":[` + hi + `],"tools":[{"type":"web_search"}]`:   "tools[0].type",
		`"messages":[` + hi + `],"web_search_options":{}`:           "web_search_options",
		`"messages":[` + hi + `],"tool_choice":"sometimes"`:         "tool_choice",
		`"messages":[` + hi +
			`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{}]}}`: "tool_choice.allowed_tools.tools[0]",
		`"messages":[` + hi + `],"response_format":{"type":"grammar"}`: "response_format.type",
		`"messages":[` + hi + `],"modalities":["text","video"]`:        "modalities[1]",
		`"messages":[` + hi + `],"reasoning_effort":"huge"`:            "reasoning_effort",
		`"messages":[` + hi + `],"service_tier":"scale"`:               "service_tier",
		`"messages":[` + hi + `],"speed":"fast"`:                       "speed",
	} {
		_, err := toGemini(t, `{"model":"m",`+body+`}`, wire.Translation{Edits: wire.Edits{Model: "gemini-2.5-flash"}})
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.InvalidRequest || f.Param != param || !strings.HasPrefix(f.Message(), "`"+param+"` ") {
			t.Errorf("%s: %v, want %s", body, err, param)
		}
	}
}

// TestGeminiTrapHistoriesOfOtherLines checks that histories accepted by all other lines are accepted:
// results without a call, a second result, words between two results, and empty ids.
func TestGeminiTrapHistoriesOfOtherLines(t *testing.T) {
	t.Parallel()
	const noIDs = `{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"","content":"A"}`
	for messages, want := range map[string]string{
		hi + "," + forA: "user:text user:text",
		hi + "," + calls + "," + forA + "," + forA + "," + forB:            "user:text model:Call,Call user:Response,Response",
		hi + "," + calls + "," + forA + "," + hi + "," + forB:              "user:text model:Call,Call user:Response,Response user:text",
		hi + "," + calls + `,{"role":"tool","content":"x"}`:                "user:text model:Call,Call user:Response,Response",
		hi + "," + calls + `,{"role":"function","name":"h","content":"x"}`: "user:text model:Call,Call user:Response,Response user:text",
		hi + "," + noIDs: "user:text model:Call user:Response",
		hi + `,{"role":"tool","tool_call_id":"x","content":[` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`: "user:text user:inlineData",
	} {
		if sent, body := sendGemini(t, messages, ""); sent.shape() != want {
			t.Errorf("%s\ngot  %s\nwant %s\n%s", messages, sent.shape(), want, body)
		}
	}
}

// TestGeminiTrapWordsOfOneForm expects no thinking blocks, and a refusal as text.
func TestGeminiTrapWordsOfOneForm(t *testing.T) {
	t.Parallel()
	sent, body := sendGemini(t,
		`{"role":"developer","content":"D","name":"n"},{"role":"user","content":"hi","name":"Ann"},`+
			`{"role":"assistant","content":null,"refusal":"No","annotations":[{"type":"url_citation"}],"reasoning_content":"hm"}`,
		`,"prediction":{"type":"content","content":"x"},"verbosity":"low","metadata":{"a":"b"},`+
			`"store":true,"parallel_tool_calls":false,"prompt_cache_key":"k","stream_options":null,"tool_choice":"auto","modalities":["text"],`+
			`"response_format":{"type":"text"}`)
	if want := `{"systemInstruction":{"parts":[{"text":"D"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]},` +
		`{"role":"model","parts":[{"text":"No"}]}],"generationConfig":{"responseModalities":["TEXT"]}}`; body != want {
		t.Errorf("%s\nsent %s\nwant %s", sent.shape(), body, want)
	}
}

// TestGeminiTrapFirstToken checks that texts, thoughts, calls and images are tokens, and that
// comments, empty texts and roles are not. A finish reason of a failure counts only without
// content.
func TestGeminiTrapFirstToken(t *testing.T) {
	t.Parallel()
	const thought, call, image = `{"text":"x","thought":true}`, `{"functionCall":{"name":"f"}}`,
		`{"inlineData":{"mimeType":"image/png","data":"AA"}}`
	for part, token := range map[string]bool{
		`{"text":""}`: false, `{"text":"","thoughtSignature":"AA"}`: false, `{"inlineData":{"mimeType":"audio/wav","data":"AA"}}`: false,
		`{"executableCode":{"code":"x"}}`: false, `{"text":null}`: false, `{"text":7}`: false,
		`{"inlineData":{"mimeType":"image/png","data":"AA"},"thought":true}`: false,
		`{"text":"x"}`: true, thought: true, call: true, image: true,
	} {
		f, err := gemini.NewMeter(1).Read(sse.Event{Data: []byte(`{"candidates":[{"content":{"role":"model","parts":[` + part + `]}}]}`)})
		if err != nil || f.Token != token {
			t.Errorf("%s: token %t, %v", part, f.Token, err)
		}
	}
	for _, e := range []sse.Event{{Raw: []byte(": ping\n\n")}, {Raw: []byte("\n")}, {Data: []byte("  ")}} {
		f, err := gemini.NewMeter(1).Read(e)
		if err != nil || f != (wire.Frame{}) {
			t.Errorf("%q: %+v, %v", e.Raw, f, err)
		}
	}
}

func TestGeminiMeterRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"hello", "{", `{"candidates":[}`, "[1]", "[]", `"x"`, `{"a":1} x`, "<html>", "[DONE]"} {
		if _, err := gemini.NewMeter(1).Read(sse.Event{Data: []byte(data)}); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", data, err)
		}
		if _, err := wholeOfGemini([]byte(data), wire.Usage{}); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s as an answer: %v", data, err)
		}
	}
	if _, err := gemini.ReadAnswer(nil); !errors.Is(err, wire.ErrMalformed) {
		t.Error(err)
	}
}

func TestGeminiFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{ // with text, and without
		"STOP": "stop ended", "MAX_TOKENS": "length limited", "CONTINUATION": "length limited",
		"SAFETY": "content_filter filtered", "RECITATION": "content_filter filtered", "BLOCKLIST": "content_filter filtered",
		"PROHIBITED_CONTENT": "content_filter filtered", "SPII": "content_filter filtered", "IMAGE_SAFETY": "content_filter filtered",
		"IMAGE_PROHIBITED_CONTENT": "content_filter filtered", "IMAGE_RECITATION": "content_filter filtered",
		"NEW_REASON": "stop ended", "LANGUAGE": " failed", "IMAGE_OTHER": " failed", "NO_IMAGE": " failed",
		"OTHER": " failed", "MALFORMED_FUNCTION_CALL": " failed", "MALFORMED_RESPONSE": " failed",
		"MISSING_THOUGHT_SIGNATURE": " failed", "UNEXPECTED_TOOL_CALL": " failed", "TOO_MANY_TOOL_CALLS": " failed",
	} {
		answer := func(parts string) []byte {
			return []byte(`{"candidates":[{"content":{"parts":[` + parts + `]},"finishReason":"` + reason + `"}]}`)
		}
		finish, kind, _ := strings.Cut(want, " ")
		full, err := gemini.ReadAnswer(answer(`{"text":"x"}`))
		if err != nil || (full.Summary().Err != nil) != (kind == "failed") || !full.Summary().Content {
			t.Errorf("%s: %+v, %v", reason, full, err)
		}
		out, err := wholeOfGemini(answer(`{"text":"x"}`), wire.Usage{})
		if err != nil {
			t.Fatal(err)
		}
		if kind != "failed" && !strings.Contains(string(out), fmt.Sprintf(`"finish_reason":%q`, finish)) {
			t.Errorf("%s: %s", reason, out)
		}
		empty, err := gemini.ReadAnswer(answer(`{"text":"hm","thought":true}`))
		if err != nil || empty.Summary().Limited != (kind == "limited") || empty.Summary().Filtered != (kind == "filtered") ||
			(empty.Summary().Err != nil) != (kind == "failed") {
			t.Errorf("%s without content: %+v, %v", reason, empty, err)
		}
		if empty.Summary().Err != nil && empty.Summary().Err.Reason != reason {
			t.Errorf("%s: %v", reason, empty.Summary().Err)
		}
	}
}

func TestGeminiProbe(t *testing.T) {
	t.Parallel()
	for _, reasoning := range []bool{false, true} {
		body, ok := wire.Probe(wire.FormGemini, "gemini-3-pro", reasoning, "")
		var sent sentRequest
		if err := json.Unmarshal(body,
			&sent); err != nil || !ok || sent.shape() != "user:text" || sent.GenerationConfig["maxOutputTokens"] == nil {
			t.Errorf("%v, %t: %s", err, ok, body)
		}
	}
}
