package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// maxAssets is the maximum number of references of a clip of Veo. A single reference is the first
// frame.
const maxAssets = 3

// veoPaths are the paths of the further fields of clips.
var veoPaths = paramPaths{
	"seed":               {"parameters", "seed"},
	"negativePrompt":     {"parameters", "negativePrompt"},
	"personGeneration":   {"parameters", "personGeneration"},
	"generateAudio":      {"parameters", "generateAudio"},
	"enhancePrompt":      {"parameters", "enhancePrompt"},
	"fps":                {"parameters", "fps"},
	"compressionQuality": {"parameters", "compressionQuality"},
	"resizeMode":         {"parameters", "resizeMode"},
}

// submitVeo begins an operation.
func (a *Adapter) submitVeo(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	u, f := a.address(a.resource(task.Model), "predictLongRunning")
	if f != nil {
		return nil, invalidModel(f)
	}
	body, failure := veoBody(ctx, task)
	if failure != nil {
		return nil, failure
	}
	reply, err := a.line.Submit(ctx, exchange.JobCall{Method: http.MethodPost, URL: u, Header: a.header, Body: body, Limit: maxAnswer})
	if err != nil {
		return nil, err
	}
	return a.readTicket(reply, task.Kind, "name", isOperation)
}

// readTicket returns the ticket from the response to a submission: the value of member, if isTicket
// accepts the value.
func (a *Adapter) readTicket(reply *exchange.Reply, kind, member string, isTicket func(string) bool) (*jobcall.TaskStatus, error) {
	if !reply.OK() {
		return nil, submitFailure(reply, kind)
	}
	doc, _ := parseDocument(reply)
	if ticket := doc.Get(member).String(); isTicket(ticket) {
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	}
	failure := submitFailure(reply, kind)
	// A 2xx response without a ticket may still have started a task, unless the response has an
	// error.
	failure.Lost = !doc.Get("error").IsObject()
	return nil, failure
}

// veoBody returns the body of a submission.
func veoBody(ctx context.Context, task jobcall.Task) ([]byte, *upstream.JobFailure) {
	if task.Prompt == "" && len(task.References) != 1 {
		return nil, upstream.Unsuitable(task.Kind, "no prompt; the provider needs one unless there is a first frame")
	}
	parameters := map[string]any{"sampleCount": 1}
	if failure := setShape(parameters, task, "aspectRatio", "720p", "1080p", "4K"); failure != nil {
		return nil, failure
	}
	if task.Seconds > 0 {
		parameters["durationSeconds"] = task.Seconds
	}
	references, failure := readBlobs(ctx, task, maxAssets, "image/png", "image/jpeg", "image/webp")
	if failure != nil {
		return nil, failure
	}
	instance := map[string]any{"prompt": task.Prompt}
	var assets []any
	first, last, rest := task.SplitFrames()
	switch {
	case (first != nil || last != nil) && len(rest) > 0:
		return nil, upstream.Unsuitable(task.Kind, "frames beside references; the provider takes either")
	case last != nil && first == nil:
		return nil, upstream.Unsuitable(task.Kind, "a last frame without a first one")
	}
	for i, b := range references {
		image := map[string]any{"bytesBase64Encoded": b.data, "mimeType": b.kind}
		switch role := task.References[i].Role; {
		case role == jobrequest.LastFrame:
			instance["lastFrame"] = image
		case role == jobrequest.FirstFrame, role == "" && len(references) == 1:
			instance["image"] = image
		default:
			assets = append(assets, map[string]any{"image": image, "referenceType": "asset"})
		}
	}
	if assets != nil {
		instance["referenceImages"] = assets
	}
	body := map[string]any{"instances": []any{instance}, "parameters": parameters}
	veoPaths.set(body, task)
	raw, _ := json.Marshal(body) // cannot fail for maps, strings and bytes
	return raw, nil
}

// setShape sets the resolution and ratio of a clip. tiers are the model family's tiers. The user's
// pixels are expressed by tier and ratio, because the API has no pixels.
func setShape(to map[string]any, task jobcall.Task, ratio string, tiers ...string) *upstream.JobFailure {
	tier := task.Tier
	if tier == "2160p" {
		tier = "4K"
	}
	if !slices.Contains(tiers, tier) {
		return upstream.Unsuitable(task.Kind, "the tier %s; the provider makes %s", task.Tier, strings.Join(tiers, ", "))
	}
	to["resolution"] = strings.ToLower(tier)
	switch task.Ratio {
	case "":
	case "16:9", "9:16":
		to[ratio] = task.Ratio
	default:
		return upstream.Unsuitable(task.Kind, "the ratio %s; the provider makes 16:9 and 9:16", task.Ratio)
	}
	return nil
}

