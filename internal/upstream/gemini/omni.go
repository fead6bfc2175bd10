package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Bounds of clips of Omni.
const (
	maxOmniReferences = 7
	minOmniSeconds    = 3
	maxOmniSeconds    = 10
)

// omniPaths are the paths of the further fields of clips.
var omniPaths = paramPaths{
	"seed":            {"generation_config", "seed"},
	"task":            {"generation_config", "video_config", "task"},
	"safety_settings": {"safety_settings"},
}

// submitOmni begins an interaction in the background.
func (a *Adapter) submitOmni(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	body, failure := omniBody(ctx, task)
	if failure != nil {
		return nil, failure
	}
	reply, err := a.line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.line.URL("interactions"), Header: a.header, Body: body, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	return a.readTicket(reply, task.Kind, "id", isInteraction)
}

// isInteraction reports whether id is an interaction's ID.
func isInteraction(id string) bool {
	return len(id) <= 2048 && !strings.Contains(id, "/") && isPath(id)
}

// omniBody returns the body of a submission.
func omniBody(ctx context.Context, job jobcall.Task) ([]byte, *upstream.JobFailure) {
	format := map[string]any{"type": "video", "delivery": "uri"}
	if failure := setShape(format, job, "aspect_ratio", "360p", "720p", "1080p", "4K"); failure != nil {
		return nil, failure
	}
	switch {
	case job.Seconds == 0:
	case job.Seconds < minOmniSeconds || job.Seconds > maxOmniSeconds:
		return nil, upstream.Unsuitable(job.Kind, "%d seconds; the provider makes %d to %d", job.Seconds, minOmniSeconds, maxOmniSeconds)
	default:
		format["duration"] = fmt.Sprintf("%ds", job.Seconds)
	}
	references, failure := readBlobs(ctx, job, maxOmniReferences, "image/png", "image/jpeg", "image/webp", "video/")
	if failure != nil {
		return nil, failure
	}
	input := make([]any, 0, len(references)+1)
	if job.Prompt != "" {
		input = append(input, map[string]any{"type": "text", "text": job.Prompt})
	}
	task := "text_to_video"
	first, _, rest := job.SplitFrames()
	if first != nil && len(rest) > 0 {
		return nil, upstream.Unsuitable(job.Kind, "a first frame beside references; the provider takes either")
	}
	for i, b := range references {
		kind, _, _ := strings.Cut(b.kind, "/")
		input = append(input, map[string]any{"type": kind, "data": b.data, "mime_type": b.kind})
		switch {
		case kind == "video" || task == "edit":
			task = "edit"
		case task == "text_to_video" && job.References[i].Role != jobrequest.Subject:
			task = "image_to_video"
		default:
			task = "reference_to_video"
		}
	}
	if len(input) == 0 {
		return nil, upstream.Unsuitable(job.Kind, "neither a prompt nor a reference")
	}
	body := map[string]any{
		"model": strings.TrimPrefix(job.Model, "models/"), "input": input, "background": true, "response_format": format,
		"generation_config": map[string]any{"video_config": map[string]any{"task": task}},
	}
	omniPaths.set(body, job)
	raw, _ := json.Marshal(body) // cannot fail for maps, strings and bytes
	return raw, nil
}

// pollOmni queries an interaction.
func (a *Adapter) pollOmni(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	if !isInteraction(ticket) {
		return nil, noTicket()
	}
	reply, err := a.line.Query(ctx, exchange.JobCall{
		Method: http.MethodGet, URL: a.line.URL("interactions", ticket), Header: a.header, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	p, failure := readInteraction(reply, task.Kind, ticket)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return p, nil
}

// readInteraction returns the status of an interaction.
func readInteraction(reply *exchange.Reply, kind, ticket string) (*jobcall.TaskStatus, *upstream.JobFailure) {
	doc, ok := parseDocument(reply)
	if !ok {
		return nil, reply.PollFailure()
	}
	if !reply.OK() {
		unknown := strings.Contains(strings.ToLower(doc.Get("error.message").String()), "invalid interaction name")
		if reply.Status == http.StatusNotFound || reply.Status == http.StatusBadRequest && unknown {
			return nil, upstream.UnknownTask(kind, "the provider does not know "+ticket)
		}
		return nil, reply.PollFailure()
	}
	switch status := doc.Get("status").String(); status {
	case "queued", "in_progress":
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	case "completed":
		return readSteps(doc, kind, ticket)
	case "failed", "cancelled", "incomplete", "budget_exceeded", "requires_action", "requires_continuation":
		for _, member := range []string{"error", "errors.0"} {
			if e := doc.Get(member); e.IsObject() {
				return nil, taskFailure(kind, reply, e)
			}
		}
		return nil, reply.TaskFailure(kind, status, "")
	default:
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("unknown status %.80q", status))
		f.Status = reply.Status
		return nil, upstream.FailJob(f, fault.UpstreamError, upstream.NextPoll)
	}
}

// readSteps returns the clip of a completed interaction. An interaction without a clip is a
// rejection. The model may explain the rejection in a text.
func readSteps(doc gjson.Result, kind, ticket string) (*jobcall.TaskStatus, *upstream.JobFailure) {
	var texts []string
	for _, step := range doc.Get("steps").Array() {
		if step.Get("type").Str != "model_output" {
			continue
		}
		for _, content := range step.Get("content").Array() {
			switch content.Get("type").Str {
			case "video":
				if r, ok := readClip(content); ok {
					return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{r}}, nil
				}
			case "text":
				texts = append(texts, content.Get("text").String())
			}
		}
	}
	if len(texts) == 0 {
		texts = []string{"the provider made no clip of this input"}
	}
	return nil, upstream.ModerationFailure(kind, strings.Join(texts, " "), false)
}

// cancelOmni cancels an interaction. An unknown or ended interaction counts as cancelled.
func (a *Adapter) cancelOmni(ctx context.Context, ticket string) error {
	if !isInteraction(ticket) {
		return noTicket()
	}
	reply, err := a.line.Query(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.line.URL("interactions", ticket, "cancel"), Header: a.header, Body: []byte("{}"), Limit: maxAnswer,
	})
	if err != nil {
		return err
	}
	if !reply.OK() && reply.Status != http.StatusNotFound && reply.Status != http.StatusBadRequest {
		return reply.PollFailure()
	}
	return nil
}
