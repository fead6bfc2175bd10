package scene

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"tollgate/internal/contract/contracttest"
	"tollgate/internal/money"
)

// Credential is what the lines of ChatLine and fakestudio's JobLine show to
// their provider: the variable FAILING_LINE_KEY of gateways that Open starts.
const Credential = "sk-line-credential-0123456789"

// AnswerCost is what fakeprovider.Good's 1000 prompt and 500 completion tokens
// cost at the price of ChatModel, 1 and 2 USD a million.
const AnswerCost = 2 * money.USD / 1000

// Gateway is a tollgate that tests call.
type Gateway struct {
	// Process answers the operator's calls.
	Process *Process
	// Client is who calls it otherwise.
	Client *http.Client
	// Lines tells how its lines are doing.
	Lines *LineStates
}

// Open starts a process of its own on a database, with further settings.
func Open(t testing.TB, binary, database string, more map[string]string) *Gateway {
	t.Helper()
	settings := map[string]string{"database": database, "FAILING_LINE_KEY": Credential}
	for k, v := range more {
		settings[k] = v
	}
	return At(t, Start(t, binary, settings))
}

// At is the gateway that a process is, called over connections of its own.
func At(t testing.TB, p *Process) *Gateway {
	client := &http.Client{Transport: contracttest.Transport(t, &http.Transport{MaxIdleConnsPerHost: 64}), Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	return &Gateway{Process: p, Client: client, Lines: &LineStates{process: p}}
}

// Offer makes a catalog the current one.
func (g *Gateway) Offer(models, lines []map[string]any) {
	g.Process.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
}

// Send sends a request to a form's endpoint and reads its answer to the end. A
// gateway that says it is overloaded, which a busy machine is soon, is asked
// again: it has done nothing then.
func (g *Gateway) Send(t testing.TB, in Form, key, request string, seen ...func()) Answer {
	t.Helper()
	var a Answer
	Eventually(t, "the gateway takes a request", func() bool {
		var err error
		if a, err = Converse(t.Context(), g.Client, g.Process.URL+in.Path(), key, request, seen...); err != nil {
			t.Fatal(err)
		}
		return a.Status != 503 || a.RetryAfter == "" && a.Err.Type != "overloaded_error"
	})
	return a
}

// Purse is what an account has.
type Purse struct {
	Balance money.Amount `json:"balance_usd"`
	Held    money.Amount `json:"held_usd"`
}

// CheckMoney checks that exactly what the receipt says was charged, that an
// error is free, and that nothing is held any more. It returns the balance.
func (g *Gateway) CheckMoney(t testing.TB, account string, before money.Amount, a Answer) money.Amount {
	t.Helper()
	var state Purse
	r := g.Receipt(t, account, a.ID)
	g.Process.Admin("GET", "/accounts/"+account, nil, &state)
	if a.Status != 200 && r.Cost != 0 {
		t.Errorf("an error was charged: %+v", r)
	}
	if state.Held != 0 || state.Balance != before-r.Cost {
		t.Errorf("balance %s and %s held; want %s less %s and nothing", state.Balance, state.Held, before, r.Cost)
	}
	return state.Balance
}

// Audit proves the books.
func (g *Gateway) Audit(t testing.TB) { audit(t, g.Process) }

func audit(t testing.TB, p *Process) {
	t.Helper()
	var report struct {
		OK          bool            `json:"ok"`
		Differences json.RawMessage `json:"differences"`
	}
	p.Admin("GET", "/audit", nil, &report)
	if !report.OK {
		t.Errorf("audit: %s", report.Differences)
	}
}

// Story is what happens to some models and lines that nobody else uses, so that
// many play on one gateway.
type Story struct {
	Name          string
	Models, Lines []map[string]any
	Play          func(t *testing.T, g *Gateway)
}

// storiesAtATime is how many stories play: waiting is the larger part of most,
// so they are more than there are processors.
const storiesAtATime = 12

// Play plays stories on a gateway and proves its books in the end.
func Play(t *testing.T, g *Gateway, stories []Story) {
	t.Helper()
	var models, lines []map[string]any
	for _, s := range stories {
		models, lines = append(models, s.Models...), append(lines, s.Lines...)
	}
	g.Offer(models, lines)
	queue := make(chan Story)
	var group sync.WaitGroup
	for range storiesAtATime {
		group.Go(func() {
			for s := range queue {
				t.Run(s.Name, func(t *testing.T) { s.Play(t, g) })
			}
		})
	}
	for _, s := range stories {
		queue <- s
	}
	close(queue)
	group.Wait()
	g.Audit(t)
}
