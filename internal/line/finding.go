package line

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tollgate/internal/alert"
	"tollgate/internal/line/health"
	"tollgate/internal/store"
)

const (
	// findingAge is the retention of an unchanged finding. A probe changes a finding that still
	// holds.
	findingAge = 24 * time.Hour
	tidyEvery  = time.Hour
	// localFindingTime is how long findings about a line stay on this node after another node found the
	// line working: only this node's path to the provider is broken then.
	localFindingTime = 5 * time.Minute
)

// findings synchronizes the findings of this node and other nodes. For each part, a step compares
// the state on this node, the state in the table, and the last state on which both agreed. If only one
// of the two has changed since, it replaces the other. If both have changed, the table wins. So only
// the first node with a change writes the change and sends the alert.
type findings struct {
	changed chan struct{} // wakes the step

	mu         sync.Mutex // held during a step
	agreements map[target]map[blockedPart]agreement
	localUntil map[target]time.Time // findings about a line stay on this node until this time
	lastTidy   time.Time

	pendingMu sync.Mutex
	pending   map[string][]pendingAlert // alerts of unwritten changes, by line

	leaseMu sync.Mutex
	leases  map[target]int // number of running probes of each leased line
}

// blockedPart is a part of a line that refuses requests: a model, a form, a key by its mark, or, as
// the zero value, the whole line.
type blockedPart struct {
	health.LinePart
	key string
}

// pendingAlert is the alert of an unwritten change.
type pendingAlert struct {
	part  blockedPart
	alert alert.Alert
}

// target is a line with its address and credentials. Nodes with other credentials for the line have
// separate findings.
type target struct{ line, digest string }

// agreement is the last state of a part on which this node and the table agreed.
type agreement struct {
	version     int64 // of the row; 0 without a row
	local       stamp
	writtenHere bool // this node has written the row
	resumed     bool // the operator has since resumed the line and so deleted the row
}

// stamp identifies a state of a part on this node.
type stamp struct {
	state    string
	until    int64
	accounts int
}

func stampOf(f health.Finding) stamp { return stamp{f.State, f.Until.UnixNano(), len(f.Accounts)} }

// row is a finding as stored in the table.
type row struct {
	health.Finding        // with times on this node's clock
	key            string // mark of the key if the finding is about a key
	target         target
	version        int64
}

// edit inserts, updates or deletes a row of the table.
type edit struct {
	entry      *routingEntry
	part       blockedPart
	finding    *health.Finding // nil deletes the row
	oldVersion int64           // of the old row; 0 without a row
	newVersion int64           // version of the new row; 0 if the row is deleted
	applied    bool
}

// mayHavePeers reports whether there may be other nodes.
func (l *Lines) mayHavePeers() bool { return l.db != nil && l.db.Dialect() == store.PostgreSQL }

// Exchange shares this node's findings about lines with the other nodes and adopts their findings. It
// is a no-op on SQLite, which has one node.
func (l *Lines) Exchange(ctx context.Context) error {
	if !l.mayHavePeers() {
		return nil
	}
	s := &l.findings
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := store.Read(ctx, l.db, func(tx *store.Tx) (map[target]map[blockedPart]row, error) { return findingsTx(tx, l.now()) })
	if err != nil {
		return err
	}
	var edits []*edit
	for _, entry := range l.table(l.catalog.Current()).entries {
		edits = append(edits, l.merge(entry, rows[entry.target])...)
	}
	now := l.now()
	tidy := now.Sub(s.lastTidy) >= tidyEvery
	if len(edits) == 0 && !tidy {
		return nil
	}
	if err := l.db.Update(ctx, func(tx *store.Tx) error { return writeTx(tx, l.node.Epoch(), edits, now, tidy) }); err != nil {
		return err
	}
	if tidy {
		s.lastTidy = now
	}
	for _, e := range edits {
		if e.applied {
			s.agree(e.entry.target, e.part, agreement{version: e.newVersion, local: stampOfEdit(e), writtenHere: true})
			l.sendAlerts(e.entry.line.ID, e.part)
		} else {
			l.dropAlerts(e.entry.line.ID, e.part)
		}
	}
	return nil
}

