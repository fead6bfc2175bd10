package payments

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestFrozenRefund freezes a node in the middle of a refund for longer than its lease. Meanwhile another node sweeps
// and makes the refund. Then the first node continues. The refund is made once.
func TestFrozenRefund(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t)
	proxy := faultproxy.New(t, database)
	s := newShop(t, proxy.URL(), database)
	for _, c := range []struct {
		name string
		// arm makes the node call stop when it is in the middle. thaw, if not nil, is called when it continues.
		arm func(stop func()) (thaw func())
	}{
		{"at the question before the refund", func(stop func()) func() {
			s.stripe.OnCall(func(string, string) { stop() })
			return nil
		}},
		{"between the record of the call and the call", func(stop func()) func() {
			release := make(chan struct{})
			hit := proxy.Arm(faultproxy.Fault{Effect: faultproxy.HoldAnswer, Release: release, Match: func(c faultproxy.Commit) bool {
				return c.Has("INSERT INTO topup_reversal") && !c.Has("INSERT INTO ledger_entry")
			}})
			go func() {
				<-hit.Done()
				stop()
			}()
			return func() { close(release) }
		}},
		{"at the call", func(stop func()) func() {
			s.stripe.OnCall(func(method, _ string) {
				if method == http.MethodPost {
					stop()
				}
			})
			return nil
		}},
		{"at the question after the refund", func(stop func()) func() {
			called := false
			s.stripe.OnCall(func(method, path string) {
				switch {
				case method == http.MethodPost:
					called = true
				case called && strings.HasPrefix(path, "/v1/checkout/"):
					stop()
				}
			})
			return nil
		}},
	} {
		t.Logf("frozen %s", c.name)
		s.purchase(func(step string, do func()) {
			if step == refunding {
				s.freeze(c.arm)
			}
			do()
		})
	}
	s.checkEnd()
}

// freeze refunds a half of the newest top-up on a node that is frozen in the middle.
func (s *shop) freeze(arm func(stop func()) (thaw func())) {
	s.t.Helper()
	id, epoch := s.newest(), ""
	if err := s.db.QueryRow(`SELECT epoch FROM node WHERE dead = 0`).Scan(&epoch); err != nil {
		s.t.Fatal(err)
	}
	frozen, answered := make(chan struct{}), make(chan struct{})
	thaw := arm(sync.OnceFunc(func() {
		s.n.Pause()
		close(frozen)
	}))
	go func() {
		defer close(answered)
		_, _ = s.refund(id) // the operator repeats the request
	}()
	select {
	case <-frozen:
	case <-answered:
		s.t.Fatal("the node was not frozen")
	}
	s.stripe.OnCall(nil)
	s.makeDue()
	other := s.n.Second()
	scene.Eventually(s.t, "the other node makes the refund", func() bool { return s.isConfirmed(id) })
	scene.Eventually(s.t, "the frozen node is declared dead", func() bool {
		return s.count(`SELECT COUNT(*) FROM node WHERE epoch = $1 AND dead = 1`, epoch) == 1
	})
	s.n.Resume()
	if thaw != nil {
		thaw()
	}
	<-answered
	other.CheckStop(s.t)
	scene.Eventually(s.t, "only one node is alive", func() bool { return s.count(`SELECT COUNT(*) FROM node WHERE dead = 0`) == 1 })
}
