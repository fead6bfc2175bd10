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

// XAI is a fake of xAI's pictures, which come in the answer, and clips.
//
// Behaviour.Failed is what a poll answers of a clip, with status 200 unless its
// member `http` says another; of pictures, any text says that the review withheld
// all of them.
type XAI struct {
	Studio
	files *httptest.Server
}

// NewXAI starts one. It ends with the test.
func NewXAI(t testing.TB) *XAI {
	x := &XAI{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/images/generations", x.keyed(x.paint(false)))
	mux.HandleFunc("POST /v1/images/edits", x.keyed(x.paint(true)))
	mux.HandleFunc("POST /v1/videos/generations", x.keyed(x.film))
	mux.HandleFunc("POST /v1/videos/edits", x.keyed(x.film))
	mux.HandleFunc("POST /v1/videos/extensions", x.keyed(x.film))
	mux.HandleFunc("GET /v1/videos/{id}", x.keyed(x.look))
	mux.HandleFunc("/", x.strange)
	x.open(t, mux.ServeHTTP)
	x.files = x.openFiles()
	return x
}

// URL is a line's base_url for it.
func (x *XAI) URL() string { return x.Host() + "/v1" }

func (x *XAI) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || key == "" {
			xaiSays(w, http.StatusUnauthorized, "no credentials")
			return
		}
		next(w, r)
	}
}

func xaiSays(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, map[string]any{"code": "Client specified an invalid argument", "error": message})
}

// xaiFile is a picture to work from.
type xaiFile struct {
	URL  string `json:"url"`
	Type string `json:"type"`
}

// xaiPicture is a request for pictures.
type xaiPicture struct {
	Model      string    `json:"model"`
	Prompt     string    `json:"prompt"`
	N          int       `json:"n"`
	Ratio      string    `json:"aspect_ratio"`
	Resolution string    `json:"resolution"`
	Quality    string    `json:"quality"`
	Format     string    `json:"response_format"`
	User       string    `json:"user"`
	Image      *xaiFile  `json:"image"`
	Images     []xaiFile `json:"images"`
}

// check says what is wrong with a request for pictures.
func (p *xaiPicture) check(edit bool) string {
	files := p.Images
	if p.Image != nil {
		files = append(files, *p.Image)
	}
	for _, f := range files {
		if f.Type != "image_url" || !readable(f.URL, 20<<20) {
			return "an image cannot be read"
		}
	}
	switch {
	case p.Model == "" || p.Prompt == "":
		return "model and prompt are required"
	case edit != (len(files) > 0) || len(files) > 3 || p.Image != nil && p.Images != nil:
		return "images do not belong here"
	case p.N < 1 || p.N > 10 || p.Resolution != "1k" && p.Resolution != "2k" || p.Format != "url":
		return "n, resolution or response_format is invalid"
	}
	return ""
}

// paint answers with pictures.
func (x *XAI) paint(edit bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked xaiPicture
		body, err := readJSON(r, &asked)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else {
			wrong = asked.check(edit)
		}
		if wrong != "" {
			x.turnAway(r, body)
			xaiSays(w, http.StatusUnprocessableEntity, wrong)
			return
		}
		ticket, how, ok := x.submit(w, r, body, "img-", asked.N)
		if !ok || !await(r, how.Until) {
			return
		}
		images := asked.N
		if how.Images > 0 {
			images = how.Images
		}
		data := []any{}
		for i := range images {
			data = append(data, map[string]any{"url": fmt.Sprintf("%s/%s/%d.png", x.files.URL, ticket, i), "respect_moderation": how.Failed == ""})
		}
		answerJSON(w, http.StatusOK, map[string]any{"data": data, "usage": map[string]any{"cost_in_usd_ticks": 400000000}})
	}
}

