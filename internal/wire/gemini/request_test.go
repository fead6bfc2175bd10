package gemini_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
)

// check opens and checks a body.
func check(t *testing.T, body string) (*gemini.Request, error) {
	t.Helper()
	r, err := gemini.Open([]byte(body), gemini.Method{Model: "m"})
	if err != nil {
		return nil, err
	}
	return r, r.Check()
}

// mustCheck is check for a valid body.
func mustCheck(t *testing.T, body string) *gemini.Request {
	t.Helper()
	r, err := check(t, body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// with returns a request with further top-level members.
func with(members string) string {
	return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]` + strings.TrimRight(","+members, ",") + `}`
}

// withPart returns a request with one part of the user.
func withPart(part string) string { return `{"contents":[{"role":"user","parts":[` + part + `]}]}` }

// TestCheckRejects checks the code and Google's path of the field for each bad request.
func TestCheckRejects(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		code  fault.Code
		param string
	}{
		`{`:                                   {fault.InvalidJSON, ""},
		`{}`:                                  {fault.InvalidMessages, "contents"},
		`{"contents":[]}`:                     {fault.InvalidMessages, "contents"},
		`{"contents":"hi"}`:                   {fault.InvalidMessages, "contents"},
		`{"contents":["hi"]}`:                 {fault.InvalidMessages, "contents[0]"},
		`{"contents":[{"role":"assistant"}]}`: {fault.InvalidRole, "contents[0].role"},
		`{"contents":[{"role":"user","part":[]}]}`: {fault.InvalidRequest, "contents[0].part"},
		withPart(`"hi"`):                     {fault.InvalidRequest, "contents[0].parts[0]"},
		withPart(`{"text":1}`):               {fault.InvalidMessages, "contents[0].parts[0].text"},
		withPart(`{"Text":"hi"}`):            {fault.InvalidRequest, "contents[0].parts[0].Text"},
		withPart(`{"text":"a","video":"b"}`): {fault.InvalidRequest, "contents[0].parts[0].video"},
		withPart(`{"inlineData":{"mimeType":"audio/wav","data":"AA=="}}`): {fault.InvalidRequest,
			"contents[0].parts[0].inlineData.mimeType"},
		withPart(`{"inlineData":{"mime_type":"audio/wav","data":"AA=="}}`): {fault.InvalidRequest,
			"contents[0].parts[0].inlineData.mimeType"},
		withPart(`{"fileData":{"mimeType":"image/png","fileUri":"gs://bucket/x.png"}}`): {fault.InvalidRequest,
			"contents[0].parts[0].fileData.fileUri"},
		withPart(`{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc"}}`): {
			fault.InvalidRequest, "contents[0].parts[0].fileData.fileUri"},
		withPart(`{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"audio/ogg","data":"AA"}}]}}`): {
			fault.InvalidRequest, "contents[0].parts[0].functionResponse.parts[0].inlineData.mimeType"},
		with(`"systemInstruction":"be brief"`):                                     {fault.InvalidRequest, "systemInstruction"},
		with(`"system_instruction":{"parts":[]},"systemInstruction":{"parts":[]}`): {fault.InvalidJSON, ""},
		with(`"cachedContent":"cachedContents/1"`):                                 {fault.InvalidRequest, "cachedContent"},
		with(`"cached_content":"cachedContents/1"`):                                {fault.InvalidRequest, "cachedContent"},
		with(`"odd":1`):                                             {fault.InvalidRequest, "odd"},
		with(`"Tools":[]`):                                          {fault.InvalidRequest, "Tools"},
		with(`"store":true`):                                        {fault.InvalidRequest, "store"},
		with(`"generationConfig":[]`):                               {fault.InvalidRequest, "generationConfig"},
		with(`"generationConfig":{"maxOutputTokens":0}`):            {fault.InvalidMaxTokens, "generationConfig.maxOutputTokens"},
		with(`"generationConfig":{"maxOutputTokens":"5"}`):          {fault.InvalidMaxTokens, "generationConfig.maxOutputTokens"},
		with(`"generationConfig":{"candidateCount":0}`):             {fault.InvalidRequest, "generationConfig.candidateCount"},
		with(`"generationConfig":{"candidateCount":129}`):           {fault.InvalidRequest, "generationConfig.candidateCount"},
		with(`"generationConfig":{"speechConfig":{}}`):              {fault.InvalidRequest, "generationConfig.speechConfig"},
		with(`"generationConfig":{"routingConfig":{}}`):             {fault.InvalidRequest, "generationConfig.routingConfig"},
		with(`"generationConfig":{"responseModalities":["AUDIO"]}`): {fault.InvalidRequest, "generationConfig.responseModalities[0]"},
		with(`"generationConfig":{"responseModalities":"TEXT"}`):    {fault.InvalidRequest, "generationConfig.responseModalities"},
		with(`"generationConfig":{"thinkingConfig":{"budget":1}}`):  {fault.InvalidRequest, "generationConfig.thinkingConfig.budget"},
		with(`"serviceTier":1`):                                     {fault.InvalidRequest, "serviceTier"},
		with(`"tools":"googleSearch"`):                              {fault.InvalidRequest, "tools"},
		with(`"tools":["googleSearch"]`):                            {fault.InvalidRequest, "tools[0]"},
		with(`"tools":[{"functionDeclarations":[{"name":"f","googleSearch":{}}]}]`): {
			fault.InvalidRequest, "tools[0].functionDeclarations[0].googleSearch"},
		with(`"toolConfig":{"x":1}`):                                  {fault.InvalidRequest, "toolConfig.x"},
		with(`"toolConfig":{"functionCallingConfig":{"Mode":"ANY"}}`): {fault.InvalidRequest, "toolConfig.functionCallingConfig.Mode"},
	} {
		_, err := check(t, body)
		if code, param := wiretest.CodeOf(t, err); code != want.code || param != want.param {
			t.Errorf("%s: %s, param %q, want %s, %q", body, code, param, want.code, want.param)
		}
	}
}

