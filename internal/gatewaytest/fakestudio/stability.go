package fakestudio

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Stability is a fake of Stability AI. Each request gets one picture in the answer.
//
// Behaviour.Failure is the finish reason for a filtered picture: `CONTENT_FILTERED`.
type Stability struct{ Studio }

// NewStability starts a fake Stability, which stops at the end of the test.
func NewStability(t testing.TB) *Stability {
	s := &Stability{}
	s.open(t, "", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		stabilityError(w, http.StatusUnauthorized, "unauthorized", "Missing API key.")
	}), map[string]http.HandlerFunc{
		"POST /v2beta/stable-image/generate/{service}": s.createPicture,
		"POST /v2beta/stable-image/edit/{service}":     s.createPicture,
	})
	return s
}

// checkStability returns the error of a form, or the empty string.
func checkStability(service string, form map[string]string, files map[string][]upload) string {
	known := map[string][]string{
		"ultra": {"prompt", "negative_prompt", "aspect_ratio", "seed", "output_format", "style_preset", "strength"},
		"core":  {"prompt", "negative_prompt", "aspect_ratio", "seed", "output_format", "style_preset"},
		"sd3": {"prompt", "negative_prompt", "aspect_ratio", "seed", "output_format", "style_preset", "strength", "mode", "model",
			"cfg_scale"},
		"inpaint": {"prompt", "negative_prompt", "seed", "output_format", "style_preset", "grow_mask"},
	}[service]
	for name := range maps.Keys(form) {
		if !slices.Contains(known, name) {
			return name + ": unknown field"
		}
	}
	models := []string{"sd3.5-large", "sd3.5-large-turbo", "sd3.5-medium", "sd3.5-flash"}
	seed, err := strconv.ParseInt("0"+form["seed"], 10, 64)
	_, hasImage := files["image"]
	switch {
	case known == nil:
		return "no such service"
	case form["prompt"] == "":
		return "prompt: cannot be blank"
	case err != nil || seed > 4294967294:
		return "seed: must be from 0 to 4294967294"
	case service == "sd3" && !slices.Contains(models, form["model"]):
		return "model: must be one of " + strings.Join(models, ", ")
	case service == "sd3" && hasImage != (form["mode"] == "image-to-image"), service == "sd3" && hasImage && form["aspect_ratio"] != "":
		return "mode: does not go with the fields"
	case service == "inpaint" && (len(files) != 2 || len(files["image"]) != 1 || len(files["mask"]) != 1 ||
		!isBlackAndWhite(files["mask"][0].data)):
		return "mask: a picture and a mask of black and white are required"
	case service == "inpaint":
		return ""
	case service == "core" && hasImage, hasImage != (form["strength"] != ""):
		return "strength: goes with an image"
	case len(files) > 1, hasImage && (len(files["image"]) != 1 || len(files["image"][0].data) > 10<<20):
		return "image: must be one file of 10 MiB"
	}
	return ""
}

func (s *Stability) createPicture(w http.ResponseWriter, r *http.Request) {
	body, form, files, err := readForm(r)
	message := fmt.Sprint(err)
	if err == nil {
		message = checkStability(r.PathValue("service"), form, files)
	}
	if !s.passes(w, r, body, message, func(w http.ResponseWriter, message string) {
		stabilityError(w, http.StatusBadRequest, "bad_request", message)
	}) {
		return
	}
	t, ok := s.finish(w, r, body, "", 1)
	if !ok {
		return
	}
	reason := "SUCCESS"
	if t.Failure != "" {
		reason = t.Failure
	}
	answerJSON(w, http.StatusOK, object{"image": Picture(t.number), "finish_reason": reason, "seed": 343940597})
}

func stabilityError(w http.ResponseWriter, status int, name, message string) {
	answerJSON(w, status, object{"id": "9160aa70222992d0", "name": name, "errors": []string{message}})
}
