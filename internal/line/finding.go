package line

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"tollgate/internal/alert"
	"tollgate/internal/line/health"
	"tollgate/internal/store"
)

const (
	// findingAge is the retention of an unchanged finding. A finding in force changes with each
	// probe.
	findingAge = 24 * time.Hour
	tidyEvery  = time.Hour
	// localTime is the time for which findings about a line stay on this node after another node
	// found the line working: only the path from this node to the provider is broken.
	localTime = 5 * time.Minute
)

// findings synchronizes the findings of this node and other nodes. Each step compares three states
// of every part: the state on this node, the state in the table, and the last state on which both
// agreed. A changed state replaces the other one; if both have changed, the table wins. So the
// first node with a change writes it once and sends the alert.
type findings struct {
	changed chan struct{} // wakes the step

	mu         sync.Mutex // locked during a step
	agreements map[target]map[blockedPart]agreement
	localUntil map[target]time.Time // findings about a line stay on this node until this time
	tidied     time.Time

	pendingMu sync.Mutex
	pending   map[string][]pendingAlert // alerts of unwritten changes, by line

	leaseMu sync.Mutex
	leases  map[target]int // running probes of each line leased by this node
}

// blockedPart is a part of a line that refuses requests: a model, a form, a key by its mark, or the
// line as a whole (zero).
type blockedPart struct {
	health.LinePart
	key string
}

// pendingAlert is the alert of an unwritten change.
type pendingAlert struct {
	part  blockedPart
	alert alert.Alert
}

// target is a line at one address with certain credentials. Nodes with other credentials have
// separate findings.
type target struct{ line, digest string }

