// Package minimax owns the speech with MiniMax: pictures, which come in the
// answer as links, and Hailuo clips by the second video interface, which are
// tasks that are polled.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it).
//   - The line's credential goes to the line's base address alone.
//   - An answer with a good status is an error if its `base_resp` says so.
//   - What a model has no field for is Unsuitable, never left out.
package minimax

import (
	"context"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "minimax"

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.minimax.io"

// Limits of what is sent and read, in bytes. Answers name results and hold none.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
	maxAnswer  = 1 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage, upstream.KindVideo)
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// Results are links. They hold for a day.
//
// It is no jobcall.Finder: tasks are known by the provider's names alone.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// Blocks implements jobcall.Generator: pictures come in the answer, clips do not.
func (a *Adapter) Blocks(w jobcall.Task) bool { return w.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	if w.Kind == upstream.KindVideo {
		rule := jobcall.Only("aigc_watermark").Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
		if of, _ := modelOf(w.Model); of.shows {
			return rule.Roles(jobrequest.Roles()...)
		}
		return rule
	}
	return jobcall.Only("seed", "prompt_optimizer", "aigc_watermark")
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	if w.Mask != nil {
		return nil, upstream.Unsuitable(w.Kind, "minimax takes no mask")
	}
	if err := w.FitPictures(maxPicture, maxInline); err != nil {
		return nil, err
	}
	if w.Kind == upstream.KindVideo {
		return a.film(ctx, w)
	}
	return a.paint(ctx, w)
}

// post is a submission to a path below the base address.
func (a *Adapter) post(body []byte, path ...string) exchange.JobCall {
	return exchange.JobCall{Method: http.MethodPost, URL: a.Line.URL(path...), Header: a.Header, Body: body, Limit: maxAnswer}
}
