package fakestudio

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// MiniMax is a fake of MiniMax: pictures in the answer, clips of the second
// video interface as tasks.
//
// Behaviour.Failed is the error object of a task, `{"code":"1027","message":"…"}`,
// or a task that ended otherwise, `{"status":"expired"}`. Of pictures it is the
// `base_resp` of the answer; `{}` withholds them all.
type MiniMax struct {
	Studio
	files *httptest.Server
}

// NewMiniMax starts one. It ends with the test.
func NewMiniMax(t testing.TB) *MiniMax {
	m := &MiniMax{Studio: Studio{slow: true}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/image_generation", m.paint)
	mux.HandleFunc("POST /v2/video_generation", m.film)
	mux.HandleFunc("GET /v2/query/video_generation/{id}", m.look)
	mux.HandleFunc("/", m.strange)
	m.open(t, mux.ServeHTTP)
	m.files = m.openFiles()
	return m
}

// URL is a line's base_url for it.
func (m *MiniMax) URL() string { return m.Host() }

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

// check says what is wrong with a request.
func (p *miniMaxPicture) check() string {
	ratios := []string{"", "1:1", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "21:9"}
	side := func(n int) bool { return n == 0 || n >= 512 && n <= 2048 && n%8 == 0 }
	switch {
	case p.Model != "image-01" || p.Prompt == "" || len(p.Prompt) > 1500:
		return "model and prompt are required"
	case p.Count < 0 || p.Count > 9 || p.Format != "url":
		return "n must be from 1 to 9, and this fake answers with addresses alone"
	case !slices.Contains(ratios, p.Ratio), !side(p.Width), !side(p.Height), (p.Width == 0) != (p.Height == 0):
		return "aspect_ratio, or width and height of 512 to 2048 by 8"
	case len(p.Subject) > 1:
		return "subject_reference has one entry"
	}
	for _, s := range p.Subject {
		if s.Type != "character" || !webAddress(s.File) && !dataOf(s.File, "image/") {
			return "subject_reference is not valid"
		}
	}
	return ""
}

// paint answers with pictures. What is wrong is said with a good status.
func (m *MiniMax) paint(w http.ResponseWriter, r *http.Request) {
	said := func(code int, message string) {
		answerJSON(w, http.StatusOK, map[string]any{"base_resp": map[string]any{"status_code": code, "status_msg": message}})
	}
	if r.Header.Get("Authorization") == "" {
		said(1004, "login fail")
		return
	}
	var asked miniMaxPicture
	body, err := readJSON(r, &asked)
	message := fmt.Sprint(err)
	if err == nil {
		message = asked.check()
	}
	if message != "" {
		m.turnAway(r, body)
		said(2013, "invalid params, "+message)
		return
	}
	ticket, how, ok := m.submit(w, r, body, "img-", max(asked.Count, 1))
	if !ok || !await(r, how.Until) {
		return
	}
	images := max(asked.Count, 1)
	if how.Images > 0 {
		images = how.Images
	}
	resp := json.RawMessage(`{"status_code":0,"status_msg":"success"}`)
	switch how.Failed {
	case "":
	case "{}":
		images = 0
	default:
		images, resp = 0, json.RawMessage(how.Failed)
	}
	urls := []string{}
	for n := range images {
		urls = append(urls, fmt.Sprintf("%s/%s/%d.png", m.files.URL, ticket, n))
	}
	answerJSON(w, http.StatusOK, map[string]any{"id": ticket, "data": map[string]any{"image_urls": urls},
		"metadata": map[string]any{"success_count": images, "failed_count": max(asked.Count, 1) - images}, "base_resp": resp})
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

// check says what is wrong with a request.
func (c *miniMaxClip) check() string {
	tiers := map[string][]string{"MiniMax-H3": {"768P", "2K"}, "MiniMax-H3-Max": {"480P", "768P"}}[c.Model]
	roles := map[string]int{}
	for _, item := range c.Content {
		switch {
		case item.Type == "text" && item.Text != nil:
			roles["text"]++
		case item.Type == "image_url" && item.Image != nil && (webAddress(item.Image.URL) || dataOf(item.Image.URL, "image/")) &&
			slices.Contains([]string{"first_frame", "last_frame", "reference_image"}, item.Role):
			roles[item.Role]++
		case item.Type == "video_url" && item.Video != nil && webAddress(item.Video.URL) && item.Role == "reference_video":
			roles[item.Role]++
		default:
			return "content has an item of no known type"
		}
	}
	frames, shown := roles["first_frame"]+roles["last_frame"], roles["reference_image"]+roles["reference_video"]
	least := 4
	if c.Model == "MiniMax-H3-Max" {
		least = 5
	}
	switch {
	case tiers == nil || !slices.Contains(tiers, c.Resolution):
		return "resolution is none of the model's"
	case roles["text"] != 1 || roles["first_frame"] > 1 || roles["last_frame"] > roles["first_frame"]:
		return "content must hold one text, and no last frame without a first one"
	case frames > 0 && (shown > 0 || c.Ratio != ""):
		return "frames go with no reference and no ratio"
	case shown > 0 && c.Model == "MiniMax-H3-Max", roles["reference_image"] > 9, roles["reference_video"] > 3:
		return "too many references"
	case c.Duration != nil && (*c.Duration < least || *c.Duration > 15):
		return "duration is none of the model's"
	case !slices.Contains([]string{"", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"}, c.Ratio):
		return "ratio is none of the model's"
	}
	return ""
}

// film accepts a clip.
func (m *MiniMax) film(w http.ResponseWriter, r *http.Request) {
	if !m.keyed(w, r) {
		return
	}
	var asked miniMaxClip
	body, err := readJSON(r, &asked)
	message := fmt.Sprint(err)
	if err == nil {
		message = asked.check()
	}
	if message != "" {
		m.turnAway(r, body)
		miniMaxError(w, http.StatusBadRequest, "invalid_request_error", message)
		return
	}
	if ticket, _, ok := m.submit(w, r, body, "task-", 1); ok {
		answerJSON(w, http.StatusOK, map[string]any{"task_id": ticket})
	}
}

// keyed answers those without a key.
func (m *MiniMax) keyed(w http.ResponseWriter, r *http.Request) bool {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		miniMaxError(w, http.StatusUnauthorized, "authorized_error", "login fail")
		return false
	}
	return true
}

// look answers a poll.
func (m *MiniMax) look(w http.ResponseWriter, r *http.Request) {
	if !m.keyed(w, r) {
		return
	}
	ticket := r.PathValue("id")
	status, it := m.poll(w, ticket)
	task := map[string]any{"id": ticket, "status": "running"}
	switch status {
	case answered:
		return
	case unknown:
		miniMaxError(w, http.StatusNotFound, "not_found_error", "task not found")
		return
	case going:
		if m.waits(it) {
			task["status"] = "queued"
		}
	case failed:
		var said struct{ Status string }
		if _ = json.Unmarshal([]byte(it.how.Failed), &said); said.Status != "" {
			task["status"] = said.Status
		} else {
			task["status"], task["error"] = "failed", json.RawMessage(it.how.Failed)
		}
	case done:
		task["status"], task["content"] = "succeeded", map[string]any{"url": fmt.Sprintf("%s/%s/0.mp4", m.files.URL, ticket)}
		task["usage"] = map[string]any{"total_seconds": 5, "output_seconds": 5}
	}
	answerJSON(w, http.StatusOK, map[string]any{"task": task})
}

func miniMaxError(w http.ResponseWriter, status int, kind, message string) {
	answerJSON(w, status, map[string]any{"type": "error", "request_id": "021",
		"error": map[string]any{"type": kind, "message": message, "http_code": fmt.Sprint(status)}})
}
