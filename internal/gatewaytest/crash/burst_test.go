package crash

import (
	"net/http"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestBurstLetsExactlyWhatFitsThrough sends a burst of requests to the real process. The balance and
// the overdraft cover the holds of only a few requests. The provider keeps the admitted requests
// waiting until all others are rejected.
func TestBurstLetsExactlyWhatFitsThrough(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		const burst, fit = 150, 7
		decided := make(chan struct{})
		provider := fakeprovider.New(t)
		provider.Always(func(fakeprovider.Request) fakeprovider.Reply {
			reply := fakeprovider.Answer("hello", 1000, 500)
			reply.Wait = decided
			return reply
		})
		n := open(t, database, provider, "15s")
		// The hold is the body's bytes plus 1000 at 1 USD per million tokens, plus the limit of 500
		// tokens at 2.
		hold := money.Amount(len(question(false))+1000)*1000 + 500*2000
		account, key := n.Account(0, nil)
		n.Admin("PATCH", "/accounts/"+account, map[string]any{"overdraft_floor_usd": -2 * hold}, nil)
		n.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": (fit-2)*hold + hold/2}, nil)

		statuses := make(chan int, burst)
		var group sync.WaitGroup
		for range burst {
			group.Go(func() {
				status := http.StatusServiceUnavailable
				for status == http.StatusServiceUnavailable { // the machine is busy: the request had no effect
					status = ask(t, n, key, false).Status
				}
				statuses <- status
			})
		}
		count := map[int]int{}
		for range burst - fit { // the rejected requests; all others wait at the provider
			count[<-statuses]++
		}
		if f := n.FundsOf(account); f.Held != fit*hold {
			t.Errorf("%s USD are held; want %d times %s", f.Held, fit, hold)
		}
		close(decided)
		group.Wait()
		for range fit {
			count[<-statuses]++
		}
		if count[200] != fit || count[402] != burst-fit {
			t.Errorf("statuses %v; want %d times 200 and %d times 402", count, fit, burst-fit)
		}
		if f, want := n.FundsOf(account), (fit-2)*hold+hold/2-fit*scene.AnswerCost; f.Held != 0 || f.Balance != want {
			t.Errorf("%+v; want a balance of %s and nothing held", f, want)
		}
	})
}
