package invoice

import (
	"fmt"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// documentSums are the sums of a top-up's documents.
type documentSums struct {
	account    string
	currency   topup.Currency
	first      storedDocument
	tax, total int64
	isMixed    bool // documents have several accounts or currencies
}

// AuditTx checks the documents. No row has changed since its issue. The documents of a top-up add up to its
// payment minus refunds and disputes. Documents of credits by operators agree with the credits. The numbers
// of each series have no gaps. AuditTx is an audit.Check.
func AuditTx(tx *store.Tx, books *audit.Books) error {
	if books.Rest() {
		return auditNumbers(tx, books)
	}
	topups := map[string]*documentSums{}
	var credits []storedDocument
	where, args := books.Where("account")
	err := tx.Each(func(row store.Row) error {
		s, err := scanStored(row)
		if err != nil {
			return err
		}
		books.Count("documents", 1)
		report := func(what, recorded, computed string) {
			books.Report(audit.Difference{Account: s.Account, Request: s.ID, What: what, Recorded: recorded, Computed: computed})
		}
		if digest := s.computeDigest(); digest != s.digest {
			report("a document has changed since its issue", s.digest, digest)
		}
		if s.Net+s.Tax != s.Total || (s.Total < 0) != (s.Kind == CreditNote) {
			report("the amounts of a document do not add up", s.Currency.Text(s.Total), s.Currency.Text(s.Net+s.Tax))
		}
		if s.Topup == "" {
			credits = append(credits, s)
			return nil
		}
		sums := topups[s.Topup]
		if sums == nil {
			sums = &documentSums{account: s.Account, first: s, currency: s.Currency}
			topups[s.Topup] = sums
		}
		sums.tax, sums.total = sums.tax+s.Tax, sums.total+s.Total
		sums.isMixed = sums.isMixed || sums.account != s.Account || sums.currency != s.Currency
		return nil
	}, `SELECT `+columns+` FROM invoice_document WHERE `+where+byIssue, args...)
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	if err := auditCredits(tx, books, credits); err != nil || len(topups) == 0 {
		return err
	}
	settled, err := topup.SettledTx(tx, books)
	if err != nil {
		return err
	}
	for id, sums := range topups {
		auditTopup(books, id, sums, settled)
	}
	return nil
}

// auditTopup compares the documents of a top-up with the top-up.
func auditTopup(books *audit.Books, id string, sums *documentSums, settled map[string]topup.SettledTopup) {
	s, isPaid := settled[id]
	first := sums.first
	report := func(what, recorded, computed string) {
		books.Report(audit.Difference{Account: sums.account, Request: id, What: what, Recorded: recorded, Computed: computed})
	}
	switch {
	case !isPaid:
		report("documents name a paid top-up that the account does not have", first.Name, "")
	case sums.isMixed || s.Topup.Account != sums.account || s.Topup.Currency != sums.currency:
		report("a document has another account or currency than its top-up", first.Name, s.Topup.Currency.Code)
	case first.Kind != Invoice || first.Reversal != "" || first.Total != s.Topup.Total || first.Credit != s.Topup.Credit:
		report("the first document of a top-up is not the invoice of its payment", first.Currency.Text(first.Total),
			s.Topup.Currency.Text(s.Topup.Total))
	case sums.total != s.Minor:
		report("the documents of a top-up do not add up to what is paid", first.Currency.Text(sums.total), first.Currency.Text(s.Minor))
	case sums.tax != part(s.Minor, first.Tax, first.Total):
		report("the taxes of a top-up's documents do not add up", first.Currency.Text(sums.tax),
			first.Currency.Text(part(s.Minor, first.Tax, first.Total)))
	}
}

// auditNumbers checks that the numbers of each series and year are 1, 2, 3 and so on, up to the newest one.
func auditNumbers(tx *store.Tx, books *audit.Books) error {
	newest := map[string]string{}
	err := tx.Each(func(row store.Row) error {
		var name string
		var year, number int64
		err := row.Scan(&name, &year, &number)
		newest[name] = nameOf(name, year, number)
		return err
	}, `SELECT name, year, number FROM invoice_series`)
	if err != nil {
		return fmt.Errorf("read the newest numbers: %w", err)
	}
	last := map[string]string{}
	err = tx.Each(func(row store.Row) error {
		var series string
		var year, first, highest, count int64
		if err := row.Scan(&series, &year, &first, &highest, &count); err != nil {
			return err
		}
		if first != 1 || highest != count {
			books.Report(audit.Difference{What: "the numbers of documents have a gap", Recorded: fmt.Sprintf("%d from %s", count,
				nameOf(series, year, first)), Computed: nameOf(series, year, highest)})
		}
		last[series] = nameOf(series, year, highest)
		return nil
	}, `SELECT series, year, MIN(number), MAX(number), COUNT(*) FROM invoice_document GROUP BY series, year ORDER BY series, year`)
	if err != nil {
		return fmt.Errorf("read the numbers of documents: %w", err)
	}
	for series, name := range newest {
		if last[series] != name {
			books.Report(audit.Difference{What: "the newest document of a series is missing", Recorded: last[series], Computed: name})
		}
		delete(last, series)
	}
	for series, name := range last {
		books.Report(audit.Difference{What: "a series of documents has no newest number", Recorded: name, Computed: series})
	}
	return nil
}
