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

// maxStarting bounds the models whose jobs are started at a time: of the
// connections that write, PostgreSQL has four on a node, one is left for others.
const maxStarting = 3

// Start starts what can be started now. Each model with queued jobs has a stint, a
// few of them beside each other, and goes to the end of the line while there may
// be more. So neither a long queue nor a transaction that waits keeps other models
// waiting, also those that get a job meanwhile. A model that fails has no other
// stint in this step. It is one step of Run.
func (j *Jobs) Start(ctx context.Context) error {
	select {
	case <-j.wake: // what it tells of is seen now
	default:
	}
	models, err := j.queuedModels(ctx)
	if err != nil {
		return err
	}
	t := &stints{jobs: j, waiting: models, atWork: map[string]bool{}, over: make(chan stint)}
	for t.begin(ctx); len(t.atWork) > 0; t.begin(ctx) {
		wake := j.wake
		if len(t.waiting) > 0 || len(t.errs) > 0 || ctx.Err() != nil {
			wake = nil
		}
		select {
		case ended := <-t.over:
			t.end(ended)
		case <-wake:
			t.join(ctx)
		}
	}
	return errors.Join(t.errs...)
}

// stints are those of one step. They are used by its goroutine alone.
type stints struct {
	jobs    *Jobs
	waiting []string
	atWork  map[string]bool // true: it may have got a job since its stint began
	over    chan stint
	errs    []error
}

// stint is a model's go at starting jobs, and what came of it.
type stint struct {
	model string
	more  bool // there may be more that can be started now
	err   error
}

// begin gives a stint to those that wait, as far as there are places.
func (t *stints) begin(ctx context.Context) {
	for len(t.waiting) > 0 && len(t.atWork) < maxStarting && ctx.Err() == nil {
		model := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.atWork[model] = false
		go func() { // end waits for it
			more, err := t.jobs.startSome(ctx, model)
			t.over <- stint{model, more, err}
		}()
	}
}

// end notes what came of a stint. After a failure the step comes to its end, so
// that the loop can say so and try again.
func (t *stints) end(ended stint) {
	again := t.atWork[ended.model]
	delete(t.atWork, ended.model)
	switch {
	case ended.err != nil:
		t.errs = append(t.errs, fmt.Errorf("model %s: %w", ended.model, ended.err))
	case (ended.more || again) && len(t.errs) == 0:
		t.waiting = append(t.waiting, ended.model)
	}
}

// join lets the models that have queued jobs now wait for a stint. It is called
// while none waits.
func (t *stints) join(ctx context.Context) {
	models, err := t.jobs.queuedModels(ctx)
	if err != nil {
		t.errs = append(t.errs, err)
	}
	for _, model := range models {
		if _, working := t.atWork[model]; working {
			t.atWork[model] = true
		} else {
			t.waiting = append(t.waiting, model)
		}
	}
}

// queuedModels names the models with queued jobs, by as many look-ups in the
// index as there are models.
func (j *Jobs) queuedModels(ctx context.Context) ([]string, error) {
	var models []string
	err := j.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		models, err = row.DistinctTx(tx, nextQueuedModel)
		return err
	})
	return models, err
}

// startSome starts some queued jobs of a model; true: there may be more that can
// be started now. Nothing is written while there are none.
func (j *Jobs) startSome(ctx context.Context, model string) (bool, error) {
	if j.room() == 0 {
		return false, nil
	}
	snapshot := j.opts.Catalog.Current()
	if !made(snapshot, model) {
		return j.giveUp(ctx, model)
	}
	if _, down := j.opts.Media.Down(); down { // what is made now would have to be kept
		return false, nil
	}
	s, err := j.startOn(ctx, snapshot, model)
	if err != nil || s == nil {
		return false, err
	}
	j.endAll(ctx, s.refused)
	return s.more || len(s.refused) > 0, nil
}

// startOn starts what the lines of a model take; nil: nothing.
func (j *Jobs) startOn(ctx context.Context, snapshot *catalog.Snapshot, model string) (*starting, error) {
	candidates, _ := j.opts.Lines.Candidates(snapshot, model, line.AnyAccount)
	candidates, giveBack := j.claim(candidates)
	defer giveBack()
	s := &starting{jobs: j, snapshot: snapshot, model: model, candidates: candidates}
	if len(candidates) == 0 {
		return nil, nil
	}
	if err := j.opts.DB.View(ctx, s.look); err != nil || len(s.started) == 0 {
		return s, err
	}
	room, done := j.promise(maxStarts, j.free)
	defer done()
	if s.room = room; room == 0 {
		return nil, nil
	}
	started, err := j.assign(ctx, s.tx, func() []*worker { return s.started })
	if err != nil {
		return nil, err
	}
	for _, w := range started {
		j.metrics.step(row.StepLine)
		j.metrics.step(row.StepSubmitted)
		j.take(w)
	}
	return s, nil
}

// claim returns the candidates without the half-open lines that another stint may
// give a job to: they take one at a time. giveBack ends the claim to the others,
// when the jobs that were started have begun.
func (j *Jobs) claim(candidates []*line.Candidate) (mine []*line.Candidate, giveBack func()) {
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
		mine = append(mine, c)
	}
	j.claimed = append(j.claimed, claimed...)
	return mine, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.claimed = slices.DeleteFunc(j.claimed, func(id string) bool { return slices.Contains(claimed, id) })
	}
}

// room returns how many jobs this node may begin to submit.
func (j *Jobs) room() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.free()
}

// free is room for who holds mu.
func (j *Jobs) free() int {
	if j.life == nil {
		return 0
	}
	free := max(0, min(maxSending-j.sending, maxWorkers-len(j.workers))-j.promised)
	j.awaited = j.awaited || free == 0 && j.promised > 0
	return free
}

// promise sets aside, for a transaction that gives this node jobs, most places of
// those that are free. done, called when the jobs have been taken, gives back what
// is left.
func (j *Jobs) promise(most int, free func() int) (places int, done func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	places = min(most, free())
	j.promised += places
	return places, func() {
		j.mu.Lock()
		j.promised -= places
		awaited := j.awaited
		j.awaited = false
		j.mu.Unlock()
		if awaited {
			j.rouse()
		}
	}
}

// spare is how many jobs this node may take over, for who holds mu: they submit
// nothing, so submissions that take long keep none of them waiting.
func (j *Jobs) spare() int {
	if j.life == nil {
		return 0
	}
	return max(0, maxWorkers-len(j.workers)-j.promised)
}
