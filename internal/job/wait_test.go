package job

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
)

// waitFor starts a client that waits for a job, and returns its result.
func (c *cluster) waitFor(ctx context.Context, n *testNode, id string) <-chan *row.AwaitedResult {
	c.t.Helper()
	result := make(chan *row.AwaitedResult, 1)
	before := len(n.jobs.waits.jobs())
	go func() { result <- n.jobs.Await(ctx, c.account, id) }()
	until(c.t, "the client waits", func() bool { return len(n.jobs.waits.jobs()) > before || len(result) > 0 })
	return result
}

// TestAwait checks that clients get the result of a job that succeeds and the error of a job that
// fails, at once if the job has ended on their node.
func TestAwait(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		first := &generator{}
		c, n := oneLineCluster(t, url, first)
		id := c.submit(n, c.submission(n, "easel-1", 2))
		waiting := []<-chan *row.AwaitedResult{c.waitFor(t.Context(), n, id), c.waitFor(t.Context(), n, id)}
		n.runJobs()
		waiting = append(waiting, c.waitFor(t.Context(), n, id)) // after the end
		links := c.poll(n, upstream.KindImage, id).Data
		for i, result := range waiting {
			got := <-result
			if got == nil || got.Failure != nil || len(got.Links) != 2 || got.Links[0] != links[0].URL || got.Created == 0 ||
				string(got.Usage) != `{"images":2,"resolution":"1K","model":"easel-1","input_tokens":0,"output_tokens":0,`+
					`"total_tokens":0,"input_tokens_details":{"text_tokens":0,"image_tokens":0}}` {
				t.Errorf("client %d got %+v, want the links %v", i, got, links)
			}
		}
		first.submit = failSubmit(0, upstream.ModerationFailure("image", "no hats", false))
		id = c.submit(n, c.submission(n, "easel-1", 1))
		result := c.waitFor(t.Context(), n, id)
		n.runJobs()
		got := <-result
		if got == nil || got.Failure == nil || got.Failure.Code != fault.ModerationBlocked || got.Failure.Status() != 400 ||
			got.Failure.Fields["job"] != id || !strings.Contains(got.Failure.Message(), "no hats") {
			t.Errorf("got %+v, want moderation_blocked with status 400", got)
		}
		if n := len(n.jobs.waits.jobs()); n != 0 {
			t.Errorf("%d clients wait at the end, want 0", n)
		}
	})
}

// TestAwaitEndOnAnotherNode checks that a client learns of the end of a job on another node by
// NotifyWaits, which reads nothing if no client waits.
func TestAwaitEndOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, storetest.PostgreSQL(t), nil)
	c.generators = map[string]chatcall.Adapter{"first": &generator{}}
	c.apply(oneLine)
	here, there := c.idleNode(), c.idleNode()
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := here.jobs.NotifyWaits(ended); err != nil {
		t.Errorf("without clients: %v, want no query", err)
	}
	id := c.submit(here, c.submission(here, "easel-1", 1))
	result := c.waitFor(t.Context(), here, id)
	if err := here.jobs.NotifyWaits(ended); err == nil {
		t.Error("with a client and an ended context: no error, want that of the query")
	}
	here.step(here.jobs.NotifyWaits)
	there.runJobs()
	select {
	case got := <-result:
		t.Fatalf("got %+v before NotifyWaits", got)
	default:
	}
	here.step(here.jobs.NotifyWaits)
	if got := <-result; got == nil || len(got.Links) != 1 {
		t.Errorf("got %+v, want one link", got)
	}
}

// TestAwaitEndsWithoutResult checks the ends of a wait before the end of the job: the client's
// context, a foreign job, too many clients, and EndWaits. The job goes on.
func TestAwaitEndsWithoutResult(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		id := c.submit(n, c.submission(n, "easel-1", 1))
		ctx, leave := context.WithCancel(t.Context())
		left := c.waitFor(ctx, n, id)
		leave()
		if got := <-left; got != nil {
			t.Errorf("a client that left got %+v, want nothing", got)
		}
		ctx, leave = context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if got := n.jobs.Await(ctx, "acct_other", id); got != nil {
			t.Errorf("another account got %+v, want nothing", got)
		}
		for i := range maxWaitsPerAccount {
			if n.jobs.waits.add(c.account, fmt.Sprint(i)) == nil {
				t.Fatalf("client %d may not wait, want %d", i, maxWaitsPerAccount)
			}
		}
		if got := n.jobs.Await(t.Context(), c.account, id); got != nil { // returns at once
			t.Errorf("a client above the account's limit got %+v, want nothing", got)
		}
		for i := maxWaitsPerAccount; i < maxWaits; i++ {
			if n.jobs.waits.add(fmt.Sprint(i), "job") == nil {
				t.Fatalf("client %d may not wait, want %d on the node", i, maxWaits)
			}
		}
		if n.jobs.waits.add("acct_last", "job") != nil {
			t.Error("a client above the node's limit waits")
		}
		n.jobs.waits = newWaits()
		waiting := c.waitFor(t.Context(), n, id)
		n.jobs.EndWaits()
		if got := <-waiting; got != nil {
			t.Errorf("at the stop of the node: %+v, want nothing", got)
		}
		if got := n.jobs.Await(t.Context(), c.account, id); got != nil {
			t.Errorf("after EndWaits: %+v, want nothing", got)
		}
		n.runJobs()
		c.checkStatus(n, id, row.StatusSucceeded, "without its clients")
	})
}

// TestFetched checks which results count as fetched: polled, waited for, marked, or with a callback;
// not one that nobody asked for.
func TestFetched(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		var jobs [5]string
		for i := range jobs {
			s := c.submission(n, "easel-1", 1)
			if i == 3 {
				s.Callback = "https://example.com/hook"
			}
			jobs[i] = c.submit(n, s)
			c.poll(n, upstream.KindImage, jobs[i]) // before the end
			n.step(n.jobs.WriteFetched)
			n.runJobs()
		}
		c.poll(n, upstream.KindImage, jobs[0])
		n.jobs.Await(t.Context(), c.account, jobs[1])
		n.jobs.MarkFetched(jobs[2])
		n.step(n.jobs.WriteFetched)
		n.step(n.jobs.WriteFetched) // nothing left
		for status, want := range map[string]string{gallery.Unfetched: jobs[4], row.StatusSucceeded: ""} {
			var list []gallery.UserJob
			var counts gallery.Counts
			c.viewTx(func(tx *store.Tx) (err error) {
				if counts, err = gallery.CountTx(tx, c.account, upstream.KindImage, 100); err != nil {
					return err
				}
				list, _, err = gallery.ListTx(tx, gallery.UserFilter{Account: c.account, Kind: upstream.KindImage, Status: status, Limit: 10})
				return err
			})
			if counts.Succeeded != 5 || counts.Unfetched != 1 {
				t.Errorf("counts %+v, want 5 that succeeded and 1 not fetched", counts)
			}
			for _, e := range list {
				if e.Fetched != (e.ID != jobs[4]) || want != "" && e.ID != want {
					t.Errorf("%q: job %s with Fetched %t; want only %s not to be fetched", status, e.ID, e.Fetched, jobs[4])
				}
			}
			if len(list) == 0 {
				t.Errorf("%q: no jobs", status)
			}
		}
	})
}
