// Package gallery owns an account's view of its jobs: lists, single jobs and counts.
//
// Invariants: an account sees only its own jobs, without lines and other details for operators. The
// cost of a page does not depend on the number of jobs.
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

// UserFilter selects jobs of an account. Empty fields match all jobs.
type UserFilter struct {
	Account string // required
	Kind    string // image or video
	Status  string // as the job endpoints show it, or Unfetched; an unknown status matches no job
	After   string // only older jobs than this id
	Limit   int
}

// Unfetched is the status of UserFilter for succeeded jobs with results not fetched yet.
const Unfetched = "unfetched"

// UserJob is a job as its account sees it.
type UserJob struct {
	ID, Request, Key    string
	Kind, Model, Status string
	Prompt              string
	Tier, Ratio         string // Ratio is empty if the provider chose it
	Seconds             int64  // of a clip; 0 if the provider chose it
	Count               int64  // of images
	References          int
	Params              json.RawMessage // other fields, or nil
	Links               []string        // to the results
	Code, Message       string          // of a failed job
	Fetched             bool            // whether the account has received the result; see job.MarkFetched
	Held, Cost          money.Amount
	CreatedMS           int64
	StartedMS, EndedMS  int64      // 0 until then
	Steps               []row.Step // without lines
	// Ahead is the number of jobs ahead in the queue and WaitSeconds the estimated wait.
	// AddPositions sets both.
	Ahead, WaitSeconds int64

	queued bool
	turn   int64
}

// Final reports whether the job has ended.
func (e *UserJob) Final() bool { return e.EndedMS > 0 }

// QueueTurn reports whether the job is in a queue, and returns its turn.
func (e *UserJob) QueueTurn() (turn int64, queued bool) { return e.turn, e.queued }

// ListTx lists an account's jobs, newest first, and reports whether there are more.
func ListTx(tx *store.Tx, s UserFilter) ([]UserJob, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	text, args := s.statement()
	if text == "" {
		return nil, false, nil
	}
	ids, err := store.Column[string](tx, text, args...)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	list, err := readTx(tx, s.Account, ids[:min(len(ids), s.Limit)])
	return list, len(ids) > s.Limit, err
}

// GetTx reads a job of an account. It returns ErrNoJob for another account's job.
func GetTx(tx *store.Tx, account, id string) (UserJob, error) {
	list, err := readTx(tx, account, []string{id})
	if err != nil {
		return UserJob{}, err
	}
	if len(list) == 0 {
		return UserJob{}, row.ErrNoJob
	}
	return list[0], nil
}

// statement returns a query for ids along the account's indexes: one part for unfinished jobs, and
// one for each status and kind of ended jobs. Each part reads at most a page.
func (s UserFilter) statement() (text string, args []any) {
	var parts []string
	param := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	account, limit := param(s.Account), param(s.Limit+1)
	below := ""
	if s.After != "" {
		below = " AND %s < " + param(s.After)
	}
	add := func(from, id, where string) {
		if below != "" {
			where += fmt.Sprintf(below, id)
		}
		parts = append(parts, fmt.Sprintf(`SELECT id FROM (SELECT %s AS id FROM %s WHERE %s ORDER BY %s DESC LIMIT %s) AS part%d`,
			id, from, where, id, limit, len(parts)))
	}
	if s.Status == Unfetched {
		where := "account = " + account + " AND status = 'succeeded' AND fetched_ms = 0"
		if s.Kind != "" {
			where += " AND kind || '' = " + param(s.Kind)
		}
		add("job", "id", where)
		return parts[0], args
	}
	if s.Kind == "" && s.Status == "" {
		add("job", "id", "account = "+account)
		return parts[0], args
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
			where += " AND j.kind || '' = " + param(s.Kind)
		}
		add(from, "r.id", where)
	}
	for _, status := range []string{row.StatusSucceeded, row.StatusFailed} {
		if s.Status != "" && s.Status != status {
			continue
		}
		for _, kind := range []string{upstream.KindImage, upstream.KindVideo} {
			if s.Kind == "" || s.Kind == kind {
				add("job", "id", fmt.Sprintf("account = %s AND account <> '' AND status = %s AND kind = %s AND ended_ms > 0",
					account, param(status), param(kind)))
			}
		}
	}
	return strings.Join(parts, " UNION ALL "), args
}

