package fakevoice

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

// googleError writes an error of Google.
func googleError(w http.ResponseWriter, code int, status, message string) {
	reply(w, code, object(`{"error":{"code":%d,"message":%q,"status":%q}}`, code, message, status))
}

// geminiCall is a request for speech.
type geminiCall struct {
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"contents"`
	Config struct {
		Modalities []string `json:"responseModalities"`
		Speech     struct {
			Voice struct {
				Prebuilt struct {
					Name string `json:"voiceName"`
				} `json:"prebuiltVoiceConfig"`
			} `json:"voiceConfig"`
		} `json:"speechConfig"`
	} `json:"generationConfig"`
}

// NewGemini starts a fake of Gemini's speech. It has one voice, `Kore`. key is the only good credential. Further
// marks: [blocked] (the prompt), [safety] (the answer), [other] (the answer ends without a reason), [rate] (another
// sample rate), [absurd] and [silent] (the usage).
func NewGemini(t testing.TB, key string) *Server {
	return serve(t, "/v1beta", func(w http.ResponseWriter, r *http.Request, body []byte) {
		var call geminiCall
		err := strict(body, &call)
		switch {
		case r.Header.Get("X-Goog-Api-Key") != key:
			googleError(w, 403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
		case !strings.HasSuffix(r.URL.Path, ":streamGenerateContent") || r.URL.Query().Get("alt") != "sse":
			googleError(w, 404, "NOT_FOUND", "Requested entity was not found.")
		case marked(body, "busy"):
			reply(w, 429, `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[`+
				`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`)
		case marked(body, "broke"):
			reply(w, 400, `{"error":{"code":400,"message":"API key expired.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`)
		case marked(body, "long"):
			googleError(w, 400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed 8192.")
		case marked(body, "page"):
			page(w)
		case err != nil || len(call.Contents) != 1 || len(call.Config.Modalities) != 1 || call.Config.Modalities[0] != "AUDIO":
			googleError(w, 400, "INVALID_ARGUMENT", "Invalid JSON payload received: "+string(body))
		case call.Config.Speech.Voice.Prebuilt.Name != "Kore":
			googleError(w, 400, "INVALID_ARGUMENT", "Voice name "+call.Config.Speech.Voice.Prebuilt.Name+" is not supported.")
		default:
			send(w, "text/event-stream", marked(body, "cut"), geminiEvents(body)...)
		}
	})
}

// geminiEvents returns the events of an answer.
func geminiEvents(body []byte) (events []string) {
	if marked(body, "blocked") {
		return []string{"data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}\r\n\r\n"}
	}
	rate, reason, usage := 24000, "STOP", `{"promptTokenCount":9,"candidatesTokenCount":25,"totalTokenCount":34}`
	switch {
	case marked(body, "rate"):
		rate = 16000
	case marked(body, "absurd"):
		usage = `{"promptTokenCount":90000,"candidatesTokenCount":90000}`
	case marked(body, "silent"):
		usage = `{}`
	case marked(body, "safety"):
		reason = "SAFETY"
	case marked(body, "other"):
		reason = "OTHER"
	}
	sound := pieces()
	if marked(body, "empty") || reason != "STOP" {
		sound = nil
	}
	for _, piece := range sound {
		events = append(events, object("data: {\"candidates\":[{\"content\":{\"parts\":[{\"inlineData\":{"+
			"\"mimeType\":\"audio/L16;codec=pcm;rate=%d\",\"data\":%q}}],"+
			"\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9}}\r\n\r\n", rate,
			base64.StdEncoding.EncodeToString([]byte(piece))))
	}
	return append(events, object("data: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":%q,\"index\":0}],"+
		"\"usageMetadata\":%s}\r\n\r\n", reason, usage))
}
