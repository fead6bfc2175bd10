package malformed

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"strings"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/sound/tone"
)

// samples returns the valid requests for every route with a body. address is the server for
// references and callbacks.
func samples(address string) map[string][]sample {
	all := operatorSamples(address)
	chat := func(model string) []sample {
		return []sample{withModel(wholeChat, model), withModel(streamedChat, model)}
	}
	var chats, responses, messages []sample
	for _, model := range []string{"own", "chat-line", "messages-line", "gemini-line"} {
		chats = append(chats, chat(model)...)
		responses = append(responses, withModel(wholeResponse, model), streamed(wholeResponse, model))
	}
	for _, model := range []string{"family", "family-chat", "family-gemini"} {
		messages = append(messages, withModel(wholeMessage, model), streamed(wholeMessage, model))
	}
	all["POST /v1/chat/completions"] = chats
	all["POST /v1/responses"] = responses
	all["POST /v1/responses/input_tokens"] = []sample{withModel(wholeResponse, "own"), withModel(wholeResponse, "chat-line")}
	all["POST /native/v1/messages"] = messages
	all["POST /native/v1/messages/count_tokens"] = []sample{withModel(wholeMessage, "family"), withModel(wholeMessage, "family-chat")}
	for _, family := range []string{"/v1beta", "/v1"} {
		for _, method := range []string{"generateContent", "streamGenerateContent", "countTokens"} {
			all["POST "+family+"/models/{id}:"+method] = []sample{withModel(wholeContent, ""), withModel(turnsContent, "")}
		}
	}

	image := fmt.Sprintf(`,"image":["%s/p.png","data:image/png;base64,%s"]}`, address, picture())
	plain := fmt.Sprintf(`{"model":"easel","prompt":"a lake","size":"1:1","n":1,"callback_url":"%s/callback"`, address)
	form, kind := form(address)
	all["POST /v1/embeddings"] = []sample{
		{body: `{"model":"meaning","input":["one","two"],"dimensions":16,"encoding_format":"base64","user":"u"}`},
		{body: `{"model":"meaning","input":[[1,2],[3]]}`},
	}
	all["POST /v1/rerank"] = []sample{
		{body: `{"model":"order","query":"one","documents":["one",{"text":"two","id":7}],"top_n":1,"return_documents":true}`},
	}
	all["POST /v2/rerank"] = all["POST /v1/rerank"]
	all["POST /v1/moderations"] = []sample{
		{body: `{"model":"judge","input":["one","violence"]}`},
		{body: `{"input":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}`},
	}
	all["POST /v1/audio/speech"] = []sample{
		{body: `{"model":"voice","input":"one","voice":"any","response_format":"wav","speed":1.5,"stream_format":"sse"}`},
	}
	heard, heardType := soundForm()
	all["POST /v1/audio/transcriptions"] = []sample{{body: heard, contentType: heardType}}
	all["POST /v1/audio/translations"] = all["POST /v1/audio/transcriptions"]
	all["POST /v1/images/generations"] = []sample{{body: plain + "}"}, {body: plain + image}}
	all["POST /v1/images/edits"] = []sample{{body: plain + image}, {body: form, contentType: kind}}
	all["POST /v1/videos/generations"] = []sample{{body: fmt.Sprintf(`{"model":"reel","prompt":"a lake","duration":5,"resolution":"720p",`+
		`"ratio":"16:9","references":[{"url":"%s/p.png","type":"image"}],"callBackUrl":"%s/callback"}`, address, address)},
		{body: fmt.Sprintf(`{"model":"reel","prompt":"a lake","first_frame":"%s/p.png","images":[{"url":"%s/p.png","role":"last_frame"}],`+
			`"audio":true,"seed":7,"negative_prompt":"fog"}`, address, address)}}
	return all
}

// Request bodies of the Gemini form, whose model is in the path.
const (
	wholeContent = `{"contents":[{"role":"user","parts":[{"text":"hello"},{"inlineData":{"mimeType":"image/png","data":"PICTURE"}}]}],` +
		`"systemInstruction":{"parts":[{"text":"be short"}]},"generationConfig":{"maxOutputTokens":16,"temperature":0.5,"candidateCount":1,` +
		`"responseModalities":["TEXT"],"thinkingConfig":{"thinkingBudget":0}},"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` +
		`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}}]}]}`
	turnsContent = `{"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{"a":1}},` +
		`"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"2"}}}]}],` +
		`"generation_config":{"max_output_tokens":16}}`
)

