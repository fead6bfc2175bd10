package page

import (
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/announcement"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
)

// DismissPath is the path of the form that dismisses an announcement.
const DismissPath = "/announcements/{id}/dismiss"

// ShowAnnouncement returns an announcement as customers see it, without a button.
func ShowAnnouncement(a announcement.Announcement) ui.Banner {
	tone := ui.Info
	if a.Level == announcement.Warning {
		tone = ui.Warn
	}
	return ui.Banner{Tone: tone, Title: ui.Data(a.Title), Text: ui.Data(a.Text)}
}

// announcements returns the active announcements without those that the visitor has dismissed. It returns none
// if the dismissals cannot be read, because a page with a secret must not fail.
func (v *Visit) announcements() (list []ui.Banner) {
	if v.Session.ID == "" || v.section.Kind != account.UserSession {
		return nil
	}
	active := v.server.Announcements.Active()
	if len(active) == 0 {
		return nil
	}
	dismissed, err := Read(v, func(tx *store.Tx) ([]string, error) { return announcement.DismissedTx(tx, v.Session.User.ID) })
	if err != nil {
		v.server.Log.Warn("console: a page is shown without the announcements", "request", v.ID, "error", err)
		return nil
	}
	for _, a := range active {
		if slices.Contains(dismissed, a.ID) {
			continue
		}
		banner := ShowAnnouncement(a)
		banner.Dismiss = &ui.Button{Action: Base + strings.Replace(DismissPath, "{id}", a.ID, 1), Label: "Dismiss", About: banner.Title,
			Hidden: []ui.FormField{{Name: "next", Kind: ui.Hidden, Value: v.returnAddress()}}}
		list = append(list, banner)
	}
	return list
}

// DismissAnnouncement hides an announcement from the visitor and redirects to the page of the form.
func DismissAnnouncement(v *Visit) (Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{{Name: "next", Kind: ui.Hidden}}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	return Redirect(consoleAddress(form.Field("next").Value)), v.Update(func(tx *store.Tx) error {
		return announcement.DismissTx(tx, v.Session.User.ID, v.PathID())
	})
}
