package job

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/media"
	"tollgate/internal/media/format"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// breakMedia takes the media folder away from all nodes.
func (h *house) breakMedia() {
	h.t.Helper()
	if err := os.Rename(h.folder, h.folder+".away"); err != nil {
		h.t.Fatal(err)
	}
}

// mendMedia gives the media folder back.
func (h *house) mendMedia(nodes ...*testNode) {
	h.t.Helper()
	if err := os.Rename(h.folder+".away", h.folder); err != nil {
		h.t.Fatal(err)
	}
	for _, n := range nodes {
		if err := n.jobs.opts.Media.Check(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
	}
}

// kept waits until a job's results are kept.
func (h *house) kept(n *testNode, kind, id string) {
	h.t.Helper()
	h.await(n, kind, id, func(shown) bool { return h.has(id, row.StepKept) })
}

// has reports whether a job has a step.
func (h *house) has(id, step string) bool {
	h.t.Helper()
	v, _, err := h.view(id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range v.Steps {
		if s.Name == step {
			return true
		}
	}
	return false
}

// spooled counts the parts of kept results.
func (h *house) spooled() (n int) {
	h.t.Helper()
	if err := h.db.View(h.t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM job_spool`).Scan(&n)
	}); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// outageCase is a job whose results come while the media store is down.
type outageCase struct {
	name, model, kind string
	count             int64
	blocks            bool // the results come with the answer
	spooled           int  // parts in the database
	cost              money.Amount
	code              fault.Code // if the store does not come back
}

func outageCases() []outageCase {
	return []outageCase{
		{"an image in the answer", "easel-1", upstream.KindImage, 1, true, 1, 3 * cent, fault.UpstreamError},
		{"images in the answer", "easel-1", upstream.KindImage, 3, true, 3, 9 * cent, fault.UpstreamError},
		{"an image behind a link", "easel-1", upstream.KindImage, 1, false, 1, 3 * cent, fault.UpstreamError},
		{"images behind links", "easel-1", upstream.KindImage, 4, false, 4, 12 * cent, fault.UpstreamError},
		{"a clip behind a link", "reel-1", upstream.KindVideo, 1, false, 0, 50 * cent, fault.ResultFetchFailed},
	}
}

// generators returns two lines for a case.
func (c outageCase) generators() (first, second *generator, all map[string]chatcall.Adapter) {
	first, second = &generator{blocks: c.blocks}, &generator{blocks: c.blocks}
	return first, second, map[string]chatcall.Adapter{"first": first, "second": second}
}

// TestAnOutageOfTheMediaStore: a result that the media store does not take is kept
// and stored later: no other line is asked, no other job starts, and the job is
// charged once.
func TestAnOutageOfTheMediaStore(t *testing.T) {
	t.Parallel()
	for _, c := range outageCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				first, second, generators := c.generators()
				h := newHouse(t, url, generators)
				n := h.still()
				h.breakMedia()
				id := h.submit(n, h.submission(n, c.model, c.count))
				n.step(n.jobs.Start)
				h.kept(n, c.kind, id)
				if s := h.poll(n, c.kind, id); s.Status != row.StatusProcessing {
					t.Errorf("it shows %+v", s)
				}
				if got := h.spooled(); got != c.spooled {
					t.Errorf("%d parts are kept, want %d", got, c.spooled)
				}
				if since, down := n.jobs.opts.Media.Down(); !down || since.IsZero() {
					t.Error("the media store is not down")
				}
				// Another job waits, however often its start is tried.
				waits := h.submit(n, h.submission(n, "easel-1", 1))
				for range 3 {
					n.step(n.jobs.Start)
				}
				if s := h.poll(n, upstream.KindImage, waits); s.Status != row.StatusQueued {
					t.Errorf("the other job shows %+v", s)
				}
				h.mendMedia(n)
				done := h.await(n, c.kind, id, final)
				if done.Status != row.StatusSucceeded || int64(len(done.Data)) != c.count {
					t.Errorf("it ended as %+v %+v", done, done.Error)
				}
				if first.count() != 1 || second.count() != 0 {
					t.Errorf("%d and %d submissions", first.count(), second.count())
				}
				h.onlyPublic(n, done)
				h.audit(c.cost)
				n.step(n.jobs.Start)
				h.await(n, upstream.KindImage, waits, final)
				if got := h.spooled(); got != 0 {
					t.Errorf("%d parts are left", got)
				}
			})
		})
	}
}

// TestKeptResultsSurviveTheirNode: another node stores what a node that died had
// kept, and so does one after that.
func TestKeptResultsSurviveTheirNode(t *testing.T) {
	t.Parallel()
	for _, c := range outageCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				first, second, generators := c.generators()
				h := newHouse(t, url, generators)
				n := h.still()
				h.breakMedia()
				id := h.submit(n, h.submission(n, c.model, c.count))
				n.step(n.jobs.Start)
				h.kept(n, c.kind, id)
				n.kill()
				h.giveUp(id)
				h.mendMedia()
				// The next one dies too, before it has stored anything.
				next := h.still()
				h.breakMedia()
				next.step(next.jobs.TakeOver)
				h.await(next, c.kind, id, func(shown) bool { _, down := next.jobs.opts.Media.Down(); return down })
				next.kill()
				h.giveUp(id)
				h.mendMedia()
				last := h.still()
				last.step(last.jobs.TakeOver)
				done := h.await(last, c.kind, id, final)
				if done.Status != row.StatusSucceeded || int64(len(done.Data)) != c.count {
					t.Errorf("it ended as %+v %+v", done, done.Error)
				}
				if first.count() != 1 || second.count() != 0 {
					t.Errorf("%d and %d submissions", first.count(), second.count())
				}
				h.onlyPublic(last, done)
				h.audit(c.cost)
			})
		})
	}
}

// giveUp makes a job one that its node has given up.
func (h *house) giveUp(id string) {
	h.t.Helper()
	h.update(`UPDATE job_run SET epoch = $1 WHERE id = $2`, abandoned, id)
}

// TestAnOutageThatDoesNotEnd: after the time for retries the job fails and is given
// back; no other line is asked.
func TestAnOutageThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for _, c := range outageCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				first, second, generators := c.generators()
				h := newHouse(t, url, generators)
				h.edit = func(o *Options) { o.MediaRetry = time.Millisecond }
				n := h.still()
				h.breakMedia()
				id := h.submit(n, h.submission(n, c.model, c.count))
				n.step(n.jobs.Start)
				done := h.await(n, c.kind, id, final)
				if done.Error == nil || done.Error.Code != string(c.code) {
					t.Errorf("it ended as %+v %+v", done, done.Error)
				}
				if first.count() != 1 || second.count() != 0 {
					t.Errorf("%d and %d submissions", first.count(), second.count())
				}
				h.audit(0)
				n.step(n.jobs.Housekeep)
				if got := h.spooled(); got != 0 {
					t.Errorf("%d parts are left", got)
				}
			})
		})
	}
}

// TestTheSpoolIsFull: without room in the database, images behind links are kept by their
// link, and a job whose images came with the answer fails and is refunded. No other line
// is asked. The parts that were written are deleted.
func TestTheSpoolIsFull(t *testing.T) {
	t.Parallel()
	for _, c := range outageCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				first, second, generators := c.generators()
				h := newHouse(t, url, generators)
				n := h.still()
				n.jobs.maxSpool = int(c.count) - 1
				h.breakMedia()
				id := h.submit(n, h.submission(n, c.model, c.count))
				n.step(n.jobs.Start)
				cost := c.cost
				if c.blocks {
					cost = 0
				} else {
					h.kept(n, c.kind, id)
					if got := h.spooled(); got > n.jobs.maxSpool {
						t.Errorf("%d parts are kept, at most %d may be", got, n.jobs.maxSpool)
					}
					h.mendMedia(n)
				}
				done := h.await(n, c.kind, id, final)
				if c.blocks && (done.Error == nil || done.Error.Code != string(c.code)) || !c.blocks && int64(len(done.Data)) != c.count {
					t.Errorf("it ended as %+v %+v", done, done.Error)
				}
				if first.count() != 1 || second.count() != 0 {
					t.Errorf("%d and %d submissions", first.count(), second.count())
				}
				h.audit(cost)
				n.step(n.jobs.Housekeep)
				if got := h.spooled(); got != 0 {
					t.Errorf("%d parts are left", got)
				}
			})
		})
	}
}

// TestJobsThatWaitForTheMediaStore: the start limit does not fail them before the
// time for retries is over too, on any node; then it does.
func TestJobsThatWaitForTheMediaStore(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHouse(t, url, map[string]chatcall.Adapter{"first": &generator{}, "second": &generator{}})
		n, other := h.still(), h.still()
		limit := n.jobs.opts.StartLimit
		long := h.submit(n, h.submission(n, "easel-1", 1))
		tooLong := h.submit(n, h.submission(n, "reel-1", 1))
		h.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Minute).Milliseconds(), long)
		h.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Hour + time.Minute).Milliseconds(), tooLong)
		h.breakMedia()
		if _, err := n.jobs.opts.Media.Keep(t.Context(), "job_x", picture(), format.Policy{}); err == nil {
			t.Fatal("a broken store took a file")
		}
		n.step(n.jobs.Housekeep)
		other.step(other.jobs.Housekeep)
		if s := h.poll(n, upstream.KindImage, long); s.Status != row.StatusQueued {
			t.Errorf("it shows %+v", s)
		}
		if s := h.poll(n, upstream.KindVideo, tooLong); s.Status != row.StatusFailed {
			t.Errorf("the other shows %+v", s)
		}
		h.mendMedia(n)
		other.step(other.jobs.Start)
		if done := h.await(other, upstream.KindImage, long, final); done.Status != row.StatusSucceeded {
			t.Errorf("it ended as %+v %+v", done, done.Error)
		}
		// A later outage excuses nobody from the limit of today.
		h.update(`UPDATE job_outage SET seen_ms = seen_ms - $1`, (limit + time.Minute).Milliseconds())
		late := h.submit(n, h.submission(n, "easel-1", 1))
		h.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Minute).Milliseconds(), late)
		n.step(n.jobs.Housekeep)
		if s := h.poll(n, upstream.KindImage, late); s.Status != row.StatusFailed {
			t.Errorf("a job of later shows %+v", s)
		}
		h.audit(3 * cent)
	})
}

// TestReferencesThatCannotBeRead: whatever a generator makes of a reference that our
// store does not give, its line is not to blame and the job waits.
func TestReferencesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func(err error) error{
		"as the adapters say it":  func(err error) error { return upstream.Unread(err) },
		"as a lost answer":        func(err error) error { return upstream.LostAnswer(context.Background(), err) },
		"as no fault of a line's": func(err error) error { return upstream.AsJobFailure(err) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				first := &generator{}
				first.submit = func(_ int, w jobcall.Task) (*jobcall.TaskStatus, error) {
					body, err := w.References[0].Open(t.Context())
					if err != nil {
						return nil, failure(err)
					}
					_, err = io.Copy(io.Discard, body)
					return nil, errors.Join(err, body.Close())
				}
				h := newHouse(t, url, map[string]chatcall.Adapter{"first": first, "second": first})
				n := h.still()
				s := h.submission(n, "easel-1", 1)
				ref, err := n.jobs.opts.Media.Keep(t.Context(), s.Job, picture(), format.Policy{})
				if err != nil {
					t.Fatal(err)
				}
				s.References = []media.File{ref}
				id := h.submit(n, s)
				h.breakMedia()
				n.step(n.jobs.Start)
				h.await(n, upstream.KindImage, id, func(shown) bool { return h.has(id, row.StepAttemptFailed) })
				v, _, err := h.view(id)
				if err != nil || len(v.Attempts) != 1 || v.Attempts[0].Next != "later" || v.Attempts[0].Lost {
					t.Errorf("%+v: %v", v.Attempts, err)
				}
				h.mendMedia(n)
				h.update(`UPDATE job_run SET wake_ms = 0`)
				n.step(n.jobs.Start)
				if done := h.await(n, upstream.KindImage, id, final); done.Status != row.StatusSucceeded {
					t.Errorf("it ended as %+v %+v", done, done.Error)
				}
				h.audit(3 * cent)
			})
		})
	}
}
