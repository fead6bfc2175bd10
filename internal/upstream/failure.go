package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"tollgate/internal/fault"
)

// Health is what a failure says about the line it happened on.
type Health int

// The effects of a failure on a line's health.
const (
	// HealthNone: the line is not to blame.
	HealthNone Health = iota
	// HealthFail counts towards the line's circuit breaker.
	HealthFail
	// HealthHalf counts half as much as HealthFail.
	HealthHalf
	// HealthCool: the line asks for a pause; no failure unless it repeats.
	HealthCool
	// HealthCredential: the line's credential or account is out of use until
	// somebody looks at it.
	HealthCredential
	// HealthModel: the line does not have this model, though others may work.
	HealthModel
	// HealthForm: the line does not have this model in the form in which it was
	// asked, though it may in another one.
	HealthForm
)

// String returns the effect's name for logs.
func (h Health) String() string {
	switch h {
	case HealthNone:
		return "none"
	case HealthFail:
		return "fail"
	case HealthHalf:
		return "half"
	case HealthCool:
		return "cool"
	case HealthCredential:
		return "credential"
	case HealthModel:
		return "model"
	case HealthForm:
		return "form"
	default:
		return fmt.Sprintf("Health(%d)", int(h))
	}
}

// Failure is the verdict on one call that brought no good answer.
type Failure struct {
	// Code is the service's code for it (interface.md, Codes by category). For
	// a passed-on rejection it equals Passed.Code.
	Code fault.Code
	// Passed is set when the provider rejected the request itself: the client
	// gets it as it is and no other line is asked.
	Passed *fault.Error
	// Elsewhere says that a rejection is about what this line cannot do: others
	// are asked before the client gets it.
	Elsewhere bool
	// Health is what it says about the line.
	Health Health
	// Unproven says that the request may have brought the failure about: it puts
	// only the question, which a probe answers, whether what Health says holds.
	Unproven bool
	// Vague says of HealthModel that the form may be what is missing: the answer
	// names neither it nor the model.
	Vague bool
	// Tools says of HealthForm that the form is there for requests without tools.
	Tools bool
	// Added says of HealthModel that the provider rejected a field that the gateway
	// added to the request. No probe can confirm it, since a probe lacks the field.
	Added bool
	// AllModels says of HealthCool that the pause is for all models of the line,
	// since the limit is the account's.
	AllModels bool
	// Untrusted says that the certificate of the provider's address was not valid, so
	// nothing was sent.
	Untrusted bool
	// RetryAfter is how long the provider asked us to wait; 0 if it did not
	// say. It is bounded by an hour.
	RetryAfter time.Duration
	// Status is the provider's HTTP status; 0 when no head arrived.
	Status int
	// Used is what the provider counted of the failed call, or what we counted
	// of what it had streamed; zero: it did not say. It is the operator's cost.
	Used TokenCounts
	// Param is the client's field at fault, for MaxTokensTooSmall only.
	Param string
	// Cause is for the operator: what the provider said or which step failed,
	// bounded in length.
	Cause error
}

// Fail makes the failure of a code, with the health effect that the code
// usually has. Callers use it for what they find inside an answer: an empty
// completion, a missed deadline, an error sentence. What a prompt can make a
// good model do is unproven.
func Fail(code fault.Code, cause error) *Failure {
	f := &Failure{Code: code, Health: HealthFail, Cause: cause}
	switch code {
	case fault.EmptyCompletion:
		f.Health, f.Unproven = HealthHalf, true
	case fault.UpstreamError:
		f.Unproven = true
	case fault.UpstreamBusy:
		f.Health = HealthCool
	case fault.ContentFilter, fault.UpstreamPromptFilter, fault.MaxTokensTooSmall, fault.ClientClosed:
		f.Health = HealthNone
		if code == fault.MaxTokensTooSmall {
			f.Param = "max_tokens"
		}
	}
	return f
}

// Interrupted judges an error of the connection: while dialling, while waiting
// for the head, or while reading the body. A context that ended decides first:
// a deadline is upstream_timeout, anything else means that our own side left
// (client_closed, which says nothing about the line).
func Interrupted(ctx context.Context, err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		if timedOut(err) {
			return Fail(fault.UpstreamTimeout, brief(err))
		}
		f := Fail(fault.UpstreamConnectionError, brief(err))
		f.Untrusted = untrusted(err)
		return f
	case timedOut(cause):
		return Fail(fault.UpstreamTimeout, brief(cause))
	default:
		return Fail(fault.ClientClosed, brief(cause))
	}
}

// timedOut reports whether err is a deadline or a time limit of the network.
func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// untrusted reports whether a connection failed because of the other side's certificate.
func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return unknown || host || invalid
}

