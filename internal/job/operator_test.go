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

// list returns the ids for a filter.
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

func TestList(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		first := &generator{}
		second := &generator{before: block("poll", reached)}
		c, n := twoLineCluster(t, url, first, second)
		other := c.withAccount(c.open(money.USD))
		done := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		first.submit = failSubmit(0, upstream.ModerationFailure("video", "no", false))
		failed := other.start(n, "reel-1", 1)
		n.jobs.running.Wait()
		first.submit = failSubmit(0, upstream.Unsuitable("image", "no"))
		runs := c.start(n, "easel-1", 1)
		until(t, "the first line's refusal", func() bool { return len(c.order()) == 1 })
		n.step(n.jobs.Start)
		<-reached
		waits := c.submit(n, c.submission(n, "easel-1", 1))

		for _, tt := range []struct {
			name string
			f    Filter
			want []string
		}{
			{"all", Filter{Limit: 10}, []string{waits, runs, failed, done}},
			{"account", Filter{Limit: 10, Account: other.account}, []string{failed}},
			{"model", Filter{Limit: 10, Model: "easel-1"}, []string{waits, runs, done}},
			{"line that did it", Filter{Limit: 10, Line: "first"}, []string{failed, done}},
			{"line that has it", Filter{Limit: 10, Line: "second"}, []string{runs}},
			{"queued", Filter{Limit: 10, Status: "queued"}, []string{waits}},
			{"processing", Filter{Limit: 10, Status: "processing"}, []string{runs}},
			{"succeeded", Filter{Limit: 10, Status: "succeeded"}, []string{done}},
			{"failed", Filter{Limit: 10, Status: "failed"}, []string{failed}},
			{"nothing", Filter{Limit: 10, Status: "failed", Model: "easel-1"}, nil},
			{"key", Filter{Limit: 10, Key: other.key}, []string{failed}},
			{"key that runs", Filter{Limit: 10, Key: c.key, Line: "second"}, []string{runs}},
			{"queued key", Filter{Limit: 10, Key: other.key, Status: "queued"}, nil},
			{"code", Filter{Limit: 10, Code: "content_policy"}, []string{failed}},
			{"another code", Filter{Limit: 10, Code: "render_failed"}, nil},
			{"long ago", Filter{Limit: 10, UntilMS: 1000}, nil},
			{"since long ago", Filter{Limit: 10, SinceMS: 1000, UntilMS: 1 << 45}, []string{waits, runs, failed, done}},
			{"to come", Filter{Limit: 10, SinceMS: 1 << 45}, nil},
			{"below", Filter{Limit: 10, After: runs}, []string{failed, done}},
		} {
			ids, more := c.list(tt.f)
			slices.Sort(ids)
			slices.Sort(tt.want)
			if !slices.Equal(ids, tt.want) || more {
				t.Errorf("%s: %v %t, want %v", tt.name, ids, more, tt.want)
			}
		}
		var paged []string
		for f, more := (Filter{Limit: 1}), true; more; f.After = paged[len(paged)-1] {
			var ids []string
			ids, more = c.list(f)
			paged = append(paged, ids...)
		}
		if all, _ := c.list(Filter{Limit: 10}); !slices.Equal(paged, all) {
			t.Errorf("page by page %v, at once %v", paged, all)
		}
		if v := c.view(runs); v.Line != "second" || v.Node != n.self.Epoch() || v.Held != 3*cent ||
			parse(t, v.Body).Status != row.StatusProcessing {
			t.Errorf("%+v", v)
		}
		c.viewTx(func(tx *store.Tx) error {
			if _, err := GetTx(tx, NewID()); !errors.Is(err, row.ErrNoJob) {
				t.Errorf("%v", err)
			}
			return nil
		})
	})
}

// inEachState runs test with a job in each state. Its generator blocks in the step stuck, or the job
// is queued.
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

// TestCancel cancels a job in each state: it is refunded, its slot is free, its task is cancelled,
// and its worker stops.
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
			t.Errorf("%+v", s)
		}
		if cancelled := len(m.cancelled) > 0; cancelled != (stuck == "poll" || stuck == "fetch") {
			t.Errorf("the task was cancelled at the provider: %t", cancelled)
		}
		if err := n.jobs.Cancel(ctx, id, nil); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("a second time: %v", err)
		}
		if err := n.jobs.Cancel(ctx, NewID(), nil); !errors.Is(err, row.ErrNoJob) {
			t.Errorf("no such job: %v", err)
		}
		c.audit(0)
		m.before = nil
		next := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		c.checkStatus(n, next, row.StatusSucceeded, "the line's slot is not free")
		c.audit(cent)
	})
}

// TestRequeueRunning requeues a running job in each state.
func TestRequeueRunning(t *testing.T) {
	t.Parallel()
	inEachState(t, func(t *testing.T, stuck string, m *generator, c *cluster, n *testNode, id string) {
		was := c.poll(n, "image", id).Status
		if same, err := c.requeue(n, id, RequeueOptions{Force: true}); err != nil || same != id {
			t.Fatalf("%s %v", same, err)
		}
		n.jobs.running.Wait()
		if s := c.poll(n, "image", id); s.Status != was {
			t.Errorf("it was %s and is %s", was, s.Status)
		}
		if cancelled := len(m.cancelled) > 0; cancelled != (stuck == "poll" || stuck == "fetch") {
			t.Errorf("the task was cancelled at the provider: %t", cancelled)
		}
		m.before = nil
		n.runJobs()
		c.checkStatus(n, id, row.StatusSucceeded, "the resubmitted job")
		if stuck != "" && (m.count() != 2 || m.submitted[0].Key == m.submitted[1].Key) {
			t.Errorf("%d submissions", m.count())
		}
		c.audit(cent)
	})
}

// TestRequeueEnded resubmits an ended job: same price, new admission.
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
			t.Fatalf("%s %v", next, err)
		}
		n.runJobs()
		for _, job := range []string{id, next} {
			if s := c.poll(n, "image", job); s.Status != row.StatusSucceeded || s.ID != job {
				t.Errorf("%+v", s)
			}
		}
		if body, err := n.jobs.FindOnce(t.Context(), c.account, "k", []byte("x")); err != nil || parse(t, body).ID != id {
			t.Errorf("the key's job is %s now: %v", body, err)
		}
		if _, err := c.requeue(n, id, RequeueOptions{Force: true}); err == nil || fault.Of(err).Code != fault.InsufficientQuota {
			t.Errorf("beyond the balance: %v", err)
		}
		if _, err := c.requeue(n, NewID(), RequeueOptions{}); !errors.Is(err, row.ErrNoJob) {
			t.Errorf("no such job: %v", err)
		}
		c.audit(2 * cent)

		c.account, c.key = c.open(2 * cent)
		s = c.submission(n, "easel-1", 1)
		kept, err := n.jobs.opts.Media.Keep(t.Context(), s.Job, picture(), format.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		s.References = []media.File{kept}
		id = c.submit(n, s)
		n.runJobs()
		if _, err := c.requeue(n, id, RequeueOptions{Force: true}); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("without its references: %v", err)
		}
	})
}
