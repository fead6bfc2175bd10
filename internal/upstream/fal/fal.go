// Package fal owns calls to fal: submissions to its queue, queries about them, and their results.
//
// Invariants:
//   - A submission is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's own host, because addresses from the provider
//     are used only if they are on the line's own host.
//   - A ticket is enough for polling, even after a change of the catalog.
//   - A completed request may still be a failure; its result decides.
//
// The adapter does not implement jobcall.Finder, because fal does not store the gateway's key of a
// submission.
package fal

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Provider is the adapter's name in the catalog.
const Provider = "fal"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://queue.fal.run"

// Limits of responses and requests, in bytes.
const (
	maxAnswer = 4 << 20
	maxInline = 30 << 20 // for all inline references together
)

// filePreference tells fal to delete the files of a task a day after its end. By then they were copied,
// or the job has failed.
const filePreference = `{"expiration_duration_seconds":86400}`

// modelID matches OWNER/ALIAS[/PATH…], with an optional namespace before it.
var modelID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){1,7}$`)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, input.Check, upstream.KindImage, upstream.KindVideo)
}

// defaults returns the default field names of fal's models.
func defaults() input.Defaults {
	return input.Defaults{
		Fields: map[string]string{
			input.Prompt: "prompt", input.Count: "num_images",
			input.Image: "image_url", input.Images: "image_urls", input.Video: "video_url", input.Videos: "video_urls", input.Mask: "mask_url",
			input.Size: "image_size", input.Width: "width", input.Height: "height",
			input.Ratio: "aspect_ratio", input.Resolution: "resolution", input.Duration: "duration",
			input.FirstFrame: "image_url", input.Subjects: "image_urls", input.Audio: "generate_audio",
			input.Seed: "seed", input.Negative: "negative_prompt",
		},
		ImageSize: input.SizeObject, VideoSize: input.SizeRatio, Duration: input.DurationText,
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	exchange.Plain
	options      *input.Options
	submitHeader http.Header
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
	plain.Header.Set("Authorization", "Key "+t.Key)
	submitHeader := plain.Header.Clone()
	submitHeader.Set("X-Fal-Object-Lifecycle-Preference", filePreference)
	return &Adapter{plain, options, submitHeader}, nil
}

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	return a.options.Style(task, defaults()).ParamRule()
}

// Submit implements jobcall.Generator. The queue accepts any body; the result reports the model's
// errors.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	style := a.options.Style(task, defaults())
	if !modelID.MatchString(style.Model) {
		return nil, upstream.Unsuitable(task.Kind, "%q is not a model id at fal: OWNER/ALIAS or OWNER/ALIAS/PATH", style.Model)
	}
	if size := inlineBytes(task); size > maxInline {
		return nil, upstream.Unsuitable(task.Kind, "references of %d bytes, at most %d can go inline", size, maxInline)
	}
	body, err := style.Write(ctx, task, input.Link)
	if err != nil {
		return nil, err
	}
	reply, err := a.Line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL(style.Model), Header: a.submitHeader, Body: body, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	if !reply.OK() {
		return nil, submitFailure(task.Kind, reply)
	}
	t, ok := a.newTicket(style.Model, reply.Body)
	if !ok {
		failure := reply.SubmitFailure(task.Kind)
		failure.Lost = true // accepted, but without a request ID
		return nil, failure
	}
	return &jobcall.TaskStatus{Ticket: t.String()}, nil
}

// inlineBytes returns the number of bytes of a task's references that must be sent inline.
func inlineBytes(task jobcall.Task) int64 {
	var size int64
	if task.Mask != nil && task.Mask.URL == "" {
		size = task.Mask.Size
	}
	for _, r := range task.References {
		if r.URL == "" {
			size += r.Size
		}
	}
	return size
}

// Poll implements jobcall.Generator. It queries the status and, if the request is completed, the
// result.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, text string) (*jobcall.TaskStatus, error) {
	t, ok := readTicket(text)
	if !ok {
		return nil, upstream.UnknownTask(task.Kind, "the ticket cannot be read")
	}
	reply, err := a.Line.Query(ctx, exchange.JobCall{
		Method: http.MethodGet, URL: a.address(t.Status, t, "status"), Header: a.Header, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	switch {
	case reply.Status == http.StatusNotFound && isFromFal(reply):
		return nil, upstream.UnknownTask(task.Kind, "fal no longer knows the request")
	case !reply.OK():
		return nil, reply.PollFailure()
	}
	switch status := gjson.GetBytes(reply.Body, "status").String(); status {
	case "IN_QUEUE", "IN_PROGRESS":
		return &jobcall.TaskStatus{Ticket: text}, nil
	case "COMPLETED":
		return a.result(ctx, task, t, text)
	default:
		return nil, reply.PollFailure()
	}
}

// result queries the result of a completed request.
func (a *Adapter) result(ctx context.Context, task jobcall.Task, t ticket, text string) (*jobcall.TaskStatus, error) {
	reply, err := a.Line.Query(ctx, exchange.JobCall{
		Method: http.MethodGet, URL: a.address(t.Response, t), Header: a.Header, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	if failure := taskFailure(task.Kind, reply); failure != nil {
		return nil, failure
	}
	results, failure := outputFiles(task, reply)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return &jobcall.TaskStatus{Ticket: text, Done: true, Results: results}, nil
}

// Fetch implements jobcall.Generator. Files are on a separate host and need no credential.
func (a *Adapter) Fetch(ctx context.Context, _ jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	return a.Line.Fetch(ctx, r, a.Header)
}

// Cancel implements jobcall.Generator. It returns nil for a completed or unknown request.
func (a *Adapter) Cancel(ctx context.Context, task jobcall.Task, text string) error {
	t, ok := readTicket(text)
	if !ok {
		return upstream.UnknownTask(task.Kind, "the ticket cannot be read")
	}
	reply, err := a.Line.Query(ctx, exchange.JobCall{
		Method: http.MethodPut, URL: a.address(t.Cancel, t, "cancel"), Header: a.Header, Limit: maxAnswer,
	})
	switch {
	case err != nil:
		return err
	case reply.OK(), reply.Status == http.StatusNotFound, strings.Contains(string(reply.Body), "ALREADY_COMPLETED"):
		return nil
	}
	return reply.PollFailure()
}
