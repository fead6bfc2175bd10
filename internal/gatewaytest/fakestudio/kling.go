package fakestudio

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Kling is a fake of Kling: clips by its new interface, pictures by its older one.
// It accepts one task under an external id.
//
// Behaviour.Failed is the text that a failed task gives for its reason.
type Kling struct {
	Studio
	// Access and Secret are the pair of keys of the only account, if it has one:
	// tokens signed with them are good for the older interface, by the clock Now.
	// They are set before the first call.
	Access, Secret string
	Now            func() time.Time
	files          *httptest.Server
}

// NewKling starts one. It ends with the test.
func NewKling(t testing.TB) *Kling {
	k := &Kling{Now: time.Now}
	mux := http.NewServeMux()
	for _, task := range []string{"text-to-video", "image-to-video", "omni-video"} {
		mux.HandleFunc("POST /"+task+"/{model}", k.keyed(k.film(task), true))
	}
	for _, series := range []string{"generations", "omni-image"} {
		mux.HandleFunc("POST /v1/images/"+series, k.keyed(k.paint(series), false))
		mux.HandleFunc("GET /v1/images/"+series+"/{id}", k.keyed(k.lookAtOlder, false))
	}
	for _, series := range []string{"text2video", "image2video"} {
		mux.HandleFunc("POST /v1/videos/"+series, k.keyed(k.filmOlder(series), false))
		mux.HandleFunc("GET /v1/videos/"+series+"/{id}", k.keyed(k.lookAtOlder, false))
	}
	mux.HandleFunc("GET /tasks", k.keyed(k.look, true))
	mux.HandleFunc("/", k.strange)
	k.open(t, mux.ServeHTTP)
	k.files = k.openFiles()
	return k
}

// URL is a line's base_url for it.
func (k *Kling) URL() string { return k.Host() }

// keyed lets those with a credential pass: a key, or for the older interface a
// token that the account's pair of keys signs.
func (k *Kling) keyed(next http.HandlerFunc, newer bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !ok || key == "":
			klingSays(w, http.StatusUnauthorized, 1000, "Authorization failed", nil)
		case k.Secret != "" && newer:
			klingSays(w, http.StatusUnauthorized, 1002, "this interface does not support AK/SK", nil)
		case k.Secret != "" && !k.signed(key):
			klingSays(w, http.StatusUnauthorized, 1002, "Authorization is invalid: "+key, nil)
		default:
			next(w, r)
		}
	}
}

// signed tells whether a token is good.
func (k *Kling) signed(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(k.Secret))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	var (
		head   struct{ Alg, Typ string }
		claims struct {
			Iss      string
			Exp, Nbf int64
		}
	)
	for i, into := range []any{&head, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(raw, into) != nil {
			return false
		}
	}
	now := k.Now().Unix()
	return parts[2] == base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) && head.Alg == "HS256" && head.Typ == "JWT" &&
		claims.Iss == k.Access && claims.Nbf <= now && now < claims.Exp && claims.Exp <= now+1800
}

func klingSays(w http.ResponseWriter, status, code int, message string, data any) {
	answerJSON(w, status, map[string]any{"code": code, "message": message, "request_id": "r-1", "data": data})
}

// klingClip is a request for a clip.
type klingClip struct {
	Contents []struct {
		Type, Text, URL, ID string
	} `json:"contents"`
	Settings struct {
		Resolution string `json:"resolution"`
		Duration   *int   `json:"duration"`
		Ratio      string `json:"aspect_ratio"`
		Audio      string `json:"audio"`
		Shots      *bool  `json:"multi_shot"`
	} `json:"settings"`
	Options struct {
		ID   string `json:"external_task_id"`
		Mark *struct {
			Enabled bool `json:"enabled"`
		} `json:"watermark_info"`
	} `json:"options"`
}

