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

func TestATestIsSentAtOnceAndLogged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		if _, err := n.Test(t.Context(), "acct_1"); !isFault(err, fault.InvalidRequest) {
			t.Errorf("without an address: %v", err)
		}
		r := newReceiver(t, nil)
		secret := env.endpoint(n, "acct_1", r.URL+"/hook") // nothing chosen
		result, err := n.Test(t.Context(), "acct_1")
		if err != nil || result.Status != 200 || result.Error != "" || len(r.requests()) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		p := r.requests()[0]
		verify(t, secret, p)
		var e struct {
			Type string
			Data struct{ Message string }
		}
		if err := json.Unmarshal([]byte(p.body), &e); err != nil || e.Type != TestEvent || e.Data.Message == "" {
			t.Errorf("%s: %v", p.body, err)
		}
		r.respond(status(418))
		if result, err = n.Test(t.Context(), "acct_1"); err != nil || result.Status != 418 || result.Error == "" {
			t.Errorf("%+v, %v", result, err)
		}
		r.respond(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if result, err = n.Test(t.Context(), "acct_1"); err != nil || result.Status != 0 || result.Error == "" {
			t.Errorf("%+v, %v", result, err)
		}
		env.clock.Advance(time.Hour)
		n.settle()
		list := env.log("acct_1")
		var states []string
		for _, d := range list {
			if d.Type != TestEvent || len(d.Attempts) != 1 || d.NextMS != 0 {
				t.Errorf("%+v", d)
			}
			states = append(states, d.State)
		}
		slices.Sort(states)
		if strings.Join(states, " ") != "delivered failed failed" || len(r.requests()) != 3 {
			t.Errorf("%v, %d requests", states, len(r.requests()))
		}
		env.disable("acct_1", true)
		if _, err := n.Test(t.Context(), "acct_1"); !isFault(err, fault.InvalidRequest) || len(r.requests()) != 3 {
			t.Errorf("disabled: %v", err)
		}
	})
}

// TestTestsDoNotWaitForOtherAccounts checks that concurrent tests to a slow receiver are bounded by
// account, and that a waiting test is signed with the secret of its start.
func TestTestsDoNotWaitForOtherAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		hang := newGate()
		stalling, healthy := newReceiver(t, hang.answer), newReceiver(t, nil)
		env.endpoint(n, "acct_1", stalling.URL)
		env.endpoint(n, "acct_2", healthy.URL)
		var group sync.WaitGroup
		try := func() {
			if result, err := n.Test(context.Background(), "acct_1"); err != nil || result.Status != 200 {
				t.Errorf("%+v, %v", result, err)
			}
		}
		for range maxManualEach {
			group.Go(try)
		}
		hang.wait(maxManualEach)
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := n.Test(left, "acct_1"); !errors.Is(err, context.Canceled) {
			t.Errorf("one too many, whose caller has left: %v", err)
		}
		group.Go(try)
		if result, err := n.Test(t.Context(), "acct_2"); err != nil || result.Status != 200 {
			t.Errorf("beside them: %+v, %v", result, err)
		}
		var secret string
		env.update(func(tx *store.Tx) (err error) { secret, err = RollTx(tx, "acct_1"); return err })
		close(hang.open)
		group.Wait()
		posts := stalling.requests()
		if len(posts) != maxManualEach+1 || stalling.most > maxManualEach {
			t.Fatalf("%d requests, %d at a time", len(posts), stalling.most)
		}
		verify(t, secret, posts[maxManualEach])
		if accounts := n.manualByAccount.Len(); accounts != 0 {
			t.Errorf("%d accounts are remembered", accounts)
		}
	})
}

func TestResend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Retries = schedule[:1] })
		r := newReceiver(t, status(500))
		env.callback(n, "acct_1", r.URL)
		n.settle()
		d := env.log("acct_1")[0]
		// Pending: the schedule stays as it was, until one delivers.
		env.clock.Advance(time.Second)
		got, err := n.Resend(t.Context(), d.ID)
		if err != nil || got.State != "pending" || got.NextMS != d.NextMS || len(got.Attempts) != 2 || got.Attempts[1].Status != 500 {
			t.Fatalf("%+v, %v", got, err)
		}
		env.clock.Advance(time.Minute)
		n.settle()
		if got = env.log("acct_1")[0]; got.State != "failed" || len(got.Attempts) != 3 {
			t.Fatalf("%+v", got)
		}
		// Failed: it stays so, without a new schedule.
		if got, err = n.Resend(t.Context(), d.ID); err != nil || got.State != "failed" || got.NextMS != 0 || len(got.Attempts) != 4 {
			t.Fatalf("%+v, %v", got, err)
		}
		env.clock.Advance(24 * time.Hour)
		n.settle()
		r.respond(nil)
		env.update(func(tx *store.Tx) error { _, err := RollTx(tx, "acct_1"); return err })
		if got, err = n.Resend(t.Context(), d.ID); err != nil || got.State != "delivered" || len(got.Attempts) != 5 {
			t.Fatalf("%+v, %v", got, err)
		}
		posts := r.requests()
		if len(posts) != 5 {
			t.Fatalf("%d requests", len(posts))
		}
		for _, p := range posts {
			if p.id != posts[0].id || p.body != jobBody {
				t.Errorf("%+v", p)
			}
		}
		verify(t, env.secret("acct_1"), posts[4])
		if posts[4].stamp == posts[3].stamp {
			t.Error("an old timestamp")
		}
		if _, err := n.Resend(t.Context(), "dlv_nobody"); !isFault(err, fault.NotFound) {
			t.Error(err)
		}
	})
}

