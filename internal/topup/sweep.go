package topup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// Bounds of a sweep.
const (
	sweepRows  = 50     // top-ups of one sweep
	claimTime  = 60_000 // milliseconds until another node may ask about the same top-up
	sweepTries = 3      // failures of a provider that end its part of a sweep
)

// Sweep asks the providers about the top-ups that are due. Messages may be lost, so it covers top-ups
// without a page, unpaid top-ups and, at long intervals, paid top-ups, to find refunds and disputes.
// Several nodes may sweep at once.
func (t *Topups) Sweep(ctx context.Context) error {
	due, err := t.claim(ctx)
	if err != nil {
		return err
	}
	var failures []error
	failureCount := map[string]int{} // by provider
	answers := map[string]bool{}     // by provider, whether it has answered each question
	for _, row := range due {
		if failureCount[row.Provider] == sweepTries {
			continue
		}
		err := t.check(ctx, row)
		if ctx.Err() != nil {
			break
		}
		if _, asked := answers[row.Provider]; !asked || err != nil {
			answers[row.Provider] = err == nil
		}
		if err != nil {
			failureCount[row.Provider]++
			failures = append(failures, errors.Join(err, t.postpone(ctx, row, err)))
		}
	}
	for provider, answered := range answers {
		if answered {
			failures = append(failures, t.endSilence(ctx, provider))
		}
	}
	return errors.Join(failures...)
}

// claim returns due top-ups of the configured providers. It postpones their next question, so that no other
// node claims them.
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

// postpone sets the next question about a top-up after a failure. If the answer is overdue, it reports that
// the provider does not answer.
func (t *Topups) postpone(ctx context.Context, row Topup, cause error) error {
	return t.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		since, waits, err := waitsSinceTx(tx, row)
		if err != nil {
			return err
		}
		if waits && now-since > silence.Milliseconds() {
			detail := "the provider does not answer, so payments and refunds wait: " + fault.Excerpt(cause.Error())
			if err := reportTx(tx, Problem{Provider: row.Provider, Kind: problemUnanswered, Object: row.Provider, Topup: row.ID,
				Account: row.Account, Detail: detail}); err != nil {
				return err
			}
		}
		return scheduleTx(tx, row.ID, nextCheck(row, row.IsPaid() && waits, now))
	})
}

// silence is the time without an answer after which the operators get a problem.
const silence = time.Hour

// waitsSinceTx returns since when somebody waits for the provider's answer about a top-up: the customer for
// the credit, or the operator for a refund. waits is false if nobody waits.
func waitsSinceTx(tx *store.Tx, row Topup) (sinceMS int64, waits bool, err error) {
	if !row.IsPaid() {
		return row.CreatedMS, row.IsOpen(), nil
	}
	reversals, err := ReversalsTx(tx, row.ID)
	if err != nil {
		return 0, false, err
	}
	for _, c := range reversals {
		if c.Requested {
			return c.CreatedMS, true, nil
		}
	}
	return 0, false, nil
}

// endSilence closes the problem of a provider that answers again.
func (t *Topups) endSilence(ctx context.Context, provider string) error {
	isOpen, err := store.Read(ctx, t.DB, func(tx *store.Tx) (isOpen bool, err error) {
		err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM topup_problem WHERE provider = $1 AND kind = $2 AND object = $1 AND closed_ms = 0)`,
			provider, string(problemUnanswered)).Scan(&isOpen)
		return isOpen, err
	})
	if err != nil || !isOpen {
		return err
	}
	return t.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE topup_problem SET closed_ms = $1 WHERE provider = $2 AND kind = $3 AND object = $2 AND closed_ms = 0`,
			now, provider, string(problemUnanswered))
		return err
	})
}