// check says what is wrong with a request for a clip.
func (c *klingClip) check(task, model string) string {
	has := map[string]int{}
	for _, part := range c.Contents {
		has[part.Type]++
		at := part.URL
		switch part.Type {
		case "prompt":
			if part.Text == "" || part.URL != "" {
				return "prompt has no text"
			}
			continue
		case "first_frame", "last_frame", "refer_image":
		case "feature_video":
			if !webAddress(at) {
				return "feature_video must be an address"
			}
		default:
			return "content type " + part.Type + " is unknown"
		}
		if !readable(at, 50<<20) {
			return part.Type + " cannot be read"
		}
	}
	frames, references := has["first_frame"]+has["last_frame"], has["refer_image"]+has["feature_video"]
	turbo := strings.HasPrefix(model, "kling-3.0-turbo")
	switch {
	case has["prompt"] > 1 || has["first_frame"] > 1 || has["last_frame"] > has["first_frame"] || has["feature_video"] > 1:
		return "too many of a content type, or a last frame alone"
	case task == "text-to-video" && (has["prompt"] == 0 || frames+references > 0):
		return "text-to-video takes a prompt alone"
	case task == "image-to-video" && (has["first_frame"] == 0 || references > 0):
		return "image-to-video takes a first frame"
	case turbo && (has["last_frame"] > 0 || c.Settings.Audio != "" || c.Settings.Shots != nil):
		return "kling-3.0-turbo does not support this"
	case task == "omni-video" && frames+has["feature_video"] == 0 && c.Settings.Ratio == "":
		return "aspect_ratio is required"
	case task == "image-to-video" && c.Settings.Ratio != "":
		return "aspect_ratio is not supported"
	case !slices.Contains([]string{"", "16:9", "9:16", "1:1"}, c.Settings.Ratio):
		return "aspect_ratio is invalid"
	case !slices.Contains([]string{"720p", "1080p", "4k"}, c.Settings.Resolution):
		return "resolution is invalid"
	case !slices.Contains([]string{"", "native", "original", "off"}, c.Settings.Audio):
		return "audio is invalid"
	case has["feature_video"] > 0 && c.Settings.Shots != nil && !*c.Settings.Shots:
		return "feature_video needs multi_shot"
	case c.Settings.Duration != nil && (*c.Settings.Duration < 3 || *c.Settings.Duration > 30):
		return "duration is invalid"
	}
	return ""
}

// named is the ticket of the task that was accepted under an external id; empty:
// none was. It is known though the answer is lost.
func (k *Kling) named(id string) string {
	for _, s := range k.Submissions() {
		if s.Accepted && id != "" && bytes.Contains(s.Body, []byte(`"external_task_id":"`+id+`"`)) {
			return s.Ticket
		}
	}
	return ""
}

// accept submits a task, one under an external id, and says whether w is to be
// answered.
func (k *Kling) accept(w http.ResponseWriter, r *http.Request, body []byte, prefix, id string, images int) (string, bool) {
	if k.named(id) != "" {
		k.turnAway(r, body)
		klingSays(w, http.StatusBadRequest, 1201, "external_task_id already exists", nil)
		return "", false
	}
	ticket, _, ok := k.submit(w, r, body, prefix, images)
	return ticket, ok
}

// film accepts a clip.
func (k *Kling) film(task string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked klingClip
		body, err := readJSON(r, &asked)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else {
			wrong = asked.check(task, r.PathValue("model"))
		}
		if wrong != "" {
			k.turnAway(r, body)
			klingSays(w, http.StatusBadRequest, 1201, wrong, nil)
			return
		}
		if ticket, ok := k.accept(w, r, body, "clip-", asked.Options.ID, 1); ok {
			klingSays(w, http.StatusOK, 0, "SUCCEED", map[string]any{"id": ticket, "status": "submitted", "external_id": asked.Options.ID})
		}
	}
}

// look answers polls of clips. What is not known is not in the list.
func (k *Kling) look(w http.ResponseWriter, r *http.Request) {
	ids := r.URL.Query().Get("task_ids")
	if external := r.URL.Query().Get("external_task_ids"); external != "" {
		ids = k.named(external)
	}
	status, it := k.poll(w, ids)
	task := map[string]any{"id": ids, "status": "processing", "message": ""}
	switch status {
	case answered:
		return
	case unknown:
		klingSays(w, http.StatusOK, 0, "SUCCEED", []any{})
		return
	case going:
		if k.waits(it) {
			task["status"] = "submitted"
		}
	case failed:
		task["status"], task["message"] = "failed", it.how.Failed
	case done:
		task["status"] = "succeeded"
		task["outputs"] = []any{map[string]any{"type": "video", "url": k.files.URL + "/" + ids + "/0.mp4", "duration": "5"}}
	}
	klingSays(w, http.StatusOK, 0, "SUCCEED", []any{task})
}

// klingPicture is a request for pictures.
type klingPicture struct {
	Model      string   `json:"model_name"`
	Prompt     string   `json:"prompt"`
	Negative   string   `json:"negative_prompt"`
	Image      string   `json:"image"`
	Use        string   `json:"image_reference"`
	Fidelity   *float64 `json:"image_fidelity"`
	N          int      `json:"n"`
	Resolution string   `json:"resolution"`
	Ratio      string   `json:"aspect_ratio"`
	ID         string   `json:"external_task_id"`
	Images     []struct {
		Image string `json:"image"`
	} `json:"image_list"`
	Mark json.RawMessage `json:"watermark_info"`
}

