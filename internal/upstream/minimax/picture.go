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
	step             = 8
	minSide, maxSide = 512, 2048
)

func pictureRatios() []string {
	return []string{"1:1", "16:9", "4:3", "3:2", "2:3", "3:4", "9:16", "21:9"}
}

// submitImages submits the pictures of w.
func (a *Adapter) submitImages(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := pictureBody(ctx, w)
	if err != nil {
		return nil, err
	}
	reply, err := a.SubmitJSON(ctx, w.Kind, body, "v1", "image_generation")
	if err != nil {
		return nil, err
	}
	if failure := submitFailure(w.Kind, reply); failure != nil {
		return nil, failure
	}
	results, failure := readPictures(reply, max(w.Count, 1))
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Done: true, Results: results}, nil
}

// pictureBody returns the body for pictures. The one reference picture shows the person for the
// result: the provider has no other kind of reference.
func pictureBody(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	switch {
	case w.Count > maxImages:
		return nil, upstream.Unsuitable(w.Kind, "%d pictures; minimax makes up to %d", w.Count, maxImages)
	case utf8.RuneCountInString(w.Prompt) > maxPrompt:
		return nil, upstream.Unsuitable(w.Kind, "minimax takes a prompt of up to %d characters", maxPrompt)
	case len(w.References) > 1 || len(w.References) == 1 && !w.References[0].Image():
		return nil, upstream.Unsuitable(w.Kind, "minimax takes one reference picture, of a character")
	}
	body := map[string]any{"model": w.Model, "prompt": w.Prompt, "n": max(w.Count, 1), "response_format": "url"}
	if failure := size(body, w); failure != nil {
		return nil, failure
	}
	for _, r := range w.References {
		link, err := input.Link(ctx, r)
		if err != nil {
			return nil, err
		}
		body["subject_reference"] = []any{map[string]string{"type": "character", "image_file": link}}
	}
	w.AddFurther(body)
	return body, nil
}

// size sets the ratio if the task needs only the model's default size, else the pixels. A paid tier
// without a ratio gets a square.
func size(body map[string]any, w jobcall.Task) *upstream.JobFailure {
	isDefault := w.Square() == 0 && !w.Exact
	width, height := w.Width, w.Height
	switch {
	case isDefault && w.Ratio == "":
		return nil
	case isDefault && slices.Contains(pictureRatios(), w.Ratio):
		body["aspect_ratio"] = w.Ratio
		return nil
	case width <= 0 || height <= 0:
		width, height = w.Square(), w.Square()
	}
	if !w.Exact {
		width, height = width/step*step, height/step*step
	}
	if width%step+height%step > 0 || min(width, height) < minSide || max(width, height) > maxSide {
		return upstream.Unsuitable(w.Kind, "minimax's model %s does not make %dx%d pixels", w.Model, width, height)
	}
	body["width"], body["height"] = width, height
	return nil
}

// readPictures returns at most count pictures from a good response, or the failure without
// pictures. The provider only reports the number of pictures withheld by its review.
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