func stampOfEdit(e *edit) stamp {
	if e.finding == nil {
		return stamp{}
	}
	return stampOf(*e.finding)
}

// merge adopts the table's changes of a line's findings and returns the changes of this node.
func (l *Lines) merge(entry *routingEntry, rows map[blockedPart]row) (edits []*edit) {
	s, now := &l.findings, l.now()
	agreed := s.agreements[entry.target]
	if len(rows) == 0 && len(agreed) == 0 && entry.stats.Sound() && !entry.stats.keys.nonEmpty.Load() {
		return nil
	}
	local := entry.findings(now)
	parts := map[blockedPart]bool{}
	for part := range local {
		parts[part] = true
	}
	for part := range rows {
		parts[part] = true
	}
	for part := range agreed {
		parts[part] = true
	}
	for part := range parts {
		r, last := rows[part], agreed[part]
		finding, blocked := local[part]
		var state stamp // the zero value if the part is not blocked
		if blocked {
			state = stampOf(finding)
		}
		if last.resumed && r.version == 0 {
			last = agreement{} // keep findings made after the resume
			s.agree(entry.target, part, last)
		}
		if r.version != last.version {
			l.adopt(entry, part, r, last, now)
			continue
		}
		if state == last.local {
			if blocked && last.writtenHere { // a step wrote the finding before its alert was queued
				l.sendAlerts(entry.line.ID, part)
			} else {
				l.dropAlerts(entry.line.ID, part)
			}
			continue
		}
		if now.Before(s.localUntil[entry.target]) {
			l.sendAlerts(entry.line.ID, part)
			continue
		}
		e := &edit{entry: entry, part: part, oldVersion: last.version}
		if blocked {
			e.finding = &finding
		} else if last.version == 0 { // the finding began and ended between two steps
			s.agree(entry.target, part, agreement{})
			l.dropAlerts(entry.line.ID, part)
			continue
		}
		edits = append(edits, e)
	}
	return edits
}

// findings returns this node's findings about the line, its parts and its keys.
func (e *routingEntry) findings(now time.Time) map[blockedPart]health.Finding {
	all := map[blockedPart]health.Finding{}
	for _, f := range e.stats.Findings(now) {
		all[blockedPart{LinePart: f.LinePart}] = f
	}
	for mark, f := range e.stats.keys.findings() {
		all[blockedPart{key: mark}] = f
	}
	return all
}

// adopt applies a row written or deleted by another node.
func (l *Lines) adopt(entry *routingEntry, part blockedPart, r row, last agreement, now time.Time) {
	s, line := &l.findings, entry.line.ID
	l.dropAlerts(line, part)
	agreed := agreement{version: r.version}
	works := r.version == 0 || r.State == health.StateHalfOpen
	if works && last.writtenHere && last.local.state != health.StateCooling && last.local.state != health.StateHalfOpen {
		s.localUntil[entry.target] = now.Add(localFindingTime)
	}
	switch {
	case part.key != "" && r.version == 0:
		entry.stats.keys.release(part.key)
	case part.key != "":
		entry.stats.keys.adopt(part.key, r.Finding)
	case r.version == 0:
		entry.stats.Release(now, part.LinePart)
	default:
		entry.stats.Adopt(now, r.Finding)
	}
	if f, blocked := entry.findings(now)[part]; blocked {
		agreed.local = stampOf(f)
	}
	s.agree(entry.target, part, agreed)
	if part == (blockedPart{}) {
		out := []string{health.StateCircuitOpen, health.StateCredentialsOut, health.StateHalfOpen}
		l.metrics.setInService(line, !slices.Contains(out, r.State))
	}
	l.log.Info("line: another node has a finding about a line", "line", line, "model", part.Model, "form", part.Form, "key", part.key,
		"state", r.State, "cause", r.Cause)
}

