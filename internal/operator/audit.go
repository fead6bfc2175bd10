package operator

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/invoice"
	"tollgate/internal/job"
	"tollgate/internal/job/proof"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/topup"
)

// maxAudits is the number of background audits to keep.
const maxAudits = 50

// Audits runs audits of the books, one at a time on a node. It is safe for
// concurrent use.
type Audits struct {
	db   *store.DB
	node *node.Node  // may be nil
	jobs audit.Check // of package job
	log  *slog.Logger
	slot chan struct{} // held by the running audit
	next chan string   // id of the next background audit

	// For tests: audit.Options.RangeRows, and a function called with the number of ranges of a Step.
	rangeRows  int64
	afterRange func(ranges int)
}

// NewAudits returns the audits of a node. node is nil in a process without a node, and jobs in one without
// jobs. If log is nil, nothing is logged.
func NewAudits(db *store.DB, node *node.Node, jobs *job.Jobs, log *slog.Logger) *Audits {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	check := proof.AuditTx
	if jobs != nil {
		check = proof.Check(jobs.Retention())
	}
	return &Audits{db: db, node: node, jobs: check, log: log, slot: make(chan struct{}, 1), next: make(chan string, 1)}
}

// Recompute runs an audit and waits for it. If only is not empty, the audit reads that account alone;
// the error is audit.ErrNoAccount if the account does not exist.
func (a *Audits) Recompute(ctx context.Context, only string) (audit.Findings, error) {
	return a.run(ctx, audit.Options{Account: only})
}

func (a *Audits) run(ctx context.Context, o audit.Options) (audit.Findings, error) {
	select {
	case a.slot <- struct{}{}:
	case <-ctx.Done():
		return audit.Findings{}, fmt.Errorf("wait for the running audit: %w", ctx.Err())
	}
	defer func() { <-a.slot }()
	o.Checks, o.RangeRows = []audit.Check{account.AuditTx, topup.AuditTx, invoice.AuditTx, Check(), a.jobs}, a.rangeRows
	return audit.RunWith(ctx, a.db, o)
}

