// Package gallery owns what an account sees of its jobs: lists of them, one with all
// that is told of it, and how many there are.
//
// Invariants: a job of another account is not there. What operators alone see, lines
// among it, is not shown. A page costs the same however many jobs there are.
package gallery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
)

// Shelf selects jobs of one account. Empty fields select all.
type Shelf struct {
	Account string // required
	Kind    string // image or video
	Status  string // as the job endpoints show it; another one selects none
	After   string // continue below this job id
	Limit   int
}

// Exhibit is a job as its account sees it.
type Exhibit struct {
	ID, Request, Key    string
	Kind, Model, Status string
	Prompt              string
	Tier, Ratio         string // Ratio is empty where it was the provider's choice
	Seconds             int64  // of a clip; 0: the provider's choice
	Count               int64  // of images
	References          int
	Params              json.RawMessage // further fields; nil: none
	Links               []string        // of the results
	Code, Message       string          // of one that failed
	Held, Cost          money.Amount
	CreatedMS           int64
	StartedMS, EndedMS  int64      // 0: not yet
	Steps               []row.Step // without their lines
	// Ahead is how many jobs are before it in its queue, and WaitSeconds how long
	// it is likely to wait, once AddPlaces has run.
	Ahead, WaitSeconds int64

	queued bool
	turn   int64
}

// Final tells whether the job has ended.
func (e *Exhibit) Final() bool { return e.EndedMS > 0 }

// Waits tells whether the job waits in a queue, and since which turn.
func (e *Exhibit) Waits() (turn int64, waits bool) { return e.turn, e.queued }

// ExhibitsTx lists an account's jobs, newest first; the bool tells whether there
// are more.
func ExhibitsTx(tx *store.Tx, s Shelf) ([]Exhibit, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	text, args := s.statement()
	if text == "" {
		return nil, false, nil
	}
	ids, err := row.IDsTx(tx, text, args...)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	list, err := exhibitsTx(tx, s.Account, ids[:min(len(ids), s.Limit)])
	return list, len(ids) > s.Limit, err
}

// ExhibitTx reads a job of an account. ErrNoJob, also for a job of another one.
func ExhibitTx(tx *store.Tx, account, id string) (Exhibit, error) {
	list, err := exhibitsTx(tx, account, []string{id})
	if err != nil {
		return Exhibit{}, err
	}
	if len(list) == 0 {
		return Exhibit{}, row.ErrNoJob
	}
	return list[0], nil
}

// statement finds ids along the indexes of one account: of those that run, and of
// those that ended, a walk for each status and kind.
func (s Shelf) statement() (text string, args []any) {
	var walks []string
	bound := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	account, limit := bound(s.Account), bound(s.Limit+1)
	below := ""
	if s.After != "" {
		below = " AND %s < " + bound(s.After)
	}
	walk := func(from, id, where string) {
		if below != "" {
			where += fmt.Sprintf(below, id)
		}
		walks = append(walks, fmt.Sprintf(`SELECT id FROM (SELECT %s AS id FROM %s WHERE %s ORDER BY %s DESC LIMIT %s) AS walk%d`,
			id, from, where, id, limit, len(walks)))
	}
	if s.Kind == "" && s.Status == "" {
		walk("job", "id", "account = "+account)
		return walks[0], args
	}
	if s.Status == "" || s.Status == row.StatusQueued || s.Status == row.StatusProcessing {
		from, where := "job_run r", "r.account = "+account+" AND r.account <> ''"
		switch s.Status {
		case row.StatusQueued:
			where += " AND r.started_ms + 0 = 0"
		case row.StatusProcessing:
			where += " AND r.started_ms + 0 > 0"
		}
		if s.Kind != "" {
			from += " JOIN job j ON j.id = r.id"
			where += " AND j.kind || '' = " + bound(s.Kind)
		}
		walk(from, "r.id", where)
	}
	for _, status := range []string{row.StatusSucceeded, row.StatusFailed} {
		if s.Status != "" && s.Status != status {
			continue
		}
		for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
			if s.Kind == "" || s.Kind == kind {
				walk("job", "id", fmt.Sprintf("account = %s AND account <> '' AND status = %s AND kind = %s AND ended_ms > 0",
					account, bound(status), bound(kind)))
			}
		}
	}
	return strings.Join(walks, " UNION ALL "), args
}

