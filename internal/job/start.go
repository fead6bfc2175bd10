package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/media"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of one transaction that starts jobs.
const (
	maxStarts = 32
	lookAhead = 64 // queued jobs that are looked at together
	maxLooks  = 16 // of them, when those before can go to no line that is free
)

// Start starts what can be started now, model by model in the order of their
// queues. It is one step of Run.
func (j *Jobs) Start(ctx context.Context) error {
	models, err := j.queuedModels(ctx)
	if err != nil {
		return err
	}
	for _, model := range models {
		for more := true; more && ctx.Err() == nil; {
			if more, err = j.startSome(ctx, model); err != nil {
				return err
			}
		}
	}
	return nil
}

// queuedModels names the models with queued jobs, by as many look-ups in the
// index as there are models.
func (j *Jobs) queuedModels(ctx context.Context) ([]string, error) {
	var models []string
	err := j.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		models, err = distinctTx(tx, nextQueuedModel)
		return err
	})
	return models, err
}

// distinctTx lists the distinct values of an indexed column by asking for the
// next one, whose parameter is the last, until there is none.
func distinctTx(tx *store.Tx, next string, args ...any) ([]string, error) {
	var values []string
	for last := ""; ; {
		if err := tx.QueryRow(next, append(slices.Clone(args), last)...).Scan(&last); err != nil || last == "" {
			return values, err
		}
		values = append(values, last)
	}
}

// startSome starts some queued jobs of a model; true: there may be more that can
// be started now.
func (j *Jobs) startSome(ctx context.Context, model string) (bool, error) {
	room := j.room()
	if room == 0 {
		return false, nil
	}
	snapshot := j.opts.Catalog.Current()
	if !made(snapshot, model) {
		return j.giveUp(ctx, model)
	}
	candidates, _ := j.opts.Lines.Candidates(snapshot, model, line.AnyAccount)
	if len(candidates) == 0 {
		return false, nil
	}
	s := &starting{jobs: j, snapshot: snapshot, model: model, candidates: candidates, room: min(room, maxStarts)}
	started, err := j.assign(ctx, s.tx, func() []*worker { return s.started })
	if err != nil {
		return false, err
	}
	for _, w := range started {
		j.metrics.step(stepLine)
		j.metrics.step(stepSubmitted)
		j.take(w)
	}
	for _, e := range s.refused {
		j.end(ctx, e)
	}
	return s.more || len(s.refused) > 0, nil
}

// room returns how many jobs this node may begin to submit.
func (j *Jobs) room() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.life == nil {
		return 0
	}
	return max(0, min(maxSending-j.sending, maxWorkers-len(j.workers)))
}

// spare returns how many jobs this node may take over: they submit nothing, so
// submissions that take long keep none of them waiting.
func (j *Jobs) spare() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.life == nil {
		return 0
	}
	return max(0, maxWorkers-len(j.workers))
}

// starting is one transaction that starts jobs of a model. It may run several
// times.
type starting struct {
	jobs       *Jobs
	snapshot   *catalog.Snapshot
	model      string
	candidates []*line.Candidate // in the order of the lines
	room       int

	started []*worker
	refused []*ending
	more    bool // the queue may have others that can start
	free    map[string]int
}

// waitingJob is a queued job as it is looked at.
type waitingJob struct {
	id      string
	account string
	turn    int64
	fence   int64
	trace   trace
}

// tx decides and writes that jobs are submitted: each such job has its line, its
// slot and its names for results from then on, before any provider is called.
func (s *starting) tx(tx *store.Tx) error {
	s.started, s.refused, s.more = nil, nil, false
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	last := waitingJob{}
	for look := range maxLooks {
		queue, err := s.queueTx(tx, now, last)
		if err != nil || len(queue) == 0 {
			return err
		}
		if look == 0 {
			if err := s.freeTx(tx); err != nil {
				return err
			}
		}
		for _, q := range queue {
			if len(s.started) >= s.room || len(s.refused) >= maxStarts || s.full() {
				s.more = !s.full() && len(s.started) < s.jobs.room()
				return nil
			}
			if err := s.oneTx(tx, q, now); err != nil {
				return err
			}
		}
		if len(queue) < lookAhead {
			return nil
		}
		last = queue[len(queue)-1]
	}
	s.more = len(s.started) > 0
	return nil
}

// queueTx reads the queue behind a job, along its index.
func (s *starting) queueTx(tx *store.Tx, now int64, last waitingJob) ([]waitingJob, error) {
	rows, err := tx.Query(selectQueue, s.model, now, last.turn, last.id, lookAhead)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var queue []waitingJob
	for rows.Next() {
		var q waitingJob
		var raw string
		if err := rows.Scan(&q.id, &q.account, &q.turn, &q.fence, &raw); err != nil {
			return nil, err
		}
		if err := decode(raw, &q.trace); err != nil {
			return nil, fmt.Errorf("read job %s: %q", q.id, err)
		}
		queue = append(queue, q)
	}
	return queue, rows.Err()
}

// freeTx reads how many jobs each line may take; lines without a cap take any.
func (s *starting) freeTx(tx *store.Tx) error {
	s.free = make(map[string]int, len(s.candidates))
	lines := slices.Clone(s.candidates)
	slices.SortFunc(lines, func(a, b *line.Candidate) int { return strings.Compare(a.Line.ID, b.Line.ID) })
	for _, b := range lines {
		free := s.room
		if b.Line.MaxConcurrent > 0 {
			var err error
			if free, err = slot.FreeTx(tx, b.Line.ID, b.Line.MaxConcurrent); err != nil {
				return err
			}
		}
		if b.HalfOpen {
			free = min(free, 1)
		}
		s.free[b.Line.ID] = free
	}
	return nil
}

