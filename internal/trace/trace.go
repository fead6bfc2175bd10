// Package trace owns the traces of requests: their spans, attributes and export to a collector.
//
// Invariants: without an endpoint there are no spans and no cost. No request waits for a collector:
// spans beyond its capacity are dropped and counted. A span holds ids, counts and codes, never
// text of a prompt, an answer or a secret. Providers get no trace context.
package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Options configure a Tracer. Only Endpoint is required.
type Options struct {
	// Endpoint is the collector's OTLP address over HTTP. If empty, nothing is traced.
	Endpoint string
	// Headers are sent with each call to the collector. If empty, OTEL_EXPORTER_OTLP_HEADERS applies.
	Headers map[string]string
	// Version is the version of this program.
	Version string
	Log     *slog.Logger
	// Sent and Dropped are called with the number of exported spans, and of spans lost because the
	// collector failed or the queue was full. They may be nil.
	Sent, Dropped func(spans int)
}

// Limits of the queue and of a call to the collector.
const (
	maxQueue   = 4096 // spans
	maxBatch   = 512  // spans of a call
	sendEvery  = 5 * time.Second
	sendWithin = 10 * time.Second // a call with its retries
	maxSpan    = 32               // attributes of a span
)

// ErrAddress reports an endpoint without a usable HTTP address.
var ErrAddress = errors.New("must be an http:// or https:// address, and a collector takes OTLP over HTTP there (port 4318, usually)")

// Tracer creates and exports the spans of a node. A nil Tracer creates none. It is safe for concurrent
// use.
type Tracer struct {
	opts     Options
	exporter sdktrace.SpanExporter
	provider *sdktrace.TracerProvider
	spans    oteltrace.Tracer
	caller   propagation.TraceContext
	queue    chan sdktrace.ReadOnlySpan
	failing  bool // the last export failed; only Run uses it
}

// New returns a tracer, or nil without an endpoint. Run exports its spans. The standard environment
// variables supply everything else, such as the service name (OTEL_SERVICE_NAME) and the sampler
// (OTEL_TRACES_SAMPLER).
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, ErrAddress
	}
	o = o.withDefaults()
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithTimeout(sendWithin),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 4 * time.Second,
			MaxElapsedTime: sendWithin}),
		otlptracehttp.WithProxy(func(*http.Request) (*url.URL, error) { return nil, nil }),
	}
	if len(o.Headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(o.Headers))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("create the exporter of traces: %w", err)
	}
	return newTracer(ctx, o, exporter)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sent == nil {
		o.Sent = func(int) {}
	}
	if o.Dropped == nil {
		o.Dropped = func(int) {}
	}
	return o
}

func newTracer(ctx context.Context, o Options, exporter sdktrace.SpanExporter) (*Tracer, error) {
	t := &Tracer{opts: o, exporter: exporter, queue: make(chan sdktrace.ReadOnlySpan, maxQueue)}
	self, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("tollgate"), semconv.ServiceVersion(o.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this node for traces: %w", err)
	}
	// The library reports its own errors (a partly rejected batch, an invalid variable) to one
	// handler per process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("trace: the library has a complaint", "error", err) }))
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(self), sdktrace.WithSpanProcessor((*collector)(t)),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: 256, AttributeCountLimit: maxSpan, EventCountLimit: 0,
			LinkCountLimit: 0, AttributePerEventCountLimit: 0, AttributePerLinkCountLimit: 0}))
	t.spans = t.provider.Tracer("tollgate", oteltrace.WithInstrumentationVersion(o.Version), oteltrace.WithSchemaURL(semconv.SchemaURL))
	return t, nil
}

// Run exports spans every few seconds, or sooner if there are many, until ctx is done. Then it exports
// the rest, until sending is done. Run must be called once.
func (t *Tracer) Run(ctx, sending context.Context) {
	if t == nil {
		return
	}
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	batch := make([]sdktrace.ReadOnlySpan, 0, maxBatch)
	for ctx.Err() == nil {
		ready := false
		select {
		case <-ctx.Done():
		case <-tick.C:
			ready = true
		case span := <-t.queue:
			batch = append(batch, span)
			ready = len(batch) == maxBatch
		}
		if ready {
			batch = t.send(sending, batch)
		}
	}
	t.exportRest(sending, batch)
}

// exportRest exports the remaining spans when the node stops.
func (t *Tracer) exportRest(ctx context.Context, batch []sdktrace.ReadOnlySpan) {
	for len(t.queue) > 0 { // there is no other receiver
		if batch = append(batch, <-t.queue); len(batch) == maxBatch {
			batch = t.send(ctx, batch)
		}
	}
	t.send(ctx, batch)
	if err := t.exporter.Shutdown(ctx); err != nil {
		t.opts.Log.Warn("trace: the way to the collector was not closed in order", "error", err)
	}
}

// send exports a batch and returns an empty batch. It logs the first failure and the first success after
// failures.
func (t *Tracer) send(ctx context.Context, batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	sendCtx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	err := t.exporter.ExportSpans(sendCtx, batch)
	switch {
	case err != nil:
		t.opts.Dropped(len(batch))
		if !t.failing {
			t.opts.Log.Warn("trace: the collector takes no spans, so they are dropped", "spans", len(batch), "error", err)
		}
	default:
		t.opts.Sent(len(batch))
		if t.failing {
			t.opts.Log.Info("trace: the collector takes spans again")
		}
	}
	t.failing = err != nil
	clear(batch)
	return batch[:0]
}

// collector is the Tracer as a span processor.
type collector Tracer

// OnEnd queues an ended span, or drops it if the queue is full. It does not block.
func (c *collector) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case c.queue <- s:
	default:
		c.opts.Dropped(1)
	}
}

// OnStart implements sdktrace.SpanProcessor.
func (c *collector) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// Shutdown implements sdktrace.SpanProcessor. Run exports the remaining spans.
func (c *collector) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (c *collector) ForceFlush(context.Context) error { return nil }
