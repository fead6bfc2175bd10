package main

import (
	"fmt"
	"strings"
	"time"
)

// scenario is a case: the request, and the upstream's behaviour.
type scenario struct {
	name        string
	form        form
	connections int
	rate        int           // requests per second; 0 means unlimited
	prompt      int           // bytes of the prompt
	stream      bool          // the answer comes in chunks
	wait        time.Duration // before the first byte
	chunks      int
	gap         time.Duration // between chunks; 0 means one burst
	alone       bool          // measured only if -cases names it
	note        string
}

// scenarios are all cases, in the order of the report.
var scenarios = []scenario{
	{name: "throughput", form: chatForm, connections: 64, prompt: 200, note: "not streamed, 64 connections, instant upstream"},
	{name: "paced", form: chatForm, connections: 64, rate: 500, prompt: 200, wait: 50 * time.Millisecond,
		note: "not streamed, 500 requests/s, upstream 50 ms"},
	{name: "stream", form: chatForm, connections: 64, prompt: 200, stream: true, wait: 20 * time.Millisecond, chunks: 64,
		note: "64 chunks in one burst after 20 ms, 64 connections"},
	{name: "stream-gap", form: chatForm, connections: 64, prompt: 200, stream: true, wait: 20 * time.Millisecond, chunks: 64,
		gap: time.Millisecond, note: "64 chunks 1 ms apart, 64 connections"},
	{name: "slow", form: chatForm, connections: 1000, prompt: 200, stream: true, chunks: 50, gap: 20 * time.Millisecond,
		note: "1,000 streams at once, 50 chunks 20 ms apart"},
	{name: "open", form: chatForm, connections: 9_500, rate: 900, prompt: 200, stream: true, chunks: 10, gap: time.Second, alone: true,
		note: "900 streams begin each second and take 10 s, so 9,000 are open after 10 s (-seconds 15)"},
	{name: "large", form: chatForm, connections: 16, prompt: 200_000, note: "200 KB prompts, not streamed, 16 connections"},
	{name: "messages", form: messagesForm, connections: 64, prompt: 200, note: "as throughput, native messages"},
	{name: "messages-stream", form: messagesForm, connections: 64, prompt: 200, stream: true, wait: 20 * time.Millisecond, chunks: 64,
		note: "as stream, native messages"},
	{name: "responses", form: responsesForm, connections: 64, prompt: 200, note: "as throughput, responses that are not stored"},
	{name: "embeddings", form: embeddingsForm, connections: 64, prompt: 200, note: "as throughput, a vector of 256 numbers in base64"},
	{name: "speech", form: speechForm, connections: 64, prompt: 200, stream: true, wait: 20 * time.Millisecond, chunks: 64,
		note: "64 pieces of 1 KB in one burst after 20 ms, 64 connections"},
}

// defaultCases returns the names of the cases that are measured if -cases names none.
func defaultCases() (names []string) {
	for _, s := range scenarios {
		if !s.alone {
			names = append(names, s.name)
		}
	}
	return names
}

// findScenario returns a case by its name.
func findScenario(name string) (scenario, error) {
	for _, s := range scenarios {
		if s.name == name {
			return s, nil
		}
	}
	return scenario{}, fmt.Errorf("no case %q", name)
}

// body is the request as a client sends it.
func (s scenario) body() string {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", s.prompt/45+1)[:s.prompt]
	return s.form.body(s.name, text, s.stream)
}

// form is an endpoint of the gateway: its requests and the answers of the upstream.
type form struct {
	path        string // below the gateway's address
	model, line string // the further fields of models and lines in the catalog
	linePath    string // the end of the line's base address
	body        func(model, text string, stream bool) string
	whole       string
	contentType string                                    // of the answer in chunks
	pieces      func(n int) (pieces []string, end string) // the answer in chunks
	end         string                                    // in the last bytes of a complete answer in chunks, or empty
}

const completions = "kind: chat, context_window: 128000, max_output_tokens: 4096, price: {input: 0.25, output: 2.00}"