// resumeLine records that the operator has resumed a line. The caller must hold s.mu.
func (s *findings) resumeLine(line string) {
	for t, parts := range s.agreements {
		if t.line != line {
			continue
		}
		for part, a := range parts {
			a.resumed = true
			parts[part] = a
		}
	}
	maps.DeleteFunc(s.localUntil, func(t target, _ time.Time) bool { return t.line == line })
}

// agree records a state on which this node and the table agree.
func (s *findings) agree(t target, part blockedPart, a agreement) {
	if s.agreements[t] == nil {
		s.agreements[t] = map[blockedPart]agreement{}
	}
	s.agreements[t][part] = a
	if a.version == 0 && a.local == (stamp{}) {
		delete(s.agreements[t], part)
	}
	if len(s.agreements[t]) == 0 {
		delete(s.agreements, t)
	}
}

// publish reports the changes after a request or probe on this node. It logs and counts them at
// once. The alert waits until the change is written, so that only one of several nodes sends it.
func (l *Lines) publish(entry *routingEntry, changes []health.Change) {
	if !l.mayHavePeers() {
		l.announce(entry.line.ID, changes)
		return
	}
	s := &l.findings
	generation := entry.stats.Generation()
	if len(changes) == 0 && entry.stats.wakeGeneration.Load() == generation { // nearly always
		return
	}
	s.pendingMu.Lock()
	for _, c := range changes {
		unwritten := pendingAlert{blockedPart{LinePart: health.LinePart{Model: c.Model, Form: c.Form, Tools: c.Tools}},
			l.logChange(entry.line.ID, c)}
		s.pending[entry.line.ID] = append(s.pending[entry.line.ID], unwritten)
	}
	s.pendingMu.Unlock()
	if entry.stats.wakeGeneration.Swap(generation) != generation || len(changes) > 0 {
		s.wake()
	}
}

// wake starts the next step.
func (s *findings) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // a step is about to begin
	}
}

// publishKey sends the alert of a refused or accepted key. If there may be other nodes, the alert
// waits until the change is written.
func (l *Lines) publishKey(k *lineKey, a alert.Alert) {
	if !l.mayHavePeers() {
		l.alerts.Send(a)
		return
	}
	s := &l.findings
	s.pendingMu.Lock()
	s.pending[a.Line] = append(s.pending[a.Line], pendingAlert{blockedPart{key: k.mark}, a})
	s.pendingMu.Unlock()
	s.wake()
}

// sendAlerts sends the waiting alerts of a part.
func (l *Lines) sendAlerts(line string, part blockedPart) {
	for _, a := range l.findings.take(line, part) {
		l.alerts.Send(a)
	}
}

// dropAlerts drops the waiting alerts of a part after another node has sent them, or if the change
// did not last.
func (l *Lines) dropAlerts(line string, part blockedPart) { l.findings.take(line, part) }

// take removes and returns the waiting alerts of a part.
func (s *findings) take(line string, part blockedPart) (alerts []alert.Alert) {
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	var others []pendingAlert
	for _, a := range s.pending[line] {
		if a.part == part {
			alerts = append(alerts, a.alert)
		} else {
			others = append(others, a)
		}
	}
	if s.pending[line] = others; others == nil {
		delete(s.pending, line)
	}
	return alerts
}

