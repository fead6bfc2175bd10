package operator

import (
	"context"
	"errors"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/store"
)

// LineControl controls the lines on this node. It is safe for concurrent use.
type LineControl interface {
	// IDs returns the ids of the lines of this node's catalog, in its order. It does not block.
	IDs() []string
	// Statuses returns the status of the lines of this node's catalog with the given ids, or of all lines
	// without ids, in the catalog's order. It does not block.
	Statuses(ids ...string) []line.Status
	// Refresh applies the committed changes of line.DrainTx and line.ResumeTx. After it returns nil,
	// Statuses shows them. An error comes from the database, and the node retries by itself.
	Refresh(ctx context.Context) error
	// Report writes this node's next report for line.ReportsTx now. An error comes from the
	// database, and the node retries by itself.
	Report(ctx context.Context) error
}

// LineTx returns a line of the current catalog. It returns a *fault.Error if there is no such line.
func LineTx(tx *store.Tx, id string) (catalog.LineSpec, error) {
	doc, _, err := catalog.CurrentTx(tx)
	if err != nil && !errors.Is(err, catalog.ErrNoRevision) {
		return catalog.LineSpec{}, err
	}
	if err == nil {
		for _, spec := range doc.Lines {
			if spec.ID == id {
				return spec, nil
			}
		}
	}
	return catalog.LineSpec{}, fault.New(fault.NotFound,
		"There is no line %q in the current catalog. GET /admin/v1/catalog shows its lines.", fault.Excerpt(id))
}

// DrainTx takes a line out of service on all nodes and returns its status as decided by operators.
func DrainTx(tx *store.Tx, by Actor, spec catalog.LineSpec) (line.Status, error) {
	return changeLineTx(tx, by, spec, LineDrain, line.DrainTx)
}

// ResumeTx brings a line back into service, for any reason of its state.
func ResumeTx(tx *store.Tx, by Actor, spec catalog.LineSpec) (line.Status, error) {
	return changeLineTx(tx, by, spec, LineResume, line.ResumeTx)
}

// changeLineTx runs change, which drains or resumes a line, and logs it as act.
func changeLineTx(tx *store.Tx, by Actor, spec catalog.LineSpec, act string, change func(*store.Tx, string) error) (line.Status, error) {
	before, err := line.OperatorStatusTx(tx, spec)
	if err != nil {
		return before, err
	}
	if err := change(tx, spec.ID); err != nil {
		return before, err
	}
	after, err := line.OperatorStatusTx(tx, spec)
	if err != nil {
		return after, err
	}
	return after, writeLogTx(tx, by, LogRow{
		Act: act, Object: spec.ID, Before: Details{"state": before.State}, After: Details{"state": after.State},
	})
}
