package line

import (
	"cmp"
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
	"tollgate/internal/wire/rawjson"
)

// Bounds of a probe.
const (
	probeWait      = time.Minute
	maxProbeAnswer = 64 << 10
	maxProbes      = 8
	maxAsks        = 8 // bounds the calls of one probe if the line lacks models
	releaseTime    = 5 * time.Second
)

// prober probes lines out of service at the gateway's own expense, so that no client's request is
// spent on a line known to be out.
type prober struct {
	lines   *Lines
	places  chan struct{}
	running sync.WaitGroup
}

func newProber(l *Lines) *prober {
	return &prober{lines: l, places: make(chan struct{}, maxProbes)}
}

// step starts the due probes.
func (p *prober) step(ctx context.Context) {
	l := p.lines
	now := l.now()
	for _, entry := range l.table(l.current()).entries {
		ln, s := entry.line, entry.stats
		if s.Sound() && !s.keys.any.Load() || s.drained.Load() || !ln.Enabled || ln.Out != "" {
			continue
		}
		if !s.Pending(now) && !s.keys.pending(now, entry.keys) || !l.lease(ctx, entry.target) {
			continue
		}
		due := s.Due(now)
		p.probeKeys(ctx, entry, p.candidates(ln, health.Ask{LinePart: due.Worked}))
		if due.Whole != nil {
			asks := p.candidates(ln, *due.Whole)
			p.probe(ctx, entry, asks, p.ask, func(_ health.LinePart, f *upstream.Failure) []health.Change {
				if f != nil && f.MissesModel() {
					f = nil // the line has answered, though it has none of these models
				}
				return s.Probed(l.now(), due.Generation, f)
			})
		}
		for _, ask := range due.Parts {
			p.probe(ctx, entry, []health.LinePart{formed(ln, ask)}, p.ask, func(_ health.LinePart, f *upstream.Failure) []health.Change {
				return s.ProbedPart(l.now(), ask.LinePart, f)
			})
		}
		for _, ask := range due.Doubts {
			p.probe(ctx, entry, p.doubted(ln, ask), p.ask, func(asked health.LinePart, f *upstream.Failure) []health.Change {
				p.blame(ctx, entry, asked, due.Worked, f)
				return s.Resolved(l.now(), due.Generation, ask.LinePart, asked.Form, f)
			})
		}
		p.running.Go(func() { // after the probes: each has a lease of its own
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
			defer cancel()
			l.release(ctx, entry.target)
		})
	}
}

// blame finds the cause of a refused probe of a doubt. An unproven refusal of the credential counts
// against the model if the line still answers for the other model of its last answer. A missing
// form counts against the model if the model is missing in all other forms too.
func (p *prober) blame(ctx context.Context, entry *routingEntry, asked, worked health.LinePart, f *upstream.Failure) {
	switch {
	case f == nil:
		return
	case f.Health == upstream.HealthCredential:
		if f.Unproven && worked.Model != "" && worked.Model != asked.Model && p.ask(ctx, entry, worked) == nil {
			f.Health = upstream.HealthModel
		}
		return
	case !f.MissesForm() || f.Tools:
		return
	}
	for _, form := range entry.line.Forms {
		if form == asked.Form {
			continue
		}
		if g := p.ask(ctx, entry, health.LinePart{Model: asked.Model, Form: form}); g == nil || !g.MissesModel() {
			return
		}
	}
	f.Health, f.Vague = upstream.HealthModel, false
}

// doubted returns the targets of a probe of a part in doubt. If the part is not a chat model, as
// after failed jobs, the targets are the line's chat models.
func (p *prober) doubted(ln *catalog.Line, ask health.Ask) []health.LinePart {
	if m := p.lines.model(ask.Model); m == nil || m.Kind != catalog.KindChat {
		return p.candidates(ln, health.Ask{})
	}
	return []health.LinePart{formed(ln, ask)}
}

// formed returns the target of a probe in a definite form. A probe in any form begins with the form
// of the model's last answer and takes the next form at each probe.
func formed(ln *catalog.Line, ask health.Ask) health.LinePart {
	if ask.Form != "" || len(ln.Forms) == 0 {
		return ask.LinePart
	}
	forms := slices.Clone(ln.Forms)
	if i := slices.Index(forms, ask.Last); i > 0 {
		forms[0], forms[i] = forms[i], forms[0]
	}
	return health.LinePart{Model: ask.Model, Form: forms[ask.Turn%len(forms)]}
}

// candidates returns the targets of a probe of the line as a whole: first the target of the last
// answer, then other chat models and forms, rotated at each probe.
func (p *prober) candidates(ln *catalog.Line, last health.Ask) (asks []health.LinePart) {
	for id := range ln.Models {
		if m := p.lines.model(id); m != nil && m.Kind == catalog.KindChat {
			for _, form := range ln.Forms {
				asks = append(asks, health.LinePart{Model: id, Form: form})
			}
		}
	}
	slices.SortFunc(asks, func(a, b health.LinePart) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(slices.Index(ln.Forms, a.Form), slices.Index(ln.Forms, b.Form)))
	})
	if i := slices.Index(asks, last.LinePart); i >= 0 {
		asks = slices.Insert(slices.Delete(asks, i, i+1), 0, last.LinePart)
	}
	if len(asks) <= maxAsks {
		return asks
	}
	others := asks[1:]
	from := last.Turn * (maxAsks - 1) % len(others)
	return append(asks[:1:1], slices.Concat(others[from:], others[:from])[:maxAsks-1]...)
}

