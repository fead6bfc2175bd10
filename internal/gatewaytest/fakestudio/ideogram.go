package fakestudio

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Ideogram is a fake of Ideogram's second interface: pictures as tasks.
//
// Behaviour.Failed is what a poll says, `{"status":"failed","failure_reason":"…"}`.
type Ideogram struct {
	Studio
	files *httptest.Server
}

// NewIdeogram starts one. It ends with the test.
func NewIdeogram(t testing.TB) *Ideogram {
	i := &Ideogram{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/image/generate/{model}", i.keyed(i.accept))
	mux.HandleFunc("POST /v2/image/precise-edit/{model}", i.keyed(i.accept))
	mux.HandleFunc("GET /v2/generations/{id}", i.keyed(i.look))
	mux.HandleFunc("/", i.strange)
	i.open(t, mux.ServeHTTP)
	i.files = i.openFiles()
	return i
}

// URL is a line's base_url for it.
func (i *Ideogram) URL() string { return i.Host() }

// keyed lets those with a key pass.
func (i *Ideogram) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Api-Key") == "" {
			answerJSON(w, http.StatusUnauthorized, map[string]any{"error": "Invalid API key"})
			return
		}
		next(w, r)
	}
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

	pictures int  // of the form, with the one that is changed
	masked   bool // by a mask of black and white
}

var ideogramSize = regexp.MustCompile(`^(\d+)x(\d+)$`)

// checkEdit says what is wrong with a request for a precise edit.
func (a *ideogramTask) checkEdit(model string) string {
	most := 5
	if a.masked {
		most = 4
	}
	switch {
	case a.Prompt == "" || a.pictures == 0 || a.pictures > most:
		return "prompt and image are required, with up to 4 reference_images, 3 beside a mask"
	case model != "ideogram-4-5" && model != "ideogram-4-6":
		return "no such model"
	case !a.Async || a.Size+a.Magic+a.Ratio+a.Negative+a.Style+a.Preset+a.Speed != "" || a.Images > 8:
		return "unknown field"
	}
	return ""
}

// check says what is wrong with a request to a model.
func (a *ideogramTask) check(model string) string {
	pictures := a.pictures
	sizes := []string{"2048x2048", "1792x2240", "1728x2304", "1664x2496", "1440x2560", "1600x2560", "1440x2880", "1280x3072",
		"1024x1024", "896x1120", "864x1152", "832x1248", "800x1280", "720x1280", "720x1440"}
	size := a.Size
	m := ideogramSize.FindStringSubmatch(size)
	if m != nil && !slices.Contains(sizes, size) {
		size = m[2] + "x" + m[1]
	}
	switch {
	case a.Prompt == "" || len(a.Prompt) > 10_000:
		return "prompt is required"
	case !a.Async:
		return "this fake makes tasks alone"
	case !slices.Contains([]string{"ideogram-4-5", "ideogram-4", "ideogram-3"}, model):
		return "no such model"
	case model != "ideogram-4-5" && (pictures > 0 || a.Quality != ""), model == "ideogram-4" && (a.Images > 1 || a.Seed != nil):
		return "unknown field"
	case model == "ideogram-3" && a.Size != "", model != "ideogram-3" && a.Ratio+a.Negative+a.Style+a.Preset != "":
		return "unknown field"
	case a.Images > 8 || pictures > 5, a.masked && (pictures == 0 || pictures > 4 || size != ""):
		return "too many images, or a size beside a mask"
	case a.Seed != nil && (*a.Seed < 0 || *a.Seed > 2147483647):
		return "seed must be from 0 to 2147483647"
	case size != "" && size != "auto" && pictures == 0 && !slices.Contains(sizes, size):
		return "size is none of the model's"
	case a.Ratio != "" && !regexp.MustCompile(`^\d+x\d+$`).MatchString(a.Ratio):
		return "aspect_ratio is none"
	}
	if pictures > 0 && m != nil {
		width, _ := strconv.Atoi(m[1])
		height, _ := strconv.Atoi(m[2])
		if width%32+height%32 > 0 || width*height > 2048*2048 {
			return "size is none for images"
		}
	}
	return ""
}

// readTask reads a request, as JSON or as a form.
func (a *ideogramTask) readTask(r *http.Request) (body []byte, err error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return readJSON(r, a)
	}
	body, _ = io.ReadAll(io.LimitReader(r.Body, maxBody)) // half a form is none
	fields, files, err := readForm(r, body)
	if err != nil {
		return body, err
	}
	said := map[string]any{}
	for name, value := range fields {
		said[name] = value
		if name == "async" || name == "num_images" || name == "seed" || name == "enable_copyright_detection" {
			said[name] = json.RawMessage(value)
		}
	}
	raw, err := json.Marshal(said)
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
			a.pictures += len(list)
		case len(list) != 1 || !twoColours(list[0].data):
			return body, errors.New("the mask is not black and white")
		default:
			a.masked = true
		}
	}
	return body, decoder.Decode(a)
}

// accept accepts a task.
func (i *Ideogram) accept(w http.ResponseWriter, r *http.Request) {
	var asked ideogramTask
	body, err := asked.readTask(r)
	message := fmt.Sprint(err)
	switch {
	case err != nil:
	case strings.Contains(r.URL.Path, "/precise-edit/"):
		message = asked.checkEdit(r.PathValue("model"))
	default:
		message = asked.check(r.PathValue("model"))
	}
	if message != "" {
		i.turnAway(r, body)
		answerJSON(w, http.StatusBadRequest, map[string]any{"error": message})
		return
	}
	if ticket, _, ok := i.submit(w, r, body, "gen_", max(asked.Images, 1)); ok {
		answerJSON(w, http.StatusOK, map[string]any{"generation_id": ticket, "status": "pending"})
	}
}

// look answers a poll.
func (i *Ideogram) look(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	status, it := i.poll(w, ticket)
	answer := map[string]any{"generation_id": ticket, "status": "pending"}
	switch status {
	case answered:
		return
	case unknown:
		answerJSON(w, http.StatusNotFound, map[string]any{"error": "generation not found"})
		return
	case failed:
		_ = json.Unmarshal([]byte(it.how.Failed), &answer) // a test's own
	case done:
		data := []any{}
		for n := range it.images {
			data = append(data, map[string]any{"url": fmt.Sprintf("%s/%s/%d.png", i.files.URL, ticket, n), "prompt": "p",
				"resolution": "1024x1024", "seed": 1, "is_image_safe": true})
		}
		answer["status"], answer["data"], answer["usage_cost_usd_micros"] = "completed", data, 30000
	}
	answerJSON(w, http.StatusOK, answer)
}
