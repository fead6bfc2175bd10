package job

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// rows counts the rows of submissions: jobs, running jobs, open holds.
func (c *cluster) rows() (jobs, running, holds int64) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT (SELECT COUNT(*) FROM job), (SELECT COUNT(*) FROM job_run), (SELECT COUNT(*) FROM ledger_hold)`).Scan(&jobs,
			&running, &holds)
	})
	return jobs, running, holds
}

func (c *cluster) checkRows(jobs, running, holds int64) {
	c.t.Helper()
	if j, r, held := c.rows(); j != jobs || r != running || held != holds {
		c.t.Errorf("%d jobs, %d in progress, %d holds; want %d, %d and %d", j, r, held, jobs, running, holds)
	}
}

func (c *cluster) checkHeld(want money.Amount) {
	c.t.Helper()
	if held := c.held(); held != want {
		c.t.Errorf("%s held, want %s", held, want)
	}
}

func (c *cluster) held() (held money.Amount) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) error {
		states, err := ledger.AccountsTx(tx, []string{c.account})
		held = states[c.account].Held
		return err
	})
	return held
}

// limit changes the limits of the key.
func (c *cluster) limit(set func(*account.KeySettings)) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		_, err := account.ChangeKeyTx(tx, c.key, func(s *account.KeySettings) error { set(s); return nil })
		return err
	})
}

func ptr[T any](v T) *T { return &v }

// TestSubmit checks the hold of the maximum cost, the record and the position after a submission.
func TestSubmit(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		id := c.submit(n, c.submission(n, "easel-1", 3))
		c.checkRows(1, 1, 1)
		c.checkHeld(9 * cent)
		if s := c.poll(n, "image", id); s.Status != row.StatusQueued || s.Created == 0 || s.Position == nil || *s.Position != 0 || s.ETA == nil ||
			*s.ETA < 1 || s.Data != nil || s.Error != nil {
			t.Errorf("%+v", s)
		}
		for what, ask := range map[string][3]string{
			"another account": {"acct_other", "image", id}, "the other kind": {c.account, "video", id}, "no such job": {c.account, "image", NewID()},
			"any text": {c.account, "image", "';--"},
		} {
			if body, err := n.jobs.Body(t.Context(), ask[0], ask[1], ask[2]); err == nil || fault.Of(err).Code != fault.JobNotFound {
				t.Errorf("%s: %s %v", what, body, err)
			}
		}
		c.audit(0)
	})
}

// TestAdviceOfJobs checks the advice of a 402.
func TestAdviceOfJobs(t *testing.T) {
	t.Parallel()
	for model, advice := range map[string]string{
		"easel-1": "ask for fewer images or a smaller resolution", "reel-1": "ask for a shorter clip or a smaller resolution",
	} {
		eachURL(t, model, func(t *testing.T, url string) {
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{}, "second": &generator{}})
			c.account, c.key = c.open(cent)
			n := c.idleNode()
			_, err := n.jobs.Submit(t.Context(), c.submission(n, model, 1))
			if f := fault.Of(err); f.Code != fault.InsufficientQuota || !strings.Contains(f.Message(), advice) {
				t.Errorf("%v, want the advice %q", err, advice)
			}
		})
	}
}

// TestSubmitRefused checks that a rejected submission writes nothing.
func TestSubmitRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		set   func(t *testing.T, c *cluster)
		sends int // submissions before the rejected one
		code  fault.Code
	}{
		{"balance", func(t *testing.T, c *cluster) { c.account, c.key = c.open(5 * cent) }, 1, fault.InsufficientQuota},
		{"daily budget", func(t *testing.T, c *cluster) {
			c.limit(func(s *account.KeySettings) { s.DailyBudget = ptr(5 * cent) })
		}, 1, fault.InsufficientQuota},
		{"total limit", func(t *testing.T, c *cluster) {
			c.limit(func(s *account.KeySettings) { s.TotalLimit = ptr(8 * cent) })
		}, 2, fault.InsufficientQuota},
		{"rate", func(t *testing.T, c *cluster) {
			c.limit(func(s *account.KeySettings) { s.RPM = ptr(int64(2)) })
		}, 2, fault.RateLimitExceeded},
		{"free quota", func(t *testing.T, c *cluster) { c.apply(freeDocument) }, 2, fault.RateLimitExceeded},
		{"disabled key", func(t *testing.T, c *cluster) {
			c.limit(func(s *account.KeySettings) { s.Disabled = true })
		}, 0, fault.InvalidAPIKey},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{}, "second": &generator{}})
			tt.set(t, c)
			n := c.idleNode()
			for range tt.sends {
				c.submit(n, c.submission(n, "easel-1", 1))
			}
			before := c.held()
			s := c.submission(n, "easel-1", 1)
			s.OnceKey, s.Fingerprint = "once", []byte("a")
			_, foreseen := n.jobs.Admissible(t.Context(), s)
			body, err := n.jobs.Submit(t.Context(), s)
			if err == nil || fault.Of(err).Code != tt.code {
				t.Fatalf("%s %v", body, err)
			}
			if foreseen == nil || withoutNumbers(foreseen) != withoutNumbers(err) || fault.Of(foreseen).Code != tt.code {
				t.Errorf("foreseen: %v, said: %v", foreseen, err)
			}
			sent := int64(tt.sends)
			c.checkRows(sent, sent, sent)
			c.checkHeld(before)
			if body, err := n.jobs.FindOnce(t.Context(), c.account, "once", []byte("a")); body != nil || err != nil {
				t.Errorf("a refused submission has used up its key: %s %v", body, err)
			}
			c.audit(0)
		})
	}
}

// withoutNumbers returns an error's message without numbers, because seconds pass between two
// messages.
func withoutNumbers(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, fault.Of(err).Message())
}

// TestAdmissible checks the prediction of a submission: it writes nothing, and a twin gets the
// first job although its hold would be rejected.
func TestAdmissible(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{}, "second": &generator{}})
		c.account, c.key = c.open(3 * cent)
		n := c.idleNode()
		s := c.submission(n, "easel-1", 1)
		s.OnceKey, s.Fingerprint = "once", []byte("a")
		for range 2 {
			if body, err := n.jobs.Admissible(t.Context(), s); body != nil || err != nil {
				t.Fatalf("%s %v", body, err)
			}
		}
		c.checkRows(0, 0, 0)
		first, err := n.jobs.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		twin := s
		twin.Job, twin.Request = NewID(), "req_twin"
		if body, err := n.jobs.Admissible(t.Context(), twin); err != nil || string(body) != string(first) {
			t.Errorf("a twin: %s %v, want %s", body, err, first)
		}
		twin.Fingerprint = []byte("b")
		if body, err := n.jobs.Admissible(t.Context(), twin); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("the key of another request: %s %v", body, err)
		}
		twin.OnceKey = "another"
		if body, err := n.jobs.Admissible(t.Context(), twin); err == nil || fault.Of(err).Code != fault.InsufficientQuota {
			t.Errorf("another key: %s %v", body, err)
		}
		c.audit(0)
	})
}

// freeDocument has two free images a day.
const freeDocument = `
models:
  - id: easel-1
    kind: image
    price: {1K: 0}
    ratios: ["1:1"]
    max_images: 4
    free_daily_requests: 2
