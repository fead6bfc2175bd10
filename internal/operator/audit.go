package operator

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"tollgate/internal/account"
	"tollgate/internal/job"
	"tollgate/internal/job/proof"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// maxAudits is the number of background audits to keep.
const maxAudits = 50

// Audits runs audits of the books, one at a time on a node. It is safe for
// concurrent use.
type Audits struct {
	db   *store.DB
	jobs audit.Check // of package job
	log  *slog.Logger
	slot chan struct{} // held by the running audit
	next chan string   // id of the next background audit
}

// NewAudits returns the audits of a node with its jobs, or nil jobs in a process without jobs. If
// log is nil, nothing is logged.
func NewAudits(db *store.DB, jobs *job.Jobs, log *slog.Logger) *Audits {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	check := proof.AuditTx
	if jobs != nil {
		check = proof.Check(jobs.Retention())
	}
	return &Audits{db: db, jobs: check, log: log, slot: make(chan struct{}, 1), next: make(chan string, 1)}
}

// Recompute runs an audit and waits for it.
func (a *Audits) Recompute(ctx context.Context) (audit.Findings, error) {
	select {
	case a.slot <- struct{}{}:
	case <-ctx.Done():
		return audit.Findings{}, fmt.Errorf("wait for the running audit: %w", ctx.Err())
	}
	defer func() { <-a.slot }()
	return audit.Run(ctx, a.db, account.AuditTx, AuditTx, a.jobs)
}

// Begin starts an audit in the background; AuditsTx returns its outcome. Begin returns false if an
// audit already runs or waits on this node.
func (a *Audits) Begin(ctx context.Context, by Actor) (bool, error) {
	run := id.New("audit_")
	who := cmp.Or(by.Name, string(by.Way))
	if len(a.next) > 0 || len(a.slot) > 0 {
		return false, nil
	}
	if err := a.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO operator_audit (id, began_ms, ended_ms, name, fault, findings) VALUES ($1, $2, 0, $3, '', '')`,
			run, now, who); err != nil {
			return err
		}
		if err := forgetTx(tx); err != nil {
			return err
		}
		return NoteTx(tx, by, LogRow{Act: AuditRun, Object: run})
	}); err != nil {
		return false, fmt.Errorf("begin an audit: %w", err)
	}
	select {
	case a.next <- run:
	default: // another audit waits; the row records the error
		return false, a.end(ctx, run, audit.Findings{}, errors.New("another audit was requested at the same time"))
	}
	return true, nil
}

// forgetTx deletes all but the newest maxAudits audits.
func forgetTx(tx *store.Tx) error {
	var oldest string
	err := tx.QueryRow(`SELECT id FROM operator_audit ORDER BY id DESC LIMIT 1 OFFSET $1`, maxAudits).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(`DELETE FROM operator_audit WHERE id <= $1`, oldest)
	return err
}

// Run runs the audits that Begin starts, until ctx is done.
func (a *Audits) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case run := <-a.next:
			if err := a.Step(ctx, run); err != nil && ctx.Err() == nil {
				a.log.Error("the outcome of an audit could not be stored", "audit", run, "cause", err)
			}
		}
	}
}

// Step runs one audit and stores its outcome.
func (a *Audits) Step(ctx context.Context, run string) error {
	found, err := a.Recompute(ctx)
	return a.end(ctx, run, found, err)
}

func (a *Audits) end(ctx context.Context, run string, found audit.Findings, failed error) error {
	findings, why := "", ""
	if failed != nil {
		why = failed.Error()
	} else {
		raw, err := json.Marshal(found)
		if err != nil {
			return err
		}
		findings = string(raw)
	}
	return a.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE operator_audit SET ended_ms = $1, fault = $2, findings = $3 WHERE id = $4`, now, why, findings, run)
		return err
	})
}

// AuditOutcome is the outcome of one background audit.
type AuditOutcome struct {
	ID               string
	BeganMS, EndedMS int64  // EndedMS is 0 if the audit runs, or its node died
	Name             string // of the operator
	Fault            string // the error if the audit failed
	Findings         audit.Findings
}

// AuditsTx returns the last background audits, newest first.
func AuditsTx(tx *store.Tx, limit int) ([]AuditOutcome, error) {
	list, err := store.Collect(tx, func(row store.Row) (o AuditOutcome, err error) {
		var findings string
		err = row.Scan(&o.ID, &o.BeganMS, &o.EndedMS, &o.Name, &o.Fault, &findings)
		if err == nil && findings != "" {
			err = json.Unmarshal([]byte(findings), &o.Findings)
		}
		return o, err
	}, `SELECT id, began_ms, ended_ms, name, fault, findings FROM operator_audit ORDER BY id DESC LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("read the audits: %w", err)
	}
	return list, nil
}
