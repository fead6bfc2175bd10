package catalog

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/store"
)

// SQL statements for the announcement of prices. A change is mailed account by account.
const (
	selectUnmailed = `SELECT id, mailed_to FROM catalog_change WHERE state = 0 AND mailed = 0 ORDER BY at_ms, id LIMIT 1`
	updateMailed   = `UPDATE catalog_change SET mailed_to = $3, mailed = $4 WHERE id = $1 AND state = 0 AND mailed_to = $2`
	insertMailed   = `INSERT INTO catalog_price_mail (change, account) VALUES ($1, $2)`
	forgetMailed   = `DELETE FROM catalog_price_mail WHERE change = $1`
	selectWithdraw = `SELECT m.change, m.account FROM catalog_price_mail m JOIN catalog_change c ON c.id = m.change
		WHERE c.state = 3 ORDER BY m.change, m.account LIMIT $1`
	deleteWithdraw = `DELETE FROM catalog_price_mail WHERE change = $1 AND account = $2`
)

// ComingPrices has the models with new prices after an announced change.
type ComingPrices struct {
	AtMS   int64   // time of the change: database clock, Unix milliseconds
	Models []Model // with the new prices
}

// Coming returns the announced changes of prices by time. It does not block.
func (w *Watcher) Coming() []ComingPrices {
	if coming := w.coming.Load(); coming != nil {
		return *coming
	}
	return nil
}

func comingTx(tx *store.Tx) ([]ComingPrices, error) {
	pending, err := PendingChangesTx(tx)
	coming := []ComingPrices{}
	for _, c := range pending {
		if !c.Announced {
			continue
		}
		_, models, err := c.NewPricesTx(tx)
		if err != nil {
			return nil, err
		}
		coming = append(coming, ComingPrices{c.AtMS, models})
	}
	return coming, err
}

// NewPricesTx returns the models with changed prices, before and after the change. It omits new models.
func (c ScheduledChange) NewPricesTx(tx *store.Tx) (before, after []Model, err error) {
	base, next, err := c.DocumentsTx(tx)
	if err != nil {
		return nil, nil, err
	}
	for i := range next.Models {
		j := slices.IndexFunc(base.Models, func(m Model) bool { return m.ID == next.Models[i].ID })
		if j >= 0 && base.Models[j].priceText() != next.Models[i].priceText() {
			before, after = append(before, base.Models[j]), append(after, next.Models[i])
		}
	}
	return before, after, nil
}

// priceText is equal for models with equal prices.
func (m *Model) priceText() string {
	text, n := "", m.Tree()
	for _, key := range []string{"price", "per_clip", "free_daily_requests"} {
		if value := n.Get(key); value != nil {
			text += key + string(tree.JSON(value, ""))
		}
	}
	return text
}

// UnmailedChangeTx returns the first pending change with unwritten mails, and the last account with
// written mails. The ID is empty if there is no such change.
func UnmailedChangeTx(tx *store.Tx) (id, mailedTo string, err error) {
	err = tx.QueryRow(selectUnmailed).Scan(&id, &mailedTo)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("look for prices to announce: %w", err)
	}
	return id, mailedTo, nil
}

// RecordMailedTx records accounts, the next ones after mailedTo, as mailed about a pending change. done
// means that no account is left. If another node was faster or the change has ended, RecordMailedTx
// changes nothing and returns false.
func RecordMailedTx(tx *store.Tx, id, mailedTo string, accounts []string, done bool) (bool, error) {
	last := mailedTo
	if len(accounts) > 0 {
		last = accounts[len(accounts)-1]
	}
	changed, err := tx.Exec(updateMailed, id, mailedTo, last, store.Bool(done))
	if err != nil {
		return false, fmt.Errorf("record the mails about new prices: %w", err)
	}
	if changed == 0 {
		return false, nil
	}
	for _, account := range accounts {
		if _, err := tx.Exec(insertMailed, id, account); err != nil {
			return false, fmt.Errorf("record a mail about new prices: %w", err)
		}
	}
	return true, nil
}

// MailedAccount is an account whose users have mails about the new prices of a change.
type MailedAccount struct{ Change, Account string }

// WithdrawnTx returns up to limit accounts with mails about a change that was cancelled afterwards.
func WithdrawnTx(tx *store.Tx, limit int) ([]MailedAccount, error) {
	all, err := store.Collect(tx, func(row store.Row) (a MailedAccount, err error) {
		err = row.Scan(&a.Change, &a.Account)
		return a, err
	}, selectWithdraw, limit)
	if err != nil {
		return nil, fmt.Errorf("look for withdrawn prices: %w", err)
	}
	return all, nil
}

// EndWithdrawalTx records the mails to an account's users about the withdrawn prices of a change. It
// returns false if the mails were already recorded.
func EndWithdrawalTx(tx *store.Tx, a MailedAccount) (bool, error) {
	changed, err := tx.Exec(deleteWithdraw, a.Change, a.Account)
	if err != nil {
		return false, fmt.Errorf("record a mail about withdrawn prices: %w", err)
	}
	return changed > 0, nil
}