// TestCheckReads checks the parameters of good requests.
func TestCheckReads(t *testing.T) {
	t.Parallel()
	r := mustCheck(t, with(`"generationConfig":{"maxOutputTokens":7,"candidateCount":2,"responseModalities":["TEXT","IMAGE"]},`+
		`"serviceTier":"FLEX",
		"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}},{"url_context":{}}],"labels":{"Text":"x"}`))
	if r.Limit != 7 || r.LimitParam != "generationConfig.maxOutputTokens" || r.N != 2 || r.ServiceTier != "flex" {
		t.Errorf("limit %d in %s, n %d, tier %q", r.Limit, r.LimitParam, r.N, r.ServiceTier)
	}
	if len(r.Options) != 2 || r.Options[0].PriceKey() != "service_tier" || r.Options[1].PriceKey() != "modalities" ||
		r.Options[1].Name != "image" {
		t.Errorf("options %+v", r.Options)
	}
	if len(r.Parameters.Tools) != 2 || r.Parameters.Tools[0].Name != "web_search" ||
		r.Parameters.Tools[0].Param != "tools[1].googleSearch" ||
		r.Parameters.Tools[1].Name != "url_context" || !r.Bound.Unbounded {
		t.Errorf("tools %+v", r.Parameters.Tools)
	}
	if r := mustCheck(t, withPart(`{"inlineData":{"mimeType":"image/png","data":"`+strings.Repeat("A", 4000)+`"}}`)); r.Bound.Images != 1 ||
		r.Bound.TextBytes > 200 || r.Bound.Unbounded {
		t.Errorf("an image: %+v", r.Bound)
	}
	if r := mustCheck(t, withPart(`{"fileData":{"mimeType":"image/png","fileUri":"https://a.example/x.png"}}`)); r.Bound.Images != 1 ||
		r.Bound.Unbounded {
		t.Errorf("an image by address: %+v", r.Bound)
	}
	if r := mustCheck(t, withPart(`{"inlineData":{"mimeType":"application/pdf","data":"AAAA"}}`)); !r.Bound.Unbounded {
		t.Errorf("a document: %+v", r.Bound)
	}
	// The client chooses the names inside arguments, results and schemas.
	mustCheck(t, `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f",`+
		`"args":{"Text":1,"text":2}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"mimeType":"audio/wav","fileUri":"gs://x"}}}]}],
		"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"Name":{"type":"STRING"},"name":{
			"type":"STRING"}}}}]}]}`)
}

// TestConversationKey checks that all requests of a conversation have the same key.
func TestConversationKey(t *testing.T) {
	t.Parallel()
	first := mustCheck(t, with(`"systemInstruction":{"parts":[{"text":"Be brief."}]}`)).Conversation
	later := mustCheck(t, `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]},
		{"role":"model","parts":[{"text":"Hello."}]},{"role":"user","parts":[{"text":"more"}]}]}`).Conversation
	other := mustCheck(t, with(`"systemInstruction":{"parts":[{"text":"Be long."}]}`)).Conversation
	if first != later || first == other || first == 0 {
		t.Errorf("keys %d, %d, %d", first, later, other)
	}
}

