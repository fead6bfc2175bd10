// Package ark owns calls to Ark, the model service of Volcengine and BytePlus. Seedream pictures are
// returned in the response, and Seedance clips are polled as tasks.
//
// Invariants:
//   - A call is sent at most once (by package exchange). A submission of several pictures is one
//     call per picture, each sent once.
//   - The line's credential is only sent to the line's base address.
//   - Submit never returns more pictures than requested.
//   - A model's params never override the gateway's own fields (model, size, count, delivery of
//     results).
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

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://ark.ap-southeast.bytepluses.com/api/v3"

// Limits of requests, in bytes. Ark rejects pictures above maxPicture and bodies above 64 MB, which
// leaves maxInline for pictures in a body.
const (
	maxPicture = 10 << 20
	maxInline  = 60 << 20
)

// Values of the option image_role, which sets the role of pictures for a clip.
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
	return exchange.CheckTexts(options, Provider, map[string]func(string) error{
		"image_role": exchange.OneOf(roleAuto, roleFrame, roleReference),
	})
}

// Adapter calls Ark for one line. It is safe for concurrent use.
//
// Results are links, valid for a day. The next poll of a clip returns a fresh link.
//
// Adapter does not implement jobcall.Finder, because Ark's list of tasks has neither the gateway's
// key nor the prompt, and a task found by its time could belong to another job.
type Adapter struct {
	exchange.Plain
	imageRole string
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter {
		return &Adapter{Plain: p, imageRole: exchange.TextOption(t.Options, "image_role", roleAuto)}
	})
}

// Blocks implements jobcall.Generator. Pictures come in the response; clips are polled.
func (a *Adapter) Blocks(task jobcall.Task) bool { return task.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	if task.Kind == upstream.KindVideo {
		rule := jobcall.AllParamsExcept("model", "content", "resolution", "duration", "ratio", "frames", "callback_url", "negative_prompt")
		if !soundless.MatchString(task.Model) {
			rule = rule.Rename("audio", "generate_audio")
		}
		return rule.Roles(jobrequest.Roles()...)
	}
	return jobcall.AllParamsExcept("model", "prompt", "size", "response_format", "stream", "image", "n",
		"sequential_image_generation_options", "callback_url", "negative_prompt")
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if task.Mask != nil {
		return nil, upstream.Unsuitable(task.Kind, "ark takes no mask")
	}
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	if task.Kind == upstream.KindVideo {
		return a.submitVideo(ctx, task)
	}
	return a.submitImages(ctx, task)
}
