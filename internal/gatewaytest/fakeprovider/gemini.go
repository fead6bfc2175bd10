package fakeprovider

import (
	"fmt"
	"strings"
)

// GeminiAnswer returns an answer of the Gemini form.
func GeminiAnswer(text string, promptTokens, completionTokens int) Reply {
	return Reply{Body: GeminiEvent("STOP", promptTokens, completionTokens, GeminiText(text))}
}

// GeminiStream returns a stream of the Gemini form. Each event has a piece of text and the usage so
// far, and the last event has the finish reason.
func GeminiStream(promptTokens, completionTokens int, pieces ...string) Reply {
	var events []string
	for _, p := range pieces {
		events = append(events, GeminiEvent("", promptTokens, 0, GeminiText(p)))
	}
	return Reply{Events: append(events, GeminiEvent("STOP", promptTokens, completionTokens, GeminiText("")))}
}

// GeminiEvent returns an answer, or the data of an event, with one candidate. parts are JSON. Members
// for an empty finish, or for completionTokens of 0, are omitted.
func GeminiEvent(finish string, promptTokens, completionTokens int, parts ...string) string {
	candidate := `"content":{"parts":[` + strings.Join(parts, ",") + `],"role":"model"},`
	if finish != "" {
		candidate += `"finishReason":` + quote(finish) + `,`
	}
	counts := fmt.Sprintf(`"promptTokenCount":%d,`, promptTokens)
	if completionTokens > 0 {
		counts += fmt.Sprintf(`"candidatesTokenCount":%d,`, completionTokens)
	}
	return fmt.Sprintf(`{"candidates":[{%s"index":0}],"usageMetadata":{%s"totalTokenCount":%d},`+
		`"modelVersion":"vendor-model","responseId":"fake"}`,
		candidate, counts, promptTokens+completionTokens)
}

// GeminiText returns a part with text.
func GeminiText(text string) string { return `{"text":` + quote(text) + `}` }

// GeminiThought returns a part with a thought.
func GeminiThought(text string) string { return `{"text":` + quote(text) + `,"thought":true}` }

// GeminiCall returns a part with a call of a function. args is a JSON object.
func GeminiCall(function, args string) string {
	return `{"functionCall":{"name":` + quote(function) + `,"args":` + args + `},"thoughtSignature":"ZmFrZQ=="}`
}

// GeminiBlocked returns the answer to a blocked prompt: status 200 without candidates.
func GeminiBlocked(reason string, promptTokens int) Reply {
	return Reply{Body: fmt.Sprintf(`{"promptFeedback":{"blockReason":%s},"usageMetadata":{"promptTokenCount":%d,"totalTokenCount":%d}}`,
		quote(reason), promptTokens, promptTokens)}
}

// GeminiError returns an error of the Gemini API. name is the error's status, such as NOT_FOUND, and
// details are JSON objects such as GeminiRetry.
func GeminiError(status int, name, message string, details ...string) Reply {
	return Reply{Status: status, Body: GeminiErrorObject(status, name, message, details...)}
}

// GeminiErrorObject returns the body of an error, or the data of an error event.
func GeminiErrorObject(status int, name, message string, details ...string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s,"details":[%s]}}`,
		status, quote(message), quote(name), strings.Join(details, ","))
}

// GeminiRetry returns the detail with a retry delay, such as "3.5s".
func GeminiRetry(delay string) string {
	return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + quote(delay) + `}`
}

// GeminiReason returns the detail with a reason, such as API_KEY_INVALID.
func GeminiReason(reason string) string {
	return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":` + quote(reason) + `,"domain":"googleapis.com"}`
}
