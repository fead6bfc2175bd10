package openai

import (
	"context"
	"fmt"

	"tollgate/internal/upstream"
)

var _ upstream.Maker = (*Adapter)(nil)

// Blocks implements upstream.Maker: images come with the answer, clips by
// polling.
func (a *Adapter) Blocks(w upstream.Work) bool { return w.Kind == upstream.KindImage }

// Submit implements upstream.Maker.
func (a *Adapter) Submit(ctx context.Context, w upstream.Work) (*upstream.Progress, error) {
	return nil, unknownKind(w.Kind)
}

// Poll implements upstream.Maker.
func (a *Adapter) Poll(ctx context.Context, w upstream.Work, ticket string) (*upstream.Progress, error) {
	return nil, unknownKind(w.Kind)
}

// Fetch implements upstream.Maker.
func (a *Adapter) Fetch(ctx context.Context, w upstream.Work, r upstream.Result) (*upstream.File, error) {
	return nil, unknownKind(w.Kind)
}

// Cancel implements upstream.Maker.
func (a *Adapter) Cancel(ctx context.Context, w upstream.Work, ticket string) error {
	return unknownKind(w.Kind)
}

// unknownKind is the trouble of a work that is neither an image nor a video.
func unknownKind(kind string) *upstream.Trouble {
	return upstream.Unsuitable(kind, "provider %s makes no %s", Provider, fmt.Sprintf("%q", kind))
}
