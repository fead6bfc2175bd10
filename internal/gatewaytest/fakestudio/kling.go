package fakestudio

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Kling is a fake of Kling. The newer API creates clips, the older API clips and pictures. An
// external id can be used for only one task.
//
// Behaviour.Failure is the message of a failed task.
type Kling struct {
	Studio
	// Access and Secret are the account's pair of keys. If Secret is not empty, only the older API can
	// be used, with tokens signed with Secret and valid at the time of Now. Set the fields before the
	// first request.
	Access, Secret string
	Now            func() time.Time
}

// NewKling starts a fake Kling, which stops at the end of the test.
func NewKling(t testing.TB) *Kling {
	k := &Kling{Now: time.Now}
	routes := map[string]http.HandlerFunc{"GET /tasks": k.getClip}
	for _, kind := range []string{"text-to-video", "image-to-video", "omni-video"} {
		routes["POST /"+kind+"/{model}"] = k.createClip(kind)
	}
	for _, series := range []string{"generations", "omni-image"} {
		routes["POST /v1/images/"+series] = createOlder(k, "img-", func(in *klingPicture) (string, string, int) {
			return in.check(series), in.ID, in.N
		})
		routes["GET /v1/images/"+series+"/{id}"] = k.getOlder
	}
	for _, series := range []string{"text2video", "image2video"} {
		routes["POST /v1/videos/"+series] = createOlder(k, "old-", func(in *klingOlder) (string, string, int) {
			return in.check(series), in.ID, 1
		})
		routes["GET /v1/videos/"+series+"/{id}"] = k.getOlder
	}
	k.open(t, "", k.authorized, routes)
	return k
}

// authorized accepts a key, or a token if Secret is set.
func (k *Kling) authorized(w http.ResponseWriter, r *http.Request) bool {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok || key == "":
		klingAnswer(w, http.StatusUnauthorized, 1000, "Authorization failed", nil)
	case k.Secret != "" && !strings.HasPrefix(r.URL.Path, "/v1/"):
		klingAnswer(w, http.StatusUnauthorized, 1002, "this interface does not support AK/SK", nil)
	case k.Secret != "" && !k.isValidToken(key):
		klingAnswer(w, http.StatusUnauthorized, 1002, "Authorization is invalid: "+key, nil)
	default:
		return true
	}
	return false
}

