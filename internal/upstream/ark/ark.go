// Package ark owns the speech with Ark, the model service of Volcengine and
// BytePlus: Seedream pictures, which come in the answer to the call, and
// Seedance clips, which are tasks that are polled.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it). A submission
//     of several pictures is one call a picture, each sent once.
//   - The line's credential goes to the line's base address alone.
//   - No more pictures come back than were asked for.
//   - What the gateway decides about (model, size, count, where answers go) is
//     never overridden by a model's params.
package ark

import (
	"context"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "ark"

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://ark.ap-southeast.bytepluses.com/api/v3"

// Limits of what is sent and read, in bytes. Ark takes no picture beyond
// maxPicture and no body beyond 64 MB, which leaves maxInline for pictures in it;
// what it answers names its results and does not hold them.
const (
	maxPicture = 10 << 20
	maxInline  = 60 << 20
	maxAnswer  = 1 << 20
)

// The values of the option image_role: what the pictures that a clip is made from
// are.
const (
	roleAuto      = "auto"
	roleFrame     = "frame"
	roleReference = "reference"
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo)
}

func checkOptions(options map[string]any) error {
	return exchange.Texts(options, Provider, map[string]func(string) error{
		"image_role": exchange.OneOf(roleAuto, roleFrame, roleReference),
	})
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// Results are links. They hold for a day, and a clip's next poll brings a fresh
// one.
//
// It is no jobcall.Finder: Ark's list of tasks shows neither a key of ours nor
// the prompt, so that a task found by its time could be another job's.
type Adapter struct {
	exchange.Plain
	imageRole string
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter {
		return &Adapter{Plain: p, imageRole: exchange.Text(t.Options, "image_role", roleAuto)}
	})
}

// Blocks implements jobcall.Generator: pictures come in the answer, clips do not.
func (a *Adapter) Blocks(w jobcall.Task) bool { return w.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	if w.Kind == upstream.KindVideo {
		rule := jobcall.AllBut("model", "content", "resolution", "duration", "ratio", "frames", "callback_url", "negative_prompt")
		if !silent.MatchString(w.Model) {
			rule = rule.As("audio", "generate_audio")
		}
		return rule.Roles(jobrequest.Roles()...)
	}
	return jobcall.AllBut("model", "prompt", "size", "response_format", "stream", "image", "n",
		"sequential_image_generation_options", "callback_url", "negative_prompt")
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	if w.Mask != nil {
		return nil, upstream.Unsuitable(w.Kind, "ark takes no mask")
	}
	if err := w.FitPictures(maxPicture, maxInline); err != nil {
		return nil, err
	}
	switch w.Kind {
	case upstream.KindImage:
		return a.paint(ctx, w)
	case upstream.KindVideo:
		return a.film(ctx, w)
	}
	return nil, upstream.Unsuitable(w.Kind, "ark makes no %q", w.Kind)
}

// post is a submission to a path below the base address.
func (a *Adapter) post(body []byte, path ...string) exchange.JobCall {
	return exchange.JobCall{Method: http.MethodPost, URL: a.Line.URL(path...), Header: a.Header, Body: body, Limit: maxAnswer}
}
