package line

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
)

// Bounds of a probe.
const (
	probeWait      = time.Minute
	maxProbeAnswer = 64 << 10
	maxProbes      = 8
)

// prober asks lines that are out of service, on the gateway's own account,
// whether they are back. So no client's request is spent on a line that is
// known not to work.
type prober struct {
	lines   *Lines
	places  chan struct{}
	running sync.WaitGroup
}

func newProber(l *Lines) *prober {
	return &prober{lines: l, places: make(chan struct{}, maxProbes)}
}

// step begins the probes that are due.
func (p *prober) step(ctx context.Context) {
	l := p.lines
	now := l.now()
	for _, entry := range l.table(l.current()).entries {
		ln, s := entry.line, entry.stats
		if s.Sound() || s.drained.Load() || !ln.Enabled || ln.Out != "" {
			continue
		}
		due := s.Due(now)
		if due.Whole {
			p.probe(ctx, entry, p.pick(ln), func(f *upstream.Failure) []health.Change { return s.Probed(l.now(), due.Generation, f) })
		}
		for _, model := range due.Models {
			p.probe(ctx, entry, l.model(model), func(f *upstream.Failure) []health.Change { return s.ProbedModel(l.now(), model, f) })
		}
		for _, model := range due.Doubts {
			p.probe(ctx, entry, l.model(model), func(f *upstream.Failure) []health.Change {
				return s.Resolved(l.now(), due.Generation, model, f)
			})
		}
	}
}

// pick returns a model to probe a line with: the first of its chat models, nil
// if it has none.
func (p *prober) pick(ln *catalog.Line) *catalog.Model {
	ids := make([]string, 0, len(ln.Models))
	for id := range ln.Models {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if m := p.lines.model(id); m != nil && m.Kind == catalog.KindChat {
			return m
		}
	}
	return nil
}

// model returns a model of the current catalog, nil if it is not there.
func (l *Lines) model(id string) *catalog.Model {
	m, _ := l.current().Model(id)
	return m
}

// probe asks a line for a model in the background and lets its health take in
// the result.
func (p *prober) probe(ctx context.Context, entry *routingEntry, m *catalog.Model, result func(*upstream.Failure) []health.Change) {
	l := p.lines
	p.running.Go(func() {
		var f *upstream.Failure
		select {
		case p.places <- struct{}{}:
			defer func() { <-p.places }()
			f = p.ask(ctx, entry, m)
		case <-ctx.Done():
			f = upstream.Interrupted(ctx, ctx.Err())
		}
		if f != nil {
			f.Redact(entry.line.Key())
		}
		l.metrics.probed(entry.line.ID, f)
		l.tell(entry.line.ID, result(f))
	})
}

// ask makes one probe; nil: the line answers. A line without a chat model is
// tried by the next job instead.
func (p *prober) ask(ctx context.Context, entry *routingEntry, m *catalog.Model) *upstream.Failure {
	ln := entry.line
	if m == nil || m.Kind != catalog.KindChat || len(ln.Forms) == 0 {
		return nil
	}
	body, ok := wire.Probe(ln.Forms[0], ln.Models[m.ID], m.Reasoning, string(ln.ReadsLimit(m)))
	if !ok {
		return nil
	}
	if ln.MaxConcurrent > 0 {
		if !p.lines.slots.Take(ctx, ln.ID, ln.MaxConcurrent) {
			return upstream.Fail(fault.UpstreamBusy, errors.New("no free slot for a probe"))
		}
		defer p.lines.slots.Give(ln.ID)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(ln.Times(m).Total, probeWait),
		fmt.Errorf("no answer to a probe: %w", context.DeadlineExceeded))
	defer cancel()
	answer, err := entry.adapter.Chat(ctx, chatcall.Call{Form: ln.Forms[0], Model: ln.Models[m.ID], Body: body})
	if err == nil {
		defer answer.Body.Close() // the answer was read, or is of no use
		var raw []byte
		if raw, err = io.ReadAll(io.LimitReader(answer.Body, maxProbeAnswer)); err == nil {
			return judgeProbe(ln, answer.ContentType, raw)
		}
	}
	f := upstream.Interrupted(ctx, err)
	if f.Passed != nil || f.Final() {
		return nil // it has an opinion about the request, so it works
	}
	return f
}

// judgeProbe finds the failure in an answer of status 200. That it is empty is
// none: hardly a token was asked for.
func judgeProbe(ln *catalog.Line, contentType string, raw []byte) *upstream.Failure {
	if f := upstream.Classify(200, contentType, raw, nil); f != nil && f.Passed == nil {
		return f
	}
	if ln.Forms[0] == wire.FormChat {
		if a, err := completions.ReadAnswer(raw); err == nil && a.Judged().Content && ln.IsErrorSentence(string(a.Text())) {
			return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", a.Text()))
		}
	}
	return nil
}

// doubt lets Run probe at once what a failure has put in doubt.
func (l *Lines) doubt(f *upstream.Failure) {
	if !f.Unproven {
		return
	}
	select {
	case l.doubted <- struct{}{}:
	default: // Run is about to look
	}
}
