package fakestudio

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// DashScope is a fake of Alibaba Cloud's model service: pictures in the answer
// or as tasks, clips as tasks.
//
// Behaviour.Failed is `{"code":"…","message":"…"}`: of a task that failed, or in
// place of an answer with pictures, with status 200. `{"status":"CANCELED"}` is
// another end of a task. A list is the results of a task of pictures that
// succeeded, in which `{}` stands for a picture and the others for blocked ones.
type DashScope struct{ Studio }

// NewDashScope starts one. It ends with the test.
func NewDashScope(t testing.TB) *DashScope {
	d := &DashScope{}
	mux := http.NewServeMux()
	const aigc = "POST /api/v1/services/aigc/"
	mux.HandleFunc(aigc+"multimodal-generation/generation", d.keyed(d.paint))
	mux.HandleFunc(aigc+"image-generation/generation", d.keyed(d.accept("msg-", dashMessages)))
	mux.HandleFunc(aigc+"text2image/image-synthesis", d.keyed(d.accept("img-", dashText)))
	mux.HandleFunc(aigc+"image2image/image-synthesis", d.keyed(d.accept("img-", dashImages)))
	mux.HandleFunc(aigc+"video-generation/video-synthesis", d.keyed(d.accept("vid-", dashClip)))
	mux.HandleFunc(aigc+"image2video/video-synthesis", d.keyed(d.accept("vid-", dashFrames)))
	mux.HandleFunc("GET /api/v1/tasks/{id}", d.keyed(d.look))
	mux.HandleFunc("POST /api/v1/tasks/{id}/cancel", d.keyed(d.drop))
	mux.HandleFunc("GET /results/{ticket}/{file}", d.result)
	mux.HandleFunc("/", d.strange)
	d.open(t, mux.ServeHTTP)
	return d
}

// URL is a line's base_url for it.
func (d *DashScope) URL() string { return d.Host() + "/api/v1" }

// keyed lets those with a key pass.
func (d *DashScope) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || key == "" {
			dashError(w, http.StatusUnauthorized, "InvalidApiKey", "Invalid API-key provided.")
			return
		}
		next(w, r)
	}
}

// dashAsk is a submission.
type dashAsk struct {
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

// picture tells whether s is an address or a picture inline.
func dashPicture(s string) bool { return webAddress(s) || dataOf(s, "image/") }

// dashMessages says what is wrong with a request for pictures in messages.
func dashMessages(a *dashAsk) string {
	if len(a.Input.Messages) != 1 || a.Input.Messages[0].Role != "user" || a.Input.Prompt != "" {
		return "input.messages must hold one message of a user"
	}
	texts := 0
	for _, part := range a.Input.Messages[0].Content {
		switch {
		case part.Text != "" && part.Image == "":
			texts++
		case part.Text != "" || !dashPicture(part.Image):
			return "a part must be a text or a picture"
		}
	}
	most := 6
	if a.Parameters.Sequential {
		most = 12
	}
	switch n := a.Parameters.N; {
	case texts != 1:
		return "one text is required"
	case n == nil || *n < 1 || *n > most:
		return "n is out of range"
	case a.Parameters.Size != "" && !dashPixels.MatchString(a.Parameters.Size) &&
		!slices.Contains([]string{"1K", "2K", "4K"}, a.Parameters.Size):
		return "size is not valid"
	}
	return ""
}

// dashText says what is wrong with a request for pictures from a text.
func dashText(a *dashAsk) string {
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

// dashImages says what is wrong with a request for pictures from pictures.
func dashImages(a *dashAsk) string {
	switch {
	case a.Input.Prompt == "" || len(a.Input.Images) == 0 || a.Parameters.Negative != "":
		return "input.prompt and input.images are required"
	case slices.ContainsFunc(a.Input.Images, func(s string) bool { return !dashPicture(s) }):
		return "url error, please check url"
	case a.Parameters.Size != "" && !dashPixels.MatchString(a.Parameters.Size):
		return "size must be like 1024*1024"
	}
	return ""
}

// dashClip says what is wrong with a request for a clip.
func dashClip(a *dashAsk) string {
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
		case strings.Contains(a.Model, "i2v") && (!dashPicture(in.Image) || out.Size != "" || out.Resolution == ""):
			return "img_url and resolution are required"
		case !strings.Contains(a.Model, "i2v") && (in.Image != "" || !dashPixels.MatchString(out.Size)):
			return "size is required"
		case slices.ContainsFunc(in.Reference, func(s string) bool { return !webAddress(s) }):
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
			if !webAddress(m.URL) {
				return "a video must be an address"
			}
		default:
			return "media type " + m.Type + " is unknown"
		}
		if !strings.HasSuffix(m.Type, "video") && !dashPicture(m.URL) {
			return "url error, please check url"
		}
	}
	switch {
	case frames > 0 && (others > 0 || out.Ratio != ""):
		return "frames stand alone, and the clip has their shape"
	case frames > 2 || frames > 0 && in.Media[0].Type != "first_frame":
		return "the first frame comes first"
	case in.Prompt == "" && in.Media == nil:
		return "input.prompt is required"
	}
	return ""
}

// dashFrames says what is wrong with a request for a clip between two frames.
func dashFrames(a *dashAsk) string {
	switch {
	case !dashPicture(a.Input.First) || a.Input.Last != "" && !dashPicture(a.Input.Last):
		return "first_frame_url is required"
	case a.Parameters.Resolution == "" || a.Parameters.Size != "" || a.Parameters.Ratio != "":
		return "the size is a resolution"
	}
	return ""
}

