package operator

import (
	"encoding/json"
	"errors"
	"fmt"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// Check returns the audit.Check of one audit. It compares the books with the actions of operators and
// with the catalog: each credit and take-back is in the log with its amount and balance, and the charge
// of each request that was answered at once follows from the prices of its catalog revision.
func Check() audit.Check {
	prices := priceList{}
	return func(tx *store.Tx, books *audit.Books) error {
		if err := auditCreditsTx(tx, books); err != nil {
			return err
		}
		if err := prices.readTx(tx); err != nil {
			return err
		}
		books.BilledReceipts(func(r audit.BilledReceipt) { auditCharge(books, prices.models, r) })
		return nil
	}
}

// priceList has the models of all catalog revisions. Revisions never change, so the ranges of an audit
// share it.
type priceList struct {
	read   int64                               // revisions up to this one have been read
	models map[int64]map[string]*catalog.Model // by revision and id; nil if this version cannot read the revision
}

// readTx adds the revisions since the last call.
func (p *priceList) readTx(tx *store.Tx) error {
	head, err := catalog.HeadTx(tx)
	if err != nil {
		return err
	}
	if p.models == nil {
		p.models = map[int64]map[string]*catalog.Model{}
	}
	for p.read < head {
		revision := p.read + 1
		doc, err := catalog.RevisionTx(tx, revision)
		switch {
		case errors.Is(err, catalog.ErrNoRevision):
		case err != nil:
			p.models[revision] = nil
		default:
			models := make(map[string]*catalog.Model, len(doc.Models))
			for i := range doc.Models {
				models[doc.Models[i].ID] = &doc.Models[i]
			}
			p.models[revision] = models
		}
		p.read = revision
	}
	return nil
}

// loggedCredit is a credit in the log.
type loggedCredit struct {
	account         string
	amount, balance money.Amount
}

// auditCreditsTx compares credits with the log. It leaves out redeemed codes and trial credits, which
// account.AuditTx checks, and top-ups, which topup.AuditTx checks. Credits before the first log row are
// exempt: the version that wrote them had no log.
func auditCreditsTx(tx *store.Tx, books *audit.Books) error {
	logged := map[loggedCredit]int{}
	var first int64
	if err := tx.QueryRow(`SELECT COALESCE(MIN(at_ms), 0) FROM operator_log`).Scan(&first); err != nil {
		return fmt.Errorf("read the log's first row: %w", err)
	}
	where, args := books.Where("account", AccountCredit)
	err := tx.Each(func(row store.Row) error {
		c := loggedCredit{}
		var text string
		if err := row.Scan(&c.account, &text); err != nil {
			return err
		}
		var after struct {
			USD     money.Amount `json:"usd"`
			Balance money.Amount `json:"balance_usd"`
		}
		if err := json.Unmarshal([]byte(text), &after); err != nil {
			books.Report(audit.Difference{Account: c.account, What: "a credit in the operators' log cannot be read", Recorded: text})
			return nil
		}
		c.amount, c.balance = after.USD, after.Balance
		logged[c]++
		return nil
	}, `SELECT account, after_text FROM operator_log WHERE act = $1 AND `+where, args...)
	if err != nil {
		return fmt.Errorf("read the credits of the log: %w", err)
	}
	err = books.Movements(func(m audit.Movement) {
		c := loggedCredit{m.Account, m.Amount, m.Balance}
		switch {
		case logged[c] > 0:
			logged[c]--
		case account.IsCodeNote(m.Note), topup.IsNote(m.Note), m.IsTrial():
		case m.Note == account.DemoNote && m.Amount == account.DemoCredit, first == 0, m.CreatedMS < first:
		default:
			books.Report(audit.Difference{Account: m.Account, Request: m.ID, What: "a credit is missing in the operators' log",
				Recorded: m.Amount.String(), Computed: "nothing"})
		}
		books.Count("credits", 1)
	})
	for c, n := range logged {
		if n > 0 {
			books.Report(audit.Difference{Account: c.account, What: "a credit of the operators' log is missing in the account's books",
				Recorded: "nothing", Computed: c.amount.String()})
		}
	}
	return err
}

// auditCharge compares a charge with the prices of its catalog revision. It has no bounds for the
// messages form, because such a receipt does not list the models that the answer called.
func auditCharge(books *audit.Books, priced map[int64]map[string]*catalog.Model, r audit.BilledReceipt) {
	models, known := priced[r.Revision]
	model := models[r.Model]
	isDefined := model != nil && model.Kind.Definition() != nil
	if r.Endpoint != "/v1/chat/completions" && r.Endpoint != "/v1/responses" && !isDefined || known && models == nil {
		return
	}
	d := audit.Difference{Account: r.Account, Key: r.Key, Model: r.Model, Request: r.Request}
	if model == nil {
		d.What, d.Recorded = "the catalog revision of a receipt does not contain the receipt's model", fmt.Sprint(r.Revision)
		books.Report(d)
		return
	}
	low, high := model.ChargeBounds(catalog.ReceiptCounts{
		Prompt: r.Tokens.Prompt, Cached: r.Tokens.Cached, Completion: r.Tokens.Completion, Quantity: r.Quantity.N}, r.Factor)
	if full := money.Plus(r.Cost, r.Over); full < min(low, money.Max) || full > high {
		d.What = "a charge differs from the cost of the receipt's counts at the prices of its catalog revision, times the price factor"
		d.Recorded, d.Computed = full.String(), low.String()
		if low != high {
			d.Computed = fmt.Sprintf("%s to %s", low, high)
		}
		books.Report(d)
	}
	books.Count("recomputed charges", 1)
}
