// Package peerbugs owns the tests of real billing bugs in other gateways. Each test plays the bug
// against a gateway in this process.
package peerbugs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/inprocess"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// peerBug is a kind of billing bug from the public trackers of other gateways, with its test.
type peerBug struct {
	name   string // of the subtest; begins with the number in docs/money.md
	public string // the public report
	make   func(t testing.TB) peerScene
}

// peerScene is the test of a bug, with its models and lines.
type peerScene struct {
	models, lines []map[string]any
	play          func(t *testing.T, g *gateway)
}

// peerBugs returns all bugs in the order of docs/money.md.
func peerBugs() []peerBug {
	return []peerBug{
		{"01_concurrent_calls_pass_one_balance", "QuantumNous/new-api#6609, #6607, #4413", oneBalance},
		{"02_concurrent_calls_pass_one_key", "songquanpeng/one-api#2440, #2446, #2447", oneKey},
		{"03_budget_is_counted_after_the_call", "BerriAI/litellm#34732", budgetWhileRunning},
		{"04_first_calls_of_a_newcomer_pass_unbudgeted", "BerriAI/litellm#40095", newcomers},
		{"05_nothing_is_held_where_cost_is_unknown", "BerriAI/litellm#35524", unknownCosts},
		{"06_hold_ignores_prices_of_long_prompts", "BerriAI/litellm#40002", longPrompts},
		{"07_budgets_are_lost_in_an_upgrade", "BerriAI/litellm#26672", budgetsThroughRestart},
		{"08_limit_is_set_and_never_asked", "BerriAI/litellm#27381", everyLimit},
		{"09_streams_drive_balances_below_zero", "Wei-Shaw/sub2api#3384, #7002, #7034, #2011, #3535", longStreams},
		{"10_credits_are_spent_again_while_debits_lag", "theopenco/llmgateway#3751, #3705", noLag},
		{"11_each_replica_has_a_budget_of_its_own", "maximhq/bifrost#3547, #5673, #2873", replicas},
		{"12_left_responses_stream_is_free", "QuantumNous/new-api#5235, #7062", leftResponses},
		{"13_usage_of_incomplete_answers_is_ignored", "QuantumNous/new-api#7241", incompleteAnswers},
		{"14_aborted_answers_leave_no_row", "BerriAI/litellm#33736, #37558, #36008, #35958, #13245", abortedAnswers},
		{"15_cancelled_stream_counts_one_token", "maximhq/bifrost#3357, #4575, #3709", cancelledStream},
		{"16_shutdown_drops_spend_and_start_zeroes_it", "maximhq/bifrost#3548, #5925", spendThroughRestart},
		{"17_queued_spend_is_lost", "BerriAI/litellm#38157, #34805, #33872, #34887, #25374", nothingQueued},
		{"18_stopping_early_is_free",
			"Wei-Shaw/sub2api#5856, pollinations/pollinations#5594, metadist/synaplan#1146, bitrouter/bitrouter#537", stoppedEarly},
		{"19_broken_streams_cost_too_much", "QuantumNous/new-api#5288, #5289, #5290", brokenStreams},
		{"20_count_is_applied_twice_and_rounded_up", "QuantumNous/new-api#3512, #3519, #2608", countedOnce},
		{"21_usage_is_counted_twice", "BerriAI/litellm#15740, #9812, #40016, #37992", usageOnce},
		{"22_leaked_holds_refuse_those_with_money", "BerriAI/litellm#27639, #30460, #36926, #35569, #29576, #30002", everyEnding},
		{"23_leaving_before_the_first_token_costs", "Wei-Shaw/sub2api#4408, QuantumNous/new-api#7231", leftBeforeTheFirst},
		{"24_failed_jobs_are_charged_or_refunded_twice", "QuantumNous/new-api#2050, #4211, #6795, #6074, Wei-Shaw/sub2api#4837", failedJobs},
		{"25_jobs_are_polled_one_by_one", "QuantumNous/new-api#5717, #5715", manyJobs},
		{"26_paid_credit_is_lost_or_given_twice", "QuantumNous/new-api#4179, #5105, Helicone/helicone#4344", creditsOnce},
		{"27_holds_refuse_bursts_that_cost_nothing", "can1357/oh-my-pi#9569, BerriAI/litellm#38647", smallHolds},
	}
}

