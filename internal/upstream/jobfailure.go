package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"tollgate/internal/fault"
)

// The kinds of tasks.
const (
	KindImage = "image"
	KindVideo = "video"
)

// Next is the next step of a job after a JobFailure.
type Next int

// The next steps, from the least to the most severe.
const (
	// NextPoll means that the failure does not affect the task. The job polls again later.
	NextPoll Next = iota
	// NextLater means that the line is busy. The job tries this line or another one later.
	NextLater
	// NextSame means that the job submits once more on the same line, then on other lines.
	NextSame
	// NextLine means that the job submits on another line.
	NextLine
	// NextNone means that the job fails.
	NextNone
)

// JobFailure describes a task's failure on a line.
type JobFailure struct {
	// Failure holds the effect on the line's health, and the status and cause for the operator. It
	// is never nil.
	*Failure
	// Job is the job's error.code if the job ends with this failure
	// (interface.md, Failed jobs).
	Job fault.Code
	// Param is the job's error.param. It is `audio` if the provider flagged the sound.
	Param string
	// Message is the provider's message for the user. It may be empty.
	Message string
	// Next is the job's next step.
	Next Next
	// Lost is true if the response to a submission did not arrive. The provider may have accepted
	// the submission.
	Lost bool
}

// Unwrap returns the failure.
func (t *JobFailure) Unwrap() error { return t.Failure }

// Error implements error for logs.
func (t *JobFailure) Error() string { return string(t.Job) + ": " + t.Failure.Error() }

// Redact is Failure.Redact for all texts of t.
func (t *JobFailure) Redact(secrets ...string) *JobFailure {
	t.Message = hideSecrets(t.Message, secrets)
	t.Failure = t.Failure.Redact(secrets...)
	return t
}

// UserMessage returns the error.message of a job that ends with t.
func (t *JobFailure) UserMessage() string {
	message, words := fault.LookupJob(t.Job).Message, strings.TrimRight(redact(t.Message), ". ")
	switch {
	case t.Message == "":
	case t.Job == fault.UpstreamError:
		message = "The provider refused the job: " + words + "."
	default:
		message += " The provider says: " + words + "."
	}
	return message + " You were not charged."
}

// FailJob returns a JobFailure for a failure without a provider's error code, such as
// a broken connection, an unreadable answer or a line that cannot do the task.
func FailJob(f *Failure, job fault.Code, next Next) *JobFailure {
	return &JobFailure{Failure: f, Job: job, Next: next}
}

// LostAnswer returns the failure of a submission with a missing or incomplete answer. err
// is the connection error. Lost is false after a dial error, because nothing was sent.
func LostAnswer(ctx context.Context, err error) *JobFailure {
	f := ConnectionFailure(ctx, err)
	return &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine, Lost: !nothingSent(err)}
}

// MissingTicket returns the failure of an accepted submission if the field with the
// task's id is missing or unusable.
func MissingTicket(field string) *JobFailure {
	err := fmt.Errorf("no usable %s in the answer to a submission", field)
	f := FailJob(Fail(fault.UpstreamUnavailable, err), fault.UpstreamError, NextLine)
	f.Lost = true // the task may be running
	return f
}

// SubmitFailure is like Source.SubmitFailure for an unknown provider.
func SubmitFailure(kind string, status int, contentType string, body []byte, header http.Header) *JobFailure {
	return Source{}.SubmitFailure(kind, status, contentType, body, header)
}

// SubmitFailure classifies a bad answer to a submission.
func (s Source) SubmitFailure(kind string, status int, contentType string, body []byte, header http.Header) *JobFailure {
	f := s.Classify(status, contentType, body, header)
	if f == nil {
		f = Fail(fault.UpstreamUnavailable, errors.New("the answer cannot be read"))
		f.Status = status
	}
	n, _ := readNotice(body, true)
	return classifySubmission(kind, n, f)
}

// SubmitFailureAs is like SubmitFailure for an error in the provider's own format, from which the
// adapter has read the code and the message. Either may be empty.
func (s Source) SubmitFailureAs(kind string, status int, header http.Header, code, message string) *JobFailure {
	n := namedNotice(code, message)
	return classifySubmission(kind, n, s.classifyError(status, n, header))
}

// namedNotice returns the notice of an error with this code and message.
func namedNotice(code, message string) notice {
	n := notice{code: tidy(code, maxName), message: tidy(message, maxMessage)}
	if n.code != "" {
		n.signals = []string{strings.ToLower(n.code)}
	}
	return n
}

