// Package runway owns the speech with Runway: clips and pictures of its own models
// and of others that it resells, all of which are tasks.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it).
//   - The line's credential goes to the line's base address alone.
//   - A size is said in pixels, out of those that the model has (size.go): the
//     tier that is paid for is the one that is asked for.
//   - What the gateway decides about (model, size, length, sound) is never
//     overridden by a model's params.
package runway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "runway"

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.dev.runwayml.com"

// version is the interface that is spoken.
const version = "2024-11-06"

// Limits of what is sent and read, in bytes.
const (
	maxURI    = 5 << 20 // of a data URI
	maxAnswer = 1 << 20
)

// maxReferences is how many pictures a picture can be made from.
const maxReferences = 3

// pace is how often Runway wants to be asked.
const pace = 5 * time.Second

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{upstream.KindImage, upstream.KindVideo},
		DefaultBaseURL: defaultBaseURL,
		NeedsKey:       true,
		CheckOptions:   exchange.NoOptions(Provider),
	}
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// Results are links. They hold for a day or two, and a poll brings fresh ones.
//
// It is no jobcall.Finder: Runway does not say under which id it accepted a call
// whose answer was lost.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line. It fails when the base address is no
// http(s) URL with a host, or has credentials or a query in it, and for options.
// Calls go over transport: exchange.NewTransport makes the one to use.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	plain, err := exchange.OpenPlain(t, Info(), transport, "Authorization")
	if err != nil {
		return nil, err
	}
	plain.Header.Set("X-Runway-Version", version)
	return &Adapter{plain}, nil
}

// Blocks implements jobcall.Generator: all works are tasks.
func (a *Adapter) Blocks(jobcall.Task) bool { return false }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	names, f := []string{"contentModeration"}, familyOf(w.Kind, w.Model)
	if f.seed {
		names = append(names, "seed")
	}
	rule := jobcall.Only(names...)
	if f.sound {
		rule = rule.As("audio", "audio")
	}
	if f.negative {
		rule = rule.As("negative_prompt", "negativePrompt")
	}
	switch {
	case w.Kind == upstream.KindImage:
		return rule
	case f.last:
		return rule.Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
	}
	return rule.Roles(jobrequest.FirstFrame)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		path string
		body map[string]any
		err  error
	)
	for i, r := range w.References {
		switch {
		case !r.Image():
			return nil, upstream.Unsuitable(w.Kind, "runway's models are asked for nothing that is made from a video")
		case r.URL == "" && (r.Size+2)/3*4 > maxURI-64:
			return nil, upstream.Unfit(w.Kind, "Reference %d has more bytes than the provider takes of an image.", i+1)
		}
	}
	switch {
	case w.Mask != nil:
		err = upstream.Unsuitable(w.Kind, "runway takes no mask")
	case w.Kind == upstream.KindImage:
		path = "text_to_image"
		body, err = picture(ctx, w)
	case w.Kind == upstream.KindVideo:
		path, body, err = clip(ctx, w)
	default:
		err = upstream.Unsuitable(w.Kind, "runway makes no %q", w.Kind)
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
		Method: http.MethodPost, URL: a.Line.URL("v1", path), Header: a.Header, Body: raw, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	id := ""
	if reply.Good() && gjson.ValidBytes(reply.Body) {
		id = gjson.GetBytes(reply.Body, "id").String()
	}
	if !exchange.Ticket(id) {
		return nil, refused(w.Kind, reply)
	}
	return &jobcall.TaskStatus{Ticket: id, Wait: pace}, nil
}

// start is what every request says.
func start(w jobcall.Task, f family, from bool) (map[string]any, error) {
	size, ok := f.size(w, from)
	if !ok {
		return nil, upstream.Unsuitable(w.Kind, "runway's model %s makes no %s at %q this way", w.Model, w.Tier, w.Ratio)
	}
	body := map[string]any{"model": w.Model, "ratio": size}
	if w.Prompt != "" {
		body["promptText"] = w.Prompt
	}
	return body, nil
}

// clip says a clip: of a text, or of frames. Where the user gave them no roles,
// one picture is the first frame and two are the first and the last.
func clip(ctx context.Context, w jobcall.Task) (path string, body map[string]any, err error) {
	f := familyOf(w.Kind, w.Model)
	frames := w.References
	if first, last, _ := w.Framed(); last != nil {
		if first == nil {
			return "", nil, upstream.Unsuitable(w.Kind, "a last frame without a first one")
		}
		frames = []jobcall.Reference{*first, *last}
	}
	switch {
	case len(frames) > 2, len(frames) == 2 && !f.last:
		return "", nil, upstream.Unsuitable(w.Kind, "%d frames, which runway's model %s does not take", len(frames), w.Model)
	case len(frames) == 0 && (f.framed || w.Prompt == ""):
		return "", nil, upstream.Unsuitable(w.Kind, "runway's model %s needs a first frame, or others a prompt", w.Model)
	}
	if body, err = start(w, f, len(frames) > 0); err != nil {
		return "", nil, err
	}
	if w.Seconds > 0 {
		body["duration"] = w.Seconds
	}
	if len(frames) == 0 {
		return "text_to_video", body, nil
	}
	var said []map[string]string
	for i, r := range frames {
		uri, err := input.Link(ctx, r)
		if err != nil {
			return "", nil, err
		}
		said = append(said, map[string]string{"uri": uri, "position": [...]string{"first", "last"}[i]})
	}
	body["promptImage"] = said
	return "image_to_video", body, nil
}

// picture says a picture. References are tagged image_1, image_2 and so on: the
// prompt may cite them as @image_1.
func picture(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	f := familyOf(w.Kind, w.Model)
	switch {
	case w.Count > 1:
		return nil, upstream.Unsuitable(w.Kind, "%d images; runway makes one a task", w.Count)
	case len(w.References) > maxReferences, f.framed && len(w.References) == 0:
		return nil, upstream.Unsuitable(w.Kind, "%d references are not what runway's model %s takes", len(w.References), w.Model)
	}
	body, err := start(w, f, len(w.References) > 0)
	if err != nil {
		return nil, err
	}
	var said []map[string]string
	for i, r := range w.References {
		uri, err := input.Link(ctx, r)
		if err != nil {
			return nil, err
		}
		said = append(said, map[string]string{"uri": uri, "tag": fmt.Sprintf("image_%d", i+1)})
	}
	if said != nil {
		body["referenceImages"] = said
	}
	return body, nil
}

// task is a request about a task that was accepted.
func (a *Adapter) task(method, ticket string) exchange.JobCall {
	return exchange.JobCall{Method: method, URL: a.Line.URL("v1", "tasks", ticket), Header: a.Header, Limit: maxAnswer}
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	if !exchange.Ticket(ticket) {
		return nil, upstream.Vanished(w.Kind, "no name of a task")
	}
	reply, err := a.Line.Query(ctx, a.task(http.MethodGet, ticket))
	if err != nil {
		return nil, err
	}
	status, failure := readTask(w, ticket, reply)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return status, nil
}

// Cancel implements jobcall.Generator. What has ended is deleted by it.
func (a *Adapter) Cancel(ctx context.Context, _ jobcall.Task, ticket string) error {
	if !exchange.Ticket(ticket) {
		return nil
	}
	return a.Line.Stop(ctx, a.task(http.MethodDelete, ticket))
}
