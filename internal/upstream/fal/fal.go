// Package fal owns the speech with fal: its queue, to which works are submitted, the questions about them, and their results.
//
// Invariants:
//   - One submission is sent at most once (package exchange sends it).
//   - The line's credential goes to the line's base address alone.
package fal

import (
	"context"
	"errors"
	"net/http"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// Provider is the adapter's name in the catalog.
const Provider = "fal"

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://queue.fal.run"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{upstream.KindImage, upstream.KindVideo},
		DefaultBaseURL: defaultBaseURL,
		NeedsKey:       true,
		CheckOptions:   exchange.NoOptions(Provider),
	}
}

// Adapter speaks for one line. It is safe for concurrent use.
type Adapter struct {
	upstream.NoChat
	line   *exchange.Line
	header http.Header
}

// New makes the adapter of a line. It fails when the base address is no
// http(s) URL with a host, or has credentials or a query in it, and for options
// that do not pass Info.CheckOptions. Calls go over transport:
// exchange.NewTransport makes the one to use.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	line, err := exchange.Open(t, Info(), transport)
	if err != nil {
		return nil, err
	}
	return &Adapter{line: line, header: http.Header{"Authorization": {"Key " + t.Key}}}, nil
}

// Blocks implements upstream.Maker: works wait in the provider's queue.
func (a *Adapter) Blocks(upstream.Work) bool { return false }

// Submit implements upstream.Maker.
func (a *Adapter) Submit(_ context.Context, w upstream.Work) (*upstream.Progress, error) {
	return nil, upstream.Unsuitable(w.Kind, "unfinished")
}

// Poll implements upstream.Maker.
func (a *Adapter) Poll(_ context.Context, w upstream.Work, _ string) (*upstream.Progress, error) {
	return nil, upstream.Troubled(upstream.Fail(fault.UpstreamUnavailable, errors.New("unfinished")), fault.UpstreamError, upstream.NextPoll)
}

// Fetch implements upstream.Maker.
func (a *Adapter) Fetch(ctx context.Context, _ upstream.Work, r upstream.Result) (*upstream.File, error) {
	return a.line.Download(ctx, r.Ref, a.header)
}

// Cancel implements upstream.Maker.
func (a *Adapter) Cancel(context.Context, upstream.Work, string) error { return nil }
