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

// withKey returns options with an Idempotency-Key.
func withKey(key, print string) RequeueOptions {
	return RequeueOptions{Force: true, Once: &ledger.Once{Scope: "admin", Key: key, Fingerprint: []byte(print), Window: 24 * time.Hour}}
}

// TestRequeueOnce repeats a requeue with its Idempotency-Key, concurrently and later. One job is
// made and charged.
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
		var group sync.WaitGroup
		for i := range answers {
			group.Go(func() { answers[i], errs[i] = c.requeue(all[i%nodes], id, withKey("k", "one")) })
		}
		group.Wait()
		for i, answer := range answers {
			if errs[i] != nil || answer != answers[0] || answer == id {
				t.Errorf("%s %v, want %s", answer, errs[i], answers[0])
			}
		}
		c.checkRows(2, 1, 1)
		all[0].runJobs()
		if late, err := c.requeue(all[0], id, withKey("k", "one")); err != nil || late != answers[0] {
			t.Errorf("after its end: %s %v", late, err)
		}
		if _, err := c.requeue(all[0], id, withKey("k", "two")); !errors.Is(err, ledger.ErrOtherBody) {
			t.Errorf("for another request: %v", err)
		}
		if other, err := c.requeue(all[0], id, withKey("k2", "one")); err != nil || other == answers[0] {
			t.Errorf("with another key: %s %v", other, err)
		}
		c.audit(2 * cent)
	}
	oneAndTwoNodes(t, test)
}

// TestRequeueOnceRunning repeats the requeue of a running job before and after its end.
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
			t.Fatalf("%s %t %v", first, replayed, err)
		}
		for range 2 {
			again, replayed, err := n.jobs.Requeue(t.Context(), id, o)
			if err != nil || !replayed || !bytes.Equal(again, first) {
				t.Errorf("%s %t %v, want %s", again, replayed, err, first)
			}
			n.runJobs()
		}
		m.checkSubmissions(t, 1)
		c.audit(cent)
	})
}

// TestRequeueErrors checks that a rejected requeue does not use up its Idempotency-Key.
func TestRequeueErrors(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{blocks: true})
		id := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		refused := func(name string, o RequeueOptions, param string) {
			t.Helper()
			_, err := c.requeue(n, id, o)
			if f := fault.Of(err); f == nil || f.Code != fault.InvalidRequest || f.Param != param {
				t.Errorf("%s: %v", name, err)
			}
		}
		gentle := withKey("k", "one")
		gentle.Force = false
		refused("a job that has succeeded", gentle, "force")
		c.disable(c.account, true)
		refused("for a disabled account", withKey("k", "one"), "")
		c.disable(c.account, false)
		if next, err := c.requeue(n, id, withKey("k", "one")); err != nil || next == id {
			t.Errorf("%s %v", next, err)
		}
	})
}

// TestRequeueChecks resubmits a job after changes of the key's models, the catalog, the account's
// prices and its budget.
func TestRequeueChecks(t *testing.T) {
	t.Parallel()
	ask := func(c *cluster, n *testNode) func(key, want string) {
		id := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		return func(key, want string) {
			c.t.Helper()
			n.step(n.watcher.Refresh)
			_, err := c.requeue(n, id, withKey(key, "one"))
			if f := fault.Of(err); (want == "") != (err == nil) || err != nil && string(f.Code)+" "+f.Param != want {
				c.t.Errorf("%s: %v, want %s", key, err, want)
			}
		}
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true}})
		c.apply(oneLine)
		c.account, c.key = c.open(100 * cent)
		n := c.idleNode()
		requeue := ask(c, n)
		c.limit(func(s *account.KeySettings) { s.AllowedModels = []string{"reel-1"} })
		requeue("a model that the key may not use", "invalid_request model")
		c.limit(func(s *account.KeySettings) { s.AllowedModels = nil })
		for name, tt := range map[string]struct{ old, new, want string }{
			"retired":           {"    kind: image\n", "    kind: image\n    state: retired\n", "invalid_request model"},
			"in maintenance":    {"    kind: image\n", "    kind: image\n    state: maintenance\n", "invalid_request model"},
			"another name":      {"easel-1", "easel-2", "invalid_request model"},
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
		c.factor(2 * money.One)
		requeue("a new factor", "")
		n.runJobs()
		c.audit(16 * cent)
	})
}

func (c *cluster) factor(f money.Factor) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		_, err := account.ChangeTx(tx, c.account, account.Patch{Factor: &f})
		return err
	})
}
