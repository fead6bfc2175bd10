package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"tollgate/internal/fault"
)

func TestInterrupted(t *testing.T) {
	t.Parallel()
	endedBy := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	for name, tt := range map[string]struct {
		ctx    context.Context
		err    error
		code   fault.Code
		health Health
	}{
		"reset":                {t.Context(), syscall.ECONNRESET, fault.UpstreamConnectionError, HealthFail},
		"end of file":          {t.Context(), io.ErrUnexpectedEOF, fault.UpstreamConnectionError, HealthFail},
		"own time limit":       {t.Context(), fmt.Errorf("read: %w", os.ErrDeadlineExceeded), fault.UpstreamTimeout, HealthFail},
		"deadline of the call": {endedBy(context.DeadlineExceeded), io.ErrUnexpectedEOF, fault.UpstreamTimeout, HealthFail},
		"client disconnected":  {endedBy(context.Canceled), io.ErrUnexpectedEOF, fault.ClientClosed, HealthNone},
		"another cause":        {endedBy(errors.New("shutting down")), context.Canceled, fault.ClientClosed, HealthNone},
		"no free descriptor": {t.Context(), &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
			fault.ServiceUnavailable, HealthNone},
		"a failure": {endedBy(context.Canceled), fmt.Errorf("x: %w", Fail(fault.UpstreamBusy, nil)), fault.UpstreamBusy, HealthCool},
	} {
		f := ConnectionFailure(tt.ctx, tt.err)
		if f.Code != tt.code || f.Health != tt.health {
			t.Errorf("%s: %s, %s, want %s, %s", name, f.Code, f.Health, tt.code, tt.health)
		}
	}
}

// TestFault checks that the message for every failure code tells the client about the failure and
// the charge.
func TestFault(t *testing.T) {
	t.Parallel()
	final := map[fault.Code]bool{fault.ContentFilter: true, fault.MaxTokensTooSmall: true, fault.ClientClosed: true}
	for _, code := range []fault.Code{
		fault.UpstreamTimeout, fault.UpstreamUnavailable, fault.UpstreamBusy, fault.UpstreamConnectionError,
		fault.EmptyCompletion, fault.UpstreamError, fault.ContentFilter, fault.UpstreamPromptFilter,
		fault.MaxTokensTooSmall, fault.ClientClosed,
	} {
		cause := errors.New("line main said no")
		f := Fail(code, cause)
		if f.Final() != final[code] {
			t.Errorf("%s: final %t", code, f.Final())
		}
		e := f.Fault()
		if e.Code != code || !strings.Contains(e.Message(), "not charged") || strings.Contains(e.Message(), "main") {
			t.Errorf("%s: code %s, message %q", code, e.Code, e.Message())
		}
		if !errors.Is(e, cause) {
			t.Errorf("%s: the cause is lost for the log", code)
		}
		if in := f.FaultInStream(); strings.Contains(in.Message(), "not charged") {
			t.Errorf("%s: the error inside a stream says that it was not charged: %q", code, in.Message())
		}
		if row, ok := fault.Lookup(code); ok && e.Status() != row.Status {
			t.Errorf("%s: status %d", code, e.Status())
		}
	}
	if e := Fail(fault.MaxTokensTooSmall, nil).Fault(); e.Param != "max_tokens" {
		t.Errorf("param %q", e.Param)
	}
}

func TestRedactLeavesTheRest(t *testing.T) {
	t.Parallel()
	f := Classify(400, "", []byte(openAI("invalid_request_error", "", "no such thing as a token")), nil)
	for _, secret := range []string{"", "token", "absent-secret-0123"} {
		if f.Redact(secret); f.Fault().Message() != "no such thing as a token" {
			t.Errorf("secret %q: message %q", secret, f.Fault().Message())
		}
	}
	before := f.Rejection
	f.Redact("no such thing")
	if f.Fault().Message() != "[redacted] as a token" || before.Message() != "no such thing as a token" {
		t.Errorf("message %q, original %q", f.Fault().Message(), before.Message())
	}
}
