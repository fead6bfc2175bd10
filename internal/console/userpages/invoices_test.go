package userpages_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/invoice"
)

// TestInvoices saves the details of a customer, pays, and reads the invoice as a page and as a file.
func TestInvoices(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		const path, details = "/console/billing/invoices", "/console/billing/invoices/details"
		b.Get("/console/billing").Want(t, http.StatusOK, path)
		b.Get(path).Want(t, http.StatusOK, "No invoices yet", details)
		for _, c := range [][]string{
			{"", "", "DE", "", "Enter the name"}, {"Ada", "", "Germany", "", "two letters of a country"},
			{strings.Repeat("x", 10_000), "", "", "", "at most 200 characters"}, {"Ada", strings.Repeat("x\n", 9), "", "", "at most 8 lines"},
			{"Ada", "", "", strings.Repeat("1", 51), "at most 50 characters"}, {"Ada \u202e", "", "", "", "must not contain control characters"},
		} {
			b.Post(details, "name", c[0], "address", c[1], "country", c[2], "tax_id", c[3]).Want(t, http.StatusUnprocessableEntity, c[4])
		}
		fields := []string{"name", `Ada <script> & Söhne`, "address", "Allee 2\r\n\r\n1010 Wien", "country", "at", "tax_id", "ATU1"}
		if got := b.Post(details, fields...).Header().Get("Location"); got != path+"?done=saved" {
			t.Errorf("saving: got %s, want the list", got)
		}
		b.Get(details).Want(t, http.StatusOK, "Ada &lt;script&gt; &amp; Söhne", "Allee 2\n1010 Wien", `value="AT"`)
		d := s.Invoice("ada")
		b.Get(path).Want(t, http.StatusOK, d.Name, "50.00 USD", path+"/"+d.ID)
		b.Get("/console/billing/top-ups/"+d.Topup).Want(t, http.StatusOK, d.Name)
		page := b.Get(path + "/" + d.ID)
		page.Want(t, http.StatusOK, "Invoice "+d.Name, "Lumen GmbH", "DE123456789", "Ada &lt;script&gt; &amp; Söhne", "1010 Wien", "VAT 19 %",
			"42.02 USD", "7.98 USD", "55 USD", "TEST.")
		file := b.Get(path + "/" + d.ID + "/pdf")
		file.Want(t, http.StatusOK)
		if got := file.Header().Get("Content-Disposition"); got != `attachment; filename="`+d.Name+`.pdf"` ||
			file.Header().Get("Content-Type") != "application/pdf" || !bytes.HasPrefix(file.Body.Bytes(), []byte("%PDF-")) {
			t.Errorf("file: got %q of type %s, want a PDF file", got, file.Header().Get("Content-Type"))
		}
		other := s.SignedIn("bob@example.com")
		for _, address := range []string{path + "/" + d.ID, path + "/" + d.ID + "/pdf"} {
			other.Get(address).Want(t, http.StatusNotFound)
		}
		b.Handler = s.Console(func(o *console.Options) {
			o.Invoices = &invoice.Issuer{} // documents are off now
		})
		b.Get("/console/billing").Want(t, http.StatusOK, path)
		b.Get(path).Want(t, http.StatusOK, d.Name)
		other.Handler = b.Handler
		if strings.Contains(other.Get("/console/billing").Body.String(), path) {
			t.Error("a customer without documents has a link to them, want none")
		}
	})
}
