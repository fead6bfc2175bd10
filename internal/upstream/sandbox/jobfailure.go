package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// The failures of image and video jobs. If a failure has the name of a job's error code, the job
// ends with this code (interface.md, Failed jobs), or with the nearest code that its kind has.
const (
	failPolicy    = "content_policy"           // the safety system stopped the task
	failAudio     = "content_policy_audio"     // the safety system stopped the sound of the result
	failModerated = "moderation_blocked"       // like content_policy, with the code of image providers
	failViolation = "content_policy_violation" // like content_policy, with another code
	failRender    = "render_failed"            // the task failed without a reason
	failMaterial  = "invalid_material"         // a reference is unusable
	failAge       = "render_timeout"           // the provider timed the task out
	failNever     = "never"                    // the task never ends
	failUnstable  = "upstream_unstable"        // the provider lost the task
	failPolls     = "polls_break"              // every poll fails
	failFetch     = "result_fetch_failed"      // every download breaks off
	failBadLink   = "bad_link_once"            // the first link is refused
	failRequest   = "invalid_request"          // the submission is refused for its parameters
	failUpstream  = "upstream_error"           // the submission is refused without a reason
)

// jobFailKinds lists the failures of jobs.
func jobFailKinds() []string {
	return []string{failPolicy, failAudio, failModerated, failViolation, failRender, failMaterial, failAge, failNever, failUnstable,
		failPolls, failFetch, failBadLink, failRequest, failUpstream}
}

// taskError is the error in a task's status.
type taskError struct{ code, message string }

// endings returns the errors of failed tasks, by the value of the option `fail`.
func endings() map[string]taskError {
	return map[string]taskError{
		failPolicy:    {"InputTextSensitiveContentDetected", "The prompt was flagged."},
		failAudio:     {"OutputAudioSensitiveContentDetected", "The sound of the clip was flagged."},
		failModerated: {"moderation_blocked", "The request was rejected by the safety system."},
		failViolation: {"content_policy_violation", "The request was rejected by the safety system."},
		failRender:    {"", ""},
		failMaterial:  {"file_download_error", "A reference could not be read."},
		failAge:       {"generation_timeout", "The task took too long."},
	}
}

// atSubmission returns the failure of the submission, or nil.
func atSubmission(ctx context.Context, task jobcall.Task, failKind string) error {
	var p problem
	header := http.Header{}
	switch failKind {
	case failTimeout:
		<-ctx.Done()
		return upstream.LostAnswer(ctx, ctx.Err())
	case failConnection:
		return upstream.LostAnswer(ctx, fmt.Errorf("sandbox: read: %w", syscall.ECONNRESET))
	case failPage:
		return upstream.SubmitFailure(task.Kind, http.StatusBadGateway, "text/html", []byte("<html><title>502 Bad Gateway</title></html>"), nil)
	case failRequest:
		p = problem{http.StatusBadRequest, "The parameters contradict each other.", invalidRequest, "InvalidParameter", ""}
	case failUpstream:
		p = problem{http.StatusInternalServerError, "", "server_error", "", ""}
	case "rejection": // the chat error names another field
		p = problem{http.StatusBadRequest, "The prompt is too long.", invalidRequest, "string_above_max_length", "prompt"}
	default:
		r, ok := refusals()[failKind]
		if !ok {
			return nil
		}
		if p = r.other; r.retryAfter != "" {
			header.Set("Retry-After", r.retryAfter)
		}
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{ // cannot fail: all values are strings
		"message": p.message, "type": p.kind, "code": p.code, "param": p.param,
	}})
	return upstream.SubmitFailure(task.Kind, p.status, "application/json", body, header)
}

// atPoll returns the failure of every poll, or nil.
func atPoll(kind, failKind string) error {
	switch failKind {
	case failUnstable:
		return upstream.UnknownTask(kind, "sandbox: no task has this ticket")
	case failPolls:
		f := upstream.Classify(http.StatusServiceUnavailable, "application/json", []byte(`{"error":{"message":"not now"}}`), nil)
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextPoll)
	}
	return nil
}

// atEnd returns the failure of a completed task, or nil. Blocking tasks have no polls,
// so the failures of polls come here too.
func atEnd(kind, failKind string) error {
	switch failKind {
	case failUnstable, failPolls:
		return upstream.UnknownTask(kind, "sandbox: the connection broke during rendering")
	case failEmpty:
		return upstream.EmptyResult(kind, "sandbox: completed without a result")
	case failFilter:
		return upstream.ModerationFailure(kind, "The result was withheld.", true)
	}
	if e, ok := endings()[failKind]; ok {
		return upstream.TaskFailure(kind, e.code, e.message)
	}
	return nil
}
