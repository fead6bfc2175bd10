package dashscope

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// submit sends a submission and returns a good response, with an output, or the failure.
func (a *Adapter) submit(ctx context.Context, kind string, r exchange.JobCall) (*exchange.Reply, *upstream.JobFailure) {
	reply, err := a.Line.Submit(ctx, r)
	if err != nil {
		return nil, upstream.AsJobFailure(err)
	}
	valid := gjson.ValidBytes(reply.Body)
	var answer gjson.Result
	if valid {
		answer = gjson.ParseBytes(reply.Body)
	}
	output := answer.Get("output")
	holder := answer // the object with the code
	if holder.Get("code").String() == "" && output.Get("code").String() != "" && !output.Get("task_id").Exists() {
		holder = output
	}
	code, message := holder.Get("code").String(), holder.Get("message").String()
	var t *upstream.JobFailure
	switch {
	case code != "":
		if message == "" {
			message = code // an error without a message is still an error
		}
		t = adjustFailure(kind, reply.SubmitFailureAs(kind, code, message), code, message)
	case !reply.OK():
		t = reply.SubmitFailure(kind)
	case output.IsObject():
		return reply, nil
	default: // the task may have been accepted
		t = reply.SubmitFailure(kind)
		t.Lost = true
	}
	return nil, reply.Redact(t)
}

// taskFailure returns the failure of a failed task, or of a failed picture of a task. e holds the
// code and message.
func taskFailure(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	code, message := e.Get("code").String(), e.Get("message").String()
	return adjustFailure(kind, reply.TaskFailure(kind, code, message), code, message)
}

// adjustFailure adjusts a failure for codes and messages specific to DashScope.
func adjustFailure(kind string, t *upstream.JobFailure, code, message string) *upstream.JobFailure {
	message = strings.ToLower(message)
	switch {
	case t.Rejection != nil && isInternalError(code):
		// Even with status 400 the failure is the provider's.
		f := upstream.Fail(fault.UpstreamUnavailable, t.Cause)
		f.Status = t.Status
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	case kind == upstream.KindVideo && t.Job == fault.ContentPolicy && strings.Contains(message, "output"):
		// The code is the same for input and output. A flagged output may pass at a second try.
		t.Next = upstream.NextSame
	case isMaterialError(code, message):
		t.Health, t.Rejection = upstream.HealthNone, nil
		if kind == upstream.KindVideo {
			t.Job = fault.InvalidMaterial
		}
	case code == "UnsupportedOperation":
		t.Health = upstream.HealthNone
		if kind == upstream.KindVideo {
			t.Job = fault.InvalidRequest
		}
	}
	return t
}

// isInternalError reports whether a code means an internal failure of the provider.
func isInternalError(code string) bool {
	return strings.HasPrefix(code, "InternalError") || code == "SystemError" || code == "ModelServiceFailed" || code == "ModelUnavailable"
}

// isMaterialError reports whether an error is about a reference itself.
func isMaterialError(code, message string) bool {
	switch {
	case strings.HasPrefix(code, "InvalidURL"), code == "InvalidParameter.DataInspection":
		return true
	}
	return strings.HasPrefix(code, "InvalidParameter") && strings.Contains(message, "download")
}