// check says what is wrong with a request for pictures.
func (p *klingPicture) check(series string) string {
	omni := strings.Contains(p.Model, "omni") || strings.Contains(p.Model, "o1")
	images := []string{}
	if p.Image != "" {
		images = append(images, p.Image)
	}
	for _, image := range p.Images {
		images = append(images, image.Image)
	}
	for _, image := range images {
		if _, err := base64.StdEncoding.DecodeString(image); err != nil && !webAddress(image) {
			return "an image is neither an address nor bare base64"
		}
	}
	switch {
	case p.Prompt == "" || omni != (series == "omni-image"):
		return "prompt is missing, or the model is of another path"
	case omni && p.Image != "" || !omni && len(p.Images) > 0 || len(images) > 10:
		return "image belongs elsewhere"
	case p.Negative != "" && len(images) > 0:
		return "negative_prompt is not supported with an image"
	case p.N < 1 || p.N > 9:
		return "n is invalid"
	case p.Resolution != "1k" && p.Resolution != "2k" && (p.Resolution != "4k" || !omni):
		return "resolution is invalid"
	}
	return ""
}

// paint accepts pictures.
func (k *Kling) paint(series string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked klingPicture
		body, err := readJSON(r, &asked)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else {
			wrong = asked.check(series)
		}
		if wrong != "" {
			k.turnAway(r, body)
			klingSays(w, http.StatusBadRequest, 1201, wrong, nil)
			return
		}
		if ticket, ok := k.accept(w, r, body, "img-", asked.ID, asked.N); ok {
			klingSays(w, http.StatusOK, 0, "SUCCEED", map[string]any{"task_id": ticket, "task_status": "submitted"})
		}
	}
}

// klingOlder is a request for a clip by the older interface.
type klingOlder struct {
	Model    string          `json:"model_name"`
	Prompt   string          `json:"prompt"`
	Negative string          `json:"negative_prompt"`
	Mode     string          `json:"mode"`
	Duration string          `json:"duration"`
	Ratio    string          `json:"aspect_ratio"`
	Sound    string          `json:"sound"`
	Image    string          `json:"image"`
	Tail     string          `json:"image_tail"`
	ID       string          `json:"external_task_id"`
	Mark     json.RawMessage `json:"watermark_info"`
}

// check says what is wrong with a request for a clip by the older interface.
func (c *klingOlder) check(series string) string {
	for _, image := range []string{c.Image, c.Tail} {
		if _, err := base64.StdEncoding.DecodeString(image); err != nil && !webAddress(image) {
			return "an image is neither an address nor bare base64"
		}
	}
	seconds, err := strconv.Atoi(cmp.Or(c.Duration, "5"))
	switch {
	case !slices.Contains([]string{"kling-v3", "kling-v2-6", "kling-v2-5-turbo"}, c.Model):
		return "model_name is invalid"
	case (series == "image2video") != (c.Image != ""), c.Tail != "" && c.Image == "", c.Image == "" && c.Prompt == "":
		return "image2video takes an image, and text2video a prompt alone"
	case c.Image != "" && c.Ratio != "" || !slices.Contains([]string{"", "16:9", "9:16", "1:1"}, c.Ratio):
		return "aspect_ratio is invalid"
	case c.Mode != "std" && c.Mode != "pro" && (c.Mode != "4k" || c.Model != "kling-v3"):
		return "mode is invalid"
	case err != nil || seconds < 3 || seconds > 15 || c.Model != "kling-v3" && seconds != 5 && seconds != 10:
		return "duration is invalid"
	case !slices.Contains([]string{"", "on", "off"}, c.Sound) || c.Sound != "" && c.Model == "kling-v2-5-turbo":
		return "sound is invalid"
	}
	return ""
}

// filmOlder accepts a clip by the older interface.
func (k *Kling) filmOlder(series string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked klingOlder
		body, err := readJSON(r, &asked)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else {
			wrong = asked.check(series)
		}
		if wrong != "" {
			k.turnAway(r, body)
			klingSays(w, http.StatusBadRequest, 1201, wrong, nil)
			return
		}
		if ticket, ok := k.accept(w, r, body, "old-", asked.ID, 1); ok {
			klingSays(w, http.StatusOK, 0, "SUCCEED", map[string]any{"task_id": ticket, "task_status": "submitted"})
		}
	}
}

// lookAtOlder answers polls of the older interface, by either id.
func (k *Kling) lookAtOlder(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if ticket := k.named(id); ticket != "" {
		id = ticket
	}
	status, it := k.poll(w, id)
	task := map[string]any{"task_id": id, "task_status": "processing", "task_status_msg": ""}
	switch status {
	case answered:
		return
	case unknown:
		klingSays(w, http.StatusNotFound, 1202, "task not found", nil)
		return
	case failed:
		task["task_status"], task["task_status_msg"] = "failed", it.how.Failed
	case done:
		images := []any{}
		for i := range it.images {
			images = append(images, map[string]any{"index": i, "url": fmt.Sprintf("%s/%s/%d.png", k.files.URL, id, i)})
		}
		result := map[string]any{"images": images}
		if strings.HasPrefix(id, "old-") {
			result = map[string]any{"videos": []any{map[string]any{"id": "v", "url": k.files.URL + "/" + id + "/0.mp4", "duration": "5"}}}
		}
		task["task_status"], task["task_result"] = "succeed", result
	}
	klingSays(w, http.StatusOK, 0, "SUCCEED", task)
}
