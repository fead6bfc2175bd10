package fakestudio

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// Fal is a fake of fal's queue. It takes any body, as fal does, and judges it
// when the work runs: a bad one is completed with a fault of status 422.
//
// Behaviour.Failed is the answer to the question for the result:
// {"status":422,"header":{"X-Fal-Retryable":"false"},"body":{"detail":…}}. With
// status 200 the body is an output.
//
// Results lie on a second server, which fails the test when a credential comes
// to it.
type Fal struct {
	Studio
	files     *httptest.Server
	completed map[string]bool // tickets whose status said so; under Studio.mu
}

// NewFal starts one. It ends with the test.
func NewFal(t testing.TB) *Fal {
	t.Helper()
	f := &Fal{completed: map[string]bool{}}
	f.open(t, f.handle)
	f.files = f.openFiles()
	return f
}

// URL is the base_url of lines to it.
func (f *Fal) URL() string { return f.Host() }

var (
	falRequest = regexp.MustCompile(`^/(.+)/requests/([^/]+)(/status|/cancel)?$`)
	falModel   = regexp.MustCompile(`^/[^/]+/[^/]+(/[^/]+)*$`)
)

func (f *Fal) handle(w http.ResponseWriter, r *http.Request) {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Key "); !ok || key == "" {
		if r.Method == http.MethodPost {
			f.turnAway(r, nil)
		}
		tellJSON(w, http.StatusUnauthorized, nil,
			`{"detail":"Cannot access application. Authentication is required to access this application."}`)
		return
	}
	m := falRequest.FindStringSubmatch(r.URL.Path)
	switch {
	case m == nil && r.Method == http.MethodPost && falModel.MatchString(r.URL.Path):
		f.submission(w, r)
	case m != nil && r.Method == http.MethodGet && m[3] == "/status":
		f.status(w, m[2])
	case m != nil && r.Method == http.MethodGet && m[3] == "":
		f.result(w, m[2])
	case m != nil && r.Method == http.MethodPut && m[3] == "/cancel":
		f.cancellation(w, m[2])
	default:
		f.strange(w, r)
	}
}

func (f *Fal) submission(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in struct {
		Images int `json:"num_images"`
	}
	_ = json.Unmarshal(body, &in) // a bad body is the model's matter
	ticket, _, ok := f.submit(w, r, body, "fal-", max(in.Images, 1))
	if !ok {
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := f.Host() + "/" + strings.Join(parts[:2], "/") + "/requests/" + ticket
	tellJSON(w, http.StatusOK, nil, fmt.Sprintf(
		`{"status":"IN_QUEUE","request_id":%q,"queue_position":0,"response_url":%q,"status_url":%q,"cancel_url":%q,"logs":null,"metrics":{}}`,
		ticket, at, at+"/status", at+"/cancel"))
}

func (f *Fal) status(w http.ResponseWriter, ticket string) {
	switch at, it := f.poll(w, ticket); at {
	case unknown:
		tellJSON(w, http.StatusNotFound, nil, `{"detail":"Request not found"}`)
	case going:
		f.mu.Lock()
		first := it.polls == 1
		f.mu.Unlock()
		if first {
			tellJSON(w, http.StatusAccepted, nil, `{"status":"IN_QUEUE","queue_position":1}`)
		} else {
			tellJSON(w, http.StatusAccepted, nil, `{"status":"IN_PROGRESS","logs":null}`)
		}
	case failed, done:
		f.mu.Lock()
		f.completed[ticket] = true
		f.mu.Unlock()
		tellJSON(w, http.StatusOK, nil, `{"status":"COMPLETED","logs":null,"metrics":{"inference_time":1.5}}`)
	}
}

func (f *Fal) result(w http.ResponseWriter, ticket string) {
	f.mu.Lock()
	it, completed := f.works[ticket], f.completed[ticket]
	f.mu.Unlock()
	switch {
	case it == nil || it.how.Lost:
		tellJSON(w, http.StatusNotFound, nil, `{"detail":"Request not found"}`)
	case !completed:
		tellJSON(w, http.StatusBadRequest, nil, `{"detail":"Request is still in progress"}`)
	case it.how.Failed != "":
		var how struct {
			Status int               `json:"status"`
			Header map[string]string `json:"header"`
			Body   json.RawMessage   `json:"body"`
		}
		if err := json.Unmarshal([]byte(it.how.Failed), &how); err != nil {
			f.t.Errorf("fake studio: Failed of fal: %v", err)
		}
		tellJSON(w, how.Status, how.Header, string(how.Body))
	default:
		if fault := falFault(it.body); fault != "" {
			tellJSON(w, http.StatusUnprocessableEntity, map[string]string{"X-Fal-Retryable": "false"}, fault)
			return
		}
		f.output(w, ticket, it)
	}
}

// output tells what was made: a clip for bodies that ask for a length, else
// images.
func (f *Fal) output(w http.ResponseWriter, ticket string, it *work) {
	if falVideo(it.body) {
		tellJSON(w, http.StatusOK, nil, fmt.Sprintf(`{"video":{"url":%q,"content_type":"video/mp4","file_name":"output.mp4"},"seed":7}`,
			f.files.URL+"/"+ticket+"/0.mp4"))
		return
	}
	var images, flags []string
	for i := range it.images {
		images = append(images, fmt.Sprintf(`{"url":%q,"content_type":"image/png","width":64,"height":48}`,
			fmt.Sprintf("%s/%s/%d.png", f.files.URL, ticket, i)))
		flags = append(flags, "false")
	}
	tellJSON(w, http.StatusOK, nil, fmt.Sprintf(`{"images":[%s],"seed":7,"has_nsfw_concepts":[%s],"prompt":"","timings":{}}`,
		strings.Join(images, ","), strings.Join(flags, ",")))
}

func (f *Fal) cancellation(w http.ResponseWriter, ticket string) {
	f.mu.Lock()
	known, completed := f.works[ticket] != nil, f.completed[ticket]
	f.mu.Unlock()
	switch {
	case !known:
		tellJSON(w, http.StatusNotFound, nil, `{"status":"NOT_FOUND"}`)
	case completed:
		tellJSON(w, http.StatusBadRequest, nil, `{"status":"ALREADY_COMPLETED"}`)
	default:
		f.cancel(ticket)
		tellJSON(w, http.StatusAccepted, nil, `{"status":"CANCELLATION_REQUESTED"}`)
	}
}

// falVideo tells whether a body is one for a video model.
func falVideo(body []byte) bool {
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	_, long := in["duration"]
	return long
}

// falFault is what a model has against a body, as fal says it; empty: nothing.
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
	if n, ok := in["num_images"]; ok && (!whole(n) || n.(float64) < 1 || n.(float64) > 4) {
		return fault("num_images", "less_than_equal", "Input should be less than or equal to 4")
	}
	if size, ok := in["image_size"]; ok {
		o, isObject := size.(map[string]any)
		if _, named := size.(string); !named && (!isObject || !whole(o["width"]) || !whole(o["height"])) {
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
			if !readable(v, 100<<20) {
				return fault(member, "file_download_error", "Failed to download the file. Please check if the URL is accessible and try again.")
			}
		}
	}
	return ""
}
