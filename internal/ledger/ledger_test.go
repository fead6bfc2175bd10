package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/id"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// clock is a time that a test owns.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time      { return time.UnixMilli(c.ms.Load()) }
func (c *clock) add(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// eachClock runs a test on both engines, each with a clock of its own.
func eachClock(t *testing.T, test func(t *testing.T, db *store.DB, c *clock)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newClock()
		test(t, storetest.Open(t, url, store.Options{Now: c.now}), c)
	})
}

// fixture is a started ledger on a database.
type fixture struct {
	*Ledger
	t *testing.T
}

// start runs a ledger until the test ends; change may adjust it before.
func start(t *testing.T, db *store.DB, change ...func(*Ledger)) *fixture {
	t.Helper()
	l := New(Options{DB: db, OutageGrace: 20 * time.Second, QueueWait: 10 * time.Second})
	for _, c := range change {
		c(l)
	}
	ctx := context.Background()
	if err := l.Start(ctx); err != nil {
		t.Fatal(err)
	}
	f := &fixture{Ledger: l, t: t}
	t.Cleanup(f.close)
	return f
}

func (f *fixture) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		f.t.Errorf("close: %v", err)
	}
}

// open makes an account with a credit and a key, named account and account_key.
func (f *fixture) open(account string, credit, floor money.Amount, limits KeyLimits) {
	f.t.Helper()
	err := f.db.Update(context.Background(), func(tx *store.Tx) error {
		if err := OpenAccountTx(tx, account, floor); err != nil {
			return err
		}
		if credit != 0 {
			if _, err := CreditTx(tx, account, credit, ""); err != nil {
				return err
			}
		}
		return OpenKeyTx(tx, account+"_key", account, limits)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func admission(account string, amount money.Amount) Admission {
	return Admission{Request: id.New("req_"), Account: account, Key: account + "_key", KeyVersion: 1,
		Model: "m", Endpoint: "/v1/chat/completions", Amount: amount, Received: time.Now()}
}

func (f *fixture) admit(account string, amount money.Amount) (*Hold, error) {
	return f.Admit(context.Background(), admission(account, amount))
}

func (f *fixture) mustAdmit(account string, amount money.Amount) *Hold {
	f.t.Helper()
	h, err := f.admit(account, amount)
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

func billed(cost money.Amount) End {
	return End{Outcome: Billed, Cost: cost, Tokens: Tokens{Prompt: 10, Completion: 5}, Status: 200, Line: "line"}
}

func failed() End { return End{Outcome: Failed, Status: 502, Code: "upstream_unavailable"} }

func (f *fixture) state(account string) AccountState {
	f.t.Helper()
	var s AccountState
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		states, err := AccountsTx(tx, []string{account})
		s = states[account]
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) keyState(account string) KeyState {
	f.t.Helper()
	var s KeyState
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		states, err := KeysTx(tx, []string{account + "_key"})
		s = states[account+"_key"]
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) usage(account string) Usage {
	f.t.Helper()
	var u Usage
	err := f.db.View(context.Background(), func(tx *store.Tx) (err error) {
		u, err = UsageTx(tx, account)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return u
}

func (f *fixture) requests(filter RequestFilter) []Receipt {
	f.t.Helper()
	if filter.Limit == 0 {
		filter.Limit = 1000
	}
	var list []Receipt
	err := f.db.View(context.Background(), func(tx *store.Tx) (err error) {
		list, _, err = RequestsTx(tx, filter)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// audited checks the books, which every test leaves in order.
func (f *fixture) audited() {
	f.t.Helper()
	report, err := Audit(context.Background(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	if !report.OK {
		f.t.Errorf("audit: %+v", report.Differences)
	}
}

func wantCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("got %v; want %s", err, want)
	}
}

func TestHoldAndSettle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", money.USD/2)
		if s := f.state("a"); s.Held != money.USD/2 || s.Balance != money.USD {
			t.Fatalf("after the hold: %+v", s)
		}
		f.audited()
		if err := h.Settle(context.Background(), billed(money.USD/4)); err != nil {
			t.Fatal(err)
		}
		if err := h.Settle(context.Background(), billed(money.USD/4)); err != nil {
			t.Fatalf("settled twice: %v", err)
		}
		h.Release(failed())
		if s := f.state("a"); s.Held != 0 || s.Balance != money.USD*3/4 {
			t.Errorf("after the settlement: %+v", s)
		}
		k := f.keyState("a")
		if k.Spent != money.USD/4 || k.SpentToday != money.USD/4 || k.Held != 0 || k.LastUsedMS == 0 {
			t.Errorf("key: %+v", k)
		}
		list := f.requests(RequestFilter{Account: "a"})
		if len(list) != 1 || list[0].Cost != money.USD/4 || list[0].Held != money.USD/2 || list[0].Status != 200 || list[0].Tokens.Prompt != 10 {
			t.Errorf("receipts: %+v", list)
		}
		u := f.usage("a")
		if u.Total != u.ByModel[0].Totals || u.Total.Requests != 1 || u.Total.Billed != 1 || u.Today.Requests != 1 || u.Today.Cost != money.USD/4 {
			t.Errorf("usage: %+v", u)
		}
		f.audited()
	})
}

func TestChargeNeverExceedsTheHold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var over atomic.Int64
		f := start(t, db, func(l *Ledger) {
			l.opts.Observer.OverHold = func(a money.Amount) { over.Add(int64(a)) }
		})
		f.open("a", money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", money.USD)
		if err := h.Settle(context.Background(), billed(3*money.USD)); err != nil {
			t.Fatal(err)
		}
		if s := f.state("a"); s.Balance != 0 || over.Load() != int64(2*money.USD) {
			t.Errorf("balance %s, over %d; want 0 and 2 USD", s.Balance, over.Load())
		}
		f.audited()
	})
}

func TestReleaseChargesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		f.mustAdmit("a", money.USD).Release(failed())
		f.mustAdmit("a", money.USD).Release(End{Outcome: Closed, Status: 499, Code: "client_closed"})
		if s := f.state("a"); s.Held != 0 || s.Balance != money.USD {
			t.Errorf("%+v; want nothing held or charged", s)
		}
		u := f.usage("a")
		if u.Total.Requests != 2 || u.Total.Billed != 0 || u.Total.Failed != 1 {
			t.Errorf("usage %+v; want 2 requests, 1 failed", u.Total)
		}
		f.audited()
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	rpm := int64(2)
	budget, zero := money.USD/2, money.Amount(0)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("poor", money.USD, 0, KeyLimits{})
		f.open("overdrawn", 0, -money.USD, KeyLimits{})
		f.open("budget", money.USD, 0, KeyLimits{DailyBudget: &budget})
		f.open("limit", money.USD, 0, KeyLimits{TotalLimit: &budget})
		f.open("nothing", money.USD, 0, KeyLimits{TotalLimit: &zero})
		f.open("rate", money.USD, 0, KeyLimits{RPM: &rpm})
		f.open("off", money.USD, 0, KeyLimits{Disabled: true})
		f.open("closed", money.USD, 0, KeyLimits{})
		disabled := true
		err := db.Update(context.Background(), func(tx *store.Tx) error {
			return ChangeAccountTx(tx, "closed", AccountChange{Disabled: &disabled})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			account string
			amount  money.Amount
			want    fault.Code // "" passes
		}{
			{"poor", money.USD + 1, fault.InsufficientQuota},
			{"poor", money.Max + 1, fault.InsufficientQuota},
			{"poor", 1<<63 - 1, fault.InsufficientQuota},
			{"poor", money.USD, ""},
			{"overdrawn", money.USD + 1, fault.InsufficientQuota},
			{"overdrawn", money.USD, ""},
			{"budget", budget + 1, fault.InsufficientQuota},
			{"budget", budget, ""},
			{"budget", 1, fault.InsufficientQuota},
			{"budget", 0, ""},
			{"limit", budget, ""},
			{"limit", 1, fault.InsufficientQuota},
			{"nothing", 1, fault.InsufficientQuota},
			{"rate", 0, ""},
			{"rate", 2 * money.USD, fault.InsufficientQuota},
			{"rate", 0, ""},
			{"rate", 0, fault.RateLimitExceeded},
			{"rate", 2 * money.USD, fault.RateLimitExceeded},
			{"off", 0, fault.InvalidAPIKey},
			{"closed", 0, fault.InvalidAPIKey},
			{"unknown", 0, fault.InvalidAPIKey},
		} {
			_, err := f.admit(tt.account, tt.amount)
			if tt.want == "" {
				if err != nil {
					t.Errorf("%s, %s: %v", tt.account, tt.amount, err)
				}
				continue
			}
			wantCode(t, err, tt.want)
			if e := fault.Of(err); e.RetryAfter != 0 || e.NoRetry != (tt.want == fault.InsufficientQuota) {
				t.Errorf("%s: Retry-After %v, x-should-retry: false %v", tt.account, e.RetryAfter, e.NoRetry)
			}
		}
		stale := admission("poor", 0)
		stale.KeyVersion = 7
		if _, err := f.Admit(context.Background(), stale); !errors.Is(err, ErrKeyChanged) {
			t.Errorf("another version of the key: %v; want ErrKeyChanged", err)
		}
		f.audited()
	})
}

func TestRefusedRequestsAreInTheLogAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 0, 0, KeyLimits{})
		if _, err := f.admit("a", 1); err == nil {
			t.Fatal("admitted without a balance")
		}
		f.Refused(Refusal{Request: "req_x", Status: 401, Code: "invalid_api_key", Received: time.Now()})
		f.close() // commits what waits
		list := f.requests(RequestFilter{})
		if len(list) != 2 {
			t.Fatalf("%d receipts; want 2", len(list))
		}
		if list := f.requests(RequestFilter{Account: "a"}); len(list) != 1 || list[0].Status != 402 || list[0].Code != "insufficient_quota" {
			t.Errorf("receipts of the account: %+v", list)
		}
		if u := f.usage("a"); u.Total != (Totals{}) {
			t.Errorf("usage %+v; want nothing", u.Total)
		}
		f.audited()
	})
}

