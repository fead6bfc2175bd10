package fakestudio

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Ark is a fake of Volcengine's and BytePlus's model service: pictures in the
// answer, clips as tasks.
//
// Behaviour.Failed is the error object of what failed,
// `{"code":"…","message":"…"}`: of the task, or of every picture of an answer. A
// task may also end as `{"status":"expired"}` or `{"status":"cancelled"}`.
type Ark struct{ Studio }

// NewArk starts one. It ends with the test.
func NewArk(t testing.TB) *Ark {
	a := &Ark{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v3/images/generations", a.keyed(a.paint))
	mux.HandleFunc("POST /api/v3/contents/generations/tasks", a.keyed(a.film))
	mux.HandleFunc("GET /api/v3/contents/generations/tasks/{id}", a.keyed(a.look))
	mux.HandleFunc("DELETE /api/v3/contents/generations/tasks/{id}", a.keyed(a.drop))
	mux.HandleFunc("GET /results/{ticket}/{file}", a.result)
	mux.HandleFunc("/", a.strange)
	a.open(t, mux.ServeHTTP)
	return a
}

// URL is a line's base_url for it.
func (a *Ark) URL() string { return a.Host() + "/api/v3" }

// keyed lets those with a key pass.
func (a *Ark) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || key == "" {
			arkError(w, http.StatusUnauthorized, "AuthenticationError", "", "The API key is missing or invalid.")
			return
		}
		next(w, r)
	}
}

// arkPicture is a request for pictures.
type arkPicture struct {
	Model      *string         `json:"model"`
	Prompt     *string         `json:"prompt"`
	Image      json.RawMessage `json:"image"`
	Size       string          `json:"size"`
	Seed       *int64          `json:"seed"`
	Guidance   *float64        `json:"guidance_scale"`
	Watermark  *bool           `json:"watermark"`
	Answer     string          `json:"response_format"`
	Format     string          `json:"output_format"`
	Sequential string          `json:"sequential_image_generation"`
	Set        *struct {
		Max int `json:"max_images"`
	} `json:"sequential_image_generation_options"`
	Optimize json.RawMessage `json:"optimize_prompt_options"`
	Stream   bool            `json:"stream"`
}

var (
	arkTier   = regexp.MustCompile(`^[1-4]K$`)
	arkPixels = regexp.MustCompile(`^([1-9]\d{1,4})x([1-9]\d{1,4})$`)
	arkLarge  = regexp.MustCompile(`seedream-(?:4-5|5-0)`)
)

// check says what is wrong with a request for pictures, the field first.
func (p *arkPicture) check() (field, message string) {
	switch {
	case p.Model == nil || *p.Model == "":
		return "model", "is required"
	case p.Prompt == nil || *p.Prompt == "":
		return "prompt", "is required"
	case p.Answer != "" && p.Answer != "url":
		return "response_format", "this fake answers with addresses alone"
	case p.Stream:
		return "stream", "this fake does not stream"
	case p.Sequential != "" && p.Sequential != "auto" && p.Sequential != "disabled":
		return "sequential_image_generation", "must be auto or disabled"
	case p.Set != nil && (p.Set.Max < 1 || p.Set.Max > 15):
		return "sequential_image_generation_options.max_images", "must be from 1 to 15"
	case p.Seed != nil && (*p.Seed < -1 || *p.Seed > 2147483647):
		return "seed", "must be from -1 to 2147483647"
	}
	if m := arkPixels.FindStringSubmatch(p.Size); m != nil {
		width, _ := strconv.Atoi(m[1])
		height, _ := strconv.Atoi(m[2])
		least := 921_600
		if arkLarge.MatchString(*p.Model) {
			least = 3_686_400
		}
		if n := width * height; n < least || n > 16_777_216 {
			return "size", fmt.Sprintf("image size must be at least %d pixels", least)
		}
	} else if p.Size != "" && !arkTier.MatchString(p.Size) || p.Size == "1K" && arkLarge.MatchString(*p.Model) {
		return "size", "is not a size of the model"
	}
	images, ok := []string{}, true
	if p.Image != nil && json.Unmarshal(p.Image, &images) != nil {
		images = []string{""}
		ok = json.Unmarshal(p.Image, &images[0]) == nil
	}
	for _, image := range images {
		ok = ok && (webAddress(image) || dataOf(image, "image/"))
	}
	if !ok || len(images) > 14 {
		return "image", "must be up to 14 addresses or data URIs of pictures"
	}
	return "", ""
}

