package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/internal/job/row"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Filter selects jobs. Empty fields match all jobs.
type Filter struct {
	Account, Key, Model, Line string
	Status                    string // as the job endpoints show it
	Code                      string // of a failed job
	SinceMS, UntilMS          int64  // bounds of the submission time: SinceMS <= t < UntilMS
	After                     string // only older jobs than this id
	Limit                     int
}

// ListTx lists jobs, newest first, and reports whether there are more.
func ListTx(tx *store.Tx, f Filter) ([]View, bool, error) {
	if err := tx.ByIndex(); err != nil {
		return nil, false, err
	}
	var ids []string
	for _, s := range f.sources() {
		found, err := store.Column[string](tx, s.text, s.args...)
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, found...)
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	ids = slices.Compact(ids)
	more := len(ids) > f.Limit
	views := make([]View, 0, len(ids))
	for _, id := range ids[:min(len(ids), f.Limit)] {
		v, err := GetTx(tx, id)
		if err != nil {
			return nil, false, err
		}
		views = append(views, v)
	}
	return views, more, nil
}

// source is a query for ids of jobs, newest first, along one index.
type source struct {
	text string
	args []any
}

// sources returns the queries for a filter. Table job_run has the unfinished jobs, and table job has
// the records. Only job_run has the line of a running job, so a filter by line alone needs both.
func (f Filter) sources() []source {
	switch {
	case f.Code != "": // only failed jobs have a code
		return []source{f.recordSource()}
	case f.Status == row.StatusQueued, f.Status == row.StatusProcessing:
		return []source{f.runSource()}
	case f.Line != "" && f.Status == "":
		return []source{f.runSource(), f.recordSource()}
	}
	return []source{f.recordSource()}
}

// recordSource selects records of jobs.
func (f Filter) recordSource() source {
	var w indexScan
	w.add(f.Account, "account = ?", "account || '' = ?")
	w.add(f.Line, "line = ? AND line <> ''", "line || '' = ?")
	w.add(f.Model, "model = ? AND ended_ms >= 0", "model || '' = ?")
	w.add(f.Status, "status = ? AND ended_ms > 0", "status || '' = ?")
	w.add(f.Key, "key || '' = ?", "key || '' = ?")
	w.add(f.Code, "code || '' = ?", "code || '' = ?")
	return w.newest("job", f)
}

// runSource selects unfinished jobs.
func (f Filter) runSource() source {
	var w indexScan
	w.add(f.Line, "line = ? AND line <> ''", "")
	switch {
	case f.Status == row.StatusQueued:
		w.where = append(w.where, "started_ms + 0 = 0")
	case f.Status == row.StatusProcessing && f.Line == "":
		w.where = append(w.where, "started_ms > 0")
	case f.Status == row.StatusProcessing:
		w.where = append(w.where, "started_ms + 0 > 0")
	}
	w.add(f.Account, "account || '' = ?", "account || '' = ?")
	w.add(f.Model, "model || '' = ?", "model || '' = ?")
	const key = "(SELECT j.key FROM job j WHERE j.id = job_run.id) = ?"
	w.add(f.Key, key, key)
	return w.newest("job_run", f)
}

// indexScan builds a source. The first condition selects the index. The other conditions are written
// so that they fit no index: with another index, the database would have to sort the result.
type indexScan struct {
	where []string
	args  []any
}

// add adds a condition, unless value is empty. The text is first for the first condition of a source,
// and later for the others.
func (w *indexScan) add(value, first, later string) {
	if value == "" {
		return
	}
	text := later
	if len(w.where) == 0 {
		text = first
	}
	w.args = append(w.args, value)
	w.where = append(w.where, strings.Replace(text, "?", fmt.Sprintf("$%d", len(w.args)), 1))
}

// newest returns the query for one page.
func (w *indexScan) newest(table string, f Filter) source {
	w.add(f.After, "id < ?", "id < ?")
	if f.SinceMS > 0 {
		w.add(id.First(row.IDPrefix, time.UnixMilli(f.SinceMS)), "id >= ?", "id >= ?")
	}
	if f.UntilMS > 0 {
		w.add(id.First(row.IDPrefix, time.UnixMilli(f.UntilMS)), "id < ?", "id < ?")
	}
	text := `SELECT id FROM ` + table
	if len(w.where) > 0 {
		text += ` WHERE ` + strings.Join(w.where, " AND ")
	}
	w.args = append(w.args, f.Limit+1)
	return source{text + fmt.Sprintf(` ORDER BY id DESC LIMIT $%d`, len(w.args)), w.args}
}
