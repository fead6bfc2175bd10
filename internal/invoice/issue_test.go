package invoice_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/invoice"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
)

// TestInvoiceOfPayment pays with a bonus. The invoice has the amounts of the payment, and the details of
// the customer at that time, also after a change.
func TestInvoiceOfPayment(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		ann := invoice.Party{Name: "Ann & Söhne", Address: []string{"Allee 2", "Wien"}, Country: "AT", TaxID: "ATU1"}
		if err := s.save(invoice.Party{Name: " Ann & Söhne ", Address: []string{"Allee 2", "", " Wien"}, Country: "at",
			TaxID: "ATU1"}); err != nil {
			t.Fatal(err)
		}
		row, session := s.paid(11900)
		s.wantDocuments(row.ID, amount{"TEST-INVOICE-2026-00001", "", 10000, 1900, 11900, "130.9"})
		if err := s.save(invoice.Party{Name: "Ann", Country: "DE"}); err != nil {
			t.Fatal(err)
		}
		s.stripe.RefundElsewhere(session, 11900)
		s.wantDocuments(row.ID, amount{"TEST-INVOICE-2026-00001", "", 10000, 1900, 11900, "130.9"},
			amount{"TEST-CREDIT-2026-00001", "TEST-INVOICE-2026-00001", -10000, -1900, -11900, "-130.9"})
		for _, d := range s.documents(row.ID) {
			if !reflect.DeepEqual(d.Customer, ann) || !reflect.DeepEqual(d.Seller, terms().Seller) || d.Account != s.account || d.Live ||
				d.Rate.String() != "1" || d.TaxRate != "19 %" || d.PaidBy != "stripe" || d.Payment == "" {
				t.Errorf("%s: got %+v, want the parties and the payment at the time of the payment", d.Name, d)
			}
		}
		row, _ = s.paid(1000)
		if d := s.documents(row.ID)[0]; d.Name != "TEST-INVOICE-2026-00002" || d.Customer.Name != "Ann" {
			t.Errorf("got %s for %q, want TEST-INVOICE-2026-00002 for Ann", d.Name, d.Customer.Name)
		}
	})
}

// TestRefundsInParts refunds three parts. Their taxes add up exactly. A refund that fails gets another
// invoice, and so does a dispute that is won. A refund and a dispute of the same money have one credit note
// for it.
func TestRefundsInParts(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		row, session := s.paid(10000)
		first := s.stripe.RefundElsewhere(session, 3333)
		s.stripe.RefundElsewhere(session, 3333)
		s.stripe.RefundElsewhere(session, 3334)
		want := []amount{{"TEST-INVOICE-2026-00001", "", 8403, 1597, 10000, "110"},
			{"TEST-CREDIT-2026-00001", "TEST-INVOICE-2026-00001", -2801, -532, -3333, "-36.663"},
			{"TEST-CREDIT-2026-00002", "TEST-INVOICE-2026-00001", -2800, -533, -3333, "-36.663"},
			{"TEST-CREDIT-2026-00003", "TEST-INVOICE-2026-00001", -2802, -532, -3334, "-36.674"}}
		s.wantDocuments(row.ID, want...)
		s.clock.Advance(time.Second)
		s.stripe.FailRefund(first)
		want = append(want, amount{"TEST-INVOICE-2026-00002", "TEST-CREDIT-2026-00001", 2801, 532, 3333, "36.663"})
		s.wantDocuments(row.ID, want...)
		s.clock.Advance(time.Second)
		dispute := s.stripe.Dispute(session, "needs_response")
		want = append(want, amount{"TEST-CREDIT-2026-00004", "TEST-INVOICE-2026-00001", -2801, -532, -3333, "-36.663"})
		s.wantDocuments(row.ID, want...)
		s.clock.Advance(time.Second)
		s.stripe.EndDispute(dispute, "won")
		want = append(want, amount{"TEST-INVOICE-2026-00003", "TEST-CREDIT-2026-00004", 2801, 532, 3333, "36.663"})
		s.wantDocuments(row.ID, want...)
	})
}

// TestRefundByOperator issues the credit note of an operator's refund only when the provider has confirmed
// it. A refused refund gets none.
func TestRefundByOperator(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		row, session := s.paid(2000)
		refund := func(minor int64) (topup.Reversal, error) {
			c, err := store.Write(t.Context(), s.db, func(tx *store.Tx) (topup.Reversal, error) { return s.RefundTx(tx, row.ID, minor, "asked") })
			if err != nil {
				t.Fatal(err)
			}
			return c, s.PayBack(t.Context(), c)
		}
		s.stripe.SetDown(500)
		c, err := refund(500)
		if !errors.Is(err, topup.ErrNoAnswer) {
			t.Fatalf("a refund without an answer: got %v, want %v", err, topup.ErrNoAnswer)
		}
		paid := amount{"TEST-INVOICE-2026-00001", "", 1681, 319, 2000, "20"}
		s.wantDocuments(row.ID, paid)
		s.audit()
		s.stripe.SetDown(0)
		if err := s.PayBack(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		credit := amount{"TEST-CREDIT-2026-00001", paid.Name, -420, -80, -500, "-5"}
		s.wantDocuments(row.ID, paid, credit)
		s.stripe.SendTo("")
		s.stripe.RefundElsewhere(session, 1400)
		if _, err := refund(1000); err == nil {
			t.Error("a refund of more than the rest: got no error, want one")
		}
		if err := s.Sync(t.Context(), row.ID, ""); err != nil {
			t.Fatal(err)
		}
		s.wantDocuments(row.ID, paid, credit, amount{"TEST-CREDIT-2026-00002", paid.Name, -1177, -223, -1400, "-14"})
	})
}

