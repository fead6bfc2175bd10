// Package xai owns calls to xAI for pictures and clips: new or edited pictures, returned in the
// response, and clips, polled. xAI's chat belongs to the `openai` provider.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - Output stopped by xAI's review is billed to the line all the same, so the task is not tried
//     again.
//   - A model's params never override the gateway's own fields (model, size, count, length, sound).
package xai

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "xai"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.x.ai/v1"

// Limits of requests, in bytes.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo)
}

// Values of the option `video_role`: the use of a reference video.
const (
	roleEdit   = "edit"   // edit the video
	roleExtend = "extend" // extend the video
)

func checkOptions(options map[string]any) error {
	return exchange.CheckTexts(options, Provider, map[string]func(string) error{"video_role": exchange.OneOf(roleEdit, roleExtend)})
}

// Adapter calls xAI for one line. It is safe for concurrent use.
//
// Adapter does not implement jobcall.Finder: after a lost response, xAI has no way to look up the
// task's ID.
type Adapter struct {
	exchange.Plain
	role string // the option video_role; if empty, videos are rejected
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter {
		p.Limit = 4 << 20
		return &Adapter{Plain: p, role: exchange.TextOption(t.Options, "video_role", "")}
	})
}

// Blocks implements jobcall.Generator.
func (a *Adapter) Blocks(task jobcall.Task) bool { return task.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator. It rejects reference audios and keyframes: they are
// unchecked addresses.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	forbidden := []string{"seed", "negative_prompt", "response_format", "video", "keyframes", "reference_audios", "storage_options", "output"}
	rule := jobcall.AllParamsExcept(forbidden...)
	switch {
	case task.Kind != upstream.KindVideo:
	case isNewer(task.Model):
		return rule.Rename("audio", "generate_audio").Roles(jobrequest.Roles()...)
	default:
		return rule.Roles(jobrequest.FirstFrame, jobrequest.Subject)
	}
	return rule
}

// isNewer reports whether a clip model is 1.5 or later: these models accept a last frame, have a
// setting for sound and make 1080p.
func isNewer(model string) bool { return !strings.HasSuffix(model, "grok-imagine-video") }

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		path []string
		body map[string]any
		err  error
	)
	if task.Mask != nil {
		return nil, upstream.Unsuitable(task.Kind, "xai takes no mask")
	}
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	hasVideo := slices.ContainsFunc(task.References, func(r jobcall.Reference) bool { return !r.Image() })
	switch {
	case task.Kind == upstream.KindImage:
		path, body, err = pictureRequest(ctx, task)
	case hasVideo:
		path, body, err = a.fromVideo(task)
	default:
		path = []string{"videos", "generations"}
		body, err = clip(ctx, task)
	}
	if err != nil {
		return nil, err
	}
	task.AddExtraParams(body)
	reply, err := a.SubmitJSON(ctx, task.Kind, body, path...)
	if err != nil {
		return nil, err
	}
	if task.Kind == upstream.KindImage {
		return readPictures(task, reply)
	}
	id := ""
	if reply.OK() && gjson.ValidBytes(reply.Body) {
		id = gjson.GetBytes(reply.Body, "request_id").String()
	}
	if !exchange.IsTicket(id) {
		return nil, submitFailure(task.Kind, reply)
	}
	return &jobcall.TaskStatus{Ticket: id}, nil
}

// image returns a reference as its address or as a data URI.
func image(ctx context.Context, r jobcall.Reference) (map[string]any, error) {
	link, err := input.Link(ctx, r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"url": link}, nil
}

// images returns pictures like image.
func images(ctx context.Context, task jobcall.Task, refs []jobcall.Reference) ([]map[string]any, error) {
	task.References = refs
	links, err := input.Pictures(ctx, task, Provider)
	var list []map[string]any
	for _, link := range links {
		list = append(list, map[string]any{"url": link})
	}
	return list, err
}
