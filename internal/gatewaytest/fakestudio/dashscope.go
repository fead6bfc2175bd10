package fakestudio

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// DashScope is a fake of Alibaba Cloud's model service. Depending on the path, a request for pictures
// gets them in the answer or creates a task. A request for a clip creates a task.
//
// Behaviour.Failure is `{"code":"…","message":"…"}`, for a task or as the answer with status 200
// instead of pictures. `{"status":"CANCELED"}` ends a task with this status. A list has the results
// of a successful task: `{}` stands for a picture, and other objects are blocked pictures.
type DashScope struct{ Studio }

// NewDashScope starts a fake DashScope, which stops at the end of the test.
func NewDashScope(t testing.TB) *DashScope {
	d := &DashScope{}
	const aigc = "POST /services/aigc/"
	d.open(t, "/api/v1", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		dashError(w, http.StatusUnauthorized, "InvalidApiKey", "Invalid API-key provided.")
	}), map[string]http.HandlerFunc{
		aigc + "multimodal-generation/generation": d.createPictures,
		aigc + "image-generation/generation":      d.createTask("msg-", dashMessages),
		aigc + "text2image/image-synthesis":       d.createTask("img-", dashText),
		aigc + "image2image/image-synthesis":      d.createTask("img-", dashImages),
		aigc + "video-generation/video-synthesis": d.createTask("vid-", dashClip),
		aigc + "image2video/video-synthesis":      d.createTask("vid-", dashFrames),
		"GET /tasks/{id}":                         d.getTask,
		"POST /tasks/{id}/cancel":                 d.cancelTask,
	})
	return d
}

