package lines

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

const (
	soakCallers  = 64
	soakAccounts = 8
	soakCredit   = 1000 // USD for each account
	// soakSeed makes the random failures repeatable.
	soakSeed = 20261121
	// In a long run with one of two lines failing, the 99th percentile of the answer times may be at
	// most soakFactor times, plus soakSlack, as long as for a model with the good line only. A short
	// run checks no times, because the machine may be busy.
	soakFactor = 3
	soakSlack  = 50 * time.Millisecond
)

// TestSoak sends a steady load to a model with two lines of equal weight. One of them always fails,
// in random ways. Clients may get no error and hardly a delay.
//
// In the first half, the operator resumes the failing line twice a second, so that it gets
// requests. In the second half, which has the measured times, the line is resumed once and its port
// refuses connections.
func TestSoak(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	half, long := 2*time.Second, os.Getenv("TOLLGATE_TORTURE") != ""
	if long {
		half = 30 * time.Second
	}
	storetest.EachURL(t, func(t *testing.T, database string) { soak(t, binary, database, half, long) })
}

// bad returns failures before the first byte.
func bad() []func(stream bool) fakeprovider.Reply {
	same := func(r fakeprovider.Reply) func(bool) fakeprovider.Reply {
		return func(bool) fakeprovider.Reply { return r }
	}
	kind := func(whole, stream fakeprovider.Reply) func(bool) fakeprovider.Reply {
		return func(s bool) fakeprovider.Reply {
			if s {
				return stream
			}
			return whole
		}
	}
	role := fakeprovider.Frame(`{"role":"assistant","content":""}`, "")
	return []func(bool) fakeprovider.Reply{
		same(fakeprovider.Reply{Before: fakeprovider.Reset}),
		same(fakeprovider.Reply{Before: fakeprovider.Stall}),
		same(fakeprovider.Error(500, "server_error", "", "x")),
		same(fakeprovider.Busy(0)),
		same(fakeprovider.Page(200)),
		same(fakeprovider.Reply{Wire: "SSH-2.0-OpenSSH_9.6\r\n"}),
		kind(*fakeprovider.Completion(`{"role":"assistant","content":""}`, `"stop"`),
			*fakeprovider.Events(role, fakeprovider.RawFrame(`{}`, `"stop"`), "[DONE]")),
		kind(fakeprovider.Reply{Body: `{"id":"x","choices":[{`, Length: 4096}, fakeprovider.Reply{Events: []string{role}, End: fakeprovider.Cut}),
		kind(fakeprovider.Answer("[ERROR] no channel", 0, 0), fakeprovider.Stream(0, 0, "[ERROR] ", "no channel")),
	}
}

// soaker is the load and its results.
type soaker struct {
	f    *scene.Gateway
	keys []string

	mu        sync.Mutex
	measured  bool                       // in the second half
	took      map[string][]time.Duration // by model, in the second half
	first     map[string][]time.Duration // in the first half
	good      int                        // complete answers
	overloads int                        // rejected by an overloaded gateway
	wrong     []string                   // the first few other results
}

func soak(t *testing.T, binary, database string, half time.Duration, long bool) {
	f := scene.Open(t, binary, database, nil)
	f.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakCallers}}
	t.Cleanup(f.Client.CloseIdleConnections)
	broken, works := soakProviders(t)
	flagged := map[string]any{
		"timeouts":        map[string]any{"first_token": "300ms", "idle": "300ms", "total": "300ms"},
		"error_sentences": []string{`^\[ERROR\]`},
	}
	f.Process.Admin("PUT", "/catalog", map[string]any{
		"models": []any{scene.ChatModel("soak", nil), scene.ChatModel("control", nil)},
		"lines":  []any{scene.ChatLine("bad", broken.URL(), flagged, "soak"), scene.ChatLine("good", works.URL(), nil, "soak", "control")},
	}, nil)
	s := &soaker{f: f, took: map[string][]time.Duration{}, first: map[string][]time.Duration{}}
	var accounts []string
	for range soakAccounts {
		account, key := f.Process.Account(soakCredit, nil)
		accounts, s.keys = append(accounts, account), append(s.keys, key)
	}
	s.run(t, half, broken)
	s.check(t, accounts, len(broken.Requests()), long)
}