// paint answers with pictures.
func (a *Ark) paint(w http.ResponseWriter, r *http.Request) {
	var asked arkPicture
	body, ok := arkBody(w, r, &asked)
	if !ok {
		return
	}
	if field, message := asked.check(); field != "" {
		arkWrong(w, field, message)
		return
	}
	images := 1
	if asked.Sequential == "auto" && asked.Set != nil {
		images = asked.Set.Max
	}
	ticket, how, ok := a.submit(w, r, body, "img-", images)
	if !ok {
		return
	}
	if how.Until != nil {
		select {
		case <-how.Until:
		case <-r.Context().Done():
			return
		}
	}
	if how.Images > 0 {
		images = how.Images
	}
	data := []any{}
	for i := range images {
		if how.Failed != "" {
			data = append(data, map[string]any{"error": json.RawMessage(how.Failed)})
			continue
		}
		data = append(data, map[string]any{"url": fmt.Sprintf("%s/results/%s/%d.png", a.Host(), ticket, i), "size": "64x48"})
	}
	answerJSON(w, http.StatusOK, map[string]any{"model": *asked.Model, "created": 1767225600, "data": data,
		"usage": map[string]any{"generated_images": len(data), "output_tokens": 1, "total_tokens": 1}})
}

// arkClip is a request for a clip.
type arkClip struct {
	Model   *string `json:"model"`
	Content []struct {
		Type  string   `json:"type"`
		Text  string   `json:"text"`
		Image *arkLink `json:"image_url"`
		Video *arkLink `json:"video_url"`
		Role  string   `json:"role"`
	} `json:"content"`
	Resolution string `json:"resolution"`
	Ratio      string `json:"ratio"`
	Duration   *int64 `json:"duration"`
	Seed       *int64 `json:"seed"`
	Watermark  *bool  `json:"watermark"`
	Fixed      *bool  `json:"camera_fixed"`
	Audio      *bool  `json:"generate_audio"`
	LastFrame  *bool  `json:"return_last_frame"`
	Tier       string `json:"service_tier"`
}

type arkLink struct {
	URL string `json:"url"`
}

// check says what is wrong with a request for a clip, the field first.
func (c *arkClip) check() (field, message string) {
	roles := map[string]int{}
	texts := 0
	for i, item := range c.Content {
		at := fmt.Sprintf("content[%d].", i)
		switch {
		case item.Type == "text" && item.Text != "":
			texts++
		case item.Type == "image_url" && item.Image != nil:
			if !webAddress(item.Image.URL) && !dataOf(item.Image.URL, "image/") {
				return at + "image_url", "is no address and no data URI of a picture"
			}
			if item.Role == "" {
				item.Role = "first_frame"
			}
			if !slices.Contains([]string{"first_frame", "last_frame", "reference_image"}, item.Role) {
				return at + "role", "is not one of a picture"
			}
			roles[item.Role]++
		case item.Type == "video_url" && item.Video != nil:
			if !webAddress(item.Video.URL) {
				return at + "video_url", "must be a web address"
			}
			if item.Role != "reference_video" {
				return at + "role", "is not one of a video"
			}
			roles["reference"]++
		default:
			return at + "type", "is unknown or has no value"
		}
	}
	references := roles["reference_image"] + roles["reference"]
	switch {
	case c.Model == nil || *c.Model == "":
		return "model", "is required"
	case len(c.Content) == 0 || texts > 1:
		return "content", "must hold one text, or pictures and videos"
	case roles["first_frame"] > 1 || roles["last_frame"] > 1 || roles["last_frame"] > roles["first_frame"]:
		return "content", "must hold one first frame, and at most one last frame beside it"
	case roles["first_frame"] > 0 && references > 0:
		return "content", "first/last frame content cannot be mixed with reference media content"
	case references > 12:
		return "content", "has too many references"
	case c.Resolution != "" && !slices.Contains([]string{"480p", "720p", "1080p", "4k"}, c.Resolution):
		return "resolution", "must be one of 480p, 720p, 1080p, 4k"
	case c.Ratio != "" && !slices.Contains([]string{"21:9", "16:9", "4:3", "1:1", "3:4", "9:16", "adaptive"}, c.Ratio):
		return "ratio", "is not one of the model"
	case c.Duration != nil && (*c.Duration < 2 || *c.Duration > 30):
		return "duration", "must be from 2 to 30"
	}
	return "", ""
}

