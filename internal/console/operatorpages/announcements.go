package operatorpages

import (
	"errors"
	"strings"

	"tollgate/internal/announcement"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

const announcementsPath = "/operator/announcements"

// announcementPage is the content of the page of an announcement.
type announcementPage struct {
	State   ui.Badge
	Preview ui.Banner
	Form    ui.PostForm
	End     *ui.Confirm // nil if the announcement is not active
	Delete  ui.Confirm
}

var announcementBadges = map[string]ui.Badge{announcement.Planned: {Tone: ui.Info, Label: "planned"},
	announcement.Active: {Tone: ui.OK, Label: "shown now"}, announcement.Ended: {Label: "ended"}}

func (c *console) listAnnouncements(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Announcements", All: "All announcements", Path: announcementsPath,
		Table: ui.DataTable{Caption: "Announcements",
			Columns: []ui.Column{{Title: "Title"}, {Title: "State"}, {Title: "Begin"}, {Title: "End"}}}}
	if err := v.View(func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		list, more, err := announcement.ListTx(tx, v.Query("after"), page.Rows)
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(a announcement.Announcement) string { return a.ID }))
		content.Table.Rows = nil
		for _, a := range list {
			until := any(ui.Moment{MS: a.UntilMS})
			if a.UntilMS == 0 {
				until = ui.Text{Text: "no end", Muted: true}
			}
			content.Table.Rows = append(content.Table.Rows, ui.DataRow{Href: page.Base + announcementsPath + "/" + a.ID,
				Cells: []any{ui.Data(a.Title), announcementBadges[a.State(now)], ui.Moment{MS: a.FromMS}, until}})
		}
		return err
	}); err != nil {
		return nil, err
	}
	create := page.CreateLink(announcementsPath+"/new", "Write an announcement")
	if len(content.Table.Rows) > 0 {
		content.New = create
	}
	return content.Page(false, ui.EmptyState{Title: "No announcements yet", Link: create,
		Text: "Customers see an announcement at the top of each page of the console, until it ends or they dismiss it."},
	).WithNotice(v, map[string]ui.Words{"deleted": "The announcement was deleted."}), nil
}

func announcementForm(path string, draft announcement.Draft) ui.PostForm {
	return ui.PostForm{Action: page.Base + path, Submit: "Save", Cancel: page.Base + announcementsPath, Fields: []ui.FormField{
		{Name: "title", Label: "Title", Value: draft.Title, Required: true},
		{Name: "text", Label: "Text", Kind: ui.Area, Value: draft.Text,
			Hint: "Plain text, shown as you write it, to customers of all languages."},
		{Name: "level", Label: "Level", Kind: ui.Choice, Options: show.Select([]ui.Option{
			{Value: announcement.Info, Label: "Information"}, {Value: announcement.Warning, Label: "Warning"}}, draft.Level)},
		{Name: "from", Label: "From (UTC)", Kind: "datetime-local", Value: ui.TimeValue(draft.FromMS), Hint: "Leave empty to begin now."},
		{Name: "until", Label: "Until (UTC)", Kind: "datetime-local", Value: ui.TimeValue(draft.UntilMS),
			Hint: "Leave empty to show it until you end it."},
	}}
}

// readAnnouncement reads the form of an announcement. It returns all errors joined.
func readAnnouncement(form *ui.PostForm) (d announcement.Draft, err error) {
	d = announcement.Draft{Title: form.Field("title").Value, Text: form.Field("text").Value, Level: form.Field("level").Value}
	optional := func(name string) (ms int64, err error) {
		if strings.TrimSpace(form.Field(name).Value) == "" {
			return 0, nil
		}
		return readTime(form, name)
	}
	var fromErr, untilErr error
	d.FromMS, fromErr = optional("from")
	d.UntilMS, untilErr = optional("until")
	return d, errors.Join(fromErr, untilErr)
}

func newAnnouncementForm() ui.PostForm {
	return announcementForm(announcementsPath+"/new", announcement.Draft{Level: announcement.Info})
}

func (c *console) newAnnouncement(*page.Visit) (page.Responder, error) {
	return page.FormPage("Write an announcement", newAnnouncementForm()), nil
}

