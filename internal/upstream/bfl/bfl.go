// Package bfl owns the speech with Black Forest Labs: FLUX pictures and clips,
// which are tasks that are polled at an address that each submission names.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it). A submission of
//     several pictures is one task a picture.
//   - The line's credential goes to the line's own host and, where that is the
//     vendor's, to the vendor's other hosts by https, which polling addresses
//     name; never to a host of results.
//   - A ticket holds the polling addresses: all that polling needs.
//   - What a model has no field for is Unsuitable, never left out.
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

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.bfl.ai/v1"

// Limits of what is sent and read, in bytes. Answers name results and hold none.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
	maxAnswer  = 1 << 20
)

// maxSeed is the largest seed that is counted up to.
const maxSeed = 1<<32 - 1

// modelID is the last step of a model's path.
var modelID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,60}$`)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage, upstream.KindVideo)
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// Results are links. Those of pictures hold for ten minutes, those of clips for
// two hours.
//
// It is no jobcall.Finder: tasks are known by the provider's names alone.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "X-Key", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// Blocks implements jobcall.Generator: all of it is polled.
func (a *Adapter) Blocks(jobcall.Task) bool { return false }

// ParamRule implements jobcall.Generator: fields that a model's page names.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	rule := jobcall.Only(familyOf(w).params()...)
	if familyOf(w) == familyClip {
		return rule.As("audio", "generate_audio").Roles(jobrequest.Roles()...)
	}
	return rule
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	if !modelID.MatchString(w.Model) {
		return nil, upstream.Unsuitable(w.Kind, "%.80q is no name of a model at bfl", w.Model)
	}
	if w.Mask != nil && familyOf(w) != familyFill {
		return nil, upstream.Unsuitable(w.Kind, "bfl's model %s takes no mask, flux-pro-1.0-fill does", w.Model)
	}
	if err := w.FitPictures(maxPicture, maxInline); err != nil {
		return nil, err
	}
	body, err := familyOf(w).body(ctx, w)
	if err != nil {
		return nil, err
	}
	if w.Prompt != "" {
		body["prompt"] = w.Prompt
	}
	w.AddFurther(body)
	return exchange.SubmitEach(max(w.Count, 1), func(i int) (string, *upstream.JobFailure, bool) { return a.one(ctx, w, body, i) })
}

// one submits one task and returns its ticket. Again says whether another one
// may fare better.
func (a *Adapter) one(ctx context.Context, w jobcall.Task, body map[string]any, call int) (
	ticket string, failure *upstream.JobFailure, again bool,
) {
	if seed, ok := body["seed"].(json.RawMessage); ok {
		body = maps.Clone(body)
		body["seed"] = input.NextSeed(seed, call, maxSeed)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", upstream.Unsuitable(w.Kind, "params: %w", err), false
	}
	reply, err := a.Line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL(w.Model), Header: a.Header, Body: raw, Limit: maxAnswer,
	})
	if err != nil {
		return "", upstream.AsJobFailure(err), false
	}
	if !reply.Good() {
		return "", reply.Refused(w.Kind), false
	}
	ticket, ok := a.ticket(gjson.GetBytes(reply.Body, "polling_url").String())
	if !ok || !gjson.ValidBytes(reply.Body) {
		return "", upstream.Nameless("polling_url"), false
	}
	return ticket, nil, true
}
