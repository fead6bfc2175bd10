// Package hostile owns the test of a hostile and a good account on lines of every provider. The good
// account must get the same service whatever failures the hostile account causes at the providers.
package hostile

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/inprocess"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

const (
	credit = 100_000 // USD of each account
	atOnce = 10      // vendors at a time, and studios at a time
)

// TestHostileAccount lets a hostile account attack every vendor, while a good account sends
// requests and jobs for the same models. The good account gets no error and is charged correctly,
// no line is out of service for longer than its provider requires, and the books are correct. The
// test takes TOLLGATE_HOSTILE_MINUTES on each database (`make hostile`). If 0, it plays some
// attacks at half of the vendors on each database.
func TestHostileAccount(t *testing.T) {
	text := os.Getenv("TOLLGATE_HOSTILE_MINUTES")
	if text == "" {
		t.Log("`make hostile` runs this test")
		return
	}
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || minutes < 0 {
		t.Fatalf("TOLLGATE_HOSTILE_MINUTES is %q", text)
	}
	length := time.Duration(minutes * float64(time.Minute))
	net.DefaultResolver = loopbackNames()
	storetest.EachURL(t, func(t *testing.T, database string) {
		half := 0
		if strings.HasPrefix(database, "postgres") {
			half = 1
		}
		play(t, database, half, length)
	})
}

// run is the test on one database.
type run struct {
	t             *testing.T
	attacks       []attack
	half          int       // selects the vendors of a short run: 0 or 1
	until         time.Time // end of the run; zero for a short run
	good, hostile *caller
	outages       *outages
}

// play runs both accounts on a gateway.
func play(t *testing.T, database string, half int, length time.Duration) {
	g := serve(t, database)
	r := &run{t: t, attacks: attacks(t), half: half}
	if length > 0 {
		r.until = time.Now().Add(length)
	}
	var models, lines []map[string]any
	for _, v := range vendors() {
		models = append(models, scene.FormModel(v.name, nil, scene.ClientForms()...))
		lines = append(lines, v.lines(t, r.reply(v))...)
	}
	studios := openStudios(t)
	for _, s := range studios {
		models, lines = append(models, s.model()), append(lines, s.lines()...)
	}
	g.SetCatalog(models, lines)
	r.good, r.hostile = newCaller(t, g, "good"), newCaller(t, g, "hostile")
	r.outages = watch(t, g)
	var group sync.WaitGroup
	group.Go(func() { r.each(len(vendors()), func(i, round int) { r.attackChat(vendors()[i], i/2, round) }) })
	group.Go(func() { r.each(len(studios), func(i, round int) { r.attackStudio(studios[i], i/2, round) }) })
	group.Wait()
	r.outages.stop()
	if r.good.answers == 0 || r.hostile.errors < r.hostile.sent/2 {
		t.Errorf("too few attacks reached the providers: good: %s; hostile: %s", r.good, r.hostile)
	}
	r.good.settled(t)
	r.hostile.settled(t)
	g.Audit(t)
	t.Logf("good: %s; hostile: %s; longest outage of a line: %s", r.good, r.hostile, r.outages)
}

// each plays every second of n vendors, several at a time. A long run repeatedly plays all vendors.
func (r *run) each(n int, play func(i, round int)) {
	var group sync.WaitGroup
	defer group.Wait()
	places := make(chan struct{}, atOnce)
	for round := 0; round == 0 || time.Now().Before(r.until); round++ {
		for i := range n {
			if r.until.IsZero() && i%2 != r.half {
				continue
			}
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				play(i, round)
			})
		}
		for range atOnce { // wait for all, so that no vendor is played twice at a time
			places <- struct{}{}
		}
		for range atOnce {
			<-places
		}
	}
}

// serve starts a gateway in this process, with a resolver for the vendors' names.
func serve(t *testing.T, database string) *scene.Gateway {
	t.Helper()
	p, stop := inprocess.Serve(t, map[string]string{"database": database, "media": "file:" + t.TempDir(),
		"private_networks": "127.0.0.1/32"}, nil)
	g := scene.GatewayAt(t, p)
	t.Cleanup(stop) // runs before the client closes its connections
	return g
}

