// Package sandbox owns a provider without a network: it answers chat requests like a
// small, predictable model, in the bytes of each chat form, serves drawings of its own
// as images and videos, and fails on demand. A first start uses it, and operators
// rehearse failures with it.
//
// Invariants:
//   - The same request gets the same answer in every form, except for ids and
//     times. The same task gets the same bytes on every machine.
//   - Its errors are classified like any provider's (upstream.Classify,
//     upstream.SubmitFailure, upstream.TaskFailure).
//   - It stores nothing about jobs: any process can continue a job from its
//     ticket and links.
//   - It starts no goroutine.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind/registry"
	"tollgate/internal/wire/rawjson"
)

// Provider is the adapter's name in the catalog.
const Provider = "sandbox"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds: append([]string{"chat", upstream.KindImage, upstream.KindVideo}, registry.Names()...),
		Forms: []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		CheckOptions: func(options map[string]any) error {
			_, err := readOptions(options)
			return err
		},
	}
}

// Adapter is the sandbox of one line. It is safe for concurrent use.
type Adapter struct {
	options options
	set     map[string]json.RawMessage
	omit    []string
	calls   atomic.Int64 // chat calls so far, for fail_rate
}

// New returns the adapter of a line. It returns an error if an option is unknown or
// out of range.
func New(t upstream.Target) (*Adapter, error) {
	o, err := readOptions(t.Options)
	if err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	return &Adapter{options: o, set: t.Set, omit: t.Omit}, nil
}

// Chat implements chatcall.Adapter for all chat forms.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if d := registry.Find(c.Form); d != nil {
		return a.answerKind(ctx, d, c)
	}
	if !slices.Contains(Info().Forms, c.Form) {
		return nil, unsupportedForm(c.Form)
	}
	body := rawjson.Override(c.Body, a.set, a.omit).Bytes()
	c.Body = rawjson.Pieces{body} // answerID reads it again
	r, problem := readRequest(c.Form, body)
	o, f := a.begin(ctx, c, r.ask)
	if f != nil {
		return nil, f
	}
	if problem != nil {
		return nil, classify(*problem, c, nil)
	}
	ans := compose(r, o)
	duration := o.delay + time.Duration(ans.usage.completion)*o.chunkDelay
	now := time.Now()
	ans.id, ans.created, ans.ended = answerID(c), now.Unix(), now.Add(duration).Unix()
	if c.Stream {
		return &chatcall.Response{Body: newStreamBody(ctx, r.script(ans), o), ContentType: "text/event-stream", Stream: true}, nil
	}
	if err := pause(ctx, nil, duration); err != nil {
		return nil, upstream.ConnectionFailure(ctx, err)
	}
	return &chatcall.Response{Body: newPlainBody(ctx, r.script(ans), o), ContentType: "application/json"}, nil
}

// CountTokens implements chatcall.TokenCounter for the messages form. It is a
// call like any other for the options `delay`, `fail` and `fail_rate`.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	if c.Form != wire.FormMessages {
		return 0, unsupportedForm(c.Form)
	}
	c.Body = rawjson.Override[json.RawMessage](c.Body, nil, a.omit)
	r, problem := readPrompt(c.Body.Bytes())
	o, f := a.begin(ctx, c, r.ask)
	if f != nil {
		return 0, f
	}
	if problem != nil {
		return 0, classify(*problem, c, nil)
	}
	if err := pause(ctx, nil, o.delay); err != nil {
		return 0, upstream.ConnectionFailure(ctx, err)
	}
	return int64(r.prompt), nil
}

// unsupportedForm returns the failure of a call in an unsupported form.
func unsupportedForm(form wire.Form) *upstream.Failure {
	return upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the sandbox does not speak the form %q here", form))
}

// begin counts a call and returns its options, or a failure if the call is to fail
// before an answer. ask is the user's last message.
func (a *Adapter) begin(ctx context.Context, c chatcall.Call, ask string) (options, *upstream.Failure) {
	o := a.options
	o.fail = o.failKindOf(ask)
	if matches := o.failOn == nil || o.failOn.MatchString(ask); !matches || !fails(a.calls.Add(1), o.failRate) {
		o.fail, o.breakAfter, o.stallAfter = "", -1, -1
	}
	if ctx.Err() != nil {
		return o, upstream.ConnectionFailure(ctx, ctx.Err())
	}
	return o, refuse(ctx, c, o.fail)
}

// fails reports whether the n-th call (from 1) fails. Over any run of calls the share
// of failures is as close to rate as possible.
func fails(n int64, rate float64) bool {
	return math.Floor(float64(n)*rate) > math.Floor(float64(n-1)*rate)
}

// answerID returns an id without the prefix of the form. The same attempt at the same
// request has the same id.
func answerID(c chatcall.Call) string {
	h := sha256.New()
	_, _ = io.WriteString(h, c.IdempotencyKey) // a hash never fails
	_, _ = h.Write(c.Body.Bytes())
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// refuse returns the failure for a kind that replaces the whole answer, or nil for
// other kinds.
func refuse(ctx context.Context, c chatcall.Call, kind string) *upstream.Failure {
	switch kind {
	case failTimeout:
		<-ctx.Done()
		return upstream.ConnectionFailure(ctx, ctx.Err())
	case failConnection:
		return upstream.ConnectionFailure(ctx, fmt.Errorf("sandbox: read: %w", syscall.ECONNRESET))
	case failPage:
		return upstream.Classify(http.StatusBadGateway, "text/html", []byte("<html><title>502 Bad Gateway</title></html>"), nil)
	}
	r, ok := refusals()[kind]
	if !ok {
		return nil
	}
	header := http.Header{}
	if r.retryAfter != "" {
		header.Set("Retry-After", r.retryAfter)
	}
	return classify(r.in(c.Form), c, header)
}

// classify classifies an error answer like any provider's.
func classify(p problem, c chatcall.Call, header http.Header) *upstream.Failure {
	var from upstream.Source
	if c.Form == wire.FormMessages {
		from.Provider = "anthropic" // has the same wordings
	}
	return from.Classify(p.status, "application/json", p.errorBody(c.Form, answerID(c)), header)
}
