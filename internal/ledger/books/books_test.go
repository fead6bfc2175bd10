package books

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// TestBooksKeepTheirInvariants runs random operations and, after each one, compares the books with a
// simple model.
func TestBooksKeepTheirInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := New()
		b.NowMS = time.Date(2026, 1, 1, 23, 50, 0, 0, time.UTC).UnixMilli()
		floor := -money.Amount(rapid.Int64Range(0, 50).Draw(t, "floor"))
		credit := money.Amount(rapid.Int64Range(0, 500).Draw(t, "credit"))
		b.Accounts["a"] = &AccountRow{ID: "a", Balance: credit, Floor: floor}
		optional := func(name string) money.Amount {
			return money.Amount(rapid.Int64Range(-1, 300).Draw(t, name))
		}
		rpm := rapid.Int64Range(-1, 5).Draw(t, "rpm")
		for _, k := range []string{"k1", "k2"} {
			b.Keys[k] = &KeyRow{ID: k, Account: "a", Version: 1, RPM: rpm, DailyBudget: optional("budget"), Limit: optional("limit")}
		}
		open := map[string]money.Amount{}
		var charged money.Amount
		var realMS int64
		var admittedAt []int64
		for i := range rapid.IntRange(1, 60).Draw(t, "operations") {
			elapsed := rapid.Int64Range(-1000, 30_000).Draw(t, "ms") // negative if the clock was set back
			b.NowMS += elapsed
			realMS += max(0, elapsed)
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what <= 1 || len(open) == 0:
				a := Admission{Request: fmt.Sprint("r", i), Account: "a", Model: "m", KeyVersion: 1,
					Key:    rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key"),
					Amount: money.Amount(rapid.Int64Range(0, 200).Draw(t, "amount"))}
				before, keyBefore := *b.Accounts["a"], *b.Keys[a.Key]
				// A time in the future counts as now after the clock was set back.
				keyBefore.LastHitMS = min(keyBefore.LastHitMS, b.NowMS)
				hold, err := b.Admit(a, "e")
				if err != nil {
					var f *fault.Error
					if !errors.As(err, &f) {
						t.Fatalf("refused with %v, want a *fault.Error", err)
					}
					if *b.Accounts["a"] != before || *b.Keys[a.Key] != keyBefore {
						t.Fatalf("a refusal changed the books to %+v, %+v; want %+v, %+v", *b.Accounts["a"], *b.Keys[a.Key], before, keyBefore)
					}
					continue
				}
				b.Holds[hold.ID] = hold
				open[hold.ID] = hold.Amount
				if a.Key == "k1" {
					admittedAt = append(admittedAt, realMS)
				}
			default:
				id := rapid.SampledFrom(sorted(open)).Draw(t, "hold")
				end := End{Outcome: Outcome(rapid.Int64Range(1, 3).Draw(t, "outcome")), Cost: money.Amount(rapid.Int64Range(-5, 250).Draw(t, "cost"))}
				receipt, ended := b.End(id, end, "[]")
				if !ended {
					t.Fatal("End of an open hold returned false, want true")
				}
				if receipt.Cost < 0 || receipt.Cost > open[id] || (end.Outcome != Billed && receipt.Cost != 0) {
					t.Fatalf("charged %d for outcome %d, want at most the hold of %d and only if billed", receipt.Cost, end.Outcome, open[id])
				}
				charged += receipt.Cost
				delete(open, id)
				if _, again := b.End(id, end, "[]"); again {
					t.Fatal("a second End of a hold returned true, want false")
				}
			}
			var held money.Amount
			for _, amount := range open {
				held += amount
			}
			acct := b.Accounts["a"]
			if b.Held["a"][HeldKey{"", EveryDay}] != held || acct.Balance != credit-charged || acct.Balance < floor && credit >= floor {
				t.Fatalf("got account %+v, want %d held and %d charged of %d", acct, held, charged, credit)
			}
			heldBy := func(key string) money.Amount { return b.Held["a"][HeldKey{key, EveryDay}] }
			if heldBy("k1")+heldBy("k2") != held || b.Keys["k1"].Spent+b.Keys["k2"].Spent != charged {
				t.Fatalf("got keys %+v %+v, want %d held and %d spent in total", b.Keys["k1"], b.Keys["k2"], held, charged)
			}
			for _, k := range b.Keys {
				if k.Limit >= 0 && k.Spent+heldBy(k.ID) > k.Limit {
					t.Fatalf("got key %+v with %d held, want at most its limit", k, heldBy(k.ID))
				}
				for at, sums := range b.LimitAdds {
					if at.Subject == k.ID && (k.DailyBudget < 0 || sums.Spent+b.Held["a"][HeldKey{k.ID, at.Day}] > k.DailyBudget) {
						t.Fatalf("got key %+v with day %+v, want at most its budget", k, sums)
					}
				}
			}
		}
		if rpm > 0 {
			for i := int(rpm); i < len(admittedAt); i++ {
				if d := admittedAt[i] - admittedAt[i-int(rpm)]; d < window.Milliseconds() {
					t.Fatalf("got %d requests within %d ms, want at most %d in %d", rpm+1, d, rpm, window.Milliseconds())
				}
			}
		}
	})
}

