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

// Limits of one transaction that starts jobs.
const (
	maxStarts = 32
	queuePage = 64 // queued jobs per page
	maxPages  = 16 // pages to search for a job with a free line
)

// startPlan chooses queued jobs of a model and lines for them. preview checks whether a job can
// start, and commitTx starts jobs. Both may run several times.
type startPlan struct {
	jobs       *Jobs
	snapshot   *catalog.Snapshot
	model      string
	candidates []*line.Candidate // in the order of the lines
	limit      int               // maximum number of jobs for commitTx

	started []*worker
	failed  []*ending      // jobs that are past the start limit or belong to disabled accounts
	more    bool           // the queue may have other jobs that can start
	free    map[string]int // free slots by line id
}

// queueRow is a row of selectQueue.
type queueRow struct {
	id      string
	account string
	turn    int64
	fence   int64
	trace   row.Trace
}

// preview looks for one job that commitTx would start, without locks.
func (s *startPlan) preview(tx *store.Tx) error {
	return s.decideTx(tx, 1, func(*store.Tx, *worker, int64) (bool, error) { return true, nil })
}

// commitTx starts jobs: line, slot and file names are written before the provider is called.
func (s *startPlan) commitTx(tx *store.Tx) error {
	var capped []string
	for _, c := range s.candidates {
		if c.Line.MaxConcurrent > 0 {
			capped = append(capped, c.Line.ID)
		}
	}
	if err := slot.LockTx(tx, capped...); err != nil {
		return err
	}
	return s.decideTx(tx, s.limit, submitTx)
}

// decideTx calls start for the jobs in the order of the queue until limit jobs have started.
func (s *startPlan) decideTx(tx *store.Tx, limit int, start func(*store.Tx, *worker, int64) (bool, error)) error {
	s.started, s.failed, s.more = nil, nil, false
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if err := s.freeTx(tx); err != nil || s.full() {
		return err
	}
	last := queueRow{}
	for range maxPages {
		queue, err := s.queueTx(tx, now, last)
		if err != nil {
			return err
		}
		for _, q := range queue {
			if len(s.started) >= limit || len(s.failed) >= maxStarts || s.full() {
				s.more = !s.full()
				return nil
			}
			if err := s.startTx(tx, q, now, start); err != nil {
				return err
			}
		}
		if len(queue) < queuePage {
			return nil
		}
		last = queue[len(queue)-1]
	}
	s.more = len(s.started) > 0
	return nil
}

// queueTx reads the page of the queue after last.
func (s *startPlan) queueTx(tx *store.Tx, now int64, last queueRow) ([]queueRow, error) {
	return store.Collect(tx, func(r store.Row) (q queueRow, err error) {
		var raw string
		if err := r.Scan(&q.id, &q.account, &q.turn, &q.fence, &raw); err != nil {
			return q, err
		}
		if err := row.Decode(raw, &q.trace); err != nil {
			return q, fmt.Errorf("read job %s: %q", q.id, err)
		}
		return q, nil
	}, selectQueue, s.model, now, last.turn, last.id, queuePage)
}

// freeTx reads the free slots of the lines. A line without a limit has maxSending slots.
func (s *startPlan) freeTx(tx *store.Tx) error {
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

// full reports whether no line has a free slot.
func (s *startPlan) full() bool {
	for _, free := range s.free {
		if free > 0 {
			return false
		}
	}
	return true
}

// startTx starts a job if a line has a free slot. An overdue job, or a job of a disabled account,
// fails instead, even before Housekeep finds it.
func (s *startPlan) startTx(tx *store.Tx, q queueRow, now int64, start func(*store.Tx, *worker, int64) (bool, error)) error {
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
		s.failed = append(s.failed, j.newEnding(rec, nil, p.Fence, j.startLimitError()))
		return nil
	}
	accounts, err := ledger.AccountsTx(tx, []string{rec.Account})
	if err != nil {
		return err
	}
	if accounts[rec.Account].Disabled {
		s.failed = append(s.failed, j.newEnding(rec, nil, p.Fence, disabledError()))
		return nil
	}
	w := &worker{jobs: j, rec: rec, run: p, candidate: candidate, snapshot: s.snapshot}
	started, err := start(tx, w, now)
	if err != nil || !started {
		return err
	}
	s.free[candidate.Line.ID]--
	s.started = append(s.started, w)
	return nil
}

// submitTx records the submission of a worker's job. It returns false if another node was faster.
func submitTx(tx *store.Tx, w *worker, now int64) (bool, error) {
	p, rec := w.run, w.rec
	blocks, ifQueued := w.candidate.Generator.Blocks(w.task()), row.IfQueued(p.Fence)
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
	changed, err := p.SaveTx(tx, rec.ID, ifQueued, row.ColState, row.ColStarted, row.ColEpoch, row.ColFence, row.ColLine, row.ColRevision,
		row.ColNumber, row.ColTicket, row.ColSubmitted, row.ColResults, row.ColFiles, row.ColTrace)
	if err != nil || changed == 0 {
		return false, err
	}
	return true, slot.TakeTx(tx, p.Line, rec.ID)
}

// choose returns a line with a free slot for a job, or nil.
func (s *startPlan) choose(q *queueRow) *line.Candidate {
	ids := make([]string, 0, len(s.candidates))
	byID := make(map[string]*line.Candidate, len(s.candidates))
	for _, c := range s.jobs.opts.Lines.Order(s.candidates, q.id) {
		ids = append(ids, c.Line.ID)
		byID[c.Line.ID] = c
	}
	for _, id := range q.trace.Order(ids) {
		if s.free[id] > 0 && byID[id].Takes(q.account) {
			return byID[id]
		}
	}
	return nil
}

func (w *worker) task() jobcall.Task { return w.jobs.taskOf(w.rec, w.run, w.candidate) }

// inCatalog reports whether a catalog has an image or video model. The model may have no line at the
// moment; its jobs then wait until the start limit.
func inCatalog(s *catalog.Snapshot, model string) bool {
	m, ok := s.Model(model)
	return ok && m.Kind.IsJob()
}
