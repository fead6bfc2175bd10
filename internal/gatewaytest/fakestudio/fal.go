package fakestudio

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Fal is a fake of fal's queue. Like fal, it accepts any body and checks the body when the task
// runs. A task with a bad body completes with status 422.
//
// Behaviour.Failure is the answer to the request for the result:
// `{"status":422,"header":{"X-Fal-Retryable":"false"},"body":{"detail":…}}`. With status 200, the
// body is an output.
type Fal struct {
	Studio
	completed map[string]bool // tickets of tasks reported as completed; guarded by Studio.mu
}

// NewFal starts a fake fal, which stops at the end of the test.
func NewFal(t testing.TB) *Fal {
	t.Helper()
	f := &Fal{completed: map[string]bool{}}
	const request = " /{owner}/{app}/requests/{id}"
	f.open(t, "", withKey("Authorization", "Key ", func(w http.ResponseWriter) {
		falError(w, http.StatusUnauthorized, "Cannot access application. Authentication is required to access this application.")
	}), map[string]http.HandlerFunc{
		"POST /{owner}/{app}":           f.createTask,
		"POST /{owner}/{app}/{path...}": f.createTask,
		"GET" + request + "/status":     f.getStatus,
		"GET" + request:                 f.getResult,
		"PUT" + request + "/cancel":     f.cancelTask,
	})
	return f
}

func falError(w http.ResponseWriter, status int, detail string) {
	answerJSON(w, status, object{"detail": detail})
}

func (f *Fal) createTask(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in struct {
		Images int `json:"num_images"`
	}
	_ = json.Unmarshal(body, &in) // getResult reports a bad body
	t, ok := f.submit(w, r, body, "fal-", max(in.Images, 1))
	if !ok {
		return
	}
	at := f.Host() + "/" + r.PathValue("owner") + "/" + r.PathValue("app") + "/requests/" + t.ticket
	answerJSON(w, http.StatusOK, object{"status": "IN_QUEUE", "request_id": t.ticket, "queue_position": 0, "response_url": at,
		"status_url": at + "/status", "cancel_url": at + "/cancel", "logs": nil, "metrics": object{}})
}

func (f *Fal) getStatus(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	switch at, t := f.poll(w, ticket); at {
	case unknown:
		falError(w, http.StatusNotFound, "Request not found")
	case running:
		if f.waits(t) {
			answerJSON(w, http.StatusAccepted, object{"status": "IN_QUEUE", "queue_position": 1})
		} else {
			answerJSON(w, http.StatusAccepted, object{"status": "IN_PROGRESS", "logs": nil})
		}
	case failed, done:
		f.mu.Lock()
		f.completed[ticket] = true
		f.mu.Unlock()
		answerJSON(w, http.StatusOK, object{"status": "COMPLETED", "logs": nil, "metrics": object{"inference_time": 1.5}})
	}
}

// isCompleted reports whether a poll has reported a task as completed.
func (f *Fal) isCompleted(ticket string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.completed[ticket]
}

func (f *Fal) getResult(w http.ResponseWriter, r *http.Request) {
	t := f.find(r.PathValue("id"))
	switch {
	case t == nil || t.Lost:
		falError(w, http.StatusNotFound, "Request not found")
	case !f.isCompleted(t.ticket):
		falError(w, http.StatusBadRequest, "Request is still in progress")
	case t.Failure != "":
		var answer struct {
			Status int               `json:"status"`
			Header map[string]string `json:"header"`
			Body   json.RawMessage   `json:"body"`
		}
		if err := json.Unmarshal([]byte(t.Failure), &answer); err != nil {
			f.t.Errorf("fake studio: Failure of fal: %v", err)
		}
		for name, value := range answer.Header {
			w.Header().Set(name, value)
		}
		answerJSON(w, answer.Status, answer.Body)
	case falFault(t.body) != "":
		w.Header().Set("X-Fal-Retryable", "false")
		answerJSON(w, http.StatusUnprocessableEntity, json.RawMessage(falFault(t.body)))
	case isFalVideo(t.body):
		answerJSON(w, http.StatusOK, object{"seed": 7,
			"video": object{"url": f.clipURL(t), "content_type": "video/mp4", "file_name": "output.mp4"}})
	default:
		images := f.pictures(t, func(url string) any {
			return object{"url": url, "content_type": "image/png", "width": 64, "height": 48}
		})
		answerJSON(w, http.StatusOK, object{"images": images, "seed": 7, "has_nsfw_concepts": make([]bool, len(images)), "prompt": "",
			"timings": object{}})
	}
}

func (f *Fal) cancelTask(w http.ResponseWriter, r *http.Request) {
	t := f.find(r.PathValue("id"))
	switch {
	case t == nil:
		answerJSON(w, http.StatusNotFound, object{"status": "NOT_FOUND"})
	case f.isCompleted(t.ticket):
		answerJSON(w, http.StatusBadRequest, object{"status": "ALREADY_COMPLETED"})
	default:
		f.cancel(t.ticket)
		answerJSON(w, http.StatusAccepted, object{"status": "CANCELLATION_REQUESTED"})
	}
}

// isFalVideo reports whether a body is for a video model.
func isFalVideo(body []byte) bool {
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	_, long := in["duration"]
	return long
}

// falFault returns the error of a body in fal's format, or the empty string.
func falFault(body []byte) string {
	fault := func(member, kind, message string) string {
		return fmt.Sprintf(`{"detail":[{"loc":["body",%q],"msg":%q,"type":%q,"url":"https://docs.fal.ai/errors#%s"}]}`, member, message,
			kind, kind)
	}
	var in map[string]any
	if err := json.Unmarshal(body, &in); err != nil || in == nil {
		return `{"detail":[{"loc":["body"],"msg":"JSON decode error","type":"json_invalid"}]}`
	}
	if prompt, ok := in["prompt"].(string); (!ok || prompt == "") && in["image_url"] == nil && in["image_urls"] == nil {
		return fault("prompt", "missing", "Field required")
	}
	if n, ok := in["num_images"]; ok && (!isWhole(n) || n.(float64) < 1 || n.(float64) > 4) {
		return fault("num_images", "less_than_equal", "Input should be less than or equal to 4")
	}
	if size, ok := in["image_size"]; ok {
		o, isObject := size.(map[string]any)
		if _, named := size.(string); !named && (!isObject || !isWhole(o["width"]) || !isWhole(o["height"])) {
			return fault("image_size", "value_error", "Input should be a preset or a width and a height")
		}
	}
	for _, member := range []string{"aspect_ratio", "resolution", "duration"} {
		if v, ok := in[member]; ok {
			if _, isText := v.(string); !isText {
				return fault(member, "string_type", "Input should be a valid string")
			}
		}
	}
	for _, member := range []string{"image_url", "image_urls", "mask_url", "video_url", "video_urls"} {
		list, isList := in[member].([]any)
		if v, ok := in[member]; ok && strings.HasSuffix(member, "s") != isList {
			return fault(member, "value_error", fmt.Sprintf("Input has the wrong type: %T", v))
		} else if ok && !isList {
			list = []any{v}
		}
		for _, v := range list {
			if !isReadable(v, 100<<20) {
				return fault(member, "file_download_error", "Failed to download the file. Please check if the URL is accessible and try again.")
			}
		}
	}
	return ""
}