// TestPeerBugs plays all bugs on both databases.
func TestPeerBugs(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		playAll(t, serveOn(t, database, t.TempDir(), nil))
	})
}

// TestPeerBugsAtSerializable plays all bugs on PostgreSQL at the isolation level serializable, where
// the server lets one of two conflicting transactions fail.
func TestPeerBugsAtSerializable(t *testing.T) {
	t.Parallel()
	const level = "serializable"
	g := serveOn(t, storetest.WithIsolation(t, storetest.PostgreSQL(t), level), t.TempDir(), nil)
	g.isolation = level
	playAll(t, g)
}

// playAll plays all bugs on a gateway, and then audits the books.
func playAll(t *testing.T, g *gateway) {
	t.Helper()
	scenes := map[string]peerScene{}
	var models, lines []map[string]any
	for _, b := range peerBugs() {
		s := b.make(t)
		scenes[b.name] = s
		models, lines = append(models, s.models...), append(lines, s.lines...)
	}
	g.setCatalog(models, lines)
	queue := make(chan peerBug)
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			for b := range queue {
				t.Run(b.name, func(t *testing.T) {
					own := *g
					own.t, own.Gateway = t, scene.GatewayAt(t, scene.Attach(t, g.Process.URL))
					own.Client = g.Client
					own.scenario = scenes[b.name]
					scenes[b.name].play(t, &own)
				})
			}
		})
	}
	for _, b := range peerBugs() {
		queue <- b
	}
	close(queue)
	group.Wait()
	g.Audit(t)
}