// soakProviders returns a provider that always fails and one that never does.
func soakProviders(t *testing.T) (broken, works *fakeprovider.Server) {
	broken, works = fakeprovider.New(t), fakeprovider.New(t)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(soakSeed, soakSeed))
	ways := bad()
	broken.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		mu.Lock()
		way := ways[random.IntN(len(ways))]
		mu.Unlock()
		return way(bytes.Contains(q.Body, []byte(`"stream":true`)))
	})
	works.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		reply := fakeprovider.Answer("all is well", 1000, 500)
		if bytes.Contains(q.Body, []byte(`"stream":true`)) {
			reply = fakeprovider.Stream(1000, 500, "all ", "is ", "well")
		}
		reply.Delay = 10 * time.Millisecond
		return reply
	})
	return broken, works
}

// run sends the load of both halves.
func (s *soaker) run(t *testing.T, half time.Duration, broken *fakeprovider.Server) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	for client := range soakCallers {
		group.Go(func() { s.call(ctx, client) })
	}
	resume := func() { s.f.Process.Admin("POST", "/lines/bad/resume", map[string]any{}, nil) }
	begin := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for time.Since(begin) < half {
		<-tick.C
		resume()
	}
	scene.Eventually(t, "the bad line gets requests", func() bool {
		resume()
		return len(broken.Requests()) >= len(bad())
	})
	broken.Close()
	s.mu.Lock()
	s.measured = true
	s.mu.Unlock()
	resume()
	for time.Since(begin) < 2*half {
		<-tick.C
	}
	scene.Eventually(t, "the clients get answers", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.good >= soakCallers
	})
	stop()
	group.Wait()
}

// call sends requests one after the other until ctx ends, each with a new conversation, so that the
// lines share them evenly.
func (s *soaker) call(ctx context.Context, client int) {
	random := rand.New(rand.NewPCG(soakSeed, uint64(client)))
	for n := 0; ctx.Err() == nil; n++ {
		model := []string{"soak", "control"}[random.IntN(2)]
		request := scene.Request(scene.Chat, model, random.IntN(2) == 0, map[string]any{
			"messages": []any{map[string]any{"role": "user", "content": fmt.Sprintf("%d asks %d", client, n)}},
		})
		s.mu.Lock()
		measured := s.measured
		s.mu.Unlock()
		begin := time.Now()
		// The last request is not cancelled, so that every answer counts.
		a, err := scene.SendChat(context.WithoutCancel(ctx), s.f.Client, s.f.Process.URL+scene.Chat.Path(), s.keys[client%len(s.keys)], request)
		s.note(model, measured, time.Since(begin), a, err)
	}
}

// note records an answer.
func (s *soaker) note(model string, measured bool, took time.Duration, a scene.Answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && a.Status == 200 && a.Complete && a.Text == "all is well" && a.Finish == "stop":
		s.good++
	case err == nil && a.Status == 503 && a.RetryAfter != "":
		s.overloads++
		return
	default:
		if s.wrong = append(s.wrong, fmt.Sprintf("%s after %s: %v %+v", model, took, err, a)); len(s.wrong) > 5 {
			s.wrong = s.wrong[:5]
		}
	}
	if measured {
		s.took[model] = append(s.took[model], took)
	} else {
		s.first[model] = append(s.first[model], took)
	}
}

// slowest returns the 99th percentile.
func slowest(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)*99/100]
}

// check checks the results.
func (s *soaker) check(t *testing.T, accounts []string, tried int, long bool) {
	for _, wrong := range s.wrong {
		t.Errorf("a client noticed: %s", wrong)
	}
	soaked, control := slowest(s.took["soak"]), slowest(s.took["control"])
	t.Logf("%d answers, %d overloaded, %d attempts on the bad line; slowest hundredth of %d: %s, "+
		"of %d with the good line alone: %s (first half %s and %s)",
		s.good, s.overloads, tried, len(s.took["soak"]), soaked, len(s.took["control"]), control, slowest(s.first["soak"]),
		slowest(s.first["control"]))
	if long && soaked > soakFactor*control+soakSlack {
		t.Errorf("the slowest hundredth came after %s; with the good line alone after %s", soaked, control)
	}
	left := money.Amount(0)
	for _, account := range accounts {
		var state struct {
			Balance money.Amount `json:"balance_usd"`
			Held    money.Amount `json:"held_usd"`
		}
		scene.Eventually(t, "nothing is held", func() bool {
			s.f.Process.Admin("GET", "/accounts/"+account, nil, &state)
			return state.Held == 0
		})
		left += state.Balance
	}
	if want := soakAccounts*soakCredit*money.USD - money.Amount(s.good)*scene.AnswerCost; left != want {
		t.Errorf("%s USD are left, want %s: each answer charged once, and nothing else", left, want)
	}
	s.f.Audit(t)
	if out := s.f.Process.Stop(); out != 0 {
		t.Errorf("exit code %d\n%s", out, s.f.Process.Output())
	}
}
