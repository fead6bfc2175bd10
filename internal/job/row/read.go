package row

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/store"
)

// ErrNoJob means that the job does not exist.
var ErrNoJob = errors.New("no such job")

// Text encodes v for a column, without the NUL characters that a provider may have sent. It panics
// on an error, because v is one of this package's types.
func Text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("job: encode %T: %v", v, err))
	}
	const null = `\u0000`
	if !bytes.Contains(raw, []byte(null)) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(null)) {
			i += len(null) - 1
			continue
		}
		out = append(out, raw[i], raw[i+1]) // copy both bytes: after an escaped backslash no escape begins
		i++
	}
	return string(out)
}

// ErrDamaged means that a column has invalid JSON.
var ErrDamaged = errors.New("the row is damaged")

// Decode reads the result of Text. Empty text does not change v. It may return ErrDamaged.
func Decode(raw string, v any) error {
	if raw == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// RecordColumns are the columns for ScanRecord, of table job as j.
const RecordColumns = `j.id, j.request, j.account, j.key, j.kind, j.model, j.endpoint, j.revision, j.plan, j.prompt, j.params, j.materials,
	j.callback, j.held_nano, j.cost_nano, j.status, j.code, j.line, j.trace, j.body, j.created_ms, j.started_ms, j.ended_ms`

// RunColumns are the columns for RunScan, of table job_run as r.
const RunColumns = `r.state, r.turn, r.queued_ms, r.wake_ms, r.started_ms, r.epoch, r.fence, r.line, r.revision, r.number, r.ticket,
	r.submitted_ms, r.results, r.files, r.trace`

// ScanRecord reads a row of RecordColumns, followed by more.
func ScanRecord(row store.Row, more ...any) (*Job, error) {
	var r Job
	var plan, materials, trace string
	err := row.Scan(append([]any{&r.ID, &r.Request, &r.Account, &r.Key, &r.Kind, &r.Model, &r.Endpoint, &r.Revision, &plan,
		&r.Prompt, &r.Params,
		&materials, &r.Callback, (*int64)(&r.Held), (*int64)(&r.Cost), &r.Status, &r.Code, &r.Line, &trace, &r.Body,
		&r.CreatedMS, &r.StartedMS, &r.EndedMS}, more...)...)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(Decode(plan, &r.Plan), Decode(materials, &r.Materials), Decode(trace, &r.Trace)); err != nil {
		return nil, fmt.Errorf("read job %s: %w", r.ID, err)
	}
	return &r, nil
}

// RunScan scans a row of RunColumns.
type RunScan struct {
	Run
	resultsJSON, filesJSON, traceJSON string
}

// Dest returns the destinations for Scan.
func (p *RunScan) Dest() []any {
	return []any{&p.State, &p.Turn, &p.QueuedMS, &p.WakeMS, &p.StartedMS, &p.Epoch, &p.Fence, &p.Line, &p.Revision, &p.Number, &p.Ticket,
		&p.SubmittedMS, &p.resultsJSON, &p.filesJSON, &p.traceJSON}
}

// Read returns the run after Scan. It may return ErrDamaged.
func (p *RunScan) Read() (*Run, error) {
	if err := Decode(p.resultsJSON, &p.Results); err != nil {
		return nil, err
	}
	if err := Decode(p.filesJSON, &p.Files); err != nil {
		return nil, err
	}
	return &p.Run, Decode(p.traceJSON, &p.Trace)
}

// ReadTx reads a running job. It returns nil if the job has ended or does not exist.
func ReadTx(tx *store.Tx, id string) (*Job, *Run, error) {
	var p RunScan
	rec, err := ScanRecord(tx.QueryRow(`SELECT `+RecordColumns+`, `+RunColumns+
		` FROM job j JOIN job_run r ON r.id = j.id WHERE j.id = $1`, id), p.Dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	run, err := p.Read()
	return rec, run, err
}

// RecordTx reads the record of a job. It may return ErrNoJob.
func RecordTx(tx *store.Tx, id string) (*Job, error) {
	rec, err := ScanRecord(tx.QueryRow(`SELECT `+RecordColumns+` FROM job j WHERE j.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoJob
	}
	return rec, err
}

// DistinctTx lists the distinct values of an indexed column. next selects the first value above its
// last parameter, or an empty string.
func DistinctTx(tx *store.Tx, next string, args ...any) ([]string, error) {
	var values []string
	for last := ""; ; {
		if err := tx.QueryRow(next, append(slices.Clone(args), last)...).Scan(&last); err != nil || last == "" {
			return values, err
		}
		values = append(values, last)
	}
}
