package fakestudio

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Stability is a fake of Stability AI: one picture a call, in the answer.
//
// Behaviour.Failed is the finish reason of an answer, `CONTENT_FILTERED`, whose
// picture is blurred then.
type Stability struct{ Studio }

// NewStability starts one. It ends with the test.
func NewStability(t testing.TB) *Stability {
	s := &Stability{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2beta/stable-image/generate/{service}", s.paint)
	mux.HandleFunc("POST /v2beta/stable-image/edit/{service}", s.paint)
	mux.HandleFunc("/", s.strange)
	s.open(t, mux.ServeHTTP)
	return s
}

// URL is a line's base_url for it.
func (s *Stability) URL() string { return s.Host() }

// checkStability says what is wrong with a form.
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
	_, pictured := files["image"]
	switch {
	case known == nil:
		return "no such service"
	case form["prompt"] == "":
		return "prompt: cannot be blank"
	case err != nil || seed > 4294967294:
		return "seed: must be from 0 to 4294967294"
	case service == "sd3" && !slices.Contains(models, form["model"]):
		return "model: must be one of " + strings.Join(models, ", ")
	case service == "sd3" && pictured != (form["mode"] == "image-to-image"), service == "sd3" && pictured && form["aspect_ratio"] != "":
		return "mode: does not go with the fields"
	case service == "inpaint" && (len(files) != 2 || len(files["image"]) != 1 || len(files["mask"]) != 1 ||
		!twoColours(files["mask"][0].data)):
		return "mask: a picture and a mask of black and white are required"
	case service == "inpaint":
		return ""
	case service == "core" && pictured, pictured != (form["strength"] != ""):
		return "strength: goes with an image"
	case len(files) > 1, pictured && (len(files["image"]) != 1 || len(files["image"][0].data) > 10<<20):
		return "image: must be one file of 10 MiB"
	}
	return ""
}

// paint answers with a picture.
func (s *Stability) paint(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "" {
		stabilityError(w, http.StatusUnauthorized, "unauthorized", "Missing API key.")
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // half a form is none
	form, files, err := readForm(r, body)
	message := fmt.Sprint(err)
	if err == nil {
		message = checkStability(r.PathValue("service"), form, files)
	}
	if message != "" {
		s.turnAway(r, body)
		stabilityError(w, http.StatusBadRequest, "bad_request", message)
		return
	}
	ticket, how, ok := s.submit(w, r, body, "", 1)
	if !ok || !await(r, how.Until) {
		return
	}
	n, _ := strconv.Atoi(strings.TrimLeft(ticket, "0"))
	reason := "SUCCESS"
	if how.Failed != "" {
		reason = how.Failed
	}
	answerJSON(w, http.StatusOK,
		map[string]any{"image": base64.StdEncoding.EncodeToString(Picture(n)), "finish_reason": reason, "seed": 343940597})
}

func stabilityError(w http.ResponseWriter, status int, name, message string) {
	answerJSON(w, status, map[string]any{"id": "9160aa70222992d0", "name": name, "errors": []string{message}})
}
