package app

import (
	"context"
	"errors"
	"strings"

	"tollgate/internal/trace"
)

// tracesPath is where a collector takes traces, below its base address.
const tracesPath = "/v1/traces"

// startTraces starts the export of traces to a collector. It returns nil without a collector.
func (a *App) startTraces(ctx context.Context) (*trace.Tracer, error) {
	traces, err := trace.New(ctx, trace.Options{
		Endpoint: a.collector(), Headers: a.settings.OTLPHeaders, Version: a.options.Version, Log: a.log,
		Sent: a.metrics.Spans("sent"), Dropped: a.metrics.Spans("dropped"),
	})
	if errors.Is(err, trace.ErrAddress) { // the variables are not ours, and may be meant for others
		a.log.Warn("there are no traces: OTEL_EXPORTER_OTLP_ENDPOINT is of no use here, and otlp_endpoint is not set", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a.life.lingering("traces", traces.Run)
	return traces, nil
}

// collector returns the address for traces: the setting's, or else the one in OpenTelemetry's
// variables; it may be empty.
func (a *App) collector() string {
	base := a.settings.OTLPEndpoint
	if base == "" {
		if address, ok := a.options.Lookup("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); ok && address != "" {
			return address // of traces alone, so it is whole
		}
		base, _ = a.options.Lookup("OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if base == "" {
		return ""
	}
	return strings.TrimRight(base, "/") + tracesPath
}
