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

// Ark is a fake of the model service of Volcengine and BytePlus. A request for pictures gets them in
// the answer. A request for a clip creates a task.
//
// Behaviour.Failure is the error object of the task, or of each picture in the answer:
// `{"code":"…","message":"…"}`. `{"status":"expired"}` and `{"status":"cancelled"}` end a task with
// this status.
type Ark struct{ Studio }

// NewArk starts a fake Ark, which stops at the end of the test.
func NewArk(t testing.TB) *Ark {
	a := &Ark{}
	a.open(t, "/api/v3", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		arkError(w, http.StatusUnauthorized, "AuthenticationError", "", "The API key is missing or invalid.")
	}), map[string]http.HandlerFunc{
		"POST /images/generations":                a.createPictures,
		"POST /contents/generations/tasks":        a.createClip,
		"GET /contents/generations/tasks/{id}":    a.getTask,
		"DELETE /contents/generations/tasks/{id}": a.deleteTask,
	})
	return a
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

// check returns the error of a request for pictures, or the empty string.
func (p *arkPicture) check() string {
	switch {
	case p.Model == nil || *p.Model == "":
		return "model: is required"
	case p.Prompt == nil || *p.Prompt == "":
		return "prompt: is required"
	case p.Answer != "" && p.Answer != "url":
		return "response_format: this fake answers with links only"
	case p.Stream:
		return "stream: this fake does not stream"
	case p.Sequential != "" && p.Sequential != "auto" && p.Sequential != "disabled":
		return "sequential_image_generation: must be auto or disabled"
	case p.Set != nil && (p.Set.Max < 1 || p.Set.Max > 15):
		return "sequential_image_generation_options.max_images: must be from 1 to 15"
	case p.Seed != nil && (*p.Seed < -1 || *p.Seed > 2147483647):
		return "seed: must be from -1 to 2147483647"
	}
	if m := arkPixels.FindStringSubmatch(p.Size); m != nil {
		width, _ := strconv.Atoi(m[1])
		height, _ := strconv.Atoi(m[2])
		least := 921_600
		if arkLarge.MatchString(*p.Model) {
			least = 3_686_400
		}
		if n := width * height; n < least || n > 16_777_216 {
			return "size: " + fmt.Sprintf("image size must be at least %d pixels", least)
		}
	} else if p.Size != "" && !arkTier.MatchString(p.Size) || p.Size == "1K" && arkLarge.MatchString(*p.Model) {
		return "size: is not a size of the model"
	}
	images, ok := []string{}, true
	if p.Image != nil && json.Unmarshal(p.Image, &images) != nil {
		images = []string{""}
		ok = json.Unmarshal(p.Image, &images[0]) == nil
	}
	for _, image := range images {
		ok = ok && isPicture(image)
	}
	if !ok || len(images) > 14 {
		return "image: must be up to 14 addresses or data URIs of pictures"
	}
	return ""
}

