// Package prices owns the tests of operators who change account prices while requests and jobs run.
package prices

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// Price factors of the test's accounts, in millionths.
const (
	dearFactor  = 1_300_000
	cheapFactor = 900_000
)

// question returns a request to the chat model.
func question(stream bool) string {
	return scene.Request(scene.Chat, "swift", stream, map[string]any{"max_tokens": 500})
}

// times returns an amount times a factor in millionths, rounded half up.
func times(a money.Amount, factor int64) money.Amount {
	return money.Amount((int64(a)*factor + 500_000) / 1_000_000)
}

// billing has the billing fields of a logged request.
type billing struct {
	ID         string
	Prompt     int64        `json:"prompt_tokens"`
	Completion int64        `json:"completion_tokens"`
	Cost       money.Amount `json:"cost_usd"`
	Held       money.Amount `json:"held_usd"`
	Factor     json.Number  `json:"price_factor"`
}

// stage is a gateway with two fake providers. The chat provider sends a piece of a stream for each
// value in speak. The media provider finishes its jobs when render is called.
type stage struct {
	node     *scene.Node
	other    *scene.Node // a second node on PostgreSQL, the same node on SQLite
	database string
	speak    chan struct{}
	render   func()
}

func open(t *testing.T, binary, database string) *stage {
	t.Helper()
	s := &stage{node: scene.NewNode(t, binary, database, nil), database: database, speak: make(chan struct{})}
	provider := fakeprovider.New(t)
	provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		if !strings.Contains(string(r.Body), `"stream":true`) {
			return fakeprovider.Answer("hello", 1000, 500)
		}
		reply := fakeprovider.Stream(1000, 500, strings.Split(strings.Repeat(" word", 400), " ")[1:]...)
		reply.Gate = s.speak
		return reply
	})
	rendered := make(chan struct{})
	s.render = sync.OnceFunc(func() { close(rendered) })
	t.Cleanup(s.render)
	fal := fakestudio.ProviderOf(t, "fal")
	studio := fal.Open(t)
	studio.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: rendered} })
	s.node.SetCatalog([]map[string]any{scene.ChatModel("swift", nil), scene.ImageModel("easel", nil), scene.VideoModel("reel", nil),
		scene.ClipModel("clip", "720p", scene.ClipSeconds)},
		[]map[string]any{scene.ChatLine("chat", provider.URL(), nil, "swift"), fal.JobLine("images", studio, "image", nil, "easel"),
			fal.JobLine("videos", studio, "video", nil, "reel", "clip")})
	if s.other = s.node; !s.isAlone() {
		s.other = s.node.Second()
	}
	return s
}

// isAlone reports whether the database allows only one node.
func (s *stage) isAlone() bool { return strings.HasPrefix(s.database, "sqlite:") }

// replace kills all nodes and starts a new one.
func (s *stage) replace() {
	s.node.Kill()
	if !s.isAlone() {
		s.other.Kill()
	}
	s.node.Restart()
	s.other = s.node
}

// price changes an account's prices through the other node.
func (s *stage) price(account string, factor int64, models map[string]any) {
	s.other.Admin("PATCH", "/accounts/"+account,
		map[string]any{"price_factor": json.Number(money.Factor(factor).String()), "prices": models}, nil)
}

// billed checks the charge and the factor of a request.
func (s *stage) billed(t *testing.T, request string, cost money.Amount, factor string) billing {
	t.Helper()
	var b billing
	s.node.Admin("GET", "/requests/"+request, nil, &b)
	if b.Cost != cost || b.Factor.String() != factor || b.Held < b.Cost {
		t.Errorf("request %s: charged %s of %s on hold, with factor %q; want %s and %q", request, b.Cost, b.Held, b.Factor, cost, factor)
	}
	return b
}

