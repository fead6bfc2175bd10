// Package task owns the tasks for the tables in adapters' tests: an image task, a video task, and
// changes to both.
//
// It is for tests only. Invariants:
//   - The image task and the video task have every field that an adapter needs.
//   - A change sets the named field, and clears or sets only fields that conflict with it.
package task

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Change changes a task.
type Change func(*jobcall.Task)

// Image returns a task for one picture in 1K and 16:9.
func Image(model string, change ...Change) jobcall.Task {
	return ApplyChanges(jobcall.Task{Kind: upstream.KindImage, Model: model, Prompt: "a lighthouse", Count: 1,
		Tier: "1K", Ratio: "16:9", Width: 1344, Height: 768, Key: "sub_1", AcquireRead: UnlimitedReads}, change...)
}

// Video returns a task for a clip in 720p and 16:9, five seconds long.
func Video(model string, change ...Change) jobcall.Task {
	return ApplyChanges(jobcall.Task{Kind: upstream.KindVideo, Model: model, Prompt: "waves", Count: 1,
		Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720, Seconds: 5, Key: "sub_1", AcquireRead: UnlimitedReads}, change...)
}

// ApplyChanges returns task with the changes applied in order.
func ApplyChanges(task jobcall.Task, change ...Change) jobcall.Task {
	for _, c := range change {
		c(&task)
	}
	return task
}

// UnlimitedReads is a Task.AcquireRead without a limit.
func UnlimitedReads(context.Context) (done func(), err error) { return func() {}, nil }

// Model sets the model.
func Model(id string) Change { return func(task *jobcall.Task) { task.Model = id } }

// Prompt sets the prompt.
func Prompt(text string) Change { return func(task *jobcall.Task) { task.Prompt = text } }

// Count sets the number of pictures.
func Count(n int) Change { return func(task *jobcall.Task) { task.Count = n } }

// Seconds sets the length of a clip. If 0, the provider chooses.
func Seconds(n int64) Change { return func(task *jobcall.Task) { task.Seconds = n } }

// Tier sets the tier, which is the model's smallest.
func Tier(name string) Change {
	return func(task *jobcall.Task) { task.Tier, task.HasSmallerTier = name, false }
}

// LargerTier sets the tier of a model that also has a smaller tier.
func LargerTier(name string) Change {
	return func(task *jobcall.Task) { task.Tier, task.HasSmallerTier = name, true }
}

// Ratio sets the ratio and leaves the pixels unchanged.
func Ratio(name string) Change { return func(task *jobcall.Task) { task.Ratio = name } }

// Shape sets a ratio and its pixels.
func Shape(ratio string, width, height int) Change {
	return func(task *jobcall.Task) {
		task.Ratio, task.Width, task.Height, task.Exact = ratio, width, height, false
	}
}

// NoRatio leaves the ratio to the provider.
func NoRatio() Change { return Shape("", 0, 0) }

// Pixels sets a size in pixels as given by a user.
func Pixels(width, height int) Change {
	return func(task *jobcall.Task) { task.Ratio, task.Width, task.Height, task.Exact = "", width, height, true }
}

// Params sets further fields, given as a JSON object.
func Params(object string) Change {
	return func(task *jobcall.Task) { task.Params = json.RawMessage(object) }
}

// Mask sets the mask for the first reference.
func Mask(r jobcall.Reference) Change { return func(task *jobcall.Task) { task.Mask = &r } }

// PaintedMask returns a mask of two pixels. Only the first pixel may change.
func PaintedMask() jobcall.Reference {
	mask := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	mask.Set(1, 0, color.Black)
	var out bytes.Buffer
	_ = png.Encode(&out, mask) // a bytes.Buffer never fails
	return Reference("image/png", "", out.String())
}

// Refs sets references, each parsed by ParseReference, and leaves the ratio to the provider.
func Refs(names ...string) Change {
	list := make([]jobcall.Reference, len(names))
	for i, name := range names {
		list[i] = ParseReference(name)
	}
	return References(list...)
}

// References sets references and leaves the ratio to the provider.
func References(list ...jobcall.Reference) Change {
	return func(task *jobcall.Task) { task.References, task.Ratio, task.Width, task.Height = list, "", 0, 0 }
}

// ParseReference returns the reference `name` or `role=name`, three bytes long. Its type follows from the
// extension of name, image/png by default. Its address is name on media.example, empty if name
// begins with `inline`.
func ParseReference(text string) jobcall.Reference {
	role, name, ok := strings.Cut(text, "=")
	if !ok {
		role, name = "", text
	}
	kind, url := "image/png", "https://media.example/"+name
	if _, ending, ok := strings.Cut(name, "."); ok {
		kind = "image/" + ending
		if ending == "mp4" {
			kind = "video/mp4"
		}
	}
	if strings.HasPrefix(name, "inline") {
		url = ""
	}
	r := Reference(kind, url, "abc")
	r.Role = role
	return r
}

// Reference returns a reference with the given content type, address and bytes. url may be empty.
func Reference(kind, url, data string) jobcall.Reference {
	return jobcall.Reference{Type: kind, Size: int64(len(data)), URL: url,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(data))), nil }}
}
