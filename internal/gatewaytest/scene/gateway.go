package scene

import (
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"tollgate/internal/contract/contracttest"
	"tollgate/internal/money"
)

// Credential is the API key of the lines of ChatLine and fakestudio's JobLine. Open sets it as the
// variable FAILING_LINE_KEY.
const Credential = "sk-line-credential-0123456789"

// AnswerCost is the cost of fakeprovider.Good (1000 prompt and 500 completion tokens) for a
// ChatModel (1 and 2 USD a million).
const AnswerCost = 2 * money.USD / 1000

// Gateway is a running tollgate.
type Gateway struct {
	// Process has the operator API.
	Process *Process
	// Client sends the requests of customers.
	Client *http.Client
	// Lines reads the states of the lines.
	Lines *LineStates
}

// Open starts a gateway on a database, with the settings of more.
func Open(t testing.TB, binary, database string, more map[string]string) *Gateway {
	t.Helper()
	settings := map[string]string{"database": database, "FAILING_LINE_KEY": Credential}
	maps.Copy(settings, more)
	return GatewayAt(t, Start(t, binary, settings))
}

// GatewayAt returns the gateway of a process, with a new HTTP client.
func GatewayAt(t testing.TB, p *Process) *Gateway {
	client := &http.Client{Transport: contracttest.Transport(t, &http.Transport{MaxIdleConnsPerHost: 64}), Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	return &Gateway{Process: p, Client: client, Lines: &LineStates{process: p}}
}

// SetCatalog replaces the catalog.
func (g *Gateway) SetCatalog(models, lines []map[string]any) {
	g.Process.SetCatalog(models, lines)
}

// Send sends a request to a form's endpoint and reads its answer to the end. It repeats a request
// that an overloaded gateway has rejected without effect, because the test machine may be busy.
func (g *Gateway) Send(t testing.TB, form Form, key, request string, onText ...func()) Answer {
	t.Helper()
	var a Answer
	Eventually(t, "the gateway takes a request", func() bool {
		var err error
		if a, err = SendChat(t.Context(), g.Client, g.Process.URL+form.Path(), key, request, onText...); err != nil {
			t.Fatal(err)
		}
		return a.Status != 503 || a.RetryAfter == "" && a.Err.Type != "overloaded_error"
	})
	return a
}

// CheckMoney finds the receipt of an answer and checks it as CheckReceipt does.
func (g *Gateway) CheckMoney(t testing.TB, account string, before money.Amount, a Answer) money.Amount {
	t.Helper()
	return g.CheckReceipt(t, account, before, a, g.Receipt(t, account, a.ID))
}

// CheckReceipt checks that exactly the cost of the receipt was charged, that an error is free,
// and that no money is on hold. It returns the balance.
func (g *Gateway) CheckReceipt(t testing.TB, account string, before money.Amount, a Answer, r Receipt) money.Amount {
	t.Helper()
	state := g.Process.FundsOf(account)
	if a.Status != 200 && r.Cost != 0 {
		t.Errorf("an error was charged: %+v", r)
	}
	if state.Held != 0 || state.Balance != before-r.Cost {
		t.Errorf("balance %s and %s on hold; want %s less %s and nothing on hold", state.Balance, state.Held, before, r.Cost)
	}
	return state.Balance
}

// Audit checks the books.
func (g *Gateway) Audit(t testing.TB) { g.Process.Audit(t) }

// Scenario is a test with models and lines of its own, so that many scenarios run on one gateway.
type Scenario struct {
	Name          string
	Models, Lines []map[string]any
	Play          func(t *testing.T, g *Gateway)
}

// scenariosAtOnce is more than the number of processors, because most scenarios wait most of the
// time.
const scenariosAtOnce = 12

// Play runs scenarios on a gateway and then checks its books.
func Play(t *testing.T, g *Gateway, scenarios []Scenario) {
	t.Helper()
	var models, lines []map[string]any
	for _, s := range scenarios {
		models, lines = append(models, s.Models...), append(lines, s.Lines...)
	}
	g.SetCatalog(models, lines)
	queue := make(chan Scenario)
	var group sync.WaitGroup
	for range scenariosAtOnce {
		group.Go(func() {
			for s := range queue {
				t.Run(s.Name, func(t *testing.T) { s.Play(t, g) })
			}
		})
	}
	for _, s := range scenarios {
		queue <- s
	}
	close(queue)
	group.Wait()
	g.Audit(t)
}
