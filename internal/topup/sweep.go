package topup

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/store"
)

// Bounds of a sweep.
const (
	sweepRows  = 50     // top-ups of one sweep
	claimTime  = 60_000 // milliseconds until another node may ask about the same top-up
	sweepTries = 3      // failures that end a sweep
)

// Sweep asks the providers about the top-ups that are due: about those without a page, about those that
// are not paid yet, because a message may be lost, and at long intervals about paid ones, because the
// message about a refund or dispute may be lost. Several nodes may sweep at once.
func (t *Topups) Sweep(ctx context.Context) error {
	due, err := t.claim(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, row := range due {
		if err := t.check(ctx, row); err != nil && ctx.Err() == nil {
			failures = append(failures, errors.Join(err, t.postpone(ctx, row)))
		}
		if len(failures) == sweepTries || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

// claim returns due top-ups of the configured providers, and moves their time, so that other nodes ask
// about others.
func (t *Topups) claim(ctx context.Context) ([]Topup, error) {
	return store.Write(ctx, t.DB, func(tx *store.Tx) ([]Topup, error) {
		now, err := tx.NowMS()
		if err != nil {
			return nil, err
		}
		var claimed []Topup
		for _, p := range t.Providers {
			info := p.Info()
			list, err := store.Collect(tx, scanTopup, `SELECT `+columns+` FROM topup WHERE check_ms > 0 AND check_ms <= $1 AND provider = $2
				AND live = $3 ORDER BY check_ms LIMIT $4`, now, info.Name, store.Bool(info.Live), sweepRows)
			if err != nil {
				return nil, fmt.Errorf("list due top-ups: %w", err)
			}
			for _, row := range list {
				n, err := tx.Exec(`UPDATE topup SET check_ms = $1 WHERE id = $2 AND check_ms = $3`, now+claimTime, row.ID, row.checkMS)
				if err != nil {
					return nil, fmt.Errorf("claim a top-up: %w", err)
				}
				if n == 1 {
					claimed = append(claimed, row)
				}
			}
		}
		return claimed, nil
	})
}

// check asks about one top-up, and repeats its unconfirmed calls.
func (t *Topups) check(ctx context.Context, row Topup) error {
	if row.State == Created {
		if err := t.Begin(ctx, row.ID); err != nil {
			return err
		}
	}
	if err := t.Sync(ctx, row.ID, ""); err != nil {
		return err
	}
	if !row.IsPaid() {
		return nil
	}
	return t.repeatRefunds(ctx, row.ID)
}

// postpone sets the next question about a top-up after a failure.
func (t *Topups) postpone(ctx context.Context, row Topup) error {
	return t.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		return scheduleTx(tx, row.ID, nextCheck(row, false, now))
	})
}