// model returns a model of the current catalog, nil if it is not there.
func (l *Lines) model(id string) *catalog.Model {
	m, _ := l.current().Model(id)
	return m
}

// probe asks a line in the background, for one part after the other as long as it
// lacks them, and lets its health take in the last result.
func (p *prober) probe(
	ctx context.Context, entry *routingEntry, asks []health.LinePart, ask asking,
	result func(asked health.LinePart, f *upstream.Failure) []health.Change,
) {
	l := p.lines
	l.again(entry.target)
	p.running.Go(func() {
		var f *upstream.Failure
		var asked health.LinePart
		select {
		case p.places <- struct{}{}:
			defer func() { <-p.places }()
			for _, asked = range asks {
				if f = ask(ctx, entry, asked); f == nil || !f.MissesModel() {
					break
				}
			}
		case <-ctx.Done():
			f = upstream.Interrupted(ctx, ctx.Err())
		}
		if f != nil {
			entry.redact(f)
		}
		l.metrics.probed(entry.line.ID, f)
		l.found(entry, result(asked, f))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		l.release(ctx, entry.target)
	})
}

// probeKeys probes the due keys of a line. If the line has no target for a probe, the next job
// tries the keys.
func (p *prober) probeKeys(ctx context.Context, entry *routingEntry, asks []health.LinePart) {
	l, refused := p.lines, &entry.stats.keys
	for _, k := range refused.due(l.now(), entry.keys, len(asks) > 0) {
		p.probe(ctx, entry, asks[:1], p.askWith(k), func(_ health.LinePart, f *upstream.Failure) []health.Change {
			switch {
			case f == nil || f.MissesModel():
				l.accept(k)
				refused.trust(k, l.now())
			case f.Health == upstream.HealthCredential:
				others := func(other *lineKey) bool { return other.mark != k.mark && !refused.confirmed(other) }
				l.refuse(k, f.Error(), slices.ContainsFunc(entry.keys, others))
			default:
				refused.unprobed(k, l.now())
			}
			return nil
		})
	}
}

// ask makes one probe with the line's keys in turn until a key is accepted. It returns nil if the
// line answers.
func (p *prober) ask(ctx context.Context, entry *routingEntry, part health.LinePart) *upstream.Failure {
	for turn := p.lines.turn(entry, ""); ; {
		f := p.askWith(turn.key)(ctx, entry, part)
		if f == nil {
			turn.answered()
			return nil
		}
		if !turn.failed(f) {
			return f
		}
	}
}

// asking makes one probe. It returns nil if the line answers.
type asking func(ctx context.Context, entry *routingEntry, part health.LinePart) *upstream.Failure

// askWith makes probes with one key. A line without a chat model is tried by the next
// job instead.
func (p *prober) askWith(k *lineKey) asking {
	return func(ctx context.Context, entry *routingEntry, part health.LinePart) *upstream.Failure {
		return p.askOnce(ctx, entry, k, part)
	}
}

// askOnce makes one call of a probe.
func (p *prober) askOnce(ctx context.Context, entry *routingEntry, k *lineKey, part health.LinePart) *upstream.Failure {
	ln := entry.line
	m := p.lines.model(part.Model)
	if m == nil || m.Kind != catalog.KindChat || !ln.Speaks(part.Form) {
		return nil
	}
	body, ok := wire.Probe(part.Form, ln.Models[m.ID], m.Reasoning, string(entry.readsLimit(m)))
	if !ok {
		return nil
	}
	if part.Tools {
		body = wire.ProbeTools(part.Form, body)
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
	answer, err := k.adapter.Chat(ctx, chatcall.Call{Form: part.Form, Model: ln.Models[m.ID], Body: rawjson.Pieces{body}})
	if err == nil {
		defer answer.Body.Close() // the answer was read, or is of no use
		var raw []byte
		if raw, err = io.ReadAll(io.LimitReader(answer.Body, maxProbeAnswer)); err == nil {
			return judgeProbe(ln, part.Form, answer.ContentType, raw)
		}
	}
	f := upstream.Interrupted(ctx, err)
	if (f.Passed != nil || f.Final()) && !f.MissesForm() {
		return nil // a rejected request proves the line working
	}
	return f
}

// judgeProbe returns the failure in an answer of status 200, or nil. An empty answer is not a
// failure, because the probe allows hardly any tokens.
func judgeProbe(ln *catalog.Line, form wire.Form, contentType string, raw []byte) *upstream.Failure {
	if f := upstream.Classify(200, contentType, raw, nil); f != nil && f.Passed == nil {
		return f
	}
	if form == wire.FormChat {
		if a, err := completions.ReadAnswer(raw); err == nil && a.Summary().Content && ln.IsErrorSentence(string(a.Text())) {
			return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", a.Text()))
		}
	}
	return nil
}

// wake makes Run start the due probes at once.
func (l *Lines) wake() {
	select {
	case l.doubted <- struct{}{}:
	default: // Run is about to look
	}
}
