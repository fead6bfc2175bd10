package fakestudio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// OpenAI is a fake of OpenAI's images and videos, and of vendors that are
// compatible with them. Models `gpt-image-…` and `chatgpt-image-…` are OpenAI's:
// they check every field, and answer in base64. Models `grok-…` are xAI's. Any
// other model is one of a vendor that takes every field and answers with
// addresses.
//
// Behaviour.Failed is, for images, what stands in `data` in place of each image
// (`{"respect_moderation":false}`), and for clips the error object of the failed
// clip (`{"code":"moderation_blocked","message":"…"}`).
type OpenAI struct {
	Studio

	root string // what stands before the version in its paths

	mu    sync.Mutex
	clips map[string]map[string]string // the fields of a clip by its ticket
}

// NewOpenAI starts one. It ends with the test.
func NewOpenAI(t testing.TB) *OpenAI { return newOpenAI(t, "") }

// NewAzure starts one as Azure has it: below `/openai`, with the key in
// `api-key`.
func NewAzure(t testing.TB) *OpenAI { return newOpenAI(t, "/openai") }

func newOpenAI(t testing.TB, root string) *OpenAI {
	o := &OpenAI{clips: map[string]map[string]string{}, root: root}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/images/generations", o.generations)
	mux.HandleFunc("POST /v1/images/edits", o.edits)
	mux.HandleFunc("POST /v1/videos", o.create)
	mux.HandleFunc("GET /v1/videos/{id}", o.retrieve)
	mux.HandleFunc("GET /v1/videos/{id}/content", o.content)
	mux.HandleFunc("DELETE /v1/videos/{id}", o.remove)
	mux.HandleFunc("GET /files/{id}/{name}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimSuffix(r.PathValue("name"), ".png"))
		o.serve(w, r, r.PathValue("id"), "image/png", Picture(n))
	})
	mux.HandleFunc("/", o.strange)
	o.open(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/files/") {
			mux.ServeHTTP(w, r)
			return
		}
		http.StripPrefix(root, mux).ServeHTTP(w, r)
	})
	return o
}

// URL is the base address for a line.
func (o *OpenAI) URL() string { return o.Host() + o.root + "/v1" }

// openAIError is an error as OpenAI words it.
func openAIError(kind, code, param, message string) string {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	body, _ := json.Marshal(
		map[string]any{"error": map[string]any{"type": kind, "code": null(code), "param": null(param), "message": message}})
	return string(body)
}

// authorized refuses calls without a key.
func (o *OpenAI) authorized(w http.ResponseWriter, r *http.Request) bool {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if o.root != "" && r.Header.Get("Api-Key") != "" {
		key, ok = r.Header.Get("Api-Key"), !ok
	}
	if ok && len(key) >= 8 {
		return true
	}
	o.turnDown(w, r, nil, http.StatusUnauthorized, openAIError("invalid_request_error", "invalid_api_key", "", "Incorrect API key provided."))
	return false
}

