package minimax

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of pictures.
const (
	maxImages        = 9
	maxPrompt        = 1500
	sideStep         = 8
	minSide, maxSide = 512, 2048
)

func pictureRatios() []string {
	return []string{"1:1", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "21:9"}
}

// submitImages submits the pictures of task.
func (a *Adapter) submitImages(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := pictureBody(ctx, task)
	if err != nil {
		return nil, err
	}
	reply, err := a.SubmitJSON(ctx, task.Kind, body, "v1", "image_generation")
	if err != nil {
		return nil, err
	}
	if failure := submitFailure(task.Kind, reply); failure != nil {
		return nil, failure
	}
	results, failure := readPictures(reply, max(task.Count, 1))
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Done: true, Results: results}, nil
}

// pictureBody returns the body for pictures. The only reference picture shows the person for the
// result, because the provider has no other kind of reference.
func pictureBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	switch {
	case task.Count > maxImages:
		return nil, upstream.Unsuitable(task.Kind, "%d pictures; minimax makes up to %d", task.Count, maxImages)
	case utf8.RuneCountInString(task.Prompt) > maxPrompt:
		return nil, upstream.Unsuitable(task.Kind, "minimax takes a prompt of up to %d characters", maxPrompt)
	case len(task.References) > 1 || len(task.References) == 1 && !task.References[0].Image():
		return nil, upstream.Unsuitable(task.Kind, "minimax takes one reference picture, of a character")
	}
	body := map[string]any{"model": task.Model, "prompt": task.Prompt, "n": max(task.Count, 1), "response_format": "url"}
	if failure := setSize(body, task); failure != nil {
		return nil, failure
	}
	for _, r := range task.References {
		link, err := input.Link(ctx, r)
		if err != nil {
			return nil, err
		}
		body["subject_reference"] = []any{map[string]string{"type": "character", "image_file": link}}
	}
	task.AddExtraParams(body)
	return body, nil
}

// setSize sets the ratio if the task needs only the model's default size, else the pixels. A paid tier
// without a ratio gets a square.
func setSize(body map[string]any, task jobcall.Task) *upstream.JobFailure {
	isDefault := task.Square() == 0 && !task.Exact
	width, height := task.Width, task.Height
	switch {
	case isDefault && task.Ratio == "":
		return nil
	case isDefault && slices.Contains(pictureRatios(), task.Ratio):
		body["aspect_ratio"] = task.Ratio
		return nil
	case width <= 0 || height <= 0:
		width, height = task.Square(), task.Square()
	}
	if !task.Exact {
		width, height = width/sideStep*sideStep, height/sideStep*sideStep
	}
	if width%sideStep+height%sideStep > 0 || min(width, height) < minSide || max(width, height) > maxSide {
		return upstream.Unsuitable(task.Kind, "minimax's model %s does not make %dx%d pixels", task.Model, width, height)
	}
	body["width"], body["height"] = width, height
	return nil
}

// readPictures returns at most count pictures from a good response, or a failure if there are none.
// The provider only reports the number of pictures withheld by its review.
func readPictures(reply *exchange.Reply, count int) ([]jobcall.Result, *upstream.JobFailure) {
	doc := gjson.ParseBytes(reply.Body)
	results := exchange.Links(doc.Get("data.image_urls").Array(), count)
	switch {
	case results != nil:
		return results, nil
	case doc.Get("metadata.failed_count").Int() > 0: // a number, or a number as a string
		return nil, upstream.ModerationFailure(upstream.KindImage, "the provider's filter withheld the pictures", true)
	case doc.Get("data").IsObject():
		return nil, upstream.EmptyResult(upstream.KindImage, "an answer without a picture")
	}
	return nil, reply.SubmitFailure(upstream.KindImage)
}
