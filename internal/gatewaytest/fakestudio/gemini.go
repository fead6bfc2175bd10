package fakestudio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Gemini is a fake of Google's image output (generateContent), of Veo
// (predictLongRunning) and of Omni (interactions).
//
// Behaviour.Failed is, for images, the candidate in place of the good one
// (`{"finishReason":"IMAGE_SAFETY"}`); for operations of Veo the members beside
// `done` (`{"error":{…}}` or `{"response":{…}}`); for interactions members over
// those of a completed one (`{"status":"failed","error":{…}}`).
type Gemini struct {
	Studio
	// Vertex makes operations those of Vertex AI, which have longer names and
	// answer with the clip itself. It is set before the first call.
	Vertex bool
	path   string // of the base address
}

// NewGemini starts one. It ends with the test.
func NewGemini(t testing.TB) *Gemini {
	g := &Gemini{path: "/v1beta"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1beta/models/{call}", g.model)
	mux.HandleFunc("GET /v1beta/models/{model}/operations/{id}", g.operation)
	mux.HandleFunc("POST /v1beta/interactions", g.interact)
	mux.HandleFunc("GET /v1beta/interactions/{id}", g.interaction)
	mux.HandleFunc("POST /v1beta/interactions/{id}/cancel", g.stop)
	mux.HandleFunc("GET /v1beta/files/{file}", g.file)
	mux.HandleFunc("/", g.strange)
	g.open(t, mux.ServeHTTP)
	return g
}

// vertexProject is where models are on Vertex AI, as far as their publisher.
const vertexProject = "projects/p1/locations/us-central1"

// NewVertex starts one as Vertex AI has it: below a project, by a key or a
// token, without interactions.
func NewVertex(t testing.TB) *Gemini {
	g := &Gemini{path: "/v1/" + vertexProject, Vertex: true}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+g.path+"/publishers/google/models/{call}", g.model)
	mux.HandleFunc("/", g.strange)
	g.open(t, mux.ServeHTTP)
	return g
}

// URL is the base address for a line.
func (g *Gemini) URL() string { return g.Host() + g.path }

// googleError is an error as Google words it.
func googleError(code int, status, message string, details ...any) string {
	e := map[string]any{"code": code, "status": status, "message": message}
	if len(details) > 0 {
		e["details"] = details
	}
	body, _ := json.Marshal(map[string]any{"error": e})
	return string(body)
}

// authorized refuses calls without a key, and keys in the address.
func (g *Gemini) authorized(w http.ResponseWriter, r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if r.URL.Query().Get("key") == "" && (len(r.Header.Get("X-Goog-Api-Key")) >= 8 || g.Vertex && len(token) >= 8) {
		return true
	}
	g.turnDown(w, r, nil, http.StatusBadRequest, googleError(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
		map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}))
	return false
}

// rule says what a member must be: the members of an object, each with its own
// rule, or a pattern that the JSON of the value matches.
type rule struct {
	members map[string]rule
	list    *rule // of each element
	look    string
}

// breach is the first member of a value that breaks a rule; empty: none does.
// Google refuses unknown members and wrong types alike.
func (r rule) breach(path string, value any) string {
	switch v := value.(type) {
	case map[string]any:
		if r.members == nil {
			return path
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner, ok := r.members[name]
			if !ok {
				return path + "." + name
			}
			if at := inner.breach(path+"."+name, v[name]); at != "" {
				return at
			}
		}
		return ""
	case []any:
		if r.list == nil {
			return path
		}
		for i, item := range v {
			if at := r.list.breach(fmt.Sprintf("%s[%d]", path, i), item); at != "" {
				return at
			}
		}
		return ""
	}
	said, _ := json.Marshal(value)
	if r.look == "" || !regexp.MustCompile(`^(?s:`+r.look+`)$`).Match(said) {
		return path
	}
	return ""
}

