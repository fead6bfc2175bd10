package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// isFault reports whether err is a fault with the given code.
func isFault(err error, code fault.Code) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code == code
}

// TestTest checks that Test sends a test event at once, returns the result and logs one attempt.
func TestTest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		if _, err := n.Test(t.Context(), "acct_1"); !isFault(err, fault.InvalidRequest) {
			t.Errorf("Test without an address: %v, want %s", err, fault.InvalidRequest)
		}
		r := newReceiver(t, nil)
		secret := env.endpoint(n, "acct_1", r.URL+"/hook") // no chosen types
		result, err := n.Test(t.Context(), "acct_1")
		if err != nil || result.Status != 200 || result.Error != "" || len(r.requests()) != 1 {
			t.Fatalf("Test returned %+v and error %v, want status 200", result, err)
		}
		p := r.requests()[0]
		verify(t, secret, p)
		var e struct {
			Type string
			Data struct{ Message string }
		}
		if err := json.Unmarshal([]byte(p.body), &e); err != nil || e.Type != TestEvent || e.Data.Message == "" {
			t.Errorf("the body is %s, want a test event with a message; error %v", p.body, err)
		}
		r.respond(status(418))
		if result, err = n.Test(t.Context(), "acct_1"); err != nil || result.Status != 418 || result.Error == "" {
			t.Errorf("Test returned %+v and error %v, want status 418", result, err)
		}
		r.respond(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if result, err = n.Test(t.Context(), "acct_1"); err != nil || result.Status != 0 || result.Error == "" {
			t.Errorf("Test returned %+v and error %v, want no status", result, err)
		}
		env.clock.Advance(time.Hour)
		n.settle()
		list := env.log("acct_1")
		var states []string
		for _, d := range list {
			if d.Type != TestEvent || len(d.Attempts) != 1 || d.NextMS != 0 {
				t.Errorf("the delivery is %+v, want a test event with one attempt", d)
			}
			states = append(states, d.State)
		}
		slices.Sort(states)
		if strings.Join(states, " ") != "delivered failed failed" || len(r.requests()) != 3 {
			t.Errorf("states %v after %d requests, want one delivered and two failed after 3", states, len(r.requests()))
		}
		env.disable("acct_1", true)
		if _, err := n.Test(t.Context(), "acct_1"); !isFault(err, fault.InvalidRequest) || len(r.requests()) != 3 {
			t.Errorf("Test for a disabled account: %v, want %s", err, fault.InvalidRequest)
		}
	})
}

// TestTestsDoNotWaitForOtherAccounts checks that each account has its own limit of concurrent tests, and
// that a test uses the secret at the start of its request.
func TestTestsDoNotWaitForOtherAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		g := newGate()
		stalling, healthy := newReceiver(t, g.answer), newReceiver(t, nil)
		env.endpoint(n, "acct_1", stalling.URL)
		env.endpoint(n, "acct_2", healthy.URL)
		var wg sync.WaitGroup
		try := func() {
			if result, err := n.Test(context.Background(), "acct_1"); err != nil || result.Status != 200 {
				t.Errorf("Test returned %+v and error %v, want status 200", result, err)
			}
		}
		for range maxManualEach {
			wg.Go(try)
		}
		g.wait(maxManualEach)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := n.Test(canceled, "acct_1"); !errors.Is(err, context.Canceled) {
			t.Errorf("Test above the limit with a canceled context: %v, want %v", err, context.Canceled)
		}
		wg.Go(try)
		if result, err := n.Test(t.Context(), "acct_2"); err != nil || result.Status != 200 {
			t.Errorf("Test for another account returned %+v and error %v, want status 200", result, err)
		}
		var secret string
		env.update(func(tx *store.Tx) (err error) { secret, err = RollTx(tx, "acct_1"); return err })
		close(g.open)
		wg.Wait()
		posts := stalling.requests()
		if len(posts) != maxManualEach+1 || stalling.top > maxManualEach {
			t.Fatalf("%d requests and up to %d at a time, want %d and %d", len(posts), stalling.top, maxManualEach+1, maxManualEach)
		}
		verify(t, secret, posts[maxManualEach])
		if accounts := n.manualByAccount.Len(); accounts != 0 {
			t.Errorf("manualByAccount has %d accounts, want none", accounts)
		}
	})
}

