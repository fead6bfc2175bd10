package fakestudio

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Replicate is a fake of Replicate's predictions, and of the files uploaded for them.
//
// Behaviour.Failure has members of the prediction: `{"status":"failed","error":"… (E005)"}`, or
// `{"status":"succeeded","output":…}`.
type Replicate struct {
	Studio
	uploaded map[string][]byte // by id; guarded by Studio.mu
}

// NewReplicate starts a fake Replicate, which stops at the end of the test.
func NewReplicate(t testing.TB) *Replicate {
	t.Helper()
	f := &Replicate{uploaded: map[string][]byte{}}
	f.open(t, "/v1", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		replicateFault(w, http.StatusUnauthorized, "Unauthenticated", "You did not pass a valid authentication token")
	}), map[string]http.HandlerFunc{
		"POST /predictions":                            f.createPrediction,
		"POST /models/{owner}/{name}/predictions":      f.createPrediction,
		"POST /deployments/{owner}/{name}/predictions": f.createPrediction,
		"GET /predictions/{id}":                        f.getPrediction,
		"POST /predictions/{id}/cancel":                f.cancelPrediction,
		"POST /files":                                  f.upload,
	})
	return f
}

// Uploads returns the uploaded files, in no order.
func (f *Replicate) Uploads() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.uploaded))
}

func (f *Replicate) createPrediction(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if !f.passes(w, r, body, f.fault(r.URL.Path, body), func(w http.ResponseWriter, message string) {
		replicateFault(w, http.StatusUnprocessableEntity, "Input validation failed", message)
	}) {
		return
	}
	images := 1
	if n, ok := replicateInput(body)["num_outputs"].(float64); ok {
		images = int(n)
	}
	if t, ok := f.submit(w, r, body, "rep", images); ok {
		f.answer(w, http.StatusCreated, t, object{"status": "starting"})
	}
}

// answer writes a prediction. members replace the members of a running prediction.
func (f *Replicate) answer(w http.ResponseWriter, status int, t *task, members object) {
	at := f.URL() + "/predictions/" + t.ticket
	prediction := object{
		"id": t.ticket, "model": "owner/name", "version": "hidden", "input": replicateInput(t.body), "logs": "", "output": nil,
		"data_removed": false, "error": nil, "status": "processing", "created_at": "2026-11-02T10:00:00.000Z",
		"urls": object{"get": at, "cancel": at + "/cancel"},
	}
	maps.Copy(prediction, members)
	answerJSON(w, status, prediction)
}

func (f *Replicate) getPrediction(w http.ResponseWriter, r *http.Request) {
	switch at, t := f.poll(w, r.PathValue("id")); at {
	case unknown:
		replicateMissing(w)
	case running:
		f.answer(w, http.StatusOK, t, nil)
	case failed:
		members := object{}
		if err := json.Unmarshal([]byte(t.Failure), &members); err != nil {
			f.t.Errorf("fake studio: Failure of replicate: %v", err)
		}
		f.answer(w, http.StatusOK, t, members)
	case done:
		var output any = f.clipURL(t)
		if _, isClip := replicateInput(t.body)["duration"]; !isClip {
			output = f.pictures(t, func(url string) any { return url })
		}
		f.answer(w, http.StatusOK, t, object{"status": "succeeded", "output": output, "metrics": object{"predict_time": 1.5}})
	}
}

func (f *Replicate) cancelPrediction(w http.ResponseWriter, r *http.Request) {
	t := f.find(r.PathValue("id"))
	if t == nil {
		replicateMissing(w)
		return
	}
	f.cancel(t.ticket)
	f.answer(w, http.StatusOK, t, object{"status": "canceled"})
}

func (f *Replicate) upload(w http.ResponseWriter, r *http.Request) {
	part, header, err := r.FormFile("content")
	if err != nil || header.Header.Get("Content-Type") == "" {
		replicateFault(w, http.StatusBadRequest, "Bad request", "Missing content")
		return
	}
	defer part.Close()
	data, _ := io.ReadAll(part)
	f.mu.Lock()
	id := fmt.Sprintf("file%06d", len(f.uploaded)+1)
	f.uploaded[id] = data
	f.mu.Unlock()
	answerJSON(w, http.StatusCreated, object{"id": id, "name": header.Filename, "content_type": header.Header.Get("Content-Type"),
		"size": len(data), "metadata": object{}, "urls": object{"get": f.URL() + "/files/" + id}})
}

// fault returns the error of a body, or the empty string.
func (f *Replicate) fault(path string, body []byte) string {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return "- body: is not a JSON object"
	}
	for name := range all {
		switch name {
		case "input", "version", "webhook", "webhook_events_filter", "stream":
		default:
			return "- Additional property " + name + " is not allowed"
		}
	}
	if _, versioned := all["version"]; versioned != (path == "/v1/predictions") {
		return "- version: has to stand in the body or in the address"
	}
	in := replicateInput(body)
	if in == nil {
		return "- input is required"
	}
	if prompt, ok := in["prompt"].(string); (!ok || prompt == "") && in["image"] == nil && in["input_images"] == nil {
		return "- input: prompt is required"
	}
	for _, member := range []string{"num_outputs", "width", "height", "duration"} {
		if v, ok := in[member]; ok && !isWhole(v) {
			return "- input." + member + ": Invalid type. Expected: integer"
		}
	}
	for _, member := range []string{"aspect_ratio", "resolution"} {
		if v, ok := in[member]; ok {
			if _, isText := v.(string); !isText {
				return "- input." + member + ": Invalid type. Expected: string"
			}
		}
	}
	for _, member := range []string{"image", "mask", "video", "input_images"} {
		list, isList := in[member].([]any)
		v, ok := in[member]
		switch {
		case !ok:
			continue
		case isList != (member == "input_images"):
			return "- input." + member + ": Invalid type"
		case !isList:
			list = []any{v}
		}
		for _, v := range list {
			id, ours := strings.CutPrefix(fmt.Sprint(v), f.URL()+"/files/")
			f.mu.Lock()
			_, known := f.uploaded[id]
			f.mu.Unlock()
			if ours && !known || !isReadable(v, 256<<10) {
				return "- input." + member + ": Does not match format 'uri'"
			}
		}
	}
	return ""
}

// replicateInput returns the input in a body, or nil.
func replicateInput(body []byte) object {
	var in struct {
		Input object `json:"input"`
	}
	_ = json.Unmarshal(body, &in)
	return in.Input
}

func replicateMissing(w http.ResponseWriter) {
	replicateFault(w, http.StatusNotFound, "Not found", "The requested resource could not be found.")
}

func replicateFault(w http.ResponseWriter, status int, title, detail string) {
	answerJSON(w, status, object{"title": title, "detail": detail, "status": status})
}