// Patterns of members.
const (
	anyText   = `".*"`
	anyNumber = `-?[0-9.eE+-]+`
	anyBool   = `true|false`
	anyBase64 = `"[A-Za-z0-9+/]+={0,2}"`
	aPicture  = `"image/(png|jpeg|webp)"`
)

// object and text make rules.
func object(members map[string]rule) rule { return rule{members: members} }
func listOf(r rule) rule                  { return rule{list: &r} }
func text(look string) rule               { return rule{look: look} }

// contentRule is that of generateContent, as far as images go.
func contentRule() rule {
	part := object(map[string]rule{
		"text":       text(anyText),
		"inlineData": object(map[string]rule{"mimeType": text(aPicture), "data": text(anyBase64)}),
	})
	return object(map[string]rule{
		"contents":       listOf(object(map[string]rule{"role": text(`"user"`), "parts": listOf(part)})),
		"safetySettings": listOf(object(map[string]rule{"category": text(`"HARM_CATEGORY_[A-Z_]+"`), "threshold": text(`"[A-Z_]+"`)})),
		"generationConfig": object(map[string]rule{
			"responseModalities": listOf(text(`"IMAGE"|"TEXT"`)), "temperature": text(anyNumber), "topP": text(anyNumber), "topK": text(anyNumber),
			"seed":           text(`-?[0-9]+`),
			"thinkingConfig": object(map[string]rule{"thinkingLevel": text(`"[A-Z]+"`), "includeThoughts": text(anyBool)}),
			"imageConfig": object(map[string]rule{
				"aspectRatio": text(`"(1:1|2:3|3:2|3:4|4:3|4:5|5:4|9:16|16:9|21:9|1:4|4:1|1:8|8:1)"`), "imageSize": text(`"(512|1K|2K|4K)"`),
				"personGeneration": text(anyText),
			}),
		}),
	})
}

// veoRule is that of predictLongRunning.
func veoRule() rule {
	image := object(map[string]rule{"bytesBase64Encoded": text(anyBase64), "mimeType": text(aPicture)})
	return object(map[string]rule{
		"instances": listOf(object(map[string]rule{
			"prompt": text(anyText), "image": image, "lastFrame": image,
			"referenceImages": listOf(object(map[string]rule{"image": image, "referenceType": text(`"(asset|style)"`)})),
		})),
		"parameters": object(map[string]rule{
			"sampleCount": text(`[1-4]`), "durationSeconds": text(`[468]`), "aspectRatio": text(`"(16:9|9:16)"`),
			"resolution": text(`"(720p|1080p|4k)"`),
			"seed":       text(`[0-9]+`), "negativePrompt": text(anyText), "personGeneration": text(`"(dont_allow|allow_adult|allow_all)"`),
			"generateAudio": text(anyBool),
			"enhancePrompt": text(anyBool), "fps": text(`[0-9]+`), "compressionQuality": text(`"(OPTIMIZED|LOSSLESS)"`), "resizeMode": text(anyText),
		}),
	})
}

// omniRule is that of interactions, as far as clips go.
func omniRule() rule {
	return object(map[string]rule{
		"model": text(`"[a-z0-9.-]+"`), "background": text(`true`), "store": text(anyBool),
		"input": listOf(object(map[string]rule{
			"type": text(`"(text|image|video)"`), "text": text(anyText), "data": text(anyBase64), "uri": text(anyText),
			"mime_type": text(`"(image|video)/.*"`),
		})),
		"generation_config": object(map[string]rule{
			"seed":         text(`[0-9]+`),
			"video_config": object(map[string]rule{"task": text(`"(text_to_video|image_to_video|reference_to_video|edit|extend|upscale)"`)}),
		}),
		"response_format": object(map[string]rule{
			"type": text(`"video"`), "delivery": text(`"(uri|inline)"`), "aspect_ratio": text(`"(16:9|9:16)"`),
			"resolution": text(`"(360p|720p|1080p|4k)"`), "duration": text(`"([3-9]|10)s"`),
		}),
		"safety_settings": listOf(object(map[string]rule{"category": text(anyText), "threshold": text(anyText)})),
	})
}