// caller is an account and the results of its requests.
type caller struct {
	*scene.Customer
	g    *scene.Gateway
	name string

	mu         sync.Mutex
	sent       int
	jobs       int
	overloaded int            // requests rejected by an overloaded gateway
	statuses   map[string]int // of chat requests by id
	answers    int            // complete chat answers
	slowest    time.Duration  // of a job
	trace      string         // of the slowest job
	errors     int
	wrong      []string // descriptions of the account's first unexpected errors
}

func newCaller(t *testing.T, g *scene.Gateway, name string) *caller {
	account, key := g.Process.Account(credit, nil)
	node := &scene.Node{T: t, Client: g.Client, Process: g.Process}
	return &caller{Customer: &scene.Customer{Node: node, ID: account, Key: key}, g: g, name: name, statuses: map[string]int{}}
}

func (c *caller) String() string {
	return fmt.Sprintf("%d chat requests and %d jobs, %d answers, %d errors, %d overloaded; slowest job %s (%s)",
		c.sent, c.jobs, c.answers, c.errors, c.overloaded, c.slowest, c.trace)
}

// ask sends a chat request and reads the answer. ok reports whether the answer is complete and
// correct.
func (c *caller) ask(t *testing.T, form scene.Form, body string) (a scene.Answer, ok bool) {
	t.Helper()
	for tries := 0; ; tries++ {
		var err error
		a, err = scene.SendChat(t.Context(), c.g.Client, c.g.Process.URL+form.Path(), c.Key, body)
		if err != nil {
			t.Fatal(err)
		}
		overloaded := a.Status == http.StatusServiceUnavailable && strings.Contains(a.Raw, "temporary problem")
		if !overloaded || tries == 100 {
			break
		}
		c.mu.Lock()
		c.overloaded++
		c.mu.Unlock()
	}
	ok = a.Status == http.StatusOK && a.Complete && a.Text == "all is well"
	if form == scene.Responses { // scene does not parse these answers
		ok = a.Status == http.StatusOK && strings.Contains(a.Raw, `"status":"completed"`) && strings.Contains(a.Raw, "is well")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	c.statuses[a.ID] = a.Status
	if ok {
		c.answers++
	} else {
		c.errors++
	}
	return a, ok
}

// recordError records an unexpected error.
func (c *caller) recordError(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 2000 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// settled checks the account's money. Answers are charged for their usage and successful jobs their
// price, errors are free, and no money is on hold.
func (c *caller) settled(t *testing.T) {
	t.Helper()
	for _, wrong := range c.wrong {
		t.Errorf("the %s account: %s", c.name, wrong)
	}
	var funds scene.Funds
	scene.Eventually(t, "the "+c.name+" account has nothing on hold", func() bool {
		funds = c.Funds(t)
		return funds.Held == 0
	})
	spent, logged := money.Amount(0), 0
	for after := ""; ; {
		var page struct {
			Data    []scene.Receipt
			HasMore bool `json:"has_more"`
		}
		c.Admin("GET", "/requests?limit=200&account="+c.ID+"&after="+after, nil, &page)
		for _, r := range page.Data {
			after = r.ID
			status, isChat := c.statuses[r.ID]
			if !isChat {
				continue
			}
			logged++
			spent += r.Cost
			if want := money.Amount(1000*r.Prompt + 2000*r.Completion); r.Status != status || status != http.StatusOK && r.Cost != 0 ||
				status == http.StatusOK && r.Cost != want {
				t.Errorf("the %s account got %d, and the log has %+v; want a charge of %s", c.name, status, r, want)
			}
		}
		if !page.HasMore {
			break
		}
	}
	jobs := c.JobsOf(t, c.ID)
	for _, o := range jobs {
		want := money.Amount(0)
		if o.Status == "succeeded" {
			want = map[bool]money.Amount{true: scene.PriceClip, false: scene.PricePicture}[strings.HasPrefix(o.Object, "video")]
		}
		if spent += o.Cost; o.Cost != want || !o.Final() {
			t.Errorf("the %s account's job %s (%s) was charged %s, want %s", c.name, o.ID, o.Status, o.Cost, want)
		}
	}
	if logged != len(c.statuses) || len(jobs) != c.jobs {
		t.Errorf("%d requests and %d jobs of the %s account are in the log: %s", logged, len(jobs), c.name, c)
	}
	if want := credit*money.USD - spent; funds.Balance != want {
		t.Errorf("the balance of the %s account is %s, want %s: %s", c.name, funds.Balance, want, c)
	}
}
