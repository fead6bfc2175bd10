package fakestudio

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Recraft is a fake of Recraft: pictures in the answer, as links.
type Recraft struct {
	Studio
	files *httptest.Server
}

// NewRecraft starts one. It ends with the test.
func NewRecraft(t testing.TB) *Recraft {
	c := &Recraft{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/images/generations", c.paint(false))
	mux.HandleFunc("POST /v1/images/imageToImage", c.paint(true))
	mux.HandleFunc("/", c.strange)
	mux.HandleFunc("POST /v1/images/inpaint", c.inpaint)
	c.open(t, mux.ServeHTTP)
	c.files = c.openFiles()
	return c
}

// URL is a line's base_url for it.
func (c *Recraft) URL() string { return c.Host() + "/v1" }

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

// check says what is wrong with a request.
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
		return "this fake answers with addresses alone"
	case a.Size != "" && (edit || !recraftSize.MatchString(a.Size)):
		return "size is not valid"
	case edit != (a.Strength != nil), edit != (a.Image != ""):
		return "strength and image_url go with imageToImage"
	case edit && !webAddress(a.Image) && !dataOf(a.Image, "image/"):
		return "failed to decode image"
	case m[1] == "4" && a.Negative+a.Style+a.Substyle != "", m[3] == "_flash" && a.StyleID+a.Match != "":
		return "unsupported parameter"
	}
	return ""
}

// paint answers with pictures.
func (c *Recraft) paint(edit bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			answerJSON(w, http.StatusUnauthorized, map[string]any{"code": "unauthorized", "message": "Missing token"})
			return
		}
		var asked recraftTask
		body, err := readJSON(r, &asked)
		message := fmt.Sprint(err)
		if err == nil {
			message = asked.check(edit)
		}
		if message != "" {
			c.turnAway(r, body)
			answerJSON(w, http.StatusBadRequest, map[string]any{"code": "invalid_request_parameter", "message": message})
			return
		}
		c.answer(w, r, body, max(asked.Count, 1))
	}
}

// inpaint answers with pictures that were changed in a part, from a form.
func (c *Recraft) inpaint(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // half a form is none
	form, files, err := readForm(r, body)
	message := ""
	count, _ := strconv.Atoi(form["n"])
	for name := range form {
		if !slices.Contains([]string{"model", "prompt", "n", "response_format", "negative_prompt", "style", "substyle", "style_id"}, name) {
			message = "unknown field " + name
		}
	}
	switch {
	case r.Header.Get("Authorization") == "":
		answerJSON(w, http.StatusUnauthorized, map[string]any{"code": "unauthorized", "message": "Missing token"})
		return
	case err != nil:
		message = err.Error()
	case form["model"] != "recraftv3" || form["prompt"] == "" || form["response_format"] != "url" || count < 1 || count > 6:
		message = "model, prompt, n or response_format is not valid"
	case len(files) != 2 || len(files["image"]) != 1 || len(files["mask"]) != 1 || !twoColours(files["mask"][0].data):
		message = "image and a mask of black and white are required"
	}
	if message != "" {
		c.turnAway(r, body)
		answerJSON(w, http.StatusBadRequest, map[string]any{"code": "invalid_request_parameter", "message": message})
		return
	}
	c.answer(w, r, body, count)
}

// answer answers an accepted request with so many pictures.
func (c *Recraft) answer(w http.ResponseWriter, r *http.Request, body []byte, images int) {
	ticket, how, ok := c.submit(w, r, body, "img-", images)
	if !ok || !await(r, how.Until) {
		return
	}
	if how.Images > 0 {
		images = how.Images
	}
	data := []any{}
	for n := range images {
		data = append(data, map[string]any{"image_id": ticket, "url": fmt.Sprintf("%s/%s/%d.png", c.files.URL, ticket, n)})
	}
	answerJSON(w, http.StatusOK, map[string]any{"created": 1767225600, "credits": 35 * images, "data": data})
}
