package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of images.
const (
	maxImages     = 10
	maxReferences = 16
	// maxImageAnswer is the maximum length of a response for each image, in bytes. The largest
	// picture, uncompressed and in base64, has 44 MB.
	maxImageAnswer = 48 << 20
	// maxImagesAnswer is the maximum length for all images together.
	maxImagesAnswer = 256 << 20
)

// makeImages requests images, with the edits endpoint if the task has references,
// and returns the images in the answer.
func (a *Adapter) makeImages(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	r := exchange.JobCall{
		Method: http.MethodPost, Header: a.headerWithKey(task.Key), AcquireRead: task.AcquireRead,
		Limit: min(int64(max(task.Count, 1))*maxImageAnswer, maxImagesAnswer),
	}
	f := newFields(task)
	if task.Count > maxImages {
		return nil, upstream.Unsuitable(task.Kind, "%d images; the provider makes up to %d", task.Count, maxImages)
	}
	f.set("n", max(task.Count, 1))
	if failure := sizeImage(f, task); failure != nil {
		return nil, failure
	}
	if len(task.References) == 0 {
		if task.Mask != nil {
			return nil, upstream.Unsuitable(task.Kind, "a mask without a reference")
		}
		r.URL = a.line.URL("images", "generations")
		r.Body, _ = json.Marshal(f) // cannot fail for valid raw members
	} else {
		var failure *upstream.JobFailure
		r.URL = a.line.URL("images", "edits")
		if r.Form, failure = a.editForm(f, task); failure != nil {
			return nil, failure
		}
	}
	reply, err := a.line.Submit(ctx, r)
	if err != nil {
		return nil, err
	}
	if !reply.OK() {
		return nil, reply.SubmitFailure(task.Kind)
	}
	results, failure := readImages(reply, task.Count)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return &jobcall.TaskStatus{Done: true, Results: results}, nil
}

// editForm returns the multipart form of an edit.
func (a *Adapter) editForm(f fields, task jobcall.Task) (*exchange.Multipart, *upstream.JobFailure) {
	if familyOf(task.Model) == familyAspect {
		return nil, upstream.Unsuitable(task.Kind, "%s takes no references as files", task.Model)
	}
	if len(task.References) > maxReferences {
		return nil, upstream.Unsuitable(task.Kind, "%d references; the provider takes up to %d", len(task.References), maxReferences)
	}
	for _, r := range task.References {
		if failure := checkFile(task.Kind, r, maxFile, "image/png", "image/jpeg", "image/webp"); failure != nil {
			return nil, failure
		}
	}
	if task.Mask != nil {
		if failure := checkFile(task.Kind, *task.Mask, maxMask, "image/png"); failure != nil {
			return nil, failure
		}
	}
	form := f.form(a.line)
	name := "image"
	if len(task.References) > 1 {
		name = "image[]"
	}
	for i, r := range task.References {
		form.File(name, fileName(fmt.Sprintf("image-%d", i+1), r), r)
	}
	if task.Mask != nil {
		form.File("mask", fileName("mask", *task.Mask), *task.Mask)
	}
	return form, nil
}

// readImages returns the images in a good response, as base64 or as addresses, at most count.
// It leaves out images that the vendor's filter withheld (`respect_moderation`) or that failed.
func readImages(reply *exchange.Reply, count int) ([]jobcall.Result, *upstream.JobFailure) {
	if !isDocument(reply) {
		return nil, reply.SubmitFailure(upstream.KindImage)
	}
	items := gjson.GetBytes(reply.Body, "data")
	if !items.IsArray() {
		return nil, reply.SubmitFailure(upstream.KindImage)
	}
	var (
		results  []jobcall.Result
		filtered bool
		itemErr  gjson.Result
	)
	items.ForEach(func(_, item gjson.Result) bool {
		switch moderation := item.Get("respect_moderation"); {
		case moderation.Type == gjson.False:
			filtered = true
		case item.Get("error").IsObject():
			itemErr = item.Get("error")
		default:
			if r, ok := readImage(item); ok {
				results = append(results, r)
			}
		}
		return len(results) < max(count, 1)
	})
	switch {
	case len(results) > 0:
		return results, nil
	case filtered:
		return nil, upstream.ModerationFailure(upstream.KindImage, "the provider's filter withheld the images", true)
	case itemErr.Exists():
		return nil, reply.TaskFailure(upstream.KindImage, itemErr.Get("code").String(), itemErr.Get("message").String())
	}
	return nil, upstream.EmptyResult(upstream.KindImage, "no image in the answer")
}

// readImage reads one item of a response.
func readImage(item gjson.Result) (jobcall.Result, bool) {
	if text := item.Get("b64_json"); text.Type == gjson.String && text.Str != "" {
		return decodeImage(text.Str)
	}
	address := item.Get("url")
	switch {
	case address.Type != gjson.String || address.Str == "":
		return jobcall.Result{}, false
	case strings.HasPrefix(address.Str, "data:"):
		return decodeImage(address.Str)
	}
	return jobcall.Result{Ref: address.Str}, true
}

// decodeImage decodes base64, with or without the prefix of a data URI.
func decodeImage(text string) (jobcall.Result, bool) {
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		_, text, _ = strings.Cut(rest, ",")
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(data) == 0 {
		return jobcall.Result{}, false
	}
	r := jobcall.Result{Data: data}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		r.Type = kind
	}
	return r, true
}