lines:
  - id: first
    provider: script
    models: {easel-1: vendor-easel}
`

// TestFreeQuotaOfFailures checks that a failed free job returns its part of the quota.
func TestFreeQuotaOfFailures(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{submit: func(n int, _ jobcall.Task) (*jobcall.TaskStatus, error) {
			return nil, failure(fault.ModerationBlocked, upstream.NextNone)
		}}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
		c.apply(freeDocument)
		n := c.node()
		for range 4 {
			id := c.submit(n, c.submission(n, "easel-1", 1))
			if s := c.await(n, "image", id, final); s.Status != row.StatusFailed {
				t.Fatalf("%+v", s)
			}
		}
		m.submit = nil
		for range 2 {
			c.await(n, "image", c.submit(n, c.submission(n, "easel-1", 1)), final)
		}
		if _, err := n.jobs.Submit(t.Context(), c.submission(n, "easel-1", 1)); err == nil || fault.Of(err).Code != fault.RateLimitExceeded {
			t.Errorf("beyond the quota: %v", err)
		}
		c.audit(0)
	})
}

func TestSubmitWithAChangedKey(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		c.limit(func(k *account.KeySettings) { k.Name = "new" })
		if _, err := n.jobs.Submit(t.Context(), s); !errors.Is(err, ledger.ErrKeyChanged) {
			t.Fatalf("%v", err)
		}
		s.KeyVersion = c.version(c.key)
		c.submit(n, s)
		c.audit(0)
	})
}

// TestUndo ends a job whose client has no answer and no Idempotency-Key to find it. With a key the
// job stays.
func TestUndo(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		id := c.submit(n, s)
		if undo := (&admission{jobs: n.jobs, rec: s.record(), once: "once"}).Undo(); undo != nil {
			t.Error("a job with an Idempotency-Key is taken back")
		}
		undo := (&admission{jobs: n.jobs, rec: s.record()}).Undo()
		for i, want := range []bool{true, false} {
			ended, err := n.books.EndJob(t.Context(), ledger.JobHold{Request: s.Request, Account: s.Account, Key: s.Key}, undo)
			if err != nil || ended != want {
				t.Fatalf("undone for the time %d: %v %v", i+1, ended, err)
			}
		}
		if shows := c.poll(n, "image", id); shows.Status != row.StatusFailed || shows.Error.Code != string(fault.UpstreamError) {
			t.Errorf("%+v", shows)
		}
		c.checkHeld(0)
		c.audit(0)
	})
}

func (c *cluster) deleteKey() {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error { return account.DeleteKeyTx(tx, c.key) })
}

// TestSubmitTwice commits a submission again, like a node that crashed after a lost answer. Both
// are the same job.
func TestSubmitTwice(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		if first, second := c.submit(n, s), c.submit(n, s); first != second {
			t.Errorf("%s and %s", first, second)
		}
		c.checkRows(1, 1, 1)
		c.audit(0)
	})
}
