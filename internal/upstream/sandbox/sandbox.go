// Package sandbox owns a provider that needs no network: it answers chat
// requests as a small, predictable model would, in the bytes of each chat form,
// serves drawings of its own as images and videos, and misbehaves on demand. It is what a first
// start runs on, and what operators rehearse failures with.
//
// Invariants:
//   - The same request gets the same answer, ids and times aside, and says
//     the same in every form. The same work is the same picture or clip, to
//     the byte, on every machine.
//   - What it says passes the same verdicts as any provider's answer
//     (upstream.Classify, upstream.Refused, upstream.Ended): it makes no
//     failure of its own kind.
//   - It keeps nothing of image and video jobs: tickets and links hold all that
//     it must know again, so any process goes on with them.
//   - It starts no goroutine: a reader that leaves early leaves nothing behind.
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
	"tollgate/internal/wire/rawjson"
)

// Provider is the adapter's name in the catalog.
const Provider = "sandbox"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds: []string{"chat", upstream.KindImage, upstream.KindVideo},
		Forms: []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		CheckOptions: func(options map[string]any) error {
			_, err := readOptions(options)
			return err
		},
	}
}

// Adapter is the sandbox as one line sees it. It is safe for concurrent use.
type Adapter struct {
	options options
	set     map[string]json.RawMessage
	omit    []string
	calls   atomic.Int64 // chat calls so far, for fail_rate
}

// New makes the adapter of a line. It fails when an option is unknown or out
// of range.
func New(t upstream.Target) (*Adapter, error) {
	o, err := readOptions(t.Options)
	if err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	return &Adapter{options: o, set: t.Set, omit: t.Omit}, nil
}

// Chat implements chatcall.Adapter for all chat forms.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if !slices.Contains(Info().Forms, c.Form) {
		return nil, unspoken(c.Form)
	}
	body := rawjson.Override(c.Body, a.set, a.omit).Bytes()
	c.Body = rawjson.Pieces{body} // which answerID reads again
	r, problem := readRequest(c.Form, body)
	o, f := a.begin(ctx, c, r.ask)
	if f != nil {
		return nil, f
	}
	if problem != nil {
		return nil, classify(*problem, c, nil)
	}
	ans := compose(r, o)
	took := o.delay + time.Duration(ans.usage.completion)*o.chunkDelay
	now := time.Now()
	ans.id, ans.created, ans.ended = answerID(c), now.Unix(), now.Add(took).Unix()
	if c.Stream {
		return &chatcall.Response{Body: newStreamBody(ctx, r.script(ans), o), ContentType: "text/event-stream", Stream: true}, nil
	}
	if err := pause(ctx, nil, took); err != nil {
		return nil, upstream.Interrupted(ctx, err)
	}
	return &chatcall.Response{Body: newPlainBody(ctx, r.script(ans), o), ContentType: "application/json"}, nil
}

// CountTokens implements chatcall.TokenCounter for the messages form. It is a
// call like any other for the options `delay`, `fail` and `fail_rate`.
func (a *Adapter) CountTokens(ctx context.Context, c chatcall.Call) (int64, error) {
	if c.Form != wire.FormMessages {
		return 0, unspoken(c.Form)
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
		return 0, upstream.Interrupted(ctx, err)
	}
	return int64(r.prompt), nil
}

// unspoken is the failure of a call in a form that the sandbox does not know
// there.
func unspoken(form wire.Form) *upstream.Failure {
	return upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the sandbox does not speak the form %q here", form))
}

// begin counts a call and returns the options that it is answered with, or the
// trouble that it meets in place of an answer. ask is what the user said last.
func (a *Adapter) begin(ctx context.Context, c chatcall.Call, ask string) (options, *upstream.Failure) {
	o := a.options
	o.fail = o.troubleOf(ask)
	if meant := o.failOn == nil || o.failOn.MatchString(ask); !meant || !fails(a.calls.Add(1), o.failRate) {
		o.fail, o.breakAfter, o.stallAfter = "", -1, -1
	}
	if ctx.Err() != nil {
		return o, upstream.Interrupted(ctx, ctx.Err())
	}
	return o, refuse(ctx, c, o.fail)
}

// fails decides whether the n-th call (from 1) misbehaves, so that over any
// stretch of calls the share that does is as close to rate as it can be.
func fails(n int64, rate float64) bool {
	return math.Floor(float64(n)*rate) > math.Floor(float64(n-1)*rate)
}

// answerID is the same for the same attempt at the same request. It is without
// the prefix of its form.
func answerID(c chatcall.Call) string {
	h := sha256.New()
	_, _ = io.WriteString(h, c.IdempotencyKey) // a hash never fails
	_, _ = h.Write(c.Body.Bytes())
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// refuse plays the kinds of trouble that come in place of an answer; nil when
// kind is none of them.
func refuse(ctx context.Context, c chatcall.Call, kind string) *upstream.Failure {
	switch kind {
	case failTimeout:
		<-ctx.Done()
		return upstream.Interrupted(ctx, ctx.Err())
	case failConnection:
		return upstream.Interrupted(ctx, fmt.Errorf("sandbox: read: %w", syscall.ECONNRESET))
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

// classify judges an error answer of the call's form as any provider's is
// judged.
func classify(p problem, c chatcall.Call, header http.Header) *upstream.Failure {
	var from upstream.Source
	if c.Form == wire.FormMessages {
		from.Provider = "anthropic" // whose words it plays
	}
	return from.Classify(p.status, "application/json", p.errorBody(c.Form, answerID(c)), header)
}
