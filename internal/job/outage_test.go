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

// awaitKept waits for the step row.StepKept of a job, after which its results wait for the media store.
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

// outage is a case's job on a node whose media store is down.
type outage struct {
	outageCase
	c  *cluster
	n  *testNode
	id string
}

// release makes the job available to other nodes.
func (o *outage) release() {
	o.c.t.Helper()
	o.c.update(`UPDATE job_run SET epoch = $1 WHERE id = $2`, noOwner, o.id)
}

// await waits for the end of the job and checks that it succeeded.
func (o *outage) await(n *testNode) {
	o.c.t.Helper()
	body := o.c.await(n, o.kind, o.id, final)
	if body.Status != row.StatusSucceeded || int64(len(body.Data)) != o.count {
		o.c.t.Errorf("the job is %+v with error %+v, want succeeded with %d results", body, body.Error, o.count)
	}
	o.c.checkFiles(n, body)
}

// awaitFailure waits for the end of the job and checks its error.
func (o *outage) awaitFailure() {
	o.c.t.Helper()
	body := o.c.await(o.n, o.kind, o.id, final)
	if body.Error == nil || body.Error.Code != string(o.code) {
		o.c.t.Errorf("the job is %+v with error %+v, want code %s", body, body.Error, o.code)
	}
}

// eachOutage starts the job of each case during an outage and runs the function scene, which returns the
// last node and the expected charge. Then eachOutage checks the charge, the single submission and the
// empty spool.
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
				t.Errorf("the lines got %d and %d submissions, want 1 and 0", first.count(), second.count())
			}
			c.audit(cost)
			last.step(last.jobs.Housekeep)
			if got := c.spooled(); got != 0 {
				t.Errorf("the spool has %d parts, want none", got)
			}
		})
	}
}

// TestMediaOutage checks that results are kept until the media store works again. No other job starts
// during the outage.
func TestMediaOutage(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(outageCase, *Jobs) {}, func(o *outage) (*testNode, money.Amount) {
		c, n := o.c, o.n
		c.awaitKept(n, o.kind, o.id)
		if s := c.poll(n, o.kind, o.id); s.Status != row.StatusProcessing {
			c.t.Errorf("the job is %+v, want processing", s)
		}
		if got := c.spooled(); got != o.spooled {
			c.t.Errorf("the spool has %d parts, want %d", got, o.spooled)
		}
		if since, down := n.jobs.opts.Media.Down(); !down || since.IsZero() {
			c.t.Error("Down reports a working media store")
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

// TestNodesDieDuringOutage checks that a node stores the results kept by a dead node, even if a
// second node took the job over and died during the outage.
func TestNodesDieDuringOutage(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(outageCase, *Jobs) {}, func(o *outage) (*testNode, money.Amount) {
		c := o.c
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

// TestLongOutage expects a job to fail and be refunded after MediaRetry.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(_ outageCase, j *Jobs) { j.opts.MediaRetry = time.Millisecond }, func(o *outage) (*testNode, money.Amount) {
		o.awaitFailure()
		return o.n, 0
	})
}

// TestFullSpool checks that a full spool keeps only the links of results and a job with inline
// results fails and is refunded.
func TestFullSpool(t *testing.T) {
	t.Parallel()
	eachOutage(t, func(c outageCase, j *Jobs) { j.maxSpool = int(c.count) - 1 }, func(o *outage) (*testNode, money.Amount) {
		if o.blocks {
			o.awaitFailure()
			return o.n, 0
		}
		o.c.awaitKept(o.n, o.kind, o.id)
		if got := o.c.spooled(); got > o.n.jobs.maxSpool {
			o.c.t.Errorf("the spool has %d parts, want at most %d", got, o.n.jobs.maxSpool)
		}
		o.c.mendMedia(o.n)
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
		within := c.submit(n, c.submission(n, "easel-1", 1))
		overdue := c.submit(n, c.submission(n, "reel-1", 1))
		c.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Minute).Milliseconds(), within)
		c.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Hour + time.Minute).Milliseconds(), overdue)
		c.breakMedia()
		if _, err := n.jobs.opts.Media.Keep(t.Context(), "job_x", picture(), format.Policy{}); err == nil {
			t.Fatal("the broken media store accepted a file")
		}
		n.step(n.jobs.Housekeep)
		other.step(other.jobs.Housekeep)
		c.checkStatus(n, within, row.StatusQueued, "the job within the longer limit")
		if s := c.poll(n, upstream.KindVideo, overdue); s.Status != row.StatusFailed {
			t.Errorf("the job past the longer limit is %+v, want failed", s)
		}
		c.mendMedia(n)
		other.step(other.jobs.Start)
		if body := c.await(other, upstream.KindImage, within, final); body.Status != row.StatusSucceeded {
			t.Errorf("the job is %+v with error %+v, want succeeded", body, body.Error)
		}
		// An outage that is over does not extend the limit.
		c.update(`UPDATE job_outage SET seen_ms = seen_ms - $1`, (limit + time.Minute).Milliseconds())
		later := c.submit(n, c.submission(n, "easel-1", 1))
		c.update(`UPDATE job_run SET queued_ms = queued_ms - $1 WHERE id = $2`, (limit + time.Minute).Milliseconds(), later)
		n.step(n.jobs.Housekeep)
		c.checkStatus(n, later, row.StatusFailed, "a job queued after the outage")
		c.audit(3 * cent)
	})
}

// TestUnreadableReferences checks that a failed read of a reference from the media store does not count
// against the line, whatever error the adapter returns and the job waits.
func TestUnreadableReferences(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func(err error) error{
		"unreadable file": func(err error) error { return upstream.UnreadableFile(err) },
		"lost answer":     func(err error) error { return upstream.LostAnswer(context.Background(), err) },
		"job failure":     func(err error) error { return upstream.AsJobFailure(err) },
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
				t.Errorf("the attempts are %+v, want one to be repeated later", a)
			}
			c.mendMedia(n)
			c.update(`UPDATE job_run SET wake_ms = 0`)
			n.step(n.jobs.Start)
			if body := c.await(n, upstream.KindImage, id, final); body.Status != row.StatusSucceeded {
				t.Errorf("the job is %+v with error %+v, want succeeded", body, body.Error)
			}
			c.audit(3 * cent)
		})
	}
}