func TestStrangersTextFitsAReceipt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var broken atomic.Int64
		f := start(t, db, func(l *Ledger) {
			l.exec = func(ctx context.Context, s *store.Session, b *store.Batch, _ phase) error {
				err := s.Run(ctx, b)
				if err != nil {
					broken.Add(1)
				}
				return err
			}
		})
		f.open("a", money.USD, 0, KeyLimits{})
		f.Refused(Refusal{Request: "req_1", Model: "a\x00b", Code: "x\xff", Received: time.Now()})
		f.Refused(Refusal{Request: "req_2", Model: strings.Repeat("m", 10_000), Received: time.Now()})
		h := f.mustAdmit("a", 1)
		h.Release(End{Outcome: Failed, Status: 400, Code: "vendor\x00code"})
		f.close()
		list := f.requests(RequestFilter{})
		if len(list) != 3 || broken.Load() != 0 {
			t.Fatalf("%d receipts, %d broken batches; want 3 and none", len(list), broken.Load())
		}
		if list[0].Model != strings.Repeat("m", longestWord) || list[1].Model != "ab" || list[1].Code != "x" || list[2].Code != "vendorcode" {
			t.Errorf("receipts %+v", list)
		}
	})
}

func TestFloodsOfRefusalsAreSampledAndCounted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		const n = 5000
		for i := range n {
			f.Refused(Refusal{Request: fmt.Sprintf("req_%05d", i), Key: "k", Status: 429, Code: "rate_limit_exceeded", Received: time.Now()})
		}
		for _, r := range f.refuses.flush(time.Now().Add(2 * time.Second)) {
			f.logRefusal(r)
		}
		f.close()
		list := f.requests(RequestFilter{Limit: 2 * n})
		var counted int64
		for _, r := range list {
			counted += r.StandsFor
		}
		if counted != n || len(list) > n/2 {
			t.Errorf("%d rows stand for %d refusals; want far fewer rows for %d", len(list), counted, n)
		}
	})
}

