package crash

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestBurstLetsExactlyWhatFitsThrough sends a burst to the real process with holds for a part of
// it, down to the overdraft floor. The provider keeps admitted requests waiting until everything is
// decided.
func TestBurstLetsExactlyWhatFitsThrough(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		const burst, fit = 150, 7
		decided := make(chan struct{})
		provider := fakeprovider.New(t)
		provider.Always(func(fakeprovider.Request) fakeprovider.Reply {
			reply := fakeprovider.Answer("hello", 1000, 500)
			reply.Wait = decided
			return reply
		})
		process := scene.Start(t, binary, map[string]string{
			"database": database, "catalog": catalogFor(t, provider.URL()), "CRASH_TEST_KEY": "vendor-secret",
		})
		// The hold: the body's bytes plus 1000 at 1 USD per million tokens, and the limit of 500
		// tokens at 2.
		hold := money.Amount(len(question(false))+1000)*1000 + 500*2000
		account, key := process.Account(0, nil)
		process.Admin("PATCH", "/accounts/"+account, map[string]any{"overdraft_floor_usd": -2 * hold}, nil)
		process.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": (fit-2)*hold + hold/2}, nil)

		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: burst}, Timeout: time.Minute}
		defer client.CloseIdleConnections()
		statuses := make(chan int, burst)
		var group sync.WaitGroup
		for range burst {
			group.Go(func() {
				status := http.StatusServiceUnavailable
				for status == http.StatusServiceUnavailable { // a busy moment: nothing was done
					status = ask(client, process.URL, key, false).status
				}
				statuses <- status
			})
		}
		count := map[int]int{}
		for range burst - fit { // the refused; all others wait at the provider
			count[<-statuses]++
		}
		var state struct {
			Balance money.Amount `json:"balance_usd"`
			Held    money.Amount `json:"held_usd"`
		}
		process.Admin("GET", "/accounts/"+account, nil, &state)
		if state.Held != fit*hold {
			t.Errorf("%s USD are held; want %d times %s", state.Held, fit, hold)
		}
		close(decided)
		group.Wait()
		for range fit {
			count[<-statuses]++
		}
		if count[200] != fit || count[402] != burst-fit {
			t.Errorf("statuses %v; want %d times 200 and %d times 402", count, fit, burst-fit)
		}
		process.Admin("GET", "/accounts/"+account, nil, &state)
		if want := (fit-2)*hold + hold/2 - fit*2*money.USD/1000; state.Held != 0 || state.Balance != want {
			t.Errorf("%+v; want a balance of %s and nothing held", state, want)
		}
	})
}
