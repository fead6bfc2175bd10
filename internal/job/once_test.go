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
	var wg sync.WaitGroup
	for i, n := range nodes {
		s := c.submission(n, "easel-1", 1)
		s.OnceKey, s.Fingerprint = key, []byte("the same")
		wg.Go(func() { bodies[i], errs[i] = n.jobs.Submit(c.t.Context(), s) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return bodies
}

// TestConcurrentRepeats checks that concurrent requests with one Idempotency-Key get the same job.
func TestConcurrentRepeats(t *testing.T) {
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

// TestCanceledRepeat checks that a submission canceled while it waits for another submission with the
// same key writes nothing.
func TestCanceledRepeat(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{}, &generator{})
		s := c.submission(n, "easel-1", 1)
		s.OnceKey, s.Fingerprint = "k", []byte("the same")
		unlock, err := n.jobs.onceLocks.Acquire(t.Context(), s.Account+" "+s.OnceKey)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := n.jobs.Submit(ctx, s)
			answer <- err
		}()
		cancel()
		select {
		case err := <-answer:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Submit: %v, want %v", err, context.Canceled)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Submit still waits for the lock after its context was canceled")
		}
		c.checkRows(0, 0, 0)
		unlock()
		if keys := n.jobs.onceLocks.Len(); keys > 0 {
			t.Errorf("onceLocks has %d keys, want 0", keys)
		}
		c.submitTogether("k", n)
		c.audit(0)
	})
}

// TestOnceKey checks that an Idempotency-Key belongs to one account and request, and expires with the
// job's record.
func TestOnceKey(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := twoLineCluster(t, url, &generator{blocks: true}, &generator{})
		ctx := t.Context()
		send := func(key, request string) (string, error) {
			s := c.submission(n, "easel-1", 1)
			s.OnceKey, s.Fingerprint = key, []byte(request)
			body, err := n.jobs.Submit(ctx, s)
			return string(body), err
		}
		first, err := send("k", "one")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := send("k", "one"); err != nil || again != first {
			t.Errorf("repeated request: got %s and error %v, want %s", again, err, first)
		}
		if body, err := n.jobs.FindOnce(ctx, c.account, "k", []byte("one")); err != nil || string(body) != first {
			t.Errorf("FindOnce returned %s and error %v, want %s", body, err, first)
		}
		if _, err := send("k", "two"); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("Submit of another request with the key: %v, want %s", err, fault.InvalidRequest)
		}
		if _, err := n.jobs.FindOnce(ctx, c.account, "k", []byte("two")); err == nil || fault.Of(err).Code != fault.InvalidRequest {
			t.Errorf("FindOnce for another request with the key: %v, want %s", err, fault.InvalidRequest)
		}
		if other, err := send("K", "one"); err != nil || other == first {
			t.Errorf("another key: got %s and error %v, want another job", other, err)
		}
		owner, key := c.account, c.key
		c.account, c.key = c.open(cent * 100)
		if other, err := send("k", "two"); err != nil || other == first {
			t.Errorf("another account: got %s and error %v, want another job", other, err)
		}
		c.account, c.key = owner, key

		// A key expires with the record, deleted or not.
		id := strings.Split(first, `"`)[3]
		n.step(n.jobs.Start)
		c.await(n, "image", id, final)
		if again, err := send("k", "one"); err != nil || again != first {
			t.Errorf("repeated request after the job's end: got %s and error %v, want %s", again, err, first)
		}
		c.age(id, n.jobs.opts.Retention)
		if body, err := n.jobs.FindOnce(ctx, c.account, "k", []byte("two")); body != nil || err != nil {
			t.Errorf("FindOnce with an expired record: got %s and error %v, want no job", body, err)
		}
		if later, err := send("k", "two"); err != nil || later == first {
			t.Errorf("the key of an expired record: got %s and error %v, want another job", later, err)
		}
	})
}

// age moves the end of a job and its receipt into the past.
func (c *cluster) age(id string, d time.Duration) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		changed, err := tx.Exec(`UPDATE job SET ended_ms = ended_ms - $1 WHERE id = $2 AND ended_ms > 0`, d.Milliseconds(), id)
		if err == nil && changed != 1 {
			err = fmt.Errorf("changed %d ended jobs, want 1", changed)
		}
		if err == nil {
			_, err = tx.Exec(`UPDATE ledger_receipt SET ended_ms = ended_ms - $1 WHERE job = $2`, d.Milliseconds(), id)
		}
		return err
	})
}

// TestReferencesAreDeleted checks that the references of a repeated or rejected submission are deleted
// at once, and the references of a job at the job's end.
func TestReferencesAreDeleted(t *testing.T) {
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
		exists := func(f media.File) bool {
			body, _, err := n.jobs.opts.Media.Open(t.Context(), f.Name)
			if err == nil {
				body.Close()
			}
			return err == nil
		}
		id, first := submit("k", c.account, 1)
		_, second := submit("k", c.account, 1)
		_, third := submit("k", "acct_unknown", 1)
		if !exists(first) || exists(second) || exists(third) {
			t.Errorf("references exist: job %t, repeated request %t, rejected request %t, want only the job's",
				exists(first), exists(second), exists(third))
		}
		m := c.generators["first"].(*generator)
		m.before = func(_ context.Context, step string) error {
			if !exists(first) {
				t.Error("the reference was deleted before its job ended")
			}
			return nil
		}
		n.step(n.jobs.Start)
		c.await(n, "image", id, final)
		if exists(first) {
			t.Error("the reference still exists after its job has ended")
		}
		if refs := m.submitted[0].References; len(refs) != 1 || refs[0].Size != first.Size || refs[0].URL != "" ||
			refs[0].Role != "last_frame" {
			t.Errorf("the line got the references %+v, want one last_frame of %d bytes", refs, first.Size)
		}
	})
}
