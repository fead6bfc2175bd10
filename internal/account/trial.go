package account

import (
	"fmt"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Trial is the setting of credit for new customers. The zero value means no trial credit.
type Trial struct {
	Credit      money.Amount // of each account
	DailyBudget money.Amount // of all accounts on a UTC day
}

// TrialNote is the note of a trial credit.
const TrialNote = "trial credit"

// GrantTrialTx credits a new account with the trial credit. email is the verified address of the
// customer. A mailbox gets one trial credit, however its address is spelled. The grant is zero if
// there is no trial credit, the mailbox has had one, or the day's budget is spent.
func GrantTrialTx(tx *store.Tx, account, email string, t Trial) (granted money.Amount, err error) {
	if t.Credit <= 0 {
		return 0, nil
	}
	if err := tx.Serialize("account_trial"); err != nil {
		return 0, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return 0, err
	}
	day := books.DayOf(now)
	var spent money.Amount
	if err := tx.QueryRow(`SELECT COALESCE(SUM(usd_nano), 0) FROM account_trial WHERE day = $1`, day).Scan(&spent); err != nil {
		return 0, fmt.Errorf("sum up the trial credits of a day: %w", err)
	}
	if money.Plus(spent, t.Credit) > t.DailyBudget {
		return 0, nil
	}
	inserted, err := tx.Exec(`INSERT INTO account_trial (identity, account, usd_nano, day, created_ms) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (identity) DO NOTHING`, hashText(foldEmail(email)), account, int64(t.Credit), day, now)
	if err != nil {
		return 0, fmt.Errorf("insert trial credit: %w", err)
	}
	if inserted == 0 {
		return 0, nil
	}
	_, err = ledger.MoveTx(tx, account, ledger.Payment{Amount: t.Credit, Note: TrialNote, Trial: true})
	return t.Credit, err
}

// auditTrialsTx checks that an account's trial credits have exactly one movement each.
func auditTrialsTx(tx *store.Tx, b *audit.Books) error {
	type grant struct {
		account string
		amount  money.Amount
	}
	moved := map[grant]int{}
	if err := b.Movements(func(m audit.Movement) {
		if m.IsTrial() {
			moved[grant{m.Account, m.Amount}]++
		}
	}); err != nil {
		return fmt.Errorf("read the movements of trial credits: %w", err)
	}
	where, args := b.Where("account")
	if err := tx.Each(func(row store.Row) error {
		var g grant
		err := row.Scan(&g.account, &g.amount)
		moved[g]--
		b.Count("trial credits", 1)
		return err
	}, `SELECT account, usd_nano FROM account_trial WHERE `+where, args...); err != nil {
		return fmt.Errorf("read trial credits: %w", err)
	}
	for g, n := range moved {
		if n != 0 {
			b.Report(audit.Difference{Account: g.account, What: "trial credits differ from their movements",
				Recorded: g.amount.String(), Computed: fmt.Sprintf("%d movements too many", n)})
		}
	}
	return nil
}
