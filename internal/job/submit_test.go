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

// rows counts the job records, the runs of unfinished jobs and the open holds.
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
	if j, r, h := c.rows(); j != jobs || r != running || h != holds {
		c.t.Errorf("got %d jobs, %d runs and %d holds, want %d, %d and %d", j, r, h, jobs, running, holds)
	}
}

func (c *cluster) checkHeld(want money.Amount) {
	c.t.Helper()
	if held := c.held(); held != want {
		c.t.Errorf("the account's holds are %s, want %s", held, want)
	}
}

// held returns the amount held of the account.
func (c *cluster) held() (held money.Amount) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) error {
		states, err := ledger.AccountsTx(tx, []string{c.account})
		held = states[c.account].Held
		return err
	})
	return held
}

// changeKey changes the settings of the key.
func (c *cluster) changeKey(set func(*account.KeySettings)) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		_, err := account.ChangeKeyTx(tx, c.key, func(s *account.KeySettings) error { set(s); return nil })
		return err
	})
}

func ptr[T any](v T) *T { return &v }

// TestSubmit checks that a submission holds the maximum cost and queues a job, and only its account can
// read the job.
func TestSubmit(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		id := c.submit(n, c.submission(n, "easel-1", 3))
		c.checkRows(1, 1, 1)
		c.checkHeld(9 * cent)
		if s := c.poll(n, "image", id); s.Status != row.StatusQueued || s.Created == 0 || s.Position == nil || *s.Position != 0 || s.ETA == nil ||
			*s.ETA < 1 || s.Data != nil || s.Error != nil {
			t.Errorf("the submitted job is %+v, want queued at position 0", s)
		}
		for name, args := range map[string][3]string{
			"another account": {"acct_other", "image", id}, "the other kind": {c.account, "video", id}, "no such job": {c.account, "image", NewID()},
			"any text": {c.account, "image", "';--"},
		} {
			if body, err := n.jobs.Body(t.Context(), args[0], args[1], args[2]); err == nil || fault.Of(err).Code != fault.JobNotFound {
				t.Errorf("%s: got %s and error %v, want %s", name, body, err, fault.JobNotFound)
			}
		}
		c.audit(0)
	})
}

// TestAdvice expects advice in a 402 on how to make the job cheaper.
func TestAdvice(t *testing.T) {
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
				t.Errorf("Submit: %v, want %s with the advice %q", err, fault.InsufficientQuota, advice)
			}
		})
	}
}

// TestSubmitRejected checks that Admissible predicts a rejection and a rejected submission
// writes nothing.
func TestSubmitRejected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		set   func(t *testing.T, c *cluster)
		sends int // submissions before the rejected one
		code  fault.Code
	}{
		{"balance", func(t *testing.T, c *cluster) { c.account, c.key = c.open(5 * cent) }, 1, fault.InsufficientQuota},
		{"daily budget", func(t *testing.T, c *cluster) {
			c.changeKey(func(s *account.KeySettings) { s.DailyBudget = ptr(5 * cent) })
		}, 1, fault.InsufficientQuota},
		{"total limit", func(t *testing.T, c *cluster) {
			c.changeKey(func(s *account.KeySettings) { s.TotalLimit = ptr(8 * cent) })
		}, 2, fault.InsufficientQuota},
		{"rate", func(t *testing.T, c *cluster) {
			c.changeKey(func(s *account.KeySettings) { s.RPM = ptr(int64(2)) })
		}, 2, fault.RateLimitExceeded},
		{"free quota", func(t *testing.T, c *cluster) { c.apply(freeDocument) }, 2, fault.RateLimitExceeded},
		{"disabled key", func(t *testing.T, c *cluster) {
			c.changeKey(func(s *account.KeySettings) { s.Disabled = true })
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
			_, predicted := n.jobs.Admissible(t.Context(), s)
			body, err := n.jobs.Submit(t.Context(), s)
			if err == nil || fault.Of(err).Code != tt.code {
				t.Fatalf("Submit returned %s and error %v, want %s", body, err, tt.code)
			}
			if predicted == nil || withoutNumbers(predicted) != withoutNumbers(err) || fault.Of(predicted).Code != tt.code {
				t.Errorf("Admissible returned error %v, want %v", predicted, err)
			}
			sent := int64(tt.sends)
			c.checkRows(sent, sent, sent)
			c.checkHeld(before)
			if body, err := n.jobs.FindOnce(t.Context(), c.account, "once", []byte("a")); body != nil || err != nil {
				t.Errorf("FindOnce after a rejected submission returned %s and error %v, want no job", body, err)
			}
			c.audit(0)
		})
	}
}

