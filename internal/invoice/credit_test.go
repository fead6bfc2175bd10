package invoice_test

import (
	"errors"
	"sync"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// credit gives a credit by an operator to an account and returns its id.
func (s *shop) credit(accountID string, p ledger.Payment) string {
	s.t.Helper()
	id, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (string, error) {
		if _, err := ledger.MoveTx(tx, accountID, p); err != nil {
			return "", err
		}
		list, _, err := movement.ListTx(tx, movement.Selection{Account: accountID, Limit: 1})
		return list[0].ID, err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// issue asks for the document of a credit, as an operator does.
func (s *shop) issue(id, corrects string) (invoice.IssuedDocument, error) {
	return store.Write(s.t.Context(), s.db, func(tx *store.Tx) (invoice.IssuedDocument, error) {
		return operator.IssueDocumentTx(tx, operator.Actor{Way: operator.Token}, s.Issuer, id, corrects)
	})
}

// wantIssued asks for the document of a credit and compares it.
func (s *shop) wantIssued(id, corrects string, want amount) invoice.IssuedDocument {
	s.t.Helper()
	d, err := s.issue(id, corrects)
	if got := (amount{d.Name, d.Corrects, d.Net, d.Tax, d.Total, d.Credit.String()}); err != nil || got != want {
		s.t.Errorf("document of %s: got %+v, %v; want %+v", id, got, err, want)
	}
	return d
}

// wantRefused asks for the document of a credit and wants a *fault.Error at a parameter.
func (s *shop) wantRefused(id, corrects, param string) {
	s.t.Helper()
	d, err := s.issue(id, corrects)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Param != param {
		s.t.Errorf("document of %s that corrects %q: got %q, %v; want an error at %q", id, corrects, d.Name, err, param)
	}
}

// TestInvoiceOfCredit issues the invoice of a credit by an operator, and credit notes up to its amount.
func TestInvoiceOfCredit(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		top, _ := s.paid(1000)
		paid := s.credit(s.account, ledger.Payment{Amount: 50 * money.USD, Reference: "bank-1", Paid: true})
		first := s.wantIssued(paid, "", amount{"INVOICE-2026-00001", "", 4202, 798, 5000, "50"})
		if !first.Live || first.Payment != "bank-1" || first.Customer.Name != "acme" || first.Seller.Name != "Lumen GmbH" || first.Cause != paid {
			t.Errorf("got %+v, want the invoice of the credit from Lumen GmbH to acme", first)
		}
		if raw, err := first.Sheet().PDF(); err != nil || len(raw) == 0 {
			t.Errorf("got a file of %d bytes, %v; want a PDF file", len(raw), err)
		}
		s.wantIssued(paid, "", amount{"INVOICE-2026-00001", "", 4202, 798, 5000, "50"})
		if err := s.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := operator.MarkPaidTx(tx, operator.Actor{}, paid, false)
			return err
		}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("marking a credit with an invoice as unpaid: got %v, want invalid_request", err)
		}

		back := s.credit(s.account, ledger.Payment{Amount: -20 * money.USD, Paid: true})
		s.wantRefused(back, "", "corrects")
		s.wantRefused(back, "INVOICE-2026-00009", "corrects")
		s.wantRefused(back, s.documents(top.ID)[0].Name, "corrects")
		s.wantIssued(back, first.Name, amount{"CREDIT-2026-00001", first.Name, -1681, -319, -2000, "-20"})
		s.wantRefused(s.credit(s.account, ledger.Payment{Amount: -31 * money.USD, Paid: true}), first.Name, "corrects")
		rest := s.credit(s.account, ledger.Payment{Amount: -30 * money.USD, Paid: true})
		s.Terms = invoice.SellerTerms{CreditSeries: "CREDIT"} // credit notes follow invoices that are off now
		s.wantIssued(rest, first.Name, amount{"CREDIT-2026-00002", first.Name, -2521, -479, -3000, "-30"})
		s.wantRefused(s.credit(s.account, ledger.Payment{Amount: money.USD, Paid: true}), "", "")
		s.Terms = terms()

		other, err := store.Write(t.Context(), s.db, func(tx *store.Tx) (account.Account, error) {
			return account.CreateTx(tx, account.NewAccount{Name: "other"})
		})
		if err != nil {
			t.Fatal(err)
		}
		s.wantRefused(s.credit(other.ID, ledger.Payment{Amount: -money.USD, Paid: true}), first.Name, "corrects")
		s.wantRefused(s.credit(s.account, ledger.Payment{Amount: money.USD}), "", "paid")
		s.wantRefused(s.credit(s.account, ledger.Payment{Amount: money.USD, Paid: true}), first.Name, "corrects")
		s.wantRefused(s.credit(s.account, ledger.Payment{Amount: money.USD / 1000, Paid: true}), "", "")
		s.wantRefused(s.credit(s.account, ledger.Payment{Amount: money.USD, Trial: true}), "", "paid")
		s.wantRefused("ent_none", "", "")
		log, err := store.Read(t.Context(), s.db, func(tx *store.Tx) ([]operator.LogRow, error) {
			rows, _, err := operator.LogTx(tx, operator.LogFilter{Act: operator.EntryInvoice, Limit: 10})
			return rows, err
		})
		if err != nil || len(log) != 3 || log[2].Object != paid || log[2].Account != s.account || log[2].After["number"] != first.Name {
			t.Errorf("log: got %+v, %v; want three rows, the first of %s", log, err, first.Name)
		}
	})
}

// TestInvoiceOfCreditAtOnce asks for the invoice of a credit many times at once, and for two credit notes
// that together exceed the invoice. There is one invoice and one credit note.
func TestInvoiceOfCreditAtOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		paid := s.credit(s.account, ledger.Payment{Amount: 50 * money.USD, Paid: true})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if d, err := s.issue(paid, ""); err != nil || d.Name != "INVOICE-2026-00001" {
					t.Errorf("got %q, %v; want INVOICE-2026-00001", d.Name, err)
				}
			})
		}
		wg.Wait()
		for range 2 {
			back := s.credit(s.account, ledger.Payment{Amount: -30 * money.USD, Paid: true})
			wg.Go(func() {
				if _, err := s.issue(back, "INVOICE-2026-00001"); err != nil && !fault.Is(err, fault.InvalidRequest) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if list := s.list(invoice.DocumentFilter{Account: s.account, Limit: 10}); len(list) != 2 {
			t.Errorf("got %+v, want an invoice and a credit note", list)
		}
	})
}

// TestAuditOfCredits changes a credit with an invoice, and deletes an invoice with a credit note.
func TestAuditOfCredits(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"a document is not that of a paid credit":       `UPDATE ledger_entry SET paid = 0`,
		"a credit note corrects no invoice of a credit": `DELETE FROM invoice_document WHERE kind = 'invoice'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
				s := newShop(t, db, clock.Now, false)
				d, err := s.issue(s.credit(s.account, ledger.Payment{Amount: 50 * money.USD, Paid: true}), "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err = s.issue(s.credit(s.account, ledger.Payment{Amount: -money.USD, Paid: true}), d.Name); err != nil {
					t.Fatal(err)
				}
				s.audit()
				storetest.Update(t, db, func(tx *store.Tx) error {
					_, err := tx.Exec(statement)
					return err
				})
				found, err := audit.Run(t.Context(), db, invoice.AuditTx)
				if err != nil {
					t.Fatal(err)
				}
				hasName := false
				for _, difference := range found.Differences {
					hasName = hasName || difference.What == name
				}
				if !hasName {
					t.Errorf("got %+v, want %q", found.Differences, name)
				}
			})
		})
	}
}
