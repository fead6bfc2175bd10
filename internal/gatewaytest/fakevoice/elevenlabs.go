package fakevoice

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// elevenFormats are values of output_format.
var elevenFormats = []string{"mp3_44100_128", "opus_48000_128", "pcm_24000"}

// elevenError writes an error of ElevenLabs.
func elevenError(w http.ResponseWriter, status int, name, message string) {
	reply(w, status, object(`{"detail":{"status":%q,"message":%q}}`, name, message))
}

// NewElevenLabs starts a fake of ElevenLabs. It has one voice, `rachel`. key is the only good credential.
func NewElevenLabs(t testing.TB, key string) *Server {
	return serve(t, "/v1", func(w http.ResponseWriter, r *http.Request, body []byte) {
		switch {
		case r.Header.Get("Xi-Api-Key") != key:
			elevenError(w, 401, "invalid_api_key", "Invalid API key")
		case marked(body, "busy"):
			w.Header().Set("Retry-After", "7")
			elevenError(w, 429, "too_many_concurrent_requests", "Too many concurrent requests.")
		case marked(body, "broke"):
			elevenError(w, 401, "quota_exceeded", "This request exceeds your quota of 10 credits.")
		case marked(body, "long"):
			elevenError(w, 400, "max_character_limit_exceeded", "This request exceeds the character limit of 40 characters.")
		case marked(body, "page"):
			page(w)
		case r.Method != "POST":
			elevenError(w, 405, "method_not_allowed", "Method Not Allowed")
		case r.URL.Path == "/v1/speech-to-text":
			elevenTranscript(w, r, body)
		case strings.HasPrefix(r.URL.Path, "/v1/text-to-speech/"):
			elevenSpeech(w, r, body)
		default:
			reply(w, 404, `{"detail":"Not Found"}`)
		}
	})
}

// elevenSpeech answers a call for speech.
func elevenSpeech(w http.ResponseWriter, r *http.Request, body []byte) {
	voice, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/text-to-speech/"), "/")
	var call struct {
		Text     string `json:"text"`
		Model    string `json:"model_id"`
		Settings struct {
			Speed     float64 `json:"speed"`
			Stability float64 `json:"stability"`
		} `json:"voice_settings"`
	}
	format := r.URL.Query().Get("output_format")
	if err := strict(body, &call); err != nil || call.Text == "" || call.Model == "" || rest != "stream" ||
		!slices.Contains(elevenFormats, format) ||
		call.Settings.Speed != 0 && (call.Settings.Speed < 0.7 || call.Settings.Speed > 1.2) {
		reply(w, 422, object(`{"detail":[{"loc":["body"],"msg":%q,"type":"value_error"}]}`, "invalid: "+string(body)+" "+r.RequestURI))
		return
	}
	if voice != "rachel" {
		elevenError(w, 404, "voice_not_found", "A voice with the voice_id "+voice+" was not found.")
		return
	}
	w.Header().Set("Character-Cost", "20")
	contentType := map[byte]string{'m': "audio/mpeg", 'o': "audio/ogg", 'p': "audio/pcm"}[format[0]]
	if marked(body, "empty") {
		send(w, contentType, false)
		return
	}
	send(w, contentType, marked(body, "cut"), pieces()...)
}

// elevenTranscript answers a call for a transcription.
func elevenTranscript(w http.ResponseWriter, r *http.Request, body []byte) {
	err := r.ParseMultipartForm(1 << 20)
	fields := []string{"model_id", "language_code", "temperature", "diarize", "tag_audio_events"}
	known := err == nil && len(r.MultipartForm.File["file"]) == 1 && r.FormValue("model_id") != ""
	if err == nil {
		for name := range r.MultipartForm.Value {
			known = known && slices.Contains(fields, name)
		}
	}
	if !known {
		reply(w, 422, `{"detail":[{"loc":["body","file"],"msg":"Field required","type":"missing"}]}`)
		return
	}
	answer := map[string]any{"language_code": "eng", "language_probability": 0.98, "text": Text}
	var list []map[string]any
	for i, word := range words {
		if i > 0 {
			list = append(list, map[string]any{"text": " ", "type": "spacing", "start": words[i-1].end, "end": word.start})
		}
		list = append(list, map[string]any{"text": word.text, "type": "word", "start": word.start, "end": word.end,
			"speaker_id": object("speaker_%d", word.speaker)})
	}
	if answer["words"] = list; marked(body, "empty") {
		answer = map[string]any{"language_code": "eng"}
	}
	raw, _ := json.Marshal(answer) // cannot fail
	send(w, "application/json", marked(body, "cut"), string(raw[:10]), string(raw[10:]))
}
