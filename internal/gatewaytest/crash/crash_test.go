// Package crash owns the tests of the process under load while it is killed, refuses requests, or
// has a full disk.
package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// catalogFor is a catalog with one chat model on one line at a provider.
func catalogFor(t testing.TB, baseURL string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	text := `
models:
  - {id: m, kind: chat, state: open, forms: [chat], context_window: 100000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: main, provider: openai, base_url: "` + baseURL + `", api_key: "${CRASH_TEST_KEY}", models: {m: vendor-m}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// seen is the client's view of one request.
type seen struct {
	id       string // x-request-id; empty when no answer began
	status   int
	complete bool // the whole answer arrived
}

// question is the body of every request.
func question(stream bool) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":500,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
}

// ask sends one request and reads its answer to the end.
func ask(client *http.Client, url, key string, stream bool) seen {
	req, err := http.NewRequest("POST", url+"/v1/chat/completions", strings.NewReader(question(stream)))
	if err != nil {
		return seen{}
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := client.Do(req)
	if err != nil {
		return seen{}
	}
	defer res.Body.Close()
	s := seen{id: res.Header.Get("x-request-id"), status: res.StatusCode}
	if stream && res.StatusCode == 200 {
		finish, done := false, false
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			finish = finish || bytes.Contains(lines.Bytes(), []byte(`"finish_reason":"stop"`))
			done = done || lines.Text() == "data: [DONE]"
		}
		s.complete = finish && done
		return s
	}
	raw, err := io.ReadAll(res.Body)
	s.complete = err == nil && json.Valid(raw)
	return s
}

// TestKillUnderLoad kills the real process at random moments under load and checks after each
// restart: every complete answer is charged once, no error is charged, a request has at most one
// charge, no hold is left, and the audit finds nothing.
func TestKillUnderLoad(t *testing.T) {
	binary := scene.Binary(t)
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
		settings := map[string]string{
			"database": database, "catalog": catalogFor(t, provider.URL()), "node_lease": "1s",
			"CRASH_TEST_KEY": "vendor-secret",
		}
		crash(t, binary, settings, rounds)
	})
}

func crash(t *testing.T, binary string, settings map[string]string, rounds int) {
	const callers = 24
	process := scene.Start(t, binary, settings)
	account, key := process.Account(1000, nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()

	var mu sync.Mutex
	var all []seen
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
					s := ask(client, process.URL, key, c%2 == 0)
					mu.Lock()
					all = append(all, s)
					mu.Unlock()
					if s.status == 0 { // the process is gone
						return
					}
				}
			})
		}
		moment := time.NewTimer(time.Duration(200+rand.IntN(500)) * time.Millisecond)
		<-moment.C
		process.Kill()
		close(stop)
		group.Wait()
		process = scene.Start(t, binary, settings)
		waitForSweep(t, process, account)
		if out, diag, code := scene.Run(t, binary, settings, "audit"); code != 0 {
			t.Fatalf("round %d: audit: exit %d\n%s%s", round, code, out, diag)
		}
	}
	check(t, process, account, all)
	if code := process.Stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, process.Output())
	}
}

// waitForSweep waits until nothing is held: on PostgreSQL the former process
// is declared dead after a lease.
func waitForSweep(t *testing.T, process *scene.Process, account string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		var state struct {
			Held money.Amount `json:"held_usd"`
		}
		process.Admin("GET", "/accounts/"+account, nil, &state)
		if state.Held == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s USD are still held", state.Held)
		}
		tick := time.NewTimer(50 * time.Millisecond)
		<-tick.C
	}
}

// check compares the clients' views with the request log.
func check(t *testing.T, process *scene.Process, account string, all []seen) {
	t.Helper()
	type receipt struct {
		ID     string       `json:"id"`
		Status int          `json:"status"`
		Code   string       `json:"code"`
		Cost   money.Amount `json:"cost_usd"`
	}
	receipts := map[string]receipt{}
	var total money.Amount
	for after := ""; ; {
		var page struct {
			Data    []receipt `json:"data"`
			HasMore bool      `json:"has_more"`
		}
		process.Admin("GET", "/requests?limit=200&account="+account+"&after="+after, nil, &page)
		for _, r := range page.Data {
			if _, twice := receipts[r.ID]; twice {
				t.Errorf("%s has two receipts", r.ID)
			}
			receipts[r.ID] = r
			total += r.Cost
			after = r.ID
		}
		if !page.HasMore {
			break
		}
	}
	// 1000 prompt and 500 completion tokens at 1 and 2 USD a million.
	const price = 2 * money.USD / 1000
	complete, cut, failed := 0, 0, 0
	for _, s := range all {
		r, logged := receipts[s.id]
		switch {
		case s.status == 200 && s.complete:
			complete++
			if !logged || r.Cost != price || r.Status != 200 {
				t.Errorf("a complete answer was seen, but its receipt is %+v (found: %v)", r, logged)
			}
		case s.status >= 400:
			failed++
			if r.Cost != 0 {
				t.Errorf("an error of status %d was charged: %+v", s.status, r)
			}
		case s.id != "":
			cut++
		}
	}
	for _, r := range receipts {
		if r.Cost > price {
			t.Errorf("charged more than the answer costs: %+v", r)
		}
	}
	var state struct {
		Balance money.Amount `json:"balance_usd"`
	}
	process.Admin("GET", "/accounts/"+account, nil, &state)
	if state.Balance != 1000*money.USD-total {
		t.Errorf("balance %s; want 1000 less charges of %s", state.Balance, total)
	}
	t.Logf("%d answers complete, %d errors, %d cut, %d receipts", complete, failed, cut, len(receipts))
	if complete == 0 || failed == 0 {
		t.Error("the load did not reach the gateway")
	}
}
