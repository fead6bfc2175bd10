package fakeprovider

import (
	"fmt"
	"strings"
)

// GeminiAnswer is a good answer of the Gemini form with a text and its usage.
func GeminiAnswer(text string, promptTokens, completionTokens int) Reply {
	return Reply{Body: GeminiEvent("STOP", promptTokens, completionTokens, GeminiText(text))}
}

// GeminiStream is a good stream of the Gemini form: an event a piece with the
// usage so far, and the finish in the last one. It ends with its body.
func GeminiStream(promptTokens, completionTokens int, pieces ...string) Reply {
	var events []string
	for _, p := range pieces {
		events = append(events, GeminiEvent("", promptTokens, 0, GeminiText(p)))
	}
	return Reply{Events: append(events, GeminiEvent("STOP", promptTokens, completionTokens, GeminiText("")))}
}

// GeminiEvent is a whole answer or the data of an event, of one candidate with
// parts, as JSON. An empty finish is none; completionTokens of 0 are left out,
// as the provider does.
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

// GeminiText is a part with a text.
func GeminiText(text string) string { return `{"text":` + quote(text) + `}` }

// GeminiThought is a part with a thought.
func GeminiThought(text string) string { return `{"text":` + quote(text) + `,"thought":true}` }

// GeminiCall is a part with a call of a function; args is a JSON object.
func GeminiCall(function, args string) string {
	return `{"functionCall":{"name":` + quote(function) + `,"args":` + args + `},"thoughtSignature":"ZmFrZQ=="}`
}

// GeminiBlocked is a prompt that was refused: status 200, no candidates.
func GeminiBlocked(reason string, promptTokens int) Reply {
	return Reply{Body: fmt.Sprintf(`{"promptFeedback":{"blockReason":%s},"usageMetadata":{"promptTokenCount":%d,"totalTokenCount":%d}}`,
		quote(reason), promptTokens, promptTokens)}
}

// GeminiError is an error answer of the Gemini API with the name of its
// status. Details are JSON objects such as GeminiRetry.
func GeminiError(status int, name, message string, details ...string) Reply {
	return Reply{Status: status, Body: GeminiErrorObject(status, name, message, details...)}
}

// GeminiErrorObject is the body of such an error, for errors inside streams.
func GeminiErrorObject(status int, name, message string, details ...string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s,"details":[%s]}}`,
		status, quote(message), quote(name), strings.Join(details, ","))
}

// GeminiRetry is the detail that asks to wait (`"3.5s"`).
func GeminiRetry(delay string) string {
	return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + quote(delay) + `}`
}

// GeminiReason is the detail that names a reason (`API_KEY_INVALID`).
func GeminiReason(reason string) string {
	return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":` + quote(reason) + `,"domain":"googleapis.com"}`
}