// read reads a submission and checks it; w is answered already when ok is false.
func (d *DashScope) read(w http.ResponseWriter, r *http.Request, wrong func(*dashAsk) string) (asked dashAsk, body []byte, ok bool) {
	body, err := readJSON(r, &asked)
	switch {
	case err != nil:
		dashError(w, http.StatusBadRequest, "InvalidParameter", err.Error())
	case asked.Model == "":
		dashError(w, http.StatusBadRequest, "InvalidParameter", "model is required")
	case wrong(&asked) != "":
		dashError(w, http.StatusBadRequest, "InvalidParameter", wrong(&asked))
	default:
		return asked, body, true
	}
	return asked, nil, false
}

// paint answers with pictures.
func (d *DashScope) paint(w http.ResponseWriter, r *http.Request) {
	asked, body, ok := d.read(w, r, dashMessages)
	if !ok {
		return
	}
	if r.Header.Get("X-DashScope-Async") != "" {
		dashError(w, http.StatusForbidden, "AccessDenied", "current user api does not support asynchronous calls.")
		return
	}
	images := *asked.Parameters.N
	ticket, how, ok := d.submit(w, r, body, "now-", images)
	if !ok {
		return
	}
	if how.Until != nil {
		select {
		case <-how.Until:
		case <-r.Context().Done():
			return
		}
	}
	if how.Failed != "" {
		var said map[string]any
		_ = json.Unmarshal([]byte(how.Failed), &said) // a test's own words
		said["request_id"] = ticket
		answerJSON(w, http.StatusOK, said)
		return
	}
	if how.Images > 0 {
		images = how.Images
	}
	answerJSON(w, http.StatusOK, map[string]any{"output": map[string]any{"choices": d.choices(ticket, images)},
		"usage": map[string]any{"image_count": images, "width": 64, "height": 48}, "request_id": ticket})
}

// accept takes tasks.
func (d *DashScope) accept(prefix string, wrong func(*dashAsk) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, body, ok := d.read(w, r, wrong)
		if !ok {
			return
		}
		if r.Header.Get("X-DashScope-Async") != "enable" {
			dashError(w, http.StatusForbidden, "AccessDenied", "current user api does not support synchronous calls.")
			return
		}
		images := 1
		if asked.Parameters.N != nil {
			images = *asked.Parameters.N
		}
		if ticket, _, ok := d.submit(w, r, body, prefix, images); ok {
			answerJSON(w, http.StatusOK, map[string]any{"output": map[string]any{"task_id": ticket, "task_status": "PENDING"},
				"request_id": "r-" + ticket})
		}
	}
}

// look answers a poll.
func (d *DashScope) look(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	status, it := d.poll(w, ticket)
	output := map[string]any{"task_id": ticket, "task_status": "RUNNING"}
	switch status {
	case answered:
		return
	case unknown:
		output["task_status"] = "UNKNOWN"
	case going:
		if d.waits(it) {
			output["task_status"] = "PENDING"
		}
	case failed:
		d.fail(ticket, it, output)
	case done:
		output["task_status"] = "SUCCEEDED"
		switch ticket[:4] {
		case "vid-":
			output["video_url"] = d.link(ticket, "0.mp4")
		case "msg-":
			output["finished"], output["choices"] = true, d.choices(ticket, it.images)
		default:
			results := []any{}
			for i := range it.images {
				results = append(results, map[string]any{"url": d.link(ticket, fmt.Sprintf("%d.png", i))})
			}
			output["results"] = results
		}
	}
	answerJSON(w, http.StatusOK, map[string]any{"output": output, "request_id": "r-" + ticket})
}

// fail says how a task ended, see DashScope.
func (d *DashScope) fail(ticket string, it *work, output map[string]any) {
	var items []map[string]any
	if json.Unmarshal([]byte(it.how.Failed), &items) == nil {
		for i, item := range items {
			if len(item) == 0 {
				item["url"] = d.link(ticket, fmt.Sprintf("%d.png", i))
			}
		}
		output["task_status"], output["results"] = "SUCCEEDED", items
		return
	}
	output["task_status"] = "FAILED"
	var said struct{ Status, Code, Message string }
	_ = json.Unmarshal([]byte(it.how.Failed), &said) // a test's own words
	if said.Status != "" {
		output["task_status"] = said.Status
		return
	}
	output["code"], output["message"] = said.Code, said.Message
}

// drop cancels what waits.
func (d *DashScope) drop(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	d.mu.Lock()
	it := d.works[ticket]
	d.mu.Unlock()
	if it == nil || !d.waits(it) {
		dashError(w, http.StatusBadRequest, "UnsupportedOperation", "Failed to cancel the task, please confirm if the task is in PENDING status.")
		return
	}
	d.cancel(ticket)
	answerJSON(w, http.StatusOK, map[string]any{"request_id": "r-" + ticket})
}

// choices are pictures as messages have them.
func (d *DashScope) choices(ticket string, images int) []any {
	content := []any{}
	for i := range images {
		content = append(content, map[string]any{"image": d.link(ticket, fmt.Sprintf("%d.png", i))})
	}
	return []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content}}}
}

// link is the address of a result.
func (d *DashScope) link(ticket, file string) string {
	return d.Host() + "/results/" + ticket + "/" + file
}

// result serves a picture or a clip, to anybody: whoever sends a credential
// there gives it away.
func (d *DashScope) result(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		d.t.Error("fake dashscope: the credential was sent to the host of the results")
	}
	number, kind, _ := strings.Cut(r.PathValue("file"), ".")
	if kind == "mp4" {
		d.serve(w, r, r.PathValue("ticket"), "video/mp4", Clip())
		return
	}
	n, _ := strconv.Atoi(number)
	d.serve(w, r, r.PathValue("ticket"), "image/png", Picture(n))
}

func dashError(w http.ResponseWriter, status int, code, message string) {
	answerJSON(w, status, map[string]any{"code": code, "message": message, "request_id": "r-0"})
}
