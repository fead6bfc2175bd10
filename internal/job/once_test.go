package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/media"
	"tollgate/internal/media/format"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/chatcall"
)

// submitTogether submits the same request with one key concurrently on the nodes, and returns the bodies.
func (c *cluster) submitTogether(key string, nodes ...*testNode) [][]byte {
	c.t.Helper()
	bodies := make([][]byte, len(nodes))
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		s := c.submission(n, "easel-1", 1)
		s.OnceKey, s.Fingerprint = key, []byte("the same")
		all.Go(func() { bodies[i], errs[i] = n.jobs.Submit(c.t.Context(), s) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return bodies
}

// TestTwins submits equal requests concurrently. All get the same job.
func TestTwins(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, url string, nodes int) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{}, "second": &generator{}})
		var callers []*testNode
		for range nodes {
			n := c.idleNode()
			for range 8 {
				callers = append(callers, n)
			}
		}
		for round := range 3 {
			bodies := c.submitTogether(fmt.Sprintf("key-%d", round), callers...)
			for _, body := range bodies {
				if !bytes.Equal(body, bodies[0]) {
					t.Errorf("equal submissions got %s and %s", bodies[0], body)
				}
			}
			keys := int64(round) + 1
			c.checkRows(keys, keys, keys)
		}
		c.audit(0)
	}
	oneAndTwoNodes(t, test)
}

// TestCanceledTwin cancels a submission that waits for another one with the same key. It reserves
// and inserts nothing.
func TestCanceledTwin(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		s.OnceKey, s.Fingerprint = "k", []byte("the same")
		twin, err := n.jobs.onceLocks.Acquire(t.Context(), s.Account+" "+s.OnceKey)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := n.jobs.Submit(ctx, s)
			answer <- err
		}()
		leave()
		select {
		case err := <-answer:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for its twin although its client has left")
		}
		c.checkRows(0, 0, 0)
		twin()
		if keys := n.jobs.onceLocks.Len(); keys > 0 {
			t.Errorf("%d keys are remembered", keys)
		}
		c.submitTogether("k", n)
		c.audit(0)
	})
}

// TestOnceKey checks the scope and the lifetime of a key.
func TestOnceKey(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{blocks: true}, &generator{})
		ctx := t.Context()
		send := func(key, print string) (string, error) {
			s := c.submission(n, "easel-1", 1)
			s.OnceKey, s.Fingerprint = key, []byte(print)
			body, err := n.jobs.Submit(ctx, s)
			return string(body), err
		}
		first, err := send("k", "one")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := send("k", "one"); err != nil || again != first {
			t.Errorf("%s %v, want %s", again, err, first)
		}
		if known, err := n.jobs.FindOnce(ctx, c.account, "k", []byte("one")); err != nil || string(known) != first {
			t.Errorf("known: %s %v", known, err)
		}
		if _, err := send("k", "two"); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("another request: %v", err)
		}
		if _, err := n.jobs.FindOnce(ctx, c.account, "k", []byte("two")); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("another request, known: %v", err)
		}
		if other, err := send("K", "one"); err != nil || other == first {
			t.Errorf("another key: %s %v", other, err)
		}
		owner, key := c.account, c.key
		c.account, c.key = c.open(cent * 100)
		if other, err := send("k", "two"); err != nil || other == first {
			t.Errorf("another account: %s %v", other, err)
		}
		c.account, c.key = owner, key

		// A key expires with the record, deleted or not.
		id := strings.Split(first, `"`)[3]
		n.step(n.jobs.Start)
		c.await(n, "image", id, final)
		if again, err := send("k", "one"); err != nil || again != first {
			t.Errorf("after the end: %s %v", again, err)
		}
		c.age(id, n.jobs.opts.Retention)
		if known, err := n.jobs.FindOnce(ctx, c.account, "k", []byte("two")); known != nil || err != nil {
			t.Errorf("known beyond its record: %s %v", known, err)
		}
		if later, err := send("k", "two"); err != nil || later == first {
			t.Errorf("the key of a record that has run out: %s %v", later, err)
		}
	})
}

// age moves the end of a job and its receipt into the past.
func (c *cluster) age(id string, by time.Duration) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		changed, err := tx.Exec(`UPDATE job SET ended_ms = ended_ms - $1 WHERE id = $2 AND ended_ms > 0`, by.Milliseconds(), id)
		if err == nil && changed != 1 {
			err = fmt.Errorf("%d jobs have ended", changed)
		}
		if err == nil {
			_, err = tx.Exec(`UPDATE ledger_receipt SET ended_ms = ended_ms - $1 WHERE job = $2`, by.Milliseconds(), id)
		}
		return err
	})
}

// TestReferencesOfTwins checks that the references of a submission without a job are deleted at
// once, and those of a job at its end.
func TestReferencesOfTwins(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{blocks: true}, &generator{})
		submit := func(key string, owner string, amount int64) (string, media.File) {
			s := c.submission(n, "easel-1", amount)
			file, err := n.jobs.opts.Media.Keep(t.Context(), s.Job, picture(), format.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			s.Roles = []string{"last_frame"}
			s.References, s.OnceKey, s.Fingerprint, s.Account = []media.File{file}, key, []byte("x"), owner
			body, err := n.jobs.Submit(t.Context(), s)
			if owner == c.account && err != nil {
				t.Fatal(err)
			}
			return strings.Split(string(body)+`""""`, `"`)[3], file
		}
		there := func(f media.File) bool {
			body, _, err := n.jobs.opts.Media.Open(t.Context(), f.Name)
			if err == nil {
				body.Close()
			}
			return err == nil
		}
		id, first := submit("k", c.account, 1)
		_, second := submit("k", c.account, 1)
		_, third := submit("k", "acct_unknown", 1)
		if !there(first) || there(second) || there(third) {
			t.Errorf("references: of the job %t, of its twin %t, of a refused one %t", there(first), there(second), there(third))
		}
		m := c.generators["first"].(*generator)
		m.before = func(_ context.Context, step string) error {
			if !there(first) {
				t.Error("the reference is gone while its job runs")
			}
			return nil
		}
		n.step(n.jobs.Start)
		c.await(n, "image", id, final)
		if there(first) {
			t.Error("the reference is still there after its job has ended")
		}
		if work := m.submitted[0]; len(work.References) != 1 || work.References[0].Size != first.Size || work.References[0].URL != "" ||
			work.References[0].Role != "last_frame" {
			t.Errorf("the line got %+v", work.References)
		}
	})
}
