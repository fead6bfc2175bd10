package consoletest

import (
	"tollgate/internal/announcement"
	"tollgate/internal/availability"
	"tollgate/internal/console/page"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// showPublicPages configures all public pages, and announcements.
func (s *Scene) showPublicPages() {
	s.Options.PublicPrices = true
	s.Options.Legal = page.Legal{Terms: page.LegalText{mail.English: {Plain: "Be kind."}},
		Privacy: page.LegalText{mail.English: {Plain: "We keep little."}}}
	s.Options.Announcements = announcement.NewBoard(s.DB, nil)
	s.Options.Availability = availability.New(availability.Options{DB: s.DB, Known: func(string) bool { return true }})
}

// Announce stores an announcement and returns its id. The scene's consoles show the announcement at once.
func (s *Scene) Announce(d announcement.Draft) (id string) {
	s.t.Helper()
	s.Update(func(tx *store.Tx) error {
		a, err := announcement.CreateTx(tx, d)
		id = a.ID
		return err
	})
	if err := s.Options.Announcements.Refresh(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return id
}
