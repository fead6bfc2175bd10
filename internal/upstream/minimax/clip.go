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

// pollInterval is the time between two polls, as requested by the provider.
const pollInterval = 10 * time.Second

// Bounds of a clip.
const (
	maxSeconds           = 15
	maxReferencePictures = 9
	maxReferenceVideos   = 3
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
func (a *Adapter) submitVideo(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := clipBody(ctx, task)
	if err != nil {
		return nil, err
	}
	reply, err := a.SubmitJSON(ctx, task.Kind, body, "v2", "video_generation")
	if err != nil {
		return nil, err
	}
	if failure := submitFailure(task.Kind, reply); failure != nil {
		return nil, failure
	}
	ticket, failure := reply.ReadTicket("task_id")
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}

// clipBody returns the body for a clip.
func clipBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	m, ok := modelOf(task.Model)
	tier := m.tiers[task.Tier]
	switch {
	case !ok:
		return nil, upstream.Unsuitable(task.Kind, "minimax's model %.80q is unknown", task.Model)
	case tier == "":
		return nil, upstream.Unsuitable(task.Kind, "minimax's model %s does not make %q", task.Model, task.Tier)
	case task.Exact:
		return nil, upstream.Unsuitable(task.Kind, "minimax takes a resolution and a ratio, no pixels")
	case task.Seconds != 0 && (task.Seconds < m.minSeconds || task.Seconds > maxSeconds):
		return nil, upstream.Unsuitable(task.Kind, "minimax's model %s makes %d to %d seconds, not %d",
			task.Model, m.minSeconds, maxSeconds, task.Seconds)
	case task.Ratio != "" && !slices.Contains(clipRatios(), task.Ratio):
		return nil, upstream.Unsuitable(task.Kind, "minimax's model %s does not make %s", task.Model, task.Ratio)
	}
	content, err := m.content(ctx, task)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"model": task.Model, "content": content, "resolution": tier}
	if task.Seconds > 0 {
		body["duration"] = task.Seconds
	}
	if task.Ratio != "" {
		body["ratio"] = task.Ratio
	}
	task.AddExtraParams(body)
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
// first frame and two pictures are the first and the last frame. Three or more pictures, and pictures
// beside a video, are references. Pictures of a clip with a ratio are references too, because MiniMax
// accepts no ratio together with frames.
func (m model) content(ctx context.Context, task jobcall.Task) ([]media, error) {
	list := []media{{Type: "text", Text: &task.Prompt}}
	videos := 0
	for _, r := range task.References {
		if !r.Image() {
			videos++
		}
	}
	first, last, rest := task.SplitFrames()
	if !task.HasRoles() && task.Ratio == "" {
		first, last, rest = task.Frames()
	}
	switch {
	case len(rest) > 0 && !m.takesReferences, first != nil && task.Ratio != "":
		return nil, upstream.Unsuitable(task.Kind, "minimax's model %s takes a first and a last frame, without a ratio", task.Model)
	case first == nil && last != nil, first != nil && len(rest) > 0:
		return nil, upstream.Unsuitable(task.Kind, "minimax takes either frames or references, and a last frame only with a first frame")
	case videos > maxReferenceVideos || len(task.References)-videos > maxReferencePictures:
		return nil, upstream.Unsuitable(task.Kind, "minimax takes up to %d pictures and %d videos", maxReferencePictures, maxReferenceVideos)
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
				return nil, upstream.Unsuitable(task.Kind, "minimax fetches videos from an address: the media host must be public")
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
func (a *Adapter) Poll(ctx context.Context, job jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, job.Kind, ticket, "v2", "query", "video_generation")
	if err != nil {
		return nil, err
	}
	task := gjson.GetBytes(reply.Body, "task")
	switch status := task.Get("status"); strings.ToLower(status.String()) {
	case "":
		return nil, reply.PollFailure()
	case "succeeded":
		status, failure := exchange.SuccessStatus(job.Kind, ticket, task.Get("content.url"), 1)
		if failure != nil {
			return nil, failure
		}
		return status, nil
	case "failed":
		return nil, reply.Redact(taskFailure(job.Kind, reply, task.Get("error")))
	case "cancelled":
		return nil, reply.TaskFailure(job.Kind, "", "cancelled at the provider")
	case "expired":
		return nil, upstream.ExpiredTask(job.Kind, "the task expired at the provider")
	}
	// An unknown status counts as running, because the line's longest wait bounds the polls.
	return &jobcall.TaskStatus{Ticket: ticket, Wait: pollInterval}, nil
}
