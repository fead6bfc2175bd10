package fakeprovider

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Reply is the answer to one request. The zero value is a 200 without a body. The fields take effect
// in the order of their declaration.
type Reply struct {
	// Before breaks the connection after the request and before the answer.
	Before Break
	// Wait delays the head until the test sends a value or closes the channel. If nil, there is no
	// delay.
	Wait <-chan struct{}
	// Delay delays the head, for benchmarks and for tests of the order of answers.
	Delay time.Duration

	// Wire, if not empty, is sent instead of an HTTP answer: garbage, a truncated head, a broken chunk.
	// The connection is then closed, or reset or stalled by End. Wire is for HTTP/1 only.
	Wire string

	// Status is the status; 0 means 200.
	Status int
	// ContentType is the content type. If empty, it is `application/json`, or `text/event-stream`
	// with Events. "-" sends none.
	ContentType string
	// Header has further headers.
	Header map[string]string
	// Length, if not 0, is the Content-Length. If it is larger than the body, the answer is
	// incomplete.
	Length int
	// AfterHead breaks the connection between the head and the body.
	AfterHead Break

	// Body is the body, or its beginning.
	Body string
	// Events has the data of server-sent events after the body. Each event is flushed. Data of
	// several lines gets several `data:` lines.
	Events []string
	// Raw has further pieces after Events, such as comments and truncated events. Each piece is
	// flushed.
	Raw []string
	// Gate delays each piece of Events and Raw until the test sends a value or closes the channel.
	Gate <-chan struct{}
	// Gap delays each piece of Events and Raw, for benchmarks.
	Gap time.Duration

	// End breaks the connection at the end.
	End Break
}

// Break is a way to break a connection.
type Break int

// The ways to break a connection.
const (
	// None continues, or ends the answer according to the protocol.
	None Break = iota
	// Reset resets the connection (RST).
	Reset
	// Cut closes the connection (FIN): a chunked body lacks its last chunk.
	Cut
	// Stall sends nothing until the client disconnects or the server stops.
	Stall
)

// Answer returns a chat completion.
func Answer(text string, promptTokens, completionTokens int) Reply {
	return Reply{Body: fmt.Sprintf(
		`{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"vendor-model",`+
			`"choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"stop"}],`+
			`"usage":%s,"system_fingerprint":"fp_fake"}`, quote(text), usage(promptTokens, completionTokens))}
}

// Stream returns a stream of a frame with the role, a frame for each piece, the finish reason, the
// usage and [DONE]. It has the usage even if the request does not include `include_usage`.
func Stream(promptTokens, completionTokens int, pieces ...string) Reply {
	events := []string{Frame(`{"role":"assistant","content":""}`, "")}
	for _, p := range pieces {
		events = append(events, Text(p))
	}
	return Reply{Events: append(events,
		Frame(`{}`, "stop"),
		UsageFrame(promptTokens, completionTokens),
		"[DONE]")}
}

// Text returns the data of a frame with text.
func Text(piece string) string { return Frame(`{"content":`+quote(piece)+`}`, "") }

// Frame returns the data of a frame with a delta, as JSON, and a finish reason, unless it is empty.
func Frame(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = quote(finish)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1700000000,"model":"vendor-model",`+
		`"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`, delta, reason)
}

// UsageFrame returns the data of the frame with the usage.
func UsageFrame(promptTokens, completionTokens int) string {
	return fmt.Sprintf(`{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1700000000,"model":"vendor-model",`+
		`"choices":[],"usage":%s}`, usage(promptTokens, completionTokens))
}

// Error returns an error in OpenAI's form. An empty code is null.
func Error(status int, kind, code, message string) Reply {
	return Reply{Status: status, Body: `{"error":` + ErrorObject(kind, code, message) + `}`}
}

// ErrorObject returns the error object of Error, for answers and frames.
func ErrorObject(kind, code, message string) string {
	c := "null"
	if code != "" {
		c = quote(code)
	}
	return fmt.Sprintf(`{"message":%s,"type":%s,"param":null,"code":%s}`, quote(message), quote(kind), c)
}

// Busy returns a 429 with Retry-After in seconds, unless retryAfter is 0.
func Busy(retryAfter int) Reply {
	r := Error(429, "requests", "rate_limit_exceeded", "Rate limit reached.")
	if retryAfter > 0 {
		r.Header = map[string]string{"Retry-After": strconv.Itoa(retryAfter)}
	}
	return r
}

// Page returns a web page, as proxies do.
func Page(status int) Reply {
	return Reply{Status: status, ContentType: "text/html; charset=utf-8",
		Body: "<!DOCTYPE html><html><head><title>" + strconv.Itoa(status) + "</title></head><body>go away</body></html>"}
}

func usage(prompt, completion int) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
		prompt, completion, prompt+completion)
}

// quote returns s as JSON.
func quote(s string) string {
	out, _ := json.Marshal(s) // cannot fail
	return string(out)
}

// piece returns the n-th piece of Events and Raw.
func (r Reply) piece(n int) string {
	if n < len(r.Events) {
		return event(r.Events[n])
	}
	return r.Raw[n-len(r.Events)]
}

// event returns data as a server-sent event.
func event(data string) string {
	return "data: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n"
}
