package app

import (
	"context"
	"errors"
	"strings"

	"tollgate/internal/trace"
)

// tracesPath is the path of a collector's endpoint for traces, below its base address.
const tracesPath = "/v1/traces"

// startTraces starts the export of traces. Without a collector, r.traces stays nil.
func (r *rooms) startTraces(ctx context.Context) (err error) {
	r.traces, err = trace.New(ctx, trace.Options{
		Endpoint: r.collector(), Headers: r.settings.OTLPHeaders, Version: r.options.Version, Log: r.log,
		Sent: r.metrics.Spans("sent"), Dropped: r.metrics.Spans("dropped"),
	})
	if errors.Is(err, trace.ErrAddress) { // the variables may be meant for other programs
		r.log.Warn("no traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT is not a usable address, and otlp_endpoint is not set", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	r.life.lingering("traces", r.traces.Run)
	return nil
}

// collector returns the address for traces from the setting, or else from OpenTelemetry's variables. It
// returns "" if neither is set.
func (a *App) collector() string {
	base := a.settings.OTLPEndpoint
	if base == "" {
		if address, ok := a.options.Lookup("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); ok && address != "" {
			return address // only for traces, so the path is included
		}
		base, _ = a.options.Lookup("OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if base == "" {
		return ""
	}
	return strings.TrimRight(base, "/") + tracesPath
}