func (a *Ark) createPictures(w http.ResponseWriter, r *http.Request) {
	in, body, ok := readTask(&a.Studio, w, r, (*arkPicture).check, arkInvalid)
	if !ok {
		return
	}
	images := 1
	if in.Sequential == "auto" && in.Set != nil {
		images = in.Set.Max
	}
	t, ok := a.finish(w, r, body, "img-", images)
	if !ok {
		return
	}
	data := a.pictures(t, func(url string) any {
		if t.Failure != "" {
			return object{"error": json.RawMessage(t.Failure)}
		}
		return object{"url": url, "size": "64x48"}
	})
	answerJSON(w, http.StatusOK, object{"model": *in.Model, "created": 1767225600, "data": data,
		"usage": object{"generated_images": len(data), "output_tokens": 1, "total_tokens": 1}})
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

// check returns the error of a request for a clip, or the empty string.
func (c *arkClip) check() string {
	roles := map[string]int{}
	texts := 0
	for i, item := range c.Content {
		at := fmt.Sprintf("content[%d].", i)
		switch {
		case item.Type == "text" && item.Text != "":
			texts++
		case item.Type == "image_url" && item.Image != nil:
			if !isPicture(item.Image.URL) {
				return at + "image_url: is no address and no data URI of a picture"
			}
			if item.Role == "" {
				item.Role = "first_frame"
			}
			if !slices.Contains([]string{"first_frame", "last_frame", "reference_image"}, item.Role) {
				return at + "role: is not one of a picture"
			}
			roles[item.Role]++
		case item.Type == "video_url" && item.Video != nil:
			if !isURL(item.Video.URL) {
				return at + "video_url: must be a web address"
			}
			if item.Role != "reference_video" {
				return at + "role: is not one of a video"
			}
			roles["reference"]++
		default:
			return at + "type: is unknown or has no value"
		}
	}
	references := roles["reference_image"] + roles["reference"]
	switch {
	case c.Model == nil || *c.Model == "":
		return "model: is required"
	case len(c.Content) == 0 || texts > 1:
		return "content: must hold one text, or pictures and videos"
	case roles["first_frame"] > 1 || roles["last_frame"] > 1 || roles["last_frame"] > roles["first_frame"]:
		return "content: must hold one first frame, and at most one last frame beside it"
	case roles["first_frame"] > 0 && references > 0:
		return "content: first/last frame content cannot be mixed with reference media content"
	case references > 12:
		return "content: has too many references"
	case c.Resolution != "" && !slices.Contains([]string{"480p", "720p", "1080p", "4k"}, c.Resolution):
		return "resolution: must be one of 480p, 720p, 1080p, 4k"
	case c.Ratio != "" && !slices.Contains([]string{"21:9", "16:9", "4:3", "1:1", "3:4", "9:16", "adaptive"}, c.Ratio):
		return "ratio: is not one of the model"
	case c.Duration != nil && (*c.Duration < 2 || *c.Duration > 30):
		return "duration: must be from 2 to 30"
	}
	return ""
}

func (a *Ark) createClip(w http.ResponseWriter, r *http.Request) {
	in, body, ok := readTask(&a.Studio, w, r, (*arkClip).check, arkInvalid)
	if !ok {
		return
	}
	if in.Ratio != "" && strings.Contains(*in.Model, "seedance-2-5") && strings.Contains(string(body), `"first_frame"`) {
		arkError(w, http.StatusBadRequest, "InvalidParameter.TaskTypeConstraint", "ratio",
			"The parameter `ratio` is not allowed with a first frame.")
		return
	}
	if t, ok := a.submit(w, r, body, "cgt-", 1); ok {
		answerJSON(w, http.StatusOK, object{"id": t.ticket})
	}
}

func (a *Ark) getTask(w http.ResponseWriter, r *http.Request) {
	a.answerPoll(w, r.PathValue("id"), polling{
		id: "id", status: "status", waiting: "queued", running: "running", failed: "failed", done: "succeeded",
		members: object{"model": "seedance", "created_at": 1767225600, "updated_at": 1767225601, "error": nil},
		missing: arkMissing, failure: statusOrError,
		result: func(answer object, t *task) {
			answer["content"] = object{"video_url": a.clipURL(t)}
			answer["usage"] = object{"completion_tokens": 1, "total_tokens": 1}
		},
	})
}

// deleteTask cancels a task if it has not begun.
func (a *Ark) deleteTask(w http.ResponseWriter, r *http.Request) {
	switch t := a.find(r.PathValue("id")); {
	case t == nil:
		arkMissing(w)
	case !a.waits(t):
		arkError(w, http.StatusBadRequest, "InvalidAction.RunningTaskDeletion", "", "A running task cannot be deleted.")
	default:
		a.cancel(t.ticket)
		answerJSON(w, http.StatusOK, object{})
	}
}

func arkMissing(w http.ResponseWriter) {
	arkError(w, http.StatusNotFound, "ResourceNotFound", "", "The specified task is not found.")
}

// arkInvalid rejects a submission. message has the form "field: error".
func arkInvalid(w http.ResponseWriter, message string) {
	field, message, _ := strings.Cut(message, ": ")
	code := "InvalidParameter"
	if message == "is required" {
		code = "MissingParameter"
	}
	arkError(w, http.StatusBadRequest, code, field, fmt.Sprintf("The parameter `%s` specified in the request is not valid: %s.",
		field, message))
}

func arkError(w http.ResponseWriter, status int, code, param, message string) {
	answerJSON(w, status, object{"error": object{"code": code, "message": message, "param": param, "type": http.StatusText(status)}})
}
