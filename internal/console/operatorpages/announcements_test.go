package operatorpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
)

// TestAnnouncements writes an announcement, plans it, shows it, ends it and deletes it.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/operator/announcements"
		b, customer := s.Operator(), s.Session(account.UserSession, "ada@example.com")
		b.Get(path).Want(t, http.StatusOK, "No announcements yet")
		fields := func(title, from, until string) []string {
			return []string{"title", title, "text", "Slow\r\nfrom 8", "level", "warning", "from", from, "until", until}
		}
		b.Post(path+"/new", fields("", "soon", "2999-01-01T00:00")...).Want(t, http.StatusUnprocessableEntity,
			"From (UTC) must be a date with a time, in UTC.")
		b.Post(path+"/new", fields("", "", "2999-01-01T00:00")...).Want(t, http.StatusUnprocessableEntity, "Title must be one line of 1 to 100")
		b.Post(path+"/new", fields("<b>Works</b>", "2998-01-01T00:00", "2999-01-01T00:00")...).Want(t, http.StatusSeeOther, "?done=saved")
		page, _, _ := strings.Cut(b.Post(path+"/new", fields("Other works", "2998-01-01T00:00", "")...).Header().Get("Location"), "?")
		b.Get(path).Want(t, http.StatusOK, "&lt;b&gt;Works&lt;/b&gt;", "planned", "2998-01-01 00:00", "no end", page)
		b.Get(page).Want(t, http.StatusOK, "Preview", "Other works</strong><p data-lines>Slow\nfrom 8</p>", `value="2998-01-01T00:00"`)
		b.Get(page).Without(t, "End now", "Dismiss")
		customer.Get("/console").Without(t, "Works")

		b.Post(page, fields("", "", "")...).Want(t, http.StatusUnprocessableEntity, "Title must be one line", "Preview", "Other works")
		b.Post(page, fields("Now", "", "")...).Want(t, http.StatusSeeOther, "?done=saved")
		b.Get(page+"?done=saved").Want(t, http.StatusOK, "shown now", "End now", "Saved. Each node")
		customer.Get("/console").Want(t, http.StatusOK, "Now</strong>")
		b.Post(page+"/end").Want(t, http.StatusSeeOther, "?done=ended")
		b.Get(page+"?done=ended").Want(t, http.StatusOK, "The announcement has ended.")
		customer.Get("/console").Without(t, "Now</strong>")
		b.Post(page+"/delete").Want(t, http.StatusSeeOther, path+"?done=deleted")
		b.Get(page).Want(t, http.StatusNotFound, "There is no such announcement.")
		b.Get(path+"?done=deleted").Without(t, "Other works")
		b.Get("/console/operator/log").Want(t, http.StatusOK, "announcement.create", "announcement.change", "announcement.delete")

		s.User("bob", account.SignIn{Email: "support@example.com", Role: account.Support})
		support := s.Session(account.OperatorSession, "support@example.com")
		support.Get(path).Want(t, http.StatusOK, "Works", "disabled")
	})
}
