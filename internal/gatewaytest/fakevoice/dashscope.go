package fakevoice

import (
	"encoding/base64"
	"net/http"
	"testing"
)

// qwenError writes an error of DashScope.
func qwenError(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, object(`{"code":%q,"message":%q,"request_id":"r"}`, code, message))
}

// NewDashScope starts a fake of Qwen-TTS. It has one voice, `Cherry`. key is the only good credential. With the mark
// [late] it fails after the first sound, with [tokens] it counts tokens, and with [header] the sound begins with a
// header of WAV.
func NewDashScope(t testing.TB, key string) *Server {
	return serve(t, "/api/v1", func(w http.ResponseWriter, r *http.Request, body []byte) {
		var call struct {
			Model string `json:"model"`
			Input struct {
				Text  string `json:"text"`
				Voice string `json:"voice"`
			} `json:"input"`
		}
		err := strict(body, &call)
		switch {
		case r.URL.Path != "/api/v1/services/aigc/multimodal-generation/generation":
			qwenError(w, 404, "InvalidURL", "url error")
		case r.Header.Get("Authorization") != "Bearer "+key:
			qwenError(w, 401, "InvalidApiKey", "Invalid API-key provided.")
		case marked(body, "busy"):
			qwenError(w, 429, "Throttling.RateQuota", "Requests rate limit exceeded, please try again later.")
		case marked(body, "broke"):
			qwenError(w, 400, "Arrearage", "Access denied, please make sure your account is in good standing.")
		case marked(body, "long"):
			qwenError(w, 400, "InvalidParameter", "Range of input length should be [0, 600]")
		case marked(body, "blocked"):
			qwenError(w, 400, "DataInspectionFailed", "Input data may contain inappropriate content.")
		case marked(body, "page"):
			page(w)
		case err != nil || call.Model == "" || call.Input.Text == "" || r.Header.Get("X-DashScope-SSE") != "enable":
			qwenError(w, 400, "InvalidParameter", "invalid: "+string(body))
		case call.Input.Voice != "Cherry":
			qwenError(w, 400, "InvalidParameter", "Voice '"+call.Input.Voice+"' is not supported.")
		default:
			send(w, "text/event-stream", marked(body, "cut"), qwenEvents(body)...)
		}
	})
}

// qwenEvents returns the events of an answer.
func qwenEvents(body []byte) (events []string) {
	usage := `{"characters":40}`
	if marked(body, "tokens") {
		usage = `{"input_tokens":9,"output_tokens":25,"total_tokens":34}`
	}
	event := func(sound, reason string) string {
		return object("id:%d\nevent:result\n:HTTP_STATUS/200\ndata:{\"output\":{\"audio\":{\"data\":%q,\"expires_at\":1,\"id\":\"a\","+
			"\"url\":\"\"},\"finish_reason\":%q},\"usage\":%s,\"request_id\":\"r\"}\n\n", len(events)+1,
			base64.StdEncoding.EncodeToString([]byte(sound)), reason, usage)
	}
	sound := pieces()
	switch {
	case marked(body, "empty"):
		return []string{event("", "stop")}
	case marked(body, "late"):
		return []string{event(sound[0], "null"), "event:error\n:HTTP_STATUS/500\ndata:{\"code\":\"InternalError\"," +
			"\"message\":\"Synthesis failed.\",\"request_id\":\"r\"}\n\n"}
	case marked(body, "header"):
		sound[0] = "RIFF\xff\xff\xff\xffWAVEfmt 0123456789abcdef....data\xff\xff\xff\xff" + sound[0]
	}
	for _, piece := range sound {
		events = append(events, event(piece, "null"))
	}
	return append(events, event("", "stop"))
}
