package fakestudio

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// Luma is a fake of Luma's Agents API: tasks of one picture or clip each.
//
// Behaviour.Failed is what a poll says, `{"state":"failed","failure_code":"…"}`.
type Luma struct {
	Studio
	files *httptest.Server
}

// NewLuma starts one. It ends with the test.
func NewLuma(t testing.TB) *Luma {
	l := &Luma{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/generations", l.keyed(l.accept))
	mux.HandleFunc("GET /v1/generations/{id}", l.keyed(l.look))
	mux.HandleFunc("/", l.strange)
	l.open(t, mux.ServeHTTP)
	l.files = l.openFiles()
	return l
}

// URL is a line's base_url for it.
func (l *Luma) URL() string { return l.Host() + "/v1" }

// keyed lets those with a key pass.
func (l *Luma) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || key == "" {
			answerJSON(w, http.StatusUnauthorized, map[string]any{"detail": "Invalid API key"})
			return
		}
		next(w, r)
	}
}

// lumaMedia is a reference: one of an address and bare base64.
type lumaMedia struct {
	URL  string `json:"url"`
	Data string `json:"data"`
	Type string `json:"media_type"`
}

func (m *lumaMedia) bad() bool {
	if m == nil {
		return false
	}
	return m.URL != "" && m.Type != "" || m.misses("image/")
}

// misses tells whether a reference is none of a kind.
func (m *lumaMedia) misses(kind string) bool {
	data, err := base64.StdEncoding.DecodeString(m.Data)
	if m.URL != "" {
		return m.Data != "" || !webAddress(m.URL) || m.Type != "" && !strings.HasPrefix(m.Type, kind)
	}
	return err != nil || len(data) == 0 || !strings.HasPrefix(m.Type, kind)
}

// lumaTask is a request for anything.
type lumaTask struct {
	Model  string          `json:"model"`
	Type   string          `json:"type"`
	Prompt string          `json:"prompt"`
	Ratio  string          `json:"aspect_ratio"`
	Refs   []lumaMedia     `json:"image_ref"`
	Source *lumaMedia      `json:"source"`
	Format string          `json:"output_format"`
	Style  json.RawMessage `json:"style"`
	Video  *struct {
		Resolution string     `json:"resolution"`
		Duration   string     `json:"duration"`
		Start      *lumaMedia `json:"start_frame"`
		End        *lumaMedia `json:"end_frame"`
		Loop       bool       `json:"loop"`

		Keyframes []lumaMedia `json:"keyframes"`
		Indexes   []int       `json:"keyframe_indexes"`
		Edit      *struct {
			Strength string `json:"strength"`
		} `json:"edit"`
	} `json:"video"`
}

// checkVideo says what is wrong with a request to change a video.
func (a *lumaTask) checkVideo() string {
	reframe := a.Type == "video_reframe"
	switch {
	case a.Prompt == "" || a.Source == nil || a.Source.Type == "" || a.Source.misses("video/") || a.Refs != nil:
		return "prompt and a source with the media_type of a video are required"
	case a.Video == nil || !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, a.Video.Resolution):
		return "resolution is unknown"
	case a.Video.Duration != "" || a.Video.End != nil || a.Video.Keyframes != nil || a.Video.Loop:
		return "the output has the length of the source"
	case reframe != (a.Ratio != ""), reframe && (a.Video.Edit != nil || a.Video.Start != nil):
		return "edit is for video_edit, and aspect_ratio for video_reframe"
	}
	return ""
}

// checkKeyframes says what is wrong with the keyframes of a clip.
func (a *lumaTask) checkKeyframes() string {
	v, last := a.Video, 120
	if v.Duration == "10s" {
		last = 240
	}
	switch {
	case len(v.Keyframes) != len(v.Indexes) || slices.ContainsFunc(v.Keyframes, func(m lumaMedia) bool { return m.bad() }):
		return "keyframes and keyframe_indexes do not match"
	case v.Keyframes != nil && (v.Start != nil || v.End != nil || v.Loop):
		return "keyframes exclude start_frame, end_frame and loop"
	case slices.ContainsFunc(v.Indexes, func(n int) bool { return n < 0 || n > last }):
		return "keyframe_indexes are out of range"
	}
	return ""
}

// check says what is wrong with a request.
func (a *lumaTask) check() string {
	ratios := []string{"", "9:16", "3:4", "1:1", "4:3", "16:9", "21:9"}
	clip := a.Type == "video"
	if !clip {
		ratios = append(ratios, "3:1", "2:1", "3:2", "2:3", "1:2", "1:3")
	}
	switch {
	case a.Type == "video_edit" || a.Type == "video_reframe":
		return a.checkVideo()
	case a.Model == "" || a.Prompt == "":
		return "model and prompt are required"
	case !slices.Contains([]string{"image", "image_edit", "video"}, a.Type):
		return "type is unknown"
	case !slices.Contains(ratios, a.Ratio):
		return "aspect_ratio is none of the type's"
	case clip != (a.Video != nil), clip && (a.Source != nil || a.Refs != nil), (a.Type == "image_edit") != (a.Source != nil):
		return "type does not go with the fields"
	case len(a.Refs) > 9, a.Source != nil && len(a.Refs) > 8, a.Source.bad(),
		slices.ContainsFunc(a.Refs, func(m lumaMedia) bool { return m.bad() }):
		return "image_ref is not valid"
	case !clip:
		return ""
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, a.Video.Resolution):
		return "resolution is unknown"
	case !slices.Contains([]string{"", "5s", "10s"}, a.Video.Duration):
		return "duration must be 5s or 10s"
	case a.Video.Duration == "10s" && (a.Video.Start != nil || a.Video.End != nil || a.Video.Loop):
		return "frames and loops are of 5s"
	case a.Video.Start.bad(), a.Video.End.bad():
		return "start_frame is not valid"
	}
	return a.checkKeyframes()
}

// accept accepts a task.
func (l *Luma) accept(w http.ResponseWriter, r *http.Request) {
	var asked lumaTask
	body, err := readJSON(r, &asked)
	message := fmt.Sprint(err)
	if err == nil {
		message = asked.check()
	}
	if message != "" {
		l.turnAway(r, body)
		answerJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": message})
		return
	}
	kind := "png-"
	if strings.HasPrefix(asked.Type, "video") {
		kind = "mp4-"
	}
	if ticket, _, ok := l.submit(w, r, body, kind, 1); ok {
		answerJSON(w, http.StatusCreated, map[string]any{"id": ticket, "state": "queued", "type": asked.Type, "model": asked.Model})
	}
}

// look answers a poll.
func (l *Luma) look(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	status, it := l.poll(w, ticket)
	answer := map[string]any{"id": ticket, "state": "processing", "output": []any{}, "failure_code": nil}
	switch status {
	case answered:
		return
	case unknown:
		answerJSON(w, http.StatusNotFound, map[string]any{"detail": "Generation not found"})
		return
	case going:
		if l.waits(it) {
			answer["state"] = "queued"
		}
	case failed:
		_ = json.Unmarshal([]byte(it.how.Failed), &answer) // a test's own
	case done:
		kind, _, _ := strings.Cut(ticket, "-")
		answer["state"] = "completed"
		answer["output"] = []any{map[string]any{"type": kind, "url": fmt.Sprintf("%s/%s/0.%s", l.files.URL, ticket, kind)}}
	}
	answerJSON(w, http.StatusOK, answer)
}
