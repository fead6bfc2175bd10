package fakestudio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// OpenAI is a fake of OpenAI's images and videos, and of compatible vendors. The models `gpt-image-…`
// and `chatgpt-image-…` behave like OpenAI's models: they check every field and answer in base64. The
// models `grok-…` behave like xAI's. Other models accept every field and answer with links.
//
// Behaviour.Failure replaces each image in `data`: `{"respect_moderation":false}`. For clips, it is
// the error object of the clip: `{"code":"moderation_blocked","message":"…"}`.
type OpenAI struct {
	Studio
	root  string                       // part of the paths before the version
	clips map[string]map[string]string // fields of the request by ticket; guarded by Studio.mu
}

// NewOpenAI starts a fake OpenAI, which stops at the end of the test.
func NewOpenAI(t testing.TB) *OpenAI { return newOpenAI(t, "") }

// NewAzure starts a fake Azure OpenAI. Its root is `/openai`, and the key may be in the header
// `api-key`.
func NewAzure(t testing.TB) *OpenAI { return newOpenAI(t, "/openai") }

func newOpenAI(t testing.TB, root string) *OpenAI {
	o := &OpenAI{clips: map[string]map[string]string{}, root: root}
	o.open(t, root+"/v1", o.authorized, map[string]http.HandlerFunc{
		"POST /images/generations": o.createImages,
		"POST /images/edits":       o.editImages,
		"POST /videos":             o.createClip,
		"GET /videos/{id}":         o.getClip,
		"GET /videos/{id}/content": o.getContent,
		"DELETE /videos/{id}":      o.deleteClip,
	})
	return o
}

// openAIError returns an error in OpenAI's format.
func openAIError(kind, code, param, message string) object {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return object{"error": object{"type": kind, "code": null(code), "param": null(param), "message": message}}
}

// grokError returns an error in xAI's format.
func grokError(message string) object {
	return object{"code": "Client specified an invalid argument", "error": message}
}

func (o *OpenAI) authorized(w http.ResponseWriter, r *http.Request) bool {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if o.root != "" && r.Header.Get("Api-Key") != "" {
		key, ok = r.Header.Get("Api-Key"), !ok
	}
	if ok && len(key) >= 8 {
		return true
	}
	answerJSON(w, http.StatusUnauthorized, openAIError("invalid_request_error", "invalid_api_key", "", "Incorrect API key provided."))
	return false
}

// accepts reports whether failure is nil. Otherwise it records and rejects the submission.
func (o *OpenAI) accepts(w http.ResponseWriter, r *http.Request, body []byte, failure object) bool {
	if failure == nil {
		return true
	}
	o.record(r, body)
	answerJSON(w, http.StatusBadRequest, failure)
	return false
}

// imageFields returns the fields of OpenAI's image models, with patterns for their values as text.
func imageFields() map[string]*regexp.Regexp {
	re := regexp.MustCompile
	return map[string]*regexp.Regexp{
		"prompt": re(`(?s)^.+$`), "model": re(`^.+$`), "n": re(`^([1-9]|10)$`), "size": re(`^(auto|[1-9][0-9]*x[1-9][0-9]*)$`),
		"quality": re(`^(auto|low|medium|high|xhigh|max)$`), "background": re(`^(auto|opaque|transparent)$`),
		"output_format":      re(`^(png|jpeg|webp|gif)$`),
		"output_compression": re(`^([0-9]|[1-9][0-9]|100)$`), "moderation": re(`^(auto|low)$`), "complexity": re(`^(low|medium|high)$`),
		"stream": re(`^(true|false)$`), "partial_images": re(`^[0-3]$`), "safety_identifier": re(`^.*$`), "user": re(`^.*$`),
		"input_fidelity": re(`^(low|high)$`), "frame_count": re(`^[0-9]+$`), "frame_duration_ms": re(`^[0-9]+$`),
	}
}