// Tally is how many jobs an account has, each count at most the bound that was
// asked for.
type Tally struct{ Queued, Processing, Succeeded, Failed int64 }

// TallyTx counts an account's jobs of a kind, empty for both, up to most of each.
func TallyTx(tx *store.Tx, account, kind string, most int) (Tally, error) {
	var t Tally
	if err := tx.ByIndex(); err != nil {
		return t, err
	}
	for status, n := range map[string]*int64{row.StatusQueued: &t.Queued, row.StatusProcessing: &t.Processing,
		row.StatusSucceeded: &t.Succeeded, row.StatusFailed: &t.Failed} {
		text, args := Shelf{Account: account, Kind: kind, Status: status, Limit: most - 1}.statement()
		if err := tx.QueryRow(`SELECT COUNT(*) FROM (`+text+`) AS counted`, args...).Scan(n); err != nil {
			return t, err
		}
		*n = min(*n, int64(most))
	}
	return t, nil
}

const exhibitColumns = row.RecordColumns + `, COALESCE(r.state, -1), COALESCE(r.turn, 0), COALESCE(r.started_ms, 0), COALESCE(r.trace, '')`

// exhibitsTx reads jobs of an account, newest first.
func exhibitsTx(tx *store.Tx, account string, ids []string) ([]Exhibit, error) {
	rows, err := tx.Query(`SELECT `+exhibitColumns+` FROM job j LEFT JOIN job_run r ON r.id = j.id WHERE `+tx.In("j.id", 1)+
		` AND j.account || '' = $2`, store.List(ids), account)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Exhibit
	for rows.Next() {
		var state, turn, startedMS int64
		var running string
		rec, err := row.ScanRecord(rows, &state, &turn, &startedMS, &running)
		if err != nil {
			return nil, err
		}
		e, err := exhibitOf(rec)
		if err != nil {
			return nil, err
		}
		if state >= 0 {
			var t row.Trace
			if err := row.Decode(running, &t); err != nil {
				return nil, fmt.Errorf("read job %s: %w", rec.ID, err)
			}
			e.Steps, e.StartedMS, e.turn, e.queued = publicSteps(t), startedMS, turn, startedMS == 0 && state == row.StateQueued
			e.Status = row.StatusQueued
			if startedMS > 0 {
				e.Status = row.StatusProcessing
			}
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Exhibit) int { return strings.Compare(b.ID, a.ID) })
	return list, rows.Err()
}

// exhibitOf is what the record of a job shows.
func exhibitOf(r *row.Job) (Exhibit, error) {
	e := Exhibit{ID: r.ID, Request: r.Request, Key: r.Key, Kind: r.Kind, Model: r.Model, Status: r.Status, Prompt: r.Prompt,
		Tier: r.Plan.Tier, Ratio: r.Plan.Ratio, Seconds: r.Plan.Seconds, Count: r.Plan.Count, References: len(r.Materials.References),
		Held: r.Held, Cost: r.Cost, CreatedMS: r.CreatedMS, StartedMS: r.StartedMS, EndedMS: r.EndedMS, Steps: publicSteps(r.Trace)}
	if r.Params != "" {
		e.Params = json.RawMessage(r.Params)
	}
	var err error
	e.Links, e.Code, e.Message, err = r.Outcome()
	return e, err
}

// publicSteps are the steps without the lines, which users do not see.
func publicSteps(t row.Trace) []row.Step {
	steps := slices.Clone(t.Steps)
	for i := range steps {
		steps[i].Line = ""
	}
	return steps
}
