package ark

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// submit sends a submission and returns a good response, or the failure and its Ark error code,
// which may be empty.
func (a *Adapter) submit(ctx context.Context, kind string, body []byte, path ...string) (
	_ *exchange.Reply, code string, t *upstream.JobFailure,
) {
	call := a.Call(http.MethodPost, path...)
	call.Body = body
	reply, err := a.Line.Submit(ctx, call)
	if err != nil {
		return nil, "", upstream.AsJobFailure(err)
	}
	valid := gjson.ValidBytes(reply.Body)
	var errObject gjson.Result
	if valid {
		errObject = gjson.GetBytes(reply.Body, "error")
	}
	hasError := errObject.IsObject() || errObject.Type == gjson.String && errObject.Str != ""
	if reply.OK() && valid && (!hasError || gjson.GetBytes(reply.Body, `data.#(url!="")`).Exists()) {
		return reply, "", nil
	}
	t = reply.SubmitFailure(kind)
	// After a good status with an unreadable body the task may have been accepted.
	t.Lost = reply.OK() && !hasError
	return nil, errObject.Get("code").String(), reply.Redact(adjustFailure(kind, t, errObject, false))
}

// taskFailure returns the failure in the error object of a task, or of a picture of a set.
func taskFailure(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	return adjustFailure(kind, reply.TaskFailure(kind, e.Get("code").String(), e.Get("message").String()), e, true)
}

// adjustFailure adjusts a failure for codes specific to Ark in the error object e. accepted reports whether
// the task had been accepted.
func adjustFailure(kind string, t *upstream.JobFailure, e gjson.Result, accepted bool) *upstream.JobFailure {
	code := e.Get("code").String()
	switch {
	case code == "InternalServiceError" && t.Rejection != nil:
		// Even with status 400 the failure is the provider's.
		f := upstream.Fail(fault.UpstreamUnavailable, t.Cause)
		f.Status = t.Status
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	case code == "ServerOverloaded" && accepted && kind == upstream.KindVideo:
		t.Job = fault.RenderFailed
	case isMaterialError(code, e.Get("param").String(), e.Get("message").String()):
		t.Health = upstream.HealthNone
		if kind == upstream.KindVideo {
			t.Job = fault.InvalidMaterial
		}
	}
	return t
}

// mediaField matches the field of a clip's reference in Ark's errors
// (`content[1].image_url`).
var mediaField = regexp.MustCompile(`content\[\d+\]\.\S*url`)

// isMaterialError reports whether an error is about a reference itself: failed download or decoding, or a
// wrong length or size. Ark has no code for such errors but names the field of the reference. A
// reference not supported by the model is not such an error.
func isMaterialError(code, param, message string) bool {
	if strings.HasPrefix(code, "InvalidImageURL") {
		return true
	}
	if !strings.HasPrefix(code, "InvalidParameter") {
		return false
	}
	message = strings.ToLower(message)
	if strings.Contains(message, "not supported by") || strings.Contains(message, "does not support") {
		return false
	}
	return mediaField.MatchString(param) || mediaField.MatchString(message)
}

// isOutputCode reports whether a code is about the output, which differs from call to call, and not
// about the input.
func isOutputCode(code string) bool { return strings.HasPrefix(code, "Output") }
