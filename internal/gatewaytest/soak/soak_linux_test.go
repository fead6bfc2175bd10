// Package soak owns the long test of a gateway with little memory and few descriptors. Hostile and
// good clients use hostile and good providers at the same time. Invariant: a good client gets the
// answers of the healthy line.
package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

const (
	memory      = 512 << 20 // bytes
	descriptors = 400

	healthyLine   = "healthy"
	goodCallers   = 8
	goodPace      = 400 * time.Millisecond // interval of a good client's requests
	attackers     = 3                      // hostile clients, each with its own address
	attacksAtOnce = 4                      // concurrent attacks of each hostile client
	seed          = 20261122
	credit        = 1000 * money.USD
	// In a long run, one of overloadShare requests may be rejected because of overload, because the
	// clients and providers share the gateway's machine.
	overloadShare = 10
	// longestPause is the longest Retry-After of the hostile providers, plus rounding.
	longestPause = 3*time.Second + 2*time.Second
)

// hostileLines are resumed every second, so that they continue to get requests.
var hostileLines = []string{"hostile-1", "hostile-2", "hostile-studio"}

// TestHostileSoak runs all clients and providers with a gateway that has 512 MiB of memory and 400
// descriptors, for fifteen seconds or TOLLGATE_SOAK_MINUTES (`make soak`: ten). The gateway stays
// within its memory, its healthy line stays in service, its books are correct, and good clients get
// good answers. The allowed failures are rejections because of overload, and failures of hostile
// lines without failover: broken streams, answers above max_answer, and jobs past `total`.
func TestHostileSoak(t *testing.T) {
	length, long := 15*time.Second, false
	if text := os.Getenv("TOLLGATE_SOAK_MINUTES"); text != "" {
		minutes, err := strconv.ParseFloat(text, 64)
		if err != nil || minutes <= 0 {
			t.Fatalf("TOLLGATE_SOAK_MINUTES is %q", text)
		}
		length, long = time.Duration(minutes*float64(time.Minute)), true
	}
	s := prepare(t)
	s.long = long
	s.run(length)
	s.check()
}

// soak is a run of the test.
type soak struct {
	t         *testing.T
	long      bool
	process   *scene.Process
	binary    string
	settings  map[string]string
	hostile   *hostile
	trapped   *atomic.Int64 // requests to the trap
	good      []*goodClient
	attackers []*attacker
	all       []string // ids of all accounts
	peak      int64
	open      int // maximum number of descriptors
	samples   int
}

func prepare(t *testing.T) *soak {
	trap, trapped := newTrap(t)
	s := &soak{t: t, binary: scene.Binary(t), hostile: newHostile(t, seed, trap), trapped: trapped}
	s.settings = map[string]string{"database": storetest.SQLite(t), "expose_line": "true", "private_networks": "127.0.0.1/32",
		"max_connections_per_address": "50", "VENDOR_KEY": "vendor-secret"}
	command, how := scene.Limited(t, s.binary, s.settings, memory, descriptors)
	t.Logf("memory is limited by %s", how)
	s.process = scene.Start(t, command, s.settings)
	healthyServer := httptest.NewServer(http.HandlerFunc(healthy))
	t.Cleanup(healthyServer.Close)
	s.process.Admin("PUT", "/catalog", catalog(healthyServer.URL+"/v1", s.hostile.URL+"/v1", fakestudio.NewOpenAI(t).URL()), nil)
	for n := range goodCallers {
		account, key := s.account(credit)
		s.good = append(s.good, &goodClient{url: s.process.URL, account: account, key: key, client: clientFrom(fmt.Sprintf("127.0.1.%d",
			n+1), time.Minute), statuses: map[string]int{}})
	}
	slow, host := newHost(t), strings.TrimPrefix(s.process.URL, "http://")
	for n := range attackers {
		_, rich := s.account(credit)
		_, poor := s.account(0)
		s.attackers = append(s.attackers, &attacker{url: s.process.URL, host: host, slow: slow, ip: fmt.Sprintf("127.0.2.%d", n+1), rich: rich,
			poor: poor, done: map[string]int{}})
	}
	return s
}

// account opens an account with a credit and returns its id and a key.
func (s *soak) account(usd money.Amount) (account, key string) {
	account, key = s.process.Account(0, nil)
	if usd > 0 {
		s.process.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": usd}, nil)
	}
	s.all = append(s.all, account)
	return account, key
}

