package job

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
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

// breakMedia moves the media folder away.
func (c *cluster) breakMedia() {
	c.t.Helper()
	if err := os.Rename(c.folder, c.folder+".away"); err != nil {
		c.t.Fatal(err)
	}
}

// mendMedia moves the media folder back.
func (c *cluster) mendMedia(nodes ...*testNode) {
	c.t.Helper()
	if err := os.Rename(c.folder+".away", c.folder); err != nil {
		c.t.Fatal(err)
	}
	for _, n := range nodes {
		if err := n.jobs.opts.Media.Check(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
}

// awaitKept waits for the step row.StepKept of a job: its results wait for the media store.
func (c *cluster) awaitKept(n *testNode, kind, id string) {
	c.t.Helper()
	c.await(n, kind, id, func(jobBody) bool { return c.hasStep(id, row.StepKept) })
}

// hasStep reports whether a job has a step.
func (c *cluster) hasStep(id, step string) bool {
	c.t.Helper()
	return slices.ContainsFunc(c.view(id).Steps, func(s row.Step) bool { return s.Name == step })
}

// spooled counts the parts in the spool.
func (c *cluster) spooled() (n int) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM job_spool`).Scan(&n)
	})
	return n
}

// outageCase is a job with results during an outage of the media store.
type outageCase struct {
	name, model, kind string
	count             int64
	blocks            bool // inline results
	spooled           int  // parts in the spool
	cost              money.Amount
	code              fault.Code // if the outage does not end
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

// outage is a case with its job, on a node whose media store is down.
type outage struct {
	outageCase
	h  *cluster
	n  *testNode
	id string
}

// release takes the job from its node, as the node does if it cannot continue.
func (o *outage) release() {
	o.h.t.Helper()
	o.h.update(`UPDATE job_run SET epoch = $1 WHERE id = $2`, noOwner, o.id)
}

// await waits for the end of the job and checks that it succeeded.
func (o *outage) await(n *testNode) {
	o.h.t.Helper()
	done := o.h.await(n, o.kind, o.id, final)
	if done.Status != row.StatusSucceeded || int64(len(done.Data)) != o.count {
		o.h.t.Errorf("the job ended as %+v %+v", done, done.Error)
	}
	o.h.onlyPublic(n, done)
}

// awaitFailure waits for the end of the job and checks its error.
func (o *outage) awaitFailure() {
	o.h.t.Helper()
	done := o.h.await(o.n, o.kind, o.id, final)
	if done.Error == nil || done.Error.Code != string(o.code) {
		o.h.t.Errorf("the job ended as %+v %+v", done, done.Error)
	}
}

// eachOutage starts the job of each case during an outage and runs scene, which returns the last node
// and the expected charge. Then it checks the charge, that the job was submitted once, and that the
// spool is empty.
func eachOutage(t *testing.T, prepare func(tt outageCase, j *Jobs), scene func(o *outage) (last *testNode, cost money.Amount)) {
	for _, tt := range outageCases() {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			first, second := &generator{blocks: tt.blocks}, &generator{blocks: tt.blocks}
			c, n := twoLineCluster(t, url, first, second)
			prepare(tt, n.jobs)
			c.breakMedia()
			o := &outage{tt, c, n, c.submit(n, c.submission(n, tt.model, tt.count))}
			n.step(n.jobs.Start)
			last, cost := scene(o)
			if first.count() != 1 || second.count() != 0 {
				t.Errorf("%d and %d submissions", first.count(), second.count())
			}
			c.audit(cost)
			last.step(last.jobs.Housekeep)
			if got := c.spooled(); got != 0 {
				t.Errorf("%d parts are left in the spool", got)
			}
		})
	}
}

// TestMediaOutage checks that results are kept until the media store works again. No other job starts
// during the outage.
func TestMediaOutage(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(outageCase, *Jobs) {}, func(o *outage) (*testNode, money.Amount) {
		c, n := o.h, o.n
		c.awaitKept(n, o.kind, o.id)
		if s := c.poll(n, o.kind, o.id); s.Status != row.StatusProcessing {
			c.t.Errorf("the job shows %+v", s)
		}
		if got := c.spooled(); got != o.spooled {
			c.t.Errorf("%d parts are kept, want %d", got, o.spooled)
		}
		if since, down := n.jobs.opts.Media.Down(); !down || since.IsZero() {
			c.t.Error("the media store is not down")
		}
		other := c.submit(n, c.submission(n, "easel-1", 1))
		for range 3 {
			n.step(n.jobs.Start)
		}
		c.checkStatus(n, other, row.StatusQueued, "the other job")
		if err := n.jobs.Cancel(c.t.Context(), other, nil); err != nil {
			c.t.Error(err)
		}
		c.mendMedia(n)
		o.await(n)
		return n, o.cost
	})
}

// TestNodesDieDuringOutage checks that a node stores the results that a dead node has kept, even if a
// second node took the job over and died during the outage.
func TestNodesDieDuringOutage(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(outageCase, *Jobs) {}, func(o *outage) (*testNode, money.Amount) {
		c := o.h
		c.awaitKept(o.n, o.kind, o.id)
		o.n.kill()
		o.release()
		c.mendMedia()
		next := c.idleNode()
		c.breakMedia()
		next.step(next.jobs.TakeOver)
		c.await(next, o.kind, o.id, func(jobBody) bool { _, down := next.jobs.opts.Media.Down(); return down })
		next.kill()
		o.release()
		c.mendMedia()
		last := c.idleNode()
		last.step(last.jobs.TakeOver)
		o.await(last)
		return last, o.cost
	})
}

// TestLongOutage checks that a job fails and is refunded after MediaRetry.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(_ outageCase, j *Jobs) { j.opts.MediaRetry = time.Millisecond }, func(o *outage) (*testNode, money.Amount) {
		o.awaitFailure()
		return o.n, 0
	})
}

// TestFullSpool checks that, if the spool is full, only the links of results behind links are kept, and
// a job with inline results fails and is refunded.
func TestFullSpool(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(c outageCase, j *Jobs) { j.maxSpool = int(c.count) - 1 }, func(o *outage) (*testNode, money.Amount) {
		if o.blocks {
			o.awaitFailure()
			return o.n, 0
		}
		o.h.awaitKept(o.n, o.kind, o.id)
		if got := o.h.spooled(); got > o.n.jobs.maxSpool {
			o.h.t.Errorf("%d parts are kept, want at most %d", got, o.n.jobs.maxSpool)
		}
		o.h.mendMedia(o.n)
		o.await(o.n)
		return o.n, o.cost
	})
}

// TestStartLimitDuringOutage checks that an outage of the media store extends the start limit by
// MediaRetry on all nodes.
func TestStartLimitDuringOutage(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{}, "second": &generator{}})
		n, other := c.idleNode(), c.idleNode()
		limit := n.jobs.opts.StartLimit
		long := c.submit(n, c.submission(n, "easel-1", 1))
		tooLong := c.submit(n, c.submission(n, "reel-1", 1))
		c.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Minute).Milliseconds(), long)
		c.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Hour + time.Minute).Milliseconds(), tooLong)
		c.breakMedia()
		if _, err := n.jobs.opts.Media.Keep(t.Context(), "job_x", picture(), format.Policy{}); err == nil {
			t.Fatal("a broken store accepted a file")
		}
		n.step(n.jobs.Housekeep)
		other.step(other.jobs.Housekeep)
		c.checkStatus(n, long, row.StatusQueued, "the job within the limit")
		if s := c.poll(n, upstream.KindVideo, tooLong); s.Status != row.StatusFailed {
			t.Errorf("the job over the longer limit shows %+v", s)
		}
		c.mendMedia(n)
		other.step(other.jobs.Start)
		if done := c.await(other, upstream.KindImage, long, final); done.Status != row.StatusSucceeded {
			t.Errorf("the job ended as %+v %+v", done, done.Error)
		}
		// An outage that is over does not extend the limit.
		c.update(`UPDATE job_outage SET seen_ms = seen_ms - $1`, (limit + time.Minute).Milliseconds())
		late := c.submit(n, c.submission(n, "easel-1", 1))
		c.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Minute).Milliseconds(), late)
		n.step(n.jobs.Housekeep)
		c.checkStatus(n, late, row.StatusFailed, "a job queued after the outage")
		c.audit(3 * cent)
	})
}

// TestUnreadableReferences lets the media store fail while an adapter reads a reference. Whatever
// error the adapter returns, the line is not blamed and the job waits.
func TestUnreadableReferences(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func(err error) error{
		"as adapters report it":      func(err error) error { return upstream.UnreadableFile(err) },
		"as a lost answer":           func(err error) error { return upstream.LostAnswer(context.Background(), err) },
		"without blame for the line": func(err error) error { return upstream.AsJobFailure(err) },
	} {
		eachURL(t, name, func(t *testing.T, url string) {
			first := &generator{}
			first.submit = func(_ int, task jobcall.Task) (*jobcall.TaskStatus, error) {
				body, err := task.References[0].Open(t.Context())
				if err != nil {
					return nil, failure(err)
				}
				_, err = io.Copy(io.Discard, body)
				return nil, errors.Join(err, body.Close())
			}
			c, n := twoLineCluster(t, url, first, first)
			s := c.submission(n, "easel-1", 1)
			ref, err := n.jobs.opts.Media.Keep(t.Context(), s.Job, picture(), format.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			s.References = []media.File{ref}
			id := c.submit(n, s)
			c.breakMedia()
			n.step(n.jobs.Start)
			c.await(n, upstream.KindImage, id, func(jobBody) bool { return c.hasStep(id, row.StepAttemptFailed) })
			if a := c.view(id).Attempts; len(a) != 1 || a[0].Next != "later" || a[0].Lost {
				t.Errorf("%+v", a)
			}
			c.mendMedia(n)
			c.update(`UPDATE job_run SET wake_ms = 0`)
			n.step(n.jobs.Start)
			if done := c.await(n, upstream.KindImage, id, final); done.Status != row.StatusSucceeded {
				t.Errorf("the job ended as %+v %+v", done, done.Error)
			}
			c.audit(3 * cent)
		})
	}
}
