package line_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
)

// instantAdapter answers at once with a complete body.
type instantAdapter struct{}

func (instantAdapter) Chat(context.Context, chatcall.Call) (*chatcall.Response, error) {
	return &chatcall.Response{Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// BenchmarkTry measures Try with one line, with one line with a limit of calls, and with a second
// line after a line out of service.
func BenchmarkTry(b *testing.B) {
	run := func(b *testing.B, l *line.Lines, r line.RoutingRequest) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := l.Try(b.Context(), r, func(ctx context.Context, attempt *line.Attempt) error {
				answer, err := attempt.Chat(ctx, chatcall.Call{})
				if err == nil {
					err = answer.Body.Close()
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	open := func(upstream.Target) (chatcall.Adapter, error) { return instantAdapter{}, nil }
	b.Run("one", func(b *testing.B) {
		run(b, line.New(line.Options{Open: open}), request(snapshot(1, spec("a"))))
	})
	b.Run("limited", func(b *testing.B) {
		a := spec("a")
		a.MaxConcurrent = 100
		run(b, line.New(line.Options{Open: open}), request(snapshot(1, a)))
	})
	b.Run("second", func(b *testing.B) {
		a, fallback := spec("a"), spec("b")
		fallback.Priority = 1
		l, r := line.New(line.Options{Open: open}), request(snapshot(1, a, fallback))
		_, _ = l.Try(b.Context(), r, func(_ context.Context, attempt *line.Attempt) error {
			if attempt.Line.ID == "a" {
				return invalidKey()
			}
			return nil
		})
		run(b, l, r)
	})
}
