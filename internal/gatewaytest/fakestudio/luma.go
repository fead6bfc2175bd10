package fakestudio

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Luma is a fake of Luma's Agents API. Each task creates one picture or clip.
//
// Behaviour.Failure has members of the answer to a poll: `{"state":"failed","failure_code":"…"}`.
type Luma struct{ Studio }

// NewLuma starts a fake Luma, which stops at the end of the test.
func NewLuma(t testing.TB) *Luma {
	l := &Luma{}
	l.open(t, "/v1", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		answerJSON(w, http.StatusUnauthorized, object{"detail": "Invalid API key"})
	}), map[string]http.HandlerFunc{"POST /generations": l.createTask, "GET /generations/{id}": l.getTask})
	return l
}

// lumaMedia is a reference, either an address or base64.
type lumaMedia struct {
	URL  string `json:"url"`
	Data string `json:"data"`
	Type string `json:"media_type"`
}

func (m *lumaMedia) isInvalid() bool {
	if m == nil {
		return false
	}
	return m.URL != "" && m.Type != "" || m.isNot("image/")
}

// isNot reports whether a reference is invalid or has another media type than kind.
func (m *lumaMedia) isNot(kind string) bool {
	data, err := base64.StdEncoding.DecodeString(m.Data)
	if m.URL != "" {
		return m.Data != "" || !isURL(m.URL) || m.Type != "" && !strings.HasPrefix(m.Type, kind)
	}
	return err != nil || len(data) == 0 || !strings.HasPrefix(m.Type, kind)
}

// lumaTask is a request of any type.
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

// checkVideo returns the error of a request to change a video, or the empty string.
func (in *lumaTask) checkVideo() string {
	reframe := in.Type == "video_reframe"
	switch {
	case in.Prompt == "" || in.Source == nil || in.Source.Type == "" || in.Source.isNot("video/") || in.Refs != nil:
		return "prompt and a source with the media_type of a video are required"
	case in.Video == nil || !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, in.Video.Resolution):
		return "resolution is unknown"
	case in.Video.Duration != "" || in.Video.End != nil || in.Video.Keyframes != nil || in.Video.Loop:
		return "the output has the length of the source"
	case reframe != (in.Ratio != ""), reframe && (in.Video.Edit != nil || in.Video.Start != nil):
		return "edit is for video_edit, and aspect_ratio for video_reframe"
	}
	return ""
}

// checkKeyframes returns the error of the keyframes of a clip, or the empty string.
func (in *lumaTask) checkKeyframes() string {
	v, last := in.Video, 120
	if v.Duration == "10s" {
		last = 240
	}
	switch {
	case len(v.Keyframes) != len(v.Indexes) || slices.ContainsFunc(v.Keyframes, func(m lumaMedia) bool { return m.isInvalid() }):
		return "keyframes and keyframe_indexes do not match"
	case v.Keyframes != nil && (v.Start != nil || v.End != nil || v.Loop):
		return "keyframes exclude start_frame, end_frame and loop"
	case slices.ContainsFunc(v.Indexes, func(n int) bool { return n < 0 || n > last }):
		return "keyframe_indexes are out of range"
	}
	return ""
}

// check returns the error of a request, or the empty string.
func (in *lumaTask) check() string {
	ratios := []string{"", "9:16", "3:4", "1:1", "4:3", "16:9", "21:9"}
	clip := in.Type == "video"
	if !clip {
		ratios = append(ratios, "3:1", "2:1", "3:2", "2:3", "1:2", "1:3")
	}
	switch {
	case in.Type == "video_edit" || in.Type == "video_reframe":
		return in.checkVideo()
	case in.Model == "" || in.Prompt == "":
		return "model and prompt are required"
	case !slices.Contains([]string{"image", "image_edit", "video"}, in.Type):
		return "type is unknown"
	case !slices.Contains(ratios, in.Ratio):
		return "aspect_ratio is not supported by the type"
	case clip != (in.Video != nil), clip && (in.Source != nil || in.Refs != nil), (in.Type == "image_edit") != (in.Source != nil):
		return "type does not go with the fields"
	case len(in.Refs) > 9, in.Source != nil && len(in.Refs) > 8, in.Source.isInvalid(),
		slices.ContainsFunc(in.Refs, func(m lumaMedia) bool { return m.isInvalid() }):
		return "image_ref is not valid"
	case !clip:
		return ""
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, in.Video.Resolution):
		return "resolution is unknown"
	case !slices.Contains([]string{"", "5s", "10s"}, in.Video.Duration):
		return "duration must be 5s or 10s"
	case in.Video.Duration == "10s" && (in.Video.Start != nil || in.Video.End != nil || in.Video.Loop):
		return "frames and loops are of 5s"
	case in.Video.Start.isInvalid(), in.Video.End.isInvalid():
		return "start_frame is not valid"
	}
	return in.checkKeyframes()
}

func (l *Luma) createTask(w http.ResponseWriter, r *http.Request) {
	in, body, ok := readTask(&l.Studio, w, r, (*lumaTask).check, func(w http.ResponseWriter, message string) {
		answerJSON(w, http.StatusUnprocessableEntity, object{"detail": message})
	})
	if !ok {
		return
	}
	prefix := "png-"
	if strings.HasPrefix(in.Type, "video") {
		prefix = "mp4-"
	}
	if t, ok := l.submit(w, r, body, prefix, 1); ok {
		answerJSON(w, http.StatusCreated, object{"id": t.ticket, "state": "queued", "type": in.Type, "model": in.Model})
	}
}

func (l *Luma) getTask(w http.ResponseWriter, r *http.Request) {
	l.answerPoll(w, r.PathValue("id"), polling{
		id: "id", status: "state", waiting: "queued", running: "processing", done: "completed",
		members: object{"output": []any{}, "failure_code": nil},
		missing: func(w http.ResponseWriter) {
			answerJSON(w, http.StatusNotFound, object{"detail": "Generation not found"})
		},
		result: func(answer object, t *task) {
			kind, url := "png", l.pictureURL(t, 0)
			if strings.HasPrefix(t.ticket, "mp4-") {
				kind, url = "mp4", l.clipURL(t)
			}
			answer["output"] = []any{object{"type": kind, "url": url}}
		},
	})
}
