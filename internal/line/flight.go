package line

import (
	"context"
	"io"
	"sync"

	"tollgate/internal/upstream"
)

// counted is an adapter whose line counts as busy from the call until the
// answer's body is closed.
type counted struct {
	adapter upstream.Adapter
	tally   *tally
}

// Chat implements upstream.Adapter.
func (c *counted) Chat(ctx context.Context, call upstream.Call) (*upstream.Answer, error) {
	c.tally.begin()
	answer, err := c.adapter.Chat(ctx, call)
	if err != nil {
		c.tally.end()
		return nil, err
	}
	answer.Body = &countedBody{ReadCloser: answer.Body, tally: c.tally}
	return answer, nil
}

// countedBody ends the line's being busy when it is closed.
type countedBody struct {
	io.ReadCloser
	tally *tally
	once  sync.Once
}

// Close implements io.Closer.
func (b *countedBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.tally.end)
	return err
}