// checkImage returns the error of the fields of a request, or nil.
func checkImage(fields map[string]string) object {
	const kind = "invalid_request_error"
	model := fields["model"]
	switch {
	case model == "":
		return openAIError(kind, "missing_required_parameter", "model", "Missing required parameter: 'model'.")
	case fields["prompt"] == "":
		return openAIError(kind, "missing_required_parameter", "prompt", "Missing required parameter: 'prompt'.")
	case strings.HasPrefix(model, "grok-"):
		for name := range fields {
			if !slices.Contains([]string{"model", "prompt", "n", "aspect_ratio", "resolution", "quality", "response_format", "user"}, name) {
				return grokError("Argument not supported: " + name)
			}
		}
		if r := fields["resolution"]; r != "" && r != "1k" && r != "2k" {
			return grokError("resolution must be 1k or 2k")
		}
		return nil
	case !isOpenAIImage(model):
		return nil
	}
	known := imageFields()
	for name, value := range fields {
		pattern, ok := known[name]
		switch {
		case !ok:
			return openAIError(kind, "unknown_parameter", name, "Unknown parameter: '"+name+"'.")
		case !pattern.MatchString(value):
			return openAIError("image_generation_user_error", "invalid_value", name, "Invalid value: '"+value+"'.")
		}
	}
	if !sizeFits(model, fields["size"]) {
		return openAIError("image_generation_user_error", "invalid_value", "size", "Invalid size '"+fields["size"]+"' for "+model+".")
	}
	return nil
}

// isOpenAIImage reports whether an image model is OpenAI's own.
func isOpenAIImage(model string) bool {
	return strings.HasPrefix(model, "gpt-image-") || strings.HasPrefix(model, "chatgpt-image-")
}

// sizeFits reports whether a model of OpenAI supports a size.
func sizeFits(model, size string) bool {
	if size == "" || size == "auto" || size == "1024x1024" || size == "1536x1024" || size == "1024x1536" {
		return true
	}
	var w, h int
	if _, err := fmt.Sscanf(size, "%dx%d", &w, &h); err != nil || !regexp.MustCompile(`^gpt-image-([2-9]|1[0-9])`).MatchString(model) {
		return false
	}
	return w%16 == 0 && h%16 == 0 && max(w, h) <= 3840 && w*h <= 8_294_400 && w*h >= 655_360 && max(w, h) <= 3*min(w, h)
}

func (o *OpenAI) createImages(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fields, failure := jsonFields(r, body)
	if o.accepts(w, r, body, failure) {
		o.answerImages(w, r, body, fields)
	}
}

// jsonFields returns the fields of a JSON body as text, or an error.
func jsonFields(r *http.Request, body []byte) (fields map[string]string, failure object) {
	const kind = "invalid_request_error"
	var members object
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if r.Header.Get("Content-Type") != "application/json" || decoder.Decode(&members) != nil {
		return nil, openAIError(kind, "", "", "We could not parse the JSON body of your request.")
	}
	fields = map[string]string{}
	for name, value := range members {
		switch value.(type) {
		case object, []any:
			return nil, openAIError(kind, "invalid_type", name, "Invalid type for '"+name+"'.")
		}
		fields[name] = fmt.Sprint(value)
	}
	if _, ok := members["n"].(json.Number); members["n"] != nil && !ok {
		return nil, openAIError(kind, "invalid_type", "n", "Invalid type for 'n': expected an integer.")
	}
	return fields, nil
}

func (o *OpenAI) editImages(w http.ResponseWriter, r *http.Request) {
	body, fields, files, err := readForm(r)
	pictures := append(files["image"], files["image[]"]...)
	var failure object
	switch {
	case err != nil:
		failure = openAIError("invalid_request_error", "", "", "Could not parse multipart form: "+err.Error())
	case strings.HasPrefix(fields["model"], "grok-"):
		failure = grokError("Expected application/json")
	case len(pictures) == 0:
		failure = openAIError("invalid_request_error", "missing_required_parameter", "image", "Missing required parameter: 'image'.")
	case len(pictures) > 16 || len(files["image"]) > 1:
		failure = openAIError("invalid_request_error", "array_above_max_length", "image", "Too many images.")
	}
	for _, p := range pictures {
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, p.kind) || http.DetectContentType(p.data) != p.kind ||
			p.name == "" {
			failure = openAIError("image_generation_user_error", "unsupported_image_media_type", "image", "Unsupported image.")
		}
	}
	for _, m := range files["mask"] {
		if m.kind != "image/png" || len(m.data) >= 4<<20 {
			failure = openAIError("image_generation_user_error", "invalid_image", "mask", "Invalid mask.")
		}
	}
	if o.accepts(w, r, body, failure) {
		o.answerImages(w, r, body, fields)
	}
}