// TestPricesOfAccounts changes account prices while requests and jobs run and nodes are killed. Each
// request or job is charged the prices of its admission, to the nano-dollar. The next one is charged
// the new prices on every node.
func TestPricesOfAccounts(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := open(t, binary, database)
		listedPrices(t, s)
		changedAtOnce(t, s)
		changedInAStream(t, s)
		sweptStream(t, s)
		takenOverJobs(t, s)
		s.node.Audit(t)
	})
}

// listedPrices checks the model lists of an account without and an account with its own prices.
func listedPrices(t *testing.T, s *stage) {
	plain, own := s.node.Customer(), s.node.Customer()
	s.price(own.ID, dearFactor, map[string]any{"clip": json.Number("0.5")})
	priceOf := func(c *scene.Customer, model string) string {
		var m struct{ Price json.RawMessage }
		if err := json.Unmarshal(c.Call(t, "GET", "/v1/models/"+model, nil).Raw, &m); err != nil {
			t.Error(err)
		}
		return string(m.Price)
	}
	for _, tt := range [][3]string{
		{"swift", `{"input":1,"output":2}`, `{"input":1.3,"output":2.6}`},
		{"easel", `{"1K":0.030000001,"2K":0.050000003}`, `{"1K":0.0390000013,"2K":0.0650000039}`},
		{"clip", `{"720p":0.085600072}`, `{"720p":0.042800036}`},
	} {
		if got := priceOf(plain, tt[0]); got != tt[1] {
			t.Errorf("%s costs %s, want %s", tt[0], got, tt[1])
		}
		if got := priceOf(own, tt[0]); got != tt[2] {
			t.Errorf("%s costs %s for the account with a factor, want %s", tt[0], got, tt[2])
		}
	}
}

// changedAtOnce changes the prices between requests through another node. No node may use cached
// prices.
func changedAtOnce(t *testing.T, s *stage) {
	c := s.node.Customer()
	ask := func() string {
		r := c.Call(t, "POST", scene.Chat.Path(), []byte(question(false)))
		if r.Status != 200 {
			t.Fatal(r)
		}
		return r.Header.Get("x-request-id")
	}
	spent := s.billed(t, ask(), scene.AnswerCost, "").Cost
	for range 3 {
		for _, factor := range []int64{dearFactor, 333_333, 1_000_000} {
			s.price(c.ID, factor, map[string]any{})
			want := ""
			if factor != 1_000_000 {
				want = money.Factor(factor).String()
			}
			spent += s.billed(t, ask(), times(scene.AnswerCost, factor), want).Cost
		}
	}
	s.price(c.ID, dearFactor, map[string]any{"swift": json.Number("2"), "none": json.Number("3")})
	spent += s.billed(t, ask(), 2*scene.AnswerCost, "2").Cost
	c.CheckFunds(t, spent, 0)
	var usage struct {
		Total struct {
			Cost money.Amount `json:"cost_usd"`
		}
	}
	if err := json.Unmarshal(c.Call(t, "GET", "/v1/usage", nil).Raw, &usage); err != nil || usage.Total.Cost != spent {
		t.Errorf("usage shows %s, %v; want %s", usage.Total.Cost, err, spent)
	}
}

// sendPieces lets the provider send pieces of its streams until stop is closed.
func (s *stage) sendPieces(stop <-chan struct{}) {
	for {
		select {
		case s.speak <- struct{}{}:
		case <-stop:
			return
		}
	}
}

// changedInAStream changes the prices during a stream.
func changedInAStream(t *testing.T, s *stage) {
	c := s.node.Customer()
	s.price(c.ID, dearFactor, map[string]any{})
	begin, done := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		s.speak <- struct{}{}
		s.speak <- struct{}{}
		<-begin
		s.sendPieces(done)
	})
	a, err := scene.SendChat(t.Context(), c.Client, s.node.URL+scene.Chat.Path(), c.Key, question(true), func() {
		s.price(c.ID, cheapFactor, map[string]any{})
		close(begin)
	})
	close(done)
	all.Wait()
	if err != nil || !a.Complete {
		t.Fatalf("%+v, %v", a, err)
	}
	s.billed(t, a.ID, times(scene.AnswerCost, dearFactor), "1.3")
	c.CheckFunds(t, times(scene.AnswerCost, dearFactor), 0)
}