// agreement is the last state of a part on which this node and the table agreed.
type agreement struct {
	version     int64 // of the row; 0 without a row
	local       stamp
	writtenHere bool // this node has written the row
	resumed     bool // the operator has resumed the line since, which deletes the row
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

// edit is a change of a row of the table.
type edit struct {
	entry   *routingEntry
	part    blockedPart
	finding *health.Finding // nil deletes the row
	version int64           // of the old row; 0 without a row
	written int64           // version of the new row; 0 if the row is deleted
	done    bool
}

// shares reports whether there may be other nodes.
func (l *Lines) shares() bool { return l.db != nil && l.db.Dialect() == store.PostgreSQL }

// Exchange shares this node's findings about lines with the other nodes and adopts those of other
// nodes. It is a no-op on SQLite, which has one node.
func (l *Lines) Exchange(ctx context.Context) error {
	if !l.shares() {
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
	tidy := now.Sub(s.tidied) >= tidyEvery
	if len(edits) == 0 && !tidy {
		return nil
	}
	if err := l.db.Update(ctx, func(tx *store.Tx) error { return writeTx(tx, l.node.Epoch(), edits, now, tidy) }); err != nil {
		return err
	}
	if tidy {
		s.tidied = now
	}
	for _, e := range edits {
		if e.done {
			s.agree(e.entry.target, e.part, agreement{version: e.written, local: stampOfEdit(e), writtenHere: true})
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

// merge adopts the table's changes of a line and returns the changes of this node.
func (l *Lines) merge(entry *routingEntry, rows map[blockedPart]row) (edits []*edit) {
	s, now := &l.findings, l.now()
	agreed := s.agreements[entry.target]
	if len(rows) == 0 && len(agreed) == 0 && entry.stats.Sound() && !entry.stats.keys.any.Load() {
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
		r, before := rows[part], agreed[part]
		own, blocked := local[part]
		var state stamp // the zero value if the part is not blocked
		if blocked {
			state = stampOf(own)
		}
		if before.resumed && r.version == 0 {
			before = agreement{} // keep findings made after the resume
			s.agree(entry.target, part, before)
		}
		if r.version != before.version {
			l.adopt(entry, part, r, before, now)
			continue
		}
		if state == before.local {
			if blocked && before.writtenHere { // the step that wrote the finding came before its alert
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
		e := &edit{entry: entry, part: part, version: before.version}
		if blocked {
			e.finding = &own
		} else if before.version == 0 { // the finding began and ended between two steps
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
func (l *Lines) adopt(entry *routingEntry, part blockedPart, r row, before agreement, now time.Time) {
	s, line := &l.findings, entry.line.ID
	l.dropAlerts(line, part)
	after := agreement{version: r.version}
	works := r.version == 0 || r.State == health.StateHalfOpen
	if works && before.writtenHere && before.local.state != health.StateCooling && before.local.state != health.StateHalfOpen {
		s.localUntil[entry.target] = now.Add(localTime)
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
		after.local = stampOf(f)
	}
	s.agree(entry.target, part, after)
	if part == (blockedPart{}) {
		l.metrics.inService(line, r.State != health.StateCircuitOpen && r.State != health.StateCredentialsOut && r.State != health.StateHalfOpen)
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

// agree records the state agreed between this node and the table.
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

// publish reports the changes after a request or probe on this node. The log and the metrics get
// the changes at once. The alert waits until the change is written, so that only one of several
// nodes sends it.
func (l *Lines) publish(entry *routingEntry, changes []health.Change) {
	if !l.shares() {
		l.announce(entry.line.ID, changes)
		return
	}
	s := &l.findings
	generation := entry.stats.Generation()
	if len(changes) == 0 && entry.stats.exchanged.Load() == generation { // nearly always
		return
	}
	s.pendingMu.Lock()
	for _, c := range changes {
		unwritten := pendingAlert{blockedPart{LinePart: health.LinePart{Model: c.Model, Form: c.Form, Tools: c.Tools}},
			l.logChange(entry.line.ID, c)}
		s.pending[entry.line.ID] = append(s.pending[entry.line.ID], unwritten)
	}
	s.pendingMu.Unlock()
	if entry.stats.exchanged.Swap(generation) != generation || len(changes) > 0 {
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

// publishKey sends the alert of a refused or accepted key like publish.
func (l *Lines) publishKey(k *lineKey, a alert.Alert) {
	if !l.shares() {
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

// dropAlerts drops the waiting alerts of a part, because another node sends them or the change did
// not last.
func (l *Lines) dropAlerts(line string, part blockedPart) { l.findings.take(line, part) }

// take removes and returns the waiting alerts of a part.
func (s *findings) take(line string, part blockedPart) (taken []alert.Alert) {
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	var rest []pendingAlert
	for _, a := range s.pending[line] {
		if a.part == part {
			taken = append(taken, a.alert)
		} else {
			rest = append(rest, a)
		}
	}
	if s.pending[line] = rest; rest == nil {
		delete(s.pending, line)
	}
	return taken
}

// findingsTx reads the table and converts the times to this node's clock.
func findingsTx(tx *store.Tx, now time.Time) (map[target]map[blockedPart]row, error) {
	nowMS, err := tx.NowMS()
	if err != nil {
		return nil, fmt.Errorf("read the findings about lines: %w", err)
	}
	all := map[target]map[blockedPart]row{}
	at := func(ms int64) time.Time { return now.Add(time.Duration(ms-nowMS) * time.Millisecond) }
	err = tx.Each(func(found store.Row) error {
		var r row
		var tools, since, until, wait, explicit int64
		var accounts string
		if err := found.Scan(&r.target.line, &r.target.digest, &r.Model, &r.Form, &tools, &r.key, &r.State, &r.Cause, &since, &until, &wait,
			&accounts, &explicit, &r.version); err != nil {
			return err
		}
		r.Tools, r.Since, r.Until, r.Wait = tools != 0, at(since), at(until), time.Duration(wait)*time.Millisecond
		r.Explicit = explicit != 0
		if accounts != "" {
			if err := json.Unmarshal([]byte(accounts), &r.Accounts); err != nil {
				return fmt.Errorf("the accounts of line %s: %w", r.target.line, err)
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
		e.done = n == 1
	}
	return nil
}

func (e *edit) writeTx(tx *store.Tx, epoch string, now time.Time, nowMS int64) (int64, error) {
	t, tools := e.entry.target, int64(0)
	if e.part.Tools {
		tools = 1
	}
	e.written = 0
	if e.finding == nil {
		return tx.Exec(`DELETE FROM line_finding
			WHERE line = $1 AND target = $2 AND model = $3 AND form = $4 AND tools = $5 AND key_mark = $6 AND version = $7`,
			t.line, t.digest, e.part.Model, string(e.part.Form), tools, e.part.key, e.version)
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
	at := func(t time.Time) int64 { return nowMS + t.Sub(now).Milliseconds() }
	e.written = max(nowMS, e.version+1)
	if e.version == 0 {
		return tx.Exec(`INSERT INTO line_finding
			(line, target, model, form, tools, key_mark, state, cause, since_ms, until_ms, wait_ms, accounts, explicit, epoch,
			version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
			t.line, t.digest, e.part.Model, string(e.part.Form), tools, e.part.key, f.State, f.Cause, at(f.Since), at(f.Until),
			f.Wait.Milliseconds(), accounts, explicit, epoch, e.written)
	}
	return tx.Exec(`UPDATE line_finding
		SET state = $1, cause = $2, since_ms = $3, until_ms = $4, wait_ms = $5, accounts = $6, explicit = $7, epoch = $8, version = $9
		WHERE line = $10 AND target = $11 AND model = $12 AND form = $13 AND tools = $14 AND key_mark = $15 AND version = $16`,
		f.State, f.Cause, at(f.Since), at(f.Until), f.Wait.Milliseconds(), accounts, explicit, epoch, e.written,
		t.line, t.digest, e.part.Model, string(e.part.Form), tools, e.part.key, e.version)
}
