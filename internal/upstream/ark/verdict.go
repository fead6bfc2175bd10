package ark

import (
	"context"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// tell sends a submission and returns a good answer, or else the verdict and the
// code in Ark's words that it rests on, empty if there was none.
func (a *Adapter) tell(ctx context.Context, kind string, r exchange.JobCall) (_ *exchange.Reply, code string, t *upstream.JobFailure) {
	reply, err := a.Line.Submit(ctx, r)
	if err != nil {
		return nil, "", upstream.AsJobFailure(err)
	}
	read := gjson.ValidBytes(reply.Body)
	var said gjson.Result
	if read {
		said = gjson.GetBytes(reply.Body, "error")
	}
	wrong := said.IsObject() || said.Type == gjson.String && said.Str != ""
	if reply.Good() && read && (!wrong || gjson.GetBytes(reply.Body, `data.#(url!="")`).Exists()) {
		return reply, "", nil
	}
	t = reply.Refused(kind)
	// A good status with an answer that cannot be read: it may well have been
	// accepted.
	t.Lost = reply.Good() && !wrong
	return nil, said.Get("code").String(), reply.Redact(mend(kind, t, said, false))
}

// ended is the verdict on the error object of a task, or of a picture of a set.
func ended(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	return mend(kind, reply.Ended(kind, e.Get("code").String(), e.Get("message").String()), e, true)
}

// mend adds to a verdict what Ark's error object e says in words of its own.
// Begun says that the work had been accepted.
func mend(kind string, t *upstream.JobFailure, e gjson.Result, begun bool) *upstream.JobFailure {
	code := e.Get("code").String()
	switch {
	case code == "InternalServiceError" && t.Passed != nil:
		// Told with a 400 it is the provider's failure all the same.
		f := upstream.Fail(fault.UpstreamUnavailable, t.Cause)
		f.Status = t.Status
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	case code == "ServerOverloaded" && begun && kind == upstream.KindVideo:
		t.Job = fault.RenderFailed
	case material(code, e.Get("param").String(), e.Get("message").String()):
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

// material tells whether an error is about a reference itself, which could not
// be downloaded or decoded or has a wrong length or size. Ark has no code for
// that: it names the field of the reference. A reference that the model has no
// use for is a parameter that is not supported.
func material(code, param, message string) bool {
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

// ofOutput tells whether a code is about what came out, which differs from call
// to call, and not about what went in.
func ofOutput(code string) bool { return strings.HasPrefix(code, "Output") }
