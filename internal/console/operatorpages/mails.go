package operatorpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// mailsPath is the path of the list of mails.
const mailsPath = "/operator/mails"

// mailing returns handle if mail is on. Otherwise it returns a handler that answers 404.
func (c *console) mailing(handle func(*page.Visit) (page.Responder, error)) func(*page.Visit) (page.Responder, error) {
	return page.OnlyIf(c.Mails.On(), handle)
}

func (c *console) listMails(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Mails", All: "All mails", Path: mailsPath, New: page.CreateLink(mailsPath+"/test", "Send a test mail")}
	content.Tabs = v.Tabs(mailsPath, "State", "state", []ui.Option{{Label: "All"}, {Value: "waiting", Label: "Waiting"},
		{Value: "failed", Label: "Trying again"}, {Value: "given_up", Label: "Given up"}, {Value: "sent", Label: "Sent"}})
	f := mail.OutboxFilter{State: v.Query("state"), After: v.Query("after"), Limit: page.Rows}
	if !content.Tabs.HasCurrent() {
		return nil, fault.New(fault.InvalidRequest, "%q is not a state of mails.", fault.Excerpt(f.State))
	}
	if err := v.View(func(tx *store.Tx) error {
		list, more, err := mail.ListTx(tx, f)
		content.Table = mailsTable(list)
		content.Pager = v.Pager(mailsPath, more, page.Last(list, func(m mail.OutboxMail) string { return m.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	return content.Page(f.State != "", ui.EmptyState{Title: "No mail was written yet",
		Text: "Mails to users appear here for 30 days, with their state and the answer of the SMTP server."}), nil
}

func mailsTable(list []mail.OutboxMail) ui.DataTable {
	t := ui.DataTable{Caption: "Mails", Columns: []ui.Column{{Title: "Time"}, {Title: "To, subject, answer"},
		{Title: "State"}, {Title: "Next attempt", Fold: true}, {Title: "Change"}}}
	for _, m := range list {
		var next, change any = "", ui.Button{Action: page.Base + mailsPath + "/" + m.ID + "/resend", Label: "Resend", About: ui.Data(m.To)}
		if m.NextMS != 0 {
			next = ui.Moment{MS: m.NextMS}
		} else if m.Once {
			change = ui.Text{Text: "had a single-use link", Muted: true}
		}
		text := m.To + "\n" + m.Subject
		if m.Error != "" {
			text += "\n" + m.Error
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: m.CreatedMS}, ui.Text{Text: ui.Data(text), Lines: true}, mailState(m),
			next, change}})
	}
	return t
}

// mailState returns the badge of a mail's state.
func mailState(m mail.OutboxMail) ui.Badge {
	switch m.State {
	case "sent":
		return ui.Badge{Tone: ui.OK, Label: "sent"}
	case "given_up":
		return ui.Badge{Tone: ui.Bad, Label: "given up"}
	case "failed":
		return ui.Badge{Tone: ui.Warn, Label: "trying again"}
	}
	return ui.Badge{Tone: ui.Info, Label: "waiting"}
}

func testMailForm(v *page.Visit) ui.PostForm {
	return ui.PostForm{Action: page.Base + mailsPath + "/test", Submit: "Send", Cancel: page.Base + mailsPath, Fields: []ui.FormField{
		{Name: "to", Label: "Address", Kind: "email", Required: true, Value: v.Session.User.Email,
			Hint: "The result is on the next page: one attempt, at most a minute."},
	}}
}

func (c *console) newTestMail(v *page.Visit) (page.Responder, error) {
	return page.FormPage("Send a test mail", testMailForm(v)), nil
}

func (c *console) sendTestMail(v *page.Visit) (page.Responder, error) {
	form := testMailForm(v)
	return v.Submit(&form, func() (page.Responder, error) {
		_, err := operator.TestMail(v.Context(), c.DB, c.Mails, show.Actor(v), form.Field("to").Value)
		return page.Redirect(page.Base + mailsPath), err
	}, func() (page.FullPage, error) { return page.FormPage("Send a test mail", form), nil })
}

func (c *console) resendMail(v *page.Visit) (page.Responder, error) {
	_, err := operator.ResendMail(v.Context(), c.DB, c.Mails, show.Actor(v), v.PathID())
	return page.Redirect(page.Base + mailsPath), err
}
