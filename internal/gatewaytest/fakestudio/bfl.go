package fakestudio

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// BFL is a fake of Black Forest Labs. Each task creates one picture or clip.
//
// Behaviour.Failure has members of the answer to a poll: `{"status":"Request
// Moderated","details":…}`.
type BFL struct{ Studio }

// NewBFL starts a fake BFL, which stops at the end of the test.
func NewBFL(t testing.TB) *BFL {
	b := &BFL{}
	b.open(t, "/v1", withKey("X-Key", "", func(w http.ResponseWriter) {
		answerJSON(w, http.StatusForbidden, object{"detail": "Not authenticated - Invalid Authentication"})
	}), map[string]http.HandlerFunc{"POST /{model}": b.createTask, "GET /get_result": b.getResult})
	return b
}

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

// checkFill returns the error of a request to change a part of a picture, or the empty string.
func (in *bflTask) checkFill() string {
	picture, err := base64.StdEncoding.DecodeString(in.Filled)
	mask, bad := base64.StdEncoding.DecodeString(in.Mask)
	switch {
	case err != nil || len(picture) == 0:
		return "image: is not a picture in base64"
	case bad != nil || len(mask) > 0 && !isBlackAndWhite(mask):
		return "mask: is not black and white"
	case in.Width != nil || in.Ratio+in.Resolution+in.Image+in.Mode != "" || in.Images != nil:
		return "width: extra fields not permitted"
	}
	return ""
}

// check returns the error of a request to a model, or the empty string.
func (in *bflTask) check(model string) string {
	clip, named := strings.HasPrefix(model, "flux-3-video"), strings.HasPrefix(model, "flux-3-image")
	pictures := append([]string{in.Image, in.Image2, in.Image3, in.Image4, in.Image5, in.Image6, in.Image7, in.Image8}, in.Images...)
	pictures = append(pictures, in.Keyframes...)
	bad := func(s string) bool { return s != "" && !isPicture(s) }
	switch {
	case model == "flux-pro-1.0-fill":
		return in.checkFill()
	case in.Filled+in.Mask != "":
		return "image: extra fields not permitted"
	case slices.ContainsFunc(pictures, bad):
		return "images: is not a picture"
	case in.Prompt == "" && !clip:
		return "prompt: field required"
	case (clip || named) && (in.Seed != nil || in.Width != nil || in.Image != ""):
		return "seed: extra fields not permitted"
	case !clip && in.Mode+in.StartVideo != "", !named && in.Images != nil:
		return "mode: extra fields not permitted"
	case clip && !slices.Contains([]string{"t2v", "i2v", "v2v"}, in.Mode):
		return "mode: field required"
	case clip && (in.Mode == "i2v") != (len(in.Keyframes) > 0), clip && (in.Mode == "v2v") != (in.StartVideo != ""):
		return "mode: does not go with what it is made from"
	case clip && !slices.Contains([]string{"hd", "fhd"}, in.Resolution):
		return "resolution: must be hd or fhd"
	case named && !slices.Contains([]string{"768sq", "1k", "1.5k", "2k", "4k"}, in.Resolution):
		return "resolution: is not one of the model"
	case in.Duration != nil && (!clip || *in.Duration < 5 || *in.Duration > 20):
		return "duration: must be from 5 to 20"
	case (in.Width == nil) != (in.Height == nil):
		return "width: goes with height"
	case in.Width != nil && (*in.Width%16+*in.Height%16 > 0 || *in.Width**in.Height > 4<<20):
		return "width: must be a multiple of 16, four megapixels in all"
	}
	return ""
}

func (b *BFL) createTask(w http.ResponseWriter, r *http.Request) {
	in, body, ok := readTask(&b.Studio, w, r, func(in *bflTask) string { return in.check(r.PathValue("model")) }, bflInvalid)
	if !ok {
		return
	}
	prefix := "png-"
	if in.Mode != "" {
		prefix = "mp4-"
	}
	if t, ok := b.submit(w, r, body, prefix, 1); ok {
		answerJSON(w, http.StatusOK, object{"id": t.ticket, "polling_url": b.URL() + "/get_result?id=" + t.ticket, "cost": 3})
	}
}

// bflInvalid rejects a submission. message has the form "field: error".
func bflInvalid(w http.ResponseWriter, message string) {
	field, message, _ := strings.Cut(message, ": ")
	answerJSON(w, http.StatusUnprocessableEntity, object{
		"detail": []any{object{"loc": []any{"body", field}, "msg": message, "type": "value_error"}}})
}

func (b *BFL) getResult(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("id")
	b.answerPoll(w, ticket, polling{
		id: "id", status: "status", waiting: "Pending", running: "Generating", done: "Ready",
		members: object{"result": nil, "details": nil},
		missing: func(w http.ResponseWriter) {
			answerJSON(w, http.StatusOK, object{"id": ticket, "status": "Task not found", "result": nil, "details": nil})
		},
		result: func(answer object, t *task) {
			url := b.pictureURL(t, t.number)
			if strings.HasPrefix(ticket, "mp4-") {
				url = b.clipURL(t)
			}
			answer["result"] = object{"sample": url, "seed": 1, "prompt": "p"}
		},
	})
}