func TestAResendThatDeliversEndsTheSchedule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(status(500))
		r.respond(nil)
		d, err := n.Resend(t.Context(), env.log("acct_1")[0].ID)
		if err != nil || d.State != "delivered" || d.NextMS != 0 {
			t.Fatalf("%+v, %v", d, err)
		}
		env.clock.Advance(time.Hour)
		n.settle()
		if len(r.requests()) != 2 {
			t.Errorf("%d requests", len(r.requests()))
		}
		env.checkQueueIsEmpty()
		// While an attempt runs, a resend leaves its row to it.
		g := newGate()
		r.respond(func(w http.ResponseWriter, req *http.Request) { g.answer(w, req); w.WriteHeader(500) })
		env.callback(n, "acct_2", r.URL)
		n.step()
		g.wait(1)
		r.respond(nil)
		if d, err = n.Resend(t.Context(), env.log("acct_2")[0].ID); err != nil || d.State != "delivered" {
			t.Fatalf("%+v, %v", d, err)
		}
		close(g.open)
		n.settle()
		env.clock.Advance(time.Hour)
		n.settle()
		if d := env.log("acct_2")[0]; d.State != "delivered" || len(d.Attempts) != 2 || env.count("webhook_queue") != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func TestResendsHaveAnEnd(t *testing.T) {
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
			t.Error(err)
		}
	})
}

func TestTheLogIsKeptForItsRetention(t *testing.T) {
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
			t.Errorf("%d left at the hour, %v", env.count("webhook_delivery"), err)
		}
		env.clock.Advance(time.Millisecond)
		if err := n.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := env.log("acct_1"); len(d) != 1 || d[0].State != "pending" {
			t.Errorf("%d left of the old ones", len(d))
		}
		if len(env.log("acct_2")) != 1 || env.count("webhook_attempt") != 2 {
			t.Errorf("%d attempts left", env.count("webhook_attempt"))
		}
		if _, err := n.Resend(context.Background(), "dlv_gone"); err == nil || !strings.Contains(err.Error(), "1h0m0s") {
			t.Error(err)
		}
	})
}

// TestAnEventIsItsAccounts checks that only the account of an event finds it, with the bytes sent.
func TestAnEventIsItsAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(nil)
		d := env.log("acct_1")[0]
		env.update(func(tx *store.Tx) error {
			if mine, found, err := n.OwnEventTx(tx, "acct_1", d.Event); err != nil || !found || mine.ID != d.ID || len(mine.Attempts) != 1 {
				t.Errorf("the account's event: %+v, %v, %v", mine, found, err)
			}
			if _, found, err := n.OwnEventTx(tx, "acct_2", d.Event); err != nil || found {
				t.Errorf("another's event: %v, %v", found, err)
			}
			if body, err := BodyTx(tx, d.ID); err != nil || body != r.requests()[0].body {
				t.Errorf("%s was sent, not %s (%v)", r.requests()[0].body, body, err)
			}
			return nil
		})
	})
}

// TestTheLogEndsWithItsRetention checks that an expired delivery is neither shown nor sent again,
// whenever its row is deleted, unless attempts are to come.
func TestTheLogEndsWithItsRetention(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Retention = time.Hour })
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		n.settle()
		done := env.log("acct_1")[0].ID
		env.callback(n, "acct_1", "http://127.0.0.1:9/")
		n.settle()
		shown := func() (ids []string) {
			env.update(func(tx *store.Tx) error {
				list, _, err := n.DeliveriesTx(tx, "acct_1", "", 10)
				for _, d := range list {
					ids = append(ids, d.ID)
				}
				return err
			})
			return ids
		}
		env.clock.Advance(time.Hour)
		if ids := shown(); len(ids) != 2 || !slices.Contains(ids, done) {
			t.Errorf("at the hour the log has %v, want %s too", ids, done)
		}
		env.clock.Advance(time.Millisecond)
		if ids := shown(); len(ids) != 1 || ids[0] == done {
			t.Errorf("after the hour the log has %v", ids)
		}
		if _, err := n.Resend(t.Context(), done); err == nil || len(r.requests()) != 1 {
			t.Errorf("an old event was sent again: %v, %d requests", err, len(r.requests()))
		}
		if env.count("webhook_delivery") != 2 {
			t.Error("it was deleted by a look at it")
		}
	})
}

func TestTheLogIsPaged(t *testing.T) {
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
			t.Errorf("%v", seen)
		}
	})
}

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
				t.Errorf("%+v: %v", c.e, err)
			}
		}
		_, err := put(Endpoint{URL: "ftp://example.com/", Events: []string{"image.started"}})
		if said := fmt.Sprint(err); strings.Count(said, "invalid_request") != 2 || !strings.Contains(said, "The types are") {
			t.Errorf("a bad address and a bad type: %v", err)
		}
		if env.count("webhook_endpoint") != 0 {
			t.Error("a refused change left something")
		}
		e, err := put(Endpoint{URL: "https://example.com/hook", Events: []string{ImageFailed, BalanceLow, ImageFailed}, Secret: "ignored"})
		if err != nil || e.URL != "https://example.com/hook" || fmt.Sprint(e.Events) != "[image.failed balance.low]" ||
			!strings.HasPrefix(e.Secret, "whsec_") {
			t.Errorf("%+v, %v", e, err)
		}
	})
}
