package gemini

import (
	"context"
	"errors"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

var _ jobcall.Generator = (*Adapter)(nil)

// Bounds of calls about images and clips.
const (
	// maxBody is the API's maximum length of a request, in bytes, with references in base64.
	maxBody = 20 << 20
	// maxAnswer is the maximum length of a response without results in it, in bytes.
	maxAnswer = 4 << 20
	// maxClip is the maximum length of a response with a clip, in bytes.
	maxClip = 192 << 20
)

// Blocks implements jobcall.Generator. Images come in the response; clips are polled.
func (a *Adapter) Blocks(task jobcall.Task) bool { return task.Kind == upstream.KindImage }

// Submit implements jobcall.Generator. Each image is a separate call.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	switch {
	case task.Kind == upstream.KindImage:
		return a.makeImages(ctx, task)
	case IsVeo(task.Model):
		return a.submitVeo(ctx, task)
	}
	return a.submitOmni(ctx, task)
}

// Poll implements jobcall.Generator. Images have no tickets.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	if task.Kind != upstream.KindVideo {
		return nil, noTicket()
	}
	if IsVeo(task.Model) {
		return a.pollVeo(ctx, task, ticket)
	}
	return a.pollOmni(ctx, task, ticket)
}

// Fetch implements jobcall.Generator. It sends the key only to the line's own host, which serves
// the clips.
func (a *Adapter) Fetch(ctx context.Context, _ jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	return a.line.Fetch(ctx, r, a.header)
}

// Cancel implements jobcall.Generator. It is a no-op for Veo, because the API cannot cancel Veo's
// operations.
func (a *Adapter) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	if task.Kind != upstream.KindVideo || IsVeo(task.Model) {
		return nil
	}
	return a.cancelOmni(ctx, ticket)
}

// IsVeo reports, by the name, whether a video model is polled as an operation. Every other model
// uses interactions.
func IsVeo(model string) bool {
	return strings.HasPrefix(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]), "veo")
}

// noTicket returns the failure of an invalid ticket.
func noTicket() *upstream.JobFailure {
	f := upstream.Fail(fault.UpstreamUnavailable, errors.New("no ticket of this provider"))
	f.Health = upstream.HealthNone
	return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
}

// invalidModel returns the failure of a model name invalid in an address.
func invalidModel(f *upstream.Failure) *upstream.JobFailure {
	return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
}

// paramPaths maps the name of a user's param to the path of members in the body.
type paramPaths map[string][]string

// pathsOf returns the paths for the kind and model of a task.
func pathsOf(task jobcall.Task) paramPaths {
	switch {
	case task.Kind == upstream.KindImage:
		return imagePaths
	case IsVeo(task.Model):
		return veoPaths
	}
	return omniPaths
}

// ParamRule implements jobcall.Generator. Fields without a path are rejected.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	rule := jobcall.OnlyParams(slices.Sorted(maps.Keys(pathsOf(task)))...)
	switch {
	case task.Kind == upstream.KindImage:
		return rule
	case IsVeo(task.Model):
		return rule.Rename("audio", "generateAudio").Rename("negative_prompt", "negativePrompt").Roles(jobrequest.Roles()...)
	}
	return rule.Roles(jobrequest.FirstFrame, jobrequest.Subject)
}

// set adds the further fields of a task to the body.
func (p paramPaths) set(body map[string]any, task jobcall.Task) {
	for name, value := range task.ExtraParams() {
		path := p[name]
		object := body
		for _, member := range path[:len(path)-1] {
			next, ok := object[member].(map[string]any)
			if !ok {
				next = map[string]any{}
				object[member] = next
			}
			object = next
		}
		object[path[len(path)-1]] = value
	}
}

// blob is a reference in a body.
type blob struct {
	kind string // content type
	data []byte
}

// readBlobs reads all references of a task. types are the accepted content types, by prefix.
func readBlobs(ctx context.Context, task jobcall.Task, limit int, types ...string) ([]blob, *upstream.JobFailure) {
	if task.Mask != nil {
		return nil, upstream.Unsuitable(task.Kind, "a mask, which the provider does not accept")
	}
	if len(task.References) > limit {
		return nil, upstream.Unsuitable(task.Kind, "%d references; the provider takes up to %d", len(task.References), limit)
	}
	var total int64
	for _, r := range task.References {
		if !slices.ContainsFunc(types, func(kind string) bool { return strings.HasPrefix(r.Type, kind) }) {
			return nil, upstream.Unsuitable(task.Kind, "a reference of type %s; the provider takes %s", r.Type, strings.Join(types, ", "))
		}
		total += (r.Size + 2) / 3 * 4
	}
	if total > maxBody-int64(len(task.Prompt))-(64<<10) { // the rest of the body is small
		return nil, upstream.Unsuitable(task.Kind, "references of %d bytes in base64; the provider takes requests of up to %d", total, maxBody)
	}
	blobs := make([]blob, 0, len(task.References))
	for _, r := range task.References {
		data, err := r.Bytes(ctx)
		if err != nil {
			return nil, upstream.UnreadableFile(err)
		}
		blobs = append(blobs, blob{r.Type, data})
	}
	return blobs, nil
}

// parseDocument parses a response if it is a JSON object.
func parseDocument(r *exchange.Reply) (gjson.Result, bool) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "text/html" || !gjson.ValidBytes(r.Body) {
		return gjson.Result{}, false
	}
	doc := gjson.ParseBytes(r.Body)
	return doc, doc.IsObject()
}
