package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// Bounds of a probe.
const (
	probeWait      = time.Minute
	maxProbeAnswer = 64 << 10
	maxProbes      = 8
	maxTargets     = 8 // maximum number of calls of one probe if the line lacks models
	releaseTime    = 5 * time.Second
)

// prober probes lines out of service, so that no client's request is needed to find out whether a
// line works again.
type prober struct {
	lines     *Lines
	semaphore chan struct{}
	running   sync.WaitGroup
}

func newProber(l *Lines) *prober {
	return &prober{lines: l, semaphore: make(chan struct{}, maxProbes)}
}

// step starts the due probes.
func (p *prober) step(ctx context.Context) {
	l := p.lines
	now := l.now()
	for _, entry := range l.table(l.catalog.Current()).entries {
		ln, s := entry.line, entry.stats
		if s.Sound() && !s.keys.nonEmpty.Load() || s.drained.Load() || !ln.Enabled || ln.UnusableReason != "" {
			continue
		}
		if !s.Pending(now) && !s.keys.pending(now, entry.keys) || !l.lease(ctx, entry.target) {
			continue
		}
		due := s.Due(now)
		p.probeKeys(ctx, entry, p.lineTargets(ln, health.Probe{LinePart: due.LastAnswer}))
		if due.Whole != nil {
			targets := p.lineTargets(ln, *due.Whole)
			p.probe(ctx, entry, targets, p.try, func(_ health.LinePart, f *upstream.Failure) []health.Change {
				if f != nil && f.MissesModel() {
					f = nil // the line works, although it lacks all of the targets
				}
				return s.RecordProbe(l.now(), due.Generation, f)
			})
		}
		for _, probe := range due.Parts {
			p.probe(ctx, entry, []health.LinePart{p.targetOf(ln, probe)}, p.try, func(_ health.LinePart, f *upstream.Failure) []health.Change {
				return s.RecordPartProbe(l.now(), probe.LinePart, f)
			})
		}
		for _, probe := range due.Doubts {
			p.probe(ctx, entry, p.doubtTargets(ln, probe), p.try, func(target health.LinePart, f *upstream.Failure) []health.Change {
				p.blame(ctx, entry, target, due.LastAnswer, f)
				return s.RecordDoubtProbe(l.now(), due.Generation, probe.LinePart, target.Form, f)
			})
		}
		p.running.Go(func() { // after the probes, each of which has a lease
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
			defer cancel()
			l.release(ctx, entry.target)
		})
	}
}

// blame finds out which part is at fault if the probe of a doubt failed with f, and changes
// f.Health. An unproven refusal of the credential counts against the model if the line still
// answers for lastAnswer, another model. A missing form counts against the model if the model is
// missing in all forms.
func (p *prober) blame(ctx context.Context, entry *routingEntry, target, lastAnswer health.LinePart, f *upstream.Failure) {
	switch {
	case f == nil:
		return
	case f.Health == upstream.HealthCredential:
		if f.Unproven && lastAnswer.Model != "" && lastAnswer.Model != target.Model && p.try(ctx, entry, lastAnswer) == nil {
			f.Health = upstream.HealthModel
		}
		return
	case !f.MissesForm() || f.Tools:
		return
	}
	for _, form := range entry.line.Forms {
		if form == target.Form {
			continue
		}
		if g := p.try(ctx, entry, health.LinePart{Model: target.Model, Form: form}); g == nil || !g.MissesModel() {
			return
		}
	}
	f.Health, f.Vague = upstream.HealthModel, false
}

// doubtTargets returns the targets for the probe of a doubt. If the doubt is about a model without
// probes, as after failed jobs, the targets are the line's other models.
func (p *prober) doubtTargets(ln *catalog.Line, probe health.Probe) []health.LinePart {
	m := p.lines.model(probe.Model)
	if m == nil || m.Kind.IsJob() {
		return p.lineTargets(ln, health.Probe{})
	}
	return []health.LinePart{p.targetOf(ln, probe)}
}

