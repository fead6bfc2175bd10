// Package sandbox owns a provider that needs no network: it answers chat
// requests as a small, predictable model would, in the bytes of the chat form,
// and misbehaves on demand. It is what a first start runs on, and what
// operators rehearse failures with.
//
// Invariants:
//   - The same request gets the same answer, ids and times aside.
//   - What it says passes the same verdicts as any provider's answer
//     (upstream.Classify): it makes no failure of its own kind.
//   - It starts no goroutine: a reader that leaves early leaves nothing behind.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "sandbox"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds: []string{"chat"},
		Forms: []wire.Form{wire.FormChat},
		CheckOptions: func(options map[string]any) error {
			_, err := readOptions(options)
			return err
		},
	}
}

// Adapter is the sandbox as one line sees it. It is safe for concurrent use.
type Adapter struct {
	options options
	calls   atomic.Int64 // calls so far, for fail_rate
}

// New makes the adapter of a line. It fails when an option is unknown or out
// of range.
func New(t upstream.Target) (*Adapter, error) {
	o, err := readOptions(t.Options)
	if err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	return &Adapter{options: o}, nil
}

// Chat implements upstream.Adapter for the chat form.
func (a *Adapter) Chat(ctx context.Context, c upstream.Call) (*upstream.Answer, error) {
	if c.Form != wire.FormChat {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the sandbox does not speak the form %q", c.Form))
	}
	o := a.options
	if !fails(a.calls.Add(1), o.failRate) {
		o.fail, o.breakAfter, o.stallAfter = "", -1, -1
	}
	if ctx.Err() != nil {
		return nil, upstream.Interrupted(ctx, ctx.Err())
	}
	if f := refuse(ctx, o.fail); f != nil {
		return nil, f
	}
	r, problem := readRequest(c.Body)
	if problem != nil {
		return nil, upstream.Classify(http.StatusBadRequest, "application/json", problem.body(), nil)
	}
	ans := compose(r, o)
	ans.id, ans.created = answerID(c), time.Now().Unix()
	if c.Stream {
		return &upstream.Answer{Body: newStreamBody(ctx, ans, r.includeUsage, o), ContentType: "text/event-stream", Stream: true}, nil
	}
	if err := pause(ctx, nil, o.delay+time.Duration(ans.usage.completion)*o.chunkDelay); err != nil {
		return nil, upstream.Interrupted(ctx, err)
	}
	return &upstream.Answer{Body: newPlainBody(ctx, ans, o), ContentType: "application/json"}, nil
}

// fails decides whether the n-th call (from 1) misbehaves, so that over any
// stretch of calls the share that does is as close to rate as it can be.
func fails(n int64, rate float64) bool {
	return math.Floor(float64(n)*rate) > math.Floor(float64(n-1)*rate)
}

// answerID is the same for the same attempt at the same request.
func answerID(c upstream.Call) string {
	h := sha256.New()
	_, _ = io.WriteString(h, c.IdempotencyKey) // a hash never fails
	_, _ = h.Write(c.Body)
	return "chatcmpl-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// refuse plays the kinds of trouble that come in place of an answer; nil when
// kind is none of them.
func refuse(ctx context.Context, kind string) *upstream.Failure {
	switch kind {
	case failTimeout:
		<-ctx.Done()
		return upstream.Interrupted(ctx, ctx.Err())
	case failConnection:
		return upstream.Interrupted(ctx, fmt.Errorf("sandbox: read: %w", syscall.ECONNRESET))
	case failPage:
		return upstream.Classify(http.StatusBadGateway, "text/html", []byte("<html><title>502 Bad Gateway</title></html>"), nil)
	}
	for _, r := range refusals {
		if r.kind == kind {
			header := http.Header{}
			if r.retryAfter != "" {
				header.Set("Retry-After", r.retryAfter)
			}
			return upstream.Classify(r.status, "application/json", r.said.body(), header)
		}
	}
	return nil
}