// findingsTx reads the table and converts the times to this node's clock.
func findingsTx(tx *store.Tx, now time.Time) (map[target]map[blockedPart]row, error) {
	nowMS, err := tx.NowMS()
	if err != nil {
		return nil, fmt.Errorf("read the findings about lines: %w", err)
	}
	all := map[target]map[blockedPart]row{}
	toTime := func(ms int64) time.Time { return now.Add(time.Duration(ms-nowMS) * time.Millisecond) }
	err = tx.Each(func(dbRow store.Row) error {
		var r row
		var tools, since, until, wait, explicit int64
		var accounts string
		if err := dbRow.Scan(&r.target.line, &r.target.digest, &r.Model, &r.Form, &tools, &r.key, &r.State, &r.Cause, &since, &until, &wait,
			&accounts, &explicit, &r.version); err != nil {
			return err
		}
		r.Tools, r.Since, r.Until, r.Wait = tools != 0, toTime(since), toTime(until), time.Duration(wait)*time.Millisecond
		r.Explicit = explicit != 0
		if accounts != "" {
			if err := json.Unmarshal([]byte(accounts), &r.Accounts); err != nil {
				return fmt.Errorf("parse the accounts blocked on line %s: %w", r.target.line, err)
			}
		}
		if all[r.target] == nil {
			all[r.target] = map[blockedPart]row{}
		}
		all[r.target][blockedPart{r.LinePart, r.key}] = r
		return nil
	}, `SELECT line, target, model, form, tools, key_mark, state, cause, since_ms, until_ms, wait_ms, accounts, explicit, version
		FROM line_finding`)
	if err != nil {
		return nil, fmt.Errorf("read the findings about lines: %w", err)
	}
	return all, nil
}

// writeTx applies the edits of rows that no other node has changed.
func writeTx(tx *store.Tx, epoch string, edits []*edit, now time.Time, tidy bool) error {
	nowMS, err := tx.NowMS()
	if err != nil {
		return fmt.Errorf("write the findings about lines: %w", err)
	}
	if tidy {
		if _, err := tx.Exec(`DELETE FROM line_finding WHERE version < $1`, nowMS-findingAge.Milliseconds()); err != nil {
			return fmt.Errorf("delete old findings about lines: %w", err)
		}
	}
	for _, e := range edits {
		n, err := e.writeTx(tx, epoch, now, nowMS)
		if err != nil {
			return fmt.Errorf("write the findings about line %s: %w", e.entry.line.ID, err)
		}
		e.applied = n == 1
	}
	return nil
}

// writeTx applies the edit and sets newVersion. It returns the number of changed rows: 0 if another node
// has changed the row.
func (e *edit) writeTx(tx *store.Tx, epoch string, now time.Time, nowMS int64) (int64, error) {
	t, tools := e.entry.target, int64(0)
	if e.part.Tools {
		tools = 1
	}
	e.newVersion = 0
	if e.finding == nil {
		return tx.Exec(`DELETE FROM line_finding
			WHERE line = $1 AND target = $2 AND model = $3 AND form = $4 AND tools = $5 AND key_mark = $6 AND version = $7`,
			t.line, t.digest, e.part.Model, string(e.part.Form), tools, e.part.key, e.oldVersion)
	}
	f, accounts := e.finding, ""
	if len(f.Accounts) > 0 {
		raw, err := json.Marshal(f.Accounts)
		if err != nil {
			return 0, err
		}
		accounts = string(raw)
	}
	explicit := 0
	if f.Explicit {
		explicit = 1
	}
	toMS := func(t time.Time) int64 { return nowMS + t.Sub(now).Milliseconds() }
	e.newVersion = max(nowMS, e.oldVersion+1)
	if e.oldVersion == 0 {
		return tx.Exec(`INSERT INTO line_finding
			(line, target, model, form, tools, key_mark, state, cause, since_ms, until_ms, wait_ms, accounts, explicit, epoch,
			version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
			t.line, t.digest, e.part.Model, string(e.part.Form), tools, e.part.key, f.State, f.Cause, toMS(f.Since), toMS(f.Until),
			f.Wait.Milliseconds(), accounts, explicit, epoch, e.newVersion)
	}
	return tx.Exec(`UPDATE line_finding
		SET state = $1, cause = $2, since_ms = $3, until_ms = $4, wait_ms = $5, accounts = $6, explicit = $7, epoch = $8, version = $9
		WHERE line = $10 AND target = $11 AND model = $12 AND form = $13 AND tools = $14 AND key_mark = $15 AND version = $16`,
		f.State, f.Cause, toMS(f.Since), toMS(f.Until), f.Wait.Milliseconds(), accounts, explicit, epoch, e.newVersion,
		t.line, t.digest, e.part.Model, string(e.part.Form), tools, e.part.key, e.oldVersion)
}
