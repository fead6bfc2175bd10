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

// Replicate is a fake of Replicate's predictions and of the files that go to
// them. It refuses a body at once, as Replicate does.
//
// Behaviour.Failed has the members of the prediction that say how it ended:
// {"status":"failed","error":"… (E005)"}, or {"status":"succeeded","output":…}.
//
// Results lie on a second server, which fails the test when a credential comes
// to it.
type Replicate struct {
	Studio
	files    *httptest.Server
	uploaded map[string][]byte // by id; under Studio.mu
}

// NewReplicate starts one. It ends with the test.
func NewReplicate(t testing.TB) *Replicate {
	t.Helper()
	f := &Replicate{uploaded: map[string][]byte{}}
	f.open(t, f.handle)
	f.files = f.openFiles()
	return f
}

// URL is the base_url of lines to it.
func (f *Replicate) URL() string { return f.Host() + "/v1" }

// Uploaded returns the files that were uploaded, in no order.
func (f *Replicate) Uploaded() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var files [][]byte
	for _, file := range f.uploaded {
		files = append(files, file)
	}
	return files
}

var (
	replicateMake = regexp.MustCompile(`^/v1/(?:(?:models|deployments)/[^/]+/[^/]+/)?predictions$`)
	replicateAsk  = regexp.MustCompile(`^/v1/predictions/([^/]+)(/cancel)?$`)
)

func (f *Replicate) handle(w http.ResponseWriter, r *http.Request) {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || key == "" {
		if replicateMake.MatchString(r.URL.Path) {
			f.turnAway(r, nil)
		}
		replicateFault(w, http.StatusUnauthorized, "Unauthenticated", "You did not pass a valid authentication token")
		return
	}
	m := replicateAsk.FindStringSubmatch(r.URL.Path)
	switch {
	case r.Method == http.MethodPost && replicateMake.MatchString(r.URL.Path):
		f.submission(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/files":
		f.upload(w, r)
	case m != nil && r.Method == http.MethodGet && m[2] == "":
		f.prediction(w, m[1])
	case m != nil && r.Method == http.MethodPost && m[2] == "/cancel":
		f.cancellation(w, m[1])
	default:
		f.strange(w, r)
	}
}

func (f *Replicate) submission(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if fault := f.fault(r.URL.Path, body); fault != "" {
		f.turnAway(r, body)
		replicateFault(w, http.StatusUnprocessableEntity, "Input validation failed", fault)
		return
	}
	images := 1
	if n, ok := replicateInput(body)["num_outputs"].(float64); ok {
		images = int(n)
	}
	ticket, _, ok := f.submit(w, r, body, "rep", images)
	if ok {
		f.tell(w, http.StatusCreated, ticket, body, map[string]any{"status": "starting"})
	}
}

// tell writes a prediction, with members over those of one that has begun.
func (f *Replicate) tell(w http.ResponseWriter, status int, ticket string, body []byte, members map[string]any) {
	at := f.URL() + "/predictions/" + ticket
	p := map[string]any{
		"id": ticket, "model": "owner/name", "version": "hidden", "input": replicateInput(body), "logs": "", "output": nil,
		"data_removed": false, "error": nil, "status": "processing", "created_at": "2026-11-02T10:00:00.000Z",
		"urls": map[string]string{"get": at, "cancel": at + "/cancel"},
	}
	for name, value := range members {
		p[name] = value
	}
	raw, err := json.Marshal(p)
	if err != nil {
		f.t.Errorf("fake studio: a prediction: %v", err)
	}
	tellJSON(w, status, nil, string(raw))
}

func (f *Replicate) prediction(w http.ResponseWriter, ticket string) {
	at, it := f.poll(w, ticket)
	switch at {
	case unknown:
		replicateFault(w, http.StatusNotFound, "Not found", "The requested resource could not be found.")
	case going:
		f.tell(w, http.StatusOK, ticket, it.body, nil)
	case failed:
		members := map[string]any{}
		if err := json.Unmarshal([]byte(it.how.Failed), &members); err != nil {
			f.t.Errorf("fake studio: Failed of replicate: %v", err)
		}
		f.tell(w, http.StatusOK, ticket, it.body, members)
	case done:
		var output any = f.files.URL + "/" + ticket + "/0.mp4"
		if _, long := replicateInput(it.body)["duration"]; !long {
			list := []string{}
			for i := range it.images {
				list = append(list, fmt.Sprintf("%s/%s/%d.png", f.files.URL, ticket, i))
			}
			output = list
		}
		f.tell(w, http.StatusOK, ticket, it.body, map[string]any{"status": "succeeded", "output": output,
			"metrics": map[string]any{"predict_time": 1.5}})
	}
}

func (f *Replicate) cancellation(w http.ResponseWriter, ticket string) {
	f.mu.Lock()
	it := f.works[ticket]
	f.mu.Unlock()
	if it == nil {
		replicateFault(w, http.StatusNotFound, "Not found", "The requested resource could not be found.")
		return
	}
	f.cancel(ticket)
	f.tell(w, http.StatusOK, ticket, it.body, map[string]any{"status": "canceled"})
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
	tellJSON(w, http.StatusCreated, nil, fmt.Sprintf(`{"id":%q,"name":%q,"content_type":%q,"size":%d,"metadata":{},"urls":{"get":%q}}`,
		id, header.Filename, header.Header.Get("Content-Type"), len(data), f.URL()+"/files/"+id))
}

// fault is what Replicate has against a body; empty: nothing.
func (f *Replicate) fault(path string, body []byte) string {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return "- body: is no JSON object"
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
		if v, ok := in[member]; ok && !whole(v) {
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
			if ours && !known || !readable(v, 256<<10) {
				return "- input." + member + ": Does not match format 'uri'"
			}
		}
	}
	return ""
}

// replicateInput is the input in a body; nil: there is none.
func replicateInput(body []byte) map[string]any {
	var b struct {
		Input map[string]any `json:"input"`
	}
	_ = json.Unmarshal(body, &b) // a body that is none has no input
	return b.Input
}

func replicateFault(w http.ResponseWriter, status int, title, detail string) {
	raw, _ := json.Marshal(map[string]any{"title": title, "detail": detail, "status": status})
	tellJSON(w, status, nil, string(raw))
}
