package line

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/line/health"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// How often Run takes its steps.
const (
	stepEvery   = time.Second
	reportEvery = 5 * time.Second
)

// Run probes lines that are out or in doubt, takes in the operator's word, gives back slots
// that are not used, and reports to the other nodes, until ctx ends. What it
// started has ended when it returns.
func (l *Lines) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { l.slots.HandOn(ctx) })
	p := newProber(l)
	defer p.running.Wait()
	probe := func(ctx context.Context) error {
		p.step(ctx)
		return nil
	}
	var told telling
	share := func(ctx context.Context) error {
		err := errors.Join(l.Refresh(ctx), l.slots.Tidy(ctx))
		if l.db != nil && told.due(l.now(), l.current()) {
			err = errors.Join(err, l.Report(ctx))
		}
		return err
	}
	if l.shares() {
		group.Go(func() {
			loop.Run(ctx, loop.Loop{Room: "line", Does: "share what is found out about lines", Log: l.log, Period: stepEvery,
				Pause: stepEvery / 10, Wake: l.findings.changed, Step: l.Exchange})
		})
	}
	loop.Run(ctx,
		loop.Loop{Room: "line", Does: "probe lines", Log: l.log, Period: stepEvery, Later: true, Wake: l.doubted, Step: probe},
		loop.Loop{Room: "line", Does: "share the state of lines", Log: l.log, Period: stepEvery, Later: true, Step: share},
	)
}

// telling is what a node has reported last.
type telling struct {
	at time.Time
	of *catalog.Snapshot
}

// due tells whether the lines are to be reported, and takes it that they are. Those of
// another catalog, as after a start, do not wait for their time: who lists lines sees what
// was reported.
func (t *telling) due(now time.Time, current *catalog.Snapshot) bool {
	if current == t.of && now.Sub(t.at) < reportEvery {
		return false
	}
	*t = telling{now, current}
	return true
}

// Refresh takes in the newest catalog, with which its lines have their metrics, and what
// the operator decided about lines: at once what was decided on this node, and within
// a second what was on another.
func (l *Lines) Refresh(ctx context.Context) error {
	if l.db == nil {
		return nil
	}
	l.refreshing.Lock() // what is read first counts first
	defer l.refreshing.Unlock()
	var controls map[string]control
	err := l.db.View(ctx, func(tx *store.Tx) (err error) {
		controls, err = controlsTx(tx)
		return err
	})
	if err != nil {
		return err
	}
	l.applyControls(controls)
	l.table(l.current())
	return nil
}

// applyControls lets the operator's word count. A line that was resumed begins anew.
func (l *Lines) applyControls(controls map[string]control) {
	l.mu.Lock()
	before := l.controls
	l.controls = controls
	all := make(map[string]*stats, len(l.stats))
	for id, t := range l.stats {
		all[id] = t
	}
	l.mu.Unlock()
	for id, t := range all {
		now, was := controls[id], before[id]
		t.drained.Store(now.drained)
		l.tell(id, l.applyControl(t, was, now))
	}
}

// applyControl lets a new decision about a line count and returns what is to be
// told of it.
func (l *Lines) applyControl(t *stats, was, now control) (changes []health.Change) {
	if now.resumes > was.resumes {
		changes = t.forget(l.now())
	}
	back := health.Change{State: health.StateInService}
	switch {
	case now.drained && !was.drained:
		return append(changes, health.Change{State: stateDrained, Cause: causeDrained})
	case was.drained && !now.drained && !slices.Contains(changes, back):
		return append(changes, back)
	}
	return changes
}

// Report tells the other nodes how the lines are doing on this one.
func (l *Lines) Report(ctx context.Context) error {
	if l.db == nil {
		return nil
	}
	states, epoch := l.Statuses(), l.epoch()
	return l.db.Update(ctx, func(tx *store.Tx) error {
		if err := reportTx(tx, epoch, states); err != nil {
			return err
		}
		return forgetReportsTx(tx)
	})
}

// tell lets the operator know that a line, or a part of it, left or returned: by
// the log, the metrics and an alert.
func (l *Lines) tell(line string, changes []health.Change) {
	for _, c := range changes {
		l.alerts.Send(l.logChange(line, c))
	}
}

// logChange tells of one change by the log and the metrics, and returns its alert.
func (l *Lines) logChange(line string, c health.Change) alert.Alert {
	l.metrics.changed(line, c)
	if c.State == health.StateInService {
		l.log.Info("line: back in service", "line", line, "model", c.Model, "form", c.Form)
	} else {
		l.log.Warn("line: out of service", "line", line, "model", c.Model, "form", c.Form, "state", c.State, "cause", c.Cause)
	}
	return alert.Alert{
		Line: line, Model: c.Model, Form: string(c.Form), Tools: c.Tools, State: c.State, Cause: c.Cause, At: l.now().Unix(),
	}
}
