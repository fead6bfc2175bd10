package main

import (
	"fmt"
	"strings"
	"time"
)

// scenario is a chat case: the upstream's behaviour and the request.
type scenario struct {
	name        string
	connections int
	rate        int           // requests per second; 0 means unlimited
	prompt      int           // bytes of the prompt
	stream      bool          // the answer is a stream of chunks
	wait        time.Duration // before the first byte
	chunks      int
	gap         time.Duration // between chunks; 0 means one burst
	note        string
}

// scenarios are all cases, in the order of the report.
var scenarios = []scenario{
	{name: "throughput", connections: 64, prompt: 200, note: "not streamed, 64 connections, instant upstream"},
	{name: "paced", connections: 64, rate: 500, prompt: 200, wait: 50 * time.Millisecond,
		note: "not streamed, 500 requests/s, upstream 50 ms"},
	{name: "stream", connections: 64, prompt: 200, stream: true, wait: 20 * time.Millisecond, chunks: 64,
		note: "64 chunks in one burst after 20 ms, 64 connections"},
	{name: "stream-gap", connections: 64, prompt: 200, stream: true, wait: 20 * time.Millisecond, chunks: 64, gap: time.Millisecond,
		note: "64 chunks 1 ms apart, 64 connections"},
	{name: "slow", connections: 1000, prompt: 200, stream: true, chunks: 50, gap: 20 * time.Millisecond,
		note: "1,000 streams at once, 50 chunks 20 ms apart"},
	{name: "large", connections: 16, prompt: 200_000, note: "200 KB prompts, not streamed, 16 connections"},
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
	stream := ""
	if s.stream {
		stream = `,"stream":true,"stream_options":{"include_usage":true}`
	}
	return `{"model":"` + s.name + `","messages":[{"role":"user","content":"` + text + `"}],"max_tokens":256` + stream + `}`
}

// wholeAnswer is the upstream's whole answer.
const wholeAnswer = `{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"bench","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"A short answer of the bench's upstream, as long as a sentence or two usually are."},` +
	`"finish_reason":"stop"}],"usage":{"prompt_tokens":60,"completion_tokens":20,"total_tokens":80}}`

// frame is one event of a stream.
func frame(choices, usage string) string {
	return `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench","choices":[` + choices + `]` +
		usage + "}\n\n"
}

// frames returns the events of a stream: the chunks, then the end.
func (s scenario) frames() (chunks []string, end string) {
	for i := range s.chunks {
		chunks = append(chunks, frame(fmt.Sprintf(`{"index":0,"delta":{"content":" word%d"},"finish_reason":null}`, i), ""))
	}
	end = frame(`{"index":0,"delta":{},"finish_reason":"stop"}`, "") +
		frame("", fmt.Sprintf(`,"usage":{"prompt_tokens":60,"completion_tokens":%d,"total_tokens":%d}`, s.chunks, 60+s.chunks)) +
		"data: [DONE]\n\n"
	return chunks, end
}
