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
	// unpublishedFor is the time after which the sweep gives up a name without a published file, or
	// a reference without a job.
	unpublishedFor = 24 * time.Hour
	// again is the wait before the next attempt to delete a file, after a failure or the death of
	// the deleting node.
	again = 10 * time.Minute
)

// Intervals and limits of Run.
const (
	stepEvery   = 10 * time.Second
	checkEvery  = 2 * time.Second // interval of checks while the store is down
	tidyEvery   = time.Hour
	expireChunk = 500 // rows in one transaction
	deleteChunk = 50  // files between two transactions
	deleting    = 10  // concurrent deletions
	maxChunks   = 100 // chunks of each kind in one step
)

// Run deletes results past their retention, references of ended jobs, and files never published or
// adopted, until ctx ends. It also checks whether a failed store works again. Several nodes may run
// it at the same time; each file is deleted by one node.
func (s *Store) Run(ctx context.Context) {
	var tidied time.Time
	step := func(ctx context.Context) error {
		err := s.step(ctx)
		if now := s.now(); err == nil && now.Sub(tidied) >= tidyEvery {
			err = s.backend.tidy(ctx, time.UnixMilli(s.db.Expiry(now.UnixMilli())).Add(-unpublishedFor))
			tidied = now
		}
		return err
	}
	recheck := func(ctx context.Context) error {
		if err := s.Check(ctx); err != nil { // the first failure was logged
			s.log.Debug("media: the media store still does not work", "error", err)
		}
		return nil
	}
	loop.Run(ctx,
		loop.Loop{Room: "media", Does: "delete files whose time is over", Log: s.log, Period: stepEvery, Wake: s.wake, Step: step},
		loop.Loop{Room: "media", Does: "use the media store", Log: s.log, Period: checkEvery, Step: recheck},
	)
}

// step gives up expired files and deletes given-up files, up to the limit of a step. The next step
// continues.
func (s *Store) step(ctx context.Context) error {
	if err := s.keepTime(ctx); err != nil {
		return err
	}
	due, err := s.due(ctx)
	if err != nil {
		return err
	}
	for _, state := range due {
		if state == stateGone {
			continue // handled last, so that files given up in this step are included
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
	if len(due) == 0 {
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

// keepTime corrects the time of files that entered their state while the clock was ahead. Otherwise
// they would stay until that date. It is a no-op unless the clock has jumped.
func (s *Store) keepTime(ctx context.Context) error {
	steps := s.db.Steps()
	if steps == s.clockSteps {
		return nil
	}
	err := s.sweep(ctx, func(tx *store.Tx, nowMS int64) error {
		for state := range s.ages() {
			if _, err := tx.Exec(rewindText, nowMS, state, tx.Latest(nowMS)+again.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("mend times of the future: %w", err)
	}
	s.clockSteps = steps
	return nil
}

// ages returns the retention of each state that expires.
func (s *Store) ages() map[string]time.Duration {
	return map[string]time.Duration{
		statePublic:  s.retention,
		statePending: unpublishedFor,
		stateStored:  unpublishedFor,
		stateKept:    unpublishedFor,
		stateGone:    0,
	}
}

// ageMS returns the latest time of entering a state that is older than age. A clock that is ahead
// for a moment expires no file. Given-up files may be deleted at once.
func ageMS(tx *store.Tx, nowMS int64, age time.Duration) int64 {
	if age == 0 {
		return nowMS
	}
	return tx.Expiry(nowMS) - age.Milliseconds()
}

// due returns the states that have expired files. It only reads, so that an idle service does not
// write to the database.
func (s *Store) due(ctx context.Context) (states []string, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		states = nil
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		for state, age := range s.ages() {
			var is bool
			if err := tx.QueryRow(dueText, state, ageMS(tx, nowMS, age)).Scan(&is); err != nil {
				return err
			}
			if is {
				states = append(states, state)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for files whose time is over: %w", err)
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

// expire gives up a chunk of the expired files of a state. After its commit none of them can be
// published, adopted or fetched.
func (s *Store) expire(ctx context.Context, state string) (n int64, err error) {
	err = s.sweep(ctx, func(tx *store.Tx, nowMS int64) (err error) {
		n, err = tx.Exec(expireText, nowMS, state, state, ageMS(tx, nowMS, s.ages()[state]), expireChunk)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("give up files: %w", err)
	}
	return n, nil
}

// delete deletes a chunk of the given-up files, and then their rows. If deleting a file fails, its
// row stays for a later attempt, and delete returns the error.
func (s *Store) delete(ctx context.Context) (int, error) {
	names, err := s.claim(ctx)
	if err != nil {
		return 0, fmt.Errorf("find files to delete: %w", err)
	}
	deleted, failed := s.removeAll(ctx, names)
	if len(deleted) > 0 {
		err = s.db.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			_, err := tx.Exec(deleteText+tx.In("name", 1), store.List(deleted))
			return err
		})
	}
	return len(names), errors.Join(failed, err)
}

// removeAll deletes files concurrently and returns the names of the deleted files.
func (s *Store) removeAll(ctx context.Context, names []string) (deleted []string, failed error) {
	var mu sync.Mutex // guards the results
	var all sync.WaitGroup
	places := make(chan struct{}, deleting)
	for _, name := range names {
		places <- struct{}{}
		if ctx.Err() != nil {
			break // any node tries again soon
		}
		all.Go(func() {
			defer func() { <-places }()
			err := s.remove(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, fileError("delete", name, err))
				return
			}
			deleted = append(deleted, name)
		})
	}
	all.Wait()
	return deleted, failed
}

// claim takes a chunk of deletable files. For a while no other node tries to delete them.
func (s *Store) claim(ctx context.Context) (names []string, err error) {
	err = s.sweep(ctx, func(tx *store.Tx, nowMS int64) (err error) {
		if names, err = store.Column[string](tx, claimText, nowMS, deleteChunk); err != nil || len(names) == 0 {
			return err
		}
		_, err = tx.Exec(deferText+tx.In("name", 2), nowMS+again.Milliseconds(), store.List(names))
		return err
	})
	return names, err
}
