package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/job/row"
	"tollgate/internal/line"
	"tollgate/internal/store"
)

// maxStarting bounds the models that start jobs at the same time. A node has four write connections
// to PostgreSQL; one connection remains for other writers.
const maxStarting = 3

// Start starts queued jobs. The models take turns, maxStarting at a time, until no model can start
// more jobs. So a long queue or a slow transaction of one model does not delay another model, even if
// the other model gets its first job in the meantime. After an error, a model gets no further turn.
// Start is one step of Run.
func (j *Jobs) Start(ctx context.Context) error {
	select {
	case <-j.wake: // the query below finds the job
	default:
	}
	models, err := j.queuedModels(ctx)
	if err != nil {
		return err
	}
	t := &startStep{jobs: j, pending: models, active: map[string]bool{}, results: make(chan startResult)}
	for t.startModels(ctx); len(t.active) > 0; t.startModels(ctx) {
		wake := j.wake
		if len(t.pending) > 0 || len(t.errs) > 0 || ctx.Err() != nil {
			wake = nil
		}
		select {
		case r := <-t.results:
			t.finish(r)
		case <-wake:
			t.addQueued(ctx)
		}
	}
	return errors.Join(t.errs...)
}

// startStep is one call of Start. Only its goroutine uses it.
type startStep struct {
	jobs    *Jobs
	pending []string
	active  map[string]bool // models with a running turn; true if jobs may have arrived since the turn began
	results chan startResult
	errs    []error
}

// startResult is the result of a model's turn.
type startResult struct {
	model string
	more  bool // more jobs may be able to start
	err   error
}

// startModels begins the turns of pending models, up to maxStarting at a time.
func (t *startStep) startModels(ctx context.Context) {
	for len(t.pending) > 0 && len(t.active) < maxStarting && ctx.Err() == nil {
		model := t.pending[0]
		t.pending = t.pending[1:]
		t.active[model] = false
		go func() { // Start receives the result
			more, err := t.jobs.startBatch(ctx, model)
			t.results <- startResult{model, more, err}
		}()
	}
}

// finish handles the result of a turn. After an error no further model is started, so that the loop
// can log the error and retry.
func (t *startStep) finish(r startResult) {
	newJobs := t.active[r.model]
	delete(t.active, r.model)
	switch {
	case r.err != nil:
		t.errs = append(t.errs, fmt.Errorf("model %s: %w", r.model, r.err))
	case (r.more || newJobs) && len(t.errs) == 0:
		t.pending = append(t.pending, r.model)
	}
}

// addQueued adds the models with queued jobs to the pending models. Start calls addQueued only when no
// model is pending.
func (t *startStep) addQueued(ctx context.Context) {
	models, err := t.jobs.queuedModels(ctx)
	if err != nil {
		t.errs = append(t.errs, err)
	}
	for _, model := range models {
		if _, ok := t.active[model]; ok {
			t.active[model] = true
		} else {
			t.pending = append(t.pending, model)
		}
	}
}

// queuedModels returns the models with queued jobs, with one index look-up for each.
func (j *Jobs) queuedModels(ctx context.Context) ([]string, error) {
	return store.Read(ctx, j.opts.DB, func(tx *store.Tx) ([]string, error) { return row.DistinctTx(tx, nextQueuedModel) })
}

// startBatch starts some queued jobs of a model and reports whether more jobs may be able to start.
// If no job can start, startBatch writes nothing.
func (j *Jobs) startBatch(ctx context.Context, model string) (bool, error) {
	if j.startCapacity() == 0 {
		return false, nil
	}
	snapshot := j.opts.Catalog.Current()
	if !inCatalog(snapshot, model) {
		return j.failUnserved(ctx, model)
	}
	if _, down := j.opts.Media.Down(); down { // the node would have to keep the results
		return false, nil
	}
	s, err := j.startOnLines(ctx, snapshot, model)
	if err != nil || s == nil {
		return false, err
	}
	j.endAll(ctx, s.failed)
	return s.more || len(s.failed) > 0, nil
}

// startOnLines starts jobs on the lines of a model. It returns nil if no line has capacity.
func (j *Jobs) startOnLines(ctx context.Context, snapshot *catalog.Snapshot, model string) (*startPlan, error) {
	candidates, _ := j.opts.Lines.Candidates(snapshot, model, line.AnyAccount)
	candidates, release := j.claim(candidates)
	defer release()
	s := &startPlan{jobs: j, snapshot: snapshot, model: model, candidates: candidates}
	if len(candidates) == 0 {
		return nil, nil
	}
	if err := j.opts.DB.View(ctx, s.preview); err != nil || len(s.started) == 0 {
		return s, err
	}
	capacity, releaseCapacity := j.reserveCapacity(maxStarts, j.startCapacityLocked)
	defer releaseCapacity()
	if s.limit = capacity; capacity == 0 {
		return nil, nil
	}
	started, err := j.assign(ctx, s.commitTx, func() []*worker { return s.started })
	if err != nil {
		return nil, err
	}
	for _, w := range started {
		j.metrics.countStep(row.StepLine)
		j.metrics.countStep(row.StepSubmitted)
		j.begin(w)
	}
	return s, nil
}

// claim returns the candidates without the half-open lines claimed by other models, because a
// half-open line takes one job at a time. The caller must call release when its workers have begun.
func (j *Jobs) claim(candidates []*line.Candidate) (usable []*line.Candidate, release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var claimed []string
	for _, c := range candidates {
		id := c.Line.ID
		if c.HalfOpen {
			if slices.Contains(j.claimed, id) {
				continue
			}
			claimed = append(claimed, id)
		}
		usable = append(usable, c)
	}
	j.claimed = append(j.claimed, claimed...)
	return usable, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.claimed = slices.DeleteFunc(j.claimed, func(id string) bool { return slices.Contains(claimed, id) })
	}
}

// startCapacity returns the number of submissions that this node may begin.
func (j *Jobs) startCapacity() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.startCapacityLocked()
}

// startCapacityLocked is like startCapacity. The caller must hold mu.
func (j *Jobs) startCapacityLocked() int {
	if j.life == nil {
		return 0
	}
	free := max(0, min(maxSending-j.sending, maxWorkers-len(j.workers))-j.reserved)
	j.starved = j.starved || free == 0 && j.reserved > 0
	return free
}

// reserveCapacity sets capacity aside, at most limit, for a transaction that assigns jobs to this
// node. The caller must call release when its workers have begun.
func (j *Jobs) reserveCapacity(limit int, free func() int) (reserved int, release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	reserved = min(limit, free())
	j.reserved += reserved
	return reserved, func() {
		j.mu.Lock()
		j.reserved -= reserved
		starved := j.starved
		j.starved = false
		j.mu.Unlock()
		if starved {
			j.wakeUp()
		}
	}
}

// takeOverCapacityLocked returns the number of jobs that this node may take over. Submissions in
// flight do not count, because a take-over submits nothing. The caller must hold mu.
func (j *Jobs) takeOverCapacityLocked() int {
	if j.life == nil {
		return 0
	}
	return max(0, maxWorkers-len(j.workers)-j.reserved)
}