// TestResend checks that a resend sends the same event again without a change of the schedule, and that
// a 2xx completes the delivery.
func TestResend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Retries = schedule[:1] })
		r := newReceiver(t, status(500))
		env.callback(n, "acct_1", r.URL)
		n.settle()
		d := env.log("acct_1")[0]
		// A failed resend of a pending delivery does not change the schedule.
		env.clock.Advance(time.Second)
		got, err := n.Resend(t.Context(), d.ID)
		if err != nil || got.State != "pending" || got.NextMS != d.NextMS || len(got.Attempts) != 2 || got.Attempts[1].Status != 500 {
			t.Fatalf("Resend returned %+v and error %v, want pending with 2 attempts", got, err)
		}
		env.clock.Advance(time.Minute)
		n.settle()
		if got = env.log("acct_1")[0]; got.State != "failed" || len(got.Attempts) != 3 {
			t.Fatalf("the delivery is %+v, want failed with 3 attempts", got)
		}
		// A failed resend of a failed delivery starts no new schedule.
		if got, err = n.Resend(t.Context(), d.ID); err != nil || got.State != "failed" || got.NextMS != 0 || len(got.Attempts) != 4 {
			t.Fatalf("Resend returned %+v and error %v, want failed with 4 attempts", got, err)
		}
		env.clock.Advance(24 * time.Hour)
		n.settle()
		r.respond(nil)
		env.update(func(tx *store.Tx) error { _, err := RollTx(tx, "acct_1"); return err })
		if got, err = n.Resend(t.Context(), d.ID); err != nil || got.State != "delivered" || len(got.Attempts) != 5 {
			t.Fatalf("Resend returned %+v and error %v, want delivered with 5 attempts", got, err)
		}
		posts := r.requests()
		if len(posts) != 5 {
			t.Fatalf("%d requests, want 5", len(posts))
		}
		for _, p := range posts {
			if p.id != posts[0].id || p.body != jobBody {
				t.Errorf("the request is %+v, want the id and body of the first", p)
			}
		}
		verify(t, env.secret("acct_1"), posts[4])
		if posts[4].timestamp == posts[3].timestamp {
			t.Error("the resend has the timestamp of the attempt before")
		}
		if _, err := n.Resend(t.Context(), "dlv_nobody"); !isFault(err, fault.NotFound) {
			t.Errorf("Resend of an unknown delivery: %v, want %s", err, fault.NotFound)
		}
	})
}

// TestSuccessfulResendEndsSchedule checks that no attempt follows a successful resend, even if a scheduled
// attempt was running.
func TestSuccessfulResendEndsSchedule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(status(500))
		r.respond(nil)
		d, err := n.Resend(t.Context(), env.log("acct_1")[0].ID)
		if err != nil || d.State != "delivered" || d.NextMS != 0 {
			t.Fatalf("Resend returned %+v and error %v, want delivered", d, err)
		}
		env.clock.Advance(time.Hour)
		n.settle()
		if len(r.requests()) != 2 {
			t.Errorf("%d requests, want 2", len(r.requests()))
		}
		env.checkQueueIsEmpty()
		// A resend during an attempt does not delete the attempt's queue row.
		g := newGate()
		r.respond(func(w http.ResponseWriter, req *http.Request) { g.answer(w, req); w.WriteHeader(500) })
		env.callback(n, "acct_2", r.URL)
		n.step()
		g.wait(1)
		r.respond(nil)
		if d, err = n.Resend(t.Context(), env.log("acct_2")[0].ID); err != nil || d.State != "delivered" {
			t.Fatalf("Resend during an attempt returned %+v and error %v, want delivered", d, err)
		}
		close(g.open)
		n.settle()
		env.clock.Advance(time.Hour)
		n.settle()
		if d := env.log("acct_2")[0]; d.State != "delivered" || len(d.Attempts) != 2 || env.count("webhook_queue") != 0 {
			t.Errorf("the delivery is %+v, want delivered with 2 attempts", d)
		}
	})
}