// dashTask is a submission.
type dashTask struct {
	Model string `json:"model"`
	Input struct {
		Messages []struct {
			Role    string `json:"role"`
			Content []struct {
				Image string `json:"image"`
				Text  string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
		Prompt    string   `json:"prompt"`
		Negative  string   `json:"negative_prompt"`
		Images    []string `json:"images"`
		Image     string   `json:"img_url"`
		First     string   `json:"first_frame_url"`
		Last      string   `json:"last_frame_url"`
		Audio     string   `json:"audio_url"`
		Reference []string `json:"reference_urls"`
		Media     []struct {
			Type string `json:"type"`
			URL  string `json:"url"`
		} `json:"media"`
	} `json:"input"`
	Parameters struct {
		Size       string `json:"size"`
		N          *int   `json:"n"`
		Resolution string `json:"resolution"`
		Ratio      string `json:"ratio"`
		Duration   *int64 `json:"duration"`
		Negative   string `json:"negative_prompt"`
		Extend     *bool  `json:"prompt_extend"`
		Watermark  *bool  `json:"watermark"`
		Audio      *bool  `json:"audio"`
		Sequential bool   `json:"enable_sequential"`
		Seed       *int64 `json:"seed"`
	} `json:"parameters"`
}

var (
	dashPixels = regexp.MustCompile(`^[1-9]\d{2,3}\*[1-9]\d{2,3}$`)
	dashOld    = regexp.MustCompile(`^wan(?:x|2\.[0-6])`)
)

// dashMessages returns the error of a request for pictures in messages, or the empty string.
func dashMessages(a *dashTask) string {
	if len(a.Input.Messages) != 1 || a.Input.Messages[0].Role != "user" || a.Input.Prompt != "" {
		return "input.messages must hold one message of a user"
	}
	texts := 0
	for _, part := range a.Input.Messages[0].Content {
		switch {
		case part.Text != "" && part.Image == "":
			texts++
		case part.Text != "" || !isPicture(part.Image):
			return "a part must be a text or a picture"
		}
	}
	limit := 6
	if a.Parameters.Sequential {
		limit = 12
	}
	switch n := a.Parameters.N; {
	case texts != 1:
		return "one text is required"
	case n == nil || *n < 1 || *n > limit:
		return "n is out of range"
	case a.Parameters.Size != "" && !dashPixels.MatchString(a.Parameters.Size) &&
		!slices.Contains([]string{"1K", "2K", "4K"}, a.Parameters.Size):
		return "size is not valid"
	}
	return ""
}

// dashText returns the error of a request for pictures from a text, or the empty string.
func dashText(a *dashTask) string {
	switch n := a.Parameters.N; {
	case a.Input.Prompt == "" || a.Input.Messages != nil || a.Parameters.Negative != "":
		return "input.prompt is required"
	case a.Input.Images != nil:
		return "the model takes no pictures"
	case n == nil || *n < 1 || *n > 4:
		return "n is out of range"
	case !dashPixels.MatchString(a.Parameters.Size):
		return "size must be like 1024*1024"
	}
	return ""
}

// dashImages returns the error of a request for pictures from pictures, or the empty string.
func dashImages(a *dashTask) string {
	switch {
	case a.Input.Prompt == "" || len(a.Input.Images) == 0 || a.Parameters.Negative != "":
		return "input.prompt and input.images are required"
	case slices.ContainsFunc(a.Input.Images, func(s string) bool { return !isPicture(s) }):
		return "url error, please check url"
	case a.Parameters.Size != "" && !dashPixels.MatchString(a.Parameters.Size):
		return "size must be like 1024*1024"
	}
	return ""
}

// dashClip returns the error of a request for a clip, or the empty string.
func dashClip(a *dashTask) string {
	in, out := &a.Input, &a.Parameters
	if n := out.Duration; n != nil && (*n < 2 || *n > 30) {
		return "duration is out of range"
	}
	if out.N != nil || in.Messages != nil || out.Negative != "" {
		return "a field is not one of clips"
	}
	if out.Resolution != "" && !slices.Contains([]string{"480P", "720P", "1080P"}, out.Resolution) {
		return "resolution must be one of 480P, 720P, 1080P"
	}
	if dashOld.MatchString(a.Model) {
		switch {
		case in.Media != nil || out.Ratio != "":
			return "the model takes no media and no ratio"
		case strings.Contains(a.Model, "i2v") && (!isPicture(in.Image) || out.Size != "" || out.Resolution == ""):
			return "img_url and resolution are required"
		case !strings.Contains(a.Model, "i2v") && (in.Image != "" || !dashPixels.MatchString(out.Size)):
			return "size is required"
		case slices.ContainsFunc(in.Reference, func(s string) bool { return !isURL(s) }):
			return "reference_urls must be addresses"
		}
		return ""
	}
	if in.Image != "" || in.Reference != nil || out.Size != "" {
		return "references belong into media, and the size is a resolution and a ratio"
	}
	frames, others := 0, 0
	for _, m := range in.Media {
		switch m.Type {
		case "first_frame", "last_frame":
			frames++
		case "reference_image":
			others++
		case "reference_video", "video":
			others++
			if !isURL(m.URL) {
				return "a video must be an address"
			}
		default:
			return "media type " + m.Type + " is unknown"
		}
		if !strings.HasSuffix(m.Type, "video") && !isPicture(m.URL) {
			return "url error, please check url"
		}
	}
	switch {
	case frames > 0 && (others > 0 || out.Ratio != ""):
		return "frames exclude references and a ratio"
	case frames > 2 || frames > 0 && in.Media[0].Type != "first_frame":
		return "the first frame comes first"
	case in.Prompt == "" && in.Media == nil:
		return "input.prompt is required"
	}
	return ""
}

// dashFrames returns the error of a request for a clip between two frames, or the empty string.
func dashFrames(a *dashTask) string {
	switch {
	case !isPicture(a.Input.First) || a.Input.Last != "" && !isPicture(a.Input.Last):
		return "first_frame_url is required"
	case a.Parameters.Resolution == "" || a.Parameters.Size != "" || a.Parameters.Ratio != "":
		return "the size is a resolution"
	}
	return ""
}

// read reads and checks a submission. async is the value of X-DashScope-Async for the path. read does
// not record a rejected submission, because only the provider can check some references of clips.
func (d *DashScope) read(w http.ResponseWriter, r *http.Request, check func(*dashTask) string, async string) (
	in dashTask, body []byte, ok bool,
) {
	body, err := readJSON(r, &in)
	message := ""
	switch {
	case err != nil:
		message = err.Error()
	case in.Model == "":
		message = "model is required"
	default:
		message = check(&in)
	}
	switch {
	case message != "":
		dashError(w, http.StatusBadRequest, "InvalidParameter", message)
	case r.Header.Get("X-DashScope-Async") != async:
		dashError(w, http.StatusForbidden, "AccessDenied", "current user api does not support this kind of calls.")
	default:
		return in, body, true
	}
	return in, body, false
}

func (d *DashScope) createPictures(w http.ResponseWriter, r *http.Request) {
	in, body, ok := d.read(w, r, dashMessages, "")
	if !ok {
		return
	}
	t, ok := d.finish(w, r, body, "now-", *in.Parameters.N)
	if !ok {
		return
	}
	if t.Failure != "" {
		answer := object{}
		_ = json.Unmarshal([]byte(t.Failure), &answer) // written by a test
		answer["request_id"] = t.ticket
		answerJSON(w, http.StatusOK, answer)
		return
	}
	answerJSON(w, http.StatusOK, object{"output": object{"choices": d.choices(t)},
		"usage": object{"image_count": t.images, "width": 64, "height": 48}, "request_id": t.ticket})
}

func (d *DashScope) createTask(prefix string, check func(*dashTask) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, body, ok := d.read(w, r, check, "enable")
		if !ok {
			return
		}
		images := 1
		if in.Parameters.N != nil {
			images = *in.Parameters.N
		}
		if t, ok := d.submit(w, r, body, prefix, images); ok {
			answerJSON(w, http.StatusOK, object{"output": object{"task_id": t.ticket, "task_status": "PENDING"},
				"request_id": "r-" + t.ticket})
		}
	}
}

func (d *DashScope) getTask(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	wrap := func(answer object) any { return object{"output": answer, "request_id": "r-" + ticket} }
	d.answerPoll(w, ticket, polling{
		id: "task_id", status: "task_status", waiting: "PENDING", running: "RUNNING", failed: "FAILED", done: "SUCCEEDED",
		missing: func(w http.ResponseWriter) {
			answerJSON(w, http.StatusOK, wrap(object{"task_id": ticket, "task_status": "UNKNOWN"}))
		},
		failure: func(answer object, failed string) { d.fail(answer, ticket, failed) },
		result: func(answer object, t *task) {
			switch ticket[:4] {
			case "vid-":
				answer["video_url"] = d.clipURL(t)
			case "msg-":
				answer["finished"], answer["choices"] = true, d.choices(t)
			default:
				answer["results"] = d.pictures(t, func(url string) any { return object{"url": url} })
			}
		},
		wrap: wrap,
	})
}

// fail adds Behaviour.Failure to the answer to a poll, as described for DashScope.
func (d *DashScope) fail(answer object, ticket, failed string) {
	var items []object
	if json.Unmarshal([]byte(failed), &items) == nil {
		for i, item := range items {
			if len(item) == 0 {
				item["url"] = d.pictureURL(d.find(ticket), i)
			}
		}
		answer["task_status"], answer["results"] = "SUCCEEDED", items
		return
	}
	var reason struct{ Status, Code, Message string }
	_ = json.Unmarshal([]byte(failed), &reason) // written by a test
	if reason.Status != "" {
		answer["task_status"] = reason.Status
		return
	}
	answer["code"], answer["message"] = reason.Code, reason.Message
}

// cancelTask cancels a task if it has not begun.
func (d *DashScope) cancelTask(w http.ResponseWriter, r *http.Request) {
	t := d.find(r.PathValue("id"))
	if t == nil || !d.waits(t) {
		dashError(w, http.StatusBadRequest, "UnsupportedOperation", "Failed to cancel the task, please confirm if the task is in PENDING status.")
		return
	}
	d.cancel(t.ticket)
	answerJSON(w, http.StatusOK, object{"request_id": "r-" + t.ticket})
}

// choices returns a message with the pictures of a task.
func (d *DashScope) choices(t *task) []any {
	content := d.pictures(t, func(url string) any { return object{"image": url} })
	return []any{object{"finish_reason": "stop", "message": object{"role": "assistant", "content": content}}}
}

func dashError(w http.ResponseWriter, status int, code, message string) {
	answerJSON(w, status, object{"code": code, "message": message, "request_id": "r-0"})
}
