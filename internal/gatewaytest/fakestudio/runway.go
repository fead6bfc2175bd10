package fakestudio

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// Runway is a fake of Runway, where clips and pictures are tasks.
//
// Behaviour.Failed is `{"failureCode":"…","failure":"…"}` of a task that failed,
// or `{"status":"CANCELLED"}`.
type Runway struct {
	Studio
	files *httptest.Server
}

// NewRunway starts one. It ends with the test.
func NewRunway(t testing.TB) *Runway {
	f := &Runway{Studio: Studio{slow: true}}
	mux := http.NewServeMux()
	for _, path := range []string{"text_to_video", "image_to_video", "video_to_video", "text_to_image"} {
		mux.HandleFunc("POST /v1/"+path, f.keyed(f.accept(path)))
	}
	mux.HandleFunc("GET /v1/tasks/{id}", f.keyed(f.look))
	mux.HandleFunc("DELETE /v1/tasks/{id}", f.keyed(f.drop))
	mux.HandleFunc("/", f.strange)
	f.open(t, mux.ServeHTTP)
	f.files = f.openFiles()
	return f
}

// URL is a line's base_url for it.
func (f *Runway) URL() string { return f.Host() }

// keyed lets those with a key and the version pass.
func (f *Runway) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !ok || key == "":
			runwaySays(w, http.StatusUnauthorized, "The API key is missing.")
		case r.Header.Get("X-Runway-Version") != "2024-11-06":
			runwaySays(w, http.StatusBadRequest, "X-Runway-Version is missing.")
		default:
			next(w, r)
		}
	}
}

func runwaySays(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, map[string]any{"error": message})
}

// runwayTask is a request of any kind.
type runwayTask struct {
	Model    string `json:"model"`
	Prompt   string `json:"promptText"`
	Ratio    string `json:"ratio"`
	Duration *int   `json:"duration"`
	Seed     *int64 `json:"seed"`
	Audio    *bool  `json:"audio"`
	Negative string `json:"negativePrompt"`
	Images   []struct {
		URI      string `json:"uri"`
		Position string `json:"position"`
	} `json:"promptImage"`
	References []struct {
		URI string `json:"uri"`
		Tag string `json:"tag"`
	} `json:"referenceImages"`
	Moderation *struct {
		Threshold string `json:"publicFigureThreshold"`
	} `json:"contentModeration"`

	Shown []struct {
		URI string `json:"uri"`
	} `json:"references"`
	Videos []struct {
		Type string `json:"type"`
		URI  string `json:"uri"`
	} `json:"referenceVideos"`
	Video     string `json:"videoUri"`
	Target    string `json:"targetAspectRatio"`
	Keyframes []struct {
		Seconds *float64 `json:"seconds"`
		URI     string   `json:"uri"`
	} `json:"keyframes"`
}

// checkVideo says what is wrong with a request to change a video.
func (a *runwayTask) checkVideo() string {
	switch {
	case a.Model != "aleph2" || a.Prompt == "" || !readable(a.Video, 5<<20):
		return "model, promptText and videoUri are required"
	case a.Ratio != "" || a.Duration != nil || a.Audio != nil || a.Negative != "" || a.Images != nil || a.Shown != nil || a.Videos != nil:
		return "a field does not belong here"
	}
	for _, k := range a.Keyframes {
		if k.Seconds == nil || !readable(k.URI, 5<<20) {
			return "keyframes is invalid"
		}
	}
	return ""
}

// checkShown says what is wrong with what a clip is to show.
func (a *runwayTask) checkShown(path string) string {
	most := map[string]int{"seedance2": 9, "seedance2_fast": 9, "seedance2_mini": 9, "seedance2_5": 30, "wan3": 10, "wan3_prime": 10}[a.Model]
	for _, r := range a.Shown {
		if !readable(r.URI, 5<<20) {
			return "references is invalid"
		}
	}
	for _, r := range a.Videos {
		if r.Type != "video" || !readable(r.URI, 5<<20) {
			return "referenceVideos is invalid"
		}
	}
	if len(a.Shown) > most || most == 0 && a.Videos != nil || path != "text_to_video" && (a.Shown != nil || a.Videos != nil) {
		return "references do not belong here"
	}
	if a.Video+a.Target != "" || a.Keyframes != nil {
		return "a field does not belong here"
	}
	return ""
}

