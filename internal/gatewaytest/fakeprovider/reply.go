package fakeprovider

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Reply is what the provider does with one request. It is plain data; the zero
// value is an empty 200. Things happen in the order of the fields.
type Reply struct {
	// Before happens when the request has been read and nothing was answered.
	Before Trouble
	// Wait is waited on before the head goes out: the test sends a value or
	// closes the channel. Nil waits for nothing.
	Wait <-chan struct{}
	// Delay passes before the head goes out, for benchmarks and for tests in
	// which only an order matters.
	Delay time.Duration

	// Wire, when set, is sent on the connection as it is in place of an answer
	// over HTTP, and the connection is then closed or, with End, reset or left
	// open: garbage, half a head, a chunk that breaks off. HTTP/1 only.
	Wire string

	// Status of the head; 0 is 200.
	Status int
	// ContentType of the head; empty sends `application/json`, or
	// `text/event-stream` when there are Events. "-" sends none at all.
	ContentType string
	// Header are further headers of the head.
	Header map[string]string
	// Length, when > 0, is announced as Content-Length whatever the body is;
	// one that is larger than the body leaves the answer half-written.
	Length int
	// AfterHead happens when the head was flushed and no byte of the body.
	AfterHead Trouble

	// Body is sent as it is.
	Body string
	// Events are sent and flushed one by one after the body, each as a
	// server-sent event with this data. Data of several lines gets a `data:`
	// line each.
	Events []string
	// Raw are sent and flushed one by one after the events, just as they are:
	// comments, halves of events, anything.
	Raw []string
	// Gate is waited on before each of Events and Raw, one value a piece;
	// closing it lets all through.
	Gate <-chan struct{}
	// Gap passes before each of Events and Raw, for benchmarks.
	Gap time.Duration

	// End is how the answer ends after all that.
	End Trouble
}

// Trouble is a misbehaviour on the connection.
type Trouble int

// The troubles.
const (
	// None: go on; at the end, finish the answer as the protocol says.
	None Trouble = iota
	// Reset: the connection is reset (RST).
	Reset
	// Cut: the connection is closed (FIN), in the middle of whatever was being
	// sent: a chunked body lacks its last chunk.
	Cut
	// Stall: nothing more happens until the caller leaves or the server is
	// closed.
	Stall
)

// Answer is a good chat completion with a text and its usage.
func Answer(text string, promptTokens, completionTokens int) Reply {
	return Reply{Body: fmt.Sprintf(
		`{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"vendor-model",`+
			`"choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"stop"}],`+
			`"usage":%s,"system_fingerprint":"fp_fake"}`, quote(text), usage(promptTokens, completionTokens))}
}

// Stream is a good stream: a role frame, a frame a piece, the finish, the
// usage (always: whether to ask for it is the caller's affair) and [DONE].
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

// Text is the data of a frame that carries a piece of text.
func Text(piece string) string { return Frame(`{"content":`+quote(piece)+`}`, "") }

// Frame is the data of a frame with a delta, as JSON, and a finish reason;
// empty for none.
func Frame(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = quote(finish)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1700000000,"model":"vendor-model",`+
		`"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`, delta, reason)
}

// UsageFrame is the data of the frame that carries the usage alone.
func UsageFrame(promptTokens, completionTokens int) string {
	return fmt.Sprintf(`{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1700000000,"model":"vendor-model",`+
		`"choices":[],"usage":%s}`, usage(promptTokens, completionTokens))
}

// Error is an error answer in the usual shape. An empty code is null.
func Error(status int, kind, code, message string) Reply {
	return Reply{Status: status, Body: `{"error":` + ErrorObject(kind, code, message) + `}`}
}

// ErrorObject is the error object alone, for errors inside answers and frames.
func ErrorObject(kind, code, message string) string {
	c := "null"
	if code != "" {
		c = quote(code)
	}
	return fmt.Sprintf(`{"message":%s,"type":%s,"param":null,"code":%s}`, quote(message), quote(kind), c)
}

// Busy is a rate limit that asks to wait for so many seconds; 0 does not ask.
func Busy(retryAfter int) Reply {
	r := Error(429, "requests", "rate_limit_exceeded", "Rate limit reached.")
	if retryAfter > 0 {
		r.Header = map[string]string{"Retry-After": strconv.Itoa(retryAfter)}
	}
	return r
}

// Page is a web page, as something between us and the provider sends it.
func Page(status int) Reply {
	return Reply{Status: status, ContentType: "text/html; charset=utf-8",
		Body: "<!DOCTYPE html><html><head><title>" + strconv.Itoa(status) + "</title></head><body>go away</body></html>"}
}

func usage(prompt, completion int) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
		prompt, completion, prompt+completion)
}

// quote writes a JSON string.
func quote(s string) string {
	out, _ := json.Marshal(s) // strings only: cannot fail
	return string(out)
}

// event writes data as a server-sent event.
func event(data string) string {
	return "data: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n"
}