// targetOf returns the target for the probe of one part. If the probe has no form, targetOf begins
// with the form of the model's last answer and returns the next form at each probe.
func (p *prober) targetOf(ln *catalog.Line, probe health.Probe) health.LinePart {
	forms := slices.Clone(probedForms(ln, p.lines.model(probe.Model)))
	if probe.Form != "" || len(forms) == 0 {
		return probe.LinePart
	}
	if i := slices.Index(forms, probe.LastForm); i > 0 {
		forms[0], forms[i] = forms[i], forms[0]
	}
	return health.LinePart{Model: probe.Model, Form: forms[probe.Number%len(forms)]}
}

// lineTargets returns the targets for a probe of the whole line. The part of the last answer comes
// first, followed by other models and forms, rotated at each probe.
func (p *prober) lineTargets(ln *catalog.Line, probe health.Probe) (targets []health.LinePart) {
	for id := range ln.Models {
		for _, form := range probedForms(ln, p.lines.model(id)) {
			targets = append(targets, health.LinePart{Model: id, Form: form})
		}
	}
	slices.SortFunc(targets, func(a, b health.LinePart) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(slices.Index(ln.Forms, a.Form), slices.Index(ln.Forms, b.Form)))
	})
	if i := slices.Index(targets, probe.LinePart); i >= 0 {
		targets = slices.Insert(slices.Delete(targets, i, i+1), 0, probe.LinePart)
	}
	if len(targets) <= maxTargets {
		return targets
	}
	others := targets[1:]
	start := probe.Number * (maxTargets - 1) % len(others)
	return append(targets[:1:1], slices.Concat(others[start:], others[:start])[:maxTargets-1]...)
}

// probedForms returns the forms for probes of a model on a line: none for a nil model and for models
// with jobs.
func probedForms(ln *catalog.Line, m *catalog.Model) []wire.Form {
	switch {
	case m == nil || m.Kind.IsJob():
		return nil
	case m.Kind.Definition() != nil:
		return []wire.Form{m.Kind.Definition().Form()}
	}
	return ln.Forms
}

// probeCallOf returns the call of a probe. It returns false for a part that cannot be probed.
func (p *prober) probeCallOf(entry *routingEntry, m *catalog.Model, part health.LinePart) (chatcall.Call, bool) {
	c := chatcall.Call{Form: part.Form, Model: entry.line.Models[m.ID]}
	if d := m.Kind.Definition(); d != nil {
		var body []byte
		body, c.File = d.Probe(c.Model, m)
		c.Body, c.Path, c.AnyType = rawjson.Pieces{body}, d.Endpoints[0].LinePath, d.AnyType
		return c, true
	}
	body, ok := wire.Probe(part.Form, c.Model, m.Reasoning, string(entry.limitField(m)))
	if part.Tools {
		body = wire.ProbeTools(part.Form, body)
	}
	c.Body = rawjson.Pieces{body}
	return c, ok
}

// model returns a model of the current catalog, or nil.
func (l *Lines) model(id string) *catalog.Model {
	m, _ := l.catalog.Current().Model(id)
	return m
}

// probe calls a line's targets in the background, one after the other, until the line has the
// target's model and form. result applies the last call's failure, or nil, to the line's health.
func (p *prober) probe(
	ctx context.Context, entry *routingEntry, targets []health.LinePart, call probeCall,
	result func(target health.LinePart, f *upstream.Failure) []health.Change,
) {
	l := p.lines
	l.leaseAgain(entry.target)
	p.running.Go(func() {
		var f *upstream.Failure
		var target health.LinePart
		select {
		case p.semaphore <- struct{}{}:
			defer func() { <-p.semaphore }()
			for _, target = range targets {
				if f = call(ctx, entry, target); f == nil || !f.MissesModel() {
					break
				}
			}
		case <-ctx.Done():
			f = upstream.ConnectionFailure(ctx, ctx.Err())
		}
		if f != nil {
			entry.redact(f)
		}
		l.metrics.countProbe(entry.line.ID, f)
		l.publish(entry, result(target, f))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		l.release(ctx, entry.target)
	})
}

