package ark

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// resolution matches the names of tiers at Ark (`720p`, `4k`).
var resolution = regexp.MustCompile(`^[0-9]{1,4}[pk]$`)

// framesWithRatio matches the models known to accept a ratio together with a first frame. Later models
// reject such a ratio, because their clip has the shape of the frame.
var framesWithRatio = regexp.MustCompile(`seedance-(?:1-|2-0)`)

// soundless matches the models without sound.
var soundless = regexp.MustCompile(`seedance-1-0`)

// submitVideo submits a clip.
func (a *Adapter) submitVideo(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := a.clipBody(ctx, task)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err)
	}
	reply, _, failure := a.submit(ctx, task.Kind, raw, "contents", "generations", "tasks")
	if failure != nil {
		return nil, failure
	}
	ticket := gjson.GetBytes(reply.Body, "id").String()
	if !exchange.IsTicket(ticket) {
		return nil, upstream.MissingTicket("id")
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}

// clipBody returns the body of a clip's submission.
func (a *Adapter) clipBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	tier := strings.ToLower(task.Tier)
	switch {
	case task.Exact:
		return nil, upstream.Unsuitable(task.Kind, "ark takes a resolution and a ratio, not a size in pixels")
	case !resolution.MatchString(tier):
		return nil, upstream.Unsuitable(task.Kind, "ark has no resolution %q", task.Tier)
	}
	content, err := a.content(ctx, task)
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

// contentPart is a text or a reference in a clip's content.
type contentPart struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`
	Image *link  `json:"image_url,omitempty"`
	Video *link  `json:"video_url,omitempty"`
	Role  string `json:"role,omitempty"`
}

// link is the address of a reference in a clip's content.
type link struct {
	URL string `json:"url"`
}

// content returns the prompt and the references.
func (a *Adapter) content(ctx context.Context, task jobcall.Task) ([]contentPart, error) {
	frames, err := a.frames(task)
	if err != nil {
		return nil, err
	}
	if err := a.checkRoles(task); err != nil {
		return nil, err
	}
	var content []contentPart
	if task.Prompt != "" {
		content = append(content, contentPart{Type: "text", Text: task.Prompt})
	}
	for i, r := range task.References {
		if !r.Image() {
			if r.URL == "" {
				return nil, upstream.Unsuitable(task.Kind, "ark accepts a video only by its address: the media host must be public")
			}
			content = append(content, contentPart{Type: "video_url", Video: &link{r.URL}, Role: "reference_video"})
			continue
		}
		address, err := input.Link(ctx, r)
		if err != nil {
			return nil, err
		}
		role := "reference_image"
		if r.Role == jobrequest.FirstFrame || r.Role == jobrequest.LastFrame {
			role = r.Role
		} else if frames {
			role = [...]string{"first_frame", "last_frame"}[i]
		}
		content = append(content, contentPart{Type: "image_url", Image: &link{address}, Role: role})
	}
	return content, nil
}

// checkRoles returns an error if Ark does not accept the roles of the references. Ark rejects frames
// together with other references, and a last frame without a first frame. Only some models accept
// frames with a ratio.
func (a *Adapter) checkRoles(task jobcall.Task) error {
	first, last, rest := task.SplitFrames()
	hasFrames := first != nil || last != nil
	switch {
	case hasFrames && len(rest) > 0:
		return upstream.Unsuitable(task.Kind, "ark takes either frames or references")
	case last != nil && first == nil:
		return upstream.Unsuitable(task.Kind, "ark takes a last frame only with a first frame")
	case hasFrames && task.Ratio != "" && !framesWithRatio.MatchString(task.Model):
		return upstream.Unsuitable(task.Kind, "ark's model %s takes no ratio beside frames", task.Model)
	}
	return nil
}

// frames reports whether a clip's pictures without roles are its first and last frame. Ark accepts
// either frames or references. If the line has no image_role, one picture is the first frame and
// two are the first and the last frame. Pictures are references if there are three or more, if
// there is a video too, or if the model does not accept frames with the ratio.
func (a *Adapter) frames(task jobcall.Task) (bool, error) {
	if task.HasRoles() {
		return false, nil
	}
	canBeFrames := len(task.References) > 0 && len(task.References) <= 2 &&
		!slices.ContainsFunc(task.References, func(r jobcall.Reference) bool { return !r.Image() })
	switch a.imageRole {
	case roleReference:
		return false, nil
	case roleFrame:
		if len(task.References) > 0 && !canBeFrames {
			return false, upstream.Unsuitable(task.Kind, "this line takes one or two pictures as frames, and no videos")
		}
		return canBeFrames, nil
	}
	return canBeFrames && (task.Ratio == "" || framesWithRatio.MatchString(task.Model)), nil
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, task.Kind, ticket, "contents", "generations", "tasks")
	if err != nil {
		return nil, err
	}
	progress, failure := readTask(task.Kind, ticket, reply)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return progress, nil
}

// readTask returns the status of a task. An unknown status counts as running, because the
// line's longest wait ends the task.
func readTask(kind, ticket string, reply *exchange.Reply) (*jobcall.TaskStatus, *upstream.JobFailure) {
	task := gjson.ParseBytes(reply.Body)
	switch status := task.Get("status"); status.String() {
	case "":
		return nil, reply.PollFailure()
	case "succeeded":
		return exchange.SuccessStatus(kind, ticket, task.Get("content.video_url"), 1)
	case "failed":
		return nil, taskFailure(kind, reply, task.Get("error"))
	case "cancelled":
		return nil, reply.TaskFailure(kind, "", "cancelled at the provider")
	case "expired":
		return nil, upstream.ExpiredTask(kind, "the task expired at the provider")
	default:
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	}
}

// Cancel implements jobcall.Generator. Ark cancels waiting tasks and deletes ended tasks. Ark
// finishes running tasks and returns an error.
func (a *Adapter) Cancel(ctx context.Context, _ jobcall.Task, ticket string) error {
	return a.StopTask(ctx, ticket, http.MethodDelete, "contents", "generations", "tasks", ticket)
}
