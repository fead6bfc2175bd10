// Package minimax owns calls to MiniMax. Pictures are returned in the response as links. Hailuo clips
// are polled as tasks of version 2 of the video interface. Speech is streamed.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - A response with a good status is an error if its `base_resp` has an error.
//   - A request for a feature without a field at the model is Unsuitable, never sent without the
//     feature.
package minimax

import (
	"context"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "minimax"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.minimax.io"

// Limits of requests, in bytes.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, voice.CheckOptions(Provider), voice.Kind, upstream.KindImage, upstream.KindVideo)
}

// Adapter calls MiniMax for one line. It is safe for concurrent use.
//
// Results are links, valid for a day.
//
// Adapter does not implement jobcall.Finder, because MiniMax finds a task only by its own task ID.
type Adapter struct {
	exchange.Plain
	options map[string]any
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization",
		func(p exchange.Plain) *Adapter { return &Adapter{p, t.Options} })
}

// Blocks implements jobcall.Generator. Pictures come in the response; clips are polled.
func (a *Adapter) Blocks(task jobcall.Task) bool { return task.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	if task.Kind == upstream.KindVideo {
		rule := jobcall.OnlyParams("aigc_watermark").Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
		if m, _ := modelOf(task.Model); m.takesReferences {
			return rule.Roles(jobrequest.Roles()...)
		}
		return rule
	}
	return jobcall.OnlyParams("seed", "prompt_optimizer", "aigc_watermark")
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if task.Mask != nil {
		return nil, upstream.Unsuitable(task.Kind, "minimax takes no mask")
	}
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	if task.Kind == upstream.KindVideo {
		return a.submitVideo(ctx, task)
	}
	return a.submitImages(ctx, task)
}