func catalog(healthyServer, hostile, studio string) map[string]any {
	chat := func(id string, forms ...string) map[string]any {
		return map[string]any{"id": id, "kind": "chat", "forms": forms, "context_window": 100_000, "max_output_tokens": 20_000,
			"price": map[string]any{"input": 1, "output": 2}}
	}
	line := func(id, base string, models map[string]string, more map[string]any) map[string]any {
		l := map[string]any{"id": id, "provider": "openai", "base_url": base, "api_key": "${VENDOR_KEY}", "models": models}
		for k, v := range more {
			l[k] = v
		}
		return l
	}
	short := map[string]any{"forms": []string{"chat"}, "timeouts": map[string]any{"first_token": "1s", "idle": "1s", "total": "2s"}}
	talk, easel := map[string]string{"talk": "vendor-talk"}, map[string]string{"easel": "gpt-image-2"}
	return map[string]any{
		"models": []any{
			chat("talk", "chat", "responses", "messages"), chat("sandbox", "chat", "messages"),
			map[string]any{"id": "easel", "kind": "image", "price": map[string]any{"1K": 0.03}, "ratios": []string{"1:1"},
				"max_images": 1, "max_references": 4},
		},
		"lines": []any{
			line("hostile-1", hostile, talk, short), line("hostile-2", hostile, talk, short), line(healthyLine, healthyServer, talk,
				map[string]any{"forms": []string{"chat"}}),
			line("hostile-studio", hostile, easel, map[string]any{"timeouts": map[string]any{"total": "5s"}}), line("studio",
				studio, easel, nil),
			map[string]any{"id": "sandbox", "provider": "sandbox", "models": map[string]string{"sandbox": "sandbox-chat"},
				"options": map[string]any{"tokens": 20_000}},
		},
	}
}

