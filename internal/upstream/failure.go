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

// Health is the effect of a failure on the health of its line.
type Health int

const (
	// HealthNone means that the failure does not count against the line.
	HealthNone Health = iota
	// HealthFail counts towards the line's circuit breaker.
	HealthFail
	// HealthHalf counts half as much as HealthFail.
	HealthHalf
	// HealthCool means that the line asks for a pause. A repeated pause counts as a
	// failure.
	HealthCool
	// HealthCredential means that the line's credential or account does not work until
	// an operator fixes it.
	HealthCredential
	// HealthModel means that the line does not have this model. Other models may work.
	HealthModel
	// HealthForm means that the line does not have this model in the requested form,
	// but may have it in another form.
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

// Failure describes a call without a good answer.
type Failure struct {
	// Code is the gateway's code (interface.md, Codes by category). For a passed-on rejection it
	// equals Rejection.Code.
	Code fault.Code
	// Rejection is set if the provider rejected the request itself. The client gets
	// the rejection unchanged, and no other line is tried.
	Rejection *fault.Error
	// Elsewhere is true if only this line cannot serve the request. The client gets the rejection
	// after all other lines were tried.
	Elsewhere bool
	// Health is the effect on the line.
	Health Health
	// Unproven is true if the request may have caused the failure. A probe then decides whether
	// Health applies.
	Unproven bool
	// Vague qualifies HealthModel: the answer names neither the model nor the form,
	// so the form may be missing instead.
	Vague bool
	// Tools qualifies HealthForm: the form works for requests without tools.
	Tools bool
	// Added qualifies HealthModel: the provider rejected a field added by the gateway. No probe can
	// confirm this, because a probe lacks the field.
	Added bool
	// AllModels qualifies HealthCool: the limit is the account's, so all models of
	// the line pause.
	AllModels bool
	// Untrusted is true if the provider's certificate was invalid. Nothing was sent.
	Untrusted bool
	// RetryAfter is the wait requested by the provider, at most an hour, or zero.
	RetryAfter time.Duration
	// Status is the provider's HTTP status, or zero if no response header was received.
	Status int
	// Used is the operator's cost of the failed call: the provider's token counts, or the gateway's
	// counts of the streamed part. It may be zero.
	Used TokenCounts
	// Param is the client's field at fault, for MaxTokensTooSmall only.
	Param string
	// Cause is for the operator: the provider's message or the failed step. Its
	// length is bounded.
	Cause error
}

// Fail returns a failure with the usual health effect of its code. Callers use it
// for faults inside an answer: an empty completion, a missed deadline, an error
// sentence. Failures that a prompt can cause are unproven.
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

// ConnectionFailure returns the failure for a connection error: during the dial, before the
// response header or in the body. If ctx has ended, its cause decides: a deadline is
// upstream_timeout; any other cause is client_closed and does not affect the line.
func ConnectionFailure(ctx context.Context, err error) *Failure {
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

// untrusted reports whether a connection failed because of the server's certificate.
func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return unknown || host || invalid
}

// Final reports whether no other line may be tried: the provider rejected the request itself, the
// client must change the request, or the client has disconnected.
func (f *Failure) Final() bool {
	switch f.Code {
	case fault.ContentFilter, fault.MaxTokensTooSmall, fault.ClientClosed:
		return true
	}
	return f.Rejection != nil && !f.Elsewhere
}

// MissesForm reports whether the line may serve the request in another form.
func (f *Failure) MissesForm() bool {
	return f.Health == HealthForm || f.Health == HealthModel && f.Vague
}

// MissesModel reports whether the line lacks the requested model or form. It may
// have others.
func (f *Failure) MissesModel() bool { return f.Health == HealthModel || f.Health == HealthForm }

// Fault returns the error for the client: the provider's rejection, or the gateway's own message
// for the code. Its cause is f.
func (f *Failure) Fault() *fault.Error {
	return f.fault("You were not charged; ")
}

// FaultInStream is Fault for the error event of a partial answer. It does not say
// that the client was not charged, since the partial answer is billed.
func (f *Failure) FaultInStream() *fault.Error {
	return f.fault("The answer is incomplete; ")
}

// fault returns the error for the client. The message has the event, the charge and the advice.
func (f *Failure) fault(charge string) *fault.Error {
	if f.Rejection != nil {
		passed := *f.Rejection
		passed.Cause = f
		return &passed
	}
	description, advice := f.wording()
	return fault.At(f.Code, f.Param, "%s %s%s", description, charge, advice).WithCause(f)
}

// Advice for the user of a failing model.
const (
	AdviseElsewhere = "please use another model, or tell the operator of this service: trying again does not help for now."
	AdviseLater     = "please try again in a moment, or use another model."
)

// Descriptions of a line's failure for users, who know neither lines nor providers.
const (
	SaysRefused   = "The model's provider refuses this service's access."
	SaysMissing   = "The model's provider does not offer this model to this service at the moment."
	SaysUntrusted = "The model's provider could not be reached safely, because its certificate is not valid."
)

// wording returns a description of the failure and the advice to the user.
func (f *Failure) wording() (description, advice string) {
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

// Redact replaces secrets in all texts of f, whole or masked, and returns f, because some providers
// repeat the credential.
func (f *Failure) Redact(secrets ...string) *Failure {
	hide := func(s string) string { return hide(s, secrets) }
	f.Code = fault.Code(hide(string(f.Code)))
	if f.Cause != nil {
		cause := splitCause(f.Cause)
		if hidden := (providerError{hide(cause.names), hide(cause.message)}); hidden != *cause {
			f.Cause = &hidden
		}
	}
	if f.Rejection != nil {
		passed := *f.Rejection
		passed.Code = fault.Code(hide(string(passed.Code)))
		passed.Template = hide(passed.Template)
		passed.Param = hide(passed.Param)
		if passed.Rejection != nil {
			rejection := *passed.Rejection
			rejection.Type, rejection.StatusName = hide(rejection.Type), hide(rejection.StatusName)
			passed.Rejection = &rejection
		}
		f.Rejection = &passed
	}
	return f
}

// brief returns err, with its text cut at maxCause bytes.
func brief(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > maxCause {
		return errors.New(tidy(text, maxCause))
	}
	return err
}
