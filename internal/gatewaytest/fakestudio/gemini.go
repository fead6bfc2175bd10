package fakestudio

import (
	"bytes"
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

// Gemini is a fake of Google's images (generateContent), of Veo (predictLongRunning) and of Omni
// (interactions).
//
// Behaviour.Failure replaces the candidate of an image: `{"finishReason":"IMAGE_SAFETY"}`. For an
// operation of Veo, it has members of the operation: `{"error":{…}}` or `{"response":{…}}`. For an
// interaction, it has members of the answer: `{"status":"failed","error":{…}}`.
type Gemini struct {
	Studio
	// Vertex is true for Vertex AI. Its operations have longer names, and its answers contain the
	// clips.
	Vertex bool
}

// NewGemini starts a fake Gemini, which stops at the end of the test.
func NewGemini(t testing.TB) *Gemini {
	g := &Gemini{}
	g.open(t, "/v1beta", g.authorized, map[string]http.HandlerFunc{
		"POST /models/{call}":                 g.callModel,
		"GET /models/{model}/operations/{id}": g.getOperation,
		"POST /interactions":                  g.createInteraction,
		"GET /interactions/{id}":              g.getInteraction,
		"POST /interactions/{id}/cancel":      g.cancelInteraction,
		"GET /files/{file}":                   g.getFile,
	})
	return g
}

// vertexProject is the path of the project on Vertex AI.
const vertexProject = "projects/p1/locations/us-central1"

// NewVertex starts a fake Vertex AI, which stops at the end of the test. It has a project, accepts a
// key or a token, and has no interactions.
func NewVertex(t testing.TB) *Gemini {
	g := &Gemini{Vertex: true}
	g.open(t, "/v1/"+vertexProject, g.authorized, map[string]http.HandlerFunc{"POST /publishers/google/models/{call}": g.callModel})
	return g
}

// googleError writes an error in Google's format.
func googleError(w http.ResponseWriter, code int, status, message string, details ...any) {
	e := object{"code": code, "status": status, "message": message}
	if len(details) > 0 {
		e["details"] = details
	}
	answerJSON(w, code, object{"error": e})
}

// authorized rejects requests without a key, and requests with the key in the address.
func (g *Gemini) authorized(w http.ResponseWriter, r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if r.URL.Query().Get("key") == "" && (len(r.Header.Get("X-Goog-Api-Key")) >= 8 || g.Vertex && len(token) >= 8) {
		return true
	}
	googleError(w, http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
		object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"})
	return false
}

// schema describes a JSON value: an object with members, a list, or another value whose JSON matches
// a pattern.
type schema struct {
	members map[string]schema
	list    *schema // of each element
	pattern string
}

// invalidPath returns the path of the first member that is unknown or has an invalid value, or the
// empty string.
func (s schema) invalidPath(path string, value any) string {
	switch v := value.(type) {
	case map[string]any:
		if s.members == nil {
			return path
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner, ok := s.members[name]
			if !ok {
				return path + "." + name
			}
			if at := inner.invalidPath(path+"."+name, v[name]); at != "" {
				return at
			}
		}
		return ""
	case []any:
		if s.list == nil {
			return path
		}
		for i, item := range v {
			if at := s.list.invalidPath(fmt.Sprintf("%s[%d]", path, i), item); at != "" {
				return at
			}
		}
		return ""
	}
	text, _ := json.Marshal(value)
	if s.pattern == "" || !regexp.MustCompile(`^(?s:`+s.pattern+`)$`).Match(text) {
		return path
	}
	return ""
}

// Patterns of values.
const (
	anyText   = `".*"`
	anyNumber = `-?[0-9.eE+-]+`
	anyBool   = `true|false`
	anyBase64 = `"[A-Za-z0-9+/]+={0,2}"`
	aPicture  = `"image/(png|jpeg|webp)"`
)

func objectOf(members map[string]schema) schema { return schema{members: members} }
func listOf(s schema) schema                    { return schema{list: &s} }
func match(pattern string) schema               { return schema{pattern: pattern} }

// contentSchema returns the schema of generateContent for images.
func contentSchema() schema {
	part := objectOf(map[string]schema{
		"text":       match(anyText),
		"inlineData": objectOf(map[string]schema{"mimeType": match(aPicture), "data": match(anyBase64)}),
	})
	return objectOf(map[string]schema{
		"contents":       listOf(objectOf(map[string]schema{"role": match(`"user"`), "parts": listOf(part)})),
		"safetySettings": listOf(objectOf(map[string]schema{"category": match(`"HARM_CATEGORY_[A-Z_]+"`), "threshold": match(`"[A-Z_]+"`)})),
		"generationConfig": objectOf(map[string]schema{
			"responseModalities": listOf(match(`"IMAGE"|"TEXT"`)), "temperature": match(anyNumber), "topP": match(anyNumber),
			"topK":           match(anyNumber),
			"seed":           match(`-?[0-9]+`),
			"thinkingConfig": objectOf(map[string]schema{"thinkingLevel": match(`"[A-Z]+"`), "includeThoughts": match(anyBool)}),
			"imageConfig": objectOf(map[string]schema{
				"aspectRatio": match(`"(1:1|2:3|3:2|3:4|4:3|4:5|5:4|9:16|16:9|21:9|1:4|4:1|1:8|8:1)"`), "imageSize": match(`"(512|1K|2K|4K)"`),
				"personGeneration": match(anyText),
			}),
		}),
	})
}

// veoSchema returns the schema of predictLongRunning.
func veoSchema() schema {
	image := objectOf(map[string]schema{"bytesBase64Encoded": match(anyBase64), "mimeType": match(aPicture)})
	return objectOf(map[string]schema{
		"instances": listOf(objectOf(map[string]schema{
			"prompt": match(anyText), "image": image, "lastFrame": image,
			"referenceImages": listOf(objectOf(map[string]schema{"image": image, "referenceType": match(`"(asset|style)"`)})),
		})),
		"parameters": objectOf(map[string]schema{
			"sampleCount": match(`[1-4]`), "durationSeconds": match(`[468]`), "aspectRatio": match(`"(16:9|9:16)"`),
			"resolution": match(`"(720p|1080p|4k)"`),
			"seed":       match(`[0-9]+`), "negativePrompt": match(anyText),
			"personGeneration": match(`"(dont_allow|allow_adult|allow_all)"`),
			"generateAudio":    match(anyBool),
			"enhancePrompt":    match(anyBool), "fps": match(`[0-9]+`), "compressionQuality": match(`"(OPTIMIZED|LOSSLESS)"`),
			"resizeMode": match(anyText),
		}),
	})
}

// omniSchema returns the schema of interactions for clips.
func omniSchema() schema {
	return objectOf(map[string]schema{
		"model": match(`"[a-z0-9.-]+"`), "background": match(`true`), "store": match(anyBool),
		"input": listOf(objectOf(map[string]schema{
			"type": match(`"(text|image|video)"`), "text": match(anyText), "data": match(anyBase64), "uri": match(anyText),
			"mime_type": match(`"(image|video)/.*"`),
		})),
		"generation_config": objectOf(map[string]schema{
			"seed":         match(`[0-9]+`),
			"video_config": objectOf(map[string]schema{"task": match(`"(text_to_video|image_to_video|reference_to_video|edit|extend|upscale)"`)}),
		}),
		"response_format": objectOf(map[string]schema{
			"type": match(`"video"`), "delivery": match(`"(uri|inline)"`), "aspect_ratio": match(`"(16:9|9:16)"`),
			"resolution": match(`"(360p|720p|1080p|4k)"`), "duration": match(`"([3-9]|10)s"`),
		}),
		"safety_settings": listOf(objectOf(map[string]schema{"category": match(anyText), "threshold": match(anyText)})),
	})
}

// read reads and checks a body. If ok is false, read has recorded and rejected the submission.
func (g *Gemini) read(w http.ResponseWriter, r *http.Request, by schema, required ...string) (body []byte, ok bool) {
	body, _ = io.ReadAll(r.Body)
	return body, g.passes(w, r, body, checkGemini(r, body, by, required), func(w http.ResponseWriter, message string) {
		googleError(w, http.StatusBadRequest, "INVALID_ARGUMENT", message)
	})
}

// checkGemini returns the error of a body, or the empty string.
func checkGemini(r *http.Request, body []byte, by schema, required []string) string {
	var members object
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil || r.Header.Get("Content-Type") != "application/json" {
		return "Invalid JSON payload received."
	}
	if at := by.invalidPath("", members); at != "" {
		return "Invalid JSON payload received. Invalid value or unknown name at '" + strings.TrimPrefix(at, ".") + "'"
	}
	for _, name := range required {
		if members[name] == nil {
			return name + " is required"
		}
	}
	if len(body) > 20<<20 {
		return "Request payload size exceeds the limit: 20971520 bytes."
	}
	return ""
}

// callModel calls a method of a model.
func (g *Gemini) callModel(w http.ResponseWriter, r *http.Request) {
	name, method, _ := strings.Cut(r.PathValue("call"), ":")
	video := strings.HasPrefix(name, "veo-")
	switch {
	case method == "generateContent" && (strings.Contains(name, "image") || strings.Contains(name, "banana")):
		g.generateImage(w, r)
	case method == "predictLongRunning" && video:
		if body, ok := g.read(w, r, veoSchema(), "instances"); !ok {
			return
		} else if t, ok := g.submit(w, r, body, "op", 1); ok {
			answerJSON(w, http.StatusOK, object{"name": g.operationName(name, t.ticket)})
		}
	case method == "fetchPredictOperation" && video && g.Vertex:
		g.getOperation(w, r)
	case method == "generateContent" || method == "predictLongRunning":
		g.record(r, nil)
		googleError(w, http.StatusNotFound, "NOT_FOUND",
			"models/"+name+" is not found for API version v1beta, or is not supported for "+method+".")
	default:
		g.unknownRoute(w, r)
	}
}

// generateImage answers with an image. A thought with a draft image comes first.
func (g *Gemini) generateImage(w http.ResponseWriter, r *http.Request) {
	body, ok := g.read(w, r, contentSchema(), "contents", "generationConfig")
	if !ok {
		return
	}
	t, ok := g.finish(w, r, body, "resp", 1)
	if !ok {
		return
	}
	picture := func(n int) object { return object{"inlineData": object{"mimeType": "image/png", "data": Picture(n)}} }
	draft := picture(0)
	draft["thought"] = true
	candidate := any(object{
		"index": 0, "finishReason": "STOP",
		"content": object{"role": "model", "parts": []any{draft, object{"text": "Here it is."}, picture(t.number)}},
	})
	if t.Failure != "" {
		candidate = json.RawMessage(t.Failure)
	}
	answerJSON(w, http.StatusOK, object{
		"candidates": []any{candidate}, "modelVersion": "fake", "responseId": t.ticket,
		"usageMetadata": object{"promptTokenCount": 8, "candidatesTokenCount": 1290, "totalTokenCount": 1298},
	})
}

func (g *Gemini) operationName(model, ticket string) string {
	name := "models/" + model + "/operations/" + ticket
	if g.Vertex {
		name = vertexProject + "/publishers/google/" + name
	}
	return name
}

// getOperation answers a poll. The operation's name is in the address, or in the body on Vertex AI.
func (g *Gemini) getOperation(w http.ResponseWriter, r *http.Request) {
	ticket, model := r.PathValue("id"), r.PathValue("model")
	if g.Vertex {
		var in struct {
			Name string `json:"operationName"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		ticket = in.Name[strings.LastIndexByte(in.Name, '/')+1:]
		model, _, _ = strings.Cut(r.PathValue("call"), ":")
	}
	answer := object{"name": g.operationName(model, ticket)}
	switch at, t := g.poll(w, ticket); at {
	case answered:
		return
	case unknown:
		googleError(w, http.StatusNotFound, "NOT_FOUND", "Operation not found.")
		return
	case running:
		answer["metadata"] = object{"@type": "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningMetadata"}
	case failed:
		_ = json.Unmarshal([]byte(t.Failure), &answer) // written by a test
		answer["done"] = true
	case done:
		answer["done"] = true
		if g.Vertex {
			answer["response"] = object{"videos": []any{object{"bytesBase64Encoded": Clip(), "mimeType": "video/mp4"}}}
			break
		}
		answer["response"] = object{"generateVideoResponse": object{"generatedSamples": []any{
			object{"video": object{"uri": g.URL() + "/files/" + ticket + ":download?alt=media"}},
		}}}
	}
	answerJSON(w, http.StatusOK, answer)
}

func (g *Gemini) createInteraction(w http.ResponseWriter, r *http.Request) {
	body, ok := g.read(w, r, omniSchema(), "model", "input", "background", "response_format")
	if !ok {
		return
	}
	if t, ok := g.submit(w, r, body, "v1_", 1); ok {
		answerJSON(w, http.StatusOK, object{"id": t.ticket, "object": "interaction", "status": "in_progress"})
	}
}

func (g *Gemini) getInteraction(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	g.answerPoll(w, ticket, polling{
		id: "id", status: "status", waiting: "in_progress", running: "in_progress", failed: "completed", done: "completed",
		members: object{"object": "interaction", "steps": []any{}},
		missing: func(w http.ResponseWriter) { noInteraction(w, ticket) },
		result: func(answer object, _ *task) {
			answer["steps"] = []any{
				object{"type": "thought", "content": []any{object{"type": "text", "text": "…"}}},
				object{"type": "model_output",
					"content": []any{object{"type": "video", "uri": g.URL() + "/files/" + ticket, "mime_type": "video/mp4"}}},
			}
		},
	})
}

func noInteraction(w http.ResponseWriter, ticket string) {
	googleError(w, http.StatusBadRequest, "INVALID_ARGUMENT", "Invalid interaction name: "+ticket)
}

func (g *Gemini) cancelInteraction(w http.ResponseWriter, r *http.Request) {
	ticket := r.PathValue("id")
	if g.remove(ticket) == nil {
		noInteraction(w, ticket)
		return
	}
	g.cancel(ticket)
	answerJSON(w, http.StatusOK, object{"id": ticket, "status": "cancelled"})
}

// getFile serves a clip if `alt=media` is set, otherwise the clip's description.
func (g *Gemini) getFile(w http.ResponseWriter, r *http.Request) {
	ticket, _, _ := strings.Cut(r.PathValue("file"), ":")
	if r.URL.Query().Get("alt") != "media" {
		answerJSON(w, http.StatusOK, object{"name": "files/" + ticket, "mimeType": "video/mp4"})
		return
	}
	g.serve(w, r, ticket, "video/mp4", Clip())
}