// xaiClip is a request for a clip.
type xaiClip struct {
	Model      string    `json:"model"`
	Prompt     string    `json:"prompt"`
	Duration   *int      `json:"duration"`
	Ratio      string    `json:"aspect_ratio"`
	Resolution string    `json:"resolution"`
	Image      *xaiFile  `json:"image"`
	Last       *xaiFile  `json:"last_frame"`
	Subjects   []xaiFile `json:"reference_images"`
	Audio      *bool     `json:"generate_audio"`
	User       string    `json:"user"`
	Video      *xaiFile  `json:"video"`
}

// checkVideo says what is wrong with a request for a clip from a video.
func (c *xaiClip) checkVideo(extend bool) string {
	switch {
	case c.Video == nil || !webAddress(c.Video.URL) || c.Video.Type != "":
		return "video is required"
	case c.Model != "grok-imagine-video" || c.Prompt == "":
		return "model and prompt are required"
	case c.Ratio+c.Resolution != "" || c.Image != nil || c.Last != nil || c.Subjects != nil || c.Audio != nil:
		return "the output has the shape of the input"
	case !extend && c.Duration != nil, c.Duration != nil && (*c.Duration < 2 || *c.Duration > 10):
		return "duration is invalid"
	}
	return ""
}

// check says what is wrong with a request for a clip.
func (c *xaiClip) check() string {
	files := c.Subjects
	for _, f := range []*xaiFile{c.Image, c.Last} {
		if f != nil {
			files = append(files, *f)
		}
	}
	for _, f := range files {
		if f.Type != "" || !readable(f.URL, 20<<20) {
			return "an image cannot be read"
		}
	}
	older := strings.HasSuffix(c.Model, "grok-imagine-video")
	switch {
	case c.Model == "" || c.Prompt == "" && len(files) == 0:
		return "model and prompt are required"
	case c.Duration != nil && (*c.Duration < 1 || *c.Duration > 15):
		return "duration is invalid"
	case !slices.Contains([]string{"480p", "720p", "1080p"}, c.Resolution),
		c.Resolution == "1080p" && (older || len(c.Subjects) > 0):
		return "resolution is invalid"
	case older && (c.Last != nil || c.Audio != nil):
		return "the model does not support this"
	case c.Video != nil:
		return "video is for edits and extensions"
	case len(c.Subjects) > 7 || c.Image != nil && c.Subjects != nil:
		return "image excludes reference_images"
	}
	return ""
}

// film accepts a clip.
func (x *XAI) film(w http.ResponseWriter, r *http.Request) {
	var asked xaiClip
	body, err := readJSON(r, &asked)
	wrong, task := "", r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch {
	case err != nil:
		wrong = err.Error()
	case task == "generations":
		wrong = asked.check()
	default:
		wrong = asked.checkVideo(task == "extensions")
	}
	if wrong != "" {
		x.turnAway(r, body)
		xaiSays(w, http.StatusUnprocessableEntity, wrong)
		return
	}
	if ticket, _, ok := x.submit(w, r, body, "vid-", 1); ok {
		answerJSON(w, http.StatusOK, map[string]any{"request_id": ticket})
	}
}

// look answers a poll. What has not begun is told without a body.
func (x *XAI) look(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	status, it := x.poll(w, ticket)
	switch status {
	case answered:
	case unknown:
		answerJSON(w, http.StatusNotFound, map[string]any{"error": "no such request"})
	case going:
		if x.waits(it) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answerJSON(w, http.StatusAccepted, map[string]any{"status": "pending", "progress": 40})
	case failed:
		said := map[string]any{}
		_ = json.Unmarshal([]byte(it.how.Failed), &said) // no object: an empty one
		status, _ := said["http"].(float64)
		delete(said, "http")
		answerJSON(w, max(int(status), http.StatusOK), said)
	case done:
		answerJSON(w, http.StatusOK, map[string]any{"status": "done", "model": "grok-imagine-video",
			"video": map[string]any{"url": x.files.URL + "/" + ticket + "/0.mp4", "duration": 5, "respect_moderation": true}})
	}
}
