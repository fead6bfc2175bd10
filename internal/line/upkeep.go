package line

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/line/health"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// Intervals of Run's steps.
const (
	stepEvery   = time.Second
	reportEvery = 5 * time.Second
)

// Run probes lines that are out or in doubt, applies the operator's decisions, returns unused
// slots, and reports to the other nodes, until ctx ends. Run returns after all its goroutines have
// ended.
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
	var last lastReport
	share := func(ctx context.Context) error {
		err := errors.Join(l.Refresh(ctx), l.slots.Tidy(ctx))
		if l.db != nil && last.due(l.now(), l.catalog.Current()) {
			err = errors.Join(err, l.Report(ctx))
		}
		return err
	}
	if l.mayHavePeers() {
		group.Go(func() {
			loop.Run(ctx, loop.Loop{Room: "line", Does: "share findings about lines", Log: l.log, Period: stepEvery,
				Pause: stepEvery / 10, Wake: l.findings.changed, Step: l.Exchange})
		})
	}
	loop.Run(ctx,
		loop.Loop{Room: "line", Does: "probe lines", Log: l.log, Period: stepEvery, Later: true, Wake: l.wakeProbes, Step: probe},
		loop.Loop{Room: "line", Does: "share the state of lines", Log: l.log, Period: stepEvery, Later: true, Step: share},
	)
}

// lastReport records the time and catalog of a node's last report.
type lastReport struct {
	sentAt   time.Time
	snapshot *catalog.Snapshot
}

// due reports whether to report the lines, and records the report. After a change of the catalog,
// or at a start, the report is due at once, because operators see the lines in the reports.
func (r *lastReport) due(now time.Time, current *catalog.Snapshot) bool {
	if current == r.snapshot && now.Sub(r.sentAt) < reportEvery {
		return false
	}
	*r = lastReport{now, current}
	return true
}

// Refresh applies the newest catalog and the operator's decisions about lines. Run calls Refresh
// each second, so every node applies a decision within a second.
func (l *Lines) Refresh(ctx context.Context) error {
	if l.db == nil {
		return nil
	}
	l.refreshing.Lock() // controls must be applied in the order of their reading
	defer l.refreshing.Unlock()
	controls, err := store.Read(ctx, l.db, controlsTx)
	if err != nil {
		return err
	}
	l.applyControls(controls)
	l.table(l.catalog.Current())
	return nil
}

// applyControls applies the operator's decisions. A resumed line starts with cleared health.
func (l *Lines) applyControls(controls map[string]control) {
	l.findings.mu.Lock() // Exchange must not see a half-applied resume
	defer l.findings.mu.Unlock()
	l.mu.Lock()
	old := l.controls
	l.controls = controls
	all := maps.Clone(l.stats)
	l.mu.Unlock()
	for id, s := range all {
		s.drained.Store(controls[id].drained)
		l.announce(id, l.applyControl(id, s, old[id], controls[id]))
	}
}

// applyControl applies a new decision about a line and returns the changes to report.
func (l *Lines) applyControl(id string, s *stats, old, next control) (changes []health.Change) {
	if next.resumes > old.resumes {
		changes = s.forget(l.now())
		l.findings.resumeLine(id)
	}
	returnChange := health.Change{State: health.StateInService}
	switch {
	case next.drained && !old.drained:
		return append(changes, health.Change{State: stateDrained, Cause: causeDrained})
	case old.drained && !next.drained && !slices.Contains(changes, returnChange):
		return append(changes, returnChange)
	}
	return changes
}

// Report writes the state of the lines on this node for the other nodes.
func (l *Lines) Report(ctx context.Context) error {
	if l.db == nil {
		return nil
	}
	states, epoch := l.Statuses(), l.node.Epoch()
	return l.db.Update(ctx, func(tx *store.Tx) error {
		if err := reportTx(tx, epoch, states); err != nil {
			return err
		}
		return forgetReportsTx(tx)
	})
}

// announce reports changes of a line, or of a part, to the operator by log, metrics and alert.
func (l *Lines) announce(line string, changes []health.Change) {
	for _, c := range changes {
		l.alerts.Send(l.logChange(line, c))
	}
}

// logChange logs and counts one change and returns its alert.
func (l *Lines) logChange(line string, c health.Change) alert.Alert {
	l.metrics.countChange(line, c)
	if c.State == health.StateInService {
		l.log.Info("line: back in service", "line", line, "model", c.Model, "form", c.Form)
	} else {
		l.log.Warn("line: out of service", "line", line, "model", c.Model, "form", c.Form, "state", c.State, "cause", c.Cause)
	}
	return alert.Alert{
		Line: line, Model: c.Model, Form: string(c.Form), Tools: c.Tools, State: c.State, Cause: c.Cause, At: l.now().Unix(),
	}
}
