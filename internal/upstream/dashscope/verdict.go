package dashscope

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// tell sends a submission and returns a good answer, which has an output, or the
// verdict.
func (a *Adapter) tell(ctx context.Context, kind string, r exchange.JobCall) (*exchange.Reply, *upstream.JobFailure) {
	reply, err := a.Line.Submit(ctx, r)
	if err != nil {
		return nil, upstream.AsJobFailure(err)
	}
	read := gjson.ValidBytes(reply.Body)
	var answer gjson.Result
	if read {
		answer = gjson.ParseBytes(reply.Body)
	}
	output := answer.Get("output")
	said := answer // where the code stands
	if said.Get("code").String() == "" && output.Get("code").String() != "" && !output.Get("task_id").Exists() {
		said = output
	}
	code, message := said.Get("code").String(), said.Get("message").String()
	var t *upstream.JobFailure
	switch {
	case code != "":
		if message == "" {
			message = code // an error without words is one all the same
		}
		t = mend(kind, reply.RefusedAs(kind, code, message), code, message)
	case !reply.Good():
		t = reply.Refused(kind)
	case output.IsObject():
		return reply, nil
	default: // it may well have been accepted
		t = reply.Refused(kind)
		t.Lost = true
	}
	return nil, reply.Redact(t)
}

// ended is the verdict on a task, or a picture of one, that failed: e holds its
// code and message.
func ended(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	code, message := e.Get("code").String(), e.Get("message").String()
	return mend(kind, reply.Ended(kind, code, message), code, message)
}

// mend adds to a verdict what DashScope's codes and words mean beyond what they
// mean everywhere.
func mend(kind string, t *upstream.JobFailure, code, message string) *upstream.JobFailure {
	message = strings.ToLower(message)
	switch {
	case t.Passed != nil && own(code):
		// Told with a 400 it is the provider's failure all the same.
		f := upstream.Fail(fault.UpstreamUnavailable, t.Cause)
		f.Status = t.Status
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	case kind == upstream.KindVideo && t.Job == fault.ContentPolicy && strings.Contains(message, "output"):
		// The code is the same for what went in and what came out; the latter
		// may pass at a second try.
		t.Next = upstream.NextSame
	case material(code, message):
		t.Health, t.Passed = upstream.HealthNone, nil
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

// own tells whether a code is about a failure of the provider's own.
func own(code string) bool {
	return strings.HasPrefix(code, "InternalError") || code == "SystemError" || code == "ModelServiceFailed" || code == "ModelUnavailable"
}

// material tells whether an error is about a reference itself.
func material(code, message string) bool {
	switch {
	case strings.HasPrefix(code, "InvalidURL"), code == "InvalidParameter.DataInspection":
		return true
	}
	return strings.HasPrefix(code, "InvalidParameter") && strings.Contains(message, "download")
}
