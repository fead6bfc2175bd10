// Package crash owns the tests of a process that is killed under load, has more requests than an
// account can pay, or has a full disk.
package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// open starts a node with one chat model on one line at a provider.
func open(t testing.TB, database string, provider *fakeprovider.Server, lease string) *scene.Node {
	t.Helper()
	n := scene.NewNode(t, scene.Binary(t), database, map[string]string{"node_lease": lease})
	n.SetCatalog([]map[string]any{scene.ChatModel("m", map[string]any{"forms": []string{"chat", "responses"}})},
		[]map[string]any{scene.ChatLine("main", provider.URL(), map[string]any{"forms": []string{"chat"}}, "m")})
	return n
}

// question is the body of every request.
func question(stream bool) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":500,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
}

// ask sends one request and reads its answer to the end. Without an answer, it returns the zero
// value.
func ask(t testing.TB, n *scene.Node, key string, stream bool) scene.Answer {
	a, _ := scene.SendChat(t.Context(), n.Client, n.URL+"/v1/chat/completions", key, question(stream))
	return a
}

// TestKillUnderLoad kills the real process at random moments under load and checks after each
// restart that every complete answer is charged once, no error is charged, a request has at most one
// charge, no hold is left, and the audit finds no difference.
func TestKillUnderLoad(t *testing.T) {
	rounds := 4
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		rounds = 100
	}
	storetest.EachURL(t, func(t *testing.T, database string) {
		provider := fakeprovider.New(t)
		provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
			if bytes.Contains(r.Body, []byte(`"stream":true`)) {
				reply := fakeprovider.Stream(1000, 500, "one", " two", " three", " four")
				reply.Gap = time.Millisecond
				return reply
			}
			if rand.IntN(8) == 0 {
				return fakeprovider.Error(500, "server_error", "", "down")
			}
			return fakeprovider.Answer("hello", 1000, 500)
		})
		crash(t, open(t, database, provider, "1s"), rounds)
	})
}

func crash(t *testing.T, n *scene.Node, rounds int) {
	const callers = 24
	account, key := n.Account(1000, nil)
	var mu sync.Mutex
	var answers []scene.Answer
	for round := range rounds {
		var group sync.WaitGroup
		stop := make(chan struct{})
		for c := range callers {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					a := ask(t, n, key, c%2 == 0)
					mu.Lock()
					answers = append(answers, a)
					mu.Unlock()
					if a.Status == 0 { // the process is dead
						return
					}
				}
			})
		}
		scene.Sleep(time.Duration(200+rand.IntN(500)) * time.Millisecond)
		n.Kill()
		close(stop)
		group.Wait()
		n.Restart()
		// On PostgreSQL the former process is declared dead after a lease.
		scene.Eventually(t, "nothing is held", func() bool { return n.FundsOf(account).Held == 0 })
		if scene.CheckBooks(t, n.Binary, n.Settings); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	check(t, n, account, answers)
	n.CheckStop(t)
}

// check compares the answers of the clients with the request log.
func check(t *testing.T, n *scene.Node, account string, answers []scene.Answer) {
	t.Helper()
	receipts, total := n.RequestLog(t, account)
	complete, cut, failed := 0, 0, 0
	for _, a := range answers {
		r, logged := receipts[a.ID]
		switch {
		case a.Whole():
			complete++
			if !logged || r.Cost != scene.AnswerCost || r.Status != 200 {
				t.Errorf("a client got a complete answer, but its receipt is %+v (found: %v)", r, logged)
			}
		case a.Status >= 400:
			failed++
			if r.Cost != 0 {
				t.Errorf("an error of status %d was charged: %+v", a.Status, r)
			}
		case a.ID != "":
			cut++
		}
	}
	for _, r := range receipts {
		if r.Cost > scene.AnswerCost {
			t.Errorf("charged more than the answer costs: %+v", r)
		}
	}
	if f := n.FundsOf(account); f.Balance != 1000*money.USD-total {
		t.Errorf("balance %s; want 1000 less charges of %s", f.Balance, total)
	}
	t.Logf("%d answers complete, %d errors, %d cut, %d receipts", complete, failed, cut, len(receipts))
	if complete == 0 || failed == 0 {
		t.Error("the load did not reach the gateway")
	}
}