// read reads a body by its rule. It has answered if ok is false.
func (g *Gemini) read(w http.ResponseWriter, r *http.Request, by rule, required ...string) (body []byte, ok bool) {
	if !g.authorized(w, r) {
		return nil, false
	}
	body, _ = io.ReadAll(r.Body)
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	refuse := func(message string) ([]byte, bool) {
		g.turnDown(w, r, body, http.StatusBadRequest, googleError(400, "INVALID_ARGUMENT", message))
		return nil, false
	}
	if err := decoder.Decode(&members); err != nil || r.Header.Get("Content-Type") != "application/json" {
		return refuse("Invalid JSON payload received.")
	}
	if at := by.breach("", members); at != "" {
		return refuse("Invalid JSON payload received. Invalid value or unknown name at '" + strings.TrimPrefix(at, ".") + "'")
	}
	for _, name := range required {
		if members[name] == nil {
			return refuse(name + " is required")
		}
	}
	if len(body) > 20<<20 {
		return refuse("Request payload size exceeds the limit: 20971520 bytes.")
	}
	return body, true
}

// model answers a method of a model.
func (g *Gemini) model(w http.ResponseWriter, r *http.Request) {
	name, method, _ := strings.Cut(r.PathValue("call"), ":")
	video := strings.HasPrefix(name, "veo-")
	switch {
	case method == "generateContent" && (strings.Contains(name, "image") || strings.Contains(name, "banana")):
		g.generate(w, r)
	case method == "predictLongRunning" && video:
		g.begin(w, r, name)
	case method == "fetchPredictOperation" && video && g.Vertex:
		g.operation(w, r)
	case method == "generateContent" || method == "predictLongRunning":
		g.turnDown(w, r, nil, http.StatusNotFound,
			googleError(404, "NOT_FOUND", "models/"+name+" is not found for API version v1beta, or is not supported for "+method+"."))
	default:
		g.strange(w, r)
	}
}

