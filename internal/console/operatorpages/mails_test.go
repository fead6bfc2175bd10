package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/store"
)

// TestMails checks the outbox, the test mail, its result, a resend, and that the pages exist only with
// mail.
func TestMails(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/operator/mails"
		b := s.Operator()
		handler := b.Handler
		b.Handler = s.WithoutMail()
		b.Get(path).Want(t, http.StatusNotFound)
		b.Get("/console/operator").Without(t, path)
		b.Handler = handler
		b.Get(path).Want(t, http.StatusOK, "No mail was written yet", `href="`+path+`/test"`)
		b.Get(path+"/test").Want(t, http.StatusOK, `name="to"`)
		b.Post(path+"/test", "to", "nobody").Want(t, http.StatusUnprocessableEntity, "plain address")
		s.Mail.Plan(fakemail.Refuse)
		b.Post(path+"/test", "to", "ann@example.com").Want(t, http.StatusSeeOther, path)
		b.Get(path).Want(t, http.StatusOK, "ann@example.com", "given up", "No such user here")
		b.Get(path+"?state=sent").Without(t, "ann@example.com")
		b.Get(path+"?state=lost").Want(t, http.StatusBadRequest, "is not a state")
		var id string
		s.Update(func(tx *store.Tx) error { return tx.QueryRow(`SELECT id FROM mail_outbox`).Scan(&id) })
		b.Post(path+"/"+id+"/resend").Want(t, http.StatusSeeOther, path)
		b.Get(path+"?state=sent").Want(t, http.StatusOK, "ann@example.com")
		if n := len(s.Mail.Mails()); n != 1 {
			t.Errorf("the server took %d mails, want 1", n)
		}
		b.Get("/console/operator/log").Want(t, http.StatusOK, "mail.test", "mail.resend")
		s.Exec(`UPDATE mail_outbox SET once = 1`)
		b.Get(path).Without(t, "/resend")
		b.Get("/console/operator").Without(t, "The oldest mail")
		s.Exec(`UPDATE mail_outbox SET state = 1, created_ms = created_ms - 1200000`)
		b.Get("/console/operator").Want(t, http.StatusOK, "The oldest mail has waited for 20", path+"?state=failed")
	})
}
