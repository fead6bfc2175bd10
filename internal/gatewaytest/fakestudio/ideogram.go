package fakestudio

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Ideogram is a fake of version 2 of Ideogram's API. Each request for pictures creates a task.
//
// Behaviour.Failure has members of the answer to a poll:
// `{"status":"failed","failure_reason":"…"}`.
type Ideogram struct{ Studio }

// NewIdeogram starts a fake Ideogram, which stops at the end of the test.
func NewIdeogram(t testing.TB) *Ideogram {
	i := &Ideogram{}
	i.open(t, "", withKey("Api-Key", "", func(w http.ResponseWriter) {
		answerJSON(w, http.StatusUnauthorized, object{"error": "Invalid API key"})
	}), map[string]http.HandlerFunc{
		"POST /v2/image/generate/{model}":     i.createTask,
		"POST /v2/image/precise-edit/{model}": i.createTask,
		"GET /v2/generations/{id}":            i.getTask,
	})
	return i
}

// ideogramTask is a request to any model, from JSON or a form.
type ideogramTask struct {
	Prompt    string `json:"prompt"`
	Async     bool   `json:"async"`
	Magic     string `json:"magic_prompt"`
	Size      string `json:"size"`
	Quality   string `json:"quality"`
	Seed      *int64 `json:"seed"`
	Images    int    `json:"num_images"`
	Copyright bool   `json:"enable_copyright_detection"`
	Speed     string `json:"rendering_speed"`
	Ratio     string `json:"aspect_ratio"`
	Negative  string `json:"negative_prompt"`
	Style     string `json:"style_type"`
	Preset    string `json:"style_preset"`

	pictures int  // number of pictures in the form
	masked   bool // the form has a black and white mask
}

var ideogramSize = regexp.MustCompile(`^(\d+)x(\d+)$`)

// checkEdit returns the error of a request for a precise edit, or the empty string.
func (in *ideogramTask) checkEdit(model string) string {
	maxPictures := 5
	if in.masked {
		maxPictures = 4
	}
	switch {
	case in.Prompt == "" || in.pictures == 0 || in.pictures > maxPictures:
		return "prompt and image are required, with up to 4 reference_images, 3 beside a mask"
	case model != "ideogram-4-5" && model != "ideogram-4-6":
		return "no such model"
	case !in.Async || in.Size+in.Magic+in.Ratio+in.Negative+in.Style+in.Preset+in.Speed != "" || in.Images > 8:
		return "unknown field"
	}
	return ""
}

// check returns the error of a request to a model, or the empty string.
func (in *ideogramTask) check(model string) string {
	pictures := in.pictures
	sizes := []string{"2048x2048", "1792x2240", "1728x2304", "1664x2496", "1440x2560", "1600x2560", "1440x2880", "1280x3072",
		"1024x1024", "896x1120", "864x1152", "832x1248", "800x1280", "720x1280", "720x1440"}
	size := in.Size
	m := ideogramSize.FindStringSubmatch(size)
	if m != nil && !slices.Contains(sizes, size) {
		size = m[2] + "x" + m[1]
	}
	switch {
	case in.Prompt == "" || len(in.Prompt) > 10_000:
		return "prompt is required"
	case !in.Async:
		return "this fake requires async"
	case !slices.Contains([]string{"ideogram-4-5", "ideogram-4", "ideogram-3"}, model):
		return "no such model"
	case model != "ideogram-4-5" && (pictures > 0 || in.Quality != ""), model == "ideogram-4" && (in.Images > 1 || in.Seed != nil):
		return "unknown field"
	case model == "ideogram-3" && in.Size != "", model != "ideogram-3" && in.Ratio+in.Negative+in.Style+in.Preset != "":
		return "unknown field"
	case in.Images > 8 || pictures > 5, in.masked && (pictures == 0 || pictures > 4 || size != ""):
		return "too many images, or a size beside a mask"
	case in.Seed != nil && (*in.Seed < 0 || *in.Seed > 2147483647):
		return "seed must be from 0 to 2147483647"
	case size != "" && size != "auto" && pictures == 0 && !slices.Contains(sizes, size):
		return "size is not supported by the model"
	case in.Ratio != "" && !regexp.MustCompile(`^\d+x\d+$`).MatchString(in.Ratio):
		return "aspect_ratio is not valid"
	}
	if pictures > 0 && m != nil {
		width, _ := strconv.Atoi(m[1])
		height, _ := strconv.Atoi(m[2])
		if width%32+height%32 > 0 || width*height > 2048*2048 {
			return "size is not valid for images"
		}
	}
	return ""
}

// read reads a request from JSON or a form.
func (in *ideogramTask) read(r *http.Request) (body []byte, err error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return readJSON(r, in)
	}
	body, fields, files, err := readForm(r)
	if err != nil {
		return body, err
	}
	values := object{}
	for name, value := range fields {
		values[name] = value
		if name == "async" || name == "num_images" || name == "seed" || name == "enable_copyright_detection" {
			values[name] = json.RawMessage(value)
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return body, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	known := []string{"images", "mask"}
	if strings.Contains(r.URL.Path, "/precise-edit/") {
		known = []string{"image", "reference_images", "mask"}
	}
	for name, list := range files {
		switch {
		case !slices.Contains(known, name):
			return body, fmt.Errorf("unknown file %q", name)
		case name != "mask":
			in.pictures += len(list)
		case len(list) != 1 || !isBlackAndWhite(list[0].data):
			return body, errors.New("the mask is not black and white")
		default:
			in.masked = true
		}
	}
	return body, decoder.Decode(in)
}

func (i *Ideogram) createTask(w http.ResponseWriter, r *http.Request) {
	var in ideogramTask
	body, err := in.read(r)
	message := fmt.Sprint(err)
	switch {
	case err != nil:
	case strings.Contains(r.URL.Path, "/precise-edit/"):
		message = in.checkEdit(r.PathValue("model"))
	default:
		message = in.check(r.PathValue("model"))
	}
	if !i.passes(w, r, body, message, func(w http.ResponseWriter, message string) {
		answerJSON(w, http.StatusBadRequest, object{"error": message})
	}) {
		return
	}
	if t, ok := i.submit(w, r, body, "gen_", max(in.Images, 1)); ok {
		answerJSON(w, http.StatusOK, object{"generation_id": t.ticket, "status": "pending"})
	}
}

func (i *Ideogram) getTask(w http.ResponseWriter, r *http.Request) {
	i.answerPoll(w, r.PathValue("id"), polling{
		id: "generation_id", status: "status", waiting: "pending", running: "pending", done: "completed",
		missing: func(w http.ResponseWriter) {
			answerJSON(w, http.StatusNotFound, object{"error": "generation not found"})
		},
		result: func(answer object, t *task) {
			answer["usage_cost_usd_micros"] = 30000
			answer["data"] = i.pictures(t, func(url string) any {
				return object{"url": url, "prompt": "p", "resolution": "1024x1024", "seed": 1, "is_image_safe": true}
			})
		},
	})
}
