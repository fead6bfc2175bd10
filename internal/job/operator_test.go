package job

import (
	"errors"
	"slices"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/media"
	"tollgate/internal/media/format"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
)

// list returns the ids of the jobs selected by a filter.
func (c *cluster) list(f Filter) (ids []string, more bool) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) error {
		views, m, err := ListTx(tx, f)
		more = m
		for _, v := range views {
			ids = append(ids, parse(c.t, v.Body).ID)
		}
		return err
	})
	return ids, more
}

// TestList checks that each filter selects the right jobs and pages join to the whole list.
func TestList(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		first := &generator{}
		second := &generator{before: block("poll", reached)}
		c, n := twoLineCluster(t, url, first, second)
		other := c.withAccount(c.open(money.USD))
		succeeded := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		first.submit = failSubmit(0, upstream.ModerationFailure("video", "no", false))
		failed := other.start(n, "reel-1", 1)
		n.jobs.running.Wait()
		first.submit = failSubmit(0, upstream.Unsuitable("image", "no"))
		processing := c.start(n, "easel-1", 1)
		until(t, "the first line's refusal", func() bool { return len(c.order()) == 1 })
		n.step(n.jobs.Start)
		<-reached
		queued := c.submit(n, c.submission(n, "easel-1", 1))

		for _, tt := range []struct {
			name string
			f    Filter
			want []string
		}{
			{"all", Filter{Limit: 10}, []string{queued, processing, failed, succeeded}},
			{"account", Filter{Limit: 10, Account: other.account}, []string{failed}},
			{"model", Filter{Limit: 10, Model: "easel-1"}, []string{queued, processing, succeeded}},
			{"line of ended jobs", Filter{Limit: 10, Line: "first"}, []string{failed, succeeded}},
			{"line of a running job", Filter{Limit: 10, Line: "second"}, []string{processing}},
			{"queued", Filter{Limit: 10, Status: "queued"}, []string{queued}},
			{"processing", Filter{Limit: 10, Status: "processing"}, []string{processing}},
			{"succeeded", Filter{Limit: 10, Status: "succeeded"}, []string{succeeded}},
			{"failed", Filter{Limit: 10, Status: "failed"}, []string{failed}},
			{"status and model", Filter{Limit: 10, Status: "failed", Model: "easel-1"}, nil},
			{"key", Filter{Limit: 10, Key: other.key}, []string{failed}},
			{"key and line", Filter{Limit: 10, Key: c.key, Line: "second"}, []string{processing}},
			{"key and status", Filter{Limit: 10, Key: other.key, Status: "queued"}, nil},
			{"code", Filter{Limit: 10, Code: "content_policy"}, []string{failed}},
			{"another code", Filter{Limit: 10, Code: "render_failed"}, nil},
			{"long ago", Filter{Limit: 10, UntilMS: 1000}, nil},
			{"since long ago", Filter{Limit: 10, SinceMS: 1000, UntilMS: 1 << 45}, []string{queued, processing, failed, succeeded}},
			{"in the future", Filter{Limit: 10, SinceMS: 1 << 45}, nil},
			{"after a job", Filter{Limit: 10, After: processing}, []string{failed, succeeded}},
		} {
			ids, more := c.list(tt.f)
			slices.Sort(ids)
			slices.Sort(tt.want)
			if !slices.Equal(ids, tt.want) || more {
				t.Errorf("%s: ListTx returned %v and more %t, want %v and false", tt.name, ids, more, tt.want)
			}
		}
		var paged []string
		for f, more := (Filter{Limit: 1}), true; more; f.After = paged[len(paged)-1] {
			var ids []string
			ids, more = c.list(f)
			paged = append(paged, ids...)
		}
		if all, _ := c.list(Filter{Limit: 10}); !slices.Equal(paged, all) {
			t.Errorf("the pages have %v, want %v", paged, all)
		}
		if v := c.view(processing); v.Line != "second" || v.Node != n.self.Epoch() || v.Held != 3*cent ||
			parse(t, v.Body).Status != row.StatusProcessing {
			t.Errorf("the view of the running job is %+v", v)
		}
		c.viewTx(func(tx *store.Tx) error {
			if _, err := GetTx(tx, NewID()); !errors.Is(err, row.ErrNoJob) {
				t.Errorf("GetTx of an unknown job: %v, want %v", err, row.ErrNoJob)
			}
			return nil
		})
	})
}

// inEachState runs test with a job in each state. The generator blocks in the step stuck. If stuck is
// empty, the job is queued.
func inEachState(t *testing.T, test func(t *testing.T, stuck string, m *generator, c *cluster, n *testNode, id string)) {
	for name, tt := range map[string]struct {
		blocks bool
		stuck  string
	}{
		"queued": {}, "sending": {false, "submit"}, "at once": {true, "submit"}, "rendering": {false, "poll"}, "rendered": {false, "fetch"},
	} {
		eachURL(t, name, func(t *testing.T, url string) {
			reached := make(chan struct{}, 1)
			m := &generator{blocks: tt.blocks, before: block(tt.stuck, reached)}
			c, n := oneLineCluster(t, url, m)
			id := c.submit(n, c.submission(n, "easel-1", 1))
			if tt.stuck != "" {
				n.step(n.jobs.Start)
				<-reached
			}
			test(t, tt.stuck, m, c, n, id)
		})
	}
}

