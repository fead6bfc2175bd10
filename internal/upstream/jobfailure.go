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

// Next is what can be done about a JobFailure.
type Next int

// What can be done about a JobFailure, from hopeful to hopeless.
const (
	// NextPoll: it says nothing about the task; ask again later.
	NextPoll Next = iota
	// NextLater: the line takes nothing more now; this line or another one,
	// after a while.
	NextLater
	// NextSame: submit once more on the same line, then on others.
	NextSame
	// NextLine: submit on another line.
	NextLine
	// NextNone: the job fails.
	NextNone
)

// JobFailure is why a task did not get done on a line.
type JobFailure struct {
	// Failure is for the line and the operator: its health effect, status and
	// cause. Never nil.
	*Failure
	// Job is the job's error.code if the job ends with this failure
	// (interface.md, Failed jobs).
	Job fault.Code
	// Param is the job's error.param: `audio` where the sound was flagged.
	Param string
	// Message is what the provider said about the task, for the user; empty: see
	// Told.
	Message string
	// Next is what can be done about it.
	Next Next
	// Lost says that the answer to a submission did not arrive, so the provider
	// may have accepted it.
	Lost bool
}

// Unwrap returns the failure.
func (t *JobFailure) Unwrap() error { return t.Failure }

// Error implements error for logs.
func (t *JobFailure) Error() string { return string(t.Job) + ": " + t.Failure.Error() }

// Redact is Failure.Redact for all that t says.
func (t *JobFailure) Redact(secrets ...string) *JobFailure {
	t.Message = hide(t.Message, secrets)
	t.Failure = t.Failure.Redact(secrets...)
	return t
}

// Told is what the user reads as error.message of a job that ends with t.
func (t *JobFailure) Told() string {
	said, words := fault.LookupJob(t.Job).Told, strings.TrimRight(redact(t.Message), ". ")
	switch {
	case t.Message == "":
	case t.Job == fault.UpstreamError:
		said = "The provider refused the job: " + words + "."
	default:
		said += " The provider says: " + words + "."
	}
	return said + " You were not charged."
}

// FailJob makes a job's failure of one that has no telling names: a connection
// that broke, an answer that makes no sense, a line that cannot do it.
func FailJob(f *Failure, job fault.Code, next Next) *JobFailure {
	return &JobFailure{Failure: f, Job: job, Next: next}
}

// LostAnswer is the failure of a submission whose answer did not arrive, or
// broke off: err is the error of the connection. Dialling errors, where nothing
// was sent, are not lost.
func LostAnswer(ctx context.Context, err error) *JobFailure {
	f := Interrupted(ctx, err)
	return &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine, Lost: !undialled(err)}
}

// Nameless is the failure of a submission that was accepted under a name that we
// do not know: its answer has no usable field of what is meant to name it.
func Nameless(field string) *JobFailure {
	err := fmt.Errorf("no usable %s in the answer to a submission", field)
	f := FailJob(Fail(fault.UpstreamUnavailable, err), fault.UpstreamError, NextLine)
	f.Lost = true // it runs
	return f
}

// Refused is Source.Refused for an answer of nobody known.
func Refused(kind string, status int, contentType string, body []byte, header http.Header) *JobFailure {
	return Source{}.Refused(kind, status, contentType, body, header)
}

// Refused is the verdict on an HTTP answer that is not a good one to a
// submission.
func (s Source) Refused(kind string, status int, contentType string, body []byte, header http.Header) *JobFailure {
	f := s.Classify(status, contentType, body, header)
	if f == nil {
		f = Fail(fault.UpstreamUnavailable, errors.New("an answer that makes no sense"))
		f.Status = status
	}
	n, _ := readNotice(body, true)
	return refusedJob(kind, n, f)
}

// RefusedAs is Refused for an error in a shape of its provider's own. The adapter
// reads the code and the message; either may be empty.
func (s Source) RefusedAs(kind string, status int, header http.Header, code, message string) *JobFailure {
	n := namedNotice(code, message)
	return refusedJob(kind, n, s.classifyError(status, n, header))
}