// turnDown records a submission that breaks the protocol's own rules, and
// answers it. It meets no behaviour.
func (s *Studio) turnDown(w http.ResponseWriter, r *http.Request, body []byte, status int, answer string) {
	s.mu.Lock()
	if r.Method == http.MethodPost {
		s.submissions = append(s.submissions, Submission{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

// held waits until a behaviour lets an answer go. It is false when the caller
// has left.
func held(r *http.Request, how Behaviour) bool {
	if how.Until == nil {
		return true
	}
	select {
	case <-how.Until:
		return true
	case <-r.Context().Done():
		return false
	}
}

// answer writes a JSON document.
func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// imageFields are the fields that OpenAI's own image models know, with what
// their values, as text, must look like.
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

// checkImage is what OpenAI, or xAI, says against the fields of a request; empty:
// nothing.
func checkImage(fields map[string]string) string {
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
				return `{"code":"Client specified an invalid argument","error":"Argument not supported: ` + name + `"}`
			}
		}
		if r := fields["resolution"]; r != "" && r != "1k" && r != "2k" {
			return `{"code":"Client specified an invalid argument","error":"resolution must be 1k or 2k"}`
		}
		return ""
	case !ofOpenAI(model):
		return ""
	}
	known := imageFields()
	for name, value := range fields {
		look, ok := known[name]
		switch {
		case !ok:
			return openAIError(kind, "unknown_parameter", name, "Unknown parameter: '"+name+"'.")
		case !look.MatchString(value):
			return openAIError("image_generation_user_error", "invalid_value", name, "Invalid value: '"+value+"'.")
		}
	}
	if !sizeFits(model, fields["size"]) {
		return openAIError("image_generation_user_error", "invalid_value", "size", "Invalid size '"+fields["size"]+"' for "+model+".")
	}
	return ""
}

// ofOpenAI tells whether a model is OpenAI's own.
func ofOpenAI(model string) bool {
	return strings.HasPrefix(model, "gpt-image-") || strings.HasPrefix(model, "chatgpt-image-")
}

// sizeFits tells whether a model of OpenAI's makes a size.
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

// generations makes images from words.
func (o *OpenAI) generations(w http.ResponseWriter, r *http.Request) {
	if !o.authorized(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if r.Header.Get("Content-Type") != "application/json" || decoder.Decode(&members) != nil {
		o.turnDown(w, r, body, http.StatusBadRequest,
			openAIError("invalid_request_error", "", "", "We could not parse the JSON body of your request."))
		return
	}
	fields := map[string]string{}
	for name, value := range members {
		switch value.(type) {
		case map[string]any, []any:
			o.turnDown(w, r, body, http.StatusBadRequest, openAIError("invalid_request_error", "invalid_type", name, "Invalid type for '"+name+"'."))
			return
		}
		fields[name] = fmt.Sprint(value)
	}
	if _, ok := members["n"].(json.Number); members["n"] != nil && !ok {
		o.turnDown(w, r, body, http.StatusBadRequest, openAIError("invalid_request_error", "invalid_type", "n",
			"Invalid type for 'n': expected an integer."))
		return
	}
	o.images(w, r, body, fields)
}

// edits makes images from words and pictures.
func (o *OpenAI) edits(w http.ResponseWriter, r *http.Request) {
	if !o.authorized(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	fields, files, err := readForm(r, body)
	if err != nil {
		o.turnDown(w, r, body, http.StatusBadRequest,
			openAIError("invalid_request_error", "", "", "Could not parse multipart form: "+err.Error()))
		return
	}
	pictures := append(files["image"], files["image[]"]...)
	wrong := ""
	switch {
	case strings.HasPrefix(fields["model"], "grok-"):
		wrong = `{"code":"Client specified an invalid argument","error":"Expected application/json"}`
	case len(pictures) == 0:
		wrong = openAIError("invalid_request_error", "missing_required_parameter", "image", "Missing required parameter: 'image'.")
	case len(pictures) > 16 || len(files["image"]) > 1:
		wrong = openAIError("invalid_request_error", "array_above_max_length", "image", "Too many images.")
	}
	for _, p := range pictures {
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, p.kind) || http.DetectContentType(p.data) != p.kind ||
			p.name == "" {
			wrong = openAIError("image_generation_user_error", "unsupported_image_media_type", "image", "Unsupported image.")
		}
	}
	for _, m := range files["mask"] {
		if m.kind != "image/png" || len(m.data) >= 4<<20 {
			wrong = openAIError("image_generation_user_error", "invalid_image", "mask", "Invalid mask.")
		}
	}
	if wrong != "" {
		o.turnDown(w, r, body, http.StatusBadRequest, wrong)
		return
	}
	o.images(w, r, body, fields)
}

// images answers a request whose shape is right.
func (o *OpenAI) images(w http.ResponseWriter, r *http.Request, body []byte, fields map[string]string) {
	if wrong := checkImage(fields); wrong != "" {
		o.turnDown(w, r, body, http.StatusBadRequest, wrong)
		return
	}
	n, _ := strconv.Atoi(fields["n"])
	n = max(n, 1)
	ticket, how, ok := o.submit(w, r, body, "img", n)
	if !ok || !held(r, how) {
		return
	}
	if how.Images > 0 {
		n = how.Images
	}
	data := make([]any, n)
	for i := range data {
		switch {
		case how.Failed != "":
			data[i] = json.RawMessage(how.Failed)
		case ofOpenAI(fields["model"]) || fields["response_format"] == "b64_json":
			data[i] = map[string]any{"b64_json": base64.StdEncoding.EncodeToString(Picture(i + 1))}
		case strings.HasPrefix(fields["model"], "grok-"):
			data[i] = map[string]any{"url": o.picture(ticket, i+1), "revised_prompt": "", "respect_moderation": true}
		default:
			data[i] = map[string]any{"url": o.picture(ticket, i+1)}
		}
	}
	answer(w, map[string]any{
		"created": 1790000000, "data": data, "output_format": "png", "size": fields["size"], "quality": "high", "background": "opaque",
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 4000, "total_tokens": 4010,
			"input_tokens_details": map[string]any{"text_tokens": 10, "image_tokens": 0}},
	})
}

// picture is the address of an image.
func (o *OpenAI) picture(ticket string, n int) string {
	return fmt.Sprintf("%s/files/%s/%d.png", o.Host(), ticket, n)
}

// upload is a file in a form.
type upload struct {
	name, kind string
	data       []byte
}

// readForm takes a multipart form apart.
func readForm(r *http.Request, body []byte) (fields map[string]string, files map[string][]upload, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return nil, nil, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	}
	fields, files = map[string]string{}, map[string][]upload{}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return fields, files, nil
		}
		if err != nil {
			return nil, nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, err
		}
		if part.FileName() == "" {
			fields[part.FormName()] = string(data)
			continue
		}
		files[part.FormName()] = append(files[part.FormName()], upload{part.FileName(), part.Header.Get("Content-Type"), data})
	}
}

