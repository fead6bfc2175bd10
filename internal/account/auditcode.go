package account

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// codeNote is followed by the code's id in the note of a redeemed code's credit.
const codeNote = "code "

// IsCodeNote reports whether a note looks like the note of a redeemed code's credit. No other credit
// may have such a note, because the audit would take the credit for a redemption.
func IsCodeNote(note string) bool { return strings.HasPrefix(note, codeNote+"code_") }

// redemption is the credit for a redeemed code.
type redemption struct {
	account string
	amount  money.Amount
}

// auditCodesTx checks that each redeemed code has exactly one credit, with the code's account and
// value, and that no other code has a credit. A void code may have a credit by an operator.
func auditCodesTx(tx *store.Tx, books *audit.Books) error {
	credits := map[string][]redemption{}
	err := books.Credits(codeNote+"code_", func(account, note string, amount money.Amount) {
		id := strings.TrimPrefix(note, codeNote)
		credits[id] = append(credits[id], redemption{account, amount})
	})
	if err != nil {
		return fmt.Errorf("read credits of codes: %w", err)
	}
	// The first range has all unredeemed codes, because these codes have no account. The credits of a
	// range may name codes of any account.
	where, args := books.Where("account", store.List(slices.Collect(maps.Keys(credits))))
	err = tx.Each(func(row store.Row) error {
		c, err := scanCode(row)
		if err != nil {
			return err
		}
		auditCode(books, c, credits[c.ID])
		books.Count("codes", 1)
		delete(credits, c.ID)
		return nil
	}, `SELECT `+codeColumns+` FROM account_code WHERE `+tx.In("id", 1)+` OR `+where, args...)
	if err != nil {
		return fmt.Errorf("read codes: %w", err)
	}
	for id, list := range credits {
		books.Report(audit.Difference{Account: list[0].account, What: "a credit names a missing code", Recorded: id})
	}
	return nil
}

// auditCode compares a code with its credits.
func auditCode(books *audit.Books, c RedeemCode, credits []redemption) {
	var sum money.Amount
	for _, credit := range credits {
		sum += credit.amount
		if c.RedeemedMS != 0 && credit.account != c.Account {
			books.Report(audit.Difference{Account: c.Account, What: "a code was credited to another account than the one that redeemed it",
				Recorded: c.Account, Computed: credit.account})
		}
	}
	switch {
	case c.RedeemedMS == 0 && c.VoidedMS == 0 && len(credits) > 0:
		books.Report(audit.Difference{Account: credits[0].account, What: "an unredeemed code was credited", Recorded: c.ID})
	case c.RedeemedMS != 0 && sum != c.Value:
		books.Report(audit.Difference{Account: c.Account, What: "a redeemed code has no credit of its value",
			Recorded: c.Value.String(), Computed: sum.String()})
	}
}
