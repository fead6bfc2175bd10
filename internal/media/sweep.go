package media

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tollgate/internal/loop"
	"tollgate/internal/store"
)

const (
	// unpublishedTime is the lifetime of a name without a published file, and of a reference without
	// a job.
	unpublishedTime = 24 * time.Hour
	// retryDelay is the wait before the next attempt to delete a file, after a failure or the death
	// of the deleting node.
	retryDelay = 10 * time.Minute
)

// Intervals and limits of Run.
const (
	stepEvery    = 10 * time.Second
	checkEvery   = 2 * time.Second // interval of checks while the store is down
	tidyEvery    = time.Hour
	expireChunk  = 500 // rows in one transaction
	deleteChunk  = 50  // files between two transactions
	maxDeletions = 10  // concurrent deletions
	maxChunks    = 100 // chunks of each kind in one step
)

// Run deletes results past their retention, references of ended jobs, and files that were never
// published or adopted, until ctx ends. It also checks whether a failed store works again. Several
// nodes may call Run at the same time; one of them deletes each file.
func (s *Store) Run(ctx context.Context) {
	var lastTidy time.Time
	step := func(ctx context.Context) error {
		err := s.step(ctx)
		if now := s.now(); err == nil && now.Sub(lastTidy) >= tidyEvery {
			err = s.backend.tidy(ctx, time.UnixMilli(s.db.Expiry(now.UnixMilli())).Add(-unpublishedTime))
			lastTidy = now
		}
		return err
	}
	check := func(ctx context.Context) error {
		if err := s.Check(ctx); err != nil { // the first failure was logged
			s.log.Debug("media: the media store still does not work", "error", err)
		}
		return nil
	}
	loop.Run(ctx,
		loop.Loop{Room: "media", Does: "delete files whose time is over", Log: s.log, Period: stepEvery, Wake: s.wake, Step: step},
		loop.Loop{Room: "media", Does: "use the media store", Log: s.log, Period: checkEvery, Step: check},
	)
}

// step gives up expired files and deletes given-up files, up to maxChunks of each kind.
func (s *Store) step(ctx context.Context) error {
	if err := s.correctTimes(ctx); err != nil {
		return err
	}
	states, err := s.expiredStates(ctx)
	if err != nil {
		return err
	}
	for _, state := range states {
		if state == stateGone {
			continue // deleted below, with the files given up in this step
		}
		for range maxChunks {
			n, err := s.expire(ctx, state)
			if err != nil {
				return err
			}
			if n < expireChunk {
				break
			}
		}
	}
	if len(states) == 0 {
		return nil
	}
	for range maxChunks {
		n, err := s.delete(ctx)
		if err != nil {
			return err
		}
		if n < deleteChunk {
			break
		}
	}
	return nil
}

// correctTimes corrects the times of files that entered their state while the clock was ahead, so
// that they do not stay until that date. It is a no-op unless the clock has jumped.
func (s *Store) correctTimes(ctx context.Context) error {
	steps := s.db.Steps()
	if steps == s.clockSteps {
		return nil
	}
	err := s.sweep(ctx, func(tx *store.Tx, nowMS int64) error {
		for state := range s.retentions() {
			if _, err := tx.Exec(rewindText, nowMS, state, tx.Latest(nowMS)+retryDelay.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("correct the files' times in the future: %w", err)
	}
	s.clockSteps = steps
	return nil
}

// retentions returns the lifetime of each state.
func (s *Store) retentions() map[string]time.Duration {
	return map[string]time.Duration{
		statePublic:  s.retention,
		statePending: unpublishedTime,
		stateStored:  unpublishedTime,
		stateKept:    unpublishedTime,
		stateGone:    0,
	}
}

// cutoffMS returns the time before which files must have entered a state to be older than age. It
// guards against a clock that is ahead for a moment. Given-up files may be deleted at once.
func cutoffMS(tx *store.Tx, nowMS int64, age time.Duration) int64 {
	if age == 0 {
		return nowMS
	}
	return tx.Expiry(nowMS) - age.Milliseconds()
}

// expiredStates returns the states with expired files. It only reads, so that an idle service does
// not write to the database.
func (s *Store) expiredStates(ctx context.Context) (states []string, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		states = nil
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		for state, age := range s.retentions() {
			var exists bool
			if err := tx.QueryRow(dueText, state, cutoffMS(tx, nowMS, age)).Scan(&exists); err != nil {
				return err
			}
			if exists {
				states = append(states, state)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for expired files: %w", err)
	}
	return states, nil
}

// sweep runs a transaction with a separate lock, so that nodes do not lock each other's rows.
func (s *Store) sweep(ctx context.Context, do func(tx *store.Tx, nowMS int64) error) error {
	return s.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Serialize("media sweep"); err != nil {
			return err
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		return do(tx, nowMS)
	})
}

// expire gives up a chunk of a state's expired files. After the commit, these files cannot be
// published, adopted or fetched.
func (s *Store) expire(ctx context.Context, state string) (n int64, err error) {
	err = s.sweep(ctx, func(tx *store.Tx, nowMS int64) (err error) {
		n, err = tx.Exec(expireText, nowMS, state, state, cutoffMS(tx, nowMS, s.retentions()[state]), expireChunk)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("give up files: %w", err)
	}
	return n, nil
}

// delete deletes a chunk of the given-up files, and then their rows. If a file cannot be deleted, its
// row stays for a later attempt, and delete returns the error.
func (s *Store) delete(ctx context.Context) (int, error) {
	names, err := s.claim(ctx)
	if err != nil {
		return 0, fmt.Errorf("find files to delete: %w", err)
	}
	deleted, removeErr := s.removeAll(ctx, names)
	if len(deleted) > 0 {
		err = s.db.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			_, err := tx.Exec(deleteText+tx.In("name", 1), store.List(deleted))
			return err
		})
	}
	return len(names), errors.Join(removeErr, err)
}

// removeAll deletes files concurrently and returns the names of the deleted files.
func (s *Store) removeAll(ctx context.Context, names []string) (deleted []string, errs error) {
	var mu sync.Mutex // guards the results
	var group sync.WaitGroup
	semaphore := make(chan struct{}, maxDeletions)
	for _, name := range names {
		semaphore <- struct{}{}
		if ctx.Err() != nil {
			break // a node tries again after retryDelay
		}
		group.Go(func() {
			defer func() { <-semaphore }()
			err := s.remove(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = errors.Join(errs, fileError("delete", name, err))
				return
			}
			deleted = append(deleted, name)
		})
	}
	group.Wait()
	return deleted, errs
}

// claim selects a chunk of deletable files. No other node tries to delete them for retryDelay.
func (s *Store) claim(ctx context.Context) (names []string, err error) {
	err = s.sweep(ctx, func(tx *store.Tx, nowMS int64) (err error) {
		if names, err = store.Column[string](tx, claimText, nowMS, deleteChunk); err != nil || len(names) == 0 {
			return err
		}
		_, err = tx.Exec(deferText+tx.In("name", 2), nowMS+retryDelay.Milliseconds(), store.List(names))
		return err
	})
	return names, err
}