// TestTaxes checks the tax of payments: that of Stripe Tax wins, then a reverse charge, then the rate.
func TestTaxes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		stripeTax     bool
		rate          invoice.TaxRate
		customer      invoice.Party
		wantTax       int64
		wantRate      string
		wantNote      string
		wantTotal     int64
		reverseCharge string
	}{
		{name: "none", wantTotal: 1000},
		{name: "contained", rate: 81_000, wantTax: 75, wantRate: "8.1 %", wantTotal: 1000},
		{name: "Stripe Tax", stripeTax: true, rate: 81_000, wantTax: 10 * fakepayment.Tax, wantTotal: 1000 + 10*fakepayment.Tax},
		{name: "reverse charge", rate: 190_000, reverseCharge: "Reverse charge.", customer: invoice.Party{Name: "a", Country: "FR", TaxID: "FR1"},
			wantNote: "Reverse charge.", wantTotal: 1000},
		{name: "own country", rate: 190_000, reverseCharge: "Reverse charge.", customer: invoice.Party{Name: "a", Country: "DE", TaxID: "DE1"},
			wantTax: 160, wantRate: "19 %", wantTotal: 1000},
		{name: "no tax id", rate: 190_000, reverseCharge: "Reverse charge.", customer: invoice.Party{Name: "a", Country: "FR"},
			wantTax: 160, wantRate: "19 %", wantTotal: 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, c.stripeTax, func(t *testing.T, s *shop) {
				s.Issuer.Terms.TaxRate, s.Issuer.Terms.ReverseCharge = c.rate, c.reverseCharge
				if c.customer.Name != "" {
					if err := s.save(c.customer); err != nil {
						t.Fatal(err)
					}
				}
				row, _ := s.paid(1000)
				d := s.documents(row.ID)[0]
				if d.Tax != c.wantTax || d.TaxRate != c.wantRate || d.TaxNote != c.wantNote || d.Total != c.wantTotal || d.Net+d.Tax != d.Total {
					t.Errorf("got net %d, tax %d (%s, %q), total %d; want tax %d (%s, %q), total %d", d.Net, d.Tax, d.TaxRate, d.TaxNote, d.Total,
						c.wantTax, c.wantRate, c.wantNote, c.wantTotal)
				}
			})
		})
	}
}

// TestOff takes payments before invoices are on, and refunds after they are off again. Only a payment
// with an invoice gets a credit note.
func TestOff(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		on := s.Issuer.Terms
		off := on
		off.Seller = invoice.Party{}
		s.Issuer.Terms = off
		early, earlySession := s.paid(1000)
		s.Issuer.Terms = on
		s.stripe.RefundElsewhere(earlySession, 500)
		s.wantDocuments(early.ID)
		row, session := s.paid(1000)
		s.Issuer.Terms = off
		s.stripe.RefundElsewhere(session, 1000)
		s.wantDocuments(row.ID, amount{"TEST-INVOICE-2026-00001", "", 840, 160, 1000, "10"},
			amount{"TEST-CREDIT-2026-00001", "TEST-INVOICE-2026-00001", -840, -160, -1000, "-10"})
	})
}

// TestYearChange issues documents around the end of a year. The numbers begin anew. If the clock goes
// back, the dates do not.
func TestYearChange(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		names := func(n int) (names []string) {
			for range n {
				row, _ := s.paid(1000)
				names = append(names, s.documents(row.ID)[0].Name)
			}
			return names
		}
		got := names(2)
		end := time.Date(2026, time.December, 31, 23, 59, 59, 999_000_000, time.UTC)
		s.clock.Advance(end.Sub(s.clock.Now()))
		got = append(got, names(1)...)
		s.clock.Advance(time.Millisecond)
		got = append(got, names(1)...)
		s.clock.Advance(-time.Hour)
		got = append(got, names(1)...)
		want := []string{"TEST-INVOICE-2026-00001", "TEST-INVOICE-2026-00002", "TEST-INVOICE-2026-00003", "TEST-INVOICE-2027-00001",
			"TEST-INVOICE-2027-00002"}
		if !slices.Equal(got, want) {
			t.Errorf("numbers: got %q, want %q", got, want)
		}
	})
}