func sorted(open map[string]money.Amount) []string {
	return slices.Sorted(maps.Keys(open))
}

// TestRateDecisionIsExact checks times around the edge of a window: three requests pass at 0, 20
// and 40 s, and then one for each hit that leaves the window.
func TestRateDecisionIsExact(t *testing.T) {
	t.Parallel()
	b := New()
	key := &KeyRow{ID: "k", RPM: 3}
	try := func(at int64) bool {
		b.NowMS = at
		if b.checkRate(key, key.Hits+1) != nil {
			return false
		}
		key.Hits++
		b.Hits[HitKey{"k", key.Hits}] = at
		return true
	}
	for _, step := range []struct {
		at   int64
		want bool
	}{{0, true}, {20_000, true}, {40_000, true}, {40_001, false}, {59_999, false}, {60_000, true}, {60_001, false}, {80_000, true},
		{99_999, false}, {100_000, true}} {
		if got := try(step.at); got != step.want {
			t.Errorf("at %d ms: %v, want %v", step.at, got, step.want)
		}
		if refusal := fault.Of(b.checkRate(key, key.Hits+1)); step.at == 40_001 &&
			(refusal == nil || !strings.Contains(refusal.Message(), "in 20 seconds")) {
			t.Errorf("at %d ms: got %v, want a refusal with the wait of 20 seconds", step.at, refusal)
		}
	}
}

// TestRefusalsAdvise checks the advice in each 402.
func TestRefusalsAdvise(t *testing.T) {
	t.Parallel()
	for advice, word := range map[string]string{"lower max_tokens": "lower max_tokens", "": "send a smaller request"} {
		for name, change := range map[string]func(*AccountRow, *KeyRow, *Admission){
			"balance": func(*AccountRow, *KeyRow, *Admission) {},
			"budget":  func(_ *AccountRow, k *KeyRow, _ *Admission) { k.DailyBudget = 0 },
			"limit":   func(_ *AccountRow, k *KeyRow, _ *Admission) { k.Limit = 0 },
			"range":   func(_ *AccountRow, _ *KeyRow, a *Admission) { a.Amount = money.Max + 1 },
		} {
			b := New()
			b.Accounts["a"], b.Keys["k"] = &AccountRow{ID: "a"}, &KeyRow{ID: "k", Account: "a", RPM: -1, DailyBudget: -1, Limit: -1}
			a := Admission{Account: "a", Key: "k", Advice: advice, Amount: 1}
			change(b.Accounts["a"], b.Keys["k"], &a)
			_, err := b.Admit(a, "node")
			f := fault.Of(err)
			if f == nil || f.Code != fault.InsufficientQuota || !strings.Contains(strings.ToLower(f.Message()), word) {
				t.Errorf("%s with %q: got %v, want insufficient_quota with %q", name, advice, err, word)
			}
		}
	}
}
