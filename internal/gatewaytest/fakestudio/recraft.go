package fakestudio

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Recraft is a fake of Recraft. It answers with links to pictures.
type Recraft struct{ Studio }

// NewRecraft starts a fake Recraft, which stops at the end of the test.
func NewRecraft(t testing.TB) *Recraft {
	c := &Recraft{}
	c.open(t, "/v1", withKey("Authorization", "Bearer ", func(w http.ResponseWriter) {
		answerJSON(w, http.StatusUnauthorized, object{"code": "unauthorized", "message": "Missing token"})
	}), map[string]http.HandlerFunc{
		"POST /images/generations":  c.createPictures(false),
		"POST /images/imageToImage": c.createPictures(true),
		"POST /images/inpaint":      c.inpaint,
	})
	return c
}

// recraftTask is a request for pictures.
type recraftTask struct {
	Model    string          `json:"model"`
	Prompt   string          `json:"prompt"`
	Count    int             `json:"n"`
	Size     string          `json:"size"`
	Format   string          `json:"response_format"`
	Image    string          `json:"image_url"`
	Strength *float64        `json:"strength"`
	Seed     *int64          `json:"random_seed"`
	Negative string          `json:"negative_prompt"`
	Style    string          `json:"style"`
	Substyle string          `json:"substyle"`
	StyleID  string          `json:"style_id"`
	Match    string          `json:"style_match"`
	Controls json.RawMessage `json:"controls"`
	Layout   json.RawMessage `json:"text_layout"`
	Type     string          `json:"image_format"`
	Nsfw     *bool           `json:"block_nsfw"`
}

var (
	recraftModel = regexp.MustCompile(`^recraftv([234])(_1)?(_flash|_utility|_styles)?(_pro)?(_vector)?$`)
	recraftSize  = regexp.MustCompile(`^\d+[x:]\d+$`)
)

// check returns the error of a request, or the empty string.
func (a *recraftTask) check(edit bool) string {
	m := recraftModel.FindStringSubmatch(a.Model)
	switch {
	case m == nil:
		return "unknown model"
	case a.Prompt == "":
		return "prompt is required"
	case a.Count < 0 || a.Count > 6:
		return "n must be from 1 to 6"
	case a.Format != "url":
		return "this fake answers with links only"
	case a.Size != "" && (edit || !recraftSize.MatchString(a.Size)):
		return "size is not valid"
	case edit != (a.Strength != nil), edit != (a.Image != ""):
		return "strength and image_url go with imageToImage"
	case edit && !isPicture(a.Image):
		return "failed to decode image"
	case m[1] == "4" && a.Negative+a.Style+a.Substyle != "", m[3] == "_flash" && a.StyleID+a.Match != "":
		return "unsupported parameter"
	}
	return ""
}

func recraftInvalid(w http.ResponseWriter, message string) {
	answerJSON(w, http.StatusBadRequest, object{"code": "invalid_request_parameter", "message": message})
}

func (c *Recraft) createPictures(edit bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, body, ok := readTask(&c.Studio, w, r, func(in *recraftTask) string { return in.check(edit) }, recraftInvalid)
		if ok {
			c.answer(w, r, body, max(in.Count, 1))
		}
	}
}

// inpaint handles a form with an image and a mask.
func (c *Recraft) inpaint(w http.ResponseWriter, r *http.Request) {
	body, form, files, err := readForm(r)
	message := ""
	count, _ := strconv.Atoi(form["n"])
	for name := range form {
		if !slices.Contains([]string{"model", "prompt", "n", "response_format", "negative_prompt", "style", "substyle", "style_id"}, name) {
			message = "unknown field " + name
		}
	}
	switch {
	case err != nil:
		message = err.Error()
	case form["model"] != "recraftv3" || form["prompt"] == "" || form["response_format"] != "url" || count < 1 || count > 6:
		message = "model, prompt, n or response_format is not valid"
	case len(files) != 2 || len(files["image"]) != 1 || len(files["mask"]) != 1 || !isBlackAndWhite(files["mask"][0].data):
		message = "image and a mask of black and white are required"
	}
	if c.passes(w, r, body, message, recraftInvalid) {
		c.answer(w, r, body, count)
	}
}

// answer accepts a request and answers with pictures.
func (c *Recraft) answer(w http.ResponseWriter, r *http.Request, body []byte, images int) {
	t, ok := c.finish(w, r, body, "img-", images)
	if !ok {
		return
	}
	data := c.pictures(t, func(url string) any { return object{"image_id": t.ticket, "url": url} })
	answerJSON(w, http.StatusOK, object{"created": 1767225600, "credits": 35 * t.images, "data": data})
}
