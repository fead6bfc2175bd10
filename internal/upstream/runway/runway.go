// Package runway owns calls to Runway. Clips and pictures, by Runway's own models and by resold models,
// are polled as tasks.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - A size is sent in pixels, from the sizes of the model (size.go), so that Runway charges for the
//     requested tier.
//   - A model's params never override the gateway's own fields (model, size, length, sound).
package runway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.dev.runwayml.com"

// version is the version of the interface.
const version = "2024-11-06"

// maxURI is the maximum length of a data URI, in bytes.
const maxURI = 5 << 20

// maxReferences bounds the reference pictures for a picture, maxVideos the reference videos for a
// clip.
const maxReferences, maxVideos = 3, 3

// pollInterval is the time between two polls, as requested by Runway.
const pollInterval = 5 * time.Second

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage, upstream.KindVideo)
}

// Adapter calls Runway for one line. It is safe for concurrent use.
//
// Results are links, valid for a day or two. A poll returns fresh links.
//
// Adapter does not implement jobcall.Finder, because Runway has no way to look up a task by the
// gateway's key.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	plain, err := exchange.OpenPlain(t, Info(), transport, "Authorization")
	if err != nil {
		return nil, err
	}
	plain.Header.Set("X-Runway-Version", version)
	return &Adapter{plain}, nil
}

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	names, f := []string{"contentModeration"}, familyOf(task.Kind, task.Model)
	if f.seed {
		names = append(names, "seed")
	}
	rule := jobcall.OnlyParams(names...)
	if f.sound {
		rule = rule.Rename("audio", "audio")
	}
	if f.negativePrompt {
		rule = rule.Rename("negative_prompt", "negativePrompt")
	}
	switch {
	case task.Kind == upstream.KindImage:
		return rule
	case f.maxPictures > 0:
		return rule.Roles(jobrequest.Roles()...)
	case f.onlyEdits:
		return rule.Roles(jobrequest.FirstFrame, jobrequest.Subject)
	case f.lastFrame:
		return rule.Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
	}
	return rule.Roles(jobrequest.FirstFrame)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		path string
		body map[string]any
		err  error
	)
	f := familyOf(task.Kind, task.Model)
	for i, r := range task.References {
		switch {
		case !r.Image() && f.maxPictures == 0 && !f.onlyEdits:
			return nil, upstream.Unsuitable(task.Kind, "runway's model %s takes no reference video", task.Model)
		case r.URL == "" && (r.Size+2)/3*4 > maxURI-64:
			return nil, upstream.Unfit(task.Kind, "Reference %d has more bytes than the provider takes inline.", i+1)
		}
	}
	switch {
	case task.Mask != nil:
		err = upstream.Unsuitable(task.Kind, "runway takes no mask")
	case task.Kind == upstream.KindImage:
		path = "text_to_image"
		body, err = pictureBody(ctx, task)
	case f.onlyEdits:
		path = "video_to_video"
		body, err = editBody(ctx, task)
	default:
		path, body, err = clipBody(ctx, task)
	}
	if err != nil {
		return nil, err
	}
	task.AddExtraParams(body)
	reply, err := a.SubmitJSON(ctx, task.Kind, body, "v1", path)
	if err != nil {
		return nil, err
	}
	id := ""
	if reply.OK() && gjson.ValidBytes(reply.Body) {
		id = gjson.GetBytes(reply.Body, "id").String()
	}
	if !exchange.IsTicket(id) {
		return nil, submitFailure(task.Kind, reply)
	}
	return &jobcall.TaskStatus{Ticket: id, Wait: pollInterval}, nil
}

// newBody returns the fields of every submission.
func newBody(task jobcall.Task, f family, hasPicture bool) (map[string]any, error) {
	size, ok := f.size(task, hasPicture)
	if !ok {
		return nil, upstream.Unsuitable(task.Kind, "runway's model %s does not make %s at %q for this task", task.Model, task.Tier, task.Ratio)
	}
	body := map[string]any{"model": task.Model, "ratio": size}
	if task.Prompt != "" {
		body["promptText"] = task.Prompt
	}
	return body, nil
}

// clipBody returns the path and body for a clip from a text, frames or references. Without roles, one
// picture is the first frame and two are the first and the last frame. Three or more pictures, and
// pictures beside a video, are references.
func clipBody(ctx context.Context, task jobcall.Task) (path string, body map[string]any, err error) {
	f := familyOf(task.Kind, task.Model)
	first, last, references := task.Frames()
	hasFirst := first != nil
	switch {
	case last != nil && (first == nil || !f.lastFrame):
		return "", nil, upstream.Unsuitable(task.Kind, "runway's model %s does not take this last frame", task.Model)
	case len(references) > 0 && (hasFirst || f.maxPictures == 0):
		return "", nil, upstream.Unsuitable(task.Kind, "%d references like these are not accepted by runway's model %s", len(task.References),
			task.Model)
	case !hasFirst && (f.needsPicture || task.Prompt == ""):
		return "", nil, upstream.Unsuitable(task.Kind, "runway's model %s needs a first frame or a prompt", task.Model)
	}
	if body, err = newBody(task, f, hasFirst); err != nil {
		return "", nil, err
	}
	if task.Seconds > 0 {
		body["duration"] = task.Seconds
	}
	if !hasFirst {
		return "text_to_video", body, addReferences(ctx, body, task, f, references)
	}
	var images []map[string]string
	for i, r := range []*jobcall.Reference{first, last} {
		if r == nil {
			continue
		}
		uri, err := input.Link(ctx, *r)
		if err != nil {
			return "", nil, err
		}
		images = append(images, map[string]string{"uri": uri, "position": [...]string{"first", "last"}[i]})
	}
	body["promptImage"] = images
	return "image_to_video", body, nil
}

