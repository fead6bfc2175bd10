package userpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestMailPreferences checks the form for a user's mails: it stores choices, and exists only with mail.
func TestMailPreferences(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/settings/mails"
		b := s.Session(account.UserSession, "ada@example.com")
		b.Handler = s.WithoutMail()
		b.Get(path).Want(t, http.StatusNotFound)
		b.Get("/console/settings").Without(t, path)
		b.Handler = s.Console(func(o *console.Options) { o.LowBalance = 5 * money.USD })
		b.Get("/console/settings").Want(t, http.StatusOK, `href="`+path+`"`)
		b.Get(path).Want(t, http.StatusOK, `value="payments" checked`, `value="webhooks" checked`, `<option value="" selected`,
			"empty for $5.00")
		b.Post(path, "topics", "payments", "locale", "zh-CN", "level", "-1").Want(t, http.StatusUnprocessableEntity, "must be an amount in USD")
		b.Post(path, "topics", "payments", "locale", "tlh").Want(t, http.StatusUnprocessableEntity, "one of the languages")
		b.Post(path, "topics", "payments", "locale", "zh-CN", "level", "12.50").Want(t, http.StatusSeeOther, path)
		b.Get(path).Want(t, http.StatusOK, `value="payments" checked`, `value="webhooks">`, `<option value="zh-CN" selected`, `value="12.5"`)
		s.Update(func(tx *store.Tx) error {
			p, err := account.MailPreferencesTx(tx, s.Users["ada@example.com"].ID)
			if err != nil {
				return err
			}
			if p.Locale != mail.Chinese || len(p.Declined) != len(mail.ChoosableTopics())-1 {
				t.Errorf("stored %+v, want Chinese and all topics declined but one", p)
			}
			level, set, err := ledger.LowTx(tx, s.Accounts["ada"].ID)
			if !set || level != 12*money.USD+money.USD/2 {
				t.Errorf("the level is %s, %v; want 12.5", level, set)
			}
			return err
		})
		b.Post(path, "topics", "payments", "account", "acct_other").Want(t, http.StatusBadRequest, "unknown field")
		nobody := s.Browser()
		nobody.Handler = b.Handler
		nobody.Get(path).Want(t, http.StatusSeeOther, "/console/sign-in")
		nobody.Post(path, "locale", "").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Post(path, "locale", "").Want(t, http.StatusSeeOther, path)
		b.Get(path).Want(t, http.StatusOK, `value="payments">`, `<option value="" selected`, `name="level" value=""`)
	})
}