// withoutNumbers returns an error's message without digits, because seconds in the message change
// between two calls.
func withoutNumbers(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, fault.Of(err).Message())
}

// TestAdmissible checks that Admissible writes nothing and a repeated request gets the first job
// although the balance is used up.
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
				t.Fatalf("Admissible returned %s and error %v, want neither", body, err)
			}
		}
		c.checkRows(0, 0, 0)
		first, err := n.jobs.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		repeated := s
		repeated.Job, repeated.Request = NewID(), "req_twin"
		if body, err := n.jobs.Admissible(t.Context(), repeated); err != nil || string(body) != string(first) {
			t.Errorf("Admissible for a repeated request: %s %v, want %s", body, err, first)
		}
		repeated.Fingerprint = []byte("b")
		if body, err := n.jobs.Admissible(t.Context(), repeated); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("another request with the key: got %s and error %v, want %s", body, err, fault.InvalidRequest)
		}
		repeated.OnceKey = "another"
		if body, err := n.jobs.Admissible(t.Context(), repeated); err == nil || fault.Of(err).Code != fault.InsufficientQuota {
			t.Errorf("another key: got %s and error %v, want %s", body, err, fault.InsufficientQuota)
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

// TestFailedJobsKeepFreeQuota expects failed jobs not to use up the free daily requests.
func TestFailedJobsKeepFreeQuota(t *testing.T) {
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
				t.Fatalf("the job is %+v, want failed", s)
			}
		}
		m.submit = nil
		for range 2 {
			c.await(n, "image", c.submit(n, c.submission(n, "easel-1", 1)), final)
		}
		if _, err := n.jobs.Submit(t.Context(), c.submission(n, "easel-1", 1)); err == nil || fault.Of(err).Code != fault.RateLimitExceeded {
			t.Errorf("Submit beyond the free quota: %v, want %s", err, fault.RateLimitExceeded)
		}
		c.audit(0)
	})
}

// TestSubmitWithChangedKey expects Submit to reject an old version of the key's row.
func TestSubmitWithChangedKey(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		c.changeKey(func(k *account.KeySettings) { k.Name = "new" })
		if _, err := n.jobs.Submit(t.Context(), s); !errors.Is(err, ledger.ErrKeyChanged) {
			t.Fatalf("Submit with the old key version: %v, want %v", err, ledger.ErrKeyChanged)
		}
		s.KeyVersion = c.keyVersion(c.key)
		c.submit(n, s)
		c.audit(0)
	})
}

// TestUndo checks that Undo ends a job without an Idempotency-Key once, and keeps a job with a key.
func TestUndo(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		id := c.submit(n, s)
		if undo := (&admission{jobs: n.jobs, rec: s.record(), onceKey: "once"}).Undo(); undo != nil {
			t.Error("Undo ends a job with an Idempotency-Key")
		}
		undo := (&admission{jobs: n.jobs, rec: s.record()}).Undo()
		for i, want := range []bool{true, false} {
			ended, err := n.ledger.EndJob(t.Context(), ledger.JobHold{Request: s.Request, Account: s.Account, Key: s.Key}, undo)
			if err != nil || ended != want {
				t.Fatalf("EndJob %d: got %v and error %v, want %v", i+1, ended, err, want)
			}
		}
		c.checkFailed(n, id, fault.UpstreamError, "after Undo")
		c.checkHeld(0)
		c.audit(0)
	})
}

func (c *cluster) deleteKey() {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error { return account.DeleteKeyTx(tx, c.key) })
}

// TestSubmitTwice expects the same job from a repeated commit of a submission.
func TestSubmitTwice(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		if first, second := c.submit(n, s), c.submit(n, s); first != second {
			t.Errorf("the repeated submission returned job %s, want %s", second, first)
		}
		c.checkRows(1, 1, 1)
		c.audit(0)
	})
}