// TestMaxAttempts checks that Resend rejects a delivery with maxAttempts.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(nil)
		d := env.log("acct_1")[0]
		env.update(func(tx *store.Tx) error {
			for range maxAttempts - 1 {
				if err := logTx(tx, d.ID, outcome{}); err != nil {
					return err
				}
			}
			return nil
		})
		if _, err := n.Resend(t.Context(), d.ID); !isFault(err, fault.InvalidRequest) || len(r.requests()) != 1 {
			t.Errorf("Resend after %d attempts: %v, want %s", maxAttempts, err, fault.InvalidRequest)
		}
	})
}

// TestForget checks that Forget deletes the ended deliveries past the retention with their attempts.
func TestForget(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Retention = time.Hour; o.Retries = []time.Duration{100 * time.Hour} })
		r := newReceiver(t, nil)
		env.emit(func(q *store.Batch, nowMS int64) {
			for range maxForget + 20 {
				n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageFailed, Body: []byte(jobBody), Callback: r.URL})
			}
		})
		n.settle()
		r.respond(status(500))
		env.callback(n, "acct_1", r.URL)
		n.settle()
		env.clock.Advance(time.Hour)
		env.callback(n, "acct_2", r.URL)
		n.settle()
		if err := n.Forget(t.Context()); err != nil || env.count("webhook_delivery") != maxForget+22 {
			t.Errorf("the log has %d entries at the end of the retention, want %d; error %v", env.count("webhook_delivery"), maxForget+22, err)
		}
		env.clock.Advance(time.Millisecond)
		if err := n.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := env.log("acct_1"); len(d) != 1 || d[0].State != "pending" {
			t.Errorf("%d entries of acct_1, want only the pending one", len(d))
		}
		if len(env.log("acct_2")) != 1 || env.count("webhook_attempt") != 2 {
			t.Errorf("the log has %d attempts, want 2", env.count("webhook_attempt"))
		}
		if _, err := n.Resend(context.Background(), "dlv_gone"); err == nil || !strings.Contains(err.Error(), "1h0m0s") {
			t.Errorf("Resend of a deleted delivery: %v, want an error with the retention", err)
		}
	})
}

// TestOwnEvent checks that only the account of an event finds the event, and that BodyTx returns the sent
// bytes.
func TestOwnEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(nil)
		d := env.log("acct_1")[0]
		env.update(func(tx *store.Tx) error {
			if e, found, err := n.OwnEventTx(tx, "acct_1", d.Event); err != nil || !found || e.ID != d.ID || len(e.Attempts) != 1 {
				t.Errorf("OwnEventTx returned %+v, %v and error %v, want delivery %s", e, found, err, d.ID)
			}
			if _, found, err := n.OwnEventTx(tx, "acct_2", d.Event); err != nil || found {
				t.Errorf("OwnEventTx for another account returned %v and error %v, want false", found, err)
			}
			if body, err := BodyTx(tx, d.ID); err != nil || body != r.requests()[0].body {
				t.Errorf("BodyTx returned %s, want %s; error %v", body, r.requests()[0].body, err)
			}
			return nil
		})
	})
}