// namedNotice returns the notice of an error with this code and message.
func namedNotice(code, message string) notice {
	n := notice{code: tidy(code, maxName), message: tidy(message, maxMessage)}
	if n.code != "" {
		n.signals = []string{strings.ToLower(n.code)}
	}
	return n
}

// refusedJob returns the job's failure for a rejected submission.
func refusedJob(kind string, n notice, f *Failure) *JobFailure {
	if t := byName(kind, n, f); t != nil {
		return t
	}
	t := &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine}
	switch {
	case f.Passed != nil:
		t.Message = f.Passed.Message()
		if kind == KindVideo {
			t.Job = fault.InvalidRequest
		}
	case f.Code == fault.UpstreamPromptFilter || f.Code == fault.ContentFilter:
		return moderated(kind, n.code, n.message, f)
	case f.Code == fault.UpstreamBusy:
		t.Next = NextLater
	}
	return t
}

// Ended is Source.Ended for a provider that is not known.
func Ended(kind, code, message string) *JobFailure { return Source{}.Ended(kind, code, message) }

// Ended classifies the failure of a task by the provider's code and message.
// Either may be empty.
func (s Source) Ended(kind, code, message string) *JobFailure {
	n := namedNotice(code, message)
	cause := ProviderError(n.code, strings.Trim(n.message, ": "))
	if cause.Error() == "" {
		cause = errors.New("failed without a reason")
	}
	f := Fail(fault.UpstreamError, cause)
	if t := byName(kind, n, f); t != nil {
		return t
	}
	switch reason := s.reasonOf(n); reason {
	case reasonFilter, reasonOutput:
		return moderated(kind, n.code, n.message, f)
	case reasonBusy, reasonCapacity:
		if reason == reasonBusy {
			f.Health, f.AllModels = HealthCool, s.limitsAll(n)
		}
		return &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLater}
	case reasonAccount, reasonAccountWords:
		f.Health, f.Unproven = HealthCredential, reason == reasonAccountWords
		return &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine}
	case reasonModel, reasonMissing:
		f.Health, f.Unproven = HealthModel, reason == reasonMissing
		return &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine}
	}
	t := &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine}
	if kind == KindVideo {
		t.Job = fault.RenderFailed
	}
	return t
}

// Expired is the verdict on a task that the provider gave up for its age.
func Expired(kind, cause string) *JobFailure {
	t := &JobFailure{Failure: Fail(fault.UpstreamTimeout, errors.New(tidy(cause, maxCause))), Job: fault.UpstreamError, Next: NextLine}
	if kind == KindVideo {
		t.Job = fault.RenderTimeout
	}
	return t
}

// Vanished is the verdict on a task that the provider accepted and no longer
// knows.
func Vanished(kind, cause string) *JobFailure {
	t := &JobFailure{Failure: Fail(fault.UpstreamUnavailable, errors.New(tidy(cause, maxCause))), Job: fault.UpstreamError, Next: NextLine}
	if kind == KindVideo {
		t.Job = fault.UpstreamUnstable
	}
	return t
}

// Nothing is the verdict on a task that ended well and brought nothing.
func Nothing(kind, cause string) *JobFailure {
	f := Fail(fault.EmptyCompletion, errors.New(tidy(cause, maxCause)))
	t := &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextSame}
	if kind == KindVideo {
		t.Job = fault.RenderFailed
	}
	return t
}

// Moderated is the verdict on a task that the provider's safety system stopped,
// for providers that say so without a code. Output says that the result was
// stopped, which may pass at a second try.
func Moderated(kind, cause string, output bool) *JobFailure {
	t := moderated(kind, "", tidy(cause, maxMessage), Fail(fault.ContentFilter, errors.New(tidy(cause, maxCause))))
	if output && kind == KindVideo {
		t.Next = NextSame
	}
	return t
}

