package invoice

import (
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// mailTx announces a document to the users of its account.
func (i *Issuer) mailTx(tx *store.Tx, d IssuedDocument) error {
	l := mail.Letter{Kind: mail.Invoice, Cause: d.ID, Link: strings.TrimRight(i.PublicURL, "/") + "/console/billing/invoices/" + d.ID,
		Values: map[string]string{"number": d.Name, "total": d.Currency.Text(d.Total)}}
	if d.Kind == CreditNote {
		l.Kind = mail.CreditNote
		l.Values["corrects"] = d.Corrects
	}
	return account.MailUsersTx(tx, i.Mails, d.Account, l)
}
