package job

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/chatcall"
)

// requeue requeues a job and returns the id in the answer.
func (c *cluster) requeue(n *testNode, id string, o RequeueOptions) (string, error) {
	o.Show = func(v View) []byte { return []byte(parse(c.t, v.Body).ID) }
	answer, _, err := n.jobs.Requeue(c.t.Context(), id, o)
	return string(answer), err
}

// withKey returns options with an Idempotency-Key for a request.
func withKey(key, request string) RequeueOptions {
	return RequeueOptions{Force: true, Once: &ledger.Once{Scope: "admin", Key: key, Fingerprint: []byte(request), Window: 24 * time.Hour}}
}

// TestRequeueOnce checks that repeated requeues with one Idempotency-Key, concurrent or later, submit
// and charge one job.
func TestRequeueOnce(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, url string, nodes int) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true}})
		c.apply(oneLine)
		c.account, c.key = c.open(100 * cent)
		all := []*testNode{c.idleNode()}
		for len(all) < nodes {
			all = append(all, c.idleNode())
		}
		id := c.submit(all[0], c.submission(all[0], "easel-1", 1))
		all[0].runJobs()

		answers := make([]string, 8*nodes)
		errs := make([]error, len(answers))
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i], errs[i] = c.requeue(all[i%nodes], id, withKey("k", "one")) })
		}
		wg.Wait()
		for i, answer := range answers {
			if errs[i] != nil || answer != answers[0] || answer == id {
				t.Errorf("Requeue returned %s and error %v, want the new job %s", answer, errs[i], answers[0])
			}
		}
		c.checkRows(2, 1, 1)
		all[0].runJobs()
		if again, err := c.requeue(all[0], id, withKey("k", "one")); err != nil || again != answers[0] {
			t.Errorf("repeated after the job's end: got %s and error %v, want %s", again, err, answers[0])
		}
		if _, err := c.requeue(all[0], id, withKey("k", "two")); !errors.Is(err, ledger.ErrOtherBody) {
			t.Errorf("another request with the key: %v, want %v", err, ledger.ErrOtherBody)
		}
		if other, err := c.requeue(all[0], id, withKey("k2", "one")); err != nil || other == answers[0] {
			t.Errorf("another key: got %s and error %v, want another job", other, err)
		}
		c.audit(2 * cent)
	}
	oneAndTwoNodes(t, test)
}

// TestRequeueOnceRunning checks that a repeated requeue of an unfinished job gets the stored answer,
// before and after the job's end.
func TestRequeueOnceRunning(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{blocks: true}
		c, n := oneLineCluster(t, url, m)
		id := c.submit(n, c.submission(n, "easel-1", 1))
		o := withKey("k", "one")
		o.Show = func(v View) []byte { return v.Body }
		first, replayed, err := n.jobs.Requeue(t.Context(), id, o)
		if err != nil || replayed || parse(t, first).ID != id {
			t.Fatalf("Requeue returned %s, replayed %t and error %v, want job %s", first, replayed, err, id)
		}
		for range 2 {
			again, replayed, err := n.jobs.Requeue(t.Context(), id, o)
			if err != nil || !replayed || !bytes.Equal(again, first) {
				t.Errorf("repeated: got %s, replayed %t and error %v, want %s", again, replayed, err, first)
			}
			n.runJobs()
		}
		m.checkSubmissions(t, 1)
		c.audit(cent)
	})
}

// TestRequeueErrors expects a rejected requeue not to use up its Idempotency-Key.
func TestRequeueErrors(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{blocks: true})
		id := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		rejected := func(name string, o RequeueOptions, param string) {
			t.Helper()
			_, err := c.requeue(n, id, o)
			if f := fault.Of(err); f == nil || f.Code != fault.InvalidRequest || f.Param != param {
				t.Errorf("%s: %v, want %s for param %q", name, err, fault.InvalidRequest, param)
			}
		}
		unforced := withKey("k", "one")
		unforced.Force = false
		rejected("a job that has succeeded", unforced, "force")
		c.disable(c.account, true)
		rejected("a job of a disabled account", withKey("k", "one"), "")
		c.disable(c.account, false)
		if next, err := c.requeue(n, id, withKey("k", "one")); err != nil || next == id {
			t.Errorf("requeue after rejections: got %s and error %v, want a new job", next, err)
		}
	})
}

// TestRequeueChecks checks that a resubmission applies today's allowed models, catalog, prices and
// price factor, and the balance.
func TestRequeueChecks(t *testing.T) {
	t.Parallel()
	endedJob := func(c *cluster, n *testNode) func(key, want string) {
		id := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		return func(key, want string) {
			c.t.Helper()
			n.step(n.watcher.Refresh)
			_, err := c.requeue(n, id, withKey(key, "one"))
			if f := fault.Of(err); (want == "") != (err == nil) || err != nil && string(f.Code)+" "+f.Param != want {
				c.t.Errorf("%s: error %v, want %q", key, err, want)
			}
		}
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true}})
		c.apply(oneLine)
		c.account, c.key = c.open(100 * cent)
		n := c.idleNode()
		requeue := endedJob(c, n)
		c.changeKey(func(s *account.KeySettings) { s.AllowedModels = []string{"reel-1"} })
		requeue("a model that the key may not use", "invalid_request model")
		c.changeKey(func(s *account.KeySettings) { s.AllowedModels = nil })
		for name, tt := range map[string]struct{ old, new, want string }{
			"retired":           {"    kind: image\n", "    kind: image\n    state: retired\n", "invalid_request model"},
			"in maintenance":    {"    kind: image\n", "    kind: image\n    state: maintenance\n", "invalid_request model"},
			"renamed":           {"easel-1", "easel-2", "invalid_request model"},
			"another tier":      {"{1K: 0.01}", "{2K: 0.01}", "unsupported_resolution resolution"},
			"other ratios":      {`["1:1"]`, `["16:9"]`, "invalid_request aspect_ratio"},
			"above the balance": {"{1K: 0.01}", "{1K: 2}", "insufficient_quota "},
		} {
			c.apply(strings.ReplaceAll(oneLine, tt.old, tt.new))
			requeue(name, tt.want)
		}
		c.apply(strings.ReplaceAll(oneLine, "0.01", "0.05"))
		requeue("a new price", "")
		n.runJobs()
		c.audit(6 * cent)
		c.setFactor(2 * money.One)
		requeue("a new factor", "")
		n.runJobs()
		c.audit(16 * cent)
	})
}

// setFactor sets the account's price factor.
func (c *cluster) setFactor(f money.Factor) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		_, err := account.ChangeTx(tx, c.account, account.Patch{Factor: &f})
		return err
	})
}
