// Package xai owns the speech with xAI about pictures and clips: pictures, made
// or changed, come in the answer, clips are asked about. xAI's chat is the
// `openai` provider's.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it).
//   - The line's credential goes to the line's base address alone.
//   - What xAI's review stopped after it was made is billed to the line all the
//     same, so it is not tried again.
//   - What the gateway decides about (model, size, count, length, sound) is never
//     overridden by a model's params.
package xai

import (
	"context"
	"encoding/json"
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

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.x.ai/v1"

// Limits of what is sent and read, in bytes. Pictures are asked for as addresses.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
	maxAnswer  = 4 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo)
}

// What a video to work from is for, in the option `video_role`.
const (
	roleEdit   = "edit"   // the clip is the video, changed
	roleExtend = "extend" // the clip goes on with it
)

func checkOptions(options map[string]any) error {
	return exchange.Texts(options, Provider, map[string]func(string) error{"video_role": exchange.OneOf(roleEdit, roleExtend)})
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// It is no jobcall.Finder: xAI does not say under which id it accepted a call
// whose answer was lost.
type Adapter struct {
	exchange.Plain
	role string // of videos; empty: none is taken
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter {
		return &Adapter{Plain: p, role: exchange.Text(t.Options, "video_role", "")}
	})
}

// Blocks implements jobcall.Generator.
func (a *Adapter) Blocks(w jobcall.Task) bool { return w.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator. Reference audios and keyframes are
// addresses that nobody has looked at.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	own := []string{"seed", "negative_prompt", "response_format", "video", "keyframes", "reference_audios", "storage_options", "output"}
	rule := jobcall.AllBut(own...)
	switch {
	case w.Kind != upstream.KindVideo:
	case isNewer(w.Model):
		return rule.As("audio", "generate_audio").Roles(jobrequest.Roles()...)
	default:
		return rule.Roles(jobrequest.FirstFrame, jobrequest.Subject)
	}
	return rule
}

// isNewer tells whether a model of clips is one of 1.5 or later: these take a last
// frame, can be told to be silent and make 1080p.
func isNewer(model string) bool { return !strings.HasSuffix(model, "grok-imagine-video") }

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		path []string
		body map[string]any
		err  error
	)
	if w.Mask != nil {
		return nil, upstream.Unsuitable(w.Kind, "xai takes no mask")
	}
	if err := w.FitPictures(maxPicture, maxInline); err != nil {
		return nil, err
	}
	filmed := slices.ContainsFunc(w.References, func(r jobcall.Reference) bool { return !r.Image() })
	switch {
	case filmed && w.Kind == upstream.KindVideo:
		path, body, err = a.fromVideo(w)
	case filmed:
		err = upstream.Unsuitable(w.Kind, "xai makes no pictures from a video")
	case w.Kind == upstream.KindImage:
		path, body, err = pictures(ctx, w)
	case w.Kind == upstream.KindVideo:
		path = []string{"videos", "generations"}
		body, err = clip(ctx, w)
	default:
		err = upstream.Unsuitable(w.Kind, "xai makes no %q", w.Kind)
	}
	if err != nil {
		return nil, err
	}
	w.AddFurther(body)
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, upstream.Unsuitable(w.Kind, "params: %w", err)
	}
	reply, err := a.Line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL(path...), Header: a.Header, Body: raw, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	if w.Kind == upstream.KindImage {
		return readPictures(w, reply)
	}
	id := ""
	if reply.Good() && gjson.ValidBytes(reply.Body) {
		id = gjson.GetBytes(reply.Body, "request_id").String()
	}
	if !exchange.Ticket(id) {
		return nil, refused(w.Kind, reply)
	}
	return &jobcall.TaskStatus{Ticket: id}, nil
}

// image says a reference: its address, or itself as a data URI.
func image(ctx context.Context, r jobcall.Reference) (map[string]any, error) {
	link, err := input.Link(ctx, r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"url": link}, nil
}

// images says several references.
func images(ctx context.Context, refs []jobcall.Reference) ([]map[string]any, error) {
	var list []map[string]any
	for _, r := range refs {
		one, err := image(ctx, r)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}
