package dashscope

import (
	"context"
	"fmt"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// pictureRequest returns the submission of a picture in the endpoint's format.
func pictureRequest(ctx context.Context, task jobcall.Task, endpoint string) (request, error) {
	req := request{Model: task.Model, Input: map[string]any{}, Parameters: map[string]any{"n": task.Count}}
	size, err := pictureSize(task, endpoint)
	if err != nil {
		return req, err
	}
	if size != "" {
		req.Parameters["size"] = size
	}
	images, err := input.Pictures(ctx, task, Provider)
	if err != nil {
		return req, err
	}
	if endpoint == multimodal || endpoint == messagesTask {
		req.Input["messages"] = messages(task.Prompt, images)
		req.addParams(task)
		return req, nil
	}
	switch {
	case endpoint == textTask && len(images) > 0:
		return req, upstream.Unsuitable(task.Kind, "dashscope's model %s takes no pictures", task.Model)
	case endpoint == imageTask && len(images) == 0:
		return req, upstream.Unsuitable(task.Kind, "dashscope's model %s makes pictures from pictures alone", task.Model)
	case endpoint == imageTask:
		req.Input["images"] = images
	}
	req.Input["prompt"] = task.Prompt
	req.addParams(task, "negative_prompt")
	return req, nil
}

// part is a part of a message: a picture or a text.
type part struct {
	Image string `json:"image,omitempty"`
	Text  string `json:"text,omitempty"`
}

// turn is the only message of a request.
type turn struct {
	Role    string `json:"role"`
	Content []part `json:"content"`
}

// messages returns the prompt and the references in the newer endpoints' format.
func messages(prompt string, images []string) []turn {
	content := make([]part, 0, len(images)+1)
	for _, image := range images {
		content = append(content, part{Image: image})
	}
	return []turn{{Role: "user", Content: append(content, part{Text: prompt})}}
}

// pictureSize returns the size: in pixels if there is a ratio, otherwise the tier for models with
// named tiers. Other models get a square or, if the references determine the shape, no size, which
// means their smallest tier. DashScope checks the sizes of each model; a rejection is free.
func pictureSize(task jobcall.Task, endpoint string) (string, error) {
	hasNamedTiers := (endpoint == multimodal || endpoint == messagesTask) && !inPixels.MatchString(task.Model)
	switch {
	case task.Width > 0 && task.Height > 0:
		return fmt.Sprintf("%d*%d", task.Width, task.Height), nil
	case !tierNamed.MatchString(task.Tier):
	case hasNamedTiers:
		return task.Tier, nil
	case len(task.References) == 0:
		side := 1024 * int(task.Tier[0]-'0')
		return fmt.Sprintf("%d*%d", side, side), nil
	case task.Tier == "1K":
		return "", nil
	}
	return "", upstream.Unsuitable(task.Kind, "dashscope's model %s does not make %q without a ratio", task.Model, task.Tier)
}

// readPictures returns at most count pictures from the output of a response or a task. Blocked
// pictures are missing, or present with a code. Without pictures, the first code becomes the
// failure.
func readPictures(reply *exchange.Reply, output gjson.Result, count int) ([]jobcall.Result, *upstream.JobFailure) {
	links := append(output.Get("results.#.url").Array(), output.Get("choices.#.message.content.#.image|@flatten").Array()...)
	if results := exchange.Links(links, count); results != nil {
		return results, nil
	}
	for _, item := range output.Get("results").Array() {
		if item.Get("code").String() != "" {
			return nil, taskFailure(upstream.KindImage, reply, item)
		}
	}
	return nil, upstream.EmptyResult(upstream.KindImage, "an answer without a picture")
}