// addReferences adds the reference pictures and videos of a clip.
func addReferences(ctx context.Context, body map[string]any, task jobcall.Task, f family, references []jobcall.Reference) error {
	var pictures, videos []map[string]string
	for _, r := range references {
		uri, err := input.Link(ctx, r)
		switch {
		case err != nil:
			return err
		case r.Image():
			pictures = append(pictures, map[string]string{"uri": uri})
		default:
			videos = append(videos, map[string]string{"type": "video", "uri": uri})
		}
	}
	if len(pictures) > f.maxPictures || len(videos) > maxVideos {
		return upstream.Unsuitable(task.Kind, "%d references; runway's model %s takes up to %d pictures and %d videos",
			len(references), task.Model, f.maxPictures, maxVideos)
	}
	if pictures != nil {
		body["references"] = pictures
	}
	if videos != nil {
		body["referenceVideos"] = videos
	}
	return nil
}

// editBody returns the body for a clip made by editing a video. The clip has the size and the length of
// the video. The length is unknown in advance, so the clip cannot be charged by the second. With a ratio,
// Runway paints the area beyond the video. A reference picture becomes the new first frame.
func editBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	first, last, rest := task.SplitFrames()
	switch {
	case len(rest) != 1 || rest[0].Image() || last != nil:
		return nil, upstream.Unsuitable(task.Kind, "runway's model %s edits one video, with at most a first frame", task.Model)
	case task.Prompt == "":
		return nil, upstream.Unsuitable(task.Kind, "runway's model %s needs a prompt", task.Model)
	case task.Seconds != 0:
		return nil, upstream.Unsuitable(task.Kind, "an edited clip has the length of the video, so its length cannot be %d seconds", task.Seconds)
	case task.Exact || task.HasSmallerTier:
		return nil, upstream.Unsuitable(task.Kind, "an edited clip has the size of the video")
	case task.Ratio != "" && !slices.Contains([]string{"16:9", "4:3", "3:2", "1:1", "2:3", "3:4", "9:16", "21:9"}, task.Ratio):
		return nil, upstream.Unsuitable(task.Kind, "runway's model %s does not make %s", task.Model, task.Ratio)
	}
	uri, err := input.Link(ctx, rest[0])
	if err != nil {
		return nil, err
	}
	body := map[string]any{"model": task.Model, "promptText": task.Prompt, "videoUri": uri}
	if task.Ratio != "" {
		body["targetAspectRatio"] = task.Ratio
	}
	if first != nil {
		if uri, err = input.Link(ctx, *first); err != nil {
			return nil, err
		}
		body["keyframes"] = []any{map[string]any{"seconds": 0, "uri": uri}}
	}
	return body, nil
}

// pictureBody returns the body for a picture. References are tagged image_1, image_2 and so on: the
// prompt may cite them as @image_1.
func pictureBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	f := familyOf(task.Kind, task.Model)
	switch {
	case task.Count > 1:
		return nil, upstream.Unsuitable(task.Kind, "%d images; runway makes one a task", task.Count)
	case len(task.References) > maxReferences, f.needsPicture && len(task.References) == 0:
		return nil, upstream.Unsuitable(task.Kind, "%d references are not accepted by runway's model %s", len(task.References), task.Model)
	}
	body, err := newBody(task, f, len(task.References) > 0)
	if err != nil {
		return nil, err
	}
	var images []map[string]string
	for i, r := range task.References {
		uri, err := input.Link(ctx, r)
		if err != nil {
			return nil, err
		}
		images = append(images, map[string]string{"uri": uri, "tag": fmt.Sprintf("image_%d", i+1)})
	}
	if images != nil {
		body["referenceImages"] = images
	}
	return body, nil
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, task.Kind, ticket, "v1", "tasks")
	if err != nil {
		return nil, err
	}
	status, failure := readTask(task, ticket, reply)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return status, nil
}

// Cancel implements jobcall.Generator. It deletes an ended task.
func (a *Adapter) Cancel(ctx context.Context, _ jobcall.Task, ticket string) error {
	return a.StopTask(ctx, ticket, http.MethodDelete, "v1", "tasks", ticket)
}
