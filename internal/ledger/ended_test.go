package ledger

import (
	"context"
	"slices"
	"sync"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

func TestObserverGetsEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var mu sync.Mutex
		var got []books.EndedRequest
		f := start(t, db, func(o *Options) {
			o.Observer.Ended = func(e books.EndedRequest) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, e)
			}
		})
		f.open("a", 10*money.USD, 0, KeyLimits{})
		end := billed(3 * money.USD)
		end.Tokens = Tokens{Prompt: 7, Cached: 3, Completion: 5}
		if err := f.mustAdmit("a", money.USD).Settle(context.Background(), end); err != nil {
			t.Fatal(err)
		}
		f.mustAdmit("a", money.USD).Release(failed())
		if _, err := f.admit("a", 100*money.USD); err == nil {
			t.Fatal("admitted without enough credit, want a refusal")
		}
		const refusals = 15 // more than the rows of a minute
		for range refusals {
			f.Refused(Refusal{Request: id.New("req_"), Model: "no-such", Code: "model_not_found", Status: 400})
		}
		mu.Lock()
		defer mu.Unlock()
		want := []books.EndedRequest{
			{Model: "m", Tokens: end.Tokens, Charged: money.USD}, {Model: "m", Code: failed().Code},
			{Refused: true, Model: "m", Code: string(fault.InsufficientQuota)},
		}
		for range refusals {
			want = append(want, books.EndedRequest{Refused: true, Model: "no-such", Code: "model_not_found"})
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
}