// moderated is the failure of a task that the provider's safety system stopped.
func moderated(kind, code, message string, f *Failure) *JobFailure {
	f.Health, f.Passed = HealthNone, nil
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

// byName judges by the names in an answer that mean something for jobs alone;
// nil: none does.
func byName(kind string, n notice, f *Failure) *JobFailure {
	for _, s := range n.signals {
		var t *JobFailure
		switch {
		case isModeration(s):
			t = moderated(kind, s, n.message, f)
		case isMaterial(s):
			f.Health, f.Passed = HealthNone, nil
			t = &JobFailure{Failure: f, Job: fault.UpstreamError, Message: n.message, Next: NextLine}
			if kind == KindVideo {
				t.Job = fault.InvalidMaterial
			}
		case isParameter(s):
			f.Health = HealthNone
			t = &JobFailure{Failure: f, Job: fault.UpstreamError, Message: n.message, Next: NextLine}
			if kind == KindVideo {
				t.Job = fault.InvalidRequest
			}
		case s == "no_media_generated" || s == "no_image":
			t = Nothing(kind, s+": "+n.message)
		case s == "generation_timeout" || s == "request_timeout" || s == "startup_timeout":
			t = Expired(kind, s+": "+n.message)
		}
		if t != nil {
			t.Status = f.Status
			return t
		}
	}
	return nil
}

// isModeration tells whether a name, in lower case, is one of a safety system.
func isModeration(s string) bool {
	switch s {
	case "moderation_blocked", "content_policy_violation", "image_content_policy_violation", "sentinel_block",
		"safety", "image_safety", "prohibited_content", "image_prohibited_content", "image_recitation", "recitation", "blocklist",
		"datainspectionfailed", "ipinfringementsuspect":
		return true
	}
	return strings.Contains(s, "sensitivecontentdetected") || strings.HasPrefix(s, "safety.")
}

// isMaterial tells whether a name, in lower case, is about a reference that a
// provider cannot use.
func isMaterial(s string) bool {
	switch s {
	case "file_download_error", "image_load_error", "face_detection_error", "image_too_large", "image_too_small", "file_too_large",
		"unsupported_image_format", "unsupported_audio_format", "unsupported_video_format", "invalid_image", "unsupported_image_media_type",
		"invalidurl", "badrequest.inputdownloadfailed", "asset.invalid":
		return true
	}
	return strings.HasPrefix(s, "badrequest.")
}

// isParameter tells whether a name, in lower case, is about a field that a
// provider does not accept.
func isParameter(s string) bool {
	switch s {
	case "missingparameter", "outofcontexterror", "value_error", "missing", "one_of", "greater_than", "less_than", "greater_than_equal",
		"less_than_equal", "sequence_too_long", "sequence_too_short", "feature_not_supported":
		return true
	}
	return strings.HasPrefix(s, "invalidparameter")
}

// Unsuitable is the failure of a line that cannot express the task.
func Unsuitable(kind, format string, args ...any) *JobFailure {
	f := Fail(fault.UpstreamUnavailable, fmt.Errorf(format, args...))
	f.Health = HealthNone
	t := &JobFailure{Failure: f, Job: fault.UpstreamError, Next: NextLine}
	if kind == KindVideo {
		t.Job = fault.InvalidRequest
	}
	return t
}

// undialled tells whether an error of the connection came before anything was
// sent. A verdict in place of such an error is one of our own, on what a call
// needs first: its credential.
func undialled(err error) bool {
	var (
		op      *net.OpError
		verdict *Failure
	)
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &verdict)
}

// Unfit is the failure of a reference that a provider is known not to take. The
// words are for the user.
func Unfit(kind, format string, args ...any) *JobFailure {
	t := Unsuitable(kind, format, args...)
	t.Message = t.Cause.Error()
	if kind == KindVideo {
		t.Job = fault.InvalidMaterial
	}
	return t
}

// Unread is the failure of a reference that we could not read from our own
// store: nothing that the provider could do was sent, and the line is not to
// blame.
func Unread(err error) *JobFailure {
	f := Fail(fault.UpstreamUnavailable, fmt.Errorf("reading a reference: %w", brief(err)))
	f.Health = HealthNone
	return FailJob(f, fault.UpstreamError, NextLater)
}

// AsJobFailure returns the JobFailure that an error of a Generator or of exchange is.
// Anything else, which would be a mistake of ours, is one of the connection.
func AsJobFailure(err error) *JobFailure {
	if t := (*JobFailure)(nil); errors.As(err, &t) {
		return t
	}
	return FailJob(Fail(fault.UpstreamConnectionError, brief(err)), fault.UpstreamError, NextLine)
}
