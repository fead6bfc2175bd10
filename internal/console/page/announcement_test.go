package page_test

import (
	"net/http"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/announcement"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
)

// TestDismissAnnouncements checks that each user sees an active announcement on all pages until the user
// dismisses it, and that a page is shown without announcements if the dismissals cannot be read.
func TestDismissAnnouncements(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		ada, bob := s.Session(account.UserSession, "ada@example.com"), s.Session(account.UserSession, "bob@example.com")
		const title = "Works & more"
		first := s.Announce(announcement.Draft{Title: title, Text: "From 8\nto 9", Level: announcement.Warning})
		second := s.Announce(announcement.Draft{Title: "Hello", Level: announcement.Info})
		shown := `<section class="stack noprint" aria-label="Announcements">`
		for _, path := range []string{"/console", "/console/keys/new", "/console/requests?status=500", "/console/prices"} {
			ada.Get(path).Want(t, http.StatusOK, shown, "Works &amp; more</strong><p data-lines>From 8\nto 9</p>", "Hello</strong></div>")
		}
		for _, b := range []*consoletest.Browser{s.Browser(), s.Operator()} {
			b.Get("/console/prices").Without(t, shown)
			b.Get("/console/operator").Without(t, shown)
		}
		got := ada.Get("/console/requests?status=500")
		got.Want(t, http.StatusOK, `name="next" value="/console/requests?status=500"`)
		dismiss := "/console/announcements/" + first + "/dismiss"
		ada.Post(dismiss, "next", "/console/requests?status=500").Want(t, http.StatusSeeOther, "/console/requests?status=500")
		ada.Post(dismiss, "next", "https://elsewhere.example/console").Want(t, http.StatusSeeOther)
		if address := ada.Post(dismiss, "next", "//elsewhere.example").Header().Get("Location"); address != "/console" {
			t.Errorf("a foreign address leads to %s", address)
		}
		ada.Get("/console").Want(t, http.StatusOK, "Hello</strong>")
		ada.Get("/console").Without(t, "Works")
		bob.Get("/console").Want(t, http.StatusOK, "Works")
		ada.Post("/console/announcements/" + second + "/dismiss")
		ada.Get("/console").Without(t, shown)
		ada.Post("/console/announcements/ann_none/dismiss").Want(t, http.StatusSeeOther)

		s.Update(func(tx *store.Tx) error { return account.DeleteUserTx(tx, s.Users["ada@example.com"].ID) })
		s.Update(func(tx *store.Tx) error {
			var left int
			err := tx.QueryRow(`SELECT COUNT(*) FROM announcement_dismissal`).Scan(&left)
			if left != 0 {
				t.Errorf("%d dismissals of a deleted user are left", left)
			}
			return err
		})
		s.Exec(`DROP TABLE announcement_dismissal`)
		bob.Get("/console").Want(t, http.StatusOK, "Balance")
		bob.Get("/console").Without(t, shown)
	})
}
