// Package bfl owns calls to Black Forest Labs. FLUX pictures and clips are tasks, polled at an address
// from the response to the submission.
//
// Invariants:
//   - A call is sent at most once (by package exchange). A submission of several pictures is one
//     task per picture.
//   - The line's credential is sent to the line's own host. If that host is the vendor's, polling
//     addresses may name the vendor's other hosts, and these get the credential by https. A
//     result's host never gets the credential.
//   - A ticket holds the polling addresses and is enough for polling.
//   - A request for a feature without a field at the model is Unsuitable, never sent without the
//     feature.
package bfl

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "bfl"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.bfl.ai/v1"

// Limits of requests, in bytes.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
)

// maxSeed is the largest seed that NextSeed returns.
const maxSeed = 1<<32 - 1

// modelID matches the last segment of a model's path.
var modelID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,60}$`)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage, upstream.KindVideo)
}

// Adapter calls Black Forest Labs for one line. It is safe for concurrent use.
//
// Results are links: of pictures valid for ten minutes, of clips for two hours.
//
// Adapter does not implement jobcall.Finder, because the provider cannot look up a task by the
// gateway's key.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "X-Key", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// ParamRule implements jobcall.Generator. It allows the fields on the page of the model.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	rule := jobcall.OnlyParams(familyOf(task).params()...)
	if familyOf(task) == familyClip {
		return rule.Rename("audio", "generate_audio").Roles(jobrequest.Roles()...)
	}
	return rule
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if !modelID.MatchString(task.Model) {
		return nil, upstream.Unsuitable(task.Kind, "%.80q is no name of a model at bfl", task.Model)
	}
	if task.Mask != nil && familyOf(task) != familyFill {
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s takes no mask, flux-pro-1.0-fill does", task.Model)
	}
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	body, err := familyOf(task).body(ctx, task)
	if err != nil {
		return nil, err
	}
	if task.Prompt != "" {
		body["prompt"] = task.Prompt
	}
	task.AddExtraParams(body)
	return exchange.SubmitEach(max(task.Count, 1), func(i int) (string, *upstream.JobFailure, bool) { return a.submitOne(ctx, task, body, i) })
}

// submitOne submits one task and returns its ticket. again reports whether another submission may
// succeed.
func (a *Adapter) submitOne(ctx context.Context, task jobcall.Task, body map[string]any, call int) (
	ticket string, failure *upstream.JobFailure, again bool,
) {
	if seed, ok := body["seed"].(json.RawMessage); ok {
		body = maps.Clone(body)
		body["seed"] = input.NextSeed(seed, call, maxSeed)
	}
	reply, err := a.SubmitJSON(ctx, task.Kind, body, task.Model)
	if err != nil {
		return "", upstream.AsJobFailure(err), false
	}
	if !reply.OK() {
		return "", reply.SubmitFailure(task.Kind), false
	}
	ticket, ok := a.ticket(gjson.GetBytes(reply.Body, "polling_url").String())
	if !ok || !gjson.ValidBytes(reply.Body) {
		return "", upstream.MissingTicket("polling_url"), false
	}
	return ticket, nil, true
}