// TestExpiredDelivery checks that an expired delivery is neither listed nor sent again, even before its
// row is deleted, unless the delivery is pending.
func TestExpiredDelivery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Retention = time.Hour })
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		n.settle()
		ended := env.log("acct_1")[0].ID
		env.callback(n, "acct_1", "http://127.0.0.1:9/")
		n.settle()
		list := func() (ids []string) {
			env.update(func(tx *store.Tx) error {
				page, _, err := n.DeliveriesTx(tx, "acct_1", "", 10)
				for _, d := range page {
					ids = append(ids, d.ID)
				}
				return err
			})
			return ids
		}
		env.clock.Advance(time.Hour)
		if ids := list(); len(ids) != 2 || !slices.Contains(ids, ended) {
			t.Errorf("at the end of the retention the log has %v, want 2 entries with %s", ids, ended)
		}
		env.clock.Advance(time.Millisecond)
		if ids := list(); len(ids) != 1 || ids[0] == ended {
			t.Errorf("after the retention the log has %v, want only the pending delivery", ids)
		}
		if _, err := n.Resend(t.Context(), ended); err == nil || len(r.requests()) != 1 {
			t.Errorf("Resend of an expired delivery: error %v after %d requests, want an error after 1", err, len(r.requests()))
		}
		if env.count("webhook_delivery") != 2 {
			t.Errorf("the table has %d deliveries, want 2", env.count("webhook_delivery"))
		}
	})
}

// TestPages checks that the pages of the log have all of an account's entries, newest first.
func TestPages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		for range 7 {
			env.callback(n, "acct_1", "http://127.0.0.1:9/")
			env.callback(n, "acct_2", "http://127.0.0.1:9/")
			env.clock.Advance(time.Millisecond)
		}
		var seen []string
		after := ""
		for more := true; more; {
			env.update(func(tx *store.Tx) (err error) {
				var list []Delivery
				if list, more, err = n.DeliveriesTx(tx, "acct_1", after, 3); err != nil {
					return err
				}
				for _, d := range list {
					seen = append(seen, d.ID)
				}
				after = list[len(list)-1].ID
				return nil
			})
		}
		if len(seen) != 7 || !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("the pages have %v, want 7 entries, newest first", seen)
		}
	})
}

// TestEndpointsAreChecked checks that invalid addresses and types are rejected and change nothing.
func TestEndpointsAreChecked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		put := func(e Endpoint) (got Endpoint, err error) {
			err = env.db.Update(t.Context(), func(tx *store.Tx) error { got, err = n.PutEndpointTx(tx, "acct_1", e); return err })
			return got, err
		}
		for _, c := range []struct {
			e     Endpoint
			param string
		}{
			{Endpoint{URL: "http://10.0.0.1/"}, "url"}, {Endpoint{URL: "ftp://example.com/"}, "url"},
			{Endpoint{URL: "https://example.com/", Events: []string{ImageFailed, "image.started"}}, "events[1]"},
			{Endpoint{Events: []string{""}}, "events[0]"}, {Endpoint{Events: []string{"%"}}, "events[0]"},
		} {
			_, err := put(c.e)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.InvalidRequest || f.Param != c.param {
				t.Errorf("PutEndpointTx(%+v): %v, want %s at %s", c.e, err, fault.InvalidRequest, c.param)
			}
		}
		_, err := put(Endpoint{URL: "ftp://example.com/", Events: []string{"image.started"}})
		if text := fmt.Sprint(err); strings.Count(text, "invalid_request") != 2 || !strings.Contains(text, "The types are") {
			t.Errorf("PutEndpointTx with a bad address and a bad type: %v, want two errors", err)
		}
		if env.count("webhook_endpoint") != 0 {
			t.Error("a rejected change wrote an endpoint")
		}
		e, err := put(Endpoint{URL: "https://example.com/hook", Events: []string{ImageFailed, BalanceLow, ImageFailed}, Secret: "ignored"})
		if err != nil || e.URL != "https://example.com/hook" || fmt.Sprint(e.Events) != "[image.failed balance.low]" ||
			!strings.HasPrefix(e.Secret, "whsec_") {
			t.Errorf("PutEndpointTx returned %+v and error %v, want the address, two types and a new secret", e, err)
		}
	})
}
