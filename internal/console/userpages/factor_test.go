package userpages_test

import (
	"net/http"
	"slices"
	"testing"

	"tollgate/internal/console/consoletest"
)

// TestSecondFactor checks the setup, the renewal of recovery codes, and the end of a second factor.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		mine, other := s.SignedIn("ada@example.com"), s.SignedIn("ada@example.com")
		mine.Get("/console/settings/factor").Want(t, http.StatusOK, "Turn it on")
		mine.Post("/console/settings/factor", "password", "wrong horse").Want(t, http.StatusUnprocessableEntity, "That is not your password.")
		setup := mine.Post("/console/settings/factor", "password", consoletest.Password)
		setup.Want(t, http.StatusOK, "Scan this")
		app := setup.Authenticator(t)
		again := mine.Post("/console/settings/factor/confirm", "code", "000 00")
		again.Want(t, http.StatusUnprocessableEntity, "This code is wrong or expired", "Turn it on")
		again.Without(t, `class="qr"`)
		other.Get("/console").Want(t, http.StatusOK)
		before := mine.Cookies["tollgate"].Value
		confirmed := mine.Post("/console/settings/factor/confirm", "code", app.Code(0))
		confirmed.Want(t, http.StatusOK, "Your second factor is on.")
		recovery := confirmed.Codes()
		if len(recovery) != 10 || mine.Cookies["tollgate"].Value == before {
			t.Errorf("the page has the recovery codes %v, want 10; the session has a new value: %v", recovery,
				mine.Cookies["tollgate"].Value != before)
		}
		other.Get("/console").Want(t, http.StatusSeeOther)
		shown := mine.Get("/console/settings/factor")
		shown.Want(t, http.StatusOK, "Recovery codes left", "Turn it off")
		shown.Without(t, append(shown.Codes(), recovery[0])...)
		mine.Post("/console/settings/factor", "password", consoletest.Password).Want(t, http.StatusUnprocessableEntity, "already on")

		mine.Post("/console/settings/factor/recovery", "code", "123").Want(t, http.StatusUnprocessableEntity, "The code is wrong", "Turn it off")
		used := recovery[0]
		renewed := mine.Post("/console/settings/factor/recovery", "code", used)
		renewed.Want(t, http.StatusOK, "The previous codes no longer work.", "Your recovery codes")
		if recovery = renewed.Codes(); len(recovery) != 10 || slices.Contains(recovery, used) {
			t.Errorf("the renewed codes are %v, want 10 without %s", recovery, used)
		}
		mine.Get("/console/settings/factor").Want(t, http.StatusOK, `id="renew-f-code"`)

		mine.Post("/console/settings/factor/off", "password", "wrong horse", "code", recovery[0]).
			Want(t, http.StatusUnprocessableEntity, "That is not your password.")
		mine.Post("/console/settings/factor/off", "password", consoletest.Password, "code", app.Code(0)).
			Want(t, http.StatusUnprocessableEntity, "was used already")
		mine.Post("/console/settings/factor/off", "password", consoletest.Password, "code", recovery[0]).
			Want(t, http.StatusSeeOther, "/console/settings?done=factor")
		mine.Get("/console/settings?done=factor").Want(t, http.StatusOK, "Your second factor is off")
		s.SignedIn("ada@example.com")
	})
}