// probeKeys probes the due keys of a line. Without targets, no probe is possible and the next job
// tries the keys.
func (p *prober) probeKeys(ctx context.Context, entry *routingEntry, targets []health.LinePart) {
	l, keys := p.lines, &entry.stats.keys
	for _, k := range keys.due(l.now(), entry.keys, len(targets) > 0) {
		p.probe(ctx, entry, targets[:1], p.probeWithKey(k), func(_ health.LinePart, f *upstream.Failure) []health.Change {
			switch {
			case f == nil || f.MissesModel():
				l.acceptKey(k)
				keys.trust(k, l.now())
			case f.Health == upstream.HealthCredential:
				isUsable := func(other *lineKey) bool { return other.mark != k.mark && !keys.confirmed(other) }
				l.confirmRefusal(k, f.Error(), slices.ContainsFunc(entry.keys, isUsable))
			default:
				keys.postponeProbe(k, l.now())
			}
			return nil
		})
	}
}

// try makes one probe with the line's keys, one after the other, until a key is accepted. It
// returns nil if the line answers.
func (p *prober) try(ctx context.Context, entry *routingEntry, part health.LinePart) *upstream.Failure {
	for selector := p.lines.selectKey(entry, ""); ; {
		f := p.probeWithKey(selector.key)(ctx, entry, part)
		if f == nil {
			selector.recordAnswer()
			return nil
		}
		if !selector.recordFailure(f) {
			return f
		}
	}
}

// probeCall makes one probe. It returns nil if the line answers.
type probeCall func(ctx context.Context, entry *routingEntry, part health.LinePart) *upstream.Failure

// probeWithKey returns a function that probes with one key.
func (p *prober) probeWithKey(k *lineKey) probeCall {
	return func(ctx context.Context, entry *routingEntry, part health.LinePart) *upstream.Failure {
		return p.call(ctx, entry, k, part)
	}
}

// call makes one call of a probe. It returns nil for a part that cannot be probed, so that the next
// job tries the line.
func (p *prober) call(ctx context.Context, entry *routingEntry, k *lineKey, part health.LinePart) *upstream.Failure {
	ln := entry.line
	m := p.lines.model(part.Model)
	if !slices.Contains(probedForms(ln, m), part.Form) {
		return nil
	}
	request, ok := p.probeCallOf(entry, m, part)
	if !ok {
		return nil
	}
	if ln.MaxConcurrent > 0 {
		if !p.lines.slots.Take(ctx, ln.ID, ln.MaxConcurrent) {
			return upstream.Fail(fault.UpstreamBusy, errors.New("no free slot for a probe"))
		}
		defer p.lines.slots.Give(ln.ID)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(ln.TimeoutsFor(m).Total, probeWait),
		fmt.Errorf("no answer to a probe: %w", context.DeadlineExceeded))
	defer cancel()
	answer, err := k.adapter.Chat(ctx, request)
	if err == nil {
		defer answer.Body.Close()
		var raw []byte
		if raw, err = io.ReadAll(io.LimitReader(answer.Body, maxProbeAnswer)); err == nil {
			if d := m.Kind.Definition(); d != nil && d.AnyType {
				return kindFailure(d, m, request, answer.ContentType, raw)
			}
			return probeFailure(ln, part.Form, answer.ContentType, raw)
		}
	}
	f := upstream.ConnectionFailure(ctx, err)
	if (f.Rejection != nil || f.Final()) && !f.MissesForm() {
		return nil // a rejection shows that the line works
	}
	return f
}

// kindFailure returns the failure in an answer of status 200 to the probe of a kind with answers of any type,
// or nil. raw may be only the beginning of the answer.
func kindFailure(d *kind.Definition, m *catalog.Model, call chatcall.Call, contentType string, raw []byte) *upstream.Failure {
	err := d.CheckStart(call.Body.Bytes(), call.File, m, contentType, raw)
	if err == nil {
		return nil
	}
	if f := upstream.Classify(http.StatusOK, contentType, raw, nil); f != nil && f.Rejection == nil {
		return f
	}
	return upstream.Fail(fault.UpstreamUnavailable, err)
}

// probeFailure returns the failure in an answer of status 200, or nil. An empty answer is not a
// failure, because the probe allows only few tokens.
func probeFailure(ln *catalog.Line, form wire.Form, contentType string, raw []byte) *upstream.Failure {
	if f := upstream.Classify(200, contentType, raw, nil); f != nil && f.Rejection == nil {
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
	case l.wakeProbes <- struct{}{}:
	default: // Run is about to probe
	}
}
