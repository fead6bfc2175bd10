package forms

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// The prices of the model in nano-dollars per token. 1000 is a dollar per million tokens. All parts
// of a bill have different prices. Above 1000 prompt tokens, the price of output is 1.5 times as
// high, and all other prices are doubled.
const (
	pIn, pOut               = 3000, 15_000
	pRead, pWrite, pWrite1h = 300, 3750, 6000
	pImage, pSound          = 5000, 7000 // in a prompt of any length
	pSearch                 = 10_000_000 // per call
)

// receiptPrices returns the prices for a catalog.
func receiptPrices() map[string]any {
	return map[string]any{"price": map[string]any{
		"input": 3, "output": 15, "cached_input": 0.3, "cache_write": 3.75, "cache_write_1h": 6,
		"above":      []any{map[string]any{"prompt_tokens": 1000, "input": 6, "output": 22.5}},
		"options":    map[string]any{"service_tier": map[string]any{"priority": 2, "flex": 0.5}},
		"tools":      map[string]any{"web_search": 0.01},
		"modalities": map[string]any{"image": map[string]any{"input": 5}, "audio": map[string]any{"input": 7}},
	}}
}

// receipt is a provider's usage with the expected tokens and cost. The costs are calculated by hand,
// independent of the product.
type receipt struct {
	name     string
	provider string         // if empty, the usual provider of the form
	line     string         // form of the line
	prices   map[string]any // scene.PriceList for a bill; nil means receiptPrices
	usage    string
	whole    string                        // the answer, if unusual; if whole and usage are empty, only the stream is played
	events   []string                      // events of the stream, if unusual
	ask      map[scene.Form]map[string]any // request members by form; nil means all forms without further members
	prompt   int64
	cached   int64
	output   int64
	cost     money.Amount
}

// inForm returns a member for requests in one form only.
func inForm(form scene.Form, name string, value any) map[scene.Form]map[string]any {
	return map[scene.Form]map[string]any{form: {name: value}}
}

// unchanged restricts a receipt to requests in one form, without further members.
func unchanged(form scene.Form) map[scene.Form]map[string]any {
	return map[scene.Form]map[string]any{form: nil}
}