// TestPeerBugsAreDocumented compares the list with the table of docs/money.md.
func TestPeerBugsAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "money.md"))
	if err != nil {
		t.Fatal(err)
	}
	bugs := peerBugs()
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| ([^|]+) \\| ([^|]+) \\| `TestPeerBugs/([^`]+)` \\|$")
	rows := row.FindAllStringSubmatch(string(raw), -1)
	if len(bugs) != 27 || len(rows) != len(bugs) {
		t.Fatalf("%d bugs are tested and %d are in docs/money.md; want 27 of both", len(bugs), len(rows))
	}
	for i, row := range rows {
		if number := fmt.Sprint(i + 1); row[1] != number || row[3] != bugs[i].public || row[4] != bugs[i].name ||
			!strings.HasPrefix(bugs[i].name, fmt.Sprintf("%02d_", i+1)) {
			t.Errorf("docs/money.md, bug %s: %q in %s; want %q in %s", row[1], row[3], row[4], bugs[i].public, bugs[i].name)
		}
	}
}

// gateway is a tollgate in this process.
type gateway struct {
	*scene.Gateway
	t        *testing.T
	database string
	media    string
	settings map[string]string
	// isolation is the default isolation level of the gateway's PostgreSQL databases. If empty, it is
	// the server's default.
	isolation string
	scenario  peerScene // the scenario of the running subtest
	stop      func()    // stops the gateway; also called at the end of the test
}

// serveOn starts a gateway on a database, with settings.
func serveOn(t *testing.T, database, media string, settings map[string]string) *gateway {
	t.Helper()
	flags := map[string]string{"database": database, "media": "file:" + media}
	maps.Copy(flags, settings)
	p, stop := inprocess.Serve(t, flags, nil)
	g := &gateway{Gateway: scene.GatewayAt(t, p), t: t, database: database, media: media, settings: settings, stop: stop}
	g.Client.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	t.Cleanup(g.Client.CloseIdleConnections)
	return g
}

// startSeparate starts a gateway on a new database of the same kind, with the scenario of g. The
// subtest may stop and restart this gateway.
func (g *gateway) startSeparate(settings map[string]string) *gateway {
	g.t.Helper()
	var database string
	switch {
	case !g.severalNodes():
		database = storetest.SQLite(g.t)
	case g.isolation != "":
		database = storetest.WithIsolation(g.t, storetest.PostgreSQL(g.t), g.isolation)
	default:
		database = storetest.PostgreSQL(g.t)
	}
	own := serveOn(g.t, database, g.t.TempDir(), settings)
	own.scenario = g.scenario
	if len(g.scenario.models) > 0 {
		own.setCatalog(g.scenario.models, g.scenario.lines)
	}
	return own
}

// severalNodes reports whether the database allows several nodes.
func (g *gateway) severalNodes() bool { return strings.HasPrefix(g.database, "postgres") }

// secondNode starts a second node on the same database. On SQLite, it returns g.
func (g *gateway) secondNode() *gateway {
	g.t.Helper()
	if !g.severalNodes() {
		return g
	}
	return serveOn(g.t, g.database, g.media, g.settings)
}

// restart stops the gateway and starts it again.
func (g *gateway) restart() *gateway {
	g.t.Helper()
	g.stop()
	return serveOn(g.t, g.database, g.media, g.settings)
}

// operate calls the operator API. It repeats requests rejected by an overloaded gateway.
func (g *gateway) operate(method, path string, body any, headers ...string) (status int, answer string) {
	g.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	headers = append(headers, "Authorization", "Bearer "+scene.AdminToken)
	var h scene.FormAnswer
	scene.Eventually(g.t, "the operator API accepts a call", func() bool {
		h = scene.Call(g.t, g.Gateway, method, "/admin/v1"+path, string(raw), headers...)
		return h.Status != http.StatusServiceUnavailable
	})
	return h.Status, h.Raw
}

// admin calls the operator API and decodes the answer into v, unless v is nil. An error fails the
// test.
func (g *gateway) admin(method, path string, body, v any) {
	g.t.Helper()
	status, answer := g.operate(method, path, body)
	if status >= 400 {
		g.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(answer), v); err != nil {
		g.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
	}
}

// setCatalog replaces the catalog.
func (g *gateway) setCatalog(models, lines []map[string]any) {
	g.t.Helper()
	g.admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
}

// client is a client of a gateway with its own account and key.
type client struct {
	scene.FormClient
	g      *gateway
	credit money.Amount // all credits of the account
}

// open opens an account with a credit, and a key with limits.
func (g *gateway) open(credit money.Amount, limits map[string]any) client {
	g.t.Helper()
	var account struct{ ID string }
	g.admin("POST", "/accounts", map[string]any{"name": "test"}, &account)
	if credit != 0 {
		g.admin("POST", "/accounts/"+account.ID+"/credits", map[string]any{"usd": credit}, nil)
	}
	if limits == nil {
		limits = map[string]any{}
	}
	var created struct{ Key string }
	g.admin("POST", "/accounts/"+account.ID+"/keys", limits, &created)
	return client{scene.FormClient{T: g.t, Gateway: g.Gateway, Form: scene.Chat, Account: account.ID, Key: created.Key}, g, credit}
}

// onNode returns the client for another node.
func (c client) onNode(g *gateway) client {
	c.g, c.Gateway = g, g.Gateway
	return c
}

// withForm returns the client for another form.
func (c client) withForm(form scene.Form) client {
	c.Form = form
	return c
}

// wantFunds checks the sum of the account's charges, and of its holds.
func (c client) wantFunds(spent, held money.Amount) {
	c.T.Helper()
	var state scene.Funds
	c.g.admin("GET", "/accounts/"+c.Account, nil, &state)
	if state.Balance != c.credit-spent || state.Held != held {
		c.T.Errorf("balance %s and %s on hold; want %s less %s, and %s on hold", state.Balance, state.Held, c.credit, spent, held)
	}
}

// waitForFunds waits until the account has the charges and no hold. It is for requests whose client
// has disconnected.
func (c client) waitForFunds(spent money.Amount) {
	c.T.Helper()
	var state scene.Funds
	scene.Eventually(c.T, fmt.Sprintf("%s is charged and nothing is on hold", spent), func() bool {
		c.g.admin("GET", "/accounts/"+c.Account, nil, &state)
		return state.Held == 0 && state.Balance == c.credit-spent
	})
}

// keyState is a key in the operator API.
type keyState struct {
	ID         string       `json:"id"`
	SpentToday money.Amount `json:"spent_today_usd"`
	Spent      money.Amount `json:"spent_usd"`
	Held       money.Amount `json:"held_usd"`
	Over       money.Amount `json:"over_hold_usd"`
}

// onlyKey returns the account's only key.
func (c client) onlyKey() keyState {
	c.T.Helper()
	var page struct{ Data []keyState }
	c.g.admin("GET", "/accounts/"+c.Account+"/keys", nil, &page)
	if len(page.Data) != 1 {
		c.T.Fatalf("%d keys; want 1", len(page.Data))
	}
	return page.Data[0]
}

// wantSpent checks the key's charges, today and in total, and the money on hold.
func (c client) wantSpent(spent, held money.Amount) {
	c.T.Helper()
	if k := c.onlyKey(); k.Spent != spent || k.SpentToday != spent || k.Held != held {
		c.T.Errorf("the key has %+v; want %s spent and %s on hold", k, spent, held)
	}
}

// log waits until the account has a number of log entries and returns them, newest first. Requests
// that were repeated because of overload do not count.
func (c client) log(entries int) (rows []scene.Receipt) {
	c.T.Helper()
	scene.Eventually(c.T, fmt.Sprintf("%d requests are in the log", entries), func() bool {
		var page struct{ Data []scene.Receipt }
		c.g.admin("GET", "/requests?limit=200&account="+c.Account, nil, &page)
		rows = slices.DeleteFunc(page.Data, func(r scene.Receipt) bool { return r.Code == "service_unavailable" && r.Held == 0 })
		return len(rows) >= entries
	})
	if len(rows) != entries {
		c.T.Errorf("%d requests are in the log, want %d: %+v", len(rows), entries, rows)
	}
	return rows
}

// usageTotals are totals of the account's usage.
type usageTotals struct {
	Cost     money.Amount `json:"cost_usd"`
	Requests int64        `json:"requests"`
	Billed   int64        `json:"billed_requests"`
	Failed   int64        `json:"failed_requests"`
}

// wantTotals checks the totals and the balance of /v1/usage.
func (c client) wantTotals(want usageTotals) {
	c.T.Helper()
	var u struct {
		Balance struct{ USD money.Amount }
		Total   usageTotals
		Today   usageTotals
	}
	a := c.call("GET", "/v1/usage", "")
	if err := json.Unmarshal([]byte(a.Raw), &u); err != nil || u.Total != want || u.Today != want || u.Balance.USD != c.credit-want.Cost {
		c.T.Errorf("usage %s; want %+v of a credit of %s (%v)", a.Raw, want, c.credit, err)
	}
}

// call sends a request with the account's key.
func (c client) call(method, path, body string) (a scene.FormAnswer) {
	c.T.Helper()
	scene.Eventually(c.T, "the gateway takes a request", func() bool {
		a = scene.Call(c.T, c.Gateway, method, path, body, "x-api-key", c.Key, "Authorization", "Bearer "+c.Key)
		return a.Status != http.StatusServiceUnavailable
	})
	return a
}

// wantStatus sends a request to a path and checks the status and the error code.
func (c client) wantStatus(path, body string, status int, code string) scene.FormAnswer {
	c.T.Helper()
	a := c.Post(path, body)
	if e := a.Err(); a.Status != status || e.Code != code && !strings.HasPrefix(path, "/native") {
		c.T.Errorf("%s: %d %s; want %d %s", path, a.Status, a.Raw, status, code)
	}
	return a
}

// wantChat is like wantStatus, for the path of the client's form.
func (c client) wantChat(body string, status int, code string) scene.FormAnswer {
	c.T.Helper()
	return c.wantStatus(c.Form.Path(), body, status, code)
}

// burst sends several copies of a request concurrently. It waits for refused answers, which must have
// status 402. rest then gets the statuses of the other requests, with 0 for an incomplete answer.
func (c client) burst(calls, refused int, body string) (rest <-chan int) {
	c.T.Helper()
	statuses := make(chan int, calls)
	for range calls {
		go func() { statuses <- c.outcome(body) }()
	}
	for range refused {
		if status := <-statuses; status != http.StatusPaymentRequired {
			c.T.Errorf("a call of the burst was answered with %d; want 402", status)
		}
	}
	return statuses
}

// outcome sends a request and returns the status, or 0 if the answer is incomplete.
func (c client) outcome(body string) int {
	for {
		answer, err := c.send(context.Background(), body) // the client has a timeout
		if err != nil {
			return 0
		}
		raw, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		switch {
		case err != nil || bytes.HasPrefix(raw, []byte("data:")) && !bytes.Contains(raw, []byte("[DONE]")):
			return 0
		case answer.StatusCode != http.StatusServiceUnavailable: // repeat after an overload
			return answer.StatusCode
		}
	}
}

// wantOK reads the statuses of calls requests of a burst. All must be 200.
func wantOK(t *testing.T, rest <-chan int, calls int) {
	t.Helper()
	for range calls {
		if status := <-rest; status != http.StatusOK {
			t.Errorf("a call of the burst was answered with %d; want 200", status)
		}
	}
}

// send sends a request. The end of ctx disconnects the client.
func (c client) send(ctx context.Context, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", c.Gateway.Process.URL+c.Form.Path(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Key)
	return c.Gateway.Client.Do(r)
}

// leave sends a request and disconnects when the answer has contained text. It returns the id of
// the request.
func (c client) leave(body, text string) string {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	defer cancel()
	for {
		answer, err := c.send(ctx, body)
		if err != nil {
			c.T.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusServiceUnavailable {
			continue // repeat after an overload
		}
		var seen strings.Builder
		for part := make([]byte, 4096); !strings.Contains(seen.String(), text); {
			n, err := answer.Body.Read(part)
			seen.Write(part[:n])
			if err != nil && !strings.Contains(seen.String(), text) {
				c.T.Fatalf("%d %s: %v", answer.StatusCode, &seen, err)
			}
		}
		return answer.Header.Get("x-request-id")
	}
}

// leaveUnanswered sends a request and disconnects before the provider answers.
func (c client) leaveUnanswered(body string, provider *fakeprovider.Server) {
	c.T.Helper()
	before := len(provider.Requests())
	for arrived := false; !arrived; {
		ctx, cancel := context.WithCancel(c.T.Context())
		status := make(chan int, 1)
		go func() {
			answer, err := c.send(ctx, body)
			if err != nil {
				status <- 0 // the client has disconnected
				return
			}
			_ = answer.Body.Close()
			status <- answer.StatusCode
		}()
		var got int
		scene.Eventually(c.T, "the provider has the request", func() bool {
			arrived = len(provider.Requests()) > before
			select {
			case got = <-status:
				return true
			default:
				return arrived
			}
		})
		cancel()
		if arrived {
			got = <-status
		}
		if got != 0 && got != http.StatusServiceUnavailable {
			c.T.Fatalf("the answer began: %d", got)
		}
	}
}

// The prices of the chat models in nano-dollars per token: 1 USD per million prompt tokens, 2 USD per
// million completion tokens. answerCost is the cost of fakeprovider.Good.
const (
	perPrompt     = 1000
	perCompletion = 2000
	answerCost    = 1000*perPrompt + 500*perCompletion
)

// holdFor returns the hold for a text request with a limit of output completion tokens.
func holdFor(body string, output int) money.Amount {
	return money.Amount((len(body)+1000)*perPrompt + output*perCompletion)
}
