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

// sessionPath begins the path of the question about a session.
const sessionPath = "/v1/checkout/sessions/"

// TestFrozenNode freezes a node in the middle of a payment or a refund for longer than its lease. Meanwhile another
// node sweeps and books the payment or makes the refund. Then the first node continues.
func TestFrozenNode(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t)
	proxy := faultproxy.New(t, database)
	s := newShop(t, proxy.URL(), database)
	atQuestion := func(stop func()) func() {
		s.stripe.OnCall(func(_, path string) {
			if strings.HasPrefix(path, sessionPath) {
				stop()
			}
		})
		return nil
	}
	for _, c := range []struct {
		name   string
		during string
		// arm makes the node call stop when it is in the middle. thaw, if not nil, is called when it continues.
		arm func(stop func()) (thaw func())
	}{
		{"at the question about the payment", paying, atQuestion},
		{"at the question before the refund", refunding, atQuestion},
		{"between the record of the call and the call", refunding, func(stop func()) func() {
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
		{"at the call", refunding, func(stop func()) func() {
			s.stripe.OnCall(func(method, _ string) {
				if method == http.MethodPost {
					stop()
				}
			})
			return nil
		}},
		{"at the question after the refund", refunding, func(stop func()) func() {
			called := false
			s.stripe.OnCall(func(method, path string) {
				switch {
				case method == http.MethodPost:
					called = true
				case called && strings.HasPrefix(path, sessionPath):
					stop()
				}
			})
			return nil
		}},
	} {
		t.Logf("frozen %s", c.name)
		s.purchase(func(step string, do func()) {
			if step == c.during {
				s.freeze(step, c.arm)
			}
			do()
		})
	}
	s.checkEnd()
}

// freeze sends the request of a step of a purchase to a node that is frozen in the middle.
func (s *shop) freeze(step string, arm func(stop func()) (thaw func())) {
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
		if step == paying { // Stripe and the operator repeat their requests
			_, _ = s.send(s.stripe.Events()[s.sent])
		} else {
			_, _ = s.refund(id, "25.00")
		}
	}()
	select {
	case <-frozen:
	case <-answered:
		s.t.Fatal("the node was not frozen")
	}
	s.stripe.OnCall(nil)
	s.makeDue()
	other := s.n.Second()
	scene.Eventually(s.t, "the other node does the work", func() bool {
		if step == paying {
			return s.count(`SELECT COUNT(*) FROM topup WHERE id = $1 AND state = 'paid'`, id) == 1
		}
		return s.isConfirmed(id)
	})
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
