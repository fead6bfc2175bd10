package job

import (
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/job/row"
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

// starting decides which queued jobs of a model start, and on which lines. look
// asks whether there are any, tx writes them; both may run several times.
type starting struct {
	jobs       *Jobs
	snapshot   *catalog.Snapshot
	model      string
	candidates []*line.Candidate // in the order of the lines
	room       int               // of tx

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
	trace   row.Trace
}

// look decides in a snapshot, without a lock, until it has found a job that tx
// would start.
func (s *starting) look(tx *store.Tx) error {
	return s.decideTx(tx, 1, func(*store.Tx, *worker, int64) (bool, error) { return true, nil })
}

// tx decides and writes that jobs are submitted: each such job has its line, its
// slot and its names for results from then on, before any provider is called.
func (s *starting) tx(tx *store.Tx) error {
	var capped []string
	for _, c := range s.candidates {
		if c.Line.MaxConcurrent > 0 {
			capped = append(capped, c.Line.ID)
		}
	}
	if err := slot.LockTx(tx, capped...); err != nil {
		return err
	}
	return s.decideTx(tx, s.room, writeTx)
}

// decideTx chooses up to most jobs in the order of the queue and gives them to
// begin, which says whether they start.
func (s *starting) decideTx(tx *store.Tx, most int, begin func(*store.Tx, *worker, int64) (bool, error)) error {
	s.started, s.refused, s.more = nil, nil, false
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if err := s.freeTx(tx); err != nil || s.full() {
		return err
	}
	last := waitingJob{}
	for range maxLooks {
		queue, err := s.queueTx(tx, now, last)
		if err != nil {
			return err
		}
		for _, q := range queue {
			if len(s.started) >= most || len(s.refused) >= maxStarts || s.full() {
				s.more = !s.full()
				return nil
			}
			if err := s.oneTx(tx, q, now, begin); err != nil {
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
		if err := row.Decode(raw, &q.trace); err != nil {
			return nil, fmt.Errorf("read job %s: %q", q.id, err)
		}
		queue = append(queue, q)
	}
	return queue, rows.Err()
}

// freeTx reads how many jobs each line may take; lines without a cap take as many as
// a node may submit.
func (s *starting) freeTx(tx *store.Tx) error {
	s.free = make(map[string]int, len(s.candidates))
	for _, c := range s.candidates {
		free := maxSending
		if c.Line.MaxConcurrent > 0 {
			var err error
			if free, err = slot.FreeTx(tx, c.Line.ID, c.Line.MaxConcurrent); err != nil {
				return err
			}
		}
		if c.HalfOpen {
			free = min(free, 1)
		}
		s.free[c.Line.ID] = free
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
func (s *starting) oneTx(tx *store.Tx, q waitingJob, now int64, begin func(*store.Tx, *worker, int64) (bool, error)) error {
	j := s.jobs
	candidate := s.choose(&q)
	if candidate == nil {
		return nil
	}
	rec, p, err := row.ReadTx(tx, q.id)
	if err != nil || rec == nil || p.State != row.StateQueued || p.Fence != q.fence {
		return err
	}
	limit, err := j.startLimitTx(tx, now)
	if err != nil {
		return err
	}
	if p.Overdue(now, limit) {
		s.refused = append(s.refused, j.ending(rec, nil, p.Fence, j.waitedTooLong()))
		return nil
	}
	owners, err := ledger.AccountsTx(tx, []string{rec.Account})
	if err != nil {
		return err
	}
	if owners[rec.Account].Disabled {
		s.refused = append(s.refused, j.ending(rec, nil, p.Fence, disabledAccount()))
		return nil
	}
	w := &worker{jobs: j, rec: rec, run: p, candidate: candidate, snapshot: s.snapshot}
	starts, err := begin(tx, w, now)
	if err != nil || !starts {
		return err
	}
	s.free[candidate.Line.ID]--
	s.started = append(s.started, w)
	return nil
}

// writeTx writes that a worker submits its job; false: another node was faster.
func writeTx(tx *store.Tx, w *worker, now int64) (bool, error) {
	p, rec := w.run, w.rec
	blocks, waits := w.candidate.Generator.Blocks(w.task()), row.Waiting(p.Fence)
	p.State, p.Epoch, p.Fence = row.StateSending, w.jobs.opts.Node.Epoch(), p.Fence+1
	p.Line, p.Revision, p.Number, p.Ticket, p.SubmittedMS = w.candidate.Line.ID, w.snapshot.Revision, p.Number+1, "", now
	p.Results, p.Files = nil, nil
	p.Trace.Begin(p.Line, now)
	p.Trace.Step(row.StepLine, now, p.Line)
	p.Trace.Step(row.StepSubmitted, now, p.Line)
	if blocks {
		p.Start(now)
		var err error
		if w.names, err = media.ReserveTx(tx, rec.ID, int(rec.Plan.Count)); err != nil {
			return false, err
		}
	}
	changed, err := p.SaveTx(tx, rec.ID, waits, row.ColState, row.ColStarted, row.ColEpoch, row.ColFence, row.ColLine, row.ColRevision,
		row.ColNumber, row.ColTicket, row.ColSubmitted, row.ColResults, row.ColFiles, row.ColTrace)
	if err != nil || changed == 0 {
		return false, err
	}
	return true, slot.TakeTx(tx, p.Line, rec.ID)
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
	for _, id := range q.trace.Prefers(ids) {
		if s.free[id] > 0 && byID[id].Takes(q.account) {
			return byID[id]
		}
	}
	return nil
}

// task is the job as the line is to do it.
func (w *worker) task() jobcall.Task { return w.jobs.taskOf(w.rec, w.run, w.candidate) }

// made tells whether a catalog has a model that jobs can be of. One that has no
// line now may get it back: its jobs wait, as long as all others.
func made(s *catalog.Snapshot, model string) bool {
	m, known := s.Model(model)
	return known && m.Kind != catalog.KindChat
}
