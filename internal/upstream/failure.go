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
	"syscall"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/wire/kind"
)

// Health is the effect of a failure on the health of its line.
type Health int

const (
	// HealthNone means that the failure does not count against the line.
	HealthNone Health = iota
	// HealthFail means that the failure counts towards the line's circuit breaker.
	HealthFail
	// HealthHalf means that the failure counts half as much as HealthFail.
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

// String returns the name of h for logs.
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
	// Code is the gateway's code (interface.md, Codes by category). If Rejection is set, Code
	// equals Rejection.Code.
	Code fault.Code
	// Rejection is set if the provider rejected the request itself. The client gets
	// the rejection unchanged, and no other line is tried.
	Rejection *fault.Error
	// LineSpecific is true if only this line cannot serve the request. The client gets the rejection
	// after all other lines were tried.
	LineSpecific bool
	// Health is the effect on the line.
	Health Health
	// Unproven is true if the request may have caused the failure. A probe then decides whether
	// Health applies.
	Unproven bool
	// Vague is used with HealthModel. It is true if the answer names neither the model nor
	// the form, so that the line may lack the form instead.
	Vague bool
	// Tools is used with HealthForm. It is true if the form works for requests without tools.
	Tools bool
	// AddedField is used with HealthModel. It is true if the provider rejected a field added by
	// the gateway. A probe cannot confirm this, because a probe lacks the field.
	AddedField bool
	// AllModels is used with HealthCool. It is true if the limit applies to the account, so
	// that all models of the line pause.
	AllModels bool
	// Untrusted is true if the provider's certificate was invalid. Nothing was sent.
	Untrusted bool
	// RetryAfter is the wait requested by the provider, at most an hour, or zero.
	RetryAfter time.Duration
	// Status is the provider's HTTP status, or zero if no response header was received.
	Status int
	// Tokens is the operator's cost of the failed call: the provider's token counts, or the gateway's
	// counts of the streamed part. It may be zero.
	Tokens TokenCounts
	// Param is the client's field that caused the failure. It is set only for MaxTokensTooSmall.
	Param string
	// Cause is the provider's message or the failed step, for the operator. The length of
	// its text is bounded.
	Cause error
}

// Fail returns a failure with the usual health effect of its code. Callers use Fail
// for faults inside an answer, such as an empty completion or an error sentence, and for
// a missed deadline. Failures that a prompt can cause are unproven.
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

// OutOfMemory returns the failure of an attempt without budget for its answer. The failure does not
// count against the line; another line may answer shorter.
func OutOfMemory() *Failure {
	return &Failure{Code: fault.UpstreamUnavailable, Cause: kind.ErrNoMemory}
}

// Unsupported returns the failure for a client's field that the provider cannot express. Nothing was sent. The
// client gets the rejection after all other lines were tried. In the message `{param}` stands for the field.
func Unsupported(param, message string, args ...any) *Failure {
	e := fault.At(fault.InvalidRequest, param, message, args...)
	return &Failure{Code: e.Code, Rejection: e, LineSpecific: true, Cause: fmt.Errorf("the provider cannot express %s", param)}
}

// ConnectionFailure returns the failure for an error of a connection: during the dial, before
// the response header or in the body. If ctx has ended because of a deadline, the code is
// upstream_timeout. If ctx has ended for another cause, the code is client_closed, and the
// failure does not affect the line. A lack of the gateway's own descriptors or ports has the code
// service_unavailable and does not affect the line either.
func ConnectionFailure(ctx context.Context, err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		if isTimeout(err) {
			return Fail(fault.UpstreamTimeout, shorten(err))
		}
		if lacksDescriptors(err) {
			f := Fail(fault.ServiceUnavailable, shorten(err))
			f.Health = HealthNone
			return f
		}
		f := Fail(fault.UpstreamConnectionError, shorten(err))
		f.Untrusted = isUntrusted(err)
		return f
	case isTimeout(cause):
		return Fail(fault.UpstreamTimeout, shorten(cause))
	default:
		return Fail(fault.ClientClosed, shorten(cause))
	}
}

// isTimeout reports whether err is a missed deadline or a network timeout.
func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// lacksDescriptors reports whether a connection failed because the process or the machine has no free
// descriptor or port.
func lacksDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// isUntrusted reports whether a connection failed because of the server's certificate.
func isUntrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return unknown || host || invalid
}

// Final reports whether no other line may be tried, because the provider rejected the request itself,
// the client must change the request, or the client has disconnected.
func (f *Failure) Final() bool {
	switch f.Code {
	case fault.ContentFilter, fault.MaxTokensTooSmall, fault.ClientClosed:
		return true
	}
	return f.Rejection != nil && !f.LineSpecific
}

// MissesForm reports whether the line may serve the request in another form.
func (f *Failure) MissesForm() bool {
	return f.Health == HealthForm || f.Health == HealthModel && f.Vague
}

// MissesModel reports whether the line lacks the requested model or form. The line may
// have other models or forms.
func (f *Failure) MissesModel() bool { return f.Health == HealthModel || f.Health == HealthForm }

// Fault returns the error for the client: the provider's rejection, or the gateway's own message
// for the code. The error's cause is f.
func (f *Failure) Fault() *fault.Error {
	return f.fault("You were not charged; ")
}

// FaultInStream is Fault for the error event of a partial answer. The message does not say
// that the client was not charged, because the partial answer is billed.
func (f *Failure) FaultInStream() *fault.Error {
	return f.fault("The answer is incomplete; ")
}

// fault returns the error for the client. The message consists of the failure's description, charge
// and the advice.
func (f *Failure) fault(charge string) *fault.Error {
	if f.Rejection != nil {
		e := *f.Rejection
		e.Cause = f
		return &e
	}
	description, advice := f.wording()
	return fault.At(f.Code, f.Param, "%s %s%s", description, charge, advice).WithCause(f)
}

// Advice to the user of a failing model.
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

// Redact replaces secrets in all texts of f, also masked ones, and returns f. Some providers repeat
// the credential in an error.
func (f *Failure) Redact(secrets ...string) *Failure {
	hide := func(s string) string { return hideSecrets(s, secrets) }
	f.Code = fault.Code(hide(string(f.Code)))
	if f.Cause != nil {
		cause := splitCause(f.Cause)
		if hidden := (providerError{hide(cause.names), hide(cause.message)}); hidden != *cause {
			f.Cause = &hidden
		}
	}
	if f.Rejection != nil {
		e := *f.Rejection
		e.Code = fault.Code(hide(string(e.Code)))
		e.Template = hide(e.Template)
		e.Param = hide(e.Param)
		if e.Rejection != nil {
			rejection := *e.Rejection
			rejection.Type, rejection.StatusName = hide(rejection.Type), hide(rejection.StatusName)
			e.Rejection = &rejection
		}
		f.Rejection = &e
	}
	return f
}

// shorten returns err, or an error with the first maxCause bytes of its text.
func shorten(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > maxCause {
		return errors.New(tidy(text, maxCause))
	}
	return err
}