// film accepts a clip.
func (a *Ark) film(w http.ResponseWriter, r *http.Request) {
	var asked arkClip
	body, ok := arkBody(w, r, &asked)
	if !ok {
		return
	}
	if field, message := asked.check(); field != "" {
		arkWrong(w, field, message)
		return
	}
	if asked.Ratio != "" && strings.Contains(*asked.Model, "seedance-2-5") && strings.Contains(string(body), `"first_frame"`) {
		arkError(w, http.StatusBadRequest, "InvalidParameter.TaskTypeConstraint", "ratio",
			"The parameter `ratio` is not allowed with a first frame.")
		return
	}
	if ticket, _, ok := a.submit(w, r, body, "cgt-", 1); ok {
		answerJSON(w, http.StatusOK, map[string]any{"id": ticket})
	}
}

// look answers a poll.
func (a *Ark) look(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	status, it := a.poll(w, ticket)
	task := map[string]any{"id": ticket, "model": "seedance", "status": "running", "created_at": 1767225600, "updated_at": 1767225601,
		"error": nil}
	switch status {
	case answered:
		return
	case unknown:
		arkError(w, http.StatusNotFound, "ResourceNotFound", "", "The specified task is not found.")
		return
	case going:
		if a.waits(it) {
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
		task["status"] = "succeeded"
		task["content"] = map[string]any{"video_url": fmt.Sprintf("%s/results/%s/0.mp4", a.Host(), ticket)}
		task["usage"] = map[string]any{"completion_tokens": 1, "total_tokens": 1}
	}
	answerJSON(w, http.StatusOK, task)
}

// drop cancels what waits and forgets what is over.
func (a *Ark) drop(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	a.mu.Lock()
	it := a.works[ticket]
	a.mu.Unlock()
	switch {
	case it == nil:
		arkError(w, http.StatusNotFound, "ResourceNotFound", "", "The specified task is not found.")
		return
	case !a.waits(it):
		arkError(w, http.StatusBadRequest, "InvalidAction.RunningTaskDeletion", "", "A running task cannot be deleted.")
		return
	}
	a.cancel(ticket)
	answerJSON(w, http.StatusOK, map[string]any{})
}

// result serves a picture or a clip, to anybody: whoever sends a credential
// there gives it away.
func (a *Ark) result(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		a.t.Error("fake ark: the credential was sent to the host of the results")
	}
	number, kind, _ := strings.Cut(r.PathValue("file"), ".")
	if kind == "mp4" {
		a.serve(w, r, r.PathValue("ticket"), "video/mp4", Clip())
		return
	}
	n, _ := strconv.Atoi(number)
	a.serve(w, r, r.PathValue("ticket"), "image/png", Picture(n))
}

// arkBody reads a submission; w is answered already when ok is false.
func arkBody(w http.ResponseWriter, r *http.Request, into any) (body []byte, ok bool) {
	body, err := readJSON(r, into)
	if err != nil {
		arkError(w, http.StatusBadRequest, "InvalidParameter", "", "The request is not valid: "+err.Error())
		return nil, false
	}
	return body, true
}

func arkWrong(w http.ResponseWriter, field, message string) {
	code := "InvalidParameter"
	if message == "is required" {
		code = "MissingParameter"
	}
	arkError(w, http.StatusBadRequest, code, field, fmt.Sprintf("The parameter `%s` specified in the request is not valid: %s.",
		field, message))
}

func arkError(w http.ResponseWriter, status int, code, param, message string) {
	answerJSON(w, status,
		map[string]any{"error": map[string]any{"code": code, "message": message, "param": param, "type": http.StatusText(status)}})
}