// TestNumbersHaveNoGaps books payments concurrently on two nodes. Every third transaction is rolled back
// after its document was issued, as by a node that dies before its commit, and repeated.
func TestNumbersHaveNoGaps(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.TwoNodes(t, url)
		s := newShop(t, db[0], time.Now, false)
		s.stripe.SendTo("")
		nodes := []*topup.Topups{s.Topups, s.open(db[1], false)}
		errDead := errors.New("the node dies")
		var transactions, failed atomic.Int64
		for _, n := range nodes {
			n.Settled = func(tx *store.Tx, settlement topup.PaymentSettlement) error {
				if err := s.IssueTx(tx, settlement); err != nil {
					return err
				}
				if transactions.Add(1)%3 == 0 {
					failed.Add(1)
					return errDead
				}
				return nil
			}
		}
		const payments = 16
		var all sync.WaitGroup
		for i := range payments {
			row, session := s.begin(1000)
			s.stripe.Pay(session)
			all.Go(func() {
				for {
					err := nodes[i%len(nodes)].Sync(t.Context(), row.ID, "")
					if err == nil || t.Context().Err() != nil {
						return
					}
					if !errors.Is(err, errDead) {
						t.Errorf("book a payment: %v", err)
						return
					}
				}
			})
		}
		all.Wait()
		if failed.Load() == 0 {
			t.Error("no transaction was rolled back, want some")
		}
		var got, want []string
		for i, d := range s.list(invoice.DocumentFilter{Limit: 100}) {
			got, want = append(got, d.Name), append(want, fmt.Sprintf("TEST-INVOICE-%d-%05d", d.Year, i+1))
		}
		slices.Sort(got)
		if len(got) != payments || !slices.Equal(got, want) {
			t.Errorf("numbers: got %q, want %d without gaps", got, payments)
		}
		s.audit()
	})
}

// TestMails announces each document to the users of the account once.
func TestMails(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		storetest.Update(t, s.db, func(tx *store.Tx) error {
			_, err := account.CreateUserTx(tx, s.account, account.SignIn{Email: "ann@example.com", PasswordHash: "$argon2id$"})
			return err
		})
		row, session := s.paid(1190)
		s.stripe.RefundElsewhere(session, 100)
		documents := s.documents(row.ID)
		var got []string
		storetest.View(t, s.db, func(tx *store.Tx) error {
			list, _, err := mail.ListTx(tx, mail.OutboxFilter{Limit: 10})
			for _, m := range list {
				got = append(got, string(m.Kind)+": "+m.Subject)
			}
			return err
		})
		slices.Sort(got)
		want := []string{"credit_note: Credit note " + documents[1].Name + " of shop.example",
			"invoice: Invoice " + documents[0].Name + " of shop.example"}
		if !slices.Equal(got, want) {
			t.Errorf("mails: got %q, want %q", got, want)
		}
	})
}

// TestAuditFindsFaults plants faults in the rows of documents. A changed row is one of them.
func TestAuditFindsFaults(t *testing.T) {
	t.Parallel()
	eachShop(t, false, func(t *testing.T, s *shop) {
		row, session := s.paid(1190)
		s.stripe.RefundElsewhere(session, 190)
		s.paid(2000)
		first := s.documents(row.ID)[0].ID
		for _, c := range []struct{ name, statements, want string }{
			{"another customer", `UPDATE invoice_document SET content = '{}' WHERE id = '` + first + `'`, "has changed since its issue"},
			{"another date", `UPDATE invoice_document SET issued_ms = issued_ms + 1`, "has changed since its issue"},
			{"another tax", `UPDATE invoice_document SET tax_minor = tax_minor + 1, net_minor = net_minor - 1`, "has changed since its issue"},
			{"another sum", `UPDATE invoice_document SET tax_minor = tax_minor + 1`, "do not add up"},
			{"the invoice is gone", `DELETE FROM invoice_document WHERE id = '` + first + `'`, "have a gap"},
			{"the first document is a credit note", `DELETE FROM invoice_document WHERE id = '` + first + `'`, "is not the invoice"},
			{"the credit note is gone", `DELETE FROM invoice_document WHERE kind = 'credit_note'`, "do not add up to what is paid"},
			{"the newest one is gone", `DELETE FROM invoice_document WHERE kind = 'invoice' AND number = 2`,
				"the newest document of a series is missing"},
			{"all are gone", `DELETE FROM invoice_document`, "the newest document of a series is missing"},
			{"the series is gone", `DELETE FROM invoice_series`, "no newest number"},
			{"the top-up is gone", `DELETE FROM topup WHERE id = '` + row.ID + `'`, "documents name a paid top-up"},
		} {
			found := ledgertest.Plant(t, s.db, ledgertest.Fault(c.statements), topup.AuditTx, invoice.AuditTx)
			if !ledgertest.Reports(found, c.want) {
				t.Errorf("%s: got %+v, want %q", c.name, found, c.want)
			}
		}
	})
}
