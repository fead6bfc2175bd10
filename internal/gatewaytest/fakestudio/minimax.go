package fakestudio

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// MiniMax is a fake of MiniMax. A request for pictures gets them in the answer. A request for a clip,
// in version 2 of the video API, creates a task.
//
// Behaviour.Failure is the error object of a task, `{"code":"1027","message":"…"}`, or another final
// status, `{"status":"expired"}`. For pictures, it is the `base_resp` of the answer. `{}` withholds
// all pictures.
type MiniMax struct{ Studio }

// NewMiniMax starts a fake MiniMax, which stops at the end of the test.
func NewMiniMax(t testing.TB) *MiniMax {
	m := &MiniMax{Studio{slow: true}}
	m.open(t, "", func(w http.ResponseWriter, r *http.Request) bool {
		return withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
			if r.URL.Path == "/v1/image_generation" {
				miniMaxStatus(w, 1004, "login fail")
				return
			}
			miniMaxError(w, http.StatusUnauthorized, "authorized_error", "login fail")
		})(w, r)
	}, map[string]http.HandlerFunc{
		"POST /v1/image_generation":           m.createPictures,
		"POST /v2/video_generation":           m.createClip,
		"GET /v2/query/video_generation/{id}": m.getTask,
	})
	return m
}

// miniMaxPicture is a request for pictures.
type miniMaxPicture struct {
	Model     string          `json:"model"`
	Prompt    string          `json:"prompt"`
	Count     int             `json:"n"`
	Ratio     string          `json:"aspect_ratio"`
	Width     int             `json:"width"`
	Height    int             `json:"height"`
	Seed      *int64          `json:"seed"`
	Format    string          `json:"response_format"`
	Optimizer *bool           `json:"prompt_optimizer"`
	Watermark json.RawMessage `json:"aigc_watermark"`
	Subject   []struct {
		Type string `json:"type"`
		File string `json:"image_file"`
	} `json:"subject_reference"`
}

// check returns the error of a request, or the empty string.
func (p *miniMaxPicture) check() string {
	ratios := []string{"", "1:1", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "21:9"}
	side := func(n int) bool { return n == 0 || n >= 512 && n <= 2048 && n%8 == 0 }
	switch {
	case p.Model != "image-01" || p.Prompt == "" || len(p.Prompt) > 1500:
		return "model and prompt are required"
	case p.Count < 0 || p.Count > 9 || p.Format != "url":
		return "n must be from 1 to 9, and this fake answers with links only"
	case !slices.Contains(ratios, p.Ratio), !side(p.Width), !side(p.Height), (p.Width == 0) != (p.Height == 0):
		return "aspect_ratio, or width and height of 512 to 2048 by 8"
	case len(p.Subject) > 1:
		return "subject_reference has one entry"
	}
	for _, s := range p.Subject {
		if s.Type != "character" || !isPicture(s.File) {
			return "subject_reference is not valid"
		}
	}
	return ""
}

func (m *MiniMax) createPictures(w http.ResponseWriter, r *http.Request) {
	in, body, ok := readTask(&m.Studio, w, r, (*miniMaxPicture).check, func(w http.ResponseWriter, message string) {
		miniMaxStatus(w, 2013, "invalid params, "+message)
	})
	if !ok {
		return
	}
	t, ok := m.finish(w, r, body, "img-", max(in.Count, 1))
	if !ok {
		return
	}
	resp := json.RawMessage(`{"status_code":0,"status_msg":"success"}`)
	if t.Failure != "" {
		t.images = 0
		if t.Failure != "{}" {
			resp = json.RawMessage(t.Failure)
		}
	}
	answerJSON(w, http.StatusOK, object{"id": t.ticket, "data": object{"image_urls": m.pictures(t, func(url string) any { return url })},
		"metadata": object{"success_count": t.images, "failed_count": max(in.Count, 1) - t.images}, "base_resp": resp})
}