func (c *console) createAnnouncement(v *page.Visit) (page.Responder, error) {
	form := newAnnouncementForm()
	return v.Submit(&form, func() (page.Responder, error) {
		draft, err := readAnnouncement(&form)
		if err != nil {
			return nil, err
		}
		a, err := page.Write(v, func(tx *store.Tx) (announcement.Announcement, error) {
			return operator.CreateAnnouncementTx(tx, show.Actor(v), draft)
		})
		return c.afterChange(v, announcementsPath+"/"+a.ID, "saved", err)
	}, func() (page.FullPage, error) { return page.FormPage("Write an announcement", form), nil })
}

// afterChange makes this node use a change of the announcements, and redirects to path. If err is not nil, the
// change failed, and afterChange returns err.
func (c *console) afterChange(v *page.Visit, path, done string, err error) (page.Responder, error) {
	if err != nil {
		return nil, err
	}
	c.refreshNow(v, "the announcement", c.Announcements.Refresh)
	return page.To(path, done), nil
}

// announcementTx returns the page of the announcement in the path. If form is nil, the page has a form with the
// stored draft.
func announcementTx(tx *store.Tx, v *page.Visit, form *ui.PostForm) (p announcementPage, err error) {
	a, err := announcement.GetTx(tx, v.PathID())
	if err != nil {
		return p, err
	}
	now, err := tx.NowMS()
	path := announcementsPath + "/" + a.ID
	p = announcementPage{State: announcementBadges[a.State(now)], Preview: page.ShowAnnouncement(a),
		Form: announcementForm(path, a.Draft),
		Delete: v.Confirm(ui.Confirm{ID: "delete", Button: "Delete", Title: "Delete this announcement?", Danger: true,
			Action: page.Base + path + "/delete", Text: []ui.Words{"Customers do not see it any more, and it leaves this list."}})}
	if form != nil {
		p.Form = *form
	}
	if a.State(now) == announcement.Active {
		end := v.Confirm(ui.Confirm{ID: "end", Button: "End now", Title: "End this announcement?", Action: page.Base + path + "/end",
			Text: []ui.Words{"Customers do not see it any more. It stays in this list."}})
		p.End = &end
	}
	return p, err
}

func (c *console) announcementPage(v *page.Visit, form *ui.PostForm) (page.FullPage, error) {
	content, err := page.Read(v, func(tx *store.Tx) (announcementPage, error) { return announcementTx(tx, v, form) })
	return page.FullPage{Name: "announcement", Title: "Announcement", Main: content}, err
}

func (c *console) showAnnouncement(v *page.Visit) (page.Responder, error) {
	p, err := c.announcementPage(v, nil)
	return p.WithNotice(v, map[string]ui.Words{
		"saved": "Saved. Each node uses it within ten seconds.",
		"ended": "The announcement has ended.",
	}), err
}

func (c *console) changeAnnouncement(v *page.Visit) (page.Responder, error) {
	path := announcementsPath + "/" + v.PathID()
	form := announcementForm(path, announcement.Draft{Level: announcement.Info})
	return v.Submit(&form, func() (page.Responder, error) {
		draft, err := readAnnouncement(&form)
		if err == nil {
			err = v.Update(func(tx *store.Tx) error {
				_, err := operator.ChangeAnnouncementTx(tx, show.Actor(v), v.PathID(), func(d *announcement.Draft) error {
					*d = draft
					return nil
				})
				return err
			})
		}
		return c.afterChange(v, path, "saved", err)
	}, func() (page.FullPage, error) { return c.announcementPage(v, &form) })
}

func (c *console) endAnnouncement(v *page.Visit) (page.Responder, error) {
	return c.afterChange(v, announcementsPath+"/"+v.PathID(), "ended", v.Update(func(tx *store.Tx) error {
		return operator.EndAnnouncementTx(tx, show.Actor(v), v.PathID())
	}))
}

func (c *console) deleteAnnouncement(v *page.Visit) (page.Responder, error) {
	return c.afterChange(v, announcementsPath, "deleted", v.Update(func(tx *store.Tx) error {
		return operator.DeleteAnnouncementTx(tx, show.Actor(v), v.PathID())
	}))
}
