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

// BFL is a fake of Black Forest Labs: tasks of one picture or clip each.
//
// Behaviour.Failed is what a poll says, `{"status":"Request Moderated","details":…}`.
type BFL struct {
	Studio
	files *httptest.Server
}

// NewBFL starts one. It ends with the test.
func NewBFL(t testing.TB) *BFL {
	b := &BFL{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/{model}", b.accept)
	mux.HandleFunc("GET /v1/get_result", b.look)
	mux.HandleFunc("/", b.strange)
	b.open(t, mux.ServeHTTP)
	b.files = b.openFiles()
	return b
}

// URL is a line's base_url for it.
func (b *BFL) URL() string { return b.Host() + "/v1" }

// bflTask is a request to any model.
type bflTask struct {
	Prompt     string          `json:"prompt"`
	Mode       string          `json:"mode"`
	Keyframes  []string        `json:"keyframes"`
	StartVideo string          `json:"start_video"`
	Duration   *int            `json:"duration"`
	Audio      *bool           `json:"generate_audio"`
	Images     []string        `json:"images"`
	Ratio      string          `json:"aspect_ratio"`
	Resolution string          `json:"resolution"`
	Grounding  *bool           `json:"grounding"`
	Version    string          `json:"version"`
	Image      string          `json:"input_image"`
	Image2     string          `json:"input_image_2"`
	Image3     string          `json:"input_image_3"`
	Image4     string          `json:"input_image_4"`
	Image5     string          `json:"input_image_5"`
	Image6     string          `json:"input_image_6"`
	Image7     string          `json:"input_image_7"`
	Image8     string          `json:"input_image_8"`
	Width      *int            `json:"width"`
	Height     *int            `json:"height"`
	Seed       *int64          `json:"seed"`
	Safety     *int            `json:"safety_tolerance"`
	Format     string          `json:"output_format"`
	Upsampling *bool           `json:"prompt_upsampling"`
	Raw        *bool           `json:"raw"`
	Steps      json.RawMessage `json:"steps"`
	Guidance   json.RawMessage `json:"guidance"`
	Filled     string          `json:"image"`
	Mask       string          `json:"mask"`
}

// checkFill says what is wrong with a request to change a part of a picture.
func (a *bflTask) checkFill() (field, message string) {
	picture, err := base64.StdEncoding.DecodeString(a.Filled)
	mask, bad := base64.StdEncoding.DecodeString(a.Mask)
	switch {
	case err != nil || len(picture) == 0:
		return "image", "is no picture in base64"
	case bad != nil || len(mask) > 0 && !twoColours(mask):
		return "mask", "is not black and white"
	case a.Width != nil || a.Ratio+a.Resolution+a.Image+a.Mode != "" || a.Images != nil:
		return "width", "extra fields not permitted"
	}
	return "", ""
}

// check says what is wrong with a request to a model, the field first.
func (a *bflTask) check(model string) (field, message string) {
	clip, named := strings.HasPrefix(model, "flux-3-video"), strings.HasPrefix(model, "flux-3-image")
	pictures := append([]string{a.Image, a.Image2, a.Image3, a.Image4, a.Image5, a.Image6, a.Image7, a.Image8}, a.Images...)
	pictures = append(pictures, a.Keyframes...)
	bad := func(s string) bool { return s != "" && !webAddress(s) && !dataOf(s, "image/") }
	switch {
	case model == "flux-pro-1.0-fill":
		return a.checkFill()
	case a.Filled+a.Mask != "":
		return "image", "extra fields not permitted"
	case slices.ContainsFunc(pictures, bad):
		return "images", "is no picture"
	case a.Prompt == "" && !clip:
		return "prompt", "field required"
	case (clip || named) && (a.Seed != nil || a.Width != nil || a.Image != ""):
		return "seed", "extra fields not permitted"
	case !clip && a.Mode+a.StartVideo != "", !named && a.Images != nil:
		return "mode", "extra fields not permitted"
	case clip && !slices.Contains([]string{"t2v", "i2v", "v2v"}, a.Mode):
		return "mode", "field required"
	case clip && (a.Mode == "i2v") != (len(a.Keyframes) > 0), clip && (a.Mode == "v2v") != (a.StartVideo != ""):
		return "mode", "does not go with what it is made from"
	case clip && !slices.Contains([]string{"hd", "fhd"}, a.Resolution):
		return "resolution", "must be hd or fhd"
	case named && !slices.Contains([]string{"768sq", "1k", "1.5k", "2k", "4k"}, a.Resolution):
		return "resolution", "is not one of the model"
	case a.Duration != nil && (!clip || *a.Duration < 5 || *a.Duration > 20):
		return "duration", "must be from 5 to 20"
	case (a.Width == nil) != (a.Height == nil):
		return "width", "goes with height"
	case a.Width != nil && (*a.Width%16+*a.Height%16 > 0 || *a.Width**a.Height > 4<<20):
		return "width", "must be a multiple of 16, four megapixels in all"
	}
	return "", ""
}

// accept accepts a task.
func (b *BFL) accept(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Key") == "" {
		answerJSON(w, http.StatusForbidden, map[string]any{"detail": "Not authenticated - Invalid Authentication"})
		return
	}
	var asked bflTask
	body, err := readJSON(r, &asked)
	field, message := "body", fmt.Sprint(err)
	if err == nil {
		field, message = asked.check(r.PathValue("model"))
	}
	if field != "" {
		b.turnAway(r, body)
		answerJSON(w, http.StatusUnprocessableEntity, map[string]any{
			"detail": []any{map[string]any{"loc": []any{"body", field}, "msg": message, "type": "value_error"}}})
		return
	}
	kind := "png"
	if asked.Mode != "" {
		kind = "mp4"
	}
	if ticket, _, ok := b.submit(w, r, body, kind+"-", 1); ok {
		answerJSON(w, http.StatusOK, map[string]any{"id": ticket, "polling_url": b.URL() + "/get_result?id=" + ticket, "cost": 3})
	}
}

// look answers a poll.
func (b *BFL) look(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Key") == "" {
		answerJSON(w, http.StatusForbidden, map[string]any{"detail": "Not authenticated"})
		return
	}
	ticket := r.URL.Query().Get("id")
	status, it := b.poll(w, ticket)
	answer := map[string]any{"id": ticket, "status": "Pending", "result": nil, "details": nil}
	switch status {
	case answered:
		return
	case unknown:
		answer["status"] = "Task not found"
	case going:
		if !b.waits(it) {
			answer["status"] = "Generating"
		}
	case failed:
		_ = json.Unmarshal([]byte(it.how.Failed), &answer) // a test's own
	case done:
		kind, number, _ := strings.Cut(ticket, "-")
		n := 0
		_, _ = fmt.Sscan(strings.TrimLeft(number, "0"), &n)
		answer["status"] = "Ready"
		answer["result"] = map[string]any{"sample": fmt.Sprintf("%s/%s/%d.%s", b.files.URL, ticket, n, kind), "seed": 1, "prompt": "p"}
	}
	answerJSON(w, http.StatusOK, answer)
}
