package payments

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/store/storetest"
)

// killer kills the process of a node at steps of the database, at most once in each step of a purchase. It tries each
// step of the database once.
type killer struct {
	end    func() // ends the process
	sample int    // 1 tries all steps, 16 tries one of 16

	mu     sync.Mutex
	during string          // the step of the purchase; if empty, the process is not killed
	count  map[string]int  // steps of the database by name, in the step of the purchase
	seen   map[string]bool // steps that were tried or left out
	left   int             // steps to leave out before the next one is tried
	killed bool
	kills  int
}

// newKiller returns a killer. With TOLLGATE_TORTURE it tries all steps.
func newKiller(end func(), sample int) *killer {
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		sample = 1
	}
	return &killer{end: end, sample: sample, seen: map[string]bool{}, left: rand.IntN(sample)}
}

// at kills the process if the step is new and part of the sample. If always is true, each new step is part of it. at
// returns false if it has killed the process.
func (k *killer) at(step string, always bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.during == "" {
		return true
	}
	k.count[step]++
	name := fmt.Sprintf("%s: %s, %d", k.during, step, k.count[step])
	if k.seen[name] {
		return true
	}
	k.seen[name] = true
	if !always {
		if k.left--; k.left >= 0 {
			return true
		}
		k.left = k.sample - 1
	}
	k.during, k.killed = "", true
	k.kills++
	k.end()
	return false
}

// kill runs a step of a purchase and kills the process at the next step of the database that is not tried. It
// returns false if all are tried.
func (k *killer) kill(during string, do func()) (killed bool) {
	k.mu.Lock()
	k.during, k.count, k.killed = during, map[string]int{}, false
	k.mu.Unlock()
	do()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.during = ""
	return k.killed
}

// tables are the tables of payments and their documents.
func tables() []string {
	return []string{"topup", "topup_reversal", "topup_problem", "topup_automatic", "invoice_document", "invoice_series"}
}

// stepName names a step by its statement.
func stepName(s faultproxy.Step) string {
	words := strings.Fields(s.Transaction[len(s.Transaction)-1])
	name := strings.Join(words[:min(len(words), 6)], " ")
	switch {
	case s.Answered:
		return "after the commit of " + name
	case s.Commit:
		return "before the commit of " + name
	}
	return name
}

// killAtStatements kills the node at its statements on PostgreSQL.
func killAtStatements(k *killer, p *faultproxy.Proxy) {
	p.Watch(func(s faultproxy.Step) bool {
		if len(s.Transaction) == 0 || !slices.ContainsFunc(tables(), s.Touches) {
			return true
		}
		return k.at(stepName(s), s.Commit)
	})
}

// killAtCalls kills the node at its calls of a provider, after each call has had its effect and before its answer.
func killAtCalls(k *killer, s *shop) {
	s.stripe.OnCall(func(method, _ string) { k.at("call of Stripe: "+method, true) })
	s.epay.OnCall(func(act string) { k.at("call of the site: "+act, true) })
}

// TestKillAtEachStep makes purchases until one ends without a kill. Each purchase kills the process during the order,
// the payment, the refunds and the dispute, each time at another step. Automatic top-ups have one step, the charge.
// With TOLLGATE_TORTURE the test tries all steps.
//
//   - On PostgreSQL the steps are the statements of transactions that touch the tables of payments, the moment before
//     the server gets a COMMIT, and the moment before the process gets the answer to it.
//   - On SQLite the steps are the writes to the log of the database.
//   - On both they are the calls of the providers, too.
func TestKillAtEachStep(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(*shop) purchase
	}{
		{"Stripe", func(s *shop) purchase { return s.purchase }},
		{"part refunds", func(s *shop) purchase { return s.purchaseWithPartRefunds }},
		{"EPay", func(s *shop) purchase { return s.purchaseAtSite }},
		{"automatic", func(s *shop) purchase { return s.topUpAutomatically }},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, database string) { killAtEachStep(t, database, c.of) })
		})
	}
}

func killAtEachStep(t *testing.T, database string, of func(*shop) purchase) {
	var s *shop
	var k *killer
	least := 10 // kills during requests
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		s = newShop(t, database, database)
		k = newKiller(s.kill, 2)
		killAtWrites(t, k, path+"-wal")
		least = 3 // quick writes are reported as one
	} else {
		proxy := faultproxy.New(t, database)
		s = newShop(t, proxy.URL(), database)
		k = newKiller(s.kill, 16)
		killAtStatements(k, proxy)
	}
	killAtCalls(k, s)
	unanswered := 0
	for killed := true; killed && !t.Failed(); {
		killed = false
		of(s)(func(step string, do func()) {
			restarts := s.restarts
			if !k.kill(step, do) {
				return
			}
			killed = true
			if s.restarts > restarts {
				unanswered++
			}
			s.get("/console/billing/top-ups") // starts the process again if no request has noticed its end
		})
	}
	s.checkEnd()
	t.Logf("%d steps, %d kills, %d of them during a request", len(k.seen), k.kills, unanswered)
	if unanswered < max(least, k.kills/2) {
		t.Error("too few kills during requests")
	}
}
