// Package dashscope owns calls to DashScope, the model service of Alibaba Cloud. Pictures are returned
// in the response or polled as tasks; clips are polled. The model's ID determines the endpoint and
// the request format (family.go). Embeddings and reranking pass through (kind.go). Speech is streamed.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - The adapter never returns more pictures than requested.
//   - A response with an error code is an error, with any status.
//   - A model's params never override the gateway's own fields (model, size, count, length).
package dashscope

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/voice"
)

// Provider is the adapter's name in the catalog.
const Provider = "dashscope"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://dashscope-intl.aliyuncs.com/api/v1"

// Limits of requests, in bytes. DashScope rejects pictures above maxPicture. maxInline bounds the
// pictures in one body.
const (
	maxPicture = 20 << 20
	maxInline  = 60 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo, kindEmbedding, kindRerank, voice.Kind)
}

// options are a line's `options` in the catalog. An empty option is derived from the model.
type options struct {
	imageEndpoint string
	videoEndpoint string
	imageRole     string
	voices        any
}

func checkOptions(raw map[string]any) error {
	texts := maps.Clone(raw)
	if voices, ok := texts["voices"]; ok {
		if err := voice.CheckVoices(voices); err != nil {
			return err
		}
		delete(texts, "voices")
	}
	return exchange.CheckTexts(texts, Provider, map[string]func(string) error{
		"image_endpoint": exchange.OneOf(multimodal, messagesTask, textTask, imageTask),
		"video_endpoint": exchange.OneOf(clipTask, framesTask),
		"image_role":     exchange.OneOf(roleFrame, roleReference),
	})
}

// Adapter calls DashScope for one line. It is safe for concurrent use.
//
// Results are links, valid for a day.
//
// Adapter does not implement jobcall.Finder, because DashScope has no way to look up a task by the
// gateway's key.
type Adapter struct {
	exchange.Plain
	options options
	async   http.Header
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	plain, err := exchange.OpenPlain(t, Info(), transport, "Authorization")
	if err != nil {
		return nil, err
	}
	a := &Adapter{Plain: plain, async: plain.Header.Clone(), options: options{
		imageEndpoint: exchange.TextOption(t.Options, "image_endpoint", ""),
		videoEndpoint: exchange.TextOption(t.Options, "video_endpoint", ""),
		imageRole:     exchange.TextOption(t.Options, "image_role", ""),
		voices:        t.Options["voices"],
	}}
	a.async.Set("X-DashScope-Async", "enable")
	return a, nil
}

// Blocks implements jobcall.Generator.
func (a *Adapter) Blocks(task jobcall.Task) bool {
	return task.Kind == upstream.KindImage && a.imageEndpoint(task.Model) == multimodal
}

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	rule := jobcall.AllParamsExcept("size", "n", "resolution", "ratio", "duration")
	if task.Kind == upstream.KindVideo {
		if hasAudioParam(task.Model) {
			rule = rule.Rename("audio", "audio")
		}
		rule = rule.Roles(rolesOf(task.Model)...)
	}
	return rule
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		endpoint string
		req      request
		err      error
	)
	if task.Mask != nil {
		return nil, upstream.Unsuitable(task.Kind, "dashscope takes no mask")
	}
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	if task.Kind == upstream.KindImage {
		endpoint = a.imageEndpoint(task.Model)
		req, err = pictureRequest(ctx, task, endpoint)
	} else {
		endpoint = a.videoEndpoint(task.Model)
		req, err = a.clipRequest(ctx, task)
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err)
	}
	post := exchange.JobCall{Method: http.MethodPost, URL: a.Line.URL(path(endpoint)...), Header: a.async, Body: body}
	if endpoint == multimodal {
		post.Header = a.Header
	}
	reply, failure := a.submit(ctx, task.Kind, post)
	if failure != nil {
		return nil, failure
	}
	output := gjson.GetBytes(reply.Body, "output")
	if endpoint == multimodal {
		results, failure := readPictures(reply, output, task.Count)
		if failure != nil {
			return nil, reply.Redact(failure)
		}
		return &jobcall.TaskStatus{Done: true, Results: results}, nil
	}
	ticket := output.Get("task_id").String()
	if !exchange.IsTicket(ticket) {
		return nil, upstream.MissingTicket("task_id")
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}

// request is the body of a submission.
type request struct {
	Model      string         `json:"model"`
	Input      map[string]any `json:"input"`
	Parameters map[string]any `json:"parameters"`
}

// addParams adds the model's params to the parameters. The params in inputNames go to the input
// instead.
func (r request) addParams(task jobcall.Task, inputNames ...string) {
	task.AddExtraParams(r.Parameters)
	for _, name := range inputNames {
		if value, ok := r.Parameters[name]; ok {
			delete(r.Parameters, name)
			r.Input[name] = value
		}
	}
}