func TestRateWindowIsExact(t *testing.T) {
	t.Parallel()
	rpm := int64(3)
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
		b := newBooks()
		key := &keyRow{id: "k", rpm: 3}
		// The decision itself, on a clock: passes at 0, 20 and 40 s; then one a
		// hit that leaves the window.
		try := func(at int64) bool {
			b.nowMS = at
			if b.checkRate(key, key.hits+1) != nil {
				return false
			}
			key.hits++
			b.hits[hitKey{"k", key.hits}] = at
			return true
		}
		for _, step := range []struct {
			at   int64
			want bool
		}{{0, true}, {20_000, true}, {40_000, true}, {40_001, false}, {59_999, false}, {60_000, true}, {60_001, false}, {80_000, true}, {99_999, false}, {100_000, true}} {
			if got := try(step.at); got != step.want {
				t.Errorf("at %d ms: %v, want %v", step.at, got, step.want)
			}
		}
		for i := range 3 {
			if _, err := f.admit("a", 0); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		if _, err := f.admit("a", 0); err == nil {
			t.Fatal("a fourth request passed")
		}
	})
}

func TestRateWindowSurvivesBatchesAndTime(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		rpm := int64(5)
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
		var times []int64
		for range 400 {
			c.add(3 * time.Second)
			if _, err := f.admit("a", 0); err == nil {
				times = append(times, c.ms.Load())
			}
		}
		for i := 5; i < len(times); i++ {
			if d := times[i] - times[i-5]; d < 60_000 {
				t.Fatalf("6 requests within %d ms", d)
			}
		}
		if len(times) != 100 {
			t.Errorf("%d passed; want 100: 5 in each minute", len(times))
		}
		var hits int64
		if err := f.db.View(context.Background(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM ledger_hit`).Scan(&hits)
		}); err != nil || hits > rpm {
			t.Errorf("%d rows of hits are kept, %v; want at most %d", hits, err, rpm)
		}
	})
}

func TestFreeQuotaIsPerDayAndGivenBackOnErrors(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", 0, 0, KeyLimits{})
		free := func() (*Hold, error) {
			a := admission("a", 0)
			a.FreeDaily = 2
			return f.Admit(context.Background(), a)
		}
		first, err := free()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := free(); err != nil {
			t.Fatal(err)
		}
		_, err = free()
		wantCode(t, err, fault.RateLimitExceeded)
		if e := fault.Of(err); !e.NoRetry || e.RetryAfter != 0 {
			t.Errorf("%+v; want x-should-retry: false and no Retry-After", e)
		}
		first.Release(failed())
		again, err := free()
		if err != nil {
			t.Fatalf("after an error the place is free again: %v", err)
		}
		if err := again.Settle(context.Background(), billed(0)); err != nil {
			t.Fatal(err)
		}
		if _, err := free(); err == nil {
			t.Error("a settled request gave its place back")
		}
		c.add(24 * time.Hour)
		if _, err := free(); err != nil {
			t.Errorf("the next day: %v", err)
		}
		f.audited()
	})
}

func TestDailyBudgetBelongsToTheDayOfAdmission(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		budget := money.USD
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{DailyBudget: &budget})
		old := f.mustAdmit("a", money.USD)
		c.add(24 * time.Hour)
		young := f.mustAdmit("a", money.USD)
		if err := old.Settle(context.Background(), billed(money.USD)); err != nil {
			t.Fatal(err)
		}
		if k := f.keyState("a"); k.SpentToday != 0 || k.Spent != money.USD {
			t.Errorf("%+v; want yesterday's charge in the total alone", k)
		}
		_, err := f.admit("a", 1)
		wantCode(t, err, fault.InsufficientQuota)
		c.add(-24 * time.Hour) // a clock that goes back opens no budget again
		_, err = f.admit("a", 1)
		wantCode(t, err, fault.InsufficientQuota)
		young.Release(failed())
		f.audited()
		if u := f.usage("a"); u.Total.Requests != 2 {
			t.Errorf("usage: %+v", u)
		}
	})
}

func TestBurstLetsExactlyWhatFitsThrough(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, -money.USD, KeyLimits{})
		var admitted, refused atomic.Int64
		var group sync.WaitGroup
		for range 400 {
			group.Go(func() {
				h, err := f.admit("a", money.USD)
				if err != nil {
					wantCode(t, err, fault.InsufficientQuota)
					refused.Add(1)
					return
				}
				admitted.Add(1)
				if s := f.state("a"); s.Balance-s.Held < -money.USD {
					t.Errorf("available %s is below the floor", s.Balance-s.Held)
				}
				_ = h
			})
		}
		group.Wait()
		if admitted.Load() != 11 || refused.Load() != 389 {
			t.Errorf("%d admitted, %d refused; want 11 and 389", admitted.Load(), refused.Load())
		}
		f.audited()
	})
}

func TestManyCallersOnManyAccounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		const accounts, callers, rounds = 40, 200, 10
		for i := range accounts {
			f.open(fmt.Sprint("a", i), 1000*money.USD, 0, KeyLimits{})
		}
		var charged atomic.Int64
		var group sync.WaitGroup
		for c := range callers {
			group.Go(func() {
				for r := range rounds {
					h, err := f.admit(fmt.Sprint("a", (c*rounds+r)%accounts), money.USD)
					if err != nil {
						t.Error(err)
						return
					}
					switch r % 4 {
					case 0:
						h.Release(failed())
					case 1:
						h.Progress(Progress{Cost: 7, Tokens: Tokens{Prompt: 1}})
						fallthrough
					default:
						if err := h.Settle(context.Background(), billed(money.Amount(1000+r))); err != nil {
							t.Error(err)
							return
						}
						charged.Add(int64(1000 + r))
					}
				}
			})
		}
		group.Wait()
		var balance money.Amount
		for i := range accounts {
			s := f.state(fmt.Sprint("a", i))
			if s.Held != 0 {
				t.Errorf("account %d still holds %s", i, s.Held)
			}
			balance += s.Balance
		}
		if want := accounts*1000*money.USD - money.Amount(charged.Load()); balance != want {
			t.Errorf("balances add up to %s, want %s", balance, want)
		}
		f.audited()
	})
}