// Request bodies in the other forms. withModel replaces MODEL and PICTURE.
const (
	wholeChat = `{"model":"MODEL","messages":[{"role":"system","content":"be short"},{"role":"user","content":[` +
		`{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,PICTURE"}}]}],` +
		`"max_tokens":16,"temperature":0.5,"stop":["x"],"n":1,"tool_choice":"auto","stream":false,"user":"u",` +
		`"tools":[{"type":"function","function":{"name":"f","description":"d",` +
		`"parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]}`
	streamedChat = `{"model":"MODEL","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"2"}],"stream":true,` +
		`"stream_options":{"include_usage":true},"max_completion_tokens":16}`
	wholeMessage = `{"model":"MODEL","max_tokens":16,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"hello"},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PICTURE"}}]},` +
		`{"role":"assistant","content":"so"},{"role":"user","content":"on"}],` +
		`"tools":[{"name":"f","input_schema":{"type":"object"}}],"metadata":{"user_id":"u"}}`
	wholeResponse = `{"model":"MODEL","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}]},` +
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":"2"}],"instructions":"be short","max_output_tokens":64,` +
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"reasoning":{"effort":"low"}}`
)

// withModel returns the sample with a body for a model.
func withModel(body, model string) sample {
	return sample{body: strings.NewReplacer("MODEL", model, "PICTURE", picture()).Replace(body)}
}

// streamed is like withModel, but the request is for a stream.
func streamed(body, model string) sample {
	return withModel(strings.TrimSuffix(body, "}")+`,"stream":true}`, model)
}

// operatorSamples returns the samples for the operator API. The catalogs have a line of an unknown
// provider, so that no malformed request replaces the catalog. A request for a job or delivery that
// has already ended gets a 400.
func operatorSamples(address string) map[string][]sample {
	return map[string][]sample{
		"PUT /admin/v1/catalog": {
			{also: []int{400}, body: `{"models":[{"id":"x","kind":"chat","forms":["chat"],"context_window":1000,"max_output_tokens":100,` +
				`"price":{"input":1,"output":"2"}},{"id":"y","kind":"image","price":{"1K":0.03},"ratios":["1:1"]}],` +
				`"lines":[{"id":"l","provider":"nobody","models":{"x":"y"}}]}`},
			{also: []int{400}, contentType: "application/yaml", body: "models:\n  - &a {id: x, kind: chat, forms: [chat], " +
				"context_window: 1000, max_output_tokens: 10, price: {input: 1, output: 2}}\n" +
				"lines:\n  - {id: l, provider: nobody, models: {x: y}}\n"},
		},
		"POST /admin/v1/accounts": {{body: `{"name":"n","email":"EMAIL","password":"long enough password",` +
			`"overdraft_floor_usd":"-1.5","price_factor":"0.9","prices":{"own":1.25}}`}},
		"PATCH /admin/v1/accounts/{id}": {{body: `{"name":"m","email":"m@example.com","disabled":false,"overdraft_floor_usd":-2,` +
			`"price_factor":1.1,"prices":{}}`}},
		"POST /admin/v1/accounts/{id}/users":   {{body: `{"email":"EMAIL","password":"long enough password","operator":false}`}},
		"PATCH /admin/v1/users/{id}":           {{body: `{"password":"another long password","disabled":true,"second_factor":false}`}},
		"POST /admin/v1/users/{id}/link":       {{also: []int{400}}, {body: `{}`, also: []int{400}}}, // 400 for a disabled user
		"POST /admin/v1/accounts/{id}/credits": {{body: `{"usd":0.25,"note":"n"}`}, {body: `{"usd":"-0.05"}`}},
		"PATCH /admin/v1/entries/{id}":         {{body: `{"paid":true}`, also: []int{404}}},
		"POST /admin/v1/entries/{id}/invoice":  {{body: `{}`, also: []int{404}}, {body: `{"corrects":"INVOICE-2026-00001"}`, also: []int{404}}},
		"POST /admin/v1/codes":                 {{body: `{"usd":"0.5","count":2,"expires":4102444800}`}, {body: `{"usd":1}`}},
		"POST /admin/v1/announcements": {{body: `{"title":"t","text":"a\nb","level":"warning","from":1,"until":4102444800}`, also: []int{400}},
			{body: `{"title":"t"}`, also: []int{400}}}, // 400: there are ten
		"PATCH /admin/v1/announcements/{id}": {{body: `{"title":"u","until":null}`, also: []int{404}}},
		"POST /admin/v1/accounts/{id}/keys": {{body: `{"name":"k","rpm":5,"daily_budget_usd":1,"total_limit_usd":"2",` +
			`"allowed_models":["own"],"allowed_ips":["127.0.0.1","10.0.0.0/8"]}`}},
		"PATCH /admin/v1/keys/{id}": {{body: `{"name":"k","rpm":null,"daily_budget_usd":1.5,` +
			`"allowed_models":["own","easel"],"disabled":false}`}},
		"PUT /admin/v1/accounts/{id}/webhook": {{body: fmt.Sprintf(`{"url":"%s/callback","events":["image.completed","balance.low"],`+
			`"balance_low_credits":10}`, address)}},
		"POST /admin/v1/accounts/{id}/webhook/roll":  {{}, {body: `{}`}},
		"POST /admin/v1/accounts/{id}/webhook/test":  {{}, {body: `{}`}},
		"POST /admin/v1/deliveries/{id}/resend":      {{also: []int{400}}},
		"POST /admin/v1/mails/test":                  {{body: `{"to":"ann@example.com"}`, also: []int{400}}}, // 400: mail is off
		"POST /admin/v1/mails/{id}/resend":           {{also: []int{400, 404}}},
		"POST /admin/v1/top-ups/{id}/check":          {{also: []int{400}}}, // 400: the gateway takes no payments
		"POST /admin/v1/top-ups/problems/{id}/close": {{also: []int{404}}},
		"POST /admin/v1/top-ups/{id}/refunds":        {{body: `{"amount":"1.50","reason":"r"}`, also: []int{400}}},
		"POST /admin/v1/jobs/{id}/cancel":            {{also: []int{400}}},
		"POST /admin/v1/catalog/changes/{id}/cancel": {{also: []int{404}}},
		"POST /admin/v1/jobs/{id}/requeue":           {{also: []int{400}}, {body: `{}`, also: []int{400}}},
		"POST /admin/v1/lines/{id}/drain":            {{}},
		"POST /admin/v1/lines/{id}/resume":           {{}, {body: `{}`}},
		"PUT /admin/v1/secrets/{id}":                 {{body: `{"value":"sk-of-a-provider"}`, also: []int{400}}}, // 400: no secret_key
		"POST /admin/v1/secrets/rotate":              {{also: []int{400}}, {body: `{}`, also: []int{400}}},
	}
}

// picture returns a picture in base64.
func picture() string { return base64.StdEncoding.EncodeToString(fakestudio.Picture(3)) }

// form returns an image edit as a multipart form, and the form's content type.
func form(address string) (body, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("boundary0123456789") // writes to memory cannot fail
	for _, field := range [][2]string{{"model", "easel"}, {"prompt", "a lake"}, {"n", "1"}, {"callback_url",
		address + "/callback"}} {
		_ = w.WriteField(field[0], field[1])
	}
	for _, name := range []string{"image", "image[]"} {
		part, _ := w.CreateFormFile(name, "p.png")
		_, _ = part.Write(fakestudio.Picture(4))
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

// soundForm returns a transcription as a multipart form, and the form's content type.
func soundForm() (body, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("boundary0123456789") // writes to memory cannot fail
	for _, field := range [][2]string{{"model", "scribe"}, {"response_format", "verbose_json"}, {"timestamp_granularities[]", "word"}} {
		_ = w.WriteField(field[0], field[1])
	}
	part, _ := w.CreateFormFile("file", "s.wav")
	_, _ = part.Write(tone.Silence())
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}