// chatForm is chat completions.
var chatForm = form{
	path: "/v1/chat/completions", model: completions + ", forms: [chat]", line: "provider: openai, forms: [chat]", linePath: "/v1",
	body: func(model, text string, stream bool) string {
		streamed := ""
		if stream {
			streamed = `,"stream":true,"stream_options":{"include_usage":true}`
		}
		return `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}],"max_tokens":256` + streamed + `}`
	},
	whole: `{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"bench","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"` + sentence + `"},` +
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":60,"completion_tokens":20,"total_tokens":80}}`,
	contentType: "text/event-stream", end: "[DONE]",
	pieces: func(n int) (pieces []string, end string) {
		chunk := func(choices, usage string) string {
			return `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench","choices":[` + choices +
				`]` + usage + "}\n\n"
		}
		for i := range n {
			pieces = append(pieces, chunk(fmt.Sprintf(`{"index":0,"delta":{"content":" word%d"},"finish_reason":null}`, i), ""))
		}
		end = chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, "") +
			chunk("", fmt.Sprintf(`,"usage":{"prompt_tokens":60,"completion_tokens":%d,"total_tokens":%d}`, n, 60+n)) + "data: [DONE]\n\n"
		return pieces, end
	},
}

const sentence = "A short answer of the bench's upstream, as long as a sentence or two usually are."

// messagesForm is native messages.
var messagesForm = form{
	path: "/native/v1/messages", model: completions + ", forms: [messages]", line: "provider: anthropic",
	body: func(model, text string, stream bool) string {
		return fmt.Sprintf(`{"model":"%s","messages":[{"role":"user","content":"%s"}],"max_tokens":256,"stream":%t}`, model, text, stream)
	},
	whole: `{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":"` + sentence + `"}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":60,"output_tokens":20}}`,
	contentType: "text/event-stream", end: "message_stop",
	pieces: func(n int) (pieces []string, end string) {
		event := func(name, members string) string {
			return "event: " + name + "\ndata: {\"type\":\"" + name + `",` + members + "}\n\n"
		}
		for i := range n {
			piece := event("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"text_delta","text":" word%d"}`, i))
			if i == 0 {
				piece = event("message_start", `"message":{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[],`+
					`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":60,"output_tokens":1}}`) +
					event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) + piece
			}
			pieces = append(pieces, piece)
		}
		return pieces, event("content_block_stop", `"index":0`) +
			event("message_delta", fmt.Sprintf(`"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, n)) +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	},
}

// responsesForm is responses.
var responsesForm = form{
	path: "/v1/responses", model: completions + ", forms: [responses]", line: "provider: openai, forms: [responses]", linePath: "/v1",
	body: func(model, text string, _ bool) string {
		return `{"model":"` + model + `","input":"` + text + `","max_output_tokens":256,"store":false}`
	},
	whole: `{"id":"resp_bench","object":"response","created_at":1790000000,"status":"completed","model":"bench","output":[{"type":"message",` +
		`"id":"msg_bench","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + sentence +
		`","annotations":[]}]}],"usage":{"input_tokens":60,"output_tokens":20,"total_tokens":80}}`,
}

// embeddingsForm is embeddings.
var embeddingsForm = form{
	path: "/v1/embeddings", model: "kind: embedding, price: {input: 0.02}", line: "provider: openai", linePath: "/v1",
	body: func(model, text string, _ bool) string {
		return `{"model":"` + model + `","input":"` + text + `","encoding_format":"base64"}`
	},
	whole: `{"object":"list","model":"bench","data":[{"object":"embedding","index":0,"embedding":"` +
		strings.Repeat("AACAPwAAAEAAAEBA", 256*4*4/3/16) + `"}],"usage":{"prompt_tokens":60,"total_tokens":60}}`,
}

// speechForm is speech.
var speechForm = form{
	path: "/v1/audio/speech", model: "kind: speech, price: {characters: 15}", line: "provider: openai", linePath: "/v1",
	body: func(model, text string, _ bool) string {
		return `{"model":"` + model + `","voice":"alloy","input":"` + text + `","response_format":"pcm"}`
	},
	contentType: "audio/pcm",
	pieces: func(n int) (pieces []string, end string) {
		for range n {
			pieces = append(pieces, strings.Repeat("\x00\x01", 512))
		}
		return pieces, strings.Repeat("\x00\x01", 512)
	},
}
