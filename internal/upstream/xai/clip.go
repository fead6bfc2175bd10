package xai

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of clips.
const (
	maxSeconds  = 15
	maxSubjects = 7
	// bounds of an extension of a video, in seconds
	minExtension, maxExtension = 2, 10
)

// clip returns the body for a clip. Without roles, one reference is the first frame, and several
// are reference pictures.
func clip(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	first, last, rest := task.SplitFrames()
	if !task.HasRoles() && len(rest) == 1 {
		first, rest = &rest[0], nil
	}
	tier := strings.ToLower(task.Tier)
	tiers := []string{"480p", "720p", "1080p"}
	if !isNewer(task.Model) || len(rest) > 0 {
		tiers = tiers[:2]
	}
	switch {
	case task.Exact || !slices.Contains(tiers, tier):
		return nil, upstream.Unsuitable(task.Kind, "xai makes this in %s, not %s or pixels", strings.Join(tiers, ", "), task.Tier)
	case task.Seconds > maxSeconds:
		return nil, upstream.Unsuitable(task.Kind, "%d seconds; xai makes up to %d", task.Seconds, maxSeconds)
	case task.Ratio != "" && !slices.Contains(ratios()[:7], task.Ratio):
		return nil, upstream.Unsuitable(task.Kind, "the ratio %s; xai makes %s", task.Ratio, strings.Join(ratios()[:7], ", "))
	case len(rest) > maxSubjects:
		return nil, upstream.Unsuitable(task.Kind, "%d references; xai takes up to %d", len(rest), maxSubjects)
	case first != nil && len(rest) > 0, last != nil && first == nil:
		return nil, upstream.Unsuitable(task.Kind, "xai takes either frames or references, and a last frame only with a first frame")
	}
	body := map[string]any{"model": task.Model, "prompt": task.Prompt, "resolution": tier}
	if task.Seconds > 0 {
		body["duration"] = task.Seconds
	}
	if task.Ratio != "" {
		body["aspect_ratio"] = task.Ratio
	}
	for name, frame := range map[string]*jobcall.Reference{"image": first, "last_frame": last} {
		if frame == nil {
			continue
		}
		one, err := image(ctx, *frame)
		if err != nil {
			return nil, err
		}
		body[name] = one
	}
	subjects, err := images(ctx, task, rest)
	if err != nil {
		return nil, err
	}
	if len(subjects) > 0 {
		body["reference_images"] = subjects
	}
	return body, nil
}

// fromVideo returns the path and body for a clip made by editing or extending a video. The clip has
// the size of the video. An edited clip also has its length, which is unknown in advance, so the
// clip cannot be charged by the second.
func (a *Adapter) fromVideo(task jobcall.Task) (path []string, body map[string]any, err error) {
	video := task.References[0]
	switch {
	case a.role == "" || isNewer(task.Model):
		err = upstream.Unsuitable(task.Kind, "a line for xai takes videos with the option video_role, of grok-imagine-video")
	case len(task.References) > 1 || video.URL == "" || video.Type != "video/mp4":
		err = upstream.Unsuitable(task.Kind, "xai works from one MP4 video by its address: the media host must be public")
	case task.Prompt == "" || task.Ratio != "" || task.Exact || task.HasSmallerTier:
		err = upstream.Unsuitable(task.Kind, "a clip that xai makes from a video needs a prompt, and has the video's size")
	case a.role == roleEdit && task.Seconds != 0:
		err = upstream.Unsuitable(task.Kind, "a clip that xai changes has its length: it cannot be of %d seconds", task.Seconds)
	case a.role == roleExtend && task.Seconds != 0 && (task.Seconds < minExtension || task.Seconds > maxExtension):
		err = upstream.Unsuitable(task.Kind, "xai extends a video by %d to %d seconds, not by %d", minExtension, maxExtension, task.Seconds)
	}
	if err != nil {
		return nil, nil, err
	}
	body = map[string]any{"model": task.Model, "prompt": task.Prompt, "video": map[string]any{"url": video.URL}}
	if a.role == roleEdit {
		return []string{"videos", "edits"}, body, nil
	}
	if task.Seconds > 0 {
		body["duration"] = task.Seconds
	}
	return []string{"videos", "extensions"}, body, nil
}

// Poll implements jobcall.Generator. Pictures have no tickets.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	if task.Kind != upstream.KindVideo || !exchange.IsTicket(ticket) {
		return nil, upstream.UnknownTask(task.Kind, "no name of a clip")
	}
	reply, err := a.Line.Query(ctx, a.Call(http.MethodGet, "videos", ticket))
	if err != nil {
		return nil, err
	}
	status, failure := readClip(task.Kind, ticket, reply)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return status, nil
}

// readClip returns the status of a clip. With status 202 the clip is running, whatever the body. A
// clip stopped by the review after rendering is reported with a 400 or beside the clip.
func readClip(kind, ticket string, reply *exchange.Reply) (*jobcall.TaskStatus, *upstream.JobFailure) {
	stillRunning := &jobcall.TaskStatus{Ticket: ticket}
	if reply.Status == http.StatusAccepted {
		return stillRunning, nil
	}
	valid := gjson.ValidBytes(reply.Body)
	doc := gjson.ParseBytes(nil)
	if valid {
		doc = gjson.ParseBytes(reply.Body)
	}
	switch {
	case reply.TaskUnknown():
		return nil, upstream.UnknownTask(kind, "the provider no longer knows the clip")
	case reply.Status == http.StatusBadRequest && valid && message(doc) != "":
		return nil, taskFailure(kind, reply, doc.Get("code").String(), message(doc))
	case !reply.OK() || !valid:
		return nil, reply.PollFailure()
	}
	link := doc.Get("video.url")
	hasLink := link.Type == gjson.String && link.Str != ""
	switch status := doc.Get("status").String(); {
	case status == "failed":
		return nil, taskFailure(kind, reply, doc.Get("error.code").String(), message(doc))
	case status == "expired":
		return nil, upstream.ExpiredTask(kind, "the provider gave the clip up")
	case doc.Get("video.respect_moderation").Type == gjson.False:
		return nil, upstream.ModerationFailure(kind, "the provider's review withheld the clip", false)
	case hasLink && (status == "done" || status == ""):
		return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{{Ref: link.Str}}}, nil
	case status == "done":
		return nil, upstream.EmptyResult(kind, "done without a clip")
	case status == "":
		return nil, reply.PollFailure()
	}
	return stillRunning, nil
}