// create begins a clip.
func (o *OpenAI) create(w http.ResponseWriter, r *http.Request) {
	if !o.authorized(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	fields, files, err := readForm(r, body)
	sora := strings.HasPrefix(fields["model"], "sora-")
	wrong := ""
	switch {
	case err != nil:
		wrong = openAIError("invalid_request_error", "", "", err.Error())
	case fields["prompt"] == "":
		wrong = openAIError("invalid_request_error", "missing_required_parameter", "prompt", "Missing required parameter: 'prompt'.")
	case sora && fields["seconds"] != "" && !slices.Contains([]string{"4", "8", "12"}, fields["seconds"]):
		wrong = openAIError("invalid_request_error", "invalid_value", "seconds",
			"Invalid value: '"+fields["seconds"]+"'. Supported values are: '4', '8', and '12'.")
	case sora && fields["size"] != "" && !slices.Contains([]string{"720x1280", "1280x720", "1024x1792", "1792x1024"}, fields["size"]):
		wrong = openAIError("invalid_request_error", "invalid_value", "size", "Invalid value: '"+fields["size"]+"'.")
	case len(files["input_reference"]) > 1:
		wrong = openAIError("invalid_request_error", "invalid_value", "input_reference", "Only one reference is supported.")
	}
	for _, f := range files["input_reference"] {
		if http.DetectContentType(f.data) != f.kind {
			wrong = openAIError("invalid_request_error", "invalid_image", "input_reference", "The reference is not an image.")
		}
	}
	if wrong != "" {
		o.turnDown(w, r, body, http.StatusBadRequest, wrong)
		return
	}
	ticket, _, ok := o.submit(w, r, body, "video_", 1)
	o.mu.Lock()
	o.clips[ticket] = fields
	o.mu.Unlock()
	if ok {
		answer(w, o.resource(ticket, "queued", 0, nil))
	}
}

// resource is what the protocol says of a clip.
func (o *OpenAI) resource(ticket, status string, progress int, failed any) map[string]any {
	o.mu.Lock()
	fields := o.clips[ticket]
	o.mu.Unlock()
	var completed, expires any
	if status == "completed" {
		completed, expires = 1790000100, 1790003600
	}
	return map[string]any{
		"id": ticket, "object": "video", "model": fields["model"], "status": status, "progress": progress, "created_at": 1790000000,
		"completed_at": completed, "expires_at": expires, "prompt": fields["prompt"], "size": fields["size"], "seconds": fields["seconds"],
		"remixed_from_video_id": nil, "error": failed,
	}
}

// missing answers for a clip that is not known.
func (o *OpenAI) missing(w http.ResponseWriter, r *http.Request) {
	o.turnDown(w, r, nil, http.StatusNotFound,
		openAIError("invalid_request_error", "", "", "Video with id '"+r.PathValue("id")+"' not found."))
}

// retrieve answers a poll.
func (o *OpenAI) retrieve(w http.ResponseWriter, r *http.Request) {
	if !o.authorized(w, r) {
		return
	}
	ticket := r.PathValue("id")
	switch stands, it := o.poll(w, ticket); stands {
	case unknown:
		o.missing(w, r)
	case going:
		w.Header().Set("Openai-Poll-After-Ms", "1500")
		answer(w, o.resource(ticket, "in_progress", 40, nil))
	case failed:
		answer(w, o.resource(ticket, "failed", 40, json.RawMessage(it.how.Failed)))
	case done:
		answer(w, o.resource(ticket, "completed", 100, nil))
	}
}

// content serves a clip.
func (o *OpenAI) content(w http.ResponseWriter, r *http.Request) {
	if o.authorized(w, r) {
		o.serve(w, r, r.PathValue("id"), "video/mp4", Clip())
	}
}

// remove deletes a clip, whatever it is doing.
func (o *OpenAI) remove(w http.ResponseWriter, r *http.Request) {
	if !o.authorized(w, r) {
		return
	}
	ticket := r.PathValue("id")
	if !o.forget(ticket) {
		o.missing(w, r)
		return
	}
	o.cancel(ticket)
	answer(w, map[string]any{"id": ticket, "object": "video.deleted", "deleted": true})
}

// forget drops a work, and tells whether it was known.
func (s *Studio) forget(ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.works[ticket]
	delete(s.works, ticket)
	return ok
}
