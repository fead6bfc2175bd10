package account

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func makeCodes(t *testing.T, db *store.DB, n NewCodes) (codes []RedeemCode, texts []string) {
	t.Helper()
	update(t, db, func(tx *store.Tx) (_ int, err error) {
		codes, texts, err = CreateCodesTx(tx, n)
		return 0, err
	})
	return codes, texts
}

func redeem(t *testing.T, db *store.DB, account, text string) (balance money.Amount, err error) {
	t.Helper()
	return try(t, db, func(tx *store.Tx) (money.Amount, error) {
		_, balance, err := RedeemTx(tx, account, text)
		return balance, err
	})
}

func TestCodeLife(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a, b := createAccount(t, db, "a"), createAccount(t, db, "b")
		expires := clock.Now().Add(time.Hour).UnixMilli()
		codes, texts := makeCodes(t, db, NewCodes{Value: 5 * money.USD, Count: 4, ExpiresMS: expires})
		unique := map[string]bool{}
		for i, text := range texts {
			unique[text] = true
			if len(text) != 23 || strings.Count(text, "-") != 3 || !strings.HasSuffix(text, codes[i].Hint) || codes[i].Batch != codes[0].Batch {
				t.Errorf("created code %q as %+v, want 20 characters in four groups, with the hint and batch", text, codes[i])
			}
		}
		if len(unique) != 4 {
			t.Errorf("created %d different codes, want 4", len(unique))
		}
		typed := " " + strings.ToLower(strings.ReplaceAll(texts[0], "-", " ")) + " "
		if balance, err := redeem(t, db, a.ID, typed); err != nil || balance != 5*money.USD {
			t.Errorf("redeeming %q returned the balance %s, %v, want 5 USD", typed, balance, err)
		}
		for account, want := range map[string]string{a.ID: "You redeemed this code already", b.ID: "was redeemed already"} {
			_, err := redeem(t, db, account, texts[0])
			wantFault(t, err, fault.InvalidRequest, "code")
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want one with %q", err, want)
			}
		}
		update(t, db, func(tx *store.Tx) (RedeemCode, error) { return VoidCodeTx(tx, codes[1].ID) })
		update(t, db, func(tx *store.Tx) (RedeemCode, error) { return VoidCodeTx(tx, codes[1].ID) })
		_, err := redeem(t, db, b.ID, texts[1])
		wantFault(t, err, fault.InvalidRequest, "code")
		_, err = try(t, db, func(tx *store.Tx) (RedeemCode, error) { return VoidCodeTx(tx, codes[0].ID) })
		wantFault(t, err, fault.InvalidRequest, "")
		_, err = try(t, db, func(tx *store.Tx) (RedeemCode, error) { return VoidCodeTx(tx, "code_none") })
		wantFault(t, err, fault.NotFound, "")
		_, err = redeem(t, db, b.ID, "AAAAA-AAAAA-AAAAA-AAAAA")
		wantFault(t, err, fault.InvalidRequest, "code")
		clock.Advance(time.Hour - time.Millisecond)
		if _, err := redeem(t, db, b.ID, texts[2]); err != nil {
			t.Error("redeeming a code a millisecond before it expires:", err)
		}
		clock.Advance(time.Millisecond)
		_, err = redeem(t, db, b.ID, texts[3])
		wantFault(t, err, fault.InvalidRequest, "code")

		var states []string
		for after, more := "", true; more; {
			list := update(t, db, func(tx *store.Tx) (list []RedeemCode, err error) {
				list, more, err = ListCodesTx(tx, after, 3)
				return list, err
			})
			for _, c := range list {
				states, after = append(states, c.State(clock.Now().UnixMilli())), c.ID
			}
		}
		count := map[string]int{}
		for _, s := range states {
			count[s]++
		}
		if len(states) != 4 || count[CodeUsed] != 2 || count[CodeVoid] != 1 || count[CodeExpired] != 1 {
			t.Errorf("got the states %v, want 2 used, 1 void and 1 expired", states)
		}
		update(t, db, func(tx *store.Tx) (int, error) {
			list, _, err := movement.ListTx(tx, movement.Selection{Account: a.ID, Limit: 10})
			if err == nil && (len(list) != 1 || list[0].Note != "code "+codes[0].ID) {
				t.Errorf("got the movements %+v, want one that names code %s", list, codes[0].ID)
			}
			return 0, err
		})
	})
}

func TestCodeFaults(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for param, n := range map[string]NewCodes{
			"usd": {Value: 0, Count: 1}, "count": {Value: 1, Count: 1001}, "expires": {Value: 1, Count: 1, ExpiresMS: 1},
		} {
			_, err := try(t, db, func(tx *store.Tx) (int, error) {
				_, _, err := CreateCodesTx(tx, n)
				return 0, err
			})
			wantFault(t, err, fault.InvalidRequest, param)
		}
		a := createAccount(t, db, "a")
		_, texts := makeCodes(t, db, NewCodes{Value: money.Max, Count: 2})
		if _, err := redeem(t, db, a.ID, texts[0]); err != nil {
			t.Fatal(err)
		}
		_, err := redeem(t, db, a.ID, texts[1])
		wantFault(t, err, fault.InvalidRequest, "code")
	})
}

// TestConcurrentRedemptionsOfACode checks that only one of many concurrent callers redeems a code, and that
// a rolled back redemption has no effect.
func TestConcurrentRedemptionsOfACode(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		accounts := []Account{createAccount(t, db, "a"), createAccount(t, db, "b")}
		_, texts := makeCodes(t, db, NewCodes{Value: money.USD, Count: 1})
		errRollback := errors.New("the process dies here")
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			if _, _, err := RedeemTx(tx, accounts[0].ID, texts[0]); err != nil {
				return err
			}
			return errRollback
		})
		if !errors.Is(err, errRollback) {
			t.Fatal(err)
		}
		var redeemed atomic.Int64
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if _, err := redeem(t, db, accounts[i%2].ID, texts[0]); err == nil {
					redeemed.Add(1)
				}
			})
		}
		all.Wait()
		sum := money.Amount(0)
		for _, a := range accounts {
			sum += update(t, db, func(tx *store.Tx) (Account, error) { return GetTx(tx, a.ID) }).Money.Balance
		}
		if redeemed.Load() != 1 || sum != money.USD {
			t.Errorf("redeemed %d times, for %s, want once for 1 USD", redeemed.Load(), sum)
		}
	})
}

// TestDisabledAccountCannotRedeem checks that a disabled account cannot redeem a code, and can
// redeem the same code after it is enabled again.
func TestDisabledAccountCannotRedeem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		_, texts := makeCodes(t, db, NewCodes{Value: money.USD, Count: 1})
		setDisabled := func(disabled bool) {
			t.Helper()
			storetest.Update(t, db, func(tx *store.Tx) error {
				return ledger.ChangeAccountTx(tx, a.ID, ledger.AccountChange{Disabled: &disabled})
			})
		}
		setDisabled(true)
		_, err := redeem(t, db, a.ID, texts[0])
		wantFault(t, err, fault.InvalidRequest, "code")
		if err != nil && !strings.Contains(err.Error(), "disabled") {
			t.Errorf("got the error %v, want one that says disabled", err)
		}
		setDisabled(false)
		if balance, err := redeem(t, db, a.ID, texts[0]); err != nil || balance != money.USD {
			t.Errorf("after enabling, redeeming returned the balance %v, %v, want 1 USD", balance, err)
		}
	})
}
