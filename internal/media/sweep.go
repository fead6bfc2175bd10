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
	// unpublishedFor is how long a name waits for its file to be published, or a
	// reference for its job, when nobody gives them up.
	unpublishedFor = 24 * time.Hour
	// again is when a file that could not be deleted, or whose node died over
	// it, is tried anew.
	again = 10 * time.Minute
)

// How Run goes about it.
const (
	stepEvery   = 10 * time.Second
	checkEvery  = 2 * time.Second // while the store is down
	tidyEvery   = time.Hour
	expireChunk = 500 // rows in one transaction
	deleteChunk = 50  // files between two transactions
	deleting    = 10  // files that are deleted at the same time
	maxChunks   = 100 // of each in one step
)

// Run deletes results past their retention, references whose jobs have ended,
// and what was never published or adopted, until ctx ends; and checks whether a
// store that failed works again. Any number of nodes may run it beside each other;
// each file is one node's to delete.
func (s *Store) Run(ctx context.Context) {
	var tidied time.Time
	step := func(ctx context.Context) error {
		err := s.step(ctx)
		if now := s.now(); err == nil && now.Sub(tidied) >= tidyEvery {
			err = s.place.tidy(ctx, time.UnixMilli(s.db.Expiry(now.UnixMilli())).Add(-unpublishedFor))
			tidied = now
		}
		return err
	}
	recheck := func(ctx context.Context) error {
		if err := s.Check(ctx); err != nil { // the first failure is in the log
			s.log.Debug("media: the media store still does not work", "error", err)
		}
		return nil
	}
	loop.Run(ctx,
		loop.Loop{Room: "media", Does: "delete files whose time is over", Log: s.log, Period: stepEvery, Wake: s.wake, Step: step},
		loop.Loop{Room: "media", Does: "use the media store", Log: s.log, Period: checkEvery, Step: recheck},
	)
}

// step gives up what is due and deletes what was given up, as much as a step
// may take. What is left is for the next one.
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
			continue // last, with what is given up now
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

// keepTime takes files that came into their state while the clock was ahead for
// come now: else they would stay until that date. It does nothing while the
// clock has not jumped.
func (s *Store) keepTime(ctx context.Context) error {
	steps := s.db.Steps()
	if steps == s.stepsSeen {
		return nil
	}
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Serialize(sweeping); err != nil {
			return err
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
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
	s.stepsSeen = steps
	return nil
}

// ages returns how long files stay in a state that ends by itself.
func (s *Store) ages() map[string]time.Duration {
	return map[string]time.Duration{
		statePublic:  s.retention,
		statePending: unpublishedFor,
		stateStored:  unpublishedFor,
		stateKept:    unpublishedFor,
		stateGone:    0,
	}
}

// ageMS returns since when a file is in its state that has this age. A clock that
// is ahead for a moment makes no file old; what was given up may go at once.
func ageMS(tx *store.Tx, nowMS int64, age time.Duration) int64 {
	if age == 0 {
		return nowMS
	}
	return tx.Expiry(nowMS) - age.Milliseconds()
}

// due returns the states in which there are files whose time is over. It only
// reads, so that an idle service leaves the database alone.
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

// sweeping names what nodes do one after the other, so that they do not lock
// each other's rows.
const sweeping = "media sweep"

// expire gives up a chunk of the files of a state whose time is over. From its
// commit on none of them can be published, adopted or fetched.
func (s *Store) expire(ctx context.Context, state string) (n int64, err error) {
	err = s.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Serialize(sweeping); err != nil {
			return err
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		n, err = tx.Exec(expireText, nowMS, state, state, ageMS(tx, nowMS, s.ages()[state]), expireChunk)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("give up files: %w", err)
	}
	return n, nil
}

// delete deletes a chunk of the files that were given up, and then their rows.
// A file that cannot be deleted keeps its row and is tried again later; the
// error tells of it.
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

// removeAll deletes files, some at the same time, and returns the names of those that
// are gone.
func (s *Store) removeAll(ctx context.Context, names []string) (deleted []string, failed error) {
	var mu sync.Mutex // of the results
	var all sync.WaitGroup
	places := make(chan struct{}, deleting)
	for _, name := range names {
		places <- struct{}{}
		if ctx.Err() != nil {
			break // again soon, on whichever node
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

// claim takes a chunk of the files that may be deleted: for a while no other
// node tries.
func (s *Store) claim(ctx context.Context) (names []string, err error) {
	err = s.db.Update(ctx, func(tx *store.Tx) error {
		names = nil
		if err := tx.Serialize(sweeping); err != nil {
			return err
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		if names, err = namesTx(tx, claimText, nowMS, deleteChunk); err != nil || len(names) == 0 {
			return err
		}
		_, err = tx.Exec(deferText+tx.In("name", 2), nowMS+again.Milliseconds(), store.List(names))
		return err
	})
	return names, err
}

// namesTx reads a list of names.
func namesTx(tx *store.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
