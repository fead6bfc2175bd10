package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

var _ jobcall.Generator = (*Adapter)(nil)

// Blocks implements jobcall.Generator. Images come in the response; clips are polled.
func (a *Adapter) Blocks(task jobcall.Task) bool { return task.Kind == upstream.KindImage }

// ParamRule implements jobcall.Generator. It rejects fields with an effect on the price or on the
// format of the response.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	switch {
	case task.Kind == upstream.KindVideo:
		ownNames := []string{"model", "prompt", "size", "seconds", "input_reference"}
		if strings.HasPrefix(baseName(task.Model), "sora-") {
			ownNames = append(ownNames, "seed", "negative_prompt")
		}
		return jobcall.AllParamsExcept(ownNames...).Roles(jobrequest.FirstFrame) // the role of Sora's only reference
	case familyOf(task.Model) == familyAspect:
		return jobcall.AllParamsExcept(append(ownFields(), "resolution", "aspect_ratio", "seed", "negative_prompt")...)
	case familyOf(task.Model) != familyOther:
		return jobcall.AllParamsExcept(append(ownFields(), "seed", "negative_prompt")...)
	}
	return jobcall.AllParamsExcept(ownFields()...)
}

// ownFields returns the fields of image requests that the adapter itself sets or omits.
func ownFields() []string {
	return []string{"model", "prompt", "n", "size", "image", "image[]", "images", "mask", "stream", "partial_images"}
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if task.Kind == upstream.KindVideo {
		return a.submitVideo(ctx, task)
	}
	return a.makeImages(ctx, task)
}

// Fetch implements jobcall.Generator. It sends the key only to the line's own host, which serves
// the clips.
func (a *Adapter) Fetch(ctx context.Context, _ jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	return a.line.Fetch(ctx, r, a.header)
}

// fields are the members of a request by name, each as JSON.
type fields map[string]json.RawMessage

// newFields returns the fields of a task. They are the client's fields allowed by the catalog, and the
// adapter's own fields, which take precedence.
func newFields(task jobcall.Task) fields {
	f := fields{}
	maps.Copy(f, task.ExtraParams())
	f.set("model", task.Model)
	f.set("prompt", task.Prompt)
	return f
}

// set sets a member to a string or a number.
func (f fields) set(name string, value any) {
	f[name], _ = json.Marshal(value) // cannot fail for strings and numbers
}

// form returns the fields as a form, sorted by name, in the format of the official clients: lists
// as `name[]`, objects as `name[member]`.
func (f fields) form(line *exchange.Client) *exchange.Multipart {
	form := line.NewForm()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		addField(form, name, gjson.ParseBytes(f[name]))
	}
	return form
}

// maxDepth bounds the depth of separate form members. Deeper values are sent as JSON.
const maxDepth = 4

func addField(form *exchange.Multipart, name string, value gjson.Result) {
	depth := strings.Count(name, "[")
	switch {
	case value.Type == gjson.Null:
	case value.IsArray() && depth < maxDepth:
		value.ForEach(func(_, item gjson.Result) bool {
			addField(form, name+"[]", item)
			return true
		})
	case value.IsObject() && depth < maxDepth:
		value.ForEach(func(key, item gjson.Result) bool {
			addField(form, name+"["+key.Str+"]", item)
			return true
		})
	case value.Type == gjson.String:
		form.Field(name, value.Str)
	default:
		form.Field(name, value.Raw)
	}
}

// Bounds of files in a request.
const (
	maxFile = 50 << 20 // bytes of a reference, exclusive
	maxMask = 4 << 20  // bytes of a mask, exclusive
)

// checkFile returns a failure if the provider does not accept a reference.
func checkFile(kind string, r jobcall.Reference, limit int64, types ...string) *upstream.JobFailure {
	if !slices.Contains(types, r.Type) {
		return upstream.Unsuitable(kind, "a reference of type %s; the provider takes %s", r.Type, strings.Join(types, ", "))
	}
	if r.Size >= limit {
		return upstream.Unsuitable(kind, "a reference of %d bytes; the provider takes less than %d", r.Size, limit)
	}
	return nil
}

// fileName returns the name for an uploaded file. Providers derive the file's type from the extension.
func fileName(stem string, r jobcall.Reference) string {
	_, subtype, _ := strings.Cut(r.Type, "/")
	return fmt.Sprintf("%s.%s", stem, subtype)
}

// baseName returns the model's name in lower case, without the vendor prefix of resellers
// (`openai/gpt-image-2`).
func baseName(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// isDocument reports whether a response is a JSON object.
func isDocument(r *exchange.Reply) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind != "text/html" && gjson.ValidBytes(r.Body) && gjson.ParseBytes(r.Body).IsObject()
}