// run runs all clients for a time and samples the gateway every second.
func (s *soak) run(length time.Duration) {
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	var group sync.WaitGroup
	for n, g := range s.good {
		group.Go(func() { g.work(ctx, rand.New(rand.NewPCG(seed, uint64(n))), goodPace) })
	}
	for n, a := range s.attackers {
		for worker := range attacksAtOnce {
			group.Go(func() { a.work(ctx, rand.New(rand.NewPCG(seed+1, uint64(n*attacksAtOnce+worker)))) })
		}
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	hasImage := func() bool { return slices.ContainsFunc(s.good, func(g *goodClient) bool { return g.hasImage.Load() }) }
	// A busy machine gets one more minute for the first image.
	for begin := time.Now(); time.Since(begin) < length || !hasImage() && time.Since(begin) < length+time.Minute; <-ticker.C {
		s.sample()
		for _, line := range hostileLines {
			s.operate("POST", "/lines/"+line+"/resume", nil)
		}
	}
	stop()
	group.Wait()
	s.sample()
}

// operate calls the operator API. It returns false if the gateway is overloaded.
func (s *soak) operate(method, path string, into any) bool {
	s.t.Helper()
	res, err := scene.Do(s.t.Context(), http.DefaultClient, method, s.process.URL+"/admin/v1"+path, "{}",
		"Authorization", "Bearer "+scene.AdminToken)
	if err != nil {
		s.t.Errorf("the operator API does not answer: %v", err)
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable:
		s.t.Errorf("%s %s: %d %s, %v", method, path, res.StatusCode, body, err)
		return false
	case res.StatusCode != http.StatusOK:
		return false
	}
	if into != nil {
		err = json.Unmarshal(body, into)
	}
	return err == nil
}

// sample records the gateway's memory and descriptors, and checks the lines. The healthy lines must
// be in service, and the hostile lines out of service for no longer than their failures require.
func (s *soak) sample() {
	s.t.Helper()
	s.peak, s.open = max(s.peak, s.process.Peak()), max(s.open, len(s.process.Descriptors()))
	var list struct {
		Data []struct {
			ID, State, Cause string
			Until            int64             `json:"cooling_until"`
			Out              []json.RawMessage `json:"models_out"`
		} `json:"data"`
	}
	if !s.operate("GET", "/lines", &list) {
		return
	}
	s.samples++
	for _, l := range list.Data {
		left := time.Until(time.Unix(l.Until, 0))
		switch {
		case len(l.Out) > 0:
			s.t.Errorf("line %s has the models %s out of service", l.ID, l.Out)
		case l.State == "in_service":
		case !slices.Contains(hostileLines, l.ID):
			s.t.Errorf("line %s is %s: %s", l.ID, l.State, l.Cause)
		case l.State == "cooling" && left > longestPause:
			s.t.Errorf("line %s cools for %s; want at most its Retry-After of 3s", l.ID, left)
		case l.State != "cooling" && l.State != "circuit_open" && l.State != "half_open":
			s.t.Errorf("line %s is %s: %s", l.ID, l.State, l.Cause)
		}
	}
}

// check checks the results of all clients, the books and the log.
func (s *soak) check() {
	var took []time.Duration
	attempts, answers, images, overloads, broken, long, timedOut := 0, 0, 0, 0, 0, 0, 0
	for _, g := range s.good {
		attempts, answers, images = attempts+g.attempts, answers+g.answers, images+g.images
		overloads, broken, long = overloads+g.overloads, broken+g.broken, long+g.long
		took = append(took, g.took...)
		for _, wrong := range g.wrong {
			s.t.Errorf("a good client got an error: %s", wrong)
		}
		timedOut += s.failed(g)
	}
	attacks := map[string]int{}
	for _, a := range s.attackers {
		for name, n := range a.done {
			attacks[name] += n
		}
		for _, wrong := range a.wrong {
			s.t.Error(wrong)
		}
	}
	s.t.Logf("good clients: %d requests, %d answers (%d images), %d overloaded, "+
		"%d streams broken by a hostile line, %d answers of hostile lines above max_answer, "+
		"%d jobs without an answer within total; chat p50 %s, p99 %s",
		attempts, answers, images, overloads, broken, long, timedOut, quantile(took, 0.5), quantile(took, 0.99))
	s.t.Logf("gateway: at most %d MiB, %d descriptors; %d samples of its lines", s.peak>>20, s.open, s.samples)
	s.t.Logf("hostile clients: %v", attacks)
	counts := s.hostile.counts()
	s.t.Logf("hostile providers: %v", counts)
	if attempts != answers+overloads+broken+long+timedOut {
		s.t.Errorf("%d requests of good clients, but %d answers", attempts, answers)
	}
	if s.long && overloads*overloadShare > attempts {
		s.t.Errorf("%d of %d requests were rejected because of overload", overloads, attempts)
	}
	if answers < goodCallers || images == 0 || s.samples == 0 || len(counts) < len(badAnswers())/2 {
		s.t.Error("the load did not reach the gateway")
	}
	if s.peak > memory {
		s.t.Errorf("the gateway used %d MiB", s.peak>>20)
	}
	if n := s.trapped.Load(); n > 0 {
		s.t.Errorf("%d requests followed a redirect to a private address", n)
	}
	s.books()
	s.process.CheckStop(s.t)
	scene.CheckBooks(s.t, s.binary, s.settings)
	for line := range strings.Lines(s.process.Output()) {
		if strings.Contains(line, "panic") || strings.Contains(line, "fatal error") {
			s.t.Errorf("the log has: %s", line)
		}
	}
}

// failed counts a client's failed jobs. The only allowed reason is a hostile line that did not answer
// within the timeout `total`. This line may have begun the job, so there is no failover.
func (s *soak) failed(g *goodClient) (timedOut int) {
	s.t.Helper()
	for _, id := range g.failed {
		var job struct {
			Attempts []struct{ Line, Cause string } `json:"attempts"`
		}
		n := 0
		if s.operate("GET", "/jobs/"+id, &job) {
			n = len(job.Attempts)
		}
		if n == 0 || job.Attempts[n-1].Line != "hostile-studio" || !strings.HasPrefix(job.Attempts[n-1].Cause, "upstream_timeout:") {
			s.t.Errorf("job %s failed: %+v", id, job.Attempts)
			continue
		}
		timedOut++
	}
	return timedOut
}

// books waits until no money is on hold and compares the clients' results with the gateway's books.
func (s *soak) books() {
	s.t.Helper()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	balances := map[string]money.Amount{}
	for deadline := time.Now().Add(2 * time.Minute); len(balances) < len(s.all); <-ticker.C {
		for _, account := range s.all {
			var state scene.Funds
			if s.operate("GET", "/accounts/"+account, &state) && state.Held == 0 {
				balances[account] = state.Balance
			}
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%d of %d accounts still have money on hold", len(s.all)-len(balances), len(s.all))
			break
		}
	}
	for _, g := range s.good {
		s.checkAccount(g, balances[g.account])
	}
	var audit struct {
		OK          bool  `json:"ok"`
		Differences []any `json:"differences"`
	}
	if s.operate("GET", "/audit", &audit); !audit.OK {
		s.t.Errorf("audit: %v", audit.Differences)
	}
}

// checkAccount compares a client's answers with the request log and the balance. Answers from the healthy
// line have their exact cost, errors are free, and the log explains the balance.
func (s *soak) checkAccount(g *goodClient, balance money.Amount) {
	s.t.Helper()
	left, charged, images := money.Amount(credit), map[string]money.Amount{}, 0
	for after, more := "", true; more; {
		var page struct {
			Data []struct {
				ID    string       `json:"id"`
				Model string       `json:"model"`
				Cost  money.Amount `json:"cost_usd"`
			} `json:"data"`
			More bool `json:"has_more"`
		}
		if !s.operate("GET", fmt.Sprintf("/requests?limit=200&account=%s&after=%s", g.account, after), &page) {
			s.t.Error("the request log cannot be read")
			return
		}
		for _, r := range page.Data {
			left -= r.Cost
			after, charged[r.ID] = r.ID, r.Cost
			if r.Model == "easel" && r.Cost > 0 {
				images++
			}
		}
		more = page.More
	}
	if left != balance {
		s.t.Errorf("the balance of account %s is %s; by its receipts, %s", g.account, balance, left)
	}
	if images != g.images {
		s.t.Errorf("account %s has %d images and was charged for %d", g.account, g.images, images)
	}
	for _, id := range g.exact {
		if charged[id] != chatCost {
			s.t.Errorf("answer %s was charged %s, want %s", id, charged[id], chatCost)
		}
	}
	for id, status := range g.statuses {
		if status != http.StatusOK && charged[id] != 0 {
			s.t.Errorf("request %s was answered with %d and charged %s", id, status, charged[id])
		}
	}
}