// epoch returns the epoch of the node, or "" without a node.
func (a *Audits) epoch() string {
	if a.node == nil {
		return ""
	}
	return a.node.Epoch()
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
		if _, err := tx.Exec(`INSERT INTO operator_audit (id, epoch, began_ms, ended_ms, name, fault, findings)
			VALUES ($1, $2, $3, 0, $4, '', '')`, run, a.epoch(), now, who); err != nil {
			return err
		}
		if err := forgetTx(tx); err != nil {
			return err
		}
		return writeLogTx(tx, by, LogRow{Act: AuditRun, Object: run})
	}); err != nil {
		return false, fmt.Errorf("begin an audit: %w", err)
	}
	select {
	case a.next <- run:
	default: // another audit waits; the row records the error
		return false, a.end(ctx, run, a.epoch(), audit.Findings{}, errors.New("another audit was requested at the same time"))
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

// takeOverPeriod is how often Run looks for interrupted audits.
const takeOverPeriod = time.Minute

// Run runs the audits that Begin starts, and continues the audits of dead nodes, until ctx is done.
func (a *Audits) Run(ctx context.Context) {
	for {
		run, err := a.TakeOver(ctx)
		if run == "" {
			select {
			case <-ctx.Done():
				return
			case <-time.After(takeOverPeriod):
			case run = <-a.next:
			}
		}
		if run != "" {
			err = a.Step(ctx, run)
		}
		if err != nil && ctx.Err() == nil {
			a.log.Error("operator: an audit could not be continued or its outcome could not be stored", "audit", run, "cause", err)
		}
	}
}

// TakeOver claims an audit of a dead node for this node. It returns the id, or "" if no audit needs
// another node.
func (a *Audits) TakeOver(ctx context.Context) (run string, err error) {
	if a.node == nil {
		return "", nil
	}
	err = a.db.Update(ctx, func(tx *store.Tx) error {
		run = ""
		nodes, err := node.MembersTx(tx)
		if err != nil {
			return err
		}
		err = tx.QueryRow(`SELECT id FROM operator_audit WHERE ended_ms = 0 AND NOT (`+tx.In("epoch", 1)+`) ORDER BY id LIMIT 1`,
			store.List(nodes.Living())).Scan(&run)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		// Another node may have claimed the audit in the meantime.
		n, err := tx.Exec(`UPDATE operator_audit SET epoch = $1 WHERE id = $2 AND NOT (`+tx.In("epoch", 3)+`)`,
			a.epoch(), run, store.List(nodes.Living()))
		if n == 0 {
			run = ""
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look for interrupted audits: %w", err)
	}
	return run, nil
}

// errTakenOver means that another node has claimed an audit because this node was declared dead.
var errTakenOver = errors.New("another node continues the audit")

// Step runs an audit of this node from its stored progress, stores its progress after each range, and
// stores its outcome. If ctx ends, the audit stays unfinished, and TakeOver can claim it after the next
// start.
func (a *Audits) Step(ctx context.Context, run string) error {
	var epoch, saved string
	if err := a.db.QueryRow(ctx, `SELECT epoch, findings FROM operator_audit WHERE id = $1`, run).Scan(&epoch, &saved); err != nil {
		return fmt.Errorf("read the progress of an audit: %w", err)
	}
	ranges := 0
	o := audit.Options{Save: func(ctx context.Context, p audit.Progress) error {
		err := a.save(ctx, run, epoch, p)
		if ranges++; err == nil && a.afterRange != nil {
			a.afterRange(ranges)
		}
		return err
	}}
	if saved != "" {
		if err := json.Unmarshal([]byte(saved), &o.From); err != nil {
			return fmt.Errorf("read the progress of an audit: %w", err)
		}
	}
	found, err := a.run(ctx, o)
	if errors.Is(err, errTakenOver) || err != nil && ctx.Err() != nil {
		return err
	}
	return a.end(ctx, run, epoch, found, err)
}

// end stores the outcome of an audit.
func (a *Audits) end(ctx context.Context, run, epoch string, found audit.Findings, failed error) error {
	return a.store(ctx, func(tx *store.Tx, now int64) (int64, error) {
		if failed != nil {
			return tx.Exec(`UPDATE operator_audit SET ended_ms = $1, findings = '', fault = $2 WHERE id = $3 AND epoch = $4`,
				now, failed.Error(), run, epoch)
		}
		raw, err := json.Marshal(found)
		if err != nil {
			return 0, err
		}
		return tx.Exec(`UPDATE operator_audit SET ended_ms = $1, findings = $2 WHERE id = $3 AND epoch = $4`, now, string(raw), run, epoch)
	})
}

// save stores the progress of an audit.
func (a *Audits) save(ctx context.Context, run, epoch string, p audit.Progress) error {
	return a.store(ctx, func(tx *store.Tx, _ int64) (int64, error) {
		raw, err := json.Marshal(p)
		if err != nil {
			return 0, err
		}
		return tx.Exec(`UPDATE operator_audit SET findings = $1 WHERE id = $2 AND epoch = $3`, string(raw), run, epoch)
	})
}

// store runs a change of an audit's row. change returns the number of changed rows. store returns
// errTakenOver if the audit belongs to another epoch.
func (a *Audits) store(ctx context.Context, change func(tx *store.Tx, now int64) (int64, error)) error {
	return a.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		n, err := change(tx, now)
		if err == nil && n == 0 {
			err = errTakenOver
		}
		return err
	})
}

// AuditOutcome is the outcome of one background audit.
type AuditOutcome struct {
	ID               string
	BeganMS, EndedMS int64          // EndedMS is 0 if the audit runs, or waits for another node after its own died
	Name             string         // of the operator
	Fault            string         // the error if the audit failed
	Findings         audit.Findings // while the audit runs: of the accounts so far
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
