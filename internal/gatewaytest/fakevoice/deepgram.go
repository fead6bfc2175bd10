package fakevoice

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// deepgramError writes an error of Deepgram.
func deepgramError(w http.ResponseWriter, status int, name, message string) {
	reply(w, status, object(`{"err_code":%q,"err_msg":%q,"request_id":"uuid"}`, name, message))
}

// NewDeepgram starts a fake of Deepgram. key is the only good credential. With the mark [absurd] it reports an absurd duration.
func NewDeepgram(t testing.TB, key string) *Server {
	return serve(t, "/v1", func(w http.ResponseWriter, r *http.Request, body []byte) {
		parameters := []string{"model", "smart_format", "language", "detect_language", "diarize"}
		known := r.URL.Query().Get("model") != ""
		for name := range r.URL.Query() {
			known = known && slices.Contains(parameters, name)
		}
		switch {
		case r.URL.Path != "/v1/listen" || r.Method != "POST":
			deepgramError(w, 404, "NOT_FOUND", "Not found.")
		case r.Header.Get("Authorization") != "Token "+key:
			deepgramError(w, 401, "INVALID_AUTH", "Invalid credentials.")
		case marked(body, "busy"):
			w.Header().Set("Retry-After", "7")
			deepgramError(w, 429, "TOO_MANY_REQUESTS", "Too many requests. Please try again later")
		case marked(body, "broke"):
			deepgramError(w, 402, "ASR_PAYMENT_REQUIRED", "Project does not have enough credits for an ASR request.")
		case marked(body, "long"):
			deepgramError(w, 413, "PAYLOAD_TOO_LARGE", "Maximum request size is 2 GB.")
		case marked(body, "page"):
			page(w)
		case !known || strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
			deepgramError(w, 400, "Bad Request", "Bad Request: unknown parameter, or a body that is not sound")
		default:
			raw := deepgramTranscript(r, body)
			send(w, "application/json", marked(body, "cut"), raw[:40], raw[40:])
		}
	})
}

// deepgramTranscript returns an answer.
func deepgramTranscript(r *http.Request, body []byte) string {
	var list []map[string]any
	for _, word := range words {
		w := map[string]any{"word": strings.ToLower(strings.Trim(word.text, ".?")), "punctuated_word": word.text, "start": word.start,
			"end": word.end, "confidence": 0.99}
		if r.URL.Query().Get("diarize") == "true" {
			w["speaker"] = word.speaker
		}
		list = append(list, w)
	}
	channel := map[string]any{"alternatives": []any{map[string]any{"transcript": Text, "confidence": 0.99, "words": list}}}
	if r.URL.Query().Get("detect_language") == "true" {
		channel["detected_language"] = "en"
	}
	metadata := map[string]any{"request_id": "uuid", "duration": 5.2, "channels": 1}
	channels := []any{channel}
	switch {
	case marked(body, "absurd"):
		metadata["duration"] = 192_153_584_101_141.0
	case marked(body, "silent"):
		delete(metadata, "duration")
	case marked(body, "empty"):
		channels = nil
	}
	raw, _ := json.Marshal(map[string]any{"metadata": metadata, "results": map[string]any{"channels": channels}}) // cannot fail
	return string(raw)
}