// sweptStream changes the prices during a stream and kills the stream's node.
func sweptStream(t *testing.T, s *stage) {
	c := s.node.Customer()
	s.price(c.ID, dearFactor, map[string]any{})
	db := scene.OpenDatabase(t, s.database)
	var all sync.WaitGroup
	all.Go(func() { // the kill cuts off the answer
		_, _ = scene.SendChat(t.Context(), c.Client, s.node.URL+scene.Chat.Path(), c.Key, question(true))
	})
	var request string
	scene.Eventually(t, "the cost of a part of the stream is recorded", func() bool {
		select {
		case s.speak <- struct{}{}:
		default:
		}
		err := db.QueryRowContext(t.Context(), `SELECT id FROM ledger_hold WHERE account = $1 AND cost_nano > 0`, c.ID).Scan(&request)
		return err == nil
	})
	s.price(c.ID, cheapFactor, map[string]any{})
	s.replace()
	all.Wait()
	scene.Eventually(t, "the hold of the dead node is settled", func() bool { return c.Funds(t).Held == 0 })
	var b billing
	s.node.Admin("GET", "/requests/"+request, nil, &b)
	sent := money.Amount(b.Prompt*1000 + b.Completion*2000)
	if b.Cost == 0 || sent == 0 {
		t.Errorf("the beginning of the stream was not charged: %+v", b)
	}
	s.billed(t, request, times(sent, dearFactor), "1.3")
	c.CheckFunds(t, times(sent, dearFactor), 0)
}

// takenOverJobs changes the prices while jobs run, and kills the nodes.
func takenOverJobs(t *testing.T, s *stage) {
	c := s.node.Customer()
	s.price(c.ID, dearFactor, map[string]any{"clip": json.Number("0.333333")})
	jobs := []struct {
		kind, model, id string
		held, cost      money.Amount
	}{
		{kind: "image", model: "easel", held: 39_000_002, cost: 39_000_001},  // 39000001.3
		{kind: "video", model: "reel", held: 111_280_094, cost: 111_280_094}, // 111280093.6
		{kind: "video", model: "clip", held: 28_533_329, cost: 28_533_329},   // 28533328.799976
	}
	var held, spent money.Amount
	for i := range jobs {
		j := &jobs[i]
		j.id = c.Submit(t, j.kind, scene.JobRequest(j.model, "a boat", nil))
		held, spent = held+j.held, spent+j.cost
	}
	for _, j := range jobs {
		s.node.WaitForStep(t, j.id, "ticket")
		if o := s.node.OperatorJob(t, j.id); o.Held != j.held {
			t.Errorf("%s: %s are held, want %s", j.model, o.Held, j.held)
		}
	}
	c.CheckFunds(t, 0, held)
	s.price(c.ID, cheapFactor, map[string]any{})
	s.replace()
	for _, j := range jobs {
		s.node.WaitForStep(t, j.id, "taken_over")
	}
	s.price(c.ID, 2_000_000, map[string]any{})
	s.render()
	for _, j := range jobs {
		c.Becomes(t, j.kind, j.id, "succeeded")
		if o := s.node.OperatorJob(t, j.id); o.Cost != j.cost {
			t.Errorf("%s: charged %s, want %s", j.model, o.Cost, j.cost)
		}
	}
	c.CheckFunds(t, spent, 0)
	// A requeued job and a new one use the current prices.
	var again scene.OperatorJob
	s.node.Admin("POST", "/jobs/"+jobs[0].id+"/requeue", map[string]any{"force": true}, &again)
	c.Becomes(t, "image", again.ID, "succeeded")
	c.Becomes(t, "image", c.Submit(t, "image", scene.JobRequest("easel", "a boat", nil)), "succeeded")
	c.CheckFunds(t, spent+2*2*scene.PricePicture, 0)
}
