package fal

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// maxResults bounds the files of one result.
const maxResults = 64

// isFromFal reports whether a reply comes from fal itself: JSON with a detail.
func isFromFal(r *exchange.Reply) bool {
	return gjson.ValidBytes(r.Body) && gjson.GetBytes(r.Body, "detail").Exists()
}

// errorOf returns the name and the message of fal's error; either may be empty. An error in the
// model's list takes precedence over an error of the request, and within the list an error of a
// safety system takes precedence.
func errorOf(r *exchange.Reply) (name, message string) {
	if gjson.ValidBytes(r.Body) {
		detail := gjson.GetBytes(r.Body, "detail")
		if detail.Type == gjson.String {
			message = detail.Str
		}
		for i, entry := range detail.Array() {
			kind := entry.Get("type").String()
			if i == 0 || kind == policyCode && name != kind {
				name, message = kind, firstNonEmpty(entry.Get("msg").String(), message)
			}
		}
		name = firstNonEmpty(name, gjson.GetBytes(r.Body, "error_type").String())
	}
	return firstNonEmpty(name, r.Header.Get("X-Fal-Error-Type")), message
}

// firstNonEmpty returns the first non-empty text.
func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// policyCode is the code of fal's safety systems.
const policyCode = "content_policy_violation"

// submitFailure returns the failure for a status about the input, in the response to a submission
// or to a query for a result.
func submitFailure(kind string, r *exchange.Reply) *upstream.JobFailure {
	if name, message := errorOf(r); name == policyCode {
		t := r.TaskFailure(kind, name, message)
		t.Status = r.Status
		return adjust(r, t)
	}
	return adjust(r, r.SubmitFailure(kind))
}

// taskFailure returns the failure in the response to the query for a completed request's result, or
// nil if the response may hold a result. The status alone does not decide, because it may come from
// the model, or from a queue unable to answer.
func taskFailure(kind string, r *exchange.Reply) *upstream.JobFailure {
	name, message := errorOf(r)
	fromFal := name != "" || isFromFal(r)
	switch {
	case r.Status == http.StatusOK:
		return nil
	case r.Status == http.StatusNotFound && name == "" && fromFal:
		return upstream.UnknownTask(kind, "fal no longer has the result")
	case !fromFal, r.OK(), r.Status == http.StatusTooManyRequests,
		name == "" && (r.Status == http.StatusUnauthorized || r.Status == http.StatusPaymentRequired || r.Status == http.StatusForbidden),
		name == "" && strings.Contains(message, "still in progress"):
		return r.PollFailure()
	case r.Status == http.StatusBadRequest, r.Status == http.StatusRequestEntityTooLarge,
		r.Status == http.StatusUnsupportedMediaType, r.Status == http.StatusUnprocessableEntity:
		return submitFailure(kind, r)
	}
	t := r.TaskFailure(kind, name, message)
	t.Status = r.Status
	return adjust(r, t)
}

// adjust applies fal's headers about retries.
func adjust(r *exchange.Reply, t *upstream.JobFailure) *upstream.JobFailure {
	name, _ := errorOf(r)
	switch r.Header.Get("X-Fal-Retryable") {
	case "true":
		lineFailed := t.Health == upstream.HealthFail || t.Health == upstream.HealthHalf
		if t.Next == upstream.NextLine && lineFailed && !strings.HasSuffix(name, "_timeout") {
			t.Next = upstream.NextSame
		} else if t.Job == fault.ContentPolicy { // for a video; the same input may pass
			t.Next = upstream.NextSame
		}
	case "false":
		if t.Next == upstream.NextSame {
			t.Next = upstream.NextLine
		}
	}
	if r.Header.Get("X-Fal-Request-Timeout-Type") == "user" { // a start timeout set for this request
		t.Health, t.Next = upstream.HealthNone, upstream.NextLine
	}
	return r.Redact(t)
}

// outputFiles returns the files in a model's output, at most as many as requested, without files
// blackened by the model's safety check.
func outputFiles(task jobcall.Task, r *exchange.Reply) ([]jobcall.Result, *upstream.JobFailure) {
	if !gjson.ValidBytes(r.Body) {
		return nil, r.PollFailure()
	}
	doc := gjson.ParseBytes(r.Body)
	var files []gjson.Result
	members, limit := []string{"images", "image", "output"}, max(task.Count, 1)
	if task.Kind == upstream.KindVideo {
		members, limit = []string{"video", "videos", "output"}, 1
	}
	for _, member := range members {
		if v := doc.Get(member); v.IsArray() {
			files = append(files, v.Array()...)
		} else if v.Exists() {
			files = append(files, v)
		}
		if len(files) > 0 {
			break
		}
	}
	flags := doc.Get("has_nsfw_concepts")
	var results []jobcall.Result
	flagged := 0
	for i, file := range files[:min(len(files), maxResults)] {
		if isFlagged(flags, i) {
			flagged++
			continue
		}
		address := file.Get("url").String()
		if file.Type == gjson.String {
			address = file.Str
		}
		if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") {
			results = append(results, jobcall.Result{Ref: address, Type: file.Get("content_type").String()})
		}
	}
	switch {
	case len(results) == 0 && flagged > 0:
		return nil, upstream.ModerationFailure(task.Kind, "the model's safety check flagged the result", true)
	case len(results) == 0 && isFromFal(r):
		name, message := errorOf(r)
		return nil, adjust(r, r.TaskFailure(task.Kind, name, message))
	case len(results) == 0:
		return nil, upstream.EmptyResult(task.Kind, "no "+task.Kind+" in the result")
	}
	return results[:min(len(results), limit)], nil
}

// isFlagged reports whether the model's safety check flagged file i.
func isFlagged(flags gjson.Result, i int) bool {
	if all := flags.Array(); flags.IsArray() {
		return i < len(all) && all[i].Bool()
	}
	return flags.Bool()
}
