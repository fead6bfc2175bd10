package operator

import (
	"context"
	"errors"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/store"
)

// LineControl is what operators ask of the lines that run on this node. It is safe for
// concurrent use.
type LineControl interface {
	// Statuses returns how each line of the catalog that this node serves from is
	// doing here, in the order of the document. It does not wait.
	Statuses() []line.Status
	// Refresh makes this node act on what line.DrainTx and line.ResumeTx have
	// committed: when it returns nil, Statuses shows it. An error is the
	// database's; the node tries on by itself then.
	Refresh(ctx context.Context) error
	// Report writes what this node would report next, so that line.ReportsTx
	// has it. An error is the database's; the node reports on by itself then.
	Report(ctx context.Context) error
}

// LineTx returns a line of the current catalog. A *fault.Error says that it has
// no such line.
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
		"There is no line %q in the current catalog. GET /admin/v1/catalog shows its lines.", fault.Shown(id))
}

// DrainTx takes a line of LineTx out of use on all nodes, and returns how it is as
// far as that was decided.
func DrainTx(tx *store.Tx, by Actor, spec catalog.LineSpec) (line.Status, error) {
	return decideTx(tx, by, spec, LineDrain, line.DrainTx)
}

// ResumeTx brings a line of LineTx back, whatever kept it out.
func ResumeTx(tx *store.Tx, by Actor, spec catalog.LineSpec) (line.Status, error) {
	return decideTx(tx, by, spec, LineResume, line.ResumeTx)
}

func decideTx(tx *store.Tx, by Actor, spec catalog.LineSpec, act string, decide func(*store.Tx, string) error) (line.Status, error) {
	before, err := line.DecidedTx(tx, spec)
	if err != nil {
		return before, err
	}
	if err := decide(tx, spec.ID); err != nil {
		return before, err
	}
	after, err := line.DecidedTx(tx, spec)
	if err != nil {
		return after, err
	}
	return after, NoteTx(tx, by, LogRow{
		Act: act, Object: spec.ID, Before: Details{"state": before.State}, After: Details{"state": after.State},
	})
}
