package replicate

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// Limits of the search in an output.
const (
	maxResults = 64
	maxDepth   = 4
)

// errorCode matches the code in the text of Replicate's errors: `(E005)`, `(code: PA)`.
var errorCode = regexp.MustCompile(`\((?:code:\s*)?(E\d{3,4}|PA)\)|\b(E\d{3,4})\b`)

// predictionFailure returns the failure of a failed prediction by the text of the error, because
// Replicate reports no other reason.
func predictionFailure(kind string, reply *exchange.Reply, message string) *upstream.JobFailure {
	code, lower := "", strings.ToLower(message)
	if m := errorCode.FindStringSubmatch(message); m != nil {
		code = m[1] + m[2]
	}
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(lower, word) {
				return true
			}
		}
		return false
	}
	switch {
	case code == "E005", has("nsfw", "flagged as sensitive", "content policy", "content moderation", "safety system", "safety filter"):
		output := has("output", "nsfw content detected", "generated") && !has("input or output", "your input", "prompt was")
		return upstream.ModerationFailure(kind, message, output)
	case code == "E003", has("high demand", "queue is full"):
		t := reply.TaskFailure(kind, code, message)
		t.Health, t.Next, t.Job = upstream.HealthCool, upstream.NextLater, fault.UpstreamError
		return t
	case code == "E004", code == "E6716":
		return upstream.ExpiredTask(kind, message)
	case code == "PA":
		t := reply.TaskFailure(kind, code, message)
		t.Next = upstream.NextSame
		return t
	case has("image_load_error", "cannot identify image file", "failed to download", "failed to load image", "no face"):
		return reply.TaskFailure(kind, "image_load_error", message)
	}
	return reply.TaskFailure(kind, code, message)
}

// output returns the addresses in a prediction's output, in order: from a string, a list of
// strings, or an object that contains addresses. It returns at most as many as requested.
func output(task jobcall.Task, doc gjson.Result) ([]jobcall.Result, *upstream.JobFailure) {
	limit := 1
	if task.Kind == upstream.KindImage {
		limit = max(task.Count, 1)
	}
	var results []jobcall.Result
	collect(doc.Get("output"), 0, &results)
	switch {
	case len(results) == 0 && doc.Get("data_removed").Bool():
		return nil, upstream.UnknownTask(task.Kind, "Replicate has removed the output")
	case len(results) == 0:
		return nil, upstream.EmptyResult(task.Kind, "no "+task.Kind+" in the output")
	}
	return results[:min(len(results), limit)], nil
}

// collect adds the addresses in v.
func collect(v gjson.Result, depth int, to *[]jobcall.Result) {
	switch {
	case len(*to) >= maxResults || depth > maxDepth:
	case v.IsArray() || v.IsObject():
		v.ForEach(func(_, member gjson.Result) bool {
			collect(member, depth+1, to)
			return len(*to) < maxResults
		})
	case v.Type == gjson.String && (strings.HasPrefix(v.Str, "https://") || strings.HasPrefix(v.Str, "http://")):
		*to = append(*to, jobcall.Result{Ref: v.Str})
	}
}