// generate makes an image, with a draft among the thoughts before it.
func (g *Gemini) generate(w http.ResponseWriter, r *http.Request) {
	body, ok := g.read(w, r, contentRule(), "contents", "generationConfig")
	if !ok {
		return
	}
	ticket, how, ok := g.submit(w, r, body, "resp", 1)
	if !ok || !held(r, how) {
		return
	}
	part := func(n int) map[string]any {
		return map[string]any{"inlineData": map[string]any{"mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(Picture(n))}}
	}
	draft := part(0)
	draft["thought"] = true
	candidate := any(map[string]any{
		"index": 0, "finishReason": "STOP",
		"content": map[string]any{"role": "model", "parts": []any{draft, map[string]any{"text": "Here it is."}, part(number(ticket))}},
	})
	if how.Failed != "" {
		candidate = json.RawMessage(how.Failed)
	}
	answer(w, map[string]any{
		"candidates": []any{candidate}, "modelVersion": "fake", "responseId": ticket,
		"usageMetadata": map[string]any{"promptTokenCount": 8, "candidatesTokenCount": 1290, "totalTokenCount": 1298},
	})
}

// number is that of a ticket: images of different calls are different.
func number(ticket string) int {
	n := 0
	_, _ = fmt.Sscanf(ticket[len(ticket)-6:], "%d", &n)
	return n
}

// begin begins an operation.
func (g *Gemini) begin(w http.ResponseWriter, r *http.Request, model string) {
	body, ok := g.read(w, r, veoRule(), "instances")
	if !ok {
		return
	}
	if ticket, _, ok := g.submit(w, r, body, "op", 1); ok {
		answer(w, map[string]any{"name": g.operationName(model, ticket)})
	}
}

func (g *Gemini) operationName(model, ticket string) string {
	name := "models/" + model + "/operations/" + ticket
	if g.Vertex {
		name = vertexProject + "/publishers/google/" + name
	}
	return name
}

// operation answers a poll of an operation: by its name in the address, or in
// the body.
func (g *Gemini) operation(w http.ResponseWriter, r *http.Request) {
	if !g.authorized(w, r) {
		return
	}
	ticket, model := r.PathValue("id"), r.PathValue("model")
	if g.Vertex {
		var asked struct {
			Name string `json:"operationName"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		ticket = asked.Name[strings.LastIndexByte(asked.Name, '/')+1:]
		model, _, _ = strings.Cut(r.PathValue("call"), ":")
	}
	said := map[string]any{"name": g.operationName(model, ticket)}
	switch stands, it := g.poll(w, ticket); stands {
	case answered:
		return
	case unknown:
		g.turnDown(w, r, nil, http.StatusNotFound, googleError(404, "NOT_FOUND", "Operation not found."))
		return
	case going:
		said["metadata"] = map[string]any{"@type": "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningMetadata"}
	case failed:
		_ = json.Unmarshal([]byte(it.how.Failed), &said)
		said["done"] = true
	case done:
		said["done"] = true
		if g.Vertex {
			said["response"] = map[string]any{
				"videos": []any{map[string]any{"bytesBase64Encoded": base64.StdEncoding.EncodeToString(Clip()), "mimeType": "video/mp4"}}}
			break
		}
		said["response"] = map[string]any{"generateVideoResponse": map[string]any{"generatedSamples": []any{
			map[string]any{"video": map[string]any{"uri": g.URL() + "/files/" + ticket + ":download?alt=media"}},
		}}}
	}
	answer(w, said)
}

// interact begins an interaction.
func (g *Gemini) interact(w http.ResponseWriter, r *http.Request) {
	body, ok := g.read(w, r, omniRule(), "model", "input", "background", "response_format")
	if !ok {
		return
	}
	if ticket, _, ok := g.submit(w, r, body, "v1_", 1); ok {
		answer(w, map[string]any{"id": ticket, "object": "interaction", "status": "in_progress"})
	}
}

// interaction answers a poll of an interaction.
func (g *Gemini) interaction(w http.ResponseWriter, r *http.Request) {
	if !g.authorized(w, r) {
		return
	}
	ticket := r.PathValue("id")
	said := map[string]any{"id": ticket, "object": "interaction", "status": "completed", "steps": []any{}}
	switch stands, it := g.poll(w, ticket); stands {
	case answered:
		return
	case unknown:
		g.turnDown(w, r, nil, http.StatusBadRequest, googleError(400, "INVALID_ARGUMENT", "Invalid interaction name: "+ticket))
		return
	case going:
		said["status"] = "in_progress"
	case failed:
		_ = json.Unmarshal([]byte(it.how.Failed), &said)
	case done:
		said["steps"] = []any{
			map[string]any{"type": "thought", "content": []any{map[string]any{"type": "text", "text": "…"}}},
			map[string]any{"type": "model_output",
				"content": []any{map[string]any{"type": "video", "uri": g.URL() + "/files/" + ticket, "mime_type": "video/mp4"}}},
		}
	}
	answer(w, said)
}

// stop cancels an interaction.
func (g *Gemini) stop(w http.ResponseWriter, r *http.Request) {
	if !g.authorized(w, r) {
		return
	}
	ticket := r.PathValue("id")
	if !g.forget(ticket) {
		g.turnDown(w, r, nil, http.StatusBadRequest, googleError(400, "INVALID_ARGUMENT", "Invalid interaction name: "+ticket))
		return
	}
	g.cancel(ticket)
	answer(w, map[string]any{"id": ticket, "status": "cancelled"})
}

// file serves a clip: only with a key, and only if its bytes are asked for.
func (g *Gemini) file(w http.ResponseWriter, r *http.Request) {
	if !g.authorized(w, r) {
		return
	}
	ticket, _, _ := strings.Cut(r.PathValue("file"), ":")
	if r.URL.Query().Get("alt") != "media" {
		answer(w, map[string]any{"name": "files/" + ticket, "mimeType": "video/mp4"})
		return
	}
	g.serve(w, r, ticket, "video/mp4", Clip())
}