func receipts() []receipt {
	search := func(kind string) []any { return []any{map[string]any{"type": kind}} }
	rows := []receipt{
		// Chat completions of several vendors.
		{name: "OpenAI, predictions and reasoning are within the completion", line: "chat",
			usage: `{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":400,"audio_tokens":0},"completion_tokens":250,` +
				`"completion_tokens_details":{"reasoning_tokens":200,"accepted_prediction_tokens":10,"rejected_prediction_tokens":5},` +
				`"total_tokens":1150}`,
			prompt: 900, cached: 400, output: 250, cost: (900-400)*pIn + 400*pRead + 250*pOut},
		{name: "OpenAI, a long prompt", line: "chat",
			usage:  `{"prompt_tokens":1400,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens":50,"total_tokens":1450}`,
			prompt: 1400, cached: 400, output: 50, cost: (1400-400)*2*pIn + 400*2*pRead + 50*(pOut+pOut/2)},
		{name: "OpenAI, priority requested and served", line: "chat", ask: inForm(scene.Chat, "service_tier", "priority"),
			usage:  `{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150,"service_tier":"priority"}`,
			prompt: 900, output: 250, cost: 2 * (900*pIn + 250*pOut)},
		{name: "OpenAI, priority requested but not served", line: "chat", ask: inForm(scene.Chat, "service_tier", "priority"),
			usage:  `{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150,"service_tier":"default"}`,
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "OpenAI, flex, for a long prompt", line: "chat", ask: inForm(scene.Chat, "service_tier", "flex"),
			usage:  `{"prompt_tokens":1001,"completion_tokens":250,"total_tokens":1251,"service_tier":"flex"}`,
			prompt: 1001, output: 250, cost: (1001*2*pIn + 250*(pOut+pOut/2)) / 2},
		{name: "Azure", provider: "azure", line: "chat",
			usage:  `{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":128},"completion_tokens":250,"total_tokens":1150}`,
			prompt: 900, cached: 128, output: 250, cost: (900-128)*pIn + 128*pRead + 250*pOut},
		{name: "Bedrock", provider: "bedrock", line: "chat",
			usage: `{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150}`, prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "DeepSeek, hits and misses", line: "chat",
			usage: `{"prompt_tokens":900,"prompt_cache_hit_tokens":640,"prompt_cache_miss_tokens":260,"completion_tokens":250,` +
				`"completion_tokens_details":{"reasoning_tokens":180},"total_tokens":1150}`,
			prompt: 900, cached: 640, output: 250, cost: 260*pIn + 640*pRead + 250*pOut},
		{name: "Moonshot, cached at the top", line: "chat",
			usage:  `{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150,"cached_tokens":256}`,
			prompt: 900, cached: 256, output: 250, cost: (900-256)*pIn + 256*pRead + 250*pOut},
		{name: "Moonshot, in the last choice of a stream", line: "chat", events: ofChoice(`{"prompt_tokens":900,"completion_tokens":250,` +
			`"total_tokens":1150,"cached_tokens":256}`),
			prompt: 900, cached: 256, output: 250, cost: (900-256)*pIn + 256*pRead + 250*pOut},
		{name: "Qwen, written to and read from the cache", line: "chat",
			usage: `{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":300,"cache_creation_input_tokens":200,"cache_type":"ephemeral"},` +
				`"completion_tokens":250,"total_tokens":1150}`,
			prompt: 900, cached: 300, output: 250, cost: (900-300-200)*pIn + 300*pRead + 200*pWrite + 250*pOut},
		{name: "OpenRouter, with a cost", line: "chat",
			usage: `{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":200,"audio_tokens":0},` +
				`"completion_tokens":250,"completion_tokens_details":{"reasoning_tokens":9},"total_tokens":1150,"cost":9.99,"is_byok":false,` +
				`"cost_details":{"upstream_inference_cost":8}}`,
			prompt: 900, cached: 300, output: 250, cost: (900-300-200)*pIn + 300*pRead + 200*pWrite + 250*pOut},
		{name: "Mistral, cached at the top", line: "chat",
			usage:  `{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150,"num_cached_tokens":512}`,
			prompt: 900, cached: 512, output: 250, cost: (900-512)*pIn + 512*pRead + 250*pOut},
		{name: "Mistral, in details of another spelling", line: "chat",
			usage:  `{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150,"prompt_token_details":{"cached_tokens":512}}`,
			prompt: 900, cached: 512, output: 250, cost: (900-512)*pIn + 512*pRead + 250*pOut},
		{name: "xAI, reasoning beside the completion", line: "chat",
			usage: `{"prompt_tokens":900,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":200},"total_tokens":1150,` +
				`"cost_in_usd_ticks":12345,"num_sources_used":0}`,
			prompt: 900, output: 250, cost: 900*pIn + (50+200)*pOut},
		{name: "SGLang, reasoning in two fields", line: "chat",
			usage: `{"prompt_tokens":900,"completion_tokens":250,"reasoning_tokens":200,"completion_tokens_details":{"reasoning_tokens":200},` +
				`"total_tokens":1150}`,
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "vLLM, a usage in every frame", line: "chat", events: growing(),
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "Groq, in x_groq", line: "chat", events: ofGroq(`{"prompt_tokens":900,"completion_tokens":250,"total_tokens":1150,` +
			`"queue_time":0.1}`),
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "a total instead of a completion", line: "chat",
			usage: `{"prompt_tokens":900,"total_tokens":1150}`, prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "pictures and sound in the prompt", line: "chat",
			usage: `{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":100,"image_tokens":258,"audio_tokens":60},` +
				`"completion_tokens":250,"total_tokens":1150}`,
			prompt: 900, cached: 100, output: 250, cost: (900-100-258-60)*pIn + 100*pRead + 258*pImage + 60*pSound + 250*pOut},

		// Responses.
		{name: "OpenAI, writes to the cache for long", line: "responses",
			usage: `{"input_tokens":900,"input_tokens_details":{"cached_tokens":300,"cache_write_tokens":200,` +
				`"cache_write_tokens_details":{"ttl_12h_tokens":150}},"output_tokens":250,"output_tokens_details":{"reasoning_tokens":200},` +
				`"total_tokens":1150}`,
			prompt: 900, cached: 300, output: 250, cost: (900-300-200)*pIn + 300*pRead + 50*pWrite + 150*pWrite1h + 250*pOut},
		{name: "xAI, cached beside the input", line: "responses",
			usage: `{"input_tokens":100,"input_tokens_details":{"cached_tokens":800},"output_tokens":250,` +
				`"output_tokens_details":{"reasoning_tokens":200},"total_tokens":1150}`,
			prompt: 900, cached: 800, output: 250, cost: 100*pIn + 800*pRead + 250*pOut},
		{name: "xAI, cached beside a larger input", line: "responses",
			usage: `{"input_tokens":600,"input_tokens_details":{"cached_tokens":300},"output_tokens":250,` +
				`"output_tokens_details":{"reasoning_tokens":200},"total_tokens":1150}`,
			prompt: 900, cached: 300, output: 250, cost: 600*pIn + 300*pRead + 250*pOut},
		{name: "xAI, searches counted in the usage", line: "responses", ask: inForm(scene.Responses, "tools", search("web_search")),
			usage: `{"input_tokens":900,"output_tokens":250,"total_tokens":1150,"num_sources_used":4,` +
				`"server_side_tool_usage_details":{"web_search_calls":3,"x_search_calls":0}}`,
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut + 3*pSearch},
		{name: "Perplexity, with a cost", line: "responses",
			usage:  `{"input_tokens":900,"output_tokens":250,"total_tokens":1150,"cost":{"currency":"USD","input_cost":1,"total_cost":7}}`,
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
		{name: "Azure", provider: "azure", line: "responses",
			usage:  `{"input_tokens":900,"input_tokens_details":{"cached_tokens":128},"output_tokens":250,"total_tokens":1150}`,
			prompt: 900, cached: 128, output: 250, cost: (900-128)*pIn + 128*pRead + 250*pOut},
		{name: "Bedrock", provider: "bedrock", line: "responses",
			usage: `{"input_tokens":900,"output_tokens":250,"total_tokens":1150}`, prompt: 900, output: 250, cost: 900*pIn + 250*pOut},

		// Messages: the input tokens do not include cached and written tokens.
		{name: "Anthropic, a long prompt because of cached tokens", line: "messages",
			usage: `{"input_tokens":100,"cache_read_input_tokens":800,"cache_creation_input_tokens":300,` +
				`"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":100},"output_tokens":250}`,
			prompt: 1200, cached: 800, output: 250, cost: 100*2*pIn + 800*2*pRead + 200*2*pWrite + 100*2*pWrite1h + 250*(pOut+pOut/2)},
		{name: "Anthropic, writes only by lifetime", line: "messages",
			usage: `{"input_tokens":100,"cache_read_input_tokens":400,` +
				`"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":100},"output_tokens":250}`,
			prompt: 800, cached: 400, output: 250, cost: 100*pIn + 400*pRead + 200*pWrite + 100*pWrite1h + 250*pOut},
		{name: "Anthropic, an hour requested, writes without lifetimes", line: "messages",
			ask:    map[scene.Form]map[string]any{scene.Messages: {"cache_control": map[string]any{"type": "ephemeral", "ttl": "1h"}}},
			usage:  `{"input_tokens":100,"cache_read_input_tokens":400,"cache_creation_input_tokens":300,"output_tokens":250}`,
			prompt: 800, cached: 400, output: 250, cost: 100*pIn + 400*pRead + 300*pWrite1h + 250*pOut},
		{name: "Anthropic, all null", line: "messages",
			usage: `{"input_tokens":900,"cache_read_input_tokens":null,"cache_creation_input_tokens":null,"cache_creation":null,` +
				`"output_tokens":250,"server_tool_use":null,"service_tier":"standard"}`,
			prompt: 900, output: 250, cost: 900*pIn + 250*pOut},
	}
	for _, provider := range []string{"vertex", "bedrock", "azure"} { // Claude at other providers
		rows = append(rows, receipt{name: "Claude on " + provider, provider: provider, line: "messages",
			usage: `{"input_tokens":100,"cache_read_input_tokens":400,"cache_creation_input_tokens":300,` +
				`"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":250,` +
				`"output_tokens_details":{"thinking_tokens":200}}`,
			prompt: 800, cached: 400, output: 250, cost: 100*pIn + 400*pRead + 300*pWrite + 250*pOut})
	}
	for _, provider := range []string{"gemini", "vertex"} {
		rows = append(rows,
			receipt{name: provider + ", thoughts and the prompts of tools", provider: provider, line: "gemini",
				usage: `{"promptTokenCount":700,"toolUsePromptTokenCount":100,"cachedContentTokenCount":300,"candidatesTokenCount":50,` +
					`"thoughtsTokenCount":200,"totalTokenCount":1050,"promptTokensDetails":[{"modality":"TEXT","tokenCount":700}],` +
					`"cacheTokensDetails":[{"modality":"TEXT","tokenCount":300}],"trafficType":"ON_DEMAND"}`,
				prompt: 800, cached: 300, output: 250, cost: (700+100-300)*pIn + 300*pRead + (50+200)*pOut},
			receipt{name: provider + ", a picture, part of it cached", provider: provider, line: "gemini",
				usage: `{"promptTokenCount":900,"cachedContentTokenCount":300,"candidatesTokenCount":250,"totalTokenCount":1150,` +
					`"promptTokensDetails":[{"modality":"TEXT","tokenCount":642},{"modality":"IMAGE","tokenCount":258}],` +
					`"cacheTokensDetails":[{"modality":"TEXT","tokenCount":200},{"modality":"IMAGE","tokenCount":100}]}`,
				// The picture has 258 tokens: 100 are cached, and 158 have the price of pictures.
				prompt: 900, cached: 300, output: 250, cost: (900-300-158)*pIn + 158*pImage + 300*pRead + 250*pOut},
			receipt{name: provider + ", sound of a video", provider: provider, line: "gemini",
				usage: `{"promptTokenCount":900,"candidatesTokenCount":250,"totalTokenCount":1150,` +
					`"promptTokensDetails":[{"modality":"TEXT","tokenCount":40},{"modality":"VIDEO","tokenCount":800},` +
					`{"modality":"AUDIO","tokenCount":60}]}`,
				prompt: 900, output: 250, cost: (40+800)*pIn + 60*pSound + 250*pOut},
			receipt{name: provider + ", a total instead of the candidates", provider: provider, line: "gemini",
				usage:  `{"promptTokenCount":900,"thoughtsTokenCount":200,"totalTokenCount":1150}`,
				prompt: 900, output: 250, cost: 900*pIn + (1150-900)*pOut})
	}
	return rows
}

// ofChoice returns a stream with the usage in the last choice.
func ofChoice(usage string) []string {
	last := strings.Replace(fakeprovider.Frame(`{}`, "stop"), `"finish_reason":"stop"`, `"finish_reason":"stop","usage":`+usage, 1)
	return []string{"data: " + fakeprovider.Text("hi") + "\n\n", "data: " + last + "\n\n", "data: [DONE]\n\n"}
}

// ofGroq returns a stream with the usage in x_groq of the last frame.
func ofGroq(usage string) []string {
	last := strings.TrimSuffix(fakeprovider.Frame(`{}`, "stop"), "}") + `,"x_groq":{"id":"req_1","usage":` + usage + `}}`
	return []string{"data: " + fakeprovider.Text("hi") + "\n\n", "data: " + last + "\n\n", "data: [DONE]\n\n"}
}

// growing returns a stream with the usage so far in every frame.
func growing() (events []string) {
	frame := func(delta, finish string, completion int) string {
		return "data: " + strings.TrimSuffix(fakeprovider.Frame(delta, finish), "}") +
			fmt.Sprintf(`,"usage":{"prompt_tokens":900,"completion_tokens":%d,"total_tokens":%d}}`, completion, 900+completion) + "\n\n"
	}
	return []string{frame(`{"content":"h"}`, "", 1), frame(`{"content":"i"}`, "", 120), frame(`{}`, "stop", 250), "data: [DONE]\n\n"}
}

// replies returns the provider's complete answer and the events of the provider's stream.
func (r receipt) replies() (whole string, events []string) {
	switch r.line {
	case "responses":
		whole = fakeprovider.ResponsesObject("completed", r.usage, fakeprovider.ResponsesMessage("hi"))
		events = responsesParts("completed", r.usage)
	case "messages":
		whole = fakeprovider.NativeBill(r.usage)
		events = fakeprovider.NativeBillStream(r.usage, fmt.Sprintf(`{"output_tokens":%d}`, r.output))
	case "interactions":
		whole, events = fakeprovider.Interaction("completed", r.usage, fakeprovider.InteractionText("hi")), interactionRaw(r.usage, "hi")
	case "gemini":
		whole, events = geminiWhole(r.usage), []string{"data: " + geminiWhole(r.usage) + "\n\n"}
	default:
		whole, events = fakeprovider.ChatBill(r.usage), fakeprovider.ChatBillStream(r.usage)
		if i := strings.Index(r.usage, `"service_tier":`); i >= 0 { // OpenAI's tier is not in the usage, but next to it
			tier := strings.TrimSuffix(r.usage[i:], "}")
			whole = strings.TrimSuffix(whole, "}") + "," + tier + "}"
			events[0] = strings.Replace(events[0], `"choices":`, tier+`,"choices":`, 1)
		}
	}
	if r.whole != "" || r.usage == "" {
		whole = r.whole
	}
	if r.events != nil {
		events = r.events
	}
	return whole, events
}

// receiptScenes play receipts for every form of clients, with and without streaming.
func receiptScenes(t testing.TB, rows []receipt) (scenes []scene.Scenario) {
	for i, r := range rows {
		whole, events := r.replies()
		for _, form := range scene.ClientForms() {
			if _, ok := r.ask[form]; r.ask != nil && !ok {
				continue
			}
			model := fmt.Sprintf("receipt-%d-%s", i, form)
			stream := fakeprovider.Reply{ContentType: "text/event-stream", Raw: events}
			scenes = append(scenes, receiptScene(t, model+"-stream", r, form, true, stream))
			if whole != "" {
				scenes = append(scenes, receiptScene(t, model, r, form, false, fakeprovider.JSON(200, whole)))
			}
		}
	}
	return scenes
}

// receiptScene plays one receipt for one form of clients.
func receiptScene(t testing.TB, model string, r receipt, form scene.Form, stream bool, reply fakeprovider.Reply) scene.Scenario {
	provider := map[string]any{"forms": []string{r.line}}
	if r.provider != "" {
		provider["provider"] = r.provider
	}
	prices := r.prices
	if prices == nil {
		prices = receiptPrices()
	}
	return single{name: fmt.Sprintf("%s, %s on %s, stream %t", r.name, form, r.line, stream),
		in: form, line: r.line, model: model, provider: fakeprovider.New(t, reply), modelMore: prices, lineMore: provider,
	}.plays(func(t *testing.T, s scene.FormClient) {
		body := scene.Request(form, model, stream, r.ask[form])
		a := s.Answer(body)
		m := s.CheckCharge(a, r.cost)
		if m.Prompt != r.prompt || m.Cached != r.cached || m.Completion != r.output {
			t.Errorf("receipt %+v; want %d, %d and %d tokens", m, r.prompt, r.cached, r.output)
		}
		if r.prices != nil {
			checkBill(t, r, form, stream, body, a, m, read(t, form, a, model))
		}
	})
}

// TestReceipts compares charges with bills calculated by hand.
func TestReceipts(t *testing.T) {
	playForms(t, scene.Binary(t), nil, func(t testing.TB) []scene.Scenario { return receiptScenes(t, receipts()) })
}
