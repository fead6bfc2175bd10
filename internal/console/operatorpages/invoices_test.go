package operatorpages_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/console/consoletest"
)

// TestInvoices searches the documents of customers and downloads those of a month.
func TestInvoices(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		const path = "/console/operator/invoices"
		b.Get(path).Want(t, http.StatusOK, "No invoices yet")
		first := s.Invoice("ada")
		s.Stripe.RefundElsewhere(s.Stripe.Session(first.Topup), 2500)
		if err := s.Options.Topups.Sync(t.Context(), first.Topup, ""); err != nil {
			t.Fatal(err)
		}
		second := s.Invoice("bob")
		month := time.UnixMilli(second.IssuedMS).UTC().Format("2006-01")
		b.Get(path).Want(t, http.StatusOK, first.Name, second.Name, "TEST-CREDIT-", "-25.00")
		b.Get("/console/operator/top-ups/"+first.Topup).Want(t, http.StatusOK, first.Name, "Credit note")
		for query, want := range map[string]string{"?kind=credit_note": "TEST-CREDIT-", "?number=" + second.Name: second.Name,
			"?account=" + s.Accounts["bob"].ID: second.Name, "?month=" + month + "&kind=credit_note": "/files?"} {
			got := b.Get(path + query)
			got.Want(t, http.StatusOK, want)
			if strings.Contains(got.Body.String(), first.ID) {
				t.Errorf("%s shows %s", query, first.Name)
			}
		}
		b.Get(path+"?number=x").Want(t, http.StatusOK, "All invoices")
		b.Get(path+"/"+first.ID).Want(t, http.StatusOK, "Invoice "+first.Name, "Lumen GmbH")
		b.Get(path+"/"+first.ID+"/pdf").Want(t, http.StatusOK, "%PDF-")
		b.Get(path+"/table?month="+month).Want(t, http.StatusOK, first.Name, second.Name, "42.02", "USD")
		b.Get(path+"/files").Want(t, http.StatusBadRequest)
		archive := b.Get(path + "/files?month=" + month).Body.Bytes()
		z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(r)
			if err != nil || !bytes.HasPrefix(raw, []byte("%PDF-")) {
				t.Errorf("%s: got %.10q, %v; want a PDF file", f.Name, raw, err)
			}
		}
		if len(z.File) != 3 {
			t.Errorf("got %d files, want 3", len(z.File))
		}
	})
}