// classifySubmission returns the job's failure for a rejected submission.
func classifySubmission(kind string, n notice, f *Failure) *JobFailure {
	if t := failureByName(kind, n, f); t != nil {
		return t
	}
	t := &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine}
	switch {
	case f.Rejection != nil:
		t.Job, t.Message = jobCode(kind, fault.InvalidRequest), f.Rejection.Message()
	case f.Code == fault.UpstreamPromptFilter || f.Code == fault.ContentFilter:
		return moderationFailure(kind, n.code, n.message, f)
	case f.Code == fault.UpstreamBusy:
		t.Next = NextLater
	}
	return t
}

// TaskFailure is like Source.TaskFailure for an unknown provider.
func TaskFailure(kind, code, message string) *JobFailure {
	return Source{}.TaskFailure(kind, code, message)
}

// TaskFailure classifies the failure of a task by the provider's code and message.
// Either may be empty.
func (s Source) TaskFailure(kind, code, message string) *JobFailure {
	n := namedNotice(code, message)
	cause := ProviderError(n.code, strings.Trim(n.message, ": "))
	if cause.Error() == "" {
		cause = errors.New("failed without a reason")
	}
	f := Fail(fault.UpstreamError, cause)
	if t := failureByName(kind, n, f); t != nil {
		return t
	}
	switch reason := s.reasonOf(n); reason {
	case reasonFilter, reasonOutput:
		return moderationFailure(kind, n.code, n.message, f)
	case reasonBusy, reasonCapacity:
		if reason == reasonBusy {
			f.Health, f.AllModels = HealthCool, s.limitsAll(n)
		}
		return FailJob(f, fault.UpstreamError, NextLater)
	case reasonAccount, reasonAccountWords:
		f.Health, f.Unproven = HealthCredential, reason == reasonAccountWords
		return FailJob(f, fault.UpstreamError, NextLine)
	case reasonModel, reasonMissing:
		f.Health, f.Unproven = HealthModel, reason == reasonMissing
		return FailJob(f, fault.UpstreamError, NextLine)
	}
	return FailJob(f, jobCode(kind, fault.RenderFailed), NextLine)
}

// jobCode returns the error code of a failed job: the code video for a clip, and upstream_error for
// an image.
func jobCode(kind string, video fault.Code) fault.Code {
	if kind == KindVideo {
		return video
	}
	return fault.UpstreamError
}

// ExpiredTask returns the failure of a task that the provider dropped for its age.
func ExpiredTask(kind, cause string) *JobFailure {
	return FailJob(Fail(fault.UpstreamTimeout, errors.New(tidy(cause, maxCause))), jobCode(kind, fault.RenderTimeout), NextLine)
}

// UnknownTask returns the failure of an accepted task that the provider no longer knows.
func UnknownTask(kind, cause string) *JobFailure {
	return FailJob(Fail(fault.UpstreamUnavailable, errors.New(tidy(cause, maxCause))), jobCode(kind, fault.UpstreamUnstable), NextLine)
}

// EmptyResult returns the failure of a successful task without a result.
func EmptyResult(kind, cause string) *JobFailure {
	return FailJob(Fail(fault.EmptyCompletion, errors.New(tidy(cause, maxCause))), jobCode(kind, fault.RenderFailed), NextSame)
}

// ModerationFailure returns the failure of a task stopped by the provider's safety system, for
// providers without a code for this. If output is true, the safety system stopped the result, and a
// second try may pass.
func ModerationFailure(kind, cause string, output bool) *JobFailure {
	t := moderationFailure(kind, "", tidy(cause, maxMessage), Fail(fault.ContentFilter, errors.New(tidy(cause, maxCause))))
	if output && kind == KindVideo {
		t.Next = NextSame
	}
	return t
}

// moderationFailure returns the failure of a task stopped by the provider's safety system.
func moderationFailure(kind, code, message string, f *Failure) *JobFailure {
	f.Health, f.Rejection = HealthNone, nil
	t := &JobFailure{Failure: f, Job: fault.ModerationBlocked, Message: message, Next: NextNone}
	name := strings.ToLower(code)
	switch {
	case kind == KindVideo:
		t.Job = fault.ContentPolicy
		if strings.Contains(name, "audio") || strings.Contains(strings.ToLower(message), "audio") {
			t.Param = "audio"
		}
		if strings.Contains(name, "output") {
			t.Next = NextSame
		}
	case strings.Contains(name, "content_policy_violation"):
		t.Job = fault.ContentPolicyViolation
	}
	return t
}

