package alert

import (
	"fmt"
	"slices"
	"testing"

	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestMails checks for one mail to each address about an alert, also without alert_url, and the bound of
// an hour.
func TestMails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		mailer, err := mail.New(mail.Options{DB: db, Server: mail.SMTPServer{Host: "smtp.example.com"}, PublicURL: "https://shop.example"})
		if err != nil {
			t.Fatal(err)
		}
		d, log := newDiary()
		a := New("", Mails{DB: db, Mailer: mailer, Addresses: []string{"ann@example.com", "bob@example.com"}}, log, nil)
		stop := start(a)
		a.Send(Alert{Line: "main", Model: "swift-1", State: "circuit_open", Cause: "502 x 5", At: 3600})
		for i := range maxMailed + 2 {
			a.Send(Alert{Line: fmt.Sprint("l", i), State: inService, At: 3600})
		}
		a.Send(Alert{Line: "main", State: inService, At: 7200})
		stop()
		var list []string
		storetest.View(t, db, func(tx *store.Tx) (err error) {
			list, err = store.Collect(tx, func(row store.Row) (text string, err error) {
				return text, row.Scan(&text)
			}, `SELECT recipient || ': ' || subject || ': ' || body_text FROM mail_outbox ORDER BY id`)
			return err
		})
		if want := 2 * (maxMailed + 1); len(list) != want {
			t.Fatalf("%d mails, want %d; the log has %s", len(list), want, d)
		}
		slices.Sort(list)
		const want = "ann@example.com: shop.example: line main, model swift-1 is out of service (circuit_open): " +
			"tollgate: line main, model swift-1 is out of service (circuit_open): 502 x 5\n\nTime: 1970-01-01 01:00 UTC"
		if !slices.ContainsFunc(list, func(m string) bool { return len(m) > len(want) && m[:len(want)] == want }) {
			t.Errorf("no mail begins with %q:\n%q", want, list)
		}
		if got := d.String(); got == "" {
			t.Error("the log has no word about the alerts that were not mailed")
		}
	})
}