// TestBody checks the body for a line of the same form.
func TestBody(t *testing.T) {
	t.Parallel()
	seal := base64.StdEncoding.EncodeToString([]byte(conversation.SealID("", []conversation.Part{{Text: []byte("Hm.")}})))
	call := func(more string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}` +
			`` + more + `},{"functionCall":{"name":"g"}}]}],` +
			`"generationConfig":{"responseModalities":["TEXT"]}}`
	}
	sealed := base64.URLEncoding.EncodeToString(wire.Seal([]byte("c2ln"), "account 1"))
	const bypass = `,"thoughtSignature":"skip_thought_signature_validator"`
	for name, tt := range map[string]struct {
		body  string
		edits wire.Edits
		want  string
	}{
		"own seal": {call(`,"thoughtSignature":"` + sealed + `"`), wire.Edits{Model: "gemini-3-pro", Origin: "account 1"},
			call(`,"thoughtSignature":"c2ln"`)},
		"seal of another account": {call(`,"thoughtSignature":"` + sealed + `"`), wire.Edits{Model: "gemini-3-pro", Origin: "account 2"},
			call(bypass)},
		"rejected": {call(`,"thoughtSignature":"c2ln"`), wire.Edits{Model: "gemini-3-pro", NoSealed: true}, call(bypass)},
		"unchanged": {with(`"generationConfig":{"responseModalities":["TEXT"] },  "safetySettings":[]`), wire.Edits{Model: "gemini-3-pro"},
			with(`"generationConfig":{"responseModalities":["TEXT"] },  "safetySettings":[]`)},
		"limit and text only": {with(``), wire.Edits{Limit: 9}, with(`"generationConfig":{"maxOutputTokens":9,` +
			`"responseModalities":["TEXT"]}`)},
		"own limit": {with(`"generationConfig":{"maxOutputTokens":5}`), wire.Edits{Limit: 9},
			with(`"generationConfig":{"responseModalities":["TEXT"],"maxOutputTokens":5}`)},
		"null": {with(`"generationConfig":{"maxOutputTokens":null,"topK":3}`), wire.Edits{Limit: 9},
			with(`"generationConfig":{"maxOutputTokens":9,"responseModalities":["TEXT"],"topK":3}`)},
		"model": {`{"model":"models/x",` + with(`"generationConfig":{"responseModalities":["TEXT"]}`)[1:], wire.Edits{},
			with(`"generationConfig":{"responseModalities":["TEXT"]}`)},
		"snake case": {`{"contents":{"parts":{"text":"a_b"}},"generation_config":{"response_modalities":["TEXT"],"top_k":3}}`, wire.Edits{},
			`{"contents":{"parts":{"text":"a_b"}},"generationConfig":{"responseModalities":["TEXT"],"topK":3}}`},
		"own signature": {call(`,"thoughtSignature":"c2ln"`), wire.Edits{Model: "gemini-3-pro"}, call(`,"thoughtSignature":"c2ln"`)},
		"foreign signature": {call(`,"thoughtSignature":"` + seal + `"`), wire.Edits{Model: "gemini-2.5-pro"},
			call(`,"thoughtSignature":"skip_thought_signature_validator"`)},
		"no signature":    {call(``), wire.Edits{Model: "gemini-3-pro"}, call(`,"thoughtSignature":"skip_thought_signature_validator"`)},
		"before Gemini 3": {call(``), wire.Edits{Model: "gemini-2.5-pro"}, call(``)},
	} {
		if got := string(mustCheck(t, tt.body).Body(tt.edits).Bytes()); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
}

// TestCountBody checks the two shapes of the body of countTokens.
func TestCountBody(t *testing.T) {
	t.Parallel()
	for _, body := range []string{with(`"generationConfig":{"responseModalities":["TEXT"]}`),
		`{"generateContentRequest":{"model":"models/x",` + with(`"generation_config":{"responseModalities":["TEXT"]}`)[1:] + `}`} {
		r, err := gemini.OpenCount([]byte(body), "m")
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(r.Body(wire.Edits{}).Bytes()), with(`"generationConfig":{"responseModalities":["TEXT"]}`); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzRequest checks that no body makes a check, an edit or a translation panic, and that every accepted
// body stays JSON.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{with(``), withPart(`{"inline_data":{"mime_type":"image/png","data":"AA-_"}}`),
		with(`"tools":{"function_declarations":{"name":"f","parameters":{"type":"OBJECT","nullable":true,` +
			`"properties":{"a":{"type":"STRING","enum":["x"],"min_length":"1"}}}}}`),
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"dGcxLmFiY2RlZmdoLnN0YXRl"}` +
			`]},{"parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}]}`,
		with(`"generationConfig":{"responseMimeType":"application/json","responseSchema":{"anyOf":[{"type":"NULL"}]},` +
			`"stopSequences":["x"],"thinkingConfig":{"thinkingBudget":-1}}`),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, open := range []func() (*gemini.Request, error){
			func() (*gemini.Request, error) { return gemini.Open(body, gemini.Method{Model: "m", Stream: true}) },
			func() (*gemini.Request, error) { return gemini.OpenCount(body, "m") },
		} {
			r, err := open()
			if err != nil || r.Check() != nil {
				continue
			}
			if sent := r.Body(wire.Edits{Model: "gemini-3-pro", Limit: 5}).Bytes(); !rawjson.IsValid(sent) {
				t.Errorf("%q becomes %q, which is not JSON", body, sent)
			}
			_, _ = r.Decode()
			r.Prompt(&wire.Counter{}, 10)
		}
	})
}
