package fakestudio

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// XAI is a fake of xAI. A request for pictures gets them in the answer. A request for a clip
// creates a task.
//
// Behaviour.Failure is the answer to the poll of a clip. The member `http` is the status, by default
// 200. For pictures, any value withholds all pictures.
type XAI struct{ Studio }

// NewXAI starts a fake xAI, which stops at the end of the test.
func NewXAI(t testing.TB) *XAI {
	x := &XAI{}
	x.open(t, "/v1", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		xaiError(w, http.StatusUnauthorized, "no credentials")
	}), map[string]http.HandlerFunc{
		"POST /images/generations": x.createPictures(false),
		"POST /images/edits":       x.createPictures(true),
		"POST /videos/generations": x.createClip((*xaiClip).check),
		"POST /videos/edits":       x.createClip(func(in *xaiClip) string { return in.checkVideo(false) }),
		"POST /videos/extensions":  x.createClip(func(in *xaiClip) string { return in.checkVideo(true) }),
		"GET /videos/{id}":         x.getClip,
	})
	return x
}

func xaiError(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, object{"code": "Client specified an invalid argument", "error": message})
}

func xaiInvalid(w http.ResponseWriter, message string) {
	xaiError(w, http.StatusUnprocessableEntity, message)
}

// xaiFile is a picture or video in a request.
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

// check returns the error of a request for pictures, or the empty string.
func (p *xaiPicture) check(edit bool) string {
	files := p.Images
	if p.Image != nil {
		files = append(files, *p.Image)
	}
	for _, f := range files {
		if f.Type != "image_url" || !isReadable(f.URL, 20<<20) {
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

func (x *XAI) createPictures(edit bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		check := func(in *xaiPicture) string { return in.check(edit) }
		in, body, ok := readTask(&x.Studio, w, r, check, xaiInvalid)
		if !ok {
			return
		}
		t, ok := x.finish(w, r, body, "img-", in.N)
		if !ok {
			return
		}
		data := x.pictures(t, func(url string) any { return object{"url": url, "respect_moderation": t.Failure == ""} })
		answerJSON(w, http.StatusOK, object{"data": data, "usage": object{"cost_in_usd_ticks": 400000000}})
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

// checkVideo returns the error of a request for a clip from a video, or the empty string.
func (c *xaiClip) checkVideo(extend bool) string {
	switch {
	case c.Video == nil || !isURL(c.Video.URL) || c.Video.Type != "":
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

// check returns the error of a request for a clip, or the empty string.
func (c *xaiClip) check() string {
	files := c.Subjects
	for _, f := range []*xaiFile{c.Image, c.Last} {
		if f != nil {
			files = append(files, *f)
		}
	}
	for _, f := range files {
		if f.Type != "" || !isReadable(f.URL, 20<<20) {
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

func (x *XAI) createClip(check func(*xaiClip) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, body, ok := readTask(&x.Studio, w, r, check, xaiInvalid)
		if !ok {
			return
		}
		if t, ok := x.submit(w, r, body, "vid-", 1); ok {
			answerJSON(w, http.StatusOK, object{"request_id": t.ticket})
		}
	}
}

// getClip answers a poll. The answer has no body until the task begins.
func (x *XAI) getClip(w http.ResponseWriter, r *http.Request) {
	switch at, t := x.poll(w, r.PathValue("id")); at {
	case answered:
	case unknown:
		answerJSON(w, http.StatusNotFound, object{"error": "no such request"})
	case running:
		if x.waits(t) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answerJSON(w, http.StatusAccepted, object{"status": "pending", "progress": 40})
	case failed:
		answer := object{}
		_ = json.Unmarshal([]byte(t.Failure), &answer) // without an object, the answer is empty
		status, _ := answer["http"].(float64)
		delete(answer, "http")
		answerJSON(w, max(int(status), http.StatusOK), answer)
	case done:
		answerJSON(w, http.StatusOK, object{"status": "done", "model": "grok-imagine-video",
			"video": object{"url": x.clipURL(t), "duration": 5, "respect_moderation": true}})
	}
}