var (
	runwayRatio = regexp.MustCompile(`^([1-9][0-9]{2,3}:[1-9][0-9]{2,3}|auto_(480|720|1080)p)$`)
	runwayTag   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{2,15}$`)
)

// check says what is wrong with a request.
func (a *runwayTask) check(path string) string {
	if path == "video_to_video" {
		return a.checkVideo()
	}
	if wrong := a.checkShown(path); wrong != "" {
		return wrong
	}
	own, seeded := strings.HasPrefix(a.Model, "gen4"), regexp.MustCompile(`^(gen4|veo|seedance)`).MatchString(a.Model)
	for i, image := range a.Images {
		if image.Position != [...]string{"first", "last"}[min(i, 1)] || !readable(image.URI, 5<<20) {
			return "promptImage is invalid"
		}
	}
	for _, r := range a.References {
		if !runwayTag.MatchString(r.Tag) || !readable(r.URI, 5<<20) {
			return "referenceImages is invalid"
		}
	}
	switch {
	case a.Model == "" || !runwayRatio.MatchString(a.Ratio):
		return "model and ratio are required"
	case path == "text_to_video" && (a.Prompt == "" || a.Images != nil || a.Model == "gen4_turbo"):
		return "text_to_video takes a prompt alone"
	case path == "text_to_video" && a.Model == "gen4.5" && a.Ratio != "1280:720" && a.Ratio != "720:1280":
		return "ratio is invalid"
	case path == "image_to_video" && (len(a.Images) == 0 || len(a.Images) > 2 || own && len(a.Images) > 1):
		return "promptImage takes a first frame, and of some models a last one"
	case path != "text_to_image" && a.References != nil || path == "text_to_image" && (a.Images != nil || a.Duration != nil || a.Audio != nil):
		return "a field does not belong here"
	case a.Model == "gen4_image_turbo" && len(a.References) == 0 || len(a.References) > 3:
		return "1 to 3 referenceImages"
	case own && (a.Audio != nil || a.Negative != "") || !seeded && a.Seed != nil:
		return "the model does not support a field"
	case a.Duration != nil && (*a.Duration < 2 || *a.Duration > 15):
		return "duration is invalid"
	}
	return ""
}

// accept accepts a task.
func (f *Runway) accept(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked runwayTask
		body, err := readJSON(r, &asked)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else {
			wrong = asked.check(path)
		}
		if wrong != "" {
			f.turnAway(r, body)
			runwaySays(w, http.StatusBadRequest, "Validation of body failed: "+wrong)
			return
		}
		prefix := "clip-"
		if path == "text_to_image" {
			prefix = "img-"
		}
		if ticket, _, ok := f.submit(w, r, body, prefix, 1); ok {
			answerJSON(w, http.StatusOK, map[string]any{"id": ticket, "estimatedCost": map[string]any{"credits": 60}})
		}
	}
}

// look answers a poll.
func (f *Runway) look(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	status, it := f.poll(w, ticket)
	task := map[string]any{"id": ticket, "status": "RUNNING", "progress": 0.4, "createdAt": "2026-11-22T00:00:00Z"}
	switch status {
	case answered:
		return
	case unknown:
		runwaySays(w, http.StatusNotFound, "An ID for a task which does not exist was provided.")
		return
	case going:
		if f.waits(it) {
			task["status"] = "THROTTLED"
		}
	case failed:
		task["status"], task["cost"] = "FAILED", 0
		_ = json.Unmarshal([]byte(it.how.Failed), &task) // no object: a failure without a reason
	case done:
		file := "/0.mp4"
		if strings.HasPrefix(ticket, "img-") {
			file = "/0.png"
		}
		task["status"], task["output"] = "SUCCEEDED", []string{f.files.URL + "/" + ticket + file}
	}
	answerJSON(w, http.StatusOK, task)
}

// drop cancels a task.
func (f *Runway) drop(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	f.mu.Lock()
	known := f.works[ticket] != nil
	f.mu.Unlock()
	if !known {
		runwaySays(w, http.StatusNotFound, "no such task")
		return
	}
	f.cancel(ticket)
	w.WriteHeader(http.StatusNoContent)
}
