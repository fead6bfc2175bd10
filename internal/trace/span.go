package trace

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// The attributes of ours; all others are OpenTelemetry's (semconv).
const (
	attrRequest = attribute.Key("tollgate.request.id")
	attrAccount = attribute.Key("tollgate.account")
	attrKey     = attribute.Key("tollgate.key.id")
	attrCode    = attribute.Key("tollgate.code")        // the error's, as the client and the request log have it
	attrHeld    = attribute.Key("tollgate.held.nano")   // nano-dollars
	attrCharged = attribute.Key("tollgate.charge.nano") // nano-dollars
	attrCut     = attribute.Key("tollgate.cut")
	attrJob     = attribute.Key("tollgate.job.id")
	attrLine    = attribute.Key("tollgate.line")
)

// Span is a piece of work in a trace. nil is work that is not traced: all methods may be
// called on it, do nothing and cost nothing. One goroutine at a time uses a span.
type Span struct {
	span   oteltrace.Span
	tracer *Tracer
	method string    // of a request
	over   time.Time // when the work was over; zero: it goes on
}

// Request begins the span of a request that arrived at a time. It goes on with the
// caller's trace where the request names one (traceparent). End ends it.
func (t *Tracer) Request(r *http.Request, id string, at time.Time) *Span {
	if t == nil {
		return nil
	}
	ctx := t.caller.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	method := methodOf(r.Method)
	_, span := t.spans.Start(ctx, method, oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithTimestamp(at),
		oteltrace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), attrRequest.String(id)))
	return &Span{span: span, tracer: t, method: method}
}

// methodOf bounds the words of methods, as OpenTelemetry asks for it.
func methodOf(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "_OTHER"
}

// Caller notes whose request it is: the ids of an account and a key.
func (s *Span) Caller(account, key string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrAccount.String(account), attrKey.String(key))
}

// Model notes which model a request is for.
func (s *Span) Model(model string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(semconv.GenAIRequestModel(model))
}

// Held notes what a request's hold is, in nano-dollars.
func (s *Span) Held(nano int64) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrHeld.Int64(nano))
}

// Charged notes what a request was charged, in nano-dollars.
func (s *Span) Charged(nano int64) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrCharged.Int64(nano))
}

// Job notes which job a request has made, or an attempt is of.
func (s *Span) Job(id string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrJob.String(id))
}

// Code notes the code of an error, also where nobody is to blame for it.
func (s *Span) Code(code string) {
	if s == nil || code == "" {
		return
	}
	s.span.SetAttributes(attrCode.String(code))
}

// Fail notes the code of an error, and that the work failed by it.
func (s *Span) Fail(code string) {
	if s == nil {
		return
	}
	s.Code(code)
	s.span.SetAttributes(semconv.ErrorTypeKey.String(code))
	s.span.SetStatus(codes.Error, "")
}

// Cut notes that the connection of a request was cut before the end of its answer, or
// its client was gone.
func (s *Span) Cut() {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrCut.Bool(true))
}

// Answered ends the span of a request with its route and the status of its answer; 0: it
// was cut before it had one.
func (s *Span) Answered(route string, status int) {
	if s == nil {
		return
	}
	s.span.SetName(s.method + " " + route)
	s.span.SetAttributes(semconv.HTTPRoute(route))
	if status > 0 {
		s.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	if status >= http.StatusInternalServerError || status == 0 {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Step begins the span of a step of the gateway's own, such as an admission. End ends
// it.
func (s *Span) Step(name string) *Span {
	if s == nil {
		return nil
	}
	_, span := s.tracer.spans.Start(s.within(), name)
	return &Span{span: span, tracer: s.tracer}
}

// Over notes that the work is over, while more may still be noted of it. Calls after the
// first do nothing.
func (s *Span) Over() {
	if s == nil || !s.over.IsZero() {
		return
	}
	s.over = time.Now()
}

// End ends the span; later calls do nothing.
func (s *Span) End() {
	if s == nil {
		return
	}
	s.Over()
	s.span.End(oteltrace.WithTimestamp(s.over))
}

// Log is the trace of a span for a line of the log; nothing for nil.
func (s *Span) Log() slog.Attr {
	if s == nil {
		return slog.Attr{}
	}
	return slog.String("trace", s.span.SpanContext().TraceID().String())
}

// within is a context whose spans belong to s.
func (s *Span) within() context.Context {
	return oteltrace.ContextWithSpan(context.Background(), s.span)
}