// miniMaxStatus answers a request for pictures with an error. The HTTP status is 200.
func miniMaxStatus(w http.ResponseWriter, code int, message string) {
	answerJSON(w, http.StatusOK, object{"base_resp": object{"status_code": code, "status_msg": message}})
}

// miniMaxClip is a request for a clip.
type miniMaxClip struct {
	Model   string `json:"model"`
	Content []struct {
		Type  string   `json:"type"`
		Text  *string  `json:"text"`
		Image *arkLink `json:"image_url"`
		Video *arkLink `json:"video_url"`
		Role  string   `json:"role"`
	} `json:"content"`
	Resolution string          `json:"resolution"`
	Duration   *int            `json:"duration"`
	Ratio      string          `json:"ratio"`
	Watermark  json.RawMessage `json:"aigc_watermark"`
}

// check returns the error of a request, or the empty string.
func (c *miniMaxClip) check() string {
	tiers := map[string][]string{"MiniMax-H3": {"768P", "2K"}, "MiniMax-H3-Max": {"480P", "768P"}}[c.Model]
	roles := map[string]int{}
	for _, item := range c.Content {
		switch {
		case item.Type == "text" && item.Text != nil:
			roles["text"]++
		case item.Type == "image_url" && item.Image != nil && isPicture(item.Image.URL) &&
			slices.Contains([]string{"first_frame", "last_frame", "reference_image"}, item.Role):
			roles[item.Role]++
		case item.Type == "video_url" && item.Video != nil && isURL(item.Video.URL) && item.Role == "reference_video":
			roles[item.Role]++
		default:
			return "content has an item of no known type"
		}
	}
	frames, references := roles["first_frame"]+roles["last_frame"], roles["reference_image"]+roles["reference_video"]
	least := 4
	if c.Model == "MiniMax-H3-Max" {
		least = 5
	}
	switch {
	case tiers == nil || !slices.Contains(tiers, c.Resolution):
		return "resolution is not supported by the model"
	case roles["text"] != 1 || roles["first_frame"] > 1 || roles["last_frame"] > roles["first_frame"]:
		return "content must hold one text, and no last frame without a first one"
	case frames > 0 && (references > 0 || c.Ratio != ""):
		return "frames go with no reference and no ratio"
	case references > 0 && c.Model == "MiniMax-H3-Max", roles["reference_image"] > 9, roles["reference_video"] > 3:
		return "too many references"
	case c.Duration != nil && (*c.Duration < least || *c.Duration > 15):
		return "duration is not supported by the model"
	case !slices.Contains([]string{"", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"}, c.Ratio):
		return "ratio is not supported by the model"
	}
	return ""
}

func (m *MiniMax) createClip(w http.ResponseWriter, r *http.Request) {
	_, body, ok := readTask(&m.Studio, w, r, (*miniMaxClip).check, func(w http.ResponseWriter, message string) {
		miniMaxError(w, http.StatusBadRequest, "invalid_request_error", message)
	})
	if !ok {
		return
	}
	if t, ok := m.submit(w, r, body, "task-", 1); ok {
		answerJSON(w, http.StatusOK, object{"task_id": t.ticket})
	}
}

func (m *MiniMax) getTask(w http.ResponseWriter, r *http.Request) {
	m.answerPoll(w, r.PathValue("id"), polling{
		id: "id", status: "status", waiting: "queued", running: "running", failed: "failed", done: "succeeded",
		missing: func(w http.ResponseWriter) {
			miniMaxError(w, http.StatusNotFound, "not_found_error", "task not found")
		},
		failure: statusOrError,
		result: func(answer object, t *task) {
			answer["content"] = object{"url": m.clipURL(t)}
			answer["usage"] = object{"total_seconds": 5, "output_seconds": 5}
		},
		wrap: func(answer object) any { return object{"task": answer} },
	})
}

func miniMaxError(w http.ResponseWriter, status int, kind, message string) {
	answerJSON(w, status, object{"type": "error", "request_id": "021",
		"error": object{"type": kind, "message": message, "http_code": fmt.Sprint(status)}})
}
