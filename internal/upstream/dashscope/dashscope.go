// Package dashscope owns the speech with DashScope, the model service of
// Alibaba Cloud: pictures and clips,
// by its blocking endpoint or as tasks that are polled.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it). A submission
//     of several pictures is one call a picture, each of them sent once.
//   - The line's credential goes to the line's base address alone.
//   - What the model's params may not say, because it is decided elsewhere, is
//     never overridden by them.
package dashscope

import (
	"context"
	"net/http"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// Provider is the adapter's name in the catalog.
const Provider = "dashscope"

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://dashscope-intl.aliyuncs.com/api/v1"

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

var _ upstream.Maker = (*Adapter)(nil)

// New makes the adapter of a line. It fails when the base address is no
// http(s) URL with a host, or has credentials or a query in it, and for options.
// Calls go over transport: exchange.NewTransport makes the one to use.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	line, err := exchange.Open(t, Info(), transport)
	if err != nil {
		return nil, err
	}
	a := &Adapter{line: line}
	if t.Key != "" {
		a.header = http.Header{"Authorization": {"Bearer " + t.Key}}
	}
	return a, nil
}

// Blocks implements upstream.Maker: pictures come in the answer, clips do not.
func (a *Adapter) Blocks(w upstream.Work) bool { return w.Kind == upstream.KindImage }

// Submit implements upstream.Maker.
func (a *Adapter) Submit(context.Context, upstream.Work) (*upstream.Progress, error) {
	return nil, upstream.Unsuitable(upstream.KindImage, "no work is known")
}

// Poll implements upstream.Maker.
func (a *Adapter) Poll(context.Context, upstream.Work, string) (*upstream.Progress, error) {
	return nil, upstream.Unsuitable(upstream.KindImage, "no work is known")
}

// Fetch implements upstream.Maker: results are links that need no credential.
func (a *Adapter) Fetch(ctx context.Context, _ upstream.Work, r upstream.Result) (*upstream.File, error) {
	return a.line.Download(ctx, r.Ref, nil)
}

// Cancel implements upstream.Maker.
func (a *Adapter) Cancel(context.Context, upstream.Work, string) error { return nil }
