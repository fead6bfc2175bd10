package ledger

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// decision is the answer to one operation, valid once the books are committed.
type decision struct {
	hold    *holdRow // opAdmit: admitted
	err     error
	ended   bool // opEnd, opSweep: this batch ended it
	charged bool
	rode    bool // the rider of a job writes, or err is its own
	over    money.Amount
}

// decide takes the operations into the books, in order.
func (b *books) decide(ops []*op, epoch string) {
	b.decisions = make(map[*op]decision, len(ops))
	for _, o := range ops {
		b.decisions[o] = b.decideOne(o, epoch)
	}
}

func (b *books) decideOne(o *op, epoch string) decision {
	switch o.kind {
	case opAdmit:
		if o.state.Load() == opAbandoned {
			return decision{err: unavailable(fmt.Errorf("the caller has left"))}
		}
		if o.admitting != nil {
			return b.admitJob(o, epoch)
		}
		hold, err := b.admit(o.admission, epoch)
		return decision{hold: hold, err: err}
	case opEnd:
		if o.epoch != epoch {
			return decision{err: fmt.Errorf("%w: its node's former life ended", ErrNotSettled)}
		}
		end := o.end
		if end.Outcome == Billed && !end.Streamed && o.state.Load() == opAbandoned {
			// Its caller was told that it is unknown, and cut the answer; now
			// it is known that nothing was committed: no answer, no charge.
			end.Outcome, end.Cost, end.Status, end.Code = Failed, 0, 503, string(fault.ServiceUnavailable)
		}
		// The hold's row is known from its admission and need not be read: while
		// this epoch lives nobody else ends it, and this node ends it once. If
		// that were ever wrong, the receipt's primary key would refuse the batch.
		b.holds[o.holdID] = o.hold.row
		receipt, ended := b.end(o.holdID, end, o.attempts)
		if !ended {
			return decision{err: fmt.Errorf("%w: %w", ErrNotSettled, errDamaged)}
		}
		return decision{ended: true, charged: end.Outcome == Billed, over: receipt.over}
	case opSweep:
		if err := b.broken(o.holdID); err != nil {
			return decision{err: err}
		}
		receipt, ended := b.sweep(o.holdID)
		return decision{ended: ended, charged: ended && receipt.end.Outcome == Billed, over: receipt.over}
	case opJob:
		return b.endJob(o)
	case opProgress:
		b.progress = append(b.progress, o.note)
	case opRefused:
		b.refused(o.refusal)
	}
	return decision{}
}