// vertexPrefix is the prefix of Vertex AI operations. These are polled at their model and return the
// clip itself.
const vertexPrefix = "projects/"

// isOperation reports whether name is an operation's name.
func isOperation(name string) bool {
	return len(name) <= 1024 && strings.Contains(name, "/operations/") && isPath(name)
}

// isPath reports whether name is safe in an address.
func isPath(name string) bool {
	for segment := range strings.SplitSeq(name, "/") {
		if !exchange.IsSafe(segment, "-_.~=") {
			return false
		}
	}
	return true
}

// pollVeo queries an operation.
func (a *Adapter) pollVeo(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	if !isOperation(ticket) {
		return nil, noTicket()
	}
	r := exchange.JobCall{Method: http.MethodGet, Header: a.header, Limit: maxAnswer}
	var f *upstream.Failure
	if strings.HasPrefix(ticket, vertexPrefix) {
		r.Method, r.Limit, r.AcquireRead = http.MethodPost, maxClip, task.AcquireRead
		r.Body, _ = json.Marshal(map[string]string{"operationName": ticket}) // cannot fail for strings
		r.URL, f = a.address(a.resource(task.Model), "fetchPredictOperation")
	} else {
		r.URL, f = a.address(ticket, "")
	}
	if f != nil {
		return nil, invalidModel(f)
	}
	reply, err := a.line.Query(ctx, r)
	if err != nil {
		return nil, err
	}
	p, failure := readOperation(reply, task.Kind, ticket)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return p, nil
}

// readOperation returns the status of an operation.
func readOperation(reply *exchange.Reply, kind, ticket string) (*jobcall.TaskStatus, *upstream.JobFailure) {
	doc, ok := parseDocument(reply)
	switch {
	case ok && reply.Status == http.StatusNotFound:
		return nil, upstream.UnknownTask(kind, "the provider does not know "+ticket)
	case !ok || !reply.OK():
		return nil, reply.PollFailure()
	case !doc.Get("name").Exists() && !doc.Get("done").Exists():
		return nil, reply.PollFailure()
	case !doc.Get("done").Bool():
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	case doc.Get("error").IsObject():
		return nil, taskFailure(kind, reply, doc.Get("error"))
	}
	response := doc.Get("response.generateVideoResponse")
	if !response.Exists() {
		response = doc.Get("response")
	}
	for _, list := range []string{"generatedSamples", "videos"} {
		for _, sample := range response.Get(list).Array() {
			if r, ok := readClip(sample); ok {
				return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{r}}, nil
			}
		}
	}
	if reasons := response.Get("raiMediaFilteredReasons"); response.Get("raiMediaFilteredCount").Int() > 0 || len(reasons.Array()) > 0 {
		reason := "the provider's safety system withheld the clip"
		if first := reasons.Get("0"); first.Type == gjson.String && first.Str != "" {
			reason = first.Str
		}
		return nil, upstream.ModerationFailure(kind, reason, true)
	}
	return nil, upstream.EmptyResult(kind, "the operation ended without a clip")
}

// readClip returns the result in a sample: an address, or the clip itself. A clip in a bucket of
// the provider cannot be downloaded with a key.
func readClip(sample gjson.Result) (jobcall.Result, bool) {
	if v := sample.Get("video"); v.IsObject() {
		sample = v
	}
	kind := sample.Get("mimeType").Str + sample.Get("mime_type").Str // operations, interactions
	if kind == "" {
		kind = "video/mp4"
	}
	if text := sample.Get("bytesBase64Encoded").Str; text != "" {
		data, err := base64.StdEncoding.DecodeString(text)
		return jobcall.Result{Data: data, Type: kind}, err == nil && len(data) > 0
	}
	return downloadLink(sample.Get("uri").Str, kind)
}

// downloadLink returns the result at an address. The API returns the bytes of its files only with a
// query parameter.
func downloadLink(address, kind string) (jobcall.Result, bool) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return jobcall.Result{}, false
	}
	if q := u.Query(); q.Get("alt") == "" && strings.Contains(u.Path, "/files/") {
		q.Set("alt", "media")
		u.RawQuery = q.Encode()
	}
	return jobcall.Result{Ref: u.String(), Type: kind}, true
}
