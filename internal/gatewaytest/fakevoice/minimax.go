package fakevoice

import (
	"encoding/hex"
	"net/http"
	"slices"
	"testing"
)

// miniCall is a request for speech.
type miniCall struct {
	Model   string `json:"model"`
	Text    string `json:"text"`
	Stream  bool   `json:"stream"`
	Options struct {
		ExcludeWhole bool `json:"exclude_aggregated_audio"`
	} `json:"stream_options"`
	Voice struct {
		ID    string  `json:"voice_id"`
		Speed float64 `json:"speed"`
	} `json:"voice_setting"`
	Audio struct {
		Format  string `json:"format"`
		Rate    int    `json:"sample_rate"`
		BitRate int    `json:"bitrate"`
		Channel int    `json:"channel"`
	} `json:"audio_setting"`
}

// miniError writes an error of MiniMax, whose status is always 200.
func miniError(w http.ResponseWriter, code int, message string) {
	reply(w, 200, object(`{"data":null,"trace_id":"t","base_resp":{"status_code":%d,"status_msg":%q}}`, code, message))
}

// NewMiniMax starts a fake of MiniMax's speech. It has one voice, `radio`. key is the only good credential. With the
// mark [again] the last event has all sound once more; with [late] the account fails after the first sound.
func NewMiniMax(t testing.TB, key string) *Server {
	return serve(t, "", func(w http.ResponseWriter, r *http.Request, body []byte) {
		var call miniCall
		err := strict(body, &call)
		switch {
		case r.URL.Path != "/v1/t2a_v2":
			reply(w, 404, `404 page not found`)
		case r.Header.Get("Authorization") != "Bearer "+key:
			miniError(w, 1004, "login fail: Please carry the API secret key in the 'Authorization' field of the request header")
		case marked(body, "busy"):
			miniError(w, 1002, "rate limit exceeded(RPM)")
		case marked(body, "broke"):
			miniError(w, 1008, "insufficient balance")
		case marked(body, "long"):
			miniError(w, 2013, "invalid params, text too long")
		case marked(body, "blocked"):
			miniError(w, 1026, "input new_sensitive")
		case marked(body, "page"):
			page(w)
		case err != nil || !call.Stream || !call.Options.ExcludeWhole || call.Text == "" ||
			!slices.Contains([]string{"mp3", "flac", "pcm"}, call.Audio.Format) || call.Voice.Speed < 0.5 || call.Voice.Speed > 2:
			miniError(w, 2013, "invalid params: "+string(body))
		case call.Voice.ID != "radio":
			miniError(w, 2054, "voice id not exist")
		default:
			send(w, "text/event-stream", marked(body, "cut"), miniEvents(body)...)
		}
	})
}

// miniEvents returns the events of an answer.
func miniEvents(body []byte) (events []string) {
	event := func(sound string, status int, code int) string {
		return object("data: {\"data\":{\"audio\":%q,\"status\":%d},\"trace_id\":\"t\","+
			"\"base_resp\":{\"status_code\":%d,\"status_msg\":\"\"}}\n\n", hex.EncodeToString([]byte(sound)), status, code)
	}
	if marked(body, "empty") {
		return []string{event("", 2, 0)}
	}
	for _, piece := range pieces() {
		events = append(events, event(piece, 1, 0))
	}
	last := ""
	switch {
	case marked(body, "again"):
		last = Sound()
	case marked(body, "late"):
		return append(events[:1], event("", 2, 1008))
	}
	return append(events, event(last, 2, 0))
}
