package minimax

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// pace is the time between two polls, as requested by the provider.
const pace = 10 * time.Second

// Bounds of a clip.
const (
	maxSeconds       = 15
	maxShownPictures = 9
	maxShownVideos   = 3
)

func clipRatios() []string { return []string{"21:9", "16:9", "4:3", "1:1", "3:4", "9:16"} }

// model holds the features of a model of version 2 of the interface.
type model struct {
	tiers           map[string]string // the provider's spelling by tier
	minSeconds      int64
	takesReferences bool // accepts reference pictures and videos of subjects
}

// modelOf returns the features of a model of version 2 of the interface, or false for any other
// model, also for the models of version 1 (MiniMax-Hailuo-…).
func modelOf(name string) (model, bool) {
	switch name {
	case "MiniMax-H3":
		return model{tiers: map[string]string{"768p": "768P", "2K": "2K"}, minSeconds: 4, takesReferences: true}, true
	case "MiniMax-H3-Max":
		return model{tiers: map[string]string{"480p": "480P", "768p": "768P"}, minSeconds: 5}, true
	}
	return model{}, false
}

// submitVideo submits a clip.
func (a *Adapter) submitVideo(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := clipBody(ctx, w)
	if err != nil {
		return nil, err
	}
	reply, err := a.SubmitJSON(ctx, w.Kind, body, "v2", "video_generation")
	if err != nil {
		return nil, err
	}
	if failure := submitFailure(w.Kind, reply); failure != nil {
		return nil, failure
	}
	ticket, failure := reply.ReadTicket("task_id")
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}

// clipBody returns the body for a clip.
func clipBody(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	m, ok := modelOf(w.Model)
	tier := m.tiers[w.Tier]
	switch {
	case !ok:
		return nil, upstream.Unsuitable(w.Kind, "minimax's model %.80q is unknown", w.Model)
	case tier == "":
		return nil, upstream.Unsuitable(w.Kind, "minimax's model %s does not make %q", w.Model, w.Tier)
	case w.Exact:
		return nil, upstream.Unsuitable(w.Kind, "minimax takes a resolution and a ratio, no pixels")
	case w.Seconds != 0 && (w.Seconds < m.minSeconds || w.Seconds > maxSeconds):
		return nil, upstream.Unsuitable(w.Kind, "minimax's model %s makes %d to %d seconds, not %d",
			w.Model, m.minSeconds, maxSeconds, w.Seconds)
	case w.Ratio != "" && !slices.Contains(clipRatios(), w.Ratio):
		return nil, upstream.Unsuitable(w.Kind, "minimax's model %s does not make %s", w.Model, w.Ratio)
	}
	content, err := m.content(ctx, w)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"model": w.Model, "content": content, "resolution": tier}
	if w.Seconds > 0 {
		body["duration"] = w.Seconds
	}
	if w.Ratio != "" {
		body["ratio"] = w.Ratio
	}
	w.AddFurther(body)
	return body, nil
}

// media is an item of a clip's content.
type media struct {
	Type  string  `json:"type"`
	Text  *string `json:"text,omitempty"`
	Image *link   `json:"image_url,omitempty"`
	Video *link   `json:"video_url,omitempty"`
	Role  string  `json:"role,omitempty"`
}

// link is an address in a clip's content.
type link struct {
	URL string `json:"url"`
}

// content returns the prompt, even if empty, and the references. Without roles, one picture is the
// first frame and two are the first and the last frame. Three or more pictures, pictures beside a
// video, and pictures of a clip with a ratio are references: MiniMax accepts no ratio beside
// frames.
func (m model) content(ctx context.Context, w jobcall.Task) ([]media, error) {
	list := []media{{Type: "text", Text: &w.Prompt}}
	videos := 0
	for _, r := range w.References {
		if !r.Image() {
			videos++
		}
	}
	first, last, rest := w.SplitFrames()
	if !w.HasRoles() && w.Ratio == "" {
		first, last, rest = w.Frames()
	}
	switch {
	case len(rest) > 0 && !m.takesReferences, first != nil && w.Ratio != "":
		return nil, upstream.Unsuitable(w.Kind, "minimax's model %s takes a first and a last frame, without a ratio", w.Model)
	case first == nil && last != nil, first != nil && len(rest) > 0:
		return nil, upstream.Unsuitable(w.Kind, "minimax takes either frames or references, and a last frame only with a first frame")
	case videos > maxShownVideos || len(w.References)-videos > maxShownPictures:
		return nil, upstream.Unsuitable(w.Kind, "minimax takes up to %d pictures and %d videos", maxShownPictures, maxShownVideos)
	}
	for _, frame := range []struct {
		role string
		ref  *jobcall.Reference
	}{{"first_frame", first}, {"last_frame", last}} {
		if frame.ref == nil {
			continue
		}
		address, err := input.Link(ctx, *frame.ref)
		if err != nil {
			return nil, err
		}
		list = append(list, media{Type: "image_url", Image: &link{address}, Role: frame.role})
	}
	for _, r := range rest {
		if !r.Image() {
			if r.URL == "" {
				return nil, upstream.Unsuitable(w.Kind, "minimax fetches videos from an address: the media host must be public")
			}
			list = append(list, media{Type: "video_url", Video: &link{r.URL}, Role: "reference_video"})
			continue
		}
		address, err := input.Link(ctx, r)
		if err != nil {
			return nil, err
		}
		list = append(list, media{Type: "image_url", Image: &link{address}, Role: "reference_image"})
	}
	return list, nil
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, w.Kind, ticket, "v2", "query", "video_generation")
	if err != nil {
		return nil, err
	}
	task := gjson.GetBytes(reply.Body, "task")
	switch status := task.Get("status"); strings.ToLower(status.String()) {
	case "":
		return nil, reply.Silent()
	case "succeeded":
		status, failure := exchange.SuccessStatus(w.Kind, ticket, task.Get("content.url"), 1)
		if failure != nil {
			return nil, failure
		}
		return status, nil
	case "failed":
		return nil, reply.Redact(taskFailure(w.Kind, reply, task.Get("error")))
	case "cancelled":
		return nil, reply.TaskFailure(w.Kind, "", "cancelled at the provider")
	case "expired":
		return nil, upstream.ExpiredTask(w.Kind, "the task expired at the provider")
	}
	return &jobcall.TaskStatus{Ticket: ticket, Wait: pace}, nil // also for an unknown status: the line's longest wait bounds the polls
}
