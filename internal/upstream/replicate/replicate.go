// Package replicate owns calls to Replicate: its predictions, queries about them, their results,
// and uploads of files.
//
// Invariants:
//   - A submission is sent at most once (by package exchange), after the upload of its references.
//   - The line's credential is only sent to the line's own host.
//   - A ticket is the prediction's ID and is enough for polling.
//
// The adapter does not implement jobcall.Finder. A prediction has no key from the gateway: the list
// of predictions has the model, the input and the time, and two tasks may share all three. A wrong
// match would give a job another job's files.
package replicate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Provider is the adapter's name in the catalog.
const Provider = "replicate"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.replicate.com/v1"

// maxAnswer is the maximum length of a response, in bytes. A prediction repeats its input, with
// data URIs, and holds its logs.
const maxAnswer = 16 << 20

// The formats of a model's name: OWNER/NAME runs the newest version, OWNER/NAME:VERSION or just
// VERSION runs the given version, and deployments/OWNER/NAME runs a deployment.
var (
	modelName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	versionName  = regexp.MustCompile(`^(?:[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*:)?([0-9a-f]{64})$`)
	predictionID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, input.Check, upstream.KindImage, upstream.KindVideo)
}

// defaults returns the default field names of Replicate's models.
func defaults() input.Defaults {
	return input.Defaults{
		Fields: map[string]string{
			input.Prompt: "prompt", input.Count: "num_outputs",
			input.Image: "image", input.Images: "input_images", input.Video: "video", input.Mask: "mask",
			input.Size: "image_size", input.Width: "width", input.Height: "height",
			input.Ratio: "aspect_ratio", input.Resolution: "resolution", input.Duration: "duration",
			input.FirstFrame: "image", input.Subjects: "input_images", input.Audio: "generate_audio",
			input.Seed: "seed", input.Negative: "negative_prompt",
		},
		ImageSize: input.SizeRatio, VideoSize: input.SizeRatio, Duration: input.DurationNumber,
	}
}

// Adapter calls Replicate for one line. It is safe for concurrent use.
type Adapter struct {
	exchange.Plain
	options *input.Options
}

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	plain, err := exchange.OpenPlain(t, Info(), transport, "Authorization")
	if err != nil {
		return nil, err
	}
	options, err := input.Read(t.Options)
	if err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	plain.Limit = maxAnswer
	return &Adapter{plain, options}, nil
}

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	return a.options.Style(task, defaults()).ParamRule()
}

// Submit implements jobcall.Generator. It first uploads large references without an address, each
// in a separate call. After a failed upload, nothing was submitted.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	style := a.options.Style(task, defaults())
	address, version, ok := a.predictions(style.Model)
	if !ok {
		return nil, upstream.Unsuitable(task.Kind,
			"%q is not a model id at Replicate: OWNER/NAME, OWNER/NAME:VERSION, VERSION or deployments/OWNER/NAME", style.Model)
	}
	if size := largest(task); size > maxFile {
		return nil, upstream.Unsuitable(task.Kind, "a reference of %d bytes; at most %d can be uploaded", size, maxFile)
	}
	fields, err := style.Write(ctx, task, func(ctx context.Context, r jobcall.Reference) (string, error) {
		return a.referenceValue(ctx, task.Kind, r)
	})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(struct {
		Version string          `json:"version,omitempty"`
		Input   json.RawMessage `json:"input"`
	}{version, fields})
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "the body cannot be written: %w", err)
	}
	reply, err := a.Line.Submit(ctx, exchange.JobCall{Method: http.MethodPost, URL: address, Header: a.Header, Body: body, Limit: maxAnswer})
	if err != nil {
		return nil, err
	}
	if !reply.OK() {
		return nil, reply.SubmitFailure(task.Kind)
	}
	id := gjson.GetBytes(reply.Body, "id").String()
	if !gjson.ValidBytes(reply.Body) || !predictionID.MatchString(id) {
		failure := reply.SubmitFailure(task.Kind)
		failure.Lost = true // accepted, but without an ID
		return nil, failure
	}
	return &jobcall.TaskStatus{Ticket: id}, nil
}

// predictions returns the address for a model's predictions, and the version if the body must name
// the version. It returns false if model is not a model id.
func (a *Adapter) predictions(model string) (address *url.URL, version string, ok bool) {
	if m := versionName.FindStringSubmatch(model); m != nil {
		return a.Line.URL("predictions"), m[1], true
	}
	collection := "models"
	if rest, isDeployment := strings.CutPrefix(model, "deployments/"); isDeployment {
		collection, model = "deployments", rest
	}
	if !modelName.MatchString(model) {
		return nil, "", false
	}
	return a.Line.URL(collection, model, "predictions"), "", true
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	if !predictionID.MatchString(ticket) {
		return nil, upstream.UnknownTask(task.Kind, "the ticket cannot be read")
	}
	reply, err := a.Line.Query(ctx, a.Call(http.MethodGet, "predictions", ticket))
	if err != nil {
		return nil, err
	}
	switch {
	case reply.Status == http.StatusNotFound && gjson.ValidBytes(reply.Body):
		return nil, upstream.UnknownTask(task.Kind, "Replicate no longer knows the prediction")
	case !reply.OK(), !gjson.ValidBytes(reply.Body):
		return nil, reply.PollFailure()
	}
	doc := gjson.ParseBytes(reply.Body)
	switch doc.Get("status").String() {
	case "starting", "processing":
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	case "succeeded":
		results, failure := output(task, doc)
		if failure != nil {
			return nil, reply.Redact(failure)
		}
		return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, nil
	case "failed":
		return nil, reply.Redact(predictionFailure(task.Kind, reply, doc.Get("error").String()))
	case "canceled":
		return nil, reply.TaskFailure(task.Kind, "canceled", "the prediction was canceled at the provider")
	case "aborted":
		return nil, upstream.ExpiredTask(task.Kind, "aborted: the prediction did not start in time")
	default:
		return nil, reply.PollFailure()
	}
}

// Fetch implements jobcall.Generator.
func (a *Adapter) Fetch(ctx context.Context, _ jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	return a.Line.Fetch(ctx, r, a.Header)
}

// Cancel implements jobcall.Generator. It has no effect on an ended prediction.
func (a *Adapter) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	if !predictionID.MatchString(ticket) {
		return upstream.UnknownTask(task.Kind, "the ticket cannot be read")
	}
	return a.Line.Stop(ctx, a.Call(http.MethodPost, "predictions", ticket, "cancel"))
}