// answerImages checks the fields of a request and answers with images.
func (o *OpenAI) answerImages(w http.ResponseWriter, r *http.Request, body []byte, fields map[string]string) {
	if !o.accepts(w, r, body, checkImage(fields)) {
		return
	}
	n, _ := strconv.Atoi(fields["n"])
	t, ok := o.finish(w, r, body, "img", max(n, 1))
	if !ok {
		return
	}
	data := make([]any, t.images)
	for i := range data {
		switch {
		case t.Failure != "":
			data[i] = json.RawMessage(t.Failure)
		case isOpenAIImage(fields["model"]) || fields["response_format"] == "b64_json":
			data[i] = object{"b64_json": Picture(i + 1)}
		case strings.HasPrefix(fields["model"], "grok-"):
			data[i] = object{"url": o.pictureURL(t, i+1), "revised_prompt": "", "respect_moderation": true}
		default:
			data[i] = object{"url": o.pictureURL(t, i+1)}
		}
	}
	answerJSON(w, http.StatusOK, object{
		"created": 1790000000, "data": data, "output_format": "png", "size": fields["size"], "quality": "high", "background": "opaque",
		"usage": object{"input_tokens": 10, "output_tokens": 4000, "total_tokens": 4010,
			"input_tokens_details": object{"text_tokens": 10, "image_tokens": 0}},
	})
}

func (o *OpenAI) createClip(w http.ResponseWriter, r *http.Request) {
	body, fields, files, err := readForm(r)
	const kind = "invalid_request_error"
	sora := strings.HasPrefix(fields["model"], "sora-")
	var failure object
	switch {
	case err != nil:
		failure = openAIError(kind, "", "", err.Error())
	case fields["prompt"] == "":
		failure = openAIError(kind, "missing_required_parameter", "prompt", "Missing required parameter: 'prompt'.")
	case sora && fields["seconds"] != "" && !slices.Contains([]string{"4", "8", "12"}, fields["seconds"]):
		failure = openAIError(kind, "invalid_value", "seconds",
			"Invalid value: '"+fields["seconds"]+"'. Supported values are: '4', '8', and '12'.")
	case sora && fields["size"] != "" && !slices.Contains([]string{"720x1280", "1280x720", "1024x1792", "1792x1024"}, fields["size"]):
		failure = openAIError(kind, "invalid_value", "size", "Invalid value: '"+fields["size"]+"'.")
	case len(files["input_reference"]) > 1:
		failure = openAIError(kind, "invalid_value", "input_reference", "Only one reference is supported.")
	}
	for _, f := range files["input_reference"] {
		if http.DetectContentType(f.data) != f.kind {
			failure = openAIError(kind, "invalid_image", "input_reference", "The reference is not an image.")
		}
	}
	if !o.accepts(w, r, body, failure) {
		return
	}
	if t, ok := o.submit(w, r, body, "video_", 1); ok {
		o.mu.Lock()
		o.clips[t.ticket] = fields
		o.mu.Unlock()
		o.answerClip(w, t.ticket, "queued", 0, nil)
	}
}

// answerClip writes the state of a clip.
func (o *OpenAI) answerClip(w http.ResponseWriter, ticket, status string, progress int, failure any) {
	o.mu.Lock()
	fields := o.clips[ticket]
	o.mu.Unlock()
	var completed, expires any
	if status == "completed" {
		completed, expires = 1790000100, 1790003600
	}
	answerJSON(w, http.StatusOK, object{
		"id": ticket, "object": "video", "model": fields["model"], "status": status, "progress": progress, "created_at": 1790000000,
		"completed_at": completed, "expires_at": expires, "prompt": fields["prompt"], "size": fields["size"], "seconds": fields["seconds"],
		"remixed_from_video_id": nil, "error": failure,
	})
}

func openAIMissing(w http.ResponseWriter, ticket string) {
	answerJSON(w, http.StatusNotFound, openAIError("invalid_request_error", "", "", "Video with id '"+ticket+"' not found."))
}

func (o *OpenAI) getClip(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	switch at, t := o.poll(w, ticket); at {
	case unknown:
		openAIMissing(w, ticket)
	case running:
		w.Header().Set("Openai-Poll-After-Ms", "1500")
		o.answerClip(w, ticket, "in_progress", 40, nil)
	case failed:
		o.answerClip(w, ticket, "failed", 40, json.RawMessage(t.Failure))
	case done:
		o.answerClip(w, ticket, "completed", 100, nil)
	}
}

func (o *OpenAI) getContent(w http.ResponseWriter, r *http.Request) {
	o.serve(w, r, r.PathValue("id"), "video/mp4", Clip())
}

// deleteClip deletes a clip in any state.
func (o *OpenAI) deleteClip(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	if o.remove(ticket) == nil {
		openAIMissing(w, ticket)
		return
	}
	o.cancel(ticket)
	answerJSON(w, http.StatusOK, object{"id": ticket, "object": "video.deleted", "deleted": true})
}