// TestCancel checks in each state that a canceled job is refunded, its slot is free, its task at the
// provider is canceled and its worker stops.
func TestCancel(t *testing.T) {
	t.Parallel()
	inEachState(t, func(t *testing.T, stuck string, m *generator, c *cluster, n *testNode, id string) {
		ctx := t.Context()
		if err := n.jobs.Cancel(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
		n.jobs.running.Wait() // although its call blocks
		if s := c.poll(n, "image", id); s.Status != row.StatusFailed || s.Error.Code != string(fault.UpstreamError) ||
			s.Error.Type != "upstream_error" {
			t.Errorf("the canceled job is %+v, want failed with %s", s, fault.UpstreamError)
		}
		if cancelled := len(m.cancelled) > 0; cancelled != (stuck == "poll" || stuck == "fetch") {
			t.Errorf("the task was canceled at the provider: %t, want %t", cancelled, !cancelled)
		}
		if err := n.jobs.Cancel(ctx, id, nil); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("the second Cancel: %v, want %s", err, fault.InvalidRequest)
		}
		if err := n.jobs.Cancel(ctx, NewID(), nil); !errors.Is(err, row.ErrNoJob) {
			t.Errorf("Cancel of an unknown job: %v, want %v", err, row.ErrNoJob)
		}
		c.audit(0)
		m.before = nil
		next := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		c.checkStatus(n, next, row.StatusSucceeded, "the next job on the line")
		c.audit(cent)
	})
}

// TestRequeueRunning checks in each state that a requeued job keeps its id and status and then succeeds.
func TestRequeueRunning(t *testing.T) {
	t.Parallel()
	inEachState(t, func(t *testing.T, stuck string, m *generator, c *cluster, n *testNode, id string) {
		status := c.poll(n, "image", id).Status
		if same, err := c.requeue(n, id, RequeueOptions{Force: true}); err != nil || same != id {
			t.Fatalf("Requeue returned %s and error %v, want %s", same, err, id)
		}
		n.jobs.running.Wait()
		if s := c.poll(n, "image", id); s.Status != status {
			t.Errorf("the requeued job is %s, want %s", s.Status, status)
		}
		if cancelled := len(m.cancelled) > 0; cancelled != (stuck == "poll" || stuck == "fetch") {
			t.Errorf("the task was canceled at the provider: %t, want %t", cancelled, !cancelled)
		}
		m.before = nil
		n.runJobs()
		c.checkStatus(n, id, row.StatusSucceeded, "the resubmitted job")
		if stuck != "" && (m.count() != 2 || m.submitted[0].Key == m.submitted[1].Key) {
			t.Errorf("%d submissions, want 2 with different keys", m.count())
		}
		c.audit(cent)
	})
}

// TestRequeueEnded checks that the requeue of an ended job admits and charges a new job.
func TestRequeueEnded(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{blocks: true}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
		c.apply(oneLine)
		c.account, c.key = c.open(2 * cent)
		n := c.idleNode()
		s := c.submission(n, "easel-1", 1)
		s.OnceKey, s.Fingerprint = "k", []byte("x")
		id := c.submit(n, s)
		n.runJobs()
		next, err := c.requeue(n, id, RequeueOptions{Force: true})
		if err != nil || next == id {
			t.Fatalf("Requeue returned %s and error %v, want a new job", next, err)
		}
		n.runJobs()
		for _, job := range []string{id, next} {
			c.checkStatus(n, job, row.StatusSucceeded, "after the requeue")
		}
		if body, err := n.jobs.FindOnce(t.Context(), c.account, "k", []byte("x")); err != nil || parse(t, body).ID != id {
			t.Errorf("FindOnce returned %s and error %v, want the first job", body, err)
		}
		if _, err := c.requeue(n, id, RequeueOptions{Force: true}); err == nil || fault.Of(err).Code != fault.InsufficientQuota {
			t.Errorf("Requeue beyond the balance: %v, want %s", err, fault.InsufficientQuota)
		}
		if _, err := c.requeue(n, NewID(), RequeueOptions{}); !errors.Is(err, row.ErrNoJob) {
			t.Errorf("Requeue of an unknown job: %v, want %v", err, row.ErrNoJob)
		}
		c.audit(2 * cent)

		c.account, c.key = c.open(2 * cent)
		s = c.submission(n, "easel-1", 1)
		file, err := n.jobs.opts.Media.Keep(t.Context(), s.Job, picture(), format.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		s.References = []media.File{file}
		id = c.submit(n, s)
		n.runJobs()
		if _, err := c.requeue(n, id, RequeueOptions{Force: true}); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("Requeue of a job with references: %v, want %s", err, fault.InvalidRequest)
		}
	})
}
