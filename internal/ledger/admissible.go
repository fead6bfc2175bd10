package ledger

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/rows"
	"tollgate/internal/store"
)

// Admissible returns the error that Admit would return now, or nil if Admit would admit the
// request. It is for callers with costly work before the admission. It reads the same rows and uses
// the same decision as a batch, so the error has the same code, message and order of checks. It
// locks and writes nothing and counts against no limit. Admit must still decide, because other
// requests may be admitted in between.
func (l *Ledger) Admissible(ctx context.Context, a Admission) error {
	var b *rows.Books
	err := l.db.View(ctx, func(tx *store.Tx) error {
		b = new(rows.Cache).NewBooks()
		q := l.db.NewBatch()
		b.Read(q, l.db, rows.Need{Admissions: []*books.Admission{&a}})
		return tx.Run(q)
	})
	if err != nil {
		return commit.Unavailable(fmt.Errorf("read what decides an admission: %w", err))
	}
	_, refusal := b.Admit(a, "") // the decision's changes are never written
	if refusal == nil || errors.Is(refusal, ErrKeyChanged) {
		return refusal
	}
	if err := l.Confirm(ctx); err != nil {
		return commit.Unavailable(err)
	}
	return refusal
}
