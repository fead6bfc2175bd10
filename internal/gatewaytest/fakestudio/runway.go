package fakestudio

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Runway is a fake of Runway. Requests for clips and for pictures create tasks.
//
// Behaviour.Failure has members of the answer to a poll: `{"failureCode":"…","failure":"…"}`, or
// `{"status":"CANCELLED"}`.
type Runway struct{ Studio }

// NewRunway starts a fake Runway, which stops at the end of the test.
func NewRunway(t testing.TB) *Runway {
	f := &Runway{Studio{slow: true}}
	routes := map[string]http.HandlerFunc{"GET /v1/tasks/{id}": f.getTask, "DELETE /v1/tasks/{id}": f.deleteTask}
	for _, path := range []string{"text_to_video", "image_to_video", "video_to_video", "text_to_image"} {
		routes["POST /v1/"+path] = f.createTask(path)
	}
	hasKey := withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		runwayError(w, http.StatusUnauthorized, "The API key is missing.")
	})
	f.open(t, "", func(w http.ResponseWriter, r *http.Request) bool {
		if !hasKey(w, r) {
			return false
		}
		if r.Header.Get("X-Runway-Version") != "2024-11-06" {
			runwayError(w, http.StatusBadRequest, "X-Runway-Version is missing.")
			return false
		}
		return true
	}, routes)
	return f
}

func runwayError(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, object{"error": message})
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

	Pictured []struct {
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

// checkVideo returns the error of a request to change a video, or the empty string.
func (a *runwayTask) checkVideo() string {
	switch {
	case a.Model != "aleph2" || a.Prompt == "" || !isReadable(a.Video, 5<<20):
		return "model, promptText and videoUri are required"
	case a.Ratio != "" || a.Duration != nil || a.Audio != nil || a.Negative != "" || a.Images != nil || a.Pictured != nil || a.Videos != nil:
		return "a field does not belong here"
	}
	for _, k := range a.Keyframes {
		if k.Seconds == nil || !isReadable(k.URI, 5<<20) {
			return "keyframes is invalid"
		}
	}
	return ""
}

// checkReferences returns the error of the references of a clip, or the empty string.
func (a *runwayTask) checkReferences(path string) string {
	most := map[string]int{"seedance2": 9, "seedance2_fast": 9, "seedance2_mini": 9, "seedance2_5": 30, "wan3": 10, "wan3_prime": 10}[a.Model]
	for _, r := range a.Pictured {
		if !isReadable(r.URI, 5<<20) {
			return "references is invalid"
		}
	}
	for _, r := range a.Videos {
		if r.Type != "video" || !isReadable(r.URI, 5<<20) {
			return "referenceVideos is invalid"
		}
	}
	if len(a.Pictured) > most || most == 0 && a.Videos != nil || path != "text_to_video" && (a.Pictured != nil || a.Videos != nil) {
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

// check returns the error of a request, or the empty string.
func (a *runwayTask) check(path string) string {
	if path == "video_to_video" {
		return a.checkVideo()
	}
	if message := a.checkReferences(path); message != "" {
		return message
	}
	own, seeded := strings.HasPrefix(a.Model, "gen4"), regexp.MustCompile(`^(gen4|veo|seedance)`).MatchString(a.Model)
	for i, image := range a.Images {
		if image.Position != [...]string{"first", "last"}[min(i, 1)] || !isReadable(image.URI, 5<<20) {
			return "promptImage is invalid"
		}
	}
	for _, r := range a.References {
		if !runwayTag.MatchString(r.Tag) || !isReadable(r.URI, 5<<20) {
			return "referenceImages is invalid"
		}
	}
	switch {
	case a.Model == "" || !runwayRatio.MatchString(a.Ratio):
		return "model and ratio are required"
	case path == "text_to_video" && (a.Prompt == "" || a.Images != nil || a.Model == "gen4_turbo"):
		return "text_to_video takes only a prompt"
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

func (f *Runway) createTask(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		check := func(in *runwayTask) string { return in.check(path) }
		_, body, ok := readTask(&f.Studio, w, r, check, func(w http.ResponseWriter, message string) {
			runwayError(w, http.StatusBadRequest, "Validation of body failed: "+message)
		})
		if !ok {
			return
		}
		prefix := "clip-"
		if path == "text_to_image" {
			prefix = "img-"
		}
		if t, ok := f.submit(w, r, body, prefix, 1); ok {
			answerJSON(w, http.StatusOK, object{"id": t.ticket, "estimatedCost": object{"credits": 60}})
		}
	}
}

func (f *Runway) getTask(w http.ResponseWriter, r *http.Request) {
	f.answerPoll(w, r.PathValue("id"), polling{
		id: "id", status: "status", waiting: "THROTTLED", running: "RUNNING", failed: "FAILED", done: "SUCCEEDED",
		members: object{"progress": 0.4, "createdAt": "2026-11-22T00:00:00Z"},
		missing: func(w http.ResponseWriter) {
			runwayError(w, http.StatusNotFound, "An ID for a task which does not exist was provided.")
		},
		result: func(answer object, t *task) {
			answer["output"] = []string{f.clipURL(t)}
			if strings.HasPrefix(t.ticket, "img-") {
				answer["output"] = []string{f.pictureURL(t, 0)}
			}
		},
	})
}

func (f *Runway) deleteTask(w http.ResponseWriter, r *http.Request) {
	t := f.find(r.PathValue("id"))
	if t == nil {
		runwayError(w, http.StatusNotFound, "no such task")
		return
	}
	f.cancel(t.ticket)
	w.WriteHeader(http.StatusNoContent)
}
