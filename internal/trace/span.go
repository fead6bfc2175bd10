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

// Span is a span of a trace. All methods of a nil Span are no-ops. A Span is used by one goroutine
// at a time.
type Span struct {
	span   oteltrace.Span
	tracer *Tracer
	method string    // of a request
	over   time.Time // end of the work; zero while the work continues
}

// Request starts the span of a request with its arrival time. It continues the caller's trace if
// the request has a traceparent. End ends it.
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

// Cut records that the connection was cut before the end of the answer, or the client was gone.
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

// Step begins the span of a step of the gateway's own, such as an admission. End ends
// it.
func (s *Span) Step(name string) *Span {
	if s == nil {
		return nil
	}
	_, span := s.tracer.spans.Start(s.within(), name)
	return &Span{span: span, tracer: s.tracer}
}

// EndWork records the time at which the work ended. Attributes may still be added. Later calls are no-ops.
func (s *Span) EndWork() {
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
	s.EndWork()
	s.span.End(oteltrace.WithTimestamp(s.over))
}

// Log is the trace of a span for a line of the log; nothing for nil.
func (s *Span) Log() slog.Attr {
	if s == nil {
		return slog.Attr{}
	}
	return slog.String("trace", s.span.SpanContext().TraceID().String())
}

// within returns a context whose spans are children of s.
func (s *Span) within() context.Context {
	return oteltrace.ContextWithSpan(context.Background(), s.span)
}
