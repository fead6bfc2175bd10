package ledger

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// TestBooksKeepTheirPromises runs random operations through the pure core and
// checks after each what must always be true, against a plain model.
func TestBooksKeepTheirPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBooks()
		b.nowMS = time.Date(2026, 1, 1, 23, 50, 0, 0, time.UTC).UnixMilli()
		floor := -money.Amount(rapid.Int64Range(0, 50).Draw(t, "floor"))
		credit := money.Amount(rapid.Int64Range(0, 500).Draw(t, "credit"))
		b.accounts["a"] = &accountRow{id: "a", balance: credit, floor: floor}
		optional := func(name string) money.Amount {
			return money.Amount(rapid.Int64Range(-1, 300).Draw(t, name))
		}
		rpm := rapid.Int64Range(-1, 5).Draw(t, "rpm")
		for _, k := range []string{"k1", "k2"} {
			b.keys[k] = &keyRow{id: k, account: "a", version: 1, rpm: rpm, dailyBudget: optional("budget"), limit: optional("limit")}
		}
		open := map[string]money.Amount{}
		var charged money.Amount
		var realMS int64 // the time that has really passed
		var admittedAt []int64
		for i := range rapid.IntRange(1, 60).Draw(t, "operations") {
			moves := rapid.Int64Range(-1000, 30_000).Draw(t, "ms") // back: somebody has set the clock
			b.nowMS += moves
			realMS += max(0, moves)
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what <= 1 || len(open) == 0:
				a := Admission{Request: fmt.Sprint("r", i), Account: "a", Key: rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key"), KeyVersion: 1,
					Model:  "m",
					Amount: money.Amount(rapid.Int64Range(0, 200).Draw(t, "amount"))}
				before, keyBefore := *b.accounts["a"], *b.keys[a.Key]
				// The clock may go back: what came later was no later than now.
				keyBefore.lastUsedMS = min(keyBefore.lastUsedMS, b.nowMS)
				hold, err := b.admit(a, "e")
				if err != nil {
					var f *fault.Error
					if !errors.As(err, &f) {
						t.Fatalf("refused with %v", err)
					}
					if *b.accounts["a"] != before || *b.keys[a.Key] != keyBefore {
						t.Fatal("a refusal changed the books")
					}
					continue
				}
				b.holds[hold.id] = hold
				open[hold.id] = hold.amount
				if a.Key == "k1" {
					admittedAt = append(admittedAt, realMS)
				}
			default:
				id := rapid.SampledFrom(sorted(open)).Draw(t, "hold")
				end := End{Outcome: Outcome(rapid.Int64Range(1, 3).Draw(t, "outcome")), Cost: money.Amount(rapid.Int64Range(-5, 250).Draw(t, "cost"))}
				receipt, ended := b.end(id, end, "[]")
				if !ended {
					t.Fatal("an open hold did not end")
				}
				if receipt.cost < 0 || receipt.cost > open[id] || (end.Outcome != Billed && receipt.cost != 0) {
					t.Fatalf("charged %d of a hold of %d", receipt.cost, open[id])
				}
				charged += receipt.cost
				delete(open, id)
				if _, again := b.end(id, end, "[]"); again {
					t.Fatal("a hold ended twice")
				}
			}
			var held money.Amount
			for _, amount := range open {
				held += amount
			}
			acct := b.accounts["a"]
			if acct.held != held || acct.balance != credit-charged || acct.balance < floor && credit >= floor {
				t.Fatalf("account %+v; %d held, %d charged of %d", acct, held, charged, credit)
			}
			if b.keys["k1"].held+b.keys["k2"].held != held || b.keys["k1"].spent+b.keys["k2"].spent != charged {
				t.Fatalf("keys %+v %+v", b.keys["k1"], b.keys["k2"])
			}
			for _, k := range b.keys {
				if k.limit >= 0 && k.spent+k.held > k.limit || k.dailyBudget >= 0 && k.daySpent+k.dayHeld > k.dailyBudget || k.dayHeld < 0 {
					t.Fatalf("key over its limits: %+v", k)
				}
			}
		}
		if rpm > 0 {
			for i := int(rpm); i < len(admittedAt); i++ {
				if d := admittedAt[i] - admittedAt[i-int(rpm)]; d < window.Milliseconds() {
					t.Fatalf("%d requests within %d ms", rpm+1, d)
				}
			}
		}
		var total Totals
		for _, d := range b.usage {
			total.Cost += d.Cost
			total.Requests += d.Requests
		}
		if total.Cost != charged || int(total.Requests) != len(b.receipts) {
			t.Fatalf("usage %+v; %d charged over %d receipts", total, charged, len(b.receipts))
		}
	})
}

func sorted(open map[string]money.Amount) []string {
	ids := make([]string, 0, len(open))
	for id := range maps.Keys(open) {
		ids = append(ids, id)
	}
	return distinct(ids)
}

func TestQueueIsFairAndPutsEndingsFirst(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for range 300 {
		q.push(&op{kind: opAdmit, account: "loud"})
	}
	q.push(&op{kind: opAdmit, account: "quiet"})
	q.push(&op{kind: opRefused})
	q.push(&op{kind: opEnd})
	batch := q.take(nil)
	if len(batch) != batchSize || batch[0].kind != opEnd || batch[2].account != "quiet" {
		t.Errorf("a batch of %d: %v, %v, %v; want the ending first, and the quiet account's turn second", len(batch), batch[0].kind,
			batch[1].account, batch[2].account)
	}
	q.close()
	if rest := q.take(nil); len(rest) != 47 || rest[46].kind != opRefused {
		t.Errorf("%d left; want 47, the log row last", len(rest))
	}
	if q.take(nil) != nil {
		t.Error("a closed and empty queue goes on")
	}
	if q.push(&op{kind: opAdmit}) {
		t.Error("an admission was taken after close")
	}
}