// isValidToken reports whether a token has a valid signature and valid claims.
func (k *Kling) isValidToken(token string) bool {
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

func klingAnswer(w http.ResponseWriter, status, code int, message string, data any) {
	answerJSON(w, status, object{"code": code, "message": message, "request_id": "r-1", "data": data})
}

func klingInvalid(w http.ResponseWriter, message string) {
	klingAnswer(w, http.StatusBadRequest, 1201, message, nil)
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

// check returns the error of a request for a clip, or the empty string.
func (c *klingClip) check(task, model string) string {
	has := map[string]int{}
	for _, part := range c.Contents {
		has[part.Type]++
		switch part.Type {
		case "prompt":
			if part.Text == "" || part.URL != "" {
				return "prompt has no text"
			}
			continue
		case "first_frame", "last_frame", "refer_image":
		case "feature_video":
			if !isURL(part.URL) {
				return "feature_video must be an address"
			}
		default:
			return "content type " + part.Type + " is unknown"
		}
		if !isReadable(part.URL, 50<<20) {
			return part.Type + " cannot be read"
		}
	}
	frames, references := has["first_frame"]+has["last_frame"], has["refer_image"]+has["feature_video"]
	turbo := strings.HasPrefix(model, "kling-3.0-turbo")
	switch {
	case has["prompt"] > 1 || has["first_frame"] > 1 || has["last_frame"] > has["first_frame"] || has["feature_video"] > 1:
		return "too many of a content type, or a last frame without a first one"
	case task == "text-to-video" && (has["prompt"] == 0 || frames+references > 0):
		return "text-to-video takes only a prompt"
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

// ticketOf returns the ticket of the task with an external id, or the empty string. It also finds
// tasks whose answer was lost.
func (k *Kling) ticketOf(id string) string {
	for _, s := range k.Submissions() {
		if s.Accepted && id != "" && bytes.Contains(s.Body, []byte(`"external_task_id":"`+id+`"`)) {
			return s.Ticket
		}
	}
	return ""
}

// accept submits a task with an external id.
func (k *Kling) accept(w http.ResponseWriter, r *http.Request, body []byte, prefix, id string, images int) (*task, bool) {
	if k.ticketOf(id) != "" {
		return nil, k.passes(w, r, body, "external_task_id already exists", klingInvalid)
	}
	return k.submit(w, r, body, prefix, images)
}

func (k *Kling) createClip(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		check := func(in *klingClip) string { return in.check(kind, r.PathValue("model")) }
		in, body, ok := readTask(&k.Studio, w, r, check, klingInvalid)
		if !ok {
			return
		}
		if t, ok := k.accept(w, r, body, "clip-", in.Options.ID, 1); ok {
			klingAnswer(w, http.StatusOK, 0, "SUCCEED", object{"id": t.ticket, "status": "submitted", "external_id": in.Options.ID})
		}
	}
}

// getClip answers polls of the newer API. An unknown task is missing in the list.
func (k *Kling) getClip(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("task_ids")
	if id := r.URL.Query().Get("external_task_ids"); id != "" {
		ticket = k.ticketOf(id)
	}
	wrap := func(data any) any { return object{"code": 0, "message": "SUCCEED", "request_id": "r-1", "data": data} }
	k.answerPoll(w, ticket, polling{
		id: "id", status: "status", waiting: "submitted", running: "processing", failed: "failed", done: "succeeded",
		members: object{"message": ""},
		missing: func(w http.ResponseWriter) { answerJSON(w, http.StatusOK, wrap([]any{})) },
		failure: func(answer object, failed string) { answer["message"] = failed },
		result: func(answer object, t *task) {
			answer["outputs"] = []any{object{"type": "video", "url": k.clipURL(t), "duration": "5"}}
		},
		wrap: func(answer object) any { return wrap([]any{answer}) },
	})
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

// check returns the error of a request for pictures, or the empty string.
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
		if !isBase64Picture(image) {
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

// klingOlder is a request for a clip in the older API.
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

// check returns the error of a request for a clip in the older API, or the empty string.
func (c *klingOlder) check(series string) string {
	for _, image := range []string{c.Image, c.Tail} {
		if !isBase64Picture(image) {
			return "an image is neither an address nor bare base64"
		}
	}
	seconds, err := strconv.Atoi(cmp.Or(c.Duration, "5"))
	switch {
	case !slices.Contains([]string{"kling-v3", "kling-v2-6", "kling-v2-5-turbo"}, c.Model):
		return "model_name is invalid"
	case (series == "image2video") != (c.Image != ""), c.Tail != "" && c.Image == "", c.Image == "" && c.Prompt == "":
		return "image2video takes an image, and text2video only a prompt"
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

// createOlder handles submissions to the older API. check returns the error of a submission, its
// external id and its number of images.
func createOlder[T any](k *Kling, prefix string, check func(*T) (message, id string, images int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		message := func(in *T) string {
			message, _, _ := check(in)
			return message
		}
		in, body, ok := readTask(&k.Studio, w, r, message, klingInvalid)
		if !ok {
			return
		}
		_, id, images := check(&in)
		if t, ok := k.accept(w, r, body, prefix, id, images); ok {
			klingAnswer(w, http.StatusOK, 0, "SUCCEED", object{"task_id": t.ticket, "task_status": "submitted"})
		}
	}
}

// getOlder answers polls of the older API, by ticket or external id.
func (k *Kling) getOlder(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	if external := k.ticketOf(ticket); external != "" {
		ticket = external
	}
	k.answerPoll(w, ticket, polling{
		id: "task_id", status: "task_status", waiting: "processing", running: "processing", failed: "failed", done: "succeed",
		members: object{"task_status_msg": ""},
		missing: func(w http.ResponseWriter) { klingAnswer(w, http.StatusNotFound, 1202, "task not found", nil) },
		failure: func(answer object, failed string) { answer["task_status_msg"] = failed },
		result: func(answer object, t *task) {
			if strings.HasPrefix(ticket, "old-") {
				answer["task_result"] = object{"videos": []any{object{"id": "v", "url": k.clipURL(t), "duration": "5"}}}
				return
			}
			answer["task_result"] = object{"images": k.pictures(t, func(url string) any { return object{"url": url} })}
		},
		wrap: func(answer object) any {
			return object{"code": 0, "message": "SUCCEED", "request_id": "r-1", "data": answer}
		},
	})
}