// failureByName returns the failure if the notice has an error name used only for jobs. Otherwise it
// returns nil.
func failureByName(kind string, n notice, f *Failure) *JobFailure {
	for _, s := range n.signals {
		var t *JobFailure
		switch {
		case isModeration(s):
			t = moderationFailure(kind, s, n.message, f)
		case isMaterial(s):
			f.Health, f.Rejection = HealthNone, nil
			t = &JobFailure{Failure: f, Job: jobCode(kind, fault.InvalidMaterial), Message: n.message, Next: NextLine}
		case isParameter(s):
			f.Health = HealthNone
			t = &JobFailure{Failure: f, Job: jobCode(kind, fault.InvalidRequest), Message: n.message, Next: NextLine}
		case s == "no_media_generated" || s == "no_image":
			t = EmptyResult(kind, s+": "+n.message)
		case s == "generation_timeout" || s == "request_timeout" || s == "startup_timeout":
			t = ExpiredTask(kind, s+": "+n.message)
		}
		if t != nil {
			t.Status = f.Status
			return t
		}
	}
	return nil
}

// isModeration reports whether an error name, in lower case, comes from a safety
// system.
func isModeration(s string) bool {
	switch s {
	case "moderation_blocked", "content_policy_violation", "image_content_policy_violation", "sentinel_block",
		"safety", "image_safety", "prohibited_content", "image_prohibited_content", "image_recitation", "recitation", "blocklist",
		"datainspectionfailed", "ipinfringementsuspect":
		return true
	}
	return strings.Contains(s, "sensitivecontentdetected") || strings.HasPrefix(s, "safety.")
}

// isMaterial reports whether an error name, in lower case, is about an unusable
// reference.
func isMaterial(s string) bool {
	switch s {
	case "file_download_error", "image_load_error", "face_detection_error", "image_too_large", "image_too_small", "file_too_large",
		"unsupported_image_format", "unsupported_audio_format", "unsupported_video_format", "invalid_image", "unsupported_image_media_type",
		"invalidurl", "badrequest.inputdownloadfailed", "asset.invalid":
		return true
	}
	return strings.HasPrefix(s, "badrequest.")
}

// isParameter reports whether an error name, in lower case, is about a rejected field.
func isParameter(s string) bool {
	switch s {
	case "missingparameter", "outofcontexterror", "value_error", "missing", "one_of", "greater_than", "less_than", "greater_than_equal",
		"less_than_equal", "sequence_too_long", "sequence_too_short", "feature_not_supported":
		return true
	}
	return strings.HasPrefix(s, "invalidparameter")
}

// Unsuitable returns the failure of a line that cannot express the task.
func Unsuitable(kind, format string, args ...any) *JobFailure {
	f := Fail(fault.UpstreamUnavailable, fmt.Errorf(format, args...))
	f.Health = HealthNone
	return FailJob(f, jobCode(kind, fault.InvalidRequest), NextLine)
}

// nothingSent reports whether err happened before anything was sent: a dial error, or a
// *Failure of the gateway itself, such as a missing credential.
func nothingSent(err error) bool {
	var (
		op      *net.OpError
		failure *Failure
	)
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &failure)
}

// Unfit returns the failure of a task with a reference that the provider is known to
// reject. The user reads the message.
func Unfit(kind, format string, args ...any) *JobFailure {
	t := Unsuitable(kind, format, args...)
	t.Job, t.Message = jobCode(kind, fault.InvalidMaterial), t.Cause.Error()
	return t
}

// UnreadableFile returns the failure of a reference that could not be read from the gateway's
// own store. No submission was sent, and the failure does not count against the line.
func UnreadableFile(err error) *JobFailure {
	f := Fail(fault.UpstreamUnavailable, fmt.Errorf("reading a reference: %w", shorten(err)))
	f.Health = HealthNone
	return FailJob(f, fault.UpstreamError, NextLater)
}

// AsJobFailure returns the JobFailure in err. Any other error is a bug in an adapter and
// becomes a connection error.
func AsJobFailure(err error) *JobFailure {
	if t := (*JobFailure)(nil); errors.As(err, &t) {
		return t
	}
	return FailJob(Fail(fault.UpstreamConnectionError, shorten(err)), fault.UpstreamError, NextLine)
}