// full tells whether no line takes anything more.
func (s *starting) full() bool {
	for _, free := range s.free {
		if free > 0 {
			return false
		}
	}
	return true
}

// oneTx starts one job, if one of the lines that it may go to takes it. One that
// has waited too long, or whose account was disabled, fails instead: it may not
// start only because nobody was there to fail it in time.
func (s *starting) oneTx(tx *store.Tx, q waitingJob, now int64) error {
	j := s.jobs
	candidate := s.choose(&q)
	if candidate == nil {
		return nil
	}
	rec, p, err := readTx(tx, q.id)
	if err != nil || rec == nil || p.state != stateQueued || p.fence != q.fence {
		return err
	}
	if p.overdue(now, j.opts.StartLimit) {
		s.refused = append(s.refused, j.ending(rec, nil, p.fence, j.waitedTooLong()))
		return nil
	}
	owners, err := ledger.AccountsTx(tx, []string{rec.account})
	if err != nil {
		return err
	}
	if owners[rec.account].Disabled {
		s.refused = append(s.refused, j.ending(rec, nil, p.fence, disabledAccount()))
		return nil
	}
	w := &worker{jobs: j, rec: rec, run: p, candidate: candidate, snapshot: s.snapshot}
	work := w.task()
	blocks := candidate.Generator.Blocks(work)
	p.state, p.epoch, p.fence = stateSending, j.opts.Epoch(), p.fence+1
	p.line, p.revision, p.number, p.ticket, p.submittedMS = candidate.Line.ID, s.snapshot.Revision, p.number+1, "", now
	p.results, p.files = nil, nil
	p.trace.begin(p.line, now)
	p.trace.step(stepLine, now, p.line)
	p.trace.step(stepSubmitted, now, p.line)
	if blocks {
		p.start(now)
		if w.names, err = media.ReserveTx(tx, rec.id, int(rec.plan.Count)); err != nil {
			return err
		}
	}
	changed, err := p.saveTx(tx, rec.id, waiting(q.fence), colState, colStarted, colEpoch, colFence, colLine, colRevision,
		colNumber, colTicket,
		colSubmitted, colResults, colFiles, colTrace)
	if err != nil || changed == 0 { // another node was faster
		return err
	}
	if err := slot.TakeTx(tx, p.line, rec.id); err != nil {
		return err
	}
	s.free[p.line]--
	s.started = append(s.started, w)
	return nil
}

// choose returns the line that a job goes to; nil: none that it may go to takes
// it now.
func (s *starting) choose(q *waitingJob) *line.Candidate {
	ids := make([]string, 0, len(s.candidates))
	byID := make(map[string]*line.Candidate, len(s.candidates))
	for _, b := range s.jobs.opts.Lines.Order(s.candidates, q.id) {
		ids = append(ids, b.Line.ID)
		byID[b.Line.ID] = b
	}
	for _, id := range q.trace.prefers(ids) {
		if s.free[id] > 0 && byID[id].Takes(q.account) {
			return byID[id]
		}
	}
	return nil
}

// made tells whether a catalog has a model that jobs can be of. One that has no
// line now may get it back: its jobs wait, as long as all others.
func made(s *catalog.Snapshot, model string) bool {
	m, known := s.Model(model)
	return known && m.Kind != catalog.KindChat
}

// giveUp fails queued jobs of a model that is not in the catalog any more.
func (j *Jobs) giveUp(ctx context.Context, model string) (bool, error) {
	return j.failSome(ctx, func(tx *store.Tx, _ int64) ([]string, error) {
		return idsTx(tx, modelQueue, model, maxStarts)
	}, func(rec *record, _ *progress, _ int64) bool {
		// A job may be of a newer catalog than the one that this node has yet.
		now := j.opts.Catalog.Current()
		return rec.revision <= now.Revision && !made(now, model)
	}, jobError{code: fault.UpstreamError,
		message: "The model is no longer served. You were not charged. Please submit the job with another model."})
}

// failSome ends some queued jobs; true: there may be more.
func (j *Jobs) failSome(ctx context.Context, find func(tx *store.Tx, nowMS int64) ([]string, error),
	still func(rec *record, p *progress, nowMS int64) bool, why jobError) (bool, error) {
	var ends []*ending
	found := 0
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		ends = nil
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		ids, err := find(tx, now)
		if err != nil {
			return err
		}
		found = len(ids)
		for _, id := range ids {
			rec, p, err := readTx(tx, id)
			if err != nil {
				return err
			}
			if rec == nil {
				continue
			}
			e := j.ending(rec, nil, p.fence, why)
			e.when = func(p *progress, nowMS int64) bool { return p.state == stateQueued && still(rec, p, nowMS) }
			ends = append(ends, e)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	ended := false
	for _, e := range ends {
		ended = j.end(ctx, e) || ended
	}
	return ended && found == maxStarts, nil
}

// idsTx reads a list of ids.
func idsTx(tx *store.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// task is the job as the line is to do it.
func (w *worker) task() jobcall.Task { return w.jobs.taskOf(w.rec, w.run, w.candidate) }