// Counts are the numbers of an account's jobs, each up to the limit of CountTx.
// Succeeded includes Unfetched.
type Counts struct{ Queued, Processing, Succeeded, Failed, Unfetched int64 }

// CountTx counts an account's jobs up to limit for each status. If kind is empty, it counts both
// kinds.
func CountTx(tx *store.Tx, account, kind string, limit int) (Counts, error) {
	var t Counts
	if err := tx.ByIndex(); err != nil {
		return t, err
	}
	for status, n := range map[string]*int64{row.StatusQueued: &t.Queued, row.StatusProcessing: &t.Processing,
		row.StatusSucceeded: &t.Succeeded, row.StatusFailed: &t.Failed, Unfetched: &t.Unfetched} {
		text, args := UserFilter{Account: account, Kind: kind, Status: status, Limit: limit - 1}.statement()
		if err := tx.QueryRow(`SELECT COUNT(*) FROM (`+text+`) AS counted`, args...).Scan(n); err != nil {
			return t, err
		}
		*n = min(*n, int64(limit))
	}
	return t, nil
}

const columns = row.RecordColumns + `, j.fetched_ms,
	COALESCE(r.state, -1), COALESCE(r.turn, 0), COALESCE(r.started_ms, 0), COALESCE(r.trace, '')`

// readTx reads jobs of an account, newest first.
func readTx(tx *store.Tx, account string, ids []string) ([]UserJob, error) {
	list, err := store.Collect(tx, scanUserJob, `SELECT `+columns+` FROM job j LEFT JOIN job_run r ON r.id = j.id WHERE `+
		tx.In("j.id", 1)+` AND j.account || '' = $2`, store.List(ids), account)
	slices.SortFunc(list, func(a, b UserJob) int { return strings.Compare(b.ID, a.ID) })
	return list, err
}

func scanUserJob(r store.Row) (UserJob, error) {
	var fetchedMS, state, turn, startedMS int64
	var running string
	rec, err := row.ScanRecord(r, &fetchedMS, &state, &turn, &startedMS, &running)
	if err != nil {
		return UserJob{}, err
	}
	e, err := userJobOf(rec)
	e.Fetched = fetchedMS > 0
	if err != nil || state < 0 {
		return e, err
	}
	var t row.Trace
	if err := row.Decode(running, &t); err != nil {
		return UserJob{}, fmt.Errorf("read job %s: %w", rec.ID, err)
	}
	e.Steps, e.StartedMS, e.turn, e.queued = publicSteps(t), startedMS, turn, startedMS == 0 && state == row.StateQueued
	e.Status = row.StatusQueued
	if startedMS > 0 {
		e.Status = row.StatusProcessing
	}
	return e, nil
}

// userJobOf converts the record of a job.
func userJobOf(r *row.Job) (UserJob, error) {
	e := UserJob{ID: r.ID, Request: r.Request, Key: r.Key, Kind: r.Kind, Model: r.Model, Status: r.Status, Prompt: r.Prompt,
		Tier: r.Plan.Tier, Ratio: r.Plan.Ratio, Seconds: r.Plan.Seconds, Count: r.Plan.Count, References: len(r.Materials.References),
		Held: r.Held, Cost: r.Cost, CreatedMS: r.CreatedMS, StartedMS: r.StartedMS, EndedMS: r.EndedMS, Steps: publicSteps(r.Trace)}
	if r.Params != "" {
		e.Params = json.RawMessage(r.Params)
	}
	var err error
	e.Links, e.Code, e.Message, err = r.Outcome()
	return e, err
}

// publicSteps returns the steps without lines.
func publicSteps(t row.Trace) []row.Step {
	steps := slices.Clone(t.Steps)
	for i := range steps {
		steps[i].Line = ""
	}
	return steps
}