// Final reports whether no other line may be asked: the provider rejected the
// request itself, the client must change it, or nobody waits any more.
func (f *Failure) Final() bool {
	switch f.Code {
	case fault.ContentFilter, fault.MaxTokensTooSmall, fault.ClientClosed:
		return true
	}
	return f.Passed != nil && !f.Elsewhere
}

// MissesForm tells that the line may serve the request in another form.
func (f *Failure) MissesForm() bool {
	return f.Health == HealthForm || f.Health == HealthModel && f.Vague
}

// MissesModel tells that the line lacks what it was asked for, though it may have
// other models and forms.
func (f *Failure) MissesModel() bool { return f.Health == HealthModel || f.Health == HealthForm }

// Fault returns what the client is told in place of an answer: the rejection
// as the provider worded it, or the service's own words for the code. The
// failure is its cause.
func (f *Failure) Fault() *fault.Error {
	return f.told("You were not charged; ")
}

// FaultInStream is Fault for the error event of an answer that had begun: it
// promises nothing about the charge, since what was produced is billed.
func (f *Failure) FaultInStream() *fault.Error {
	return f.told("The answer is incomplete; ")
}

// told words the failure: what happened, the charge, and what to do.
func (f *Failure) told(charge string) *fault.Error {
	if f.Passed != nil {
		passed := *f.Passed
		passed.Cause = f
		return &passed
	}
	what, advice := f.wording()
	return fault.At(f.Code, f.Param, "%s %s%s", what, charge, advice).WithCause(f)
}

// What a person can do about a model that does not work.
const (
	AdviseElsewhere = "please use another model, or tell the operator of this service: trying again does not help for now."
	AdviseLater     = "please try again in a moment, or use another model."
)

// What happened to a line, for a person who knows neither lines nor providers.
const (
	SaysRefused   = "The model's provider refuses this service's access."
	SaysMissing   = "The model's provider does not offer this model to this service at the moment."
	SaysUntrusted = "The model's provider could not be reached safely, because its certificate is not valid."
)

// wording returns what happened and what a person can do about it.
func (f *Failure) wording() (what, advice string) {
	switch f.Code {
	case fault.UpstreamUnavailable:
		switch f.Health {
		case HealthCredential:
			return SaysRefused, AdviseElsewhere
		case HealthModel, HealthForm:
			return SaysMissing, AdviseElsewhere
		}
		return "The model's provider failed.", AdviseLater
	case fault.UpstreamTimeout:
		return "The model took too long to answer.", "please try again."
	case fault.UpstreamBusy:
		return "The model's provider is limiting requests at the moment.", "please try again in a few seconds."
	case fault.UpstreamConnectionError:
		if f.Untrusted {
			return SaysUntrusted, AdviseElsewhere
		}
		return "The connection to the model's provider broke.", "please try again."
	case fault.EmptyCompletion:
		return "The model returned an empty answer.", "please try again."
	case fault.UpstreamError:
		return "The model's provider sent an error notice instead of an answer.", "please try again."
	case fault.ContentFilter:
		return "The model returned nothing, usually because the provider's safety policy was tripped.", "please change the prompt."
	case fault.UpstreamPromptFilter:
		return "The provider's safety check stopped the prompt.", "please change the prompt."
	case fault.MaxTokensTooSmall:
		return "The model used all of {param} for thinking and wrote no answer.", "please raise {param}."
	case fault.ServiceUnavailable:
		return "The service had a temporary problem.", "please try again."
	case fault.ClientClosed:
		return "The client closed the connection.", "nothing is left to do."
	default:
		return "The model's provider failed.", AdviseLater
	}
}

// Error implements error for logs: code, status and cause.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(string(f.Code))
	if f.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", f.Status)
	}
	if f.Cause != nil {
		b.WriteString(": ")
		b.WriteString(f.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Redact replaces every occurrence of some secrets in what f says, whole or
// masked, and returns f. Providers have been seen to repeat the credential they
// were sent.
func (f *Failure) Redact(secrets ...string) *Failure {
	hide := func(s string) string { return hide(s, secrets) }
	f.Code = fault.Code(hide(string(f.Code)))
	if f.Cause != nil {
		said := splitCause(f.Cause)
		if hidden := (providerError{hide(said.names), hide(said.message)}); hidden != *said {
			f.Cause = &hidden
		}
	}
	if f.Passed != nil {
		passed := *f.Passed
		passed.Code = fault.Code(hide(string(passed.Code)))
		passed.Template = hide(passed.Template)
		passed.Param = hide(passed.Param)
		if passed.Passed != nil {
			rejection := *passed.Passed
			rejection.Type, rejection.StatusName = hide(rejection.Type), hide(rejection.StatusName)
			passed.Passed = &rejection
		}
		f.Passed = &passed
	}
	return f
}

// brief keeps err as it is unless its text is longer than a log line should
// be.
func brief(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > maxCause {
		return errors.New(tidy(text, maxCause))
	}
	return err
}
