package ledger

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// decision is the answer to one operation, valid once the books are committed.
type decision struct {
	hold    *books.HoldRow // opAdmit: admitted
	err     error
	ended   bool // opEnd, opSweep: this batch ended it
	charged bool
	rode    bool // the rider of a job writes, or err is its own
	over    money.Amount
}

// batch is one try of a batch: its books and its other writes.
type batch struct {
	books.Books
	progress  []*Hold
	riders    []Rider
	decisions map[*op]decision
	series    knownSeries   // series known to be in the database
	newSeries []int64       // series written by this batch
	parts     knownParts    // parts known to be in the database
	newParts  knownParts    // parts written by this batch
	known     knownRows     // cached rows, which need not be read
	version   store.Version // of the database after this batch
}

func newBatch(series knownSeries, parts knownParts) *batch {
	return &batch{Books: books.New(), series: series, parts: parts}
}

// decide takes the operations into the books, in order.
func (b *batch) decide(ops []*op, epoch string) {
	b.decisions = make(map[*op]decision, len(ops))
	for _, o := range ops {
		b.decisions[o] = b.decideOne(o, epoch)
	}
}

func (b *batch) decideOne(o *op, epoch string) decision {
	switch o.kind {
	case opAdmit:
		if o.state.Load() == opAbandoned {
			return decision{err: unavailable(fmt.Errorf("the caller has left"))}
		}
		if o.admitting != nil {
			return b.admitJob(o, epoch)
		}
		hold, err := b.Admit(o.admission, epoch)
		return decision{hold: hold, err: err}
	case opEnd:
		if o.epoch != epoch {
			return decision{err: fmt.Errorf("%w: its node's former life ended", ErrNotSettled)}
		}
		end := o.end
		if end.Outcome == Billed && !end.Streamed && o.state.Load() == opAbandoned {
			// Its caller was told that the outcome is unknown, and cut the answer. Now nothing is
			// known to be committed: no answer, no charge.
			end.Outcome, end.Cost, end.Status, end.Code = Failed, 0, 503, string(fault.ServiceUnavailable)
		}
		// The hold's row is known from its admission and need not be read: while this epoch lives
		// only this node ends it, once. If that were ever wrong, the receipt's primary key would
		// refuse the batch.
		b.Holds[o.holdID] = o.hold.row
		receipt, ended := b.End(o.holdID, end, o.attempts)
		if !ended {
			return decision{err: fmt.Errorf("%w: %w", ErrNotSettled, books.ErrDamaged)}
		}
		return decision{ended: true, charged: end.Outcome == Billed, over: receipt.Over}
	case opSweep:
		if err := b.Broken(o.holdID); err != nil {
			return decision{err: err}
		}
		receipt, ended := b.Sweep(o.holdID)
		return decision{ended: ended, charged: ended && receipt.End.Outcome == Billed, over: receipt.Over}
	case opJob:
		return b.endJob(o)
	case opProgress:
		b.progress = append(b.progress, o.note)
	case opRefused:
		b.refused(o.refusal)
	}
	return decision{}
}

// refused writes the receipt of a refused request. It belongs to no total; the account's row need
// not exist.
func (b *batch) refused(r Refusal) {
	receipt := books.ReceiptRow{
		Hold: books.HoldRow{
			ID: r.Request, Account: r.Account, Key: r.Key, Model: r.Model, Endpoint: r.Endpoint,
			Day: books.DayOf(b.NowMS), CreatedMS: r.Received.UnixMilli(),
		},
		End:      End{Outcome: Refused, Status: r.Status, Code: r.Code, Duration: r.Duration},
		Attempts: "[]", StandsFor: max(1, r.standsFor), EndedMS: b.NowMS,
	}
	if acct := b.Accounts[r.Account]; acct != nil {
		receipt.Seq, receipt.Balance = acct.Seq, acct.Balance
	}
	b.Receipts = append(b.Receipts, receipt)
}
