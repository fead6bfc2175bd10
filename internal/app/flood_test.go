package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/store/storetest"
)

// TestAFloodOfWrongKeys checks that every wrong key gets a 401, with a delay beyond the address's
// allowance, that a valid key from the same address is served meanwhile, and that the request log
// and the log get few entries.
func TestAFloodOfWrongKeys(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		allowed := wrongKeys()
		began := time.Now()
		allowed.Now = func() time.Time { return began } // on a slow machine, the flood would be too slow to be limited
		var slept atomic.Int64
		allowed.Sleep = func(context.Context, time.Duration) { slept.Add(1) }
		p := serveWith(t, testSettings(t, url, "{admin_token: "+operatorToken+", media: 'file:"+t.TempDir()+"'}"), Options{wrongKeys: allowed})
		defer p.stop(t)
		secret := regexp.MustCompile(`sk-[A-Za-z0-9_-]+`).FindString(p.out.String())
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
		defer client.CloseIdleConnections()
		send := func(key string) int {
			r, err := http.NewRequest("POST", "http://"+p.server.Address()+"/v1/chat/completions",
				strings.NewReader(`{"model":"sandbox-chat","messages":[{"role":"user","content":"hi"}],"max_tokens":9}`))
			if err != nil {
				t.Error(err)
				return 0
			}
			r.Header.Set("Authorization", "Bearer "+key)
			answer, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return 0
			}
			defer answer.Body.Close()
			_, _ = io.Copy(io.Discard, answer.Body) // a status is enough
			return answer.StatusCode
		}
		const callers, each = 40, 30
		var flood sync.WaitGroup
		var other atomic.Int64
		for n := range callers {
			flood.Go(func() {
				for m := range each {
					if send(fmt.Sprintf("%s%06d", secret[:len(secret)-6], n*each+m)) != 401 {
						other.Add(1)
					}
				}
			})
		}
		for range 20 {
			if status := send(secret); status != 200 {
				t.Errorf("a valid key is answered %d", status)
			}
		}
		flood.Wait()
		if n := other.Load(); n > 0 {
			t.Errorf("%d wrong keys were not answered 401", n)
		}
		late := fmt.Sprintf(`tollgate_wrong_keys_delayed_total{secret="api_key"} %d`, callers*each-allowed.Burst)
		if figures := ask(p.metrics.Handler(), "GET", "/metrics").Body.String(); !strings.Contains(figures, late+"\n") {
			t.Errorf("no %s", late)
		}
		if slept.Load() == 0 {
			t.Error("no wrong key was delayed")
		}
		_, _, list := p.ask(t, "GET", "/admin/v1/requests?status=401&limit=200", operatorToken, "")
		if rows := len(list["data"].([]any)); rows == 0 || rows > 40 {
			t.Errorf("%d rows in the request log", rows)
		}
		if n := strings.Count(p.err.String(), "\n"); n > 60 {
			t.Errorf("%d lines in the log", n)
		}
	})
}
