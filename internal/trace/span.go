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

// The gateway's own attributes. All others are OpenTelemetry's (semconv).
const (
	attrRequest = attribute.Key("tollgate.request.id")
	attrAccount = attribute.Key("tollgate.account")
	attrKey     = attribute.Key("tollgate.key.id")
	attrCode    = attribute.Key("tollgate.code")        // the error code, as in the answer and the request log
	attrHeld    = attribute.Key("tollgate.held.nano")   // nano-dollars
	attrCharged = attribute.Key("tollgate.charge.nano") // nano-dollars
	attrCut     = attribute.Key("tollgate.cut")
	attrJob     = attribute.Key("tollgate.job.id")
	attrLine    = attribute.Key("tollgate.line")
)

// Span is a span of a trace. All methods of a nil Span are no-ops. A Span is used by one goroutine
// at a time.
type Span struct {
	span   oteltrace.Span
	tracer *Tracer
	method string    // of a request
	ended  time.Time // end of the work; zero while the work continues
}

// Request starts the span of a request with its arrival time. It continues the caller's trace if
// the request has a traceparent. Callers must call EndRequest.
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

// methodOf replaces unknown methods by _OTHER, as OpenTelemetry requires.
func methodOf(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "_OTHER"
}

// Caller records the ids of the request's account and key.
func (s *Span) Caller(account, key string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrAccount.String(account), attrKey.String(key))
}

// Model records the request's model.
func (s *Span) Model(model string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(semconv.GenAIRequestModel(model))
}

// Hold records the request's hold in nano-dollars.
func (s *Span) Hold(nano int64) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrHeld.Int64(nano))
}

// Charge records the request's charge in nano-dollars.
func (s *Span) Charge(nano int64) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrCharged.Int64(nano))
}

// Job records the job of a submission or an attempt.
func (s *Span) Job(id string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrJob.String(id))
}

// Code records an error code without marking the span as failed.
func (s *Span) Code(code string) {
	if s == nil || code == "" {
		return
	}
	s.span.SetAttributes(attrCode.String(code))
}

// Fail records an error code and marks the span as failed.
func (s *Span) Fail(code string) {
	if s == nil {
		return
	}
	s.Code(code)
	s.span.SetAttributes(semconv.ErrorTypeKey.String(code))
	s.span.SetStatus(codes.Error, "")
}

// Cut records that the answer was cut, or that the client had disconnected.
func (s *Span) Cut() {
	if s == nil {
		return
	}
	s.span.SetAttributes(attrCut.Bool(true))
}

// EndRequest ends the span of a request with its route and status. Status is 0 if the request was cut
// before its status line.
func (s *Span) EndRequest(route string, status int) {
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

// Step starts the span of a step within the gateway, such as an admission. Callers must call End.
func (s *Span) Step(name string) *Span {
	if s == nil {
		return nil
	}
	_, span := s.tracer.spans.Start(s.context(), name)
	return &Span{span: span, tracer: s.tracer}
}

// EndWork records the time at which the work ended. Attributes may still be added. Later calls are no-ops.
func (s *Span) EndWork() {
	if s == nil || !s.ended.IsZero() {
		return
	}
	s.ended = time.Now()
}

// End ends the span. Later calls are no-ops.
func (s *Span) End() {
	if s == nil {
		return
	}
	s.EndWork()
	s.span.End(oteltrace.WithTimestamp(s.ended))
}

// Log returns the trace id as an attribute for the log, or an empty attribute if s is nil.
func (s *Span) Log() slog.Attr {
	if s == nil {
		return slog.Attr{}
	}
	return slog.String("trace", s.span.SpanContext().TraceID().String())
}

// context returns a context for children of s.
func (s *Span) context() context.Context {
	return oteltrace.ContextWithSpan(context.Background(), s.span)
}
