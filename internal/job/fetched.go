package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tollgate/internal/store"
)

// maxFetched bounds the jobs that wait for their mark. Further marks are dropped, and the results of
// their jobs then seem not to be fetched.
const maxFetched = 10_000

// fetched collects the jobs whose account has received the end, until WriteFetched writes their mark.
type fetched struct {
	mu   sync.Mutex
	jobs map[string]struct{}
}

func (f *fetched) add(jobs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range jobs {
		if len(f.jobs) < maxFetched {
			f.jobs[id] = struct{}{}
		}
	}
}

// take removes and returns all jobs.
func (f *fetched) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	jobs := slices.Collect(maps.Keys(f.jobs))
	clear(f.jobs)
	return jobs
}

// MarkFetched records that the account has seen the end of a job. WriteFetched writes the mark within a
// second.
func (j *Jobs) MarkFetched(id string) { j.fetched.add(id) }

// WriteFetched writes the marks of MarkFetched.
func (j *Jobs) WriteFetched(ctx context.Context) error {
	jobs := j.fetched.take()
	if len(jobs) == 0 {
		return nil
	}
	slices.Sort(jobs)
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE job SET fetched_ms = $1 WHERE `+tx.In("id", 2)+` AND fetched_ms = 0 AND ended_ms + 0 > 0`,
			now, store.List(jobs))
		return err
	})
	if err != nil {
		j.fetched.add(jobs...)
		return fmt.Errorf("mark fetched jobs: %w", err)
	}
	return nil
}
